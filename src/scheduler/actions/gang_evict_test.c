// SPDX-License-Identifier: Apache-2.0
// gangpreempt and gangreclaim: room for whole jobs, without a needless eviction.
#include "scheduler/actions/cycle_test.h"

#define PLUGINS                                                                                    \
    "tiers:\n- plugins:\n  - name: conformance\n  - name: gang\n  - name: priority\n"              \
    "  - name: predicates\n"
#define PREEMPT "actions: gangpreempt\n" PLUGINS
#define RECLAIM "actions: gangreclaim\n" PLUGINS "  - name: capacity\n"

#define running(r, job, name, ...)                                                                 \
    rig_task(r, job, name, .status = TASK_RUNNING, .flags = TASK_PREEMPTABLE, .req = "cpu=1",      \
             ##__VA_ARGS__)

static void expect(struct rig *r, const char *conf, const char *evicted, const char *pipelined)
{
    cycle_run(r, conf);
    assert_evicted(r, evicted);
    assert_pipelined(r, pipelined);
    cycle_end(r);
}

static void low(struct rig *r, const char *name, int32_t min, int32_t priority)
{
    rig_job(r, name, "q", .min = min, .priority = priority, .phase = PG_RUNNING);
}

static void high(struct rig *r, uint32_t n)
{
    rig_job(r, "high", "q", .min = (int32_t)n, .priority = 100, .phase = PG_INQUEUE);
    for (uint32_t k = 0; k < n; k++) {
        const char name[] = {'h', (char)('1' + k), '\0'};
        rig_task(r, "high", name, .req = "cpu=1");
    }
}

static void whole_bundles_need_permission(void **state)
{
    static const struct {
        const char *more, *evicted, *pipelined;
    } cases[] = {
        {"", "v1@n1", "h1@n1"},
        {"configurations:\n- name: gangpreempt\n  arguments:\n    allowWholeBundle: false\n", "",
         ""},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        RIG(r);
        char conf[1024];
        rig_node(&r, "n1", "cpu=1 pods=10");
        rig_queue(&r, "q");
        low(&r, "v", 1, 1);
        running(&r, "v", "v1", .node = "n1");
        high(&r, 1);
        snprintf(conf, sizeof(conf), "%s%s", PREEMPT, cases[i].more);
        expect(&r, conf, cases[i].evicted, cases[i].pipelined);
    }
}

static void pod_group_can_refuse(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=1 pods=10");
    rig_queue(&r, "q");
    low(&r, "v", 0, 1);
    running(&r, "v", "v1", .node = "n1");
    high(&r, 1);
    model_job(&r.m, model_job_find(&r.m, HK_STR("ns"), HK_STR("v")))->preemptable = TRI_FALSE;
    expect(&r, PREEMPT, "", "");
}

static void equal_priority_is_left_alone(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=1 pods=10");
    rig_queue(&r, "q");
    low(&r, "v", 0, 100);
    running(&r, "v", "v1", .node = "n1");
    high(&r, 1);
    expect(&r, PREEMPT, "", "");
}

/* The spare members of "loose" are enough: "tight" stays whole although its priority is lower. */
static void spare_members_go_before_whole_gangs(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=4 pods=10");
    rig_queue(&r, "q");
    low(&r, "tight", 2, 1);
    low(&r, "loose", 1, 5);
    running(&r, "tight", "t1", .node = "n1");
    running(&r, "tight", "t2", .node = "n1");
    running(&r, "loose", "l1", .node = "n1", .priority = 2);
    running(&r, "loose", "l2", .node = "n1", .priority = 1);
    high(&r, 1);
    expect(&r, PREEMPT, "l2@n1", "h1@n1");
}

/* A bundle has three members, two of them are enough: the third stays. */
static void members_that_are_not_needed_stay(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=1 pods=10");
    rig_node(&r, "n2", "cpu=1 pods=10");
    rig_node(&r, "n3", "cpu=1 pods=10");
    rig_queue(&r, "q");
    low(&r, "v", 0, 1);
    running(&r, "v", "v1", .node = "n1", .priority = 1);
    running(&r, "v", "v2", .node = "n2", .priority = 2);
    running(&r, "v", "v3", .node = "n3", .priority = 3);
    high(&r, 2);
    cycle_run(&r, PREEMPT);
    assert_int_equal(r.ssn.decisions.len, 2);
    assert_int_equal(model_job(&r.m, model_job_find(&r.m, HK_STR("ns"), HK_STR("high")))
                         ->tally.n[TASK_PIPELINED],
                     2);
    cycle_end(&r);
}

static void gang_that_does_not_fit_evicts_nobody(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=2 pods=10");
    rig_queue(&r, "q");
    low(&r, "v", 0, 1);
    running(&r, "v", "v1", .node = "n1");
    running(&r, "v", "v2", .node = "n1");
    high(&r, 3);
    expect(&r, PREEMPT, "", "");
}

static void reclaim_takes_from_reclaimable_queues_only(void **state)
{
    for (int reclaimable = 0; reclaimable < 2; reclaimable++) {
        RIG(r);
        rig_node(&r, "n1", "cpu=2 pods=10");
        rig_queue(&r, "q", .deserved = "cpu=1");
        const queue_id rich = rig_queue(&r, "rich", .deserved = "cpu=1");
        model_queue(&r.m, rich)->reclaimable = reclaimable;
        rig_job(&r, "v", "rich", .min = 1, .priority = 1000, .phase = PG_RUNNING);
        running(&r, "v", "v1", .node = "n1", .priority = 1);
        running(&r, "v", "v2", .node = "n1", .priority = 2);
        high(&r, 1);
        expect(&r, RECLAIM, reclaimable ? "v1@n1" : "", reclaimable ? "h1@n1" : "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_bundles_need_permission),
        cmocka_unit_test(pod_group_can_refuse),
        cmocka_unit_test(equal_priority_is_left_alone),
        cmocka_unit_test(spare_members_go_before_whole_gangs),
        cmocka_unit_test(members_that_are_not_needed_stay),
        cmocka_unit_test(gang_that_does_not_fit_evicts_nobody),
        cmocka_unit_test(reclaim_takes_from_reclaimable_queues_only),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
