// SPDX-License-Identifier: Apache-2.0
// Plain text without a terminal, escape sequences with one.
#include "cli/term.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct term plain = {.columns = 80, .rows = 24};
static const struct term bright = {.is = true, .colour = true, .columns = 80, .rows = 24};

static void test_paint(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    term_paint(&plain, TERM_BAD, HK_STR("Failed"), &out);
    term_paint(&bright, TERM_PLAIN, HK_STR(" "), &out);
    term_paint(&bright, TERM_BAD, HK_STR("Failed"), &out);
    assert_string_equal(out.data, "Failed \033[31mFailed\033[0m");
}

static void test_bar(void **state)
{
    static const struct {
        int64_t done, of;
        uint32_t columns;
        const char *want;
    } cases[] = {
        {5, 10, 17, "[#####-----] 5/10"}, {0, 4, 11, "[-----] 0/4"},
        {4, 4, 11, "[#####] 4/4"},        {7, 4, 11, "[#####] 7/4"}, /* more than requested */
        {0, 0, 11, "[-----] 0/0"},        {1, 4, 10, "1/4"},         /* too narrow for a bar */
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
        term_bar(&plain, cases[i].done, cases[i].of, cases[i].columns, &out);
        assert_string_equal(out.data, cases[i].want);
    }
}

static void test_rewind(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    term_rewind(&plain, 3, &out);
    term_rewind(&bright, 0, &out);
    assert_int_equal(out.len, 0);
    term_rewind(&bright, 3, &out);
    assert_string_equal(out.data, "\033[3F\033[J");
}

static void test_hues(void **state)
{
    assert_int_equal(term_phase_hue(HK_STR("Running")), TERM_GOOD);
    assert_int_equal(term_phase_hue(HK_STR("Inqueue")), TERM_WAIT);
    assert_int_equal(term_phase_hue(HK_STR("Aborted")), TERM_BAD);
    assert_int_equal(term_phase_hue(HK_STR("Runnin")), TERM_PLAIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paint),
        cmocka_unit_test(test_bar),
        cmocka_unit_test(test_rewind),
        cmocka_unit_test(test_hues),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
