// SPDX-License-Identifier: Apache-2.0
// Errors contain a code and a message, survive truncation, and map to what Kubernetes clients
// expect.

#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_fail_sets_code_and_text(void **state)
{
    struct hk_err err = {0};

    assert_int_equal(hk_fail(&err, HK_EINVAL, "weight %d, want >= %d", 0, 1), -HK_EINVAL);
    assert_int_equal(err.code, HK_EINVAL);
    assert_string_equal(err.text, "weight 0, want >= 1");
}

static void test_wrap_puts_context_in_front(void **state)
{
    struct hk_err err = {0};
    int rc = hk_fail(&err, HK_ENOTFOUND, "no such queue");

    rc = hk_wrap(&err, rc, "job '%s'", "j1");
    rc = hk_wrap(&err, rc, "manifest");
    assert_int_equal(rc, -HK_ENOTFOUND);
    assert_int_equal(err.code, HK_ENOTFOUND);
    assert_string_equal(err.text, "manifest: job 'j1': no such queue");
}

static void test_wrap_of_a_silent_failure(void **state)
{
    struct hk_err err = {0};

    assert_int_equal(hk_wrap(&err, -HK_EIO, "store"), -HK_EIO);
    assert_int_equal(err.code, HK_EIO);
    assert_string_equal(err.text, "store");
}

static void test_null_err_is_fine(void **state)
{
    assert_int_equal(hk_fail(NULL, HK_EGONE, "x"), -HK_EGONE);
    assert_int_equal(hk_wrap(NULL, -HK_EGONE, "x"), -HK_EGONE);
}

static void test_arguments_may_point_into_the_text(void **state)
{
    struct hk_err err = {0};

    hk_err_set(&err, HK_EIO, "disk full");
    hk_err_set(&err, HK_EBUSY, "%s, then %s", err.text, err.text);
    assert_string_equal(err.text, "disk full, then disk full");
    hk_wrap(&err, -HK_EBUSY, "%.4s", err.text);
    assert_string_equal(err.text, "disk: disk full, then disk full");
}

static void test_long_text_is_cut(void **state)
{
    struct hk_err err = {0};
    char words[2 * sizeof(err.text)];

    memset(words, 'w', sizeof(words) - 1);
    words[sizeof(words) - 1] = '\0';
    hk_err_set(&err, HK_EINVAL, "%s", words);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    hk_wrap(&err, -HK_EINVAL, "job");
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    assert_memory_equal(err.text, "job: www", 8);
    hk_wrap(&err, -HK_EINVAL, "%s", words);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    assert_memory_equal(err.text, "wwwwwwww", 8);
}

static const struct {
    int code;
    const char *reason;
    int http;
} codes[] = {
    {HK_OK, "", 200},
    {HK_EINVAL, "Invalid", 422},
    {HK_ENOTFOUND, "NotFound", 404},
    {HK_EEXIST, "AlreadyExists", 409},
    {HK_ECONFLICT, "Conflict", 409},
    {HK_EGONE, "Expired", 410},
    {HK_ETIMEOUT, "Timeout", 504},
    {HK_EIO, "InternalError", 500},
    {HK_ELIMIT, "RequestEntityTooLarge", 413},
    {HK_EDENIED, "Forbidden", 403},
    {HK_EBUSY, "TooManyRequests", 429},
    {HK_EUNSUP, "MethodNotAllowed", 405},
    {HK_EFULL, "InsufficientStorage", 507},
    {HK_NCODES, "InternalError", 500}, /* not one of our codes */
    {INT32_MAX, "InternalError", 500},
};

static void test_codes_mean_what_kubernetes_says(void **state)
{
    for (size_t i = 0; i < HK_LEN(codes); i++) {
        assert_string_equal(hk_code_reason(codes[i].code), codes[i].reason);
        assert_string_equal(hk_code_reason(-codes[i].code), codes[i].reason);
        assert_int_equal(hk_code_http(codes[i].code), codes[i].http);
        assert_int_equal(hk_code_http(-codes[i].code), codes[i].http);
    }
    assert_int_equal(hk_code_http(INT32_MIN), 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fail_sets_code_and_text),
        cmocka_unit_test(test_wrap_puts_context_in_front),
        cmocka_unit_test(test_wrap_of_a_silent_failure),
        cmocka_unit_test(test_null_err_is_fine),
        cmocka_unit_test(test_arguments_may_point_into_the_text),
        cmocka_unit_test(test_long_text_is_cut),
        cmocka_unit_test(test_codes_mean_what_kubernetes_says),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
