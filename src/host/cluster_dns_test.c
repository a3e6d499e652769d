// SPDX-License-Identifier: Apache-2.0
// Which addresses and domains are accepted, and what happens where the server cannot listen.
#include "host/cluster_dns.h"

#include "api/port_mem.h"
#include "api/services.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

static void test_values(void **state)
{
    static const struct {
        const char *address, *domain;
        bool ok;
    } cases[] = {
        {"auto", "cluster.local", true},
        {"off", "example", true},
        {"127.0.0.53", "a-1.b", true},
        {"192.0.2.1", "cluster.local", false},
        {"::1", "cluster.local", false},
        {"", "cluster.local", false},
        {"auto", "", false},
        {"auto", "Cluster.local", false},
        {"auto", "cluster.local.", false},
        {"auto", "-a.b", false},
        {"auto", "a..b", false},
        {"auto", "a_b", false},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        const struct cluster_dns_opts o = {cases[i].address, cases[i].domain};
        struct hk_err err = {0};

        assert_int_equal(cluster_dns_check(&o, &err) == 0, cases[i].ok);
        assert_int_equal(err.text[0] == '\0', cases[i].ok);
    }
}

struct fixture {
    struct port_mem *mem;
    struct net_loop *loop;
    struct services *services;
};

static int setup(void **state)
{
    struct fixture *f = hk_zalloc(sizeof(*f));

    f->loop = net_loop_new(hk_clock_system());
    f->mem = port_mem_new(0);
    f->services = services_new(port_mem_port(f->mem), hk_clock_system());
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    services_free(f->services);
    port_free(port_mem_port(f->mem));
    net_loop_free(f->loop);
    hk_free(f);
    return 0;
}

static int start(struct fixture *f, const char *address, uint32_t net, struct dns **ret,
                 struct hk_err *off)
{
    const struct cluster_dns_opts o = {address, "cluster.local"};
    const struct rest_service_range range = {.net = net, .prefix = 16};
    struct hk_err err = {0};

    *ret = NULL;
    return cluster_dns_start(&o, range, f->loop, &(struct dns_zone_opts){.services = f->services},
                             ret, off, &err);
}

static void test_where_it_cannot_listen_it_is_off(void **state)
{
    struct hk_err off = {0};
    struct dns *dns;

    assert_int_equal(start(*state, "off", 0x7f900000, &dns, &off), 0);
    assert_null(dns);
    assert_string_equal(off.text, "");
    assert_int_equal(start(*state, "auto", 0xc0000200, &dns, &off), 0); /* no loopback network */
    assert_null(dns);
    assert_string_equal(off.text, "'192.0.2.10' is not a loopback address of IPv4");
    assert_true(start(*state, "192.0.2.10", 0x7f900000, &dns, &off) <
                0); /* as given, or not at all */
}

/* Only root may listen on port 53. The network depends on the process: tests run side by side. */
static void test_it_has_the_tenth_address(void **state)
{
    const uint32_t net = 0x7f000000u | (uint32_t)(160 + (getpid() & 31)) << 16;
    const struct in_addr tenth = {htonl(net + 10)};
    char want[INET_ADDRSTRLEN];
    struct hk_err off = {0};
    struct dns *dns;

    assert_int_equal(start(*state, "auto", net, &dns, &off), 0);
    if (dns) {
        assert_string_equal(dns_address(dns), inet_ntop(AF_INET, &tenth, want, sizeof(want)));
        assert_int_equal(dns_port(dns), 53);
    } else {
        assert_true(off.text[0] != '\0');
    }
    dns_free(dns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test_setup_teardown(test_where_it_cannot_listen_it_is_off, setup, teardown),
        cmocka_unit_test_setup_teardown(test_it_has_the_tenth_address, setup, teardown),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
