// SPDX-License-Identifier: Apache-2.0
// When a CertificateSigningRequest is deleted, and how long a certificate lasts.
#include "apiserver/signer.c" // NOLINT(bugprone-suspicious-include)

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define AT "2026-01-01T00:00:00Z"

/* One second before and after 1 h and 24 h. */
#define IN_59_MIN INT64_C(3599)
#define IN_61_MIN INT64_C(3601)
#define IN_23_H INT64_C(86399)
#define IN_25_H INT64_C(86401)

#define WITH(type)                                                                                 \
    "{\"conditions\":[{\"type\":\"" type "\",\"status\":\"True\",\"lastUpdateTime\":\"" AT "\"}]}"
#define ISSUED                                                                                     \
    "{\"certificate\":\"Zm9v\",\"conditions\":[{\"type\":\"Approved\",\"status\":\"True\","        \
    "\"lastUpdateTime\":\"" AT "\"}]}"

static void test_requests_are_deleted_when_nobody_needs_them(void **state)
{
    static const struct {
        const char *status;
        int64_t after_s;
        bool want;
    } cases[] = {
        {"{}", IN_23_H, false},
        {"{}", IN_25_H, true},
        {WITH("Denied"), IN_59_MIN, false},
        {WITH("Denied"), IN_61_MIN, true},
        {WITH("Failed"), IN_59_MIN, false},
        {WITH("Failed"), IN_61_MIN, true},
        {WITH("Approved"), IN_25_H, false}, /* its signer may still come */
        {ISSUED, IN_59_MIN, false},
        {ISSUED, IN_61_MIN, true},
        {WITH("Other"), IN_25_H, false},
        {"{\"conditions\":[{\"type\":\"Denied\",\"lastUpdateTime\":7}]}", IN_25_H, false},
    };
    struct hk_clock_manual clock;
    int64_t at_ns;

    assert_int_equal(time_parse(HK_STR(AT), &at_ns, NULL), 0);
    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
        hk_clock_manual_init(&clock, at_ns + cases[i].after_s * SECOND_NS);
        const struct signer s = {.o = {.clock = &clock.clock}};
        const char *text =
            hk_arena_printf(&mem, "{\"metadata\":{\"creationTimestamp\":\"" AT "\"},\"status\":%s}",
                            cases[i].status);
        struct json obj;
        assert_int_equal(json_parse(hk_str(text), 0, &mem, &obj, NULL), 0);
        if (is_stale(&s, &obj) != cases[i].want) {
            fail_msg("%s after %lld s: expected %d", cases[i].status, (long long)cases[i].after_s,
                     cases[i].want);
        }
    }
}

static void test_the_lifetime_is_the_one_asked_for_within_limits(void **state)
{
    static const struct {
        const char *spec;
        int64_t want_s;
    } cases[] = {
        {"{}", MAX_TTL_S},
        {"{\"expirationSeconds\":3600}", 3600},
        {"{\"expirationSeconds\":1}", MIN_TTL_S},
        {"{\"expirationSeconds\":2147483647}", MAX_TTL_S},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
        struct json obj;
        const char *text = hk_arena_printf(&mem, "{\"spec\":%s}", cases[i].spec);
        assert_int_equal(json_parse(hk_str(text), 0, &mem, &obj, NULL), 0);
        assert_int_equal(lifetime_s(&obj), cases[i].want_s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_are_deleted_when_nobody_needs_them),
        cmocka_unit_test(test_the_lifetime_is_the_one_asked_for_within_limits),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("apiserver/signer", tests, NULL, NULL);
}
