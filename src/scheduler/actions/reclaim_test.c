// SPDX-License-Identifier: Apache-2.0
// reclaim: which queues lose pods, which do not, and that no eviction is useless.
#include "scheduler/actions/cycle_test.h"

#define PLUGINS(fair)                                                                              \
    "actions: reclaim\ntiers:\n- plugins:\n  - name: conformance\n  - name: gang\n"                \
    "    enableJobPipelined: false\n  - name: " fair "\n  - name: priority\n"
#define CONF PLUGINS("proportion")

#define running(r, job, name, ...)                                                                 \
    rig_task(r, job, name, .status = TASK_RUNNING, .flags = TASK_PREEMPTABLE, ##__VA_ARGS__)
#define protected(r, job, name, ...) rig_task(r, job, name, .status = TASK_RUNNING, ##__VA_ARGS__)

static void expect(struct rig *r, const char *conf, const char *evicted, const char *pipelined)
{
    cycle_run(r, conf);
    assert_evicted(r, evicted);
    assert_pipelined(r, pipelined);
    cycle_end(r);
}

static void job(struct rig *r, const char *name, const char *queue, int32_t min)
{
    rig_job(r, name, queue, .min = min, .phase = PG_INQUEUE);
}

static void only_preemptable_pods_are_taken(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=3 pods=10");
    rig_queue(&r, "q1");
    rig_queue(&r, "q2");
    job(&r, "j1", "q1", 1);
    job(&r, "j2", "q2", 1);
    protected(&r, "j1", "p1", .req = "cpu=1", .node = "n1");
    running(&r, "j1", "p2", .req = "cpu=1", .node = "n1");
    protected(&r, "j1", "p3", .req = "cpu=1", .node = "n1");
    rig_task(&r, "j2", "w1", .req = "cpu=1");
    expect(&r, CONF, "p2@n1", "w1@n1");
}

static void queue_of_lower_priority_gives_first(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=4 pods=10");
    rig_queue(&r, "q1", .priority = 5);
    rig_queue(&r, "q2", .priority = 10);
    rig_queue(&r, "q3", .priority = 1);
    job(&r, "j1", "q1", 1);
    job(&r, "j2", "q2", 1);
    job(&r, "j3", "q3", 1);
    running(&r, "j1", "a1", .req = "cpu=1", .node = "n1");
    protected(&r, "j1", "a2", .req = "cpu=1", .node = "n1");
    running(&r, "j2", "b1", .req = "cpu=1", .node = "n1");
    protected(&r, "j2", "b2", .req = "cpu=1", .node = "n1");
    rig_task(&r, "j3", "w1", .req = "cpu=1");
    expect(&r, CONF, "a1@n1", "w1@n1");
}

static void policy_never_is_respected(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=2 pods=10");
    rig_queue(&r, "q1");
    rig_queue(&r, "q2");
    job(&r, "j1", "q1", 0);
    job(&r, "j2", "q2", 1);
    running(&r, "j1", "p1", .req = "cpu=1", .node = "n1");
    running(&r, "j1", "p2", .req = "cpu=1", .node = "n1");
    rig_task(&r, "j2", "w1", .req = "cpu=1", .flags = TASK_NEVER_PREEMPTS);
    expect(&r, CONF, "", "");
}

static void closed_queue_takes_nothing(void **state)
{
    static const char *const confs[] = {CONF, PLUGINS("capacity")};

    for (size_t i = 0; i < HK_LEN(confs); i++) {
        RIG(r);
        rig_node(&r, "n1", "cpu=2 pods=10");
        rig_queue(&r, "q1");
        rig_queue(&r, "q2", .closed = true, .deserved = "cpu=1");
        job(&r, "j1", "q1", 0);
        job(&r, "j2", "q2", 1);
        running(&r, "j1", "p1", .req = "cpu=1", .node = "n1");
        running(&r, "j1", "p2", .req = "cpu=1", .node = "n1");
        rig_task(&r, "j2", "w1", .req = "cpu=1");
        expect(&r, confs[i], "", "");
    }
}

/* Without JobPipelined a part of a gang may reclaim: the second member does so by itself. */
static void member_that_may_reclaim_does(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=2 pods=10");
    rig_queue(&r, "q1");
    rig_queue(&r, "q2");
    job(&r, "j1", "q1", 1);
    job(&r, "j2", "q2", 2);
    running(&r, "j1", "p1", .req = "cpu=1", .node = "n1");
    protected(&r, "j1", "p2", .req = "cpu=1", .node = "n1");
    rig_task(&r, "j2", "w1", .req = "cpu=1", .flags = TASK_NEVER_PREEMPTS);
    rig_task(&r, "j2", "w2", .req = "cpu=1");
    expect(&r, CONF, "p1@n1", "w2@n1");
}

static void free_room_is_used_before_that_of_others(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=2 pods=10");
    rig_node(&r, "n2", "cpu=8 pods=10");
    rig_queue(&r, "q1");
    rig_queue(&r, "q2");
    job(&r, "j1", "q1", 0);
    job(&r, "j2", "q2", 1);
    running(&r, "j1", "p1", .req = "cpu=1", .node = "n1");
    running(&r, "j1", "p2", .req = "cpu=1", .node = "n1");
    rig_task(&r, "j2", "w1", .req = "cpu=2");
    /* Upstream tries n1 first, finds it full, and evicts. */
    expect(&r, CONF, "", "w1@n2");
}

static void gang_protected_by_its_minimum_stays(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=2 pods=10");
    rig_queue(&r, "q1");
    rig_queue(&r, "q2");
    job(&r, "j1", "q1", 2);
    job(&r, "j2", "q2", 1);
    running(&r, "j1", "p1", .req = "cpu=1", .node = "n1");
    running(&r, "j1", "p2", .req = "cpu=1", .node = "n1");
    rig_task(&r, "j2", "w1", .req = "cpu=1");
    expect(&r, CONF, "", "");
}

/* Each queue exceeds its share in one dimension and lacks the other: without a guard they would
 * evict each other's pods forever. */
static void what_the_queue_is_entitled_to_is_not_taken(void **state)
{
    static const char conf[] = "actions: reclaim\ntiers:\n- plugins:\n  - name: gang\n"
                               "    enableReclaimable: false\n  - name: capacity\n";

    for (int beyond = 0; beyond < 2; beyond++) {
        RIG(r);
        rig_node(&r, "n1", "cpu=10 mem=10 pods=10");
        rig_queue(&r, "q1", .deserved = beyond ? "cpu=6 mem=2" : "cpu=8 mem=2");
        rig_queue(&r, "q2", .deserved = "cpu=2 mem=8");
        job(&r, "j1", "q1", 0);
        job(&r, "j2", "q2", 1);
        running(&r, "j1", "p1", .req = "cpu=5 mem=5", .node = "n1");
        running(&r, "j1", "p2", .req = "cpu=2 mem=5", .node = "n1");
        rig_task(&r, "j2", "w1", .req = "cpu=3 mem=5", .flags = TASK_PREEMPTABLE);
        /* q1 holds 7 cpu and more memory than it deserves. With 8 cpu deserved it could reclaim p2,
         * from q2 or from others; with 6 it could not. */
        expect(&r, conf, beyond ? "p2@n1" : "", beyond ? "w1@n1" : "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_preemptable_pods_are_taken),
        cmocka_unit_test(queue_of_lower_priority_gives_first),
        cmocka_unit_test(policy_never_is_respected),
        cmocka_unit_test(closed_queue_takes_nothing),
        cmocka_unit_test(member_that_may_reclaim_does),
        cmocka_unit_test(free_room_is_used_before_that_of_others),
        cmocka_unit_test(gang_protected_by_its_minimum_stays),
        cmocka_unit_test(what_the_queue_is_entitled_to_is_not_taken),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
