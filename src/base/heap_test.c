// SPDX-License-Identifier: Apache-2.0
// The heap sorts, and with an order that changes or contradicts itself it gives the same results as
// Go's container/heap.

#include "base/heap.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static bool by_value(void *ctx, uint32_t a, uint32_t b)
{
    return a < b;
}

static bool by_key(void *ctx, uint32_t a, uint32_t b)
{
    const int *keys = ctx;

    return keys[a] < keys[b];
}

static void test_pops_in_order(void **state)
{
    HK_AUTO(hk_heap_fini) struct hk_heap h = {.less = by_value};
    struct hk_rand r;

    hk_rand_seed(&r, 7);
    for (int i = 0; i < 1000; i++) {
        hk_heap_push(&h, hk_rand_below(&r, 300));
    }
    uint32_t last = 0;
    for (int i = 0; i < 1000; i++) {
        const uint32_t x = hk_heap_pop(&h);
        assert_true(last <= x);
        last = x;
    }
    assert_int_equal(h.len, 0);
}

static void test_make_orders_what_was_filled_in(void **state)
{
    uint32_t room[64];
    struct hk_heap h = {.at = room, .cap = 64, .fixed = true, .less = by_value};

    for (uint32_t n = 0; n <= 64; n++) {
        for (h.len = 0; h.len < n; h.len++) {
            room[h.len] = (h.len * 37 + 11) % 64;
        }
        hk_heap_make(&h);
        for (uint32_t last = 0; h.len > 0;) {
            const uint32_t x = hk_heap_pop(&h);
            assert_true(last <= x);
            last = x;
        }
    }
    hk_heap_fini(&h); /* does not free borrowed memory */
    assert_null(h.at);
}

/* Layout of the array, by hand from the rules: push compares with the parent only, pop moves the
 * last element to the root, and of two equal children the left one wins. */
static void test_sift_rules(void **state)
{
    HK_AUTO(hk_heap_fini) struct hk_heap h = {.less = by_value};
    static const uint32_t pushed[] = {5, 2, 8, 1, 9, 3};
    static const uint32_t after_push[] = {1, 2, 3, 5, 9, 8};
    static const uint32_t after_pop[] = {2, 5, 3, 8, 9};

    for (size_t i = 0; i < HK_LEN(pushed); i++) {
        hk_heap_push(&h, pushed[i]);
    }
    assert_memory_equal(h.at, after_push, sizeof(after_push));
    assert_int_equal(hk_heap_pop(&h), 1);
    assert_memory_equal(h.at, after_pop, sizeof(after_pop));
}

/* Equal elements do not leave first in, first out, as in Volcano's queues. */
static void test_equal_elements_leave_as_in_go(void **state)
{
    int keys[6] = {0};
    HK_AUTO(hk_heap_fini) struct hk_heap h = {.less = by_key, .ctx = keys};
    static const uint32_t order[] = {0, 5, 4, 3, 2, 1};

    for (uint32_t i = 0; i < 6; i++) {
        hk_heap_push(&h, i);
    }
    for (size_t i = 0; i < HK_LEN(order); i++) {
        assert_int_equal(hk_heap_pop(&h), order[i]);
    }
}

/* A job's share grows while it is in the heap: the element stays until a sift passes. */
static void test_keys_may_change_inside(void **state)
{
    int keys[] = {1, 2, 3, 4};
    HK_AUTO(hk_heap_fini) struct hk_heap h = {.less = by_key, .ctx = keys};

    for (uint32_t i = 0; i < 4; i++) {
        hk_heap_push(&h, i);
    }
    keys[0] = 9;
    assert_int_equal(hk_heap_pop(&h), 0); /* still at the root */
    keys[3] = 0;
    assert_int_equal(hk_heap_pop(&h), 1); /* 3 is below and was not compared */
    assert_int_equal(hk_heap_pop(&h), 3);
    assert_int_equal(hk_heap_pop(&h), 2);
}

static bool always(void *ctx, uint32_t a, uint32_t b)
{
    return true;
}

/* less(a, b) and less(b, a) at once: only the rules decide. */
static void test_contradictory_order_follows_the_rules(void **state)
{
    HK_AUTO(hk_heap_fini) struct hk_heap h = {.less = always};
    static const uint32_t order[] = {6, 5, 1, 4, 2, 3, 0};

    for (uint32_t i = 0; i < 7; i++) {
        hk_heap_push(&h, i);
    }
    for (size_t i = 0; i < HK_LEN(order); i++) {
        assert_int_equal(hk_heap_pop(&h), order[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pops_in_order),
        cmocka_unit_test(test_make_orders_what_was_filled_in),
        cmocka_unit_test(test_sift_rules),
        cmocka_unit_test(test_equal_elements_leave_as_in_go),
        cmocka_unit_test(test_keys_may_change_inside),
        cmocka_unit_test(test_contradictory_order_follows_the_rules),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
