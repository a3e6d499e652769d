// SPDX-License-Identifier: Apache-2.0
// priority: orders, and which tasks may preempt which.
#include "scheduler/plugins/rig_test.h"

extern const struct plugin plugin_priority;

struct world {
    struct rig r;
    job_id high, mid, low;
    task_id high_task, mid_task, low_task, low_old;
};

static void world_init(struct world *w)
{
    struct rig *r = &w->r;

    rig_init(r);
    rig_node(r, "n", "cpu=10 pods=20");
    rig_queue(r, "q");
    w->high = rig_job(r, "high", "q", .priority = 1000);
    w->mid = rig_job(r, "mid", "q", .priority = 500);
    w->low = rig_job(r, "low", "q", .priority = 100);
    w->high_task = rig_task(r, "high", "h1", .req = "cpu=1", .status = TASK_RUNNING, .node = "n");
    w->mid_task = rig_task(r, "mid", "m1", .req = "cpu=1", .priority = 5);
    w->low_task = rig_task(r, "low", "l1", .req = "cpu=1", .status = TASK_RUNNING, .node = "n");
    w->low_old = rig_task(r, "mid", "m2", .req = "cpu=1", .status = TASK_RUNNING, .node = "n",
                          .priority = 1);
    rig_open(r, "priority", "");
}

static void world_fini(struct world *w)
{
    rig_fini(&w->r);
}

static void higher_priority_goes_first(void **state)
{
    HK_AUTO(world_fini) struct world w;

    world_init(&w);
    assert_true(plugin_priority.job_order(&w.r.ssn, NULL, w.high, w.low) < 0);
    assert_true(plugin_priority.job_order(&w.r.ssn, NULL, w.low, w.mid) > 0);
    assert_int_equal(plugin_priority.job_order(&w.r.ssn, NULL, w.mid, w.mid), 0);
    assert_true(plugin_priority.task_order(&w.r.ssn, NULL, w.mid_task, w.low_old) < 0);
}

/* Between jobs the job priorities decide, inside one job the task priorities. */
static void only_lower_priority_is_preempted(void **state)
{
    HK_AUTO(world_fini) struct world w;

    world_init(&w);
    RIG_VICTIMS(v, w.high_task, w.low_task, w.low_old);
    assert_int_equal(plugin_priority.preemptable(&w.r.ssn, NULL, w.mid_task, &v), PERMIT);
    assert_string_equal(rig_names(&w.r, &v), "l1 m2");
    assert_null(plugin_priority.reclaimable);
}

static void gang_reclaim_takes_all_gang_preempt_only_lower(void **state)
{
    HK_AUTO(world_fini) struct world w;

    world_init(&w);
    RIG_VICTIMS(v, w.high_task, w.low_task);
    assert_int_equal(
        plugin_priority.evictable(&w.r.ssn, NULL, EVICT_GANG_RECLAIM, w.mid, NO_HYPER, &v), PERMIT);
    assert_string_equal(rig_names(&w.r, &v), "h1 l1");
    v.nout = 0;
    assert_int_equal(
        plugin_priority.evictable(&w.r.ssn, NULL, EVICT_GANG_PREEMPT, w.mid, NO_HYPER, &v), PERMIT);
    assert_string_equal(rig_names(&w.r, &v), "l1");
}

static void starving_wants_every_task(void **state)
{
    HK_AUTO(world_fini) struct world w;

    world_init(&w);
    assert_true(plugin_priority.job_starving(&w.r.ssn, NULL, w.mid));
    assert_false(plugin_priority.job_starving(&w.r.ssn, NULL, w.low));
}

static void a_preemptor_without_a_job_takes_nothing(void **state)
{
    HK_AUTO(world_fini) struct world w;

    world_init(&w);
    const task_id lone = rig_task(&w.r, NULL, "lone", .req = "cpu=1");
    RIG_VICTIMS(v, w.low_task);
    assert_int_equal(plugin_priority.preemptable(&w.r.ssn, NULL, lone, &v), PERMIT);
    assert_int_equal(v.nout, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(higher_priority_goes_first),
        cmocka_unit_test(only_lower_priority_is_preempted),
        cmocka_unit_test(gang_reclaim_takes_all_gang_preempt_only_lower),
        cmocka_unit_test(starving_wants_every_task),
        cmocka_unit_test(a_preemptor_without_a_job_takes_nothing),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
