// SPDX-License-Identifier: Apache-2.0
// Tests of the expansion of $(NAME) in commands and values.
#include "agent/pod/env.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_names_in_parentheses_are_replaced(void **state)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"", ""},
        {"plain", "plain"},
        {"$(A)", "1"},
        {"x$(A)y$(B)z", "x1ytwoz"},
        {"$(EMPTY)", ""},
        {"$(NONE)", "$(NONE)"},
        {"$$(A)", "$(A)"},
        {"$$$(A)", "$1"},
        {"$$$$(A)", "$$(A)"},
        {"$A", "$A"},
        {"$", "$"},
        {"a$", "a$"},
        {"$$", "$"},
        {"$(A", "$(A"},
        {"$()", "$()"},
        {"$(A)$(", "1$("},
        {"$( A )", "$( A )"},
        {"$($(A))", "$($(A))"},
        {"${A}", "${A}"},
    };
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    HK_AUTO(env_fini) struct env e = {0};

    hk_vec_push(&e.vars, (struct env_var){HK_STR("A"), HK_STR("1")});
    hk_vec_push(&e.vars, (struct env_var){HK_STR("B"), HK_STR("two")});
    hk_vec_push(&e.vars, (struct env_var){HK_STR("EMPTY"), HK_STR("")});
    for (size_t i = 0; i < HK_LEN(cases); i++) {
        assert_string_equal(env_expand(&e, hk_str(cases[i].in), &a).s, cases[i].out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_in_parentheses_are_replaced),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
