// SPDX-License-Identifier: Apache-2.0
// Histograms and the text of metrics.
#include "base/prom.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void bounds_grow_by_one_factor(void **state)
{
    struct hk_hist h;

    hk_hist_init(&h, 1, 8, 4);
    assert_int_equal(h.nbound, 4);
    for (uint32_t k = 0; k < 4; k++) {
        assert_float_equal(h.bounds[k], (double)(1u << k), 1e-6);
    }
}

static void a_value_is_in_the_first_bucket_that_holds_it(void **state)
{
    static const struct {
        double v;
        uint32_t bucket;
    } cases[] = {{-1, 0}, {0, 0}, {1, 0}, {1.5, 1}, {2, 1}, {4, 2}, {4.1, 3}, {8.5, 4}, {1e9, 4}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hk_hist h;

        hk_hist_init(&h, 1, 8, 4);
        hk_hist_add(&h, cases[i].v);
        assert_int_equal(h.n[cases[i].bucket], 1);
        assert_int_equal(hk_hist_count(&h), 1);
        assert_true(h.sum == cases[i].v);
    }
}

static void bounds_may_be_given(void **state)
{
    static const double bounds[] = {0.005, 1, 60};
    struct hk_hist h;

    hk_hist_init_bounds(&h, bounds, HK_LEN(bounds));
    hk_hist_add(&h, 0.005);
    hk_hist_add(&h, 0.5);
    hk_hist_add(&h, 61);
    assert_int_equal(h.nbound, 3);
    assert_int_equal(h.n[0], 1);
    assert_int_equal(h.n[1], 1);
    assert_int_equal(h.n[2], 0);
    assert_int_equal(h.n[3], 1);
}

static void numbers_are_short_and_exact(void **state)
{
    static const struct {
        double v;
        const char *want;
    } cases[] = {{0, "0"},        {3, "3"},       {0.1, "0.1"},
                 {1e21, "1e+21"}, {-2.5, "-2.5"}, {1.0 / 3, "0.3333333333333333"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

        hk_prom_number(&out, cases[i].v);
        assert_string_equal(out.data, cases[i].want);
    }
}

static void labels_are_quoted(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    hk_prom_label(&out, "{", "q", HK_STR("a\"b\\c\nd"));
    assert_string_equal(out.data, "{q=\"a\\\"b\\\\c\\nd\"");
}

static void a_histogram_is_cumulative(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct hk_hist h;

    hk_hist_init(&h, 1, 4, 3);
    hk_hist_add(&h, 0.5);
    hk_hist_add(&h, 3);
    hk_hist_add(&h, 100);
    hk_prom_head(&out, "x", "histogram", "Some.");
    hk_prom_hist(&out, "x", "a=\"b\"", &h);
    hk_prom_hist(&out, "y", "", &h);
    assert_string_equal(out.data, "# HELP x Some.\n"
                                  "# TYPE x histogram\n"
                                  "x_bucket{a=\"b\",le=\"1\"} 1\n"
                                  "x_bucket{a=\"b\",le=\"2\"} 1\n"
                                  "x_bucket{a=\"b\",le=\"4\"} 2\n"
                                  "x_bucket{a=\"b\",le=\"+Inf\"} 3\n"
                                  "x_sum{a=\"b\"} 103.5\n"
                                  "x_count{a=\"b\"} 3\n"
                                  "y_bucket{le=\"1\"} 1\n"
                                  "y_bucket{le=\"2\"} 1\n"
                                  "y_bucket{le=\"4\"} 2\n"
                                  "y_bucket{le=\"+Inf\"} 3\n"
                                  "y_sum 103.5\n"
                                  "y_count 3\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_grow_by_one_factor),
        cmocka_unit_test(a_value_is_in_the_first_bucket_that_holds_it),
        cmocka_unit_test(bounds_may_be_given),
        cmocka_unit_test(numbers_are_short_and_exact),
        cmocka_unit_test(labels_are_quoted),
        cmocka_unit_test(a_histogram_is_cumulative),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
