// SPDX-License-Identifier: Apache-2.0
// The id map agrees with a plain array under churn; the string table gives dense, lasting ids.

#include "base/map.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_empty_map(void **state)
{
    struct hk_map m = {0};

    assert_int_equal(hk_map_get(&m, 0), HK_NONE);
    assert_false(hk_map_del(&m, 0));
    hk_map_clear(&m);
    hk_map_fini(&m);
    hk_map_fini(&m);
}

static void test_put_replaces(void **state)
{
    HK_AUTO(hk_map_fini) struct hk_map m = {0};

    hk_map_put(&m, 5, 1);
    hk_map_put(&m, 5, 2);
    assert_int_equal(m.len, 1);
    assert_int_equal(hk_map_get(&m, 5), 2);
    hk_map_put(&m, 0, 3);
    hk_map_put(&m, UINT64_MAX - 1, 4);
    assert_int_equal(hk_map_get(&m, 0), 3);
    assert_int_equal(hk_map_get(&m, UINT64_MAX - 1), 4);
    assert_int_equal(hk_map_get(&m, 6), HK_NONE);
}

static void test_reserved_key_is_absent(void **state)
{
    HK_AUTO(hk_map_fini) struct hk_map m = {0};

    hk_map_put(&m, 1, 1);
    assert_int_equal(hk_map_get(&m, UINT64_MAX), HK_NONE);
    assert_false(hk_map_del(&m, UINT64_MAX));
    assert_int_equal(m.len, 1);
}

static void test_clear_keeps_the_room(void **state)
{
    HK_AUTO(hk_map_fini) struct hk_map m = {0};

    for (uint64_t k = 0; k < 1000; k++) {
        hk_map_put(&m, k, (uint32_t)k);
    }
    hk_map_clear(&m);
    assert_int_equal(m.len, 0);
    assert_int_equal(hk_map_get(&m, 7), HK_NONE);
    const uint64_t calls = hk_alloc_calls();
    for (uint64_t k = 0; k < 1000; k++) {
        hk_map_put(&m, k, (uint32_t)k);
    }
    assert_int_equal(hk_alloc_calls() - calls, 0);
}

/* Keys whose home is the last slot of the smallest table: their run wraps round to the front. */
static void test_deletion_in_a_run_that_wraps(void **state)
{
    enum { RUN = 6 };
    uint64_t keys[RUN];
    uint32_t n = 0;

    for (uint64_t k = 0; n < RUN; k++) {
        if (((uint32_t)hk_mix(k) & 15) == 15) {
            keys[n++] = k;
        }
    }
    for (uint32_t gone = 0; gone < RUN; gone++) {
        HK_AUTO(hk_map_fini) struct hk_map m = {0};
        for (uint32_t i = 0; i < RUN; i++) {
            hk_map_put(&m, keys[i], i);
        }
        assert_int_equal(m.cap, 16);
        assert_true(hk_map_del(&m, keys[gone]));
        assert_false(hk_map_del(&m, keys[gone]));
        for (uint32_t i = 0; i < RUN; i++) {
            assert_int_equal(hk_map_get(&m, keys[i]), i == gone ? HK_NONE : i);
        }
    }
}

static void test_churn_agrees_with_an_array(void **state)
{
    enum { KEYS = 500 };
    HK_AUTO(hk_map_fini) struct hk_map m = {0};
    uint32_t model[KEYS], live = 0;
    struct hk_rand r;

    memset(model, 0xff, sizeof(model)); /* HK_NONE */
    hk_rand_seed(&r, 42);
    for (uint32_t step = 0; step < 200000; step++) {
        const uint32_t k = hk_rand_below(&r, KEYS);
        if (hk_rand_below(&r, 2) == 0) {
            live += model[k] == HK_NONE;
            model[k] = step;
            hk_map_put(&m, k, step);
        } else {
            assert_int_equal(hk_map_del(&m, k), model[k] != HK_NONE);
            live -= model[k] != HK_NONE;
            model[k] = HK_NONE;
        }
        const uint32_t probe = hk_rand_below(&r, KEYS);
        assert_int_equal(hk_map_get(&m, probe), model[probe]);
        assert_int_equal(m.len, live);
    }
    assert_int_equal(m.cap, 512); /* churn alone never grows it */
}

static void test_empty_string_is_id_zero(void **state)
{
    HK_AUTO(hk_intern_fini) struct hk_intern t = {0};

    assert_int_equal(hk_intern_find(&t, HK_STR("")), 0);
    assert_int_equal(hk_intern_find(&t, (struct hk_str){0}), 0);
    assert_int_equal(hk_intern_find(&t, HK_STR("a")), HK_NONE);
    assert_string_equal(hk_intern_str(&t, 0).s, "");
    assert_int_equal(hk_intern(&t, HK_STR("")), 0);
    assert_int_equal(hk_intern(&t, HK_STR("a")), 1);
    assert_int_equal(hk_intern(&t, HK_STR("")), 0);
    assert_string_equal(hk_intern_str(&t, 0).s, "");
}

static void test_ids_are_dense_and_last(void **state)
{
    HK_AUTO(hk_intern_fini) struct hk_intern t = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf name = {0};
    const char *first = hk_intern_str(&t, hk_intern(&t, HK_STR("node-0"))).s;

    for (uint32_t i = 0; i < 100000; i++) {
        hk_buf_clear(&name);
        hk_buf_addf(&name, "node-%u", i);
        assert_int_equal(hk_intern(&t, hk_buf_str(&name)), i + 1);
    }
    for (uint32_t i = 0; i < 100000; i++) {
        hk_buf_clear(&name);
        hk_buf_addf(&name, "node-%u", i);
        assert_int_equal(hk_intern(&t, hk_buf_str(&name)), i + 1);
        assert_int_equal(hk_intern_find(&t, hk_buf_str(&name)), i + 1);
        assert_string_equal(hk_intern_str(&t, i + 1).s, name.data);
    }
    assert_int_equal(t.len, 100001);
    assert_int_equal(hk_intern_find(&t, HK_STR("node-100000")), HK_NONE);
    assert_ptr_equal(hk_intern_str(&t, 1).s, first); /* addresses are stable */
}

static void test_text_may_hold_any_byte(void **state)
{
    HK_AUTO(hk_intern_fini) struct hk_intern t = {0};
    const uint32_t a = hk_intern(&t, (struct hk_str){"x\0a", 3});
    const uint32_t b = hk_intern(&t, (struct hk_str){"x\0b", 3});
    const uint32_t x = hk_intern(&t, (struct hk_str){"xyz", 1}); /* no NUL behind */

    assert_int_not_equal(a, b);
    assert_int_not_equal(a, x);
    assert_int_equal(hk_intern_str(&t, b).n, 3);
    assert_string_equal(hk_intern_str(&t, x).s, "x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_map),
        cmocka_unit_test(test_put_replaces),
        cmocka_unit_test(test_reserved_key_is_absent),
        cmocka_unit_test(test_clear_keeps_the_room),
        cmocka_unit_test(test_deletion_in_a_run_that_wraps),
        cmocka_unit_test(test_churn_agrees_with_an_array),
        cmocka_unit_test(test_empty_string_is_id_zero),
        cmocka_unit_test(test_ids_are_dense_and_last),
        cmocka_unit_test(test_text_may_hold_any_byte),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
