// SPDX-License-Identifier: Apache-2.0
// drf: dominant shares as tasks are added and removed, the resulting order, and preemption.
#include "scheduler/plugins/drf.h"
#include "scheduler/stmt.h"

#include "scheduler/plugins/rig_test.h"

extern const struct plugin plugin_drf;

/* Adds n running tasks to the job and stores them in ret. */
static void run(struct rig *r, const char *job, const char *req, task_id *ret, unsigned n)
{
    for (unsigned k = 0; k < n; k++) {
        char name[32];
        snprintf(name, sizeof(name), "%s%u", job, k + 1);
        ret[k] = rig_task(r, job, name, .req = req, .status = TASK_RUNNING, .node = "n");
    }
}

static double share(struct rig *r, job_id j)
{
    return drf_job_share(rig_self(r), &r->m, j);
}

static void the_dominant_resource_is_the_share(void **state)
{
    RIG(r);
    task_id t[3];

    rig_node(&r, "n", "cpu=9 mem=18 pods=100");
    rig_queue(&r, "q");
    const job_id a = rig_job(&r, "a", "q"), b = rig_job(&r, "b", "q"), c = rig_job(&r, "c", "q");
    run(&r, "a", "cpu=1 mem=4", t, 3);
    run(&r, "b", "cpu=3 mem=1", t, 1);
    rig_open(&r, "drf", "");

    assert_true(share(&r, a) == 12.0 / 18);
    assert_true(share(&r, b) == 3.0 / 9);
    assert_true(share(&r, c) == 0);
    assert_true(plugin_drf.job_order(&r.ssn, rig_self(&r), b, a) < 0);
    assert_true(plugin_drf.job_order(&r.ssn, rig_self(&r), a, c) > 0);
    assert_int_equal(plugin_drf.job_order(&r.ssn, rig_self(&r), a, a), 0);
}

static void pods_are_a_resource_too(void **state)
{
    RIG(r);
    task_id t[3];

    rig_node(&r, "n", "cpu=100 mem=100 pods=6");
    rig_queue(&r, "q");
    const job_id a = rig_job(&r, "a", "q");
    run(&r, "a", "cpu=1", t, 3);
    rig_open(&r, "drf", "");
    assert_true(share(&r, a) == 0.5);
}

static void shares_follow_the_journal(void **state)
{
    RIG(r);
    task_id ran[2];

    const node_id n = rig_node(&r, "n", "cpu=10 pods=100");
    rig_queue(&r, "q");
    const job_id a = rig_job(&r, "a", "q"), b = rig_job(&r, "b", "q");
    run(&r, "b", "cpu=2", ran, 2);
    const task_id t1 = rig_task(&r, "a", "x1", .req = "cpu=1");
    const task_id t2 = rig_task(&r, "a", "x2", .req = "cpu=2");
    rig_open(&r, "drf", "");

    const stmt_mark_t mark = stmt_mark(&r.ssn);
    assert_true(share(&r, a) == 0);
    assert_true(stmt_allocate(&r.ssn, t1, n));
    assert_true(share(&r, a) == 0.1);
    assert_true(stmt_pipeline(&r.ssn, t2, n, false)); /* counts, although it holds nothing yet */
    assert_true(share(&r, a) == 0.3);
    stmt_evict(&r.ssn, ran[0], "test", a);
    assert_true(share(&r, b) == 0.2);
    stmt_rewind(&r.ssn, mark);
    assert_true(share(&r, a) == 0);
    assert_true(share(&r, b) == 0.4);
}

/* Of five tasks with a tenth each, a preemptor that will hold three tenths gets two. A candidate
 * that is spared counts as evicted for those after it. */
static void preemption_stops_where_shares_meet(void **state)
{
    RIG(r);
    task_id mine[2], t[5];

    rig_node(&r, "n", "cpu=10 pods=100");
    rig_queue(&r, "q");
    rig_job(&r, "p", "q");
    rig_job(&r, "v", "q");
    run(&r, "p", "cpu=1", mine, 2);
    run(&r, "v", "cpu=1", t, 5);
    const task_id preemptor = rig_task(&r, "p", "new", .req = "cpu=1");
    rig_open(&r, "drf", "");

    RIG_VICTIMS(v, t[0], t[1], t[2], t[3]);
    assert_int_equal(plugin_drf.preemptable(&r.ssn, rig_self(&r), preemptor, &v), PERMIT);
    assert_string_equal(rig_names(&r, &v), "v1 v2");

    const task_id lone = rig_task(&r, NULL, "lone", .req = "cpu=1");
    v.nout = 0;
    assert_int_equal(plugin_drf.preemptable(&r.ssn, rig_self(&r), lone, &v), PERMIT);
    assert_int_equal(v.nout, 0);
}

static void without_hierarchy_queues_are_not_its_business(void **state)
{
    RIG(r);
    task_id t[1];

    rig_node(&r, "n", "cpu=10 pods=100");
    const queue_id a = rig_queue(&r, "a", .path = "root/a"),
                   b = rig_queue(&r, "b", .path = "root/b");
    rig_job(&r, "ja", "a");
    rig_job(&r, "jb", "b");
    run(&r, "ja", "cpu=5", t, 1);
    rig_open(&r, "drf", "");

    RIG_VICTIMS(v, t[0]);
    assert_int_equal(plugin_drf.queue_order(&r.ssn, rig_self(&r), a, b), 0);
    assert_int_equal(plugin_drf.reclaimable(&r.ssn, rig_self(&r), t[0], &v), ABSTAIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_dominant_resource_is_the_share),
        cmocka_unit_test(pods_are_a_resource_too),
        cmocka_unit_test(shares_follow_the_journal),
        cmocka_unit_test(preemption_stops_where_shares_meet),
        cmocka_unit_test(without_hierarchy_queues_are_not_its_business),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
