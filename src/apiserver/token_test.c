// SPDX-License-Identifier: Apache-2.0
// Service account tokens: signing, reading, and refused tokens.
#include "apiserver/token.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define KEY HK_STR("0123456789abcdef")

static const struct rest_token plain = {
    .ns = {"team", 4},
    .account = {"builder", 7},
    .account_uid = {"u-1", 3},
    .issued_s = 1000,
    .expires_s = 4600,
};

static void sign(const struct rest_token *t, struct hk_buf *out)
{
    token_sign(KEY, t, out);
}

static void test_a_token_names_its_account(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct rest_token bound = plain, back;

    bound.bound_kind = HK_STR("pod");
    bound.bound_name = HK_STR("p");
    bound.bound_uid = HK_STR("u-2");
    sign(&bound, &text);
    assert_true(token_verify(KEY, hk_buf_str(&text), 1000, &mem, &back));
    assert_true(hk_str_is(back.ns, "team"));
    assert_true(hk_str_is(back.account, "builder"));
    assert_true(hk_str_is(back.account_uid, "u-1"));
    assert_true(hk_str_is(back.bound_kind, "pod"));
    assert_true(hk_str_is(back.bound_name, "p"));
    assert_true(hk_str_is(back.bound_uid, "u-2"));
    assert_int_equal(back.expires_s, 4600);
}

static void test_time_ends_it(void **state)
{
    static const struct {
        int64_t now_s;
        bool good;
    } cases[] = {{1000, true}, {4599, true}, {4600, false}, {999999, false}};
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    sign(&plain, &text);
    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
        struct rest_token back;
        assert_int_equal(token_verify(KEY, hk_buf_str(&text), cases[i].now_s, &mem, &back),
                         cases[i].good);
    }
}

static void test_every_changed_byte_is_noticed(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    sign(&plain, &text);
    for (size_t i = 0; i < text.len; i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
        struct rest_token back;
        const char was = text.data[i];
        /* the last character has two unused bits */
        if (i + 1 == text.len) {
            break;
        }
        text.data[i] = was == 'A' ? 'B' : 'A';
        assert_false(token_verify(KEY, hk_buf_str(&text), 1000, &mem, &back));
        text.data[i] = was;
    }
}

static void test_invalid_tokens_are_refused(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf foreign = {0}, elsewhere = {0};
    static const char *const cases[] = {"", ".", "..", "a.b.c", "secret"};
    struct json audience = json_make_array();
    struct rest_token t = plain, back;

    token_sign(HK_STR("another key"), &plain, &foreign);
    assert_false(token_verify(KEY, hk_buf_str(&foreign), 1000, &mem, &back));
    json_push(&audience, &mem, json_make_str(HK_STR("vault")));
    t.audiences = &audience;
    sign(&t, &elsewhere);
    assert_false(token_verify(KEY, hk_buf_str(&elsewhere), 1000, &mem, &back));
    for (size_t i = 0; i < HK_LEN(cases); i++) {
        assert_false(token_verify(KEY, hk_str(cases[i]), 1000, &mem, &back));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_token_names_its_account),
        cmocka_unit_test(test_time_ends_it),
        cmocka_unit_test(test_every_changed_byte_is_noticed),
        cmocka_unit_test(test_invalid_tokens_are_refused),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
