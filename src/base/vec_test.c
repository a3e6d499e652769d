// SPDX-License-Identifier: Apache-2.0
// Typed vectors grow by doubling and keep their elements.

#include "base/vec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_push_and_pop(void **state)
{
    HK_VEC(uint32_t) v = {0};

    for (uint32_t i = 0; i < 1000; i++) {
        hk_vec_push(&v, i * 3);
    }
    assert_int_equal(v.len, 1000);
    for (uint32_t i = 1000; i > 0; i--) {
        assert_int_equal(hk_vec_pop(&v), (i - 1) * 3);
    }
    hk_vec_fini(&v);
    assert_null(v.at);
    assert_int_equal(v.cap, 0);
}

static void test_growth_takes_few_calls(void **state)
{
    HK_VEC(uint64_t) v = {0};
    const uint64_t calls = hk_alloc_calls();

    for (uint64_t i = 0; i < 1u << 16; i++) {
        hk_vec_push(&v, i);
    }
    assert_true(hk_alloc_calls() - calls <= 14);
    hk_vec_clear(&v);
    assert_int_equal(v.len, 0);
    assert_int_equal(v.cap, 1u << 16);
    hk_vec_fini(&v);
}

static void test_reserve_gives_at_least_what_is_asked(void **state)
{
    HK_VEC(char) v = {0};

    hk_vec_reserve(&v, 1);
    assert_true(v.cap >= 1);
    hk_vec_reserve(&v, 1000);
    assert_true(v.cap >= 1000);
    const uint32_t cap = v.cap;
    hk_vec_reserve(&v, 10);
    assert_int_equal(v.cap, cap);
    assert_int_equal(v.len, 0);
    hk_vec_fini(&v);
}

static void test_structs_with_commas(void **state)
{
    struct pair {
        int a, b;
    };
    HK_VEC(struct pair) v = {0};

    hk_vec_push(&v, (struct pair){1, 2});
    hk_vec_push(&v, (struct pair){.a = 3, .b = 4});
    assert_int_equal(v.at[0].b, 2);
    assert_int_equal(v.at[1].a, 3);
    hk_vec_fini(&v);
}

static void test_swap_remove_fills_the_gap_with_the_last(void **state)
{
    HK_VEC(int) v = {0};

    for (int i = 0; i < 4; i++) {
        hk_vec_push(&v, i);
    }
    hk_vec_swap_remove(&v, 1);
    assert_int_equal(v.len, 3);
    assert_int_equal(v.at[1], 3);
    hk_vec_swap_remove(&v, 2);
    assert_int_equal(v.len, 2);
    assert_int_equal(v.at[0], 0);
    assert_int_equal(v.at[1], 3);
    hk_vec_fini(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_push_and_pop),
        cmocka_unit_test(test_growth_takes_few_calls),
        cmocka_unit_test(test_reserve_gives_at_least_what_is_asked),
        cmocka_unit_test(test_structs_with_commas),
        cmocka_unit_test(test_swap_remove_fills_the_gap_with_the_last),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
