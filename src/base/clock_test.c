// SPDX-License-Identifier: Apache-2.0
// Clocks, and random numbers that are the same on every machine.

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_system_clock(void **state)
{
    struct hk_clock *c = hk_clock_system();
    const int64_t mono = c->mono_ns(c);

    assert_true(c->wall_ns(c) > INT64_C(1600000000) * 1000000000);
    assert_true(c->mono_ns(c) >= mono);
}

static void test_manual_clock_moves_when_told(void **state)
{
    struct hk_clock_manual c;

    hk_clock_manual_init(&c, 5);
    assert_int_equal(c.clock.wall_ns(&c.clock), 5);
    assert_int_equal(c.clock.mono_ns(&c.clock), 5);
    c.now_ns += 10;
    assert_int_equal(c.clock.wall_ns(&c.clock), 15);
    assert_int_equal(c.clock.mono_ns(&c.clock), 15);
}

static void test_seconds_of_strangers_can_be_added_to_any_time(void **state)
{
    const int64_t now_ns = INT64_C(1) << 62; /* later than any valid time */
    int64_t sum;

    assert_int_equal(hk_seconds_ns(90), INT64_C(90000000000));
    assert_int_equal(hk_seconds_ns(-1), -1000000000);
    assert_false(__builtin_add_overflow(now_ns, hk_seconds_ns(INT64_MAX), &sum));
    assert_true(sum > now_ns);
    assert_false(__builtin_add_overflow(-now_ns, hk_seconds_ns(INT64_MIN), &sum));
    assert_true(sum < -now_ns);
}

/* From an independent implementation of the two published algorithms. */
static void test_random_numbers_are_fixed(void **state)
{
    static const struct {
        uint64_t seed, want[4];
    } cases[] = {
        {0, {0x99ec5f36cb75f2b4u, 0xbf6e1f784956452au, 0x1a5f849d4933e6e0u, 0x6aa594f1262d2d2cu}},
        {42, {0x15780b2e0c2ec716u, 0x6104d9866d113a7eu, 0xae17533239e499a1u, 0xecb8ad4703b360a1u}},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct hk_rand r;
        hk_rand_seed(&r, cases[i].seed);
        for (size_t k = 0; k < 4; k++) {
            assert_int_equal(hk_rand_u64(&r), cases[i].want[k]);
        }
    }
}

static void test_below_is_fixed(void **state)
{
    static const uint32_t under_ten[] = {0, 3, 6, 9, 9, 7, 7, 8, 7, 5};
    static const uint32_t under_3_gi[] = {270141538, 1220780836, 2190573157, 2978644469};
    struct hk_rand r;

    hk_rand_seed(&r, 42);
    for (size_t i = 0; i < HK_LEN(under_ten); i++) {
        assert_int_equal(hk_rand_below(&r, 10), under_ten[i]);
    }
    hk_rand_seed(&r, 42);
    for (size_t i = 0; i < HK_LEN(under_3_gi); i++) {
        assert_int_equal(hk_rand_below(&r, 3u << 30), under_3_gi[i]);
    }
}

static void test_below_stays_below_and_reaches_all(void **state)
{
    uint32_t seen[7] = {0};
    struct hk_rand r;

    hk_rand_seed(&r, 1);
    for (int i = 0; i < 70000; i++) {
        const uint32_t x = hk_rand_below(&r, 7);
        assert_in_range(x, 0, 6);
        seen[x]++;
    }
    for (size_t i = 0; i < 7; i++) {
        assert_in_range(seen[i], 9500, 10500);
    }
    assert_int_equal(hk_rand_below(&r, 1), 0);
}

static void test_unit_is_fixed_and_in_range(void **state)
{
    struct hk_rand r;

    hk_rand_seed(&r, 42);
    assert_true(hk_rand_unit(&r) == 0.08386297105988216);
    assert_true(hk_rand_unit(&r) == 0.3789802506626686);
    for (int i = 0; i < 10000; i++) {
        const double x = hk_rand_unit(&r);
        assert_true(x >= 0.0 && x < 1.0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_system_clock),
        cmocka_unit_test(test_manual_clock_moves_when_told),
        cmocka_unit_test(test_seconds_of_strangers_can_be_added_to_any_time),
        cmocka_unit_test(test_random_numbers_are_fixed),
        cmocka_unit_test(test_below_is_fixed),
        cmocka_unit_test(test_below_stays_below_and_reaches_all),
        cmocka_unit_test(test_unit_is_fixed_and_in_range),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
