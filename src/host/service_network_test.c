// SPDX-License-Identifier: Apache-2.0
// Networks for Services: each server of a machine gets one of its own, and keeps it.
#include "host/service_network.c"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static bool alone; /* in a network namespace, where no other server holds anything */

struct place {
    char dir[32];
    struct service_network network;
    int fd;
};

static void place_init(struct place *p)
{
    *p = (struct place){.network.automatic = true, .fd = -1};
    snprintf(p->dir, sizeof(p->dir), "/tmp/hekla-network-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
}

static void place_start(struct place *p)
{
    struct hk_err err = {0};

    p->network = (struct service_network){.automatic = true};
    if (service_network_claim(&p->network, p->dir, &p->fd, &err) < 0) {
        fail_msg("expected a network, got: %s", err.text);
    }
}

static void place_stop(struct place *p)
{
    if (p->fd >= 0) {
        close(p->fd);
    }
    p->fd = -1;
}

static void place_fini(struct place *p)
{
    char path[64];

    place_stop(p);
    snprintf(path, sizeof(path), "%s/" RECORD, p->dir);
    unlink(path);
    rmdir(p->dir);
}

static void servers_of_one_machine_get_different_networks(void **state)
{
    struct place a, b;

    place_init(&a);
    place_init(&b);
    place_start(&a);
    place_start(&b);
    assert_int_equal(a.network.range.prefix, PREFIX);
    assert_int_not_equal(a.network.range.net, b.network.range.net);
    place_fini(&a);
    place_fini(&b);
}

static void a_server_keeps_its_network(void **state)
{
    struct place a, b;
    uint32_t net;

    place_init(&a);
    place_init(&b);
    place_start(&a);
    place_start(&b);
    net = b.network.range.net;
    place_stop(&a);
    place_stop(&b);
    place_start(&b); /* the network of a, which comes first, is free now */
    assert_int_equal(b.network.range.net, net);
    assert_true(b.fd >= 0);
    place_fini(&a);
    place_fini(&b);
}

static void a_network_that_another_server_holds_is_no_reason_to_end(void **state)
{
    struct service_network same;
    struct place a;
    int fd;

    place_init(&a);
    place_start(&a);
    same = (struct service_network){.range = a.network.range};
    assert_int_equal(service_network_claim(&same, a.dir, &fd, NULL), 0);
    assert_true(same.shared);
    assert_int_equal(fd, -1);
    place_fini(&a);
}

static void a_server_starts_though_all_networks_are_held(void **state)
{
    int held[LAST - FIRST + 1];
    struct place a;

    if (!alone) {
        skip(); /* the networks of other servers would be taken from them */
    }
    for (uint32_t k = FIRST; k <= LAST; k++) {
        const struct rest_service_range range = {.net = 127u << 24 | k << 16, .prefix = PREFIX};
        assert_int_equal(hold_range(&range, &held[k - FIRST], NULL), 0);
    }
    place_init(&a);
    place_start(&a);
    assert_true(a.network.shared);
    assert_int_equal(a.fd, -1);
    for (uint32_t k = FIRST; k <= LAST; k++) {
        close(held[k - FIRST]);
    }
    place_start(&a);
    assert_false(a.network.shared);
    assert_int_equal(a.network.range.net, 127u << 24 | (uint32_t)FIRST << 16);
    assert_true(a.fd >= 0);
    place_fini(&a);
}

static void a_server_without_addresses_holds_nothing(void **state)
{
    struct service_network none = {.automatic = false};
    int fd;

    assert_int_equal(service_network_claim(&none, "/nowhere", &fd, NULL), 0);
    assert_int_equal(fd, -1);
}

static void a_damaged_record_is_replaced(void **state)
{
    struct place a;
    char path[64];

    place_init(&a);
    snprintf(path, sizeof(path), "%s/" RECORD, a.dir);
    assert_int_equal(hk_write_file(path, HK_STR("nonsense"), NULL), 0);
    place_start(&a);
    assert_int_equal(a.network.range.prefix, PREFIX);
    place_fini(&a);
}

static void networks_are_read_as_people_write_them(void **state)
{
    struct service_network n;

    assert_int_equal(service_network_parse("auto", &n, NULL), 0);
    assert_true(n.automatic);
    assert_int_equal(service_network_parse("127.200.0.0/24", &n, NULL), 0);
    assert_false(n.automatic);
    assert_int_equal(n.range.prefix, 24);
    assert_int_equal(service_network_parse("127.200.0.0", &n, NULL), -HK_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_of_one_machine_get_different_networks),
        cmocka_unit_test(a_server_keeps_its_network),
        cmocka_unit_test(a_network_that_another_server_holds_is_no_reason_to_end),
        cmocka_unit_test(a_server_starts_though_all_networks_are_held),
        cmocka_unit_test(a_server_without_addresses_holds_nothing),
        cmocka_unit_test(a_damaged_record_is_replaced),
        cmocka_unit_test(networks_are_read_as_people_write_them),
    };
    alone = unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("host/service_network", tests, NULL, NULL);
}
