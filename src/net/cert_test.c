// SPDX-License-Identifier: Apache-2.0
// Certificates: their names, their lifetime, and that only their own authority verifies them.
#include "net/cert.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define NOW INT64_C(1800000000)

static void make_ca(struct cert_pair *ret)
{
    const struct cert_opts o = {.cn = "test-ca", .now_s = NOW, .days = 10};
    struct hk_err err = {0};

    assert_int_equal(cert_make_ca(&o, ret, &err), 0);
}

static void make_server(const struct cert_pair *ca, struct cert_pair *ret)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "::1", "node-1.example"};
    const struct cert_opts o = {.cn = "server",
                                .names = names,
                                .nnames = HK_LEN(names),
                                .server = true,
                                .now_s = NOW,
                                .days = 5};
    struct hk_err err = {0};

    assert_int_equal(cert_make(&o, ca, ret, &err), 0);
}

static void test_a_certificate_stands_for_its_names_only(void **state)
{
    static const struct {
        const char *name;
        bool want;
    } cases[] = {
        {"localhost", true},  {"127.0.0.1", true},       {"::1", true}, {"node-1.example", true},
        {"127.0.0.2", false}, {"node-2.example", false}, {"", false},
    };
    HK_AUTO(cert_pair_fini) struct cert_pair ca = {0}, other = {0}, server = {0};

    make_ca(&ca);
    make_ca(&other);
    make_server(&ca, &server);
    for (size_t k = 0; k < HK_LEN(cases); k++) {
        const bool got = cert_serves(server.cert_pem, ca.cert_pem, cases[k].name);
        if (got != cases[k].want) {
            fail_msg("'%s': expected %d, got %d", cases[k].name, cases[k].want, got);
        }
    }
}

static void test_expiry_is_the_days_asked_for(void **state)
{
    HK_AUTO(cert_pair_fini) struct cert_pair ca = {0}, server = {0};
    struct hk_err err = {0};
    int64_t ends = 0;

    make_ca(&ca);
    make_server(&ca, &server);
    assert_int_equal(cert_expiry(ca.cert_pem, &ends, &err), 0);
    assert_int_equal(ends, NOW + 10 * 86400);
    assert_int_equal(cert_expiry(server.cert_pem, &ends, &err), 0);
    assert_int_equal(ends, NOW + 5 * 86400);
}

static void test_broken_pem_is_reported(void **state)
{
    const struct cert_opts o = {.cn = "x", .now_s = NOW, .days = 1};
    struct cert_pair broken = {(char *)"rubbish", (char *)"rubbish"}, ret = {0};
    struct hk_err err = {0};
    int64_t ends;

    assert_int_equal(cert_expiry("rubbish", &ends, &err), -HK_EIO);
    assert_int_equal(cert_make(&o, &broken, &ret, &err), -HK_EIO);
    assert_non_null(strstr(err.text, "authority's certificate"));
}

static void test_base64_has_no_line_ends(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    cert_write_base64("any carnal pleas", &out);
    assert_string_equal(out.data, "YW55IGNhcm5hbCBwbGVhcw==");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_certificate_stands_for_its_names_only),
        cmocka_unit_test(test_expiry_is_the_days_asked_for),
        cmocka_unit_test(test_broken_pem_is_reported),
        cmocka_unit_test(test_base64_has_no_line_ends),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
