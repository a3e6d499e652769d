// SPDX-License-Identifier: Apache-2.0
// idsort: order, stability, and a single pass over sorted input.

#include "scheduler/actions/idsort.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Compares ids by their tens only, so that equal ids show whether the sort is stable. */
static bool tens(void *ctx, uint32_t a, uint32_t b)
{
    ++*(uint32_t *)ctx;
    return a / 10 < b / 10;
}

static void assert_sorted(const uint32_t *at, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        assert_true(at[i - 1] / 10 <= at[i] / 10);
    }
}

static void test_small(void **state)
{
    struct hk_arena mem = {0};
    uint32_t calls = 0;
    uint32_t at[] = {31, 12, 30, 11, 10, 20, 13};
    const uint32_t want[] = {12, 11, 10, 13, 20, 31, 30};

    idsort(at, HK_LEN(at), tens, &calls, &mem);
    assert_memory_equal(at, want, sizeof(want));
    idsort(at, 0, tens, &calls, &mem);
    hk_arena_fini(&mem);
}

static void test_random_is_sorted_and_stable(void **state)
{
    struct hk_arena mem = {0};
    struct hk_rand rnd;
    uint32_t at[500], seen[200] = {0}, calls = 0;

    hk_rand_seed(&rnd, 7);
    for (uint32_t i = 0; i < HK_LEN(at); i++) {
        const uint32_t key = hk_rand_below(&rnd, 200);
        at[i] = key * 10 + HK_MIN(seen[key], 9);
        seen[key]++;
    }
    idsort(at, HK_LEN(at), tens, &calls, &mem);
    assert_sorted(at, HK_LEN(at));
    for (uint32_t i = 1; i < HK_LEN(at); i++) {
        assert_true(at[i - 1] / 10 != at[i] / 10 || at[i - 1] % 10 <= at[i] % 10);
    }
    hk_arena_fini(&mem);
}

static void test_ordered_input_costs_one_pass(void **state)
{
    struct hk_arena mem = {0};
    uint32_t up[1000], down[1000], calls = 0;

    for (uint32_t i = 0; i < 1000; i++) {
        up[i] = i * 10;
        down[i] = (999 - i) * 10;
    }
    idsort(up, 1000, tens, &calls, &mem);
    assert_int_equal(calls, 999);
    calls = 0;
    idsort(down, 1000, tens, &calls, &mem);
    assert_int_equal(calls, 1000);
    assert_memory_equal(up, down, sizeof(up));
    hk_arena_fini(&mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_random_is_sorted_and_stable),
        cmocka_unit_test(test_ordered_input_costs_one_pass),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
