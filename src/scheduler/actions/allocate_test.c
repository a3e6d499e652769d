// SPDX-License-Identifier: Apache-2.0
// enqueue, allocate and backfill: whole cycles over small clusters.
#include "scheduler/actions/cycle_test.h"

#define CONF(actions, more)                                                                        \
    "actions: \"" actions "\"\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n"           \
    "  - name: predicates\n" more

static struct role_min role(struct rig *r, const char *name, int32_t min)
{
    return (struct role_min){hk_intern(&r->m.str, hk_str(name)), min};
}

static void other_roles_go_on_after_one_failed(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=2 pods=10");
    rig_queue(&r, "q");
    rig_job(&r, "j", "q", .min = 1, .phase = PG_INQUEUE);
    rig_task(&r, "j", "p1", .req = "cpu=1 gpu=1", .role = "master");
    const task_id same = rig_task(&r, "j", "p2", .req = "cpu=1 gpu=1", .role = "master");
    rig_task(&r, "j", "p3", .req = "cpu=1", .role = "worker");
    cycle_run(&r, CONF("allocate", ""));
    assert_bound(&r, "p3@n1");
    /* The skipped task reports the reasons of the first task of its role. */
    assert_non_null(r.ssn.fit[same.i]);
    assert_int_equal(r.ssn.fit[same.i]->at[0].why.code, REASON_INSUFFICIENT);
    cycle_end(&r);
}

static void failed_role_stops_a_job_that_needs_it(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=1 gpu=1 pods=10");
    rig_node(&r, "n2", "cpu=2 pods=10");
    rig_queue(&r, "q");
    const struct role_min roles[] = {role(&r, "master", 2), role(&r, "worker", 0)};
    rig_job(&r, "j", "q", .min = 2, .phase = PG_INQUEUE, .roles = roles, .nrole = 2);
    rig_task(&r, "j", "p0", .req = "cpu=1 gpu=1", .role = "master");
    rig_task(&r, "j", "p1", .req = "cpu=1 gpu=1", .role = "master");
    rig_task(&r, "j", "p2", .req = "cpu=1", .role = "worker");
    rig_task(&r, "j", "p3", .req = "cpu=1", .role = "worker");
    cycle_run(&r, CONF("allocate", ""));
    assert_bound(&r, "");
    assert_string_equal(cycle_in(&r, TASK_PENDING), "p0@- p1@- p2@- p3@-");
    cycle_end(&r);
}

static void met_role_does_not_stop_the_job(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=1 gpu=1 pods=10");
    rig_node(&r, "n2", "cpu=1 pods=10");
    rig_queue(&r, "q");
    const struct role_min roles[] = {role(&r, "master", 1), role(&r, "worker", 1)};
    rig_job(&r, "j", "q", .min = 2, .phase = PG_INQUEUE, .roles = roles, .nrole = 2);
    rig_task(&r, "j", "p0", .req = "cpu=1 gpu=1", .role = "master");
    rig_task(&r, "j", "p1", .req = "cpu=1 gpu=1", .role = "master");
    rig_task(&r, "j", "p2", .req = "cpu=1", .role = "worker");
    rig_task(&r, "j", "p3", .req = "cpu=1", .role = "worker");
    cycle_run(&r, CONF("allocate", ""));
    assert_bound(&r, "p0@n1 p2@n2");
    cycle_end(&r);
}

static void gang_is_bound_whole_or_not_at_all(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=2 pods=10");
    rig_queue(&r, "q");
    rig_job(&r, "j", "q", .min = 3, .phase = PG_INQUEUE);
    rig_task(&r, "j", "p1", .req = "cpu=1");
    rig_task(&r, "j", "p2", .req = "cpu=1");
    rig_task(&r, "j", "p3", .req = "cpu=1");
    cycle_run(&r, CONF("allocate", ""));
    assert_bound(&r, "");
    cycle_end(&r);
    rig_node(&r, "n2", "cpu=1 pods=10");
    cycle_run(&r, CONF("allocate", ""));
    assert_bound(&r, "p1@n1 p2@n1 p3@n2");
    cycle_end(&r);
}

/* Each job is ready with its first task; the others follow one by one while the queues
 * alternate. */
static void queues_alternate_once_jobs_are_ready(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=4 mem=4 pods=10");
    rig_queue(&r, "a");
    rig_queue(&r, "b");
    rig_job(&r, "ja", "a", .min = 1, .phase = PG_INQUEUE);
    rig_job(&r, "jb", "b", .min = 1, .phase = PG_INQUEUE);
    for (unsigned k = 0; k < 4; k++) {
        char name[16];
        snprintf(name, sizeof(name), "x-a-%u", k);
        rig_task(&r, "ja", name, .req = "cpu=1 mem=1");
        snprintf(name, sizeof(name), "x-b-%u", k);
        rig_task(&r, "jb", name, .req = "cpu=1 mem=1");
    }
    cycle_run(&r, CONF("allocate", "  - name: proportion\n"));
    assert_bound(&r, "x-a-0@n1 x-a-1@n1 x-b-0@n1 x-b-1@n1");
    assert_string_equal(r.ssn.job_msg[0], "queue 'a' is at its limit");
    cycle_end(&r);
}

static void room_being_freed_is_held_not_bound(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=2 pods=10");
    rig_queue(&r, "q");
    rig_job(&r, "old", "q", .min = 0, .phase = PG_RUNNING);
    rig_task(&r, "old", "o1", .req = "cpu=1", .status = TASK_RELEASING, .node = "n1");
    rig_job(&r, "j", "q", .min = 2, .phase = PG_INQUEUE);
    rig_task(&r, "j", "p1", .req = "cpu=1");
    rig_task(&r, "j", "p2", .req = "cpu=1");
    cycle_run(&r, CONF("allocate", ""));
    assert_bound(&r, "");
    assert_string_equal(cycle_in(&r, TASK_ALLOCATED), "p1@n1");
    assert_pipelined(&r, "p2@n1");
    cycle_end(&r);
    assert_string_equal(cycle_in(&r, TASK_PENDING), "p1@- p2@-");
}

static void groups_wait_for_admission_when_enqueue_is_configured(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=2 mem=2 pods=10");
    rig_queue(&r, "q", .capability = "cpu=1 mem=1");
    const job_id big = rig_job(&r, "big", "q", .min = 1, .phase = PG_PENDING, .minres = "cpu=8");
    const job_id small =
        rig_job(&r, "small", "q", .min = 1, .phase = PG_PENDING, .minres = "cpu=1");
    const job_id bare = rig_job(&r, "bare", "q", .min = 1, .phase = PG_PENDING);
    rig_task(&r, "small", "p1", .req = "cpu=1");
    cycle_run(&r, CONF("enqueue, allocate", "  - name: proportion\n"));
    assert_int_equal(model_job(&r.m, big)->phase, PG_PENDING);
    assert_int_equal(model_job(&r.m, small)->phase, PG_INQUEUE);
    assert_int_equal(model_job(&r.m, bare)->phase, PG_INQUEUE);
    assert_bound(&r, "p1@n1");
    cycle_end(&r);
}

static void backfill_binds_best_effort_and_completes_gangs(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=1 pods=2");
    rig_queue(&r, "q");
    rig_job(&r, "j", "q", .min = 2, .phase = PG_INQUEUE);
    rig_task(&r, "j", "be1", .req = "");
    rig_task(&r, "j", "be2", .req = "");
    rig_task(&r, "j", "be3", .req = "");
    cycle_run(&r, CONF("allocate, backfill", ""));
    assert_bound(&r, "be1@n1 be2@n1");
    cycle_end(&r);
}

static void gated_tasks_wait(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=4 pods=10");
    rig_queue(&r, "q");
    rig_job(&r, "j", "q", .min = 1, .phase = PG_INQUEUE);
    rig_task(&r, "j", "p1", .req = "cpu=1", .flags = TASK_GATED);
    rig_task(&r, "j", "p2", .req = "cpu=1", .flags = TASK_GATED | TASK_GATE_OURS_ONLY);
    rig_task(&r, "j", "p3", .req = "cpu=1");
    rig_task(&r, "j", "p4", .flags = TASK_GATED);
    cycle_run(&r, CONF("allocate, backfill", ""));
    assert_bound(&r, "p3@n1");
    cycle_end(&r);
}

/* Four sub-groups of one (two needed) and two of two (one needed) on four nodes: those needed for
 * the minimums are placed first. */
static void required_sub_groups_go_first(void **state)
{
    RIG(r);
    rig_queue(&r, "q");
    for (unsigned k = 0; k < 4; k++) {
        const char name[] = {'n', (char)('1' + k), '\0'};
        rig_node(&r, name, "cpu=2 pods=10");
    }
    const uint32_t a = hk_intern(&r.m.str, HK_STR("a")), b = hk_intern(&r.m.str, HK_STR("b"));
    const struct policy_desc policies[] = {
        {.name = HK_STR("A"), .size = 1, .min_groups = 2, .keys = &a, .nkey = 1},
        {.name = HK_STR("B"), .size = 2, .min_groups = 1, .keys = &b, .nkey = 1},
    };
    rig_job(&r, "j", "q", .min = 3, .phase = PG_INQUEUE, .policies = policies, .npolicy = 2);
    for (unsigned k = 0; k < 8; k++) {
        const char name[] = {'p', (char)('1' + k), '\0'};
        const char value[] = {(char)('0' + (k < 4 ? k : (k - 4) / 2)), '\0'};
        const struct label l = {k < 4 ? a : b, hk_intern(&r.m.str, hk_str(value))};
        rig_task(&r, "j", name, .req = "cpu=2", .labels = &l, .nlabel = 1);
    }
    cycle_run(&r, CONF("allocate", ""));
    assert_string_equal(cycle_in(&r, TASK_PENDING), "p3@- p4@- p7@- p8@-");
    cycle_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_roles_go_on_after_one_failed),
        cmocka_unit_test(failed_role_stops_a_job_that_needs_it),
        cmocka_unit_test(met_role_does_not_stop_the_job),
        cmocka_unit_test(gang_is_bound_whole_or_not_at_all),
        cmocka_unit_test(queues_alternate_once_jobs_are_ready),
        cmocka_unit_test(room_being_freed_is_held_not_bound),
        cmocka_unit_test(groups_wait_for_admission_when_enqueue_is_configured),
        cmocka_unit_test(backfill_binds_best_effort_and_completes_gangs),
        cmocka_unit_test(gated_tasks_wait),
        cmocka_unit_test(required_sub_groups_go_first),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
