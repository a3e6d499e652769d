// SPDX-License-Identifier: Apache-2.0
// Tokens: the format of the file, and the user of each token.
#include "apiserver/auth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_tokens_name_users_and_groups(void **state)
{
    static const struct {
        const char *token, *user;
        uint32_t groups;
        bool admin;
    } cases[] = {
        {"s3cret", "admin", 2, true}, {"other", "bob", 1, false},  {"plain", "eve", 0, false},
        {"s3cre", NULL, 0, false},    {"s3crets", NULL, 0, false}, {"s3crets3cret", NULL, 0, false},
        {"", NULL, 0, false},
    };
    struct auth *a = NULL;
    struct hk_err err = {0};

    assert_int_equal(auth_parse(HK_STR("# comment\n"
                                       "s3cret,admin,1,\"system:masters,dev\"\n"
                                       "\n"
                                       "other , bob , 2 , dev\n"
                                       "plain,eve,3"),
                                &a, &err),
                     0);
    for (size_t k = 0; k < HK_LEN(cases); k++) {
        const struct auth_user u = auth_by_token(a, hk_str(cases[k].token));
        if (!cases[k].user) {
            assert_null(u.name);
            continue;
        }
        assert_string_equal(u.name, cases[k].user);
        assert_int_equal(u.ngroups, cases[k].groups);
        assert_int_equal(auth_is_admin(&u), cases[k].admin);
    }
    auth_free(a);
}

static void test_broken_lines_are_reported(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"token", "line 1: want token,user,uid and optionally \"group,group\""},
        {"a,b,c\n,b,c", "line 2: want token,user,uid and optionally \"group,group\""},
        {"a,b,c,\"d", "line 1: the groups have no closing quote"},
    };

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        struct auth *a = NULL;
        struct hk_err err = {0};
        assert_int_equal(auth_parse(hk_str(cases[k].text), &a, &err), -HK_EINVAL);
        assert_string_equal(err.text, cases[k].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens_name_users_and_groups),
        cmocka_unit_test(test_broken_lines_are_reported),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
