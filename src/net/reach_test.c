// SPDX-License-Identifier: Apache-2.0
// The parts of a server's URL, and this machine's address on the way to it.
#include "net/reach.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct {
    const char *url, *host; /* host: NULL when refused */
    uint16_t port;
} urls[] = {
    {"https://10.0.0.1:6443", "10.0.0.1", 6443},
    {"https://10.0.0.1:6443/prefix", "10.0.0.1", 6443},
    {"https://api.example.org", "api.example.org", 443},
    {"https://api.example.org/a:b", "api.example.org", 443}, /* a colon of the path */
    {"http://api.example.org", "api.example.org", 80},
    {"https://[::1]:6443/x", "::1", 6443},
    {"https://[::1]", "::1", 443},
    {"10.0.0.1:6443", NULL, 0},
    {"https://", NULL, 0},
    {"https://host:0", NULL, 0},
    {"https://host:65536", NULL, 0},
    {"https://host:", NULL, 0},
    {"https://host:port", NULL, 0},
    {"https://[::1]6443", NULL, 0},
};

static void a_url_has_a_host_and_a_port(void **state)
{
    for (size_t i = 0; i < HK_LEN(urls); i++) {
        struct reach r = {.port = 0};
        struct hk_err err = {0};
        const int rc = reach_parse(urls[i].url, &r, &err);
        if ((rc == 0) != (urls[i].host != NULL) ||
            (rc == 0 && (strcmp(r.host, urls[i].host) != 0 || r.port != urls[i].port))) {
            fail_msg("'%s': expected '%s' port %u, was '%s' port %u, result %d", urls[i].url,
                     urls[i].host ? urls[i].host : "refused", urls[i].port, r.host, r.port, rc);
        }
    }
}

static const struct {
    const char *host, *from;
} ways[] = {
    {"127.0.0.1", "127.0.0.1"},
    {"127.0.0.2", "127.0.0.1"}, /* the kernel's choice, not the destination */
    {"no.such.host.invalid", "127.0.0.1"},
};

static void the_way_to_a_server_has_a_local_address(void **state)
{
    for (size_t i = 0; i < HK_LEN(ways); i++) {
        struct reach r = {.port = 6443};
        char from[64];
        snprintf(r.host, sizeof(r.host), "%s", ways[i].host);
        reach_from(&r, from, sizeof(from));
        assert_string_equal(from, ways[i].from);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_has_a_host_and_a_port),
        cmocka_unit_test(the_way_to_a_server_has_a_local_address),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("net/reach", tests, NULL, NULL);
}
