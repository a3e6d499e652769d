// SPDX-License-Identifier: Apache-2.0
// Column widths that never shrink, truncated lines, and hashes of rows.
#include "cli/grid.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct term plain = {.columns = 80, .rows = 24};

static void two_columns(struct grid *g)
{
    grid_head(g, "NAME", false);
    grid_head(g, "N", true);
    grid_head(g, "WHY", false);
}

static void add(struct grid *g, const char *name, int n, const char *why)
{
    grid_add(g, hk_str(name));
    grid_addf(g, "%d", n);
    grid_add(g, hk_str(why));
}

static void test_columns_fit_what_is_in_them(void **state)
{
    HK_AUTO(grid_fini) struct grid g = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    two_columns(&g);
    add(&g, "a", 7, "");
    add(&g, "longer", 1000, "because");
    grid_write(&g, &plain, &out);
    assert_string_equal(out.data, "NAME       N  WHY\n"
                                  "a          7  -\n"
                                  "longer  1000  because\n");
}

static void test_widths_do_not_shrink(void **state)
{
    HK_AUTO(grid_fini) struct grid g = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    two_columns(&g);
    add(&g, "longer", 1, "x");
    grid_measure(&g);
    grid_clear(&g);
    add(&g, "a", 2, "y");
    grid_measure(&g);
    assert_int_equal(grid_rows(&g), 1);
    grid_write_row(&g, 0, &plain, &out);
    assert_string_equal(out.data, "a       2  y\n");
}

static void test_a_terminal_cuts_and_paints(void **state)
{
    HK_AUTO(grid_fini) struct grid g = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    const struct term narrow = {.is = true, .colour = true, .columns = 12, .rows = 24};

    two_columns(&g);
    add(&g, "a", 7, "because of it");
    g.cells[0].hue = TERM_BAD;
    grid_measure(&g);
    grid_write_row(&g, 0, &narrow, &out);
    assert_string_equal(out.data, "\033[31ma\033[0m     7  bec\n");
}

static void test_what_passes_is_no_news(void **state)
{
    HK_AUTO(grid_fini) struct grid g = {0};

    grid_head(&g, "NAME", false);
    grid_head(&g, "AGE", false);
    for (int i = 0; i < 2; i++) {
        grid_add(&g, HK_STR("a"));
        grid_addf(&g, "%ds", i);
        grid_passing(&g);
    }
    grid_add(&g, HK_STR("b"));
    grid_add(&g, HK_STR("0s"));
    grid_passing(&g);
    assert_int_equal(grid_row_hash(&g, 0), grid_row_hash(&g, 1));
    assert_int_not_equal(grid_row_hash(&g, 0), grid_row_hash(&g, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns_fit_what_is_in_them),
        cmocka_unit_test(test_widths_do_not_shrink),
        cmocka_unit_test(test_a_terminal_cuts_and_paints),
        cmocka_unit_test(test_what_passes_is_no_news),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
