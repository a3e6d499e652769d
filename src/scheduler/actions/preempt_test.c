// SPDX-License-Identifier: Apache-2.0
// preempt in both modes: which pods it evicts, and that no eviction is useless.
#include "scheduler/actions/cycle_test.h"

#define PLUGINS                                                                                    \
    "tiers:\n- plugins:\n  - name: conformance\n  - name: gang\n  - name: priority\n"              \
    "  - name: proportion\n  - name: predicates\n"
#define NORMAL "actions: preempt\n" PLUGINS
#define DRYRUN                                                                                     \
    NORMAL "configurations:\n- name: preempt\n  arguments:\n    enableTopologyAwarePreemption: "   \
           "true\n"

enum { HIGH = 100000, LOW = 10 };

#define running(r, job, name, ...)                                                                 \
    rig_task(r, job, name, .status = TASK_RUNNING, .flags = TASK_PREEMPTABLE, ##__VA_ARGS__)

static void low(struct rig *r, int32_t min)
{
    rig_job(r, "low", "q", .min = min, .priority = LOW, .phase = PG_RUNNING);
}

static void high(struct rig *r, int32_t min)
{
    rig_job(r, "high", "q", .min = min, .priority = HIGH, .phase = PG_INQUEUE);
}

static void expect(struct rig *r, const char *conf, const char *evicted, const char *pipelined)
{
    cycle_run(r, conf);
    assert_evicted(r, evicted);
    assert_pipelined(r, pipelined);
    cycle_end(r);
}

static void fits_without_eviction(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=10 pods=10");
    rig_queue(&r, "q");
    rig_job(&r, "j", "q", .min = 3, .phase = PG_INQUEUE);
    running(&r, "j", "p1", .req = "cpu=1", .node = "n1");
    running(&r, "j", "p2", .req = "cpu=1", .node = "n1");
    rig_task(&r, "j", "p3", .req = "cpu=1");
    /* The dry run ignores nodes that need no victim. */
    expect(&r, *state, "", strstr(*state, "configurations") ? "" : "p3@n1");
}

static void satisfied_jobs_do_not_preempt(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=2 pods=10");
    rig_queue(&r, "q");
    low(&r, 1);
    high(&r, 1);
    running(&r, "low", "l1", .req = "cpu=1", .node = "n1");
    running(&r, "high", "h1", .req = "cpu=1", .node = "n1");
    rig_task(&r, "high", "h2", .req = "cpu=1");
    expect(&r, *state, "", "");
}

static void stops_at_the_minimum_and_spares_the_protected(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=2 pods=10");
    rig_queue(&r, "q");
    low(&r, 1);
    high(&r, 1);
    running(&r, "low", "l1", .req = "cpu=1", .node = "n1");
    rig_task(&r, "low", "l2", .status = TASK_RUNNING, .req = "cpu=1", .node = "n1");
    rig_task(&r, "high", "h1", .req = "cpu=1");
    rig_task(&r, "high", "h2", .req = "cpu=1");
    expect(&r, *state, "l1@n1", "h1@n1");
}

static void evicts_several_for_one(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=6 pods=10");
    rig_queue(&r, "q");
    low(&r, 1);
    high(&r, 1);
    running(&r, "low", "l1", .req = "cpu=1", .node = "n1");
    running(&r, "low", "l2", .req = "cpu=1", .node = "n1");
    rig_task(&r, "low", "l3", .status = TASK_RUNNING, .req = "cpu=1", .node = "n1");
    rig_task(&r, "high", "h1", .req = "cpu=5");
    expect(&r, *state, "l1@n1 l2@n1", "h1@n1");
}

static void queue_limit_counts_as_lack_of_room(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=12 pods=10");
    rig_queue(&r, "q", .capability = "cpu=4");
    low(&r, 0);
    high(&r, 1);
    running(&r, "low", "l1", .req = "cpu=3", .node = "n1");
    rig_task(&r, "high", "h1", .req = "cpu=3");
    expect(&r, *state, "l1@n1", "h1@n1");
}

static void lowest_task_goes_first(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=12 pods=10");
    rig_queue(&r, "q", .capability = "cpu=3");
    low(&r, 1);
    high(&r, 1);
    rig_task(&r, "low", "l1", .status = TASK_RUNNING, .req = "cpu=1", .node = "n1");
    running(&r, "low", "l2", .req = "cpu=1", .node = "n1");
    running(&r, "low", "l3", .req = "cpu=1", .node = "n1", .priority = HIGH);
    rig_task(&r, "high", "h1", .req = "cpu=1");
    expect(&r, *state, "l2@n1", "h1@n1");
}

static void pod_slots_count_as_room(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=12 pods=1");
    rig_queue(&r, "q", .capability = "cpu=6");
    low(&r, 0);
    high(&r, 1);
    running(&r, "low", "be", .node = "n1");
    rig_task(&r, "high", "h1", .req = "cpu=3");
    expect(&r, *state, "be@n1", "h1@n1");
}

static void policy_never_is_respected(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=1 pods=10");
    rig_queue(&r, "q");
    low(&r, 0);
    high(&r, 1);
    running(&r, "low", "l1", .req = "cpu=1", .node = "n1");
    rig_task(&r, "high", "h1", .req = "cpu=1", .flags = TASK_NEVER_PREEMPTS);
    expect(&r, *state, "", "");
}

static void nothing_goes_when_the_limit_still_fails(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=10 pods=10");
    rig_queue(&r, "q", .capability = "cpu=3");
    low(&r, 0);
    high(&r, 1);
    running(&r, "low", "l1", .req = "cpu=1", .node = "n1");
    running(&r, "low", "l2", .req = "cpu=1", .node = "n1");
    rig_task(&r, "high", "h1", .req = "cpu=4");
    expect(&r, *state, "", "");
}

static void node_that_cannot_help_is_left_alone(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=3 pods=10");
    rig_node(&r, "n2", "cpu=4 pods=10");
    rig_queue(&r, "q", .capability = "cpu=6");
    low(&r, 0);
    high(&r, 1);
    running(&r, "low", "l1", .req = "cpu=1", .node = "n1");
    running(&r, "low", "l2", .req = "cpu=4", .node = "n2");
    rig_task(&r, "high", "h1", .req = "cpu=3");
    expect(&r, *state, "l2@n2", "h1@n2");
}

static void other_queues_are_left_alone(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=2 pods=10");
    rig_queue(&r, "q");
    rig_queue(&r, "other");
    rig_job(&r, "o", "other", .min = 0, .priority = 0, .phase = PG_RUNNING);
    low(&r, 0);
    high(&r, 1);
    running(&r, "o", "o1", .req = "cpu=1", .node = "n1");
    running(&r, "low", "l1", .req = "cpu=1", .node = "n1");
    rig_task(&r, "high", "h1", .req = "cpu=1");
    expect(&r, *state, "l1@n1", "h1@n1");
}

/* Two of three members would find room; a gang that cannot start evicts no pod. */
static void gang_that_does_not_fit_evicts_nobody(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=2 pods=10");
    rig_queue(&r, "q");
    low(&r, 0);
    high(&r, 3);
    running(&r, "low", "l1", .req = "cpu=1", .node = "n1");
    running(&r, "low", "l2", .req = "cpu=1", .node = "n1");
    rig_task(&r, "high", "h1", .req = "cpu=1");
    rig_task(&r, "high", "h2", .req = "cpu=1");
    rig_task(&r, "high", "h3", .req = "cpu=1");
    expect(&r, *state, "", "");
}

/* The two small pods come first in victim order, but evicting the large one makes that
 * unnecessary. */
static void evictions_that_became_unneeded_are_taken_back(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=7 pods=10");
    rig_queue(&r, "q");
    low(&r, 0);
    high(&r, 1);
    running(&r, "low", "l1", .req = "cpu=1", .node = "n1", .priority = 1);
    running(&r, "low", "l2", .req = "cpu=1", .node = "n1", .priority = 2);
    running(&r, "low", "l3", .req = "cpu=5", .node = "n1", .priority = 3);
    rig_task(&r, "high", "h1", .req = "cpu=5");
    expect(&r, *state, "l3@n1", "h1@n1");
}

/* Plugins rank the jobs equal: the job that can spare a member loses one. */
static void spare_members_go_before_needed_ones(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=3 pods=10");
    rig_queue(&r, "q");
    rig_job(&r, "tight", "q", .min = 1, .priority = LOW, .phase = PG_RUNNING);
    rig_job(&r, "loose", "q", .min = 1, .priority = LOW, .phase = PG_RUNNING);
    high(&r, 1);
    running(&r, "loose", "a-x-0", .req = "cpu=1", .node = "n1");
    running(&r, "loose", "a-x-1", .req = "cpu=1", .node = "n1");
    running(&r, "tight", "b-x-9", .req = "cpu=1", .node = "n1");
    rig_task(&r, "high", "h1", .req = "cpu=1");
    const char *off = strstr(*state, "  - name: gang\n") + strlen("  - name: gang\n");
    char conf[1024];
    snprintf(conf, sizeof(conf), "%.*s    enablePreemptable: false\n%s",
             (int)(off - (const char *)*state), (const char *)*state, off);
    expect(&r, conf, "a-x-1@n1", "h1@n1");
}

/* Others use the promised node and no pod on it is terminating: the task preempts again. */
static void broken_promise_does_not_bar_preemption(void **state)
{
    RIG(r);
    const node_id n1 = rig_node(&r, "n1", "cpu=1 pods=10");
    rig_queue(&r, "q");
    low(&r, 0);
    high(&r, 1);
    const task_id l1 = running(&r, "low", "l1", .req = "cpu=1", .node = "n1");
    const task_id h1 = rig_task(&r, "high", "h1", .req = "cpu=1");
    model_task(&r.m, h1)->pod_priority = HIGH;
    model_task_nominate(&r.m, h1, n1);
    expect(&r, *state, "l1@n1", "h1@n1");
    /* From now on a victim is terminating there. */
    model_task(&r.m, l1)->flags |= TASK_TERMINATING | TASK_PREEMPT_VICTIM;
    running(&r, "low", "l2", .req = "cpu=1", .node = "n1");
    expect(&r, *state, "", "");
}

static void own_lower_tasks_give_way(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=1 pods=10");
    rig_queue(&r, "q");
    rig_job(&r, "j", "q", .min = 0, .phase = PG_RUNNING);
    running(&r, "j", "p1", .req = "cpu=1", .node = "n1", .priority = 1);
    rig_task(&r, "j", "p2", .req = "cpu=1", .priority = 2);
    const char *rest = strchr(*state, '\n');
    char conf[1024];
    snprintf(conf, sizeof(conf), "actions: preempt\ntiers:\n- plugins:\n  - name: priority\n%s",
             strstr(rest, "configurations") ? strstr(rest, "configurations") : "");
    expect(&r, conf, "p1@n1", "p2@n1");
}

int main(void)
{
#define BOTH(f)                                                                                    \
    {#f, f, NULL, NULL, (void *)NORMAL},                                                           \
    {                                                                                              \
#f ", dry run", f, NULL, NULL, (void *)DRYRUN                                              \
    }
    const struct CMUnitTest tests[] = {
        BOTH(fits_without_eviction),
        BOTH(satisfied_jobs_do_not_preempt),
        BOTH(stops_at_the_minimum_and_spares_the_protected),
        BOTH(evicts_several_for_one),
        BOTH(queue_limit_counts_as_lack_of_room),
        BOTH(lowest_task_goes_first),
        BOTH(pod_slots_count_as_room),
        BOTH(policy_never_is_respected),
        BOTH(nothing_goes_when_the_limit_still_fails),
        BOTH(node_that_cannot_help_is_left_alone),
        BOTH(other_queues_are_left_alone),
        BOTH(gang_that_does_not_fit_evicts_nobody),
        BOTH(evictions_that_became_unneeded_are_taken_back),
        BOTH(spare_members_go_before_needed_ones),
        BOTH(broken_promise_does_not_bar_preemption),
        BOTH(own_lower_tasks_give_way),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
