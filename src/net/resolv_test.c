// SPDX-License-Identifier: Apache-2.0
// Which lines of a resolv.conf count.
#include "net/resolv.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct {
    const char *in, *out;
} cases[] = {
    {"nameserver 192.0.2.1\n", "nameserver 192.0.2.1\n"},
    {"# nameserver 192.0.2.9\n; nameserver 192.0.2.9\n\n", ""},
    {"nameserver\t192.0.2.1 # first\nnameserver  192.0.2.2", "nameserver 192.0.2.1\n"
                                                             "nameserver 192.0.2.2\n"},
    {"search a.example b.example\nsearch c.example. .\n", "search c.example .\n"}, /* the last */
    {"options ndots:2 rotate\noptions timeout:1\n", "options ndots:2 rotate timeout:1\n"},
    {"nameserver 192.0.2.1\nnameserver 192.0.2.1\n", "nameserver 192.0.2.1\n"},
    {"nameserver\nsearch\noptions\ndomain a.example\nsortlist x\n", ""},
    {"options a\nnameserver ::1\nsearch x\n", "search x\nnameserver ::1\noptions a\n"},
};

static void test_lines(void **state)
{
    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(resolv_fini) struct resolv r = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

        resolv_parse(hk_str(cases[i].in), &r);
        resolv_write(&r, &out);
        assert_string_equal(hk_buf_str(&out).s, cases[i].out);
    }
}

static void test_a_missing_file_is_empty(void **state)
{
    HK_AUTO(resolv_fini) struct resolv r = {0};

    resolv_read("/nonexistent/resolv.conf", &r);
    assert_int_equal(r.servers.len + r.search.len + r.options.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_a_missing_file_is_empty),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
