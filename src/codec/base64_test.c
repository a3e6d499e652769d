// SPDX-License-Identifier: Apache-2.0
// Base64 in both alphabets, and malformed texts.
#include "codec/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_bytes_come_back(void **state)
{
    static const struct {
        struct hk_str in;
        const char *coded;
    } cases[] = {
        {HK_STR(""), ""},           {HK_STR("f"), "Zg"},
        {HK_STR("fo"), "Zm8"},      {HK_STR("foo"), "Zm9v"},
        {HK_STR("foob"), "Zm9vYg"}, {HK_STR("\xff\xef\xbe"), "_---"},
        {HK_STR("\0a"), "AGE"},     {HK_STR("{\"a\":1}"), "eyJhIjoxfQ"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf coded = {0}, plain = {0};
        base64url_write(cases[i].in, &coded);
        assert_string_equal(hk_buf_str(&coded).s, cases[i].coded);
        assert_true(base64url_read(hk_buf_str(&coded), &plain));
        assert_int_equal(plain.len, cases[i].in.n);
        assert_memory_equal(hk_buf_str(&plain).s, cases[i].in.s, cases[i].in.n);
    }
}

static void test_the_common_form_is_padded(void **state)
{
    static const struct {
        const char *in, *coded;
    } cases[] = {
        {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"\xff\xef\xbe", "/+++"}};

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf coded = {0}, plain = {0};
        base64_write(hk_str(cases[i].in), &coded);
        assert_string_equal(hk_buf_str(&coded).s, cases[i].coded);
        assert_true(base64_read(hk_buf_str(&coded), &plain));
        assert_string_equal(hk_buf_str(&plain).s, cases[i].in);
    }
}

static void test_other_characters_are_refused(void **state)
{
    static const char *const cases[] = {"a b", "Zg==", "+/", "Zm8\n"};

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf plain = {0};
        assert_false(base64url_read(hk_str(cases[i]), &plain));
    }
}

static void test_the_common_form_wants_its_padding(void **state)
{
    static const char *const bad[] = {"Zg", "Zg=", "Z===", "=Zg=", "Zg-_", "Zg==Zg=="};
    HK_AUTO(hk_buf_fini) struct hk_buf plain = {0};

    for (size_t i = 0; i < HK_LEN(bad); i++) {
        assert_false(base64_read(hk_str(bad[i]), &plain));
    }
    hk_buf_clear(&plain);
    assert_true(base64_read(HK_STR("Zm9v\r\nZg==\n"), &plain));
    assert_string_equal(plain.data, "foof");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_come_back),
        cmocka_unit_test(test_the_common_form_is_padded),
        cmocka_unit_test(test_the_common_form_wants_its_padding),
        cmocka_unit_test(test_other_characters_are_refused),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
