// SPDX-License-Identifier: Apache-2.0
// The keyed work queue: when a key waits, rests, and returns, whatever its namespace and name are.
#include "controllers/workq.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Keys of objects have both parts; controllers also use keys with one of them, or none. */
static const struct {
    struct hk_str ns, name;
} keys[] = {
    {{"ns", 2}, {"name", 4}},
    {{"", 0}, {"name", 4}},
    {{"label", 5}, {"", 0}},
    {{"", 0}, {"", 0}},
};

struct fixture {
    struct hk_intern str;
    struct workq q;
};

static void open_queue(struct fixture *f)
{
    *f = (struct fixture){0};
    f->q.str = &f->str;
}

static void close_queue(struct fixture *f)
{
    workq_fini(&f->q);
    hk_intern_fini(&f->str);
}

/* Time passes; returns whether a key waits then, and begins its pass. */
static bool begin_pass_at(struct fixture *f, int64_t now_ns, uint32_t *ret)
{
    (void)workq_tick(&f->q, now_ns);
    *ret = workq_pop(&f->q);
    return *ret != HK_NONE;
}

static void a_key_that_was_added_waits_once(void **state)
{
    for (size_t i = 0; i < HK_LEN(keys); i++) {
        struct fixture f;
        uint32_t key;

        open_queue(&f);
        workq_add(&f.q, keys[i].ns, keys[i].name);
        workq_add(&f.q, keys[i].ns, keys[i].name);
        assert_true(begin_pass_at(&f, 1, &key));
        assert_int_equal(workq_pop(&f.q), HK_NONE);
        workq_done(&f.q, key);
        assert_true(workq_is_idle(&f.q));
        close_queue(&f);
    }
}

static void a_key_returns_at_its_time(void **state)
{
    for (size_t i = 0; i < HK_LEN(keys); i++) {
        struct fixture f;
        uint32_t key;

        open_queue(&f);
        workq_add_at(&f.q, keys[i].ns, keys[i].name, 100);
        assert_false(begin_pass_at(&f, 99, &key));
        assert_true(begin_pass_at(&f, 100, &key));
        workq_done(&f.q, key);
        assert_int_equal(workq_tick(&f.q, 101), INT64_MAX);
        close_queue(&f);
    }
}

static void a_failed_pass_is_repeated_after_a_pause(void **state)
{
    for (size_t i = 0; i < HK_LEN(keys); i++) {
        struct fixture f;
        uint32_t key;

        open_queue(&f);
        workq_add(&f.q, keys[i].ns, keys[i].name);
        assert_true(begin_pass_at(&f, 1, &key));
        workq_failed(&f.q, key, 1);
        const int64_t due_ns = workq_tick(&f.q, 2);
        assert_in_range(due_ns, 3, INT64_MAX - 1);
        assert_false(begin_pass_at(&f, due_ns - 1, &key));
        assert_true(begin_pass_at(&f, due_ns, &key));
        workq_done(&f.q, key);
        close_queue(&f);
    }
}

static void a_key_that_rests_returns_when_the_rest_is_over(void **state)
{
    for (size_t i = 0; i < HK_LEN(keys); i++) {
        struct fixture f;
        uint32_t key;

        open_queue(&f);
        workq_add(&f.q, keys[i].ns, keys[i].name);
        assert_true(begin_pass_at(&f, 1, &key));
        workq_rest(&f.q, key, 50);
        workq_done(&f.q, key);
        workq_add(&f.q, keys[i].ns, keys[i].name);
        assert_int_equal(f.q.nresting, 1);
        assert_false(begin_pass_at(&f, 49, &key));
        assert_true(begin_pass_at(&f, 50, &key));
        workq_done(&f.q, key);
        assert_true(workq_is_idle(&f.q));
        close_queue(&f);
    }
}

static void a_rest_that_nobody_waits_for_leaves_nothing(void **state)
{
    for (size_t i = 0; i < HK_LEN(keys); i++) {
        struct fixture f;
        uint32_t key;

        open_queue(&f);
        workq_add(&f.q, keys[i].ns, keys[i].name);
        assert_true(begin_pass_at(&f, 1, &key));
        workq_rest(&f.q, key, 50);
        workq_done(&f.q, key);
        assert_false(begin_pass_at(&f, 60, &key));
        assert_true(workq_is_idle(&f.q));
        close_queue(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_that_was_added_waits_once),
        cmocka_unit_test(a_key_returns_at_its_time),
        cmocka_unit_test(a_failed_pass_is_repeated_after_a_pause),
        cmocka_unit_test(a_key_that_rests_returns_when_the_rest_is_over),
        cmocka_unit_test(a_rest_that_nobody_waits_for_leaves_nothing),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
