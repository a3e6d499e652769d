// SPDX-License-Identifier: Apache-2.0
// The id map agrees with a plain array after many changes; the string table gives dense, stable
// ids.

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

/* Keys whose home is the last slot of the smallest table: their run wraps around to the front. */
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
    assert_int_equal(m.cap, 512); /* changes alone never grow it */
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
    const uint32_t x = hk_intern(&t, (struct hk_str){"xyz", 1}); /* no NUL after it */

    assert_int_not_equal(a, b);
    assert_int_not_equal(a, x);
    assert_int_equal(hk_intern_str(&t, b).n, 3);
    assert_string_equal(hk_intern_str(&t, x).s, "x");
}

static void test_last_drop_takes_the_string(void **state)
{
    HK_AUTO(hk_intern_fini) struct hk_intern t = {0};
    const uint32_t a = hk_intern_hold(&t, HK_STR("a")), b = hk_intern_hold(&t, HK_STR("b"));

    assert_int_equal(hk_intern_hold(&t, HK_STR("a")), a);
    hk_intern_keep(&t, a);
    assert_int_equal(hk_intern_refs(&t, a), 3);
    hk_intern_drop(&t, a);
    hk_intern_drop(&t, a);
    assert_string_equal(hk_intern_str(&t, a).s, "a");
    hk_intern_drop(&t, a);
    assert_int_equal(hk_intern_find(&t, HK_STR("a")), HK_NONE);
    assert_int_equal(hk_intern_find(&t, HK_STR("b")), b);
    assert_int_equal(t.live, 1);
    assert_int_equal(hk_intern_hold(&t, HK_STR("c")), a); /* ids are reused */
    assert_string_equal(hk_intern_str(&t, a).s, "c");
}

static void test_vocabulary_stays(void **state)
{
    HK_AUTO(hk_intern_fini) struct hk_intern t = {0};
    const uint32_t a = hk_intern_hold(&t, HK_STR("a"));

    assert_int_equal(hk_intern(&t, HK_STR("a")), a);
    hk_intern_drop(&t, a);
    hk_intern_drop(&t, a);
    assert_string_equal(hk_intern_str(&t, a).s, "a");
    assert_int_equal(hk_intern_hold(&t, HK_STR("a")), a);
    assert_int_equal(hk_intern_refs(&t, a), UINT32_MAX);
    hk_intern_keep(&t, 0); /* nor does the empty string need references */
    hk_intern_drop(&t, 0);
}

/* Strings come and go in random order; the table must agree with a plain array. */
static void test_interned_churn_agrees_with_an_array(void **state)
{
    enum { NAMES = 500, STEPS = 100000 };
    HK_AUTO(hk_intern_fini) struct hk_intern t = {0};
    static uint32_t refs[NAMES], ids[NAMES];
    uint64_t rand = 1;
    uint32_t live = 0;

    for (uint32_t step = 0; step < STEPS; step++) {
        char name[16];
        rand = hk_mix(rand + 1);
        const uint32_t k = (uint32_t)(rand % NAMES);
        snprintf(name, sizeof(name), "name-%u", k);
        if (rand >> 63) {
            const uint32_t id = hk_intern_hold(&t, hk_str(name));
            assert_true(refs[k] == 0 || ids[k] == id);
            live += refs[k]++ == 0;
            ids[k] = id;
        } else if (refs[k] > 0) {
            assert_string_equal(hk_intern_str(&t, ids[k]).s, name);
            hk_intern_drop(&t, ids[k]);
            live -= --refs[k] == 0;
        }
        assert_int_equal(hk_intern_find(&t, hk_str(name)), refs[k] > 0 ? ids[k] : HK_NONE);
        assert_int_equal(t.live, live);
    }
    for (uint32_t k = 0; k < NAMES; k++) {
        for (; refs[k] > 0; refs[k]--) {
            hk_intern_drop(&t, ids[k]);
        }
    }
    assert_int_equal(t.live, 0);
    assert_in_range(t.len, 1, NAMES + 1);
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
        cmocka_unit_test(test_last_drop_takes_the_string),
        cmocka_unit_test(test_vocabulary_stays),
        cmocka_unit_test(test_interned_churn_agrees_with_an_array),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
