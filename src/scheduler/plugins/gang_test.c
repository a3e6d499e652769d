// SPDX-License-Identifier: Apache-2.0
// gang: validity, readiness, order and the victims it spares.
#include "scheduler/plugins/rig_test.h"
#include "scheduler/stmt.h"

extern const struct plugin plugin_gang;

static void tasks(struct rig *r, const char *job, const char *role, const char *req,
                  enum task_status status, unsigned n)
{
    for (unsigned k = 0; k < n; k++) {
        char name[64];
        snprintf(name, sizeof(name), "%s%s%s%d%u", job, role ? role : "", req ? req : "be", status,
                 k);
        rig_task(r, job, name, .role = role, .req = req, .status = status,
                 .node = status == TASK_PENDING || status == TASK_SUCCEEDED ? NULL : "n");
    }
}

static struct role_min role(struct rig *r, const char *name, int32_t min)
{
    return (struct role_min){hk_intern(&r->m.str, hk_str(name)), min};
}

static void spares_jobs_down_to_their_minimum(void **state)
{
    RIG(r);
    task_id t[5], other;

    rig_node(&r, "n", "cpu=10 pods=20");
    rig_queue(&r, "q");
    rig_job(&r, "a", "q", .min = 3);
    rig_job(&r, "b", "q", .min = 0);
    for (unsigned k = 0; k < 5; k++) {
        const char name[] = {'t', (char)('1' + k), '\0'};
        t[k] = rig_task(&r, "a", name, .req = "cpu=1", .status = TASK_RUNNING, .node = "n");
    }
    other = rig_task(&r, "b", "u1", .req = "cpu=1", .status = TASK_RUNNING, .node = "n");
    rig_open(&r, "gang", "");

    RIG_VICTIMS(v, t[0], t[1], other, t[2], t[3], t[4]);
    assert_int_equal(plugin_gang.preemptable(&r.ssn, rig_self(&r), t[0], &v), PERMIT);
    assert_string_equal(rig_names(&r, &v), "t1 t2 u1");

    v.nout = 0; /* counters start from zero in each call */
    assert_int_equal(plugin_gang.reclaimable(&r.ssn, rig_self(&r), t[0], &v), PERMIT);
    assert_string_equal(rig_names(&r, &v), "t1 t2 u1");

    v.nout = 0;
    assert_int_equal(
        plugin_gang.evictable(&r.ssn, rig_self(&r), EVICT_GANG_PREEMPT, NO_JOB, NO_HYPER, &v),
        PERMIT);
    assert_int_equal(v.nout, 6);
}

static void orphans_are_no_victims(void **state)
{
    RIG(r);

    rig_node(&r, "n", "cpu=10 pods=20");
    const task_id t =
        rig_task(&r, NULL, "lone", .req = "cpu=1", .status = TASK_RUNNING, .node = "n");
    rig_open(&r, "gang", "");

    RIG_VICTIMS(v, t);
    assert_int_equal(plugin_gang.preemptable(&r.ssn, rig_self(&r), t, &v), PERMIT);
    assert_int_equal(v.nout, 0);
}

static void a_job_short_of_a_role_is_not_valid(void **state)
{
    RIG(r);
    const struct role_min roles[] = {role(&r, "ps", 1), role(&r, "worker", 2)};

    rig_queue(&r, "q");
    const job_id j = rig_job(&r, "j", "q", .min = 3, .roles = roles, .nrole = 2);
    tasks(&r, "j", "worker", "cpu=1", TASK_PENDING, 3);
    rig_open(&r, "gang", "");
    assert_string_equal(plugin_gang.job_valid(&r.ssn, rig_self(&r), j),
                        "Not enough valid pods of each task for gang-scheduling");
}

static void role_minima_above_the_job_minimum_are_ignored(void **state)
{
    RIG(r);
    const struct role_min roles[] = {role(&r, "ps", 1), role(&r, "worker", 2)};

    rig_node(&r, "n", "cpu=10 pods=20");
    rig_queue(&r, "q");
    const job_id j = rig_job(&r, "j", "q", .min = 2, .roles = roles, .nrole = 2);
    tasks(&r, "j", "worker", "cpu=1", TASK_RUNNING, 2);
    rig_open(&r, "gang", "");
    assert_null(plugin_gang.job_valid(&r.ssn, rig_self(&r), j));
    assert_true(plugin_gang.job_ready(&r.ssn, rig_self(&r), j));
}

static void too_few_valid_tasks_are_counted(void **state)
{
    RIG(r);

    rig_queue(&r, "q");
    const job_id j = rig_job(&r, "j", "q", .min = 3);
    tasks(&r, "j", NULL, "cpu=1", TASK_PENDING, 2);
    rig_open(&r, "gang", "");
    assert_string_equal(plugin_gang.job_valid(&r.ssn, rig_self(&r), j),
                        "Not enough valid tasks for gang-scheduling, valid: 2, min: 3");
}

/* Waiting best-effort tasks make a job ready, yet it starves. */
static void counts_decide_ready_pipelined_and_starving(void **state)
{
    static const struct {
        int32_t min;
        unsigned running, pending, pending_be;
        bool ready, starving;
        enum vote pipelined;
    } cases[] = {
        {3, 1, 0, 2, true, true, PERMIT},
        {3, 3, 1, 0, true, false, PERMIT},
        {3, 2, 1, 0, false, true, REJECT},
    };

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        RIG(r);

        rig_node(&r, "n", "cpu=10 pods=20");
        rig_queue(&r, "q");
        const job_id j = rig_job(&r, "j", "q", .min = cases[k].min);
        tasks(&r, "j", NULL, "cpu=1", TASK_RUNNING, cases[k].running);
        tasks(&r, "j", NULL, "cpu=1", TASK_PENDING, cases[k].pending);
        tasks(&r, "j", NULL, NULL, TASK_PENDING, cases[k].pending_be);
        rig_open(&r, "gang", "");
        assert_int_equal(plugin_gang.job_ready(&r.ssn, rig_self(&r), j), cases[k].ready);
        assert_int_equal(plugin_gang.job_starving(&r.ssn, rig_self(&r), j), cases[k].starving);
        assert_int_equal(plugin_gang.job_pipelined(&r.ssn, rig_self(&r), j), cases[k].pipelined);
    }
}

static void unready_jobs_go_first(void **state)
{
    RIG(r);

    rig_node(&r, "n", "cpu=10 pods=20");
    rig_queue(&r, "q");
    const job_id ready = rig_job(&r, "a", "q", .min = 1), waits = rig_job(&r, "b", "q", .min = 1);
    tasks(&r, "a", NULL, "cpu=1", TASK_RUNNING, 1);
    tasks(&r, "b", NULL, "cpu=1", TASK_PENDING, 1);
    rig_open(&r, "gang", "");
    assert_true(plugin_gang.job_order(&r.ssn, rig_self(&r), waits, ready) < 0);
    assert_true(plugin_gang.job_order(&r.ssn, rig_self(&r), ready, waits) > 0);
    assert_int_equal(plugin_gang.job_order(&r.ssn, rig_self(&r), ready, ready), 0);
}

static void sub_groups_must_be_there_and_ready(void **state)
{
    RIG(r);
    const uint32_t key = hk_intern(&r.m.str, HK_STR("group"));
    const struct label g1 = {key, hk_intern(&r.m.str, HK_STR("1"))};
    const struct label g2 = {key, hk_intern(&r.m.str, HK_STR("2"))};
    const struct policy_desc policy = {
        .name = HK_STR("p"), .size = 2, .min_groups = 2, .keys = &key, .nkey = 1};

    rig_node(&r, "n", "cpu=10 pods=20");
    rig_queue(&r, "q");
    const job_id j = rig_job(&r, "j", "q", .min = 1, .policies = &policy, .npolicy = 1);
    rig_task(&r, "j", "a1", .req = "cpu=1", .status = TASK_RUNNING, .node = "n", .labels = &g1,
             .nlabel = 1);
    rig_task(&r, "j", "a2", .req = "cpu=1", .status = TASK_RUNNING, .node = "n", .labels = &g1,
             .nlabel = 1);
    rig_open(&r, "gang", "");
    assert_string_equal(plugin_gang.job_valid(&r.ssn, rig_self(&r), j),
                        "Not enough valid subGroups of each task for gang-scheduling");

    rig_close(&r);
    rig_task(&r, "j", "b1", .req = "cpu=1", .status = TASK_RUNNING, .node = "n", .labels = &g2,
             .nlabel = 1);
    const task_id last = rig_task(&r, "j", "b2", .req = "cpu=1", .labels = &g2, .nlabel = 1);
    rig_open(&r, "gang", "");
    assert_null(plugin_gang.job_valid(&r.ssn, rig_self(&r), j));
    assert_false(plugin_gang.job_ready(&r.ssn, rig_self(&r), j));

    assert_true(stmt_allocate(&r.ssn, last, model_node_find(&r.m, HK_STR("n"))));
    assert_true(plugin_gang.job_ready(&r.ssn, rig_self(&r), j));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spares_jobs_down_to_their_minimum),
        cmocka_unit_test(orphans_are_no_victims),
        cmocka_unit_test(a_job_short_of_a_role_is_not_valid),
        cmocka_unit_test(role_minima_above_the_job_minimum_are_ignored),
        cmocka_unit_test(too_few_valid_tasks_are_counted),
        cmocka_unit_test(counts_decide_ready_pipelined_and_starving),
        cmocka_unit_test(unready_jobs_go_first),
        cmocka_unit_test(sub_groups_must_be_there_and_ready),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
