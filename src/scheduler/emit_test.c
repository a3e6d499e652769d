// SPDX-License-Identifier: Apache-2.0
// What users see of the scheduler's work: binds, statuses, conditions and events, with Volcano's
// messages and only when they change.
#include "scheduler/loop_rig_test.h"

static void a_gang_is_bound_and_everybody_told(void **state)
{
    struct rig *r = rig_new(NULL);

    rig_small_cluster(r);
    rig_group(r, "g", 2, "");
    rig_pod(r, "a", "g", "1");
    rig_pod(r, "b", "g", "1500m");
    rig_run(r);
    assert_int_equal(rig_calls(r, "create pods/binding"), 2);
    assert_string_equal(rig_field(r, API_POD, "a", "spec.nodeName"), "n1");
    assert_string_equal(rig_field(r, API_POD, "b", "spec.nodeName"), "n1");
    assert_string_equal(rig_field(r, API_PODGROUP, "g", "status.phase"), "Running");
    assert_string_equal(rig_condition(r, API_PODGROUP, "g", "Scheduled"),
                        "True tasks in gang are ready to be scheduled ");
    assert_string_equal(rig_condition(r, API_PODGROUP, "g", "Unschedulable"), "-");
    assert_string_equal(rig_field(r, API_PODGROUP, "g", "status.running"), "-");
    rig_expect_event(r, "Normal a Scheduled: Successfully assigned d/a to n1 x1");
    rig_expect_event(r, "Normal g Scheduled: pod group is ready x1");
    rig_start(r, "a");
    rig_start(r, "b");
    rig_run(r);
    assert_string_equal(rig_field(r, API_PODGROUP, "g", "status.running"), "2");
    rig_free(r);
}

static void queues_show_what_they_and_their_children_hold(void **state)
{
    struct rig *r = rig_new(NULL);

    rig_small_cluster(r);
    rig_queue(r, "child", ",'parent':'q'");
    rig_put(r, "{'apiVersion':'scheduling.volcano.sh/v1beta1','kind':'PodGroup','metadata':{"
               "'name':'g','namespace':'d','uid':'g-g'},'spec':{'minMember':1,'queue':'child'}}");
    rig_pod(r, "a", "g", "1500m");
    rig_run(r);
    static const char *const holders[] = {"child", "q", "root"};
    for (size_t i = 0; i < HK_LEN(holders); i++) {
        assert_string_equal(rig_field(r, API_QUEUE, holders[i], "status.allocated"),
                            "{\"cpu\":\"1500m\",\"memory\":\"1Gi\",\"pods\":\"1\"}");
        assert_string_equal(rig_field(r, API_QUEUE, holders[i], "status.state"), "Open");
    }
    assert_string_equal(rig_field(r, API_QUEUE, "default", "status.allocated"),
                        "{\"cpu\":\"0\",\"memory\":\"0\"}");
    rig_remove(r, API_POD, "a");
    rig_run(r);
    assert_string_equal(rig_field(r, API_QUEUE, "root", "status.allocated"),
                        "{\"cpu\":\"0\",\"memory\":\"0\"}");
    rig_free(r);
}

static void a_gang_that_does_not_fit_says_why(void **state)
{
    struct rig *r = rig_new(RIG_PLAIN);

    rig_small_cluster(r);
    rig_group(r, "g", 2, "");
    rig_pod(r, "a", "g", "3");
    rig_pod(r, "b", "g", "3");
    rig_run(r);
    assert_int_equal(rig_calls(r, "create pods/binding"), 0);
    assert_string_equal(rig_field(r, API_PODGROUP, "g", "status.phase"), "Inqueue");
    assert_string_equal(
        rig_condition(r, API_PODGROUP, "g", "Unschedulable"),
        "True NotEnoughResources 1/2 tasks in gang unschedulable: pod group is not ready, 2 "
        "Pending, 2 "
        "minAvailable; Pending: 1 Schedulable, 1 Unschedulable. Origin reason is b: 0/1 nodes are "
        "unavailable: 1 Insufficient cpu.");
    assert_string_equal(rig_condition(r, API_POD, "b", "PodScheduled"),
                        "False Unschedulable 0/1 nodes are unavailable: 1 Insufficient cpu.");
    assert_string_equal(
        rig_condition(r, API_POD, "a", "PodScheduled"),
        "False Schedulable Pod d/a can possibly be assigned to n1, once minAvailable is "
        "satisfied");
    rig_expect_event(
        r, "Warning b FailedScheduling: 0/1 nodes are unavailable: 1 Insufficient cpu. x1");
    rig_expect_event(r,
                     "Warning g Unschedulable: 2/2 tasks in gang unschedulable: pod group is not "
                     "ready, 2 Pending, 2 minAvailable; Pending: 1 Schedulable, 1 Unschedulable. "
                     "Origin reason is b: 0/1 nodes are unavailable: 1 Insufficient cpu. x1");
    rig_free(r);
}

static void success_takes_the_complaint_back(void **state)
{
    struct rig *r = rig_new(RIG_PLAIN);

    rig_small_cluster(r);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "8");
    rig_run(r);
    assert_true(
        hk_str_starts(hk_str(rig_condition(r, API_PODGROUP, "g", "Unschedulable")), "True "));
    rig_node(r, "n2", "8", "16Gi");
    rig_run(r);
    assert_string_equal(rig_field(r, API_POD, "a", "spec.nodeName"), "n2");
    assert_string_equal(rig_condition(r, API_PODGROUP, "g", "Unschedulable"),
                        "False NotEnoughResources ");
    assert_string_equal(rig_condition(r, API_PODGROUP, "g", "Scheduled"),
                        "True tasks in gang are ready to be scheduled ");
    rig_free(r);
}

static void conditions_of_others_stay(void **state)
{
    struct rig *r = rig_new(NULL);

    rig_small_cluster(r);
    rig_put(r, "{'apiVersion':'scheduling.volcano.sh/v1beta1','kind':'PodGroup','metadata':{"
               "'name':'g','namespace':'d','uid':'g-g'},'spec':{'minMember':1,'queue':'q'},"
               "'status':{'phase':'Pending','conditions':[{'type':'Theirs','status':'True',"
               "'reason':'R','message':'m','x':1}]}}");
    rig_pod(r, "a", "g", "1");
    rig_run(r);
    assert_string_equal(rig_condition(r, API_PODGROUP, "g", "Theirs"), "True R m");
    assert_string_equal(rig_condition(r, API_PODGROUP, "g", "Scheduled"),
                        "True tasks in gang are ready to be scheduled ");
    rig_free(r);
}

static void a_complaint_survives_a_write_of_the_counters(void **state)
{
    struct rig *r = rig_new(RIG_PLAIN);

    rig_small_cluster(r);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "8");
    rig_run(r);
    const char *before = rig_condition(r, API_PODGROUP, "g", "Unschedulable");
    loop_free(r->l); /* another scheduler takes over */
    struct hk_err err = {0};
    const struct loop_opts o = {.port = r->port,
                                .clock = &r->clock.clock,
                                .session = SESSION_OPTS_DEFAULT,
                                .conf_path = r->path};
    assert_int_equal(loop_new(&o, &r->l, &err), 0);
    port_mem_log_clear(r->mem);
    rig_run(r);
    assert_string_equal(rig_condition(r, API_PODGROUP, "g", "Unschedulable"), before);
    assert_int_equal(rig_calls(r, "patch "), 0);
    rig_free(r);
}

static void status_writes_are_tried_again(void **state)
{
    struct rig *r = rig_new(RIG_PLAIN);

    rig_small_cluster(r);
    rig_run(r);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "8");
    port_mem_fail(r->mem, PORT_PATCH, 1, HK_EIO);
    port_mem_fail(r->mem, PORT_PATCH, 2, HK_EIO);
    port_mem_fail(r->mem, PORT_PATCH, 3, HK_ETIMEOUT);
    rig_run_for(r, SEC);
    assert_string_equal(rig_field(r, API_PODGROUP, "g", "status.phase"), "Inqueue");
    assert_string_equal(rig_condition(r, API_POD, "a", "PodScheduled"),
                        "False Unschedulable 0/1 nodes are unavailable: 1 Insufficient cpu.");
    rig_free(r);
}

static void prepare_preemption(struct rig *r)
{
    rig_small_cluster(r);
    rig_put(
        r, "{'apiVersion':'scheduling.k8s.io/v1','kind':'PriorityClass','metadata':{'name':'high'},"
           "'value':1000}");
    rig_group(r, "low", 1, "");
    rig_pod(r, "victim", "low", "4");
    rig_run(r);
    rig_start(r, "victim");
    rig_run(r);
    port_mem_log_clear(r->mem);
    rig_group(r, "high", 1, ",'priorityClassName':'high'");
    rig_pod_of(r, "boss", "high", "4", ",'priority':1000,'priorityClassName':'high'");
}

static void a_victim_is_told_and_deleted(void **state)
{
    struct rig *r = rig_new(RIG_PREEMPTING);

    prepare_preemption(r);
    rig_run(r);
    assert_int_equal(rig_calls(r, "delete pods d/victim"), 1);
    assert_string_not_equal(rig_field(r, API_POD, "victim", "metadata.deletionTimestamp"), "-");
    assert_string_equal(rig_condition(r, API_POD, "victim", "Ready"),
                        "False Evict Pod is evicted, because of preempt");
    assert_string_equal(rig_condition(r, API_POD, "victim", "DisruptionTarget"),
                        "True PreemptionByScheduler volcano: preempting to accommodate a higher "
                        "priority pod");
    rig_expect_event(r, "Warning victim Evict: Pod is evicted, because of preempt x1");
    rig_expect_event(r, "Normal low Evict: preempt x1");
    assert_string_equal(rig_field(r, API_POD, "boss", "status.nominatedNodeName"), "n1");
    assert_string_equal(
        rig_condition(r, API_POD, "boss", "PodScheduled"),
        "False Unschedulable Pod d/boss can possibly be assigned to n1, once resource is "
        "released and minAvailable is satisfied");
    port_mem_log_clear(r->mem);
    rig_run_for(r, 10 * SEC);
    assert_int_equal(rig_writes(r), 0);
    rig_remove(r, API_POD, "victim");
    rig_run(r);
    assert_string_equal(rig_field(r, API_POD, "boss", "spec.nodeName"), "n1");
    rig_free(r);
}

/* If the nomination stayed in the API, the next event of the pod would restore it. */
static void a_promise_that_others_used_up_is_forgotten_in_the_api_too(void **state)
{
    struct rig *r = rig_new(RIG_PREEMPTING);

    prepare_preemption(r);
    rig_run(r);
    assert_string_equal(rig_field(r, API_POD, "boss", "status.nominatedNodeName"), "n1");
    rig_remove(r, API_POD, "victim");
    rig_put(r, "{'apiVersion':'v1','kind':'Pod','metadata':{'namespace':'d','name':'stranger'},"
               "'spec':{'schedulerName':'other','nodeName':'n1','containers':[{'name':'c',"
               "'resources':{'requests':{'cpu':'4'}}}]},'status':{'phase':'Running'}}");
    rig_run(r);
    assert_string_equal(rig_field(r, API_POD, "boss", "spec.nodeName"), "-");
    assert_string_equal(rig_field(r, API_POD, "boss", "status.nominatedNodeName"), "-");
    port_mem_log_clear(r->mem);
    rig_run_for(r, 10 * SEC);
    assert_int_equal(rig_writes(r), 0);
    rig_free(r);
}

/* Upstream treats the pod as deleted once its conditions are written. */
static void an_eviction_that_fails_is_tried_again(void **state)
{
    struct rig *r = rig_new(RIG_PREEMPTING);

    prepare_preemption(r);
    port_mem_fail(r->mem, PORT_DELETE, 1, HK_EIO);
    rig_run_for(r, SEC);
    assert_int_equal(rig_calls(r, "delete pods d/victim"), 2);
    assert_string_not_equal(rig_field(r, API_POD, "victim", "metadata.deletionTimestamp"), "-");
    rig_free(r);
}

static void an_event_that_comes_again_is_only_counted(void **state)
{
    struct rig *r = rig_new(RIG_PLAIN);

    rig_small_cluster(r);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "8");
    rig_run(r);
    /* The condition is lost, so the scheduler writes it again. */
    for (int i = 0; i < 3; i++) {
        rig_pod(r, "a", "g", "9");
        rig_pod(r, "a", "g", "8");
        rig_run(r);
    }
    rig_expect_event(
        r, "Warning a FailedScheduling: 0/1 nodes are unavailable: 1 Insufficient cpu. x1");
    rig_run_for(r, 400 * SEC);
    rig_pod(r, "a", "g", "9");
    rig_run(r);
    rig_expect_event(
        r, "Warning a FailedScheduling: 0/1 nodes are unavailable: 1 Insufficient cpu. x5");
    rig_free(r);
}

static void gated_pods_are_not_touched(void **state)
{
    struct rig *r = rig_new(NULL);

    rig_small_cluster(r);
    rig_group(r, "g", 1, "");
    rig_pod_of(r, "a", "g", "1", ",'schedulingGates':[{'name':'x'}]");
    rig_run(r);
    assert_string_equal(rig_condition(r, API_POD, "a", "PodScheduled"), "-");
    assert_int_equal(rig_calls(r, "patch pods/status"), 0);
    rig_free(r);
}

/* ---- the queue's gate ---- */

#define RIG_CAPACITY                                                                               \
    "actions: \"enqueue, allocate\"\n"                                                             \
    "tiers:\n"                                                                                     \
    "- plugins:\n"                                                                                 \
    "  - name: gang\n"                                                                             \
    "- plugins:\n"                                                                                 \
    "  - name: capacity\n"                                                                         \
    "  - name: predicates\n"
#define GATE "{'name':'scheduling.volcano.sh/queue-allocation-gate'}"

static void put_gated(struct rig *r, const char *name, const char *opt_in, const char *gates)
{
    rig_put(
        r,
        "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s','namespace':'d','uid':'p-%s',"
        "'creationTimestamp':'2024-01-02T03:04:05Z',"
        "'annotations':{'scheduling.k8s.io/group-name':'g',"
        "'scheduling.volcano.sh/queue-allocation-gate':'%s'}},'spec':{'schedulerName':'volcano',"
        "'schedulingGates':[%s],"
        "'containers':[{'name':'c','resources':{'requests':{'cpu':'1'}}}]},"
        "'status':{'phase':'Pending'}}",
        name, name, opt_in, gates);
}

/* A queue of two cores on a node of four. */
static struct rig *rig_with_gates(bool open_gates)
{
    struct rig *r =
        rig_new_with(RIG_CAPACITY, (struct loop_opts){.session.open_gates = open_gates});

    rig_small_cluster(r);
    rig_queue(r, "q", ",'capability':{'cpu':'2'}");
    rig_run(r);
    rig_group(r, "g", 1, "");
    port_mem_log_clear(r->mem);
    return r;
}

static void gates_open_while_the_queue_has_room(void **state)
{
    struct rig *r = rig_with_gates(true);
    static const char *const pods[] = {"a", "b", "c"};
    const char *waits = NULL, *bound = NULL;

    for (size_t i = 0; i < HK_LEN(pods); i++) {
        put_gated(r, pods[i], "true", GATE);
    }
    rig_run(r);
    assert_int_equal(rig_calls(r, "patch pods d/"), 2);
    assert_int_equal(rig_calls(r, "create pods/binding"), 2);
    for (size_t i = 0; i < HK_LEN(pods); i++) {
        const bool placed = strcmp(rig_field(r, API_POD, pods[i], "spec.nodeName"), "n1") == 0;
        const char *gates = rig_field(r, API_POD, pods[i], "spec.schedulingGates");
        assert_int_equal(strcmp(gates, "[]") == 0 || strcmp(gates, "-") == 0, placed);
        bound = placed ? pods[i] : bound;
        waits = placed ? waits : pods[i];
    }
    assert_non_null(waits);
    rig_remove(r, API_POD, bound);
    rig_run(r);
    assert_string_equal(rig_field(r, API_POD, waits, "spec.nodeName"), "n1");
    rig_free(r);
}

static void gates_stay_shut(void **state)
{
    static const struct {
        bool on;
        const char *opt_in, *gates;
    } cases[] = {
        {false, "true", GATE},
        {true, "false", GATE},
        {true, "true", GATE ",{'name':'theirs'}"},
        {true, "true", "{'name':'theirs'}"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct rig *r = rig_with_gates(cases[i].on);
        put_gated(r, "a", cases[i].opt_in, cases[i].gates);
        rig_run(r);
        assert_int_equal(rig_calls(r, "patch pods d/a"), 0);
        rig_free(r);
    }
}

static void a_gate_that_stayed_shut_is_tried_again(void **state)
{
    struct rig *r = rig_with_gates(true);

    for (uint32_t i = 1; i <= 40; i++) {
        port_mem_fail(r->mem, PORT_PATCH, i, HK_EIO);
    }
    put_gated(r, "a", "true", GATE);
    rig_run_for(r, 2 * SEC);
    assert_in_range(rig_calls(r, "patch pods d/a"), 7, 11);
    assert_int_equal(rig_calls(r, "create pods/binding"), 0);
    rig_run_for(r, 600 * SEC);
    assert_string_equal(rig_field(r, API_POD, "a", "spec.nodeName"), "n1");
    rig_free(r);
}

/* ---- shards ---- */

static void put_shard(struct rig *r, const char *name, const char *desired, const char *in_use)
{
    rig_put(r,
            "{'apiVersion':'shard.volcano.sh/v1alpha1','kind':'NodeShard','metadata':{'name':'%s'},"
            "'spec':{'nodesDesired':[%s]},'status':{'nodesInUse':[%s]}}",
            name, desired, in_use);
}

static void assert_shard(struct rig *r, const char *in_use, const char *to_add)
{
    assert_string_equal(rig_field(r, API_NODESHARD, "ours", "status.nodesInUse"), in_use);
    assert_string_equal(rig_field(r, API_NODESHARD, "ours", "status.nodesToAdd"), to_add);
    assert_string_equal(rig_field(r, API_NODESHARD, "ours", "status.nodesToRemove"), "[]");
}

static void our_shard_says_which_nodes_we_use(void **state)
{
    struct rig *r = rig_new_with(RIG_PLAIN, (struct loop_opts){.shard_name = HK_STR("ours"),
                                                               .session.shard_mode = SHARD_HARD});

    rig_small_cluster(r);
    rig_node(r, "n2", "4", "16Gi");
    rig_node(r, "n3", "4", "16Gi");
    put_shard(r, "ours", "'n1','n2'", "");
    put_shard(r, "theirs", "'n3'", "'n2','n3'");
    rig_run(r);
    assert_shard(r, "[\"n1\"]", "[\"n2\"]");
    assert_int_equal(rig_calls(r, "patch nodeshards/status ours"), 1);

    port_mem_log_clear(r->mem);
    rig_node(r, "n2", "8", "16Gi"); /* no change of shards */
    rig_run_for(r, 10 * SEC);
    assert_int_equal(rig_calls(r, "patch nodeshards"), 0);

    put_shard(r, "theirs", "'n3'", "'n3'"); /* releases it */
    port_mem_fail(r->mem, PORT_PATCH, 1, HK_EIO);
    rig_run_for(r, SEC);
    assert_shard(r, "[\"n1\",\"n2\"]", "[]");

    put_shard(r, "ours", "'n2'", "'n1','n2'"); /* n1 will belong to others */
    rig_run(r);
    assert_shard(r, "[\"n2\"]", "[]");
    rig_free(r);
}

/* ---- sending ---- */

/* While our write of the phase is in flight, another client updates the group with an older
 * status. */
static void an_older_phase_does_not_undo_ours(void **state)
{
    struct rig *r = rig_new(RIG_PLAIN);
    int64_t wait;

    rig_small_cluster(r);
    rig_run(r);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "8");
    port_mem_log_clear(r->mem);
    for (uint32_t i = 1; i <= 3; i++) {
        port_mem_fail(r->mem, PORT_PATCH, i, HK_EIO);
    }
    while (rig_calls(r, "patch podgroups d/g") == 0) {
        loop_step(r->l, &wait);
        rig_move_clock(r, MSEC);
    }
    const struct model *m = loop_model(r->l);
    const job_id j = model_job_find(m, HK_STR("d"), HK_STR("g"));
    assert_int_equal(model_job(m, j)->phase, PG_INQUEUE);
    for (int i = 0; i < 5; i++) {
        rig_put(r,
                "{'apiVersion':'scheduling.volcano.sh/v1beta1','kind':'PodGroup','metadata':{"
                "'name':'g','namespace':'d','uid':'g-g','labels':{'touched':'%d'},"
                "'creationTimestamp':'2024-01-02T03:04:05Z'},'spec':{'minMember':1,'queue':'q'},"
                "'status':{'phase':'Pending'}}",
                i);
        rig_move_clock(r, 5 * MSEC);
        loop_step(r->l, &wait);
        assert_int_equal(model_job(m, j)->phase, PG_INQUEUE);
    }
    const uint64_t sessions = rig_sessions(r);
    rig_run_for(r, 10 * SEC);
    assert_int_equal(rig_sessions(r), sessions);
    assert_string_equal(rig_field(r, API_PODGROUP, "g", "status.phase"), "Inqueue");
    assert_string_equal(rig_field(r, API_PODGROUP, "g", "metadata.labels.touched"), "4");
    assert_true(
        hk_str_starts(hk_str(rig_condition(r, API_PODGROUP, "g", "Unschedulable")), "True "));
    rig_free(r);
}

static void many_binds_go_out_a_few_at_a_time(void **state)
{
    struct rig *r = rig_new_with(NULL, (struct loop_opts){.in_flight = 4});

    rig_small_cluster(r);
    rig_group(r, "g", 1, "");
    for (int i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof(name), "p%d", i);
        rig_pod(r, name, "g", "10m");
    }
    rig_node(r, "n2", "40", "400Gi");
    rig_run(r);
    assert_int_equal(rig_calls(r, "create pods/binding"), 40);
    assert_int_equal(loop_stats(r->l).backlog, 0);
    rig_free(r);
}

static void words_about_pods_that_got_a_node_meanwhile_are_not_said(void **state)
{
    struct rig *r = rig_new_with(RIG_PLAIN, (struct loop_opts){.reason_wait_ns = 1000 * MSEC});

    rig_small_cluster(r);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "8");
    rig_run(r); /* a tenth of a second */
    assert_int_equal(rig_calls(r, "patch pods/status"), 0);
    rig_node(r, "n2", "8", "16Gi");
    rig_run_for(r, 2000 * MSEC);
    assert_string_equal(rig_field(r, API_POD, "a", "spec.nodeName"), "n2");
    assert_int_equal(rig_calls(r, "patch pods/status"), 0);
    assert_int_equal(loop_stats(r->l).backlog, 0);
    rig_free(r);
}

static void who_waits_long_is_told_why(void **state)
{
    struct rig *r = rig_new_with(RIG_PLAIN, (struct loop_opts){.reason_wait_ns = 1000 * MSEC});

    rig_small_cluster(r);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "8");
    rig_run_for(r, 2000 * MSEC);
    assert_int_equal(rig_calls(r, "patch pods/status"), 1);
    assert_string_equal(rig_condition(r, API_POD, "a", "PodScheduled"),
                        "False Unschedulable 0/1 nodes are unavailable: 1 Insufficient cpu.");
    rig_expect_event(
        r, "Warning a FailedScheduling: 0/1 nodes are unavailable: 1 Insufficient cpu. x1");
    assert_true(
        hk_str_starts(hk_str(rig_condition(r, API_PODGROUP, "g", "Unschedulable")), "True "));
    rig_free(r);
}

/* What follows the failed bind of a pod: nothing, its deletion, or another pod of the same name. */
enum after_failure { STAYS, GOES, IS_REPLACED };

static void let_bind_fail(enum hk_code code, int64_t gone_after_ns, enum after_failure then)
{
    struct rig *r = rig_new_with(RIG_PLAIN, (struct loop_opts){.reason_wait_ns = 1000 * MSEC});

    rig_small_cluster(r);
    rig_run(r);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "1");
    for (uint32_t i = 1; i <= 1000; i++) {
        port_mem_fail(r->mem, PORT_CREATE, i, code); /* every bind, every event */
    }
    rig_run_for(r, gone_after_ns);
    if (then != STAYS) {
        rig_remove(r, API_POD, "a");
        rig_node(r, "n2", "8", "16Gi"); /* wakes the scheduler, and reuses rows */
    }
    if (then == IS_REPLACED) {
        rig_put(r,
                "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'a','namespace':'d',"
                "'uid':'second'},'spec':{'schedulerName':'volcano','containers':[{'name':'c'}]}}");
    }
    rig_run_for(r, 5 * SEC);
    rig_check(r);
    rig_free(r);
}

static void a_failed_bind_may_outlive_its_pod(void **state)
{
    static const enum hk_code codes[] = {HK_EIO, HK_ETIMEOUT, HK_ECONFLICT, HK_EINVAL,
                                         HK_ENOTFOUND};

    for (size_t i = 0; i < HK_LEN(codes); i++) {
        for (int64_t ms = 1; ms <= 1200; ms += ms < 20 ? 1 : 117) {
            let_bind_fail(codes[i], ms * MSEC, STAYS);
            let_bind_fail(codes[i], ms * MSEC, GOES);
            let_bind_fail(codes[i], ms * MSEC, IS_REPLACED);
        }
    }
}

/* The controller creates the gang's pods slowly, seconds apart. */
static void pods_of_a_gang_in_the_making_are_not_told(void **state)
{
    struct rig *r = rig_new_with(RIG_PLAIN, (struct loop_opts){.reason_wait_ns = 1000 * MSEC});

    rig_small_cluster(r);
    rig_group(r, "g", 3, "");
    rig_pod(r, "a", "g", "1");
    rig_run_for(r, 3000 * MSEC);
    rig_pod(r, "b", "g", "1");
    rig_run_for(r, 3000 * MSEC);
    rig_pod(r, "c", "g", "1");
    rig_run_for(r, 20000 * MSEC);
    assert_string_equal(rig_field(r, API_POD, "c", "spec.nodeName"), "n1");
    assert_int_equal(rig_calls(r, "patch pods/status"), 0);
    assert_int_equal(loop_stats(r->l).backlog, 0);
    rig_free(r);
}

/* The gang's pods are created one after the other. */
static void a_gang_in_the_making_is_not_complained_about(void **state)
{
    struct rig *r = rig_new_with(RIG_PLAIN, (struct loop_opts){.reason_wait_ns = 1000 * MSEC});

    rig_small_cluster(r);
    rig_group(r, "g", 3, "");
    rig_run(r);
    rig_pod(r, "a", "g", "1");
    rig_run(r);
    rig_pod(r, "b", "g", "1");
    rig_run(r);
    rig_pod(r, "c", "g", "1");
    rig_run_for(r, 2000 * MSEC);
    assert_string_equal(rig_field(r, API_POD, "c", "spec.nodeName"), "n1");
    assert_null(strstr(rig_events(r), "Unschedulable"));
    assert_int_equal(rig_calls(r, "patch pods/status"), 0);
    rig_free(r);
}

static void a_gang_that_stays_short_is_complained_about_once(void **state)
{
    struct rig *r = rig_new_with(RIG_PLAIN, (struct loop_opts){.reason_wait_ns = 1000 * MSEC});

    rig_small_cluster(r);
    rig_group(r, "g", 3, "");
    rig_pod(r, "a", "g", "1");
    rig_run_for(r, 2000 * MSEC);
    rig_pod(r, "b", "g", "1");
    rig_run_for(r, 60000 * MSEC);
    rig_expect_event(r,
                     "Warning g Unschedulable: 2/2 tasks in gang unschedulable: pod group is not "
                     "ready, 2 Pending, 3 minAvailable; Pending: 2 Unschedulable x1");
    rig_free(r);
}

/* After admission. The pod starts as soon as it has a node. */
static void a_gang_that_starts_at_once_is_written_once(void **state)
{
    struct rig *r = rig_new_with(RIG_PLAIN, (struct loop_opts){.reason_wait_ns = 1000 * MSEC});

    rig_small_cluster(r);
    rig_group(r, "g", 1, "");
    rig_run(r);
    assert_string_equal(rig_field(r, API_PODGROUP, "g", "status.phase"), "Inqueue");
    assert_int_equal(rig_calls(r, "patch podgroups"), 1);
    rig_pod(r, "a", "g", "1");
    rig_run(r);
    assert_string_equal(rig_field(r, API_POD, "a", "spec.nodeName"), "n1");
    rig_start(r, "a");
    rig_run_for(r, 2000 * MSEC);
    assert_string_equal(rig_field(r, API_PODGROUP, "g", "status.phase"), "Running");
    assert_string_equal(rig_field(r, API_PODGROUP, "g", "status.running"), "1");
    assert_int_equal(rig_calls(r, "patch podgroups"), 2);
    rig_free(r);
}

/* Controllers wait only for the admission; only people read the rest. */
static void what_nobody_acts_on_shares_a_write(void **state)
{
    struct rig *r = rig_new_with(NULL, (struct loop_opts){.reason_wait_ns = 1000 * MSEC});

    rig_small_cluster(r);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "1");
    rig_run(r);
    assert_string_equal(rig_field(r, API_PODGROUP, "g", "status.phase"), "Inqueue");
    assert_string_equal(rig_field(r, API_QUEUE, "q", "status.allocated"), "-");
    rig_run_for(r, 2000 * MSEC);
    assert_string_equal(rig_field(r, API_PODGROUP, "g", "status.phase"), "Running");
    assert_string_equal(rig_condition(r, API_PODGROUP, "g", "Scheduled"),
                        "True tasks in gang are ready to be scheduled ");
    assert_int_equal(rig_calls(r, "patch podgroups"), 2);
    assert_string_equal(rig_field(r, API_QUEUE, "q", "status.allocated"),
                        "{\"cpu\":\"1\",\"memory\":\"1Gi\",\"pods\":\"1\"}");
    assert_int_equal(rig_calls(r, "patch queues/status q"), 1);
    rig_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gang_is_bound_and_everybody_told),
        cmocka_unit_test(queues_show_what_they_and_their_children_hold),
        cmocka_unit_test(a_gang_that_does_not_fit_says_why),
        cmocka_unit_test(success_takes_the_complaint_back),
        cmocka_unit_test(conditions_of_others_stay),
        cmocka_unit_test(a_complaint_survives_a_write_of_the_counters),
        cmocka_unit_test(status_writes_are_tried_again),
        cmocka_unit_test(a_victim_is_told_and_deleted),
        cmocka_unit_test(a_promise_that_others_used_up_is_forgotten_in_the_api_too),
        cmocka_unit_test(an_eviction_that_fails_is_tried_again),
        cmocka_unit_test(an_event_that_comes_again_is_only_counted),
        cmocka_unit_test(gated_pods_are_not_touched),
        cmocka_unit_test(gates_open_while_the_queue_has_room),
        cmocka_unit_test(gates_stay_shut),
        cmocka_unit_test(a_gate_that_stayed_shut_is_tried_again),
        cmocka_unit_test(our_shard_says_which_nodes_we_use),
        cmocka_unit_test(an_older_phase_does_not_undo_ours),
        cmocka_unit_test(many_binds_go_out_a_few_at_a_time),
        cmocka_unit_test(words_about_pods_that_got_a_node_meanwhile_are_not_said),
        cmocka_unit_test(who_waits_long_is_told_why),
        cmocka_unit_test(a_failed_bind_may_outlive_its_pod),
        cmocka_unit_test(pods_of_a_gang_in_the_making_are_not_told),
        cmocka_unit_test(a_gang_in_the_making_is_not_complained_about),
        cmocka_unit_test(a_gang_that_stays_short_is_complained_about_once),
        cmocka_unit_test(a_gang_that_starts_at_once_is_written_once),
        cmocka_unit_test(what_nobody_acts_on_shares_a_write),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("scheduler/emit", tests, NULL, NULL);
}
