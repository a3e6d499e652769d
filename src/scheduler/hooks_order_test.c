// SPDX-License-Identifier: Apache-2.0
// Orders: the first plugin with an opinion decides, then the defaults.
#include "scheduler/hooks_rig_test.h"

static void first_non_zero_comparison_wins(void **state)
{
    struct world *w = *state;
    const job_id a = {0}, b = {1};
    struct fake *f = arrange(w, HOOK_JOB_ORDER, "123");

    w->jobs[0].creation_ns = 9;
    f[1].order = 5;
    f[2].order = -1;
    assert_int_equal(hooks_job_order(&w->ssn, a, b), 5);
    assert_int_equal(hooks_job_order(&w->ssn, b, a), -5);
    assert_int_equal(f[2].calls, 0);
    assert_int_equal(hooks_job_order_plugins(&w->ssn, a, b), 5);
}

static void equal_jobs_go_by_age_then_by_key(void **state)
{
    struct world *w = *state;
    const job_id a = {0}, b = {1};

    arrange(w, HOOK_JOB_ORDER, "1");
    w->jobs[0] =
        (struct job){.used = true, .ns = text(w, "team"), .name = text(w, "x"), .creation_ns = 2};
    w->jobs[1] =
        (struct job){.used = true, .ns = text(w, "team"), .name = text(w, "y"), .creation_ns = 1};
    assert_true(hooks_job_order(&w->ssn, a, b) > 0);
    assert_int_equal(hooks_job_order_plugins(&w->ssn, a, b), 0);
    w->jobs[1].creation_ns = 2;
    assert_true(hooks_job_order(&w->ssn, a, b) < 0);
    /* "team-a/y" comes before "team/x": keys are compared as whole strings. */
    w->jobs[1].ns = text(w, "team-a");
    assert_true(hooks_job_order(&w->ssn, a, b) > 0);
    assert_true(hooks_job_order(&w->ssn, b, a) < 0);
    w->jobs[1].ns = text(w, "teams");
    assert_true(hooks_job_order(&w->ssn, a, b) < 0);
    w->jobs[1].ns = text(w, "beta");
    assert_true(hooks_job_order(&w->ssn, a, b) > 0);
    assert_int_equal(hooks_job_order(&w->ssn, a, a), 0);
}

static void equal_queues_go_by_age_then_by_name(void **state)
{
    struct world *w = *state;
    const queue_id a = {0}, b = {1};

    w->queues[0] = (struct queue){.used = true, .name = text(w, "a"), .creation_ns = 2};
    w->queues[1] = (struct queue){.used = true, .name = text(w, "b"), .creation_ns = 1};
    assert_true(hooks_queue_order(&w->ssn, a, b) > 0);
    w->queues[1].creation_ns = 2;
    assert_true(hooks_queue_order(&w->ssn, a, b) < 0);
    arrange(w, HOOK_QUEUE_ORDER, "1")->order = 1;
    assert_true(hooks_queue_order(&w->ssn, a, b) > 0);
}

static void victim_queues_reverse_the_queue_order_unless_a_plugin_decides(void **state)
{
    struct world *w = *state;
    const queue_id a = {0}, b = {1}, p = {2};

    w->queues[0] = (struct queue){.used = true, .name = text(w, "a")};
    w->queues[1] = (struct queue){.used = true, .name = text(w, "b")};
    assert_true(hooks_victim_queue_order(&w->ssn, a, b, p) > 0);
    struct fake *f = arrange(w, HOOK_VICTIM_QUEUE_ORDER, "1");
    f->order = -1;
    assert_true(hooks_victim_queue_order(&w->ssn, a, b, p) < 0);
    assert_int_equal(f->seen, p.i);
}

static void equal_tasks_go_by_index_then_age_then_uid(void **state)
{
    static const struct {
        uint32_t index[2];
        int64_t creation[2];
        const char *uid[2];
        int want;
    } cases[] = {
        {{1, 2}, {9, 1}, {"u", "u"}, -1},
        {{2, 2}, {9, 1}, {"u", "u"}, 1},
        {{ID_NONE, 2}, {1, 9}, {"u", "u"}, -1}, /* one without a number: age */
        {{ID_NONE, ID_NONE}, {3, 3}, {"v", "u"}, 1},
        {{0, 0}, {3, 3}, {"u", "v"}, -1},
        {{0, 0}, {3, 3}, {"", ""}, -1}, /* the name decides last */
    };
    struct world *w = *state;
    const task_id a = {0}, b = {1};

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        for (int i = 0; i < 2; i++) {
            w->tasks[i].index = cases[k].index[i];
            w->tasks[i].creation_ns = cases[k].creation[i];
            w->tasks[i].uid = text(w, cases[k].uid[i]);
            w->tasks[i].name = text(w, i ? "z" : "a");
        }
        const int got = hooks_task_order(&w->ssn, a, b);
        if ((got > 0) - (got < 0) != cases[k].want) {
            fail_msg("case %zu: got %d, want %d", k, got, cases[k].want);
        }
        assert_int_equal(hooks_task_order(&w->ssn, b, a) < 0, got > 0);
    }
}

static void equal_sub_jobs_go_by_match_index_then_id(void **state)
{
    struct world *w = *state;
    const sub_id a = {0}, b = {1};

    w->subs[0] = (struct sub_job){.match_index = 2, .id = text(w, "a")};
    w->subs[1] = (struct sub_job){.match_index = 1, .id = text(w, "b")};
    assert_true(hooks_sub_order(&w->ssn, a, b) > 0);
    w->subs[1].match_index = 2;
    assert_true(hooks_sub_order(&w->ssn, a, b) < 0);
    arrange(w, HOOK_SUB_ORDER, "1")->order = 1;
    assert_true(hooks_sub_order(&w->ssn, a, b) > 0);
}

/* ---- victim order ---- */

/* Tasks 0 and 1 in jobs 0 and 1 of queues 0 and 1; task 2, the preemptor, in job 2 of queue 2. */
static void three_jobs(struct world *w)
{
    for (uint32_t i = 0; i < 3; i++) {
        w->queues[i] =
            (struct queue){.used = true, .name = text(w, (const char *[]){"qa", "qb", "qc"}[i])};
        w->jobs[i] =
            (struct job){.used = true, .has_pg = true, .queue = {i}, .name = i, .creation_ns = i};
        w->tasks[i] = (struct task){.used = true, .job = {i}, .index = ID_NONE, .creation_ns = i};
    }
}

static void victims_of_one_job_go_in_reverse_task_order(void **state)
{
    struct world *w = *state;
    const task_id a = {0}, b = {1}, p = {2};

    three_jobs(w);
    w->tasks[1].job = w->tasks[0].job;
    assert_true(hooks_victim_before(&w->ssn, b, a, p)); /* the younger */
    assert_false(hooks_victim_before(&w->ssn, a, b, p));
    w->tasks[0].index = 3;
    w->tasks[1].index = 2;
    assert_true(hooks_victim_before(&w->ssn, a, b, p)); /* the higher number */
    arrange(w, HOOK_TASK_ORDER, "1")->order = -1;
    assert_true(hooks_victim_before(&w->ssn, b, a, p));
}

static void orphans_go_first(void **state)
{
    struct world *w = *state;
    const task_id a = {0}, b = {1}, p = {2};

    three_jobs(w);
    w->jobs[0].has_pg = false;
    assert_true(hooks_victim_before(&w->ssn, a, b, p));
    assert_false(hooks_victim_before(&w->ssn, b, a, p));
    w->jobs[0].has_pg = true;
    w->jobs[1].queue = NO_QUEUE;
    assert_true(hooks_victim_before(&w->ssn, b, a, p));
    w->tasks[0].job = NO_JOB;
    assert_true(hooks_victim_before(&w->ssn, b, a, p)); /* two orphans: the younger */
    assert_false(hooks_victim_before(&w->ssn, a, b, p));
}

static void victims_of_two_queues_go_by_queue_alone(void **state)
{
    struct world *w = *state;
    const task_id a = {0}, b = {1}, p = {2};

    three_jobs(w);
    arrange(w, HOOK_JOB_ORDER, "1")->order = 1; /* would put a first */
    assert_true(hooks_victim_before(&w->ssn, b, a, p));
    assert_false(hooks_victim_before(&w->ssn, a, b, p));
}

static void without_the_preemptors_job_queues_do_not_count(void **state)
{
    struct world *w = *state;
    const task_id a = {0}, b = {1}, p = {2};

    three_jobs(w);
    arrange(w, HOOK_JOB_ORDER, "1")->order = 1;
    w->jobs[2].has_pg = false;
    assert_true(hooks_victim_before(&w->ssn, a, b, p));
    assert_true(hooks_victim_before(&w->ssn, a, b, NO_TASK));
    assert_false(hooks_victim_before(&w->ssn, b, a, NO_TASK));
}

/* The plugins rank the jobs equal, so the task of lower priority goes although its job is older. */
static void task_order_decides_between_equal_jobs_of_a_queue_not_their_age(void **state)
{
    struct world *w = *state;
    const task_id high = {0}, low = {1}, p = {2};

    three_jobs(w);
    w->jobs[0].queue = w->jobs[1].queue = w->jobs[2].queue;
    w->jobs[0].creation_ns = 50;
    arrange(w, HOOK_TASK_ORDER, "1")->order = -1; /* high before low */
    assert_true(hooks_victim_before(&w->ssn, low, high, p));
    assert_false(hooks_victim_before(&w->ssn, high, low, p));
}

static void no_two_victims_come_before_each_other(void **state)
{
    struct world *w = *state;

    three_jobs(w);
    for (uint32_t i = 0; i < NTASK; i++) {
        w->tasks[i].job = (job_id){i % 3};
        w->tasks[i].name = text(w, (const char *[]){"a", "b", "c", "d", "e", "f", "g", "h"}[i]);
        w->tasks[i].creation_ns = 0;
    }
    for (uint32_t i = 0; i < NTASK; i++) {
        for (uint32_t k = 0; k < NTASK; k++) {
            const task_id a = {i}, b = {k}, p = {2};
            const bool ab = hooks_victim_before(&w->ssn, a, b, p);
            const bool ba = hooks_victim_before(&w->ssn, b, a, p);
            assert_int_equal(ab + ba, i != k);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(first_non_zero_comparison_wins),
        TEST(equal_jobs_go_by_age_then_by_key),
        TEST(equal_queues_go_by_age_then_by_name),
        TEST(victim_queues_reverse_the_queue_order_unless_a_plugin_decides),
        TEST(equal_tasks_go_by_index_then_age_then_uid),
        TEST(equal_sub_jobs_go_by_match_index_then_id),
        TEST(victims_of_one_job_go_in_reverse_task_order),
        TEST(orphans_go_first),
        TEST(victims_of_two_queues_go_by_queue_alone),
        TEST(without_the_preemptors_job_queues_do_not_count),
        TEST(task_order_decides_between_equal_jobs_of_a_queue_not_their_age),
        TEST(no_two_victims_come_before_each_other),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
