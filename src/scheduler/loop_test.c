// SPDX-License-Identifier: Apache-2.0
// When the scheduler runs sessions and when it is idle, and how it recovers from API failures.
#include "scheduler/loop_rig_test.h"

/* ---- start ---- */

static void missing_queues_are_made_at_the_start(void **state)
{
    struct rig *r = rig_new(NULL);

    port_mem_fail(r->mem, PORT_CREATE, 1, HK_EIO);
    rig_run_for(r, 2 * SEC);
    assert_string_equal(rig_field(r, API_QUEUE, "root", "spec.reclaimable"), "false");
    assert_string_equal(rig_field(r, API_QUEUE, "default", "spec.reclaimable"), "true");
    assert_string_equal(rig_field(r, API_QUEUE, "default", "spec.weight"), "1");
    assert_int_equal(rig_calls(r, "create queues"), 3);
    rig_free(r);
}

static void nothing_is_decided_before_every_list_is_in(void **state)
{
    struct rig *r = hk_zalloc(sizeof(*r));
    struct hk_err err = {0};
    int64_t wait;

    hk_clock_manual_init(&r->clock, RIG_START);
    r->mem = port_mem_new(RIG_START);
    r->port = port_mem_port(r->mem);
    rig_small_cluster(r);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "1");
    port_mem_fail(r->mem, PORT_LIST, 1, HK_EIO); /* the nodes */
    const struct loop_opts o = {
        .port = r->port, .clock = &r->clock.clock, .session = SESSION_OPTS_DEFAULT};
    assert_int_equal(loop_new(&o, &r->l, &err), 0);
    for (int i = 0; i < 20; i++) {
        loop_step(r->l, &wait);
    }
    assert_false(loop_stats(r->l).synced);
    assert_int_equal(rig_sessions(r), 0);
    assert_in_range(wait, 50 * MSEC, 100 * MSEC);
    rig_run_for(r, SEC);
    assert_true(loop_stats(r->l).synced);
    assert_string_equal(rig_field(r, API_POD, "a", "spec.nodeName"), "n1");
    rig_free(r);
}

static void lists_come_page_by_page(void **state)
{
    struct rig *r = hk_zalloc(sizeof(*r));
    struct hk_err err = {0};

    hk_clock_manual_init(&r->clock, RIG_START);
    r->mem = port_mem_new(RIG_START);
    r->port = port_mem_port(r->mem);
    rig_small_cluster(r);
    rig_group(r, "g", 1, "");
    for (int i = 0; i < 7; i++) {
        char name[8];
        snprintf(name, sizeof(name), "p%d", i);
        rig_pod(r, name, "g", "10m");
    }
    const struct loop_opts o = {
        .port = r->port, .clock = &r->clock.clock, .session = SESSION_OPTS_DEFAULT, .page = 3};
    assert_int_equal(loop_new(&o, &r->l, &err), 0);
    rig_run(r);
    assert_int_equal(rig_calls(r, "list pods"), 3);
    assert_int_equal(loop_stats(r->l).binds, 7);
    rig_free(r);
}

/* ---- idle ---- */

static void fill_with_hopeless_jobs(struct rig *r, int n)
{
    for (int i = 0; i < n; i++) {
        char group[16], pod[16];
        snprintf(group, sizeof(group), "g%d", i);
        snprintf(pod, sizeof(pod), "p%d", i);
        rig_group(r, group, 1, "");
        rig_pod(r, pod, group, "100");
    }
}

static void idle_is_silent(void **state)
{
    struct rig *r = rig_new(NULL);

    rig_small_cluster(r);
    fill_with_hopeless_jobs(r, 1000);
    rig_run(r);
    assert_string_equal(rig_field(r, API_PODGROUP, "g999", "status.phase"), "Inqueue");
    const uint64_t sessions = rig_sessions(r);
    port_mem_log_clear(r->mem);
    rig_run_for(r, 60 * SEC);
    assert_int_equal(rig_sessions(r), sessions);
    assert_int_equal(port_mem_log(r->mem).n, 0);
    rig_free(r);
}

static void our_own_writes_are_no_news(void **state)
{
    struct rig *r = rig_new(NULL);

    rig_small_cluster(r);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "1");
    rig_run(r);
    /* One session to place it, one more to see whether that helps others, one when it is seen as
     * bound. */
    assert_in_range(rig_sessions(r), 2, 3);
    const uint64_t sessions = rig_sessions(r);
    port_mem_log_clear(r->mem);
    rig_run_for(r, 60 * SEC);
    assert_int_equal(rig_sessions(r), sessions);
    assert_int_equal(rig_writes(r), 0);
    rig_free(r);
}

static void heartbeats_are_no_news(void **state)
{
    struct rig *r = rig_new(NULL);

    rig_small_cluster(r);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "1");
    fill_with_hopeless_jobs(r, 5);
    rig_run(r);
    rig_start(r, "a");
    rig_run(r);
    const uint64_t sessions = rig_sessions(r);
    port_mem_log_clear(r->mem);
    rig_node(r, "n1", "4", "16Gi");
    rig_queue(r, "q", "");
    rig_start(r, "a"); /* its new revision changes nothing */
    rig_run(r);
    assert_int_equal(rig_sessions(r), sessions);
    assert_int_equal(rig_writes(r), 0);
    rig_free(r);
}

static void events_are_gathered_for_a_moment(void **state)
{
    struct rig *r = rig_new(NULL);
    int64_t wait;

    rig_small_cluster(r);
    rig_node(r, "n2", "40", "400Gi");
    rig_run(r);
    const uint64_t sessions = rig_sessions(r);
    rig_group(r, "g", 1, "");
    loop_step(r->l, &wait);
    assert_int_equal(wait, MSEC);
    for (int i = 0; i < 30; i++) {
        char name[8];
        snprintf(name, sizeof(name), "p%d", i);
        rig_pod(r, name, "g", "10m");
        rig_move_clock(r, MSEC / 2);
        loop_step(r->l, &wait);
    }
    /* 15 ms of events, and a session at least every 10 ms. */
    assert_int_equal(rig_sessions(r), sessions + 1);
    rig_run(r);
    assert_int_equal(loop_stats(r->l).binds, 30);
    rig_free(r);
}

/* ---- which jobs are considered again ---- */

static bool looked_at(struct rig *r, const char *group)
{
    const struct model *m = loop_model(r->l);
    const job_id j = model_job_find(m, HK_STR("d"), hk_str(group));

    return model_job_awake(m, j);
}

static void add_blocked(struct rig *r)
{
    rig_group(r, "gpu", 1, "");
    rig_pod_of(r, "wants-gpu", "gpu", "1",
               ",'overhead':{'nvidia.com/gpu':'1'}"); /* a resource that no node has */
    rig_group(r, "cpu", 1, "");
    rig_pod(r, "wants-cpu", "cpu", "4");
    rig_group(r, "label", 1, "");
    rig_pod_of(r, "wants-label", "label", "1", ",'nodeSelector':{'disk':'ssd'}");
}

static void a_parked_job_sleeps_until_its_own_want_is_met(void **state)
{
    struct rig *r = rig_new(RIG_PLAIN);

    rig_small_cluster(r);
    rig_group(r, "busy", 1, "");
    rig_pod(r, "runs", "busy", "1");
    rig_run(r);
    rig_start(r, "runs");
    rig_run(r);
    add_blocked(r);
    rig_run(r);
    assert_false(looked_at(r, "gpu"));
    assert_false(looked_at(r, "cpu"));
    assert_false(looked_at(r, "label"));

    const uint64_t sessions = rig_sessions(r);
    rig_put(r,
            "{'apiVersion':'v1','kind':'Service','metadata':{'name':'s','namespace':'d'},'spec':{"
            "'selector':{'app':'none'}}}");
    rig_run(r);
    assert_int_equal(rig_sessions(r), sessions);

    rig_remove(r, API_POD, "runs"); /* frees the core that "cpu" lacks */
    rig_run(r);
    assert_int_equal(rig_sessions(r), sessions + 2); /* freed and placed; seen as bound */
    assert_string_equal(rig_field(r, API_POD, "wants-cpu", "spec.nodeName"), "n1");
    assert_false(looked_at(r, "label"));
    assert_false(looked_at(r, "gpu"));
    rig_free(r);
}

static void a_new_label_wakes_who_wants_it(void **state)
{
    struct rig *r = rig_new(RIG_PLAIN);

    rig_small_cluster(r);
    add_blocked(r);
    rig_run(r);
    rig_put(
        r, "{'apiVersion':'v1','kind':'Node','metadata':{'name':'n1','uid':'n-n1','labels':{'disk':"
           "'ssd'}},'status':{'allocatable':{'cpu':'8','memory':'16Gi','pods':'10'}}}");
    rig_run(r);
    assert_string_equal(rig_field(r, API_POD, "wants-label", "spec.nodeName"), "n1");
    assert_string_equal(rig_field(r, API_POD, "wants-gpu", "spec.nodeName"), "-");
    rig_free(r);
}

/* A job has affinity to pods that this scheduler places later. */
static void a_bind_wakes_who_wants_to_be_near(void **state)
{
    struct rig *r = rig_new(RIG_PLAIN);

    rig_small_cluster(r);
    rig_group(r, "near", 1, "");
    rig_pod_of(r, "follower", "near", "1",
               ",'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':["
               "{'topologyKey':'kubernetes.io/"
               "hostname','labelSelector':{'matchLabels':{'app':'lead'}}}]}}");
    rig_run(r);
    assert_string_equal(rig_field(r, API_POD, "follower", "spec.nodeName"), "-");
    rig_group(r, "first", 1, "");
    rig_put(
        r,
        "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'leader','namespace':'d','uid':'p-l',"
        "'labels':{'app':'lead'},'annotations':{'scheduling.k8s.io/group-name':'first'}},'spec':{"
        "'schedulerName':'volcano','containers':[{'name':'c','resources':{'requests':{'cpu':'1'}}}]"
        "},"
        "'status':{'phase':'Pending'}}");
    rig_run(r);
    assert_string_equal(rig_field(r, API_POD, "leader", "spec.nodeName"), "n1");
    assert_string_equal(rig_field(r, API_POD, "follower", "spec.nodeName"), "n1");
    rig_free(r);
}

/* No room becomes free, but a pod becomes evictable. */
static void put_meek(struct rig *r, const char *preemptable)
{
    rig_put(
        r,
        "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'meek','namespace':'d','uid':'p-meek',"
        "'annotations':{'scheduling.k8s.io/group-name':'low','volcano.sh/preemptable':'%s'}},"
        "'spec':{'schedulerName':'volcano','nodeName':'n1','containers':[{'name':'c','resources':"
        "{'requests':{'cpu':'4'}}}]},'status':{'phase':'Running'}}",
        preemptable);
}

static void new_victims_wake_preemptors(void **state)
{
    struct rig *r = rig_new(RIG_PREEMPTING);

    rig_small_cluster(r);
    rig_put(
        r, "{'apiVersion':'scheduling.k8s.io/v1','kind':'PriorityClass','metadata':{'name':'high'},"
           "'value':1000}");
    rig_group(r, "low", 1, "");
    put_meek(r, "false");
    rig_group(r, "high", 1, ",'priorityClassName':'high'");
    rig_pod_of(r, "boss", "high", "4", ",'priority':1000,'priorityClassName':'high'");
    rig_run(r);
    assert_int_equal(loop_stats(r->l).evictions, 0);
    assert_false(looked_at(r, "high"));
    put_meek(r, "true");
    rig_run(r);
    assert_int_equal(loop_stats(r->l).evictions, 1);
    assert_string_not_equal(rig_field(r, API_POD, "meek", "metadata.deletionTimestamp"), "-");
    rig_free(r);
}

#define RIG_SLA                                                                                    \
    "actions: \"enqueue, allocate\"\n"                                                             \
    "tiers:\n"                                                                                     \
    "- plugins:\n"                                                                                 \
    "  - name: sla\n"                                                                              \
    "    arguments:\n"                                                                             \
    "      sla-waiting-time: 3m\n"                                                                 \
    "  - name: gang\n"                                                                             \
    "- plugins:\n"                                                                                 \
    "  - name: overcommit\n"                                                                       \
    "  - name: predicates\n"

static void put_impatient(struct rig *r, const char *name, const char *annotations)
{
    rig_put(r,
            "{'apiVersion':'scheduling.volcano.sh/v1beta1','kind':'PodGroup','metadata':{"
            "'name':'%s','namespace':'d','uid':'g-%s','annotations':{%s},"
            "'creationTimestamp':'2024-01-02T03:04:05Z'},'spec':{"
            "'minMember':1,'queue':'q','minResources':{'cpu':'100'}}}",
            name, name, annotations);
}

/* Each job at its own time, without polling in between. */
static void the_clock_wakes_jobs_that_wait_for_it(void **state)
{
    struct rig *r = rig_new(RIG_SLA);
    uint64_t sessions;

    rig_small_cluster(r);
    put_impatient(r, "g", "");
    put_impatient(r, "early", "'sla-waiting-time':'1m'");
    rig_run(r);
    sessions = rig_sessions(r);
    port_mem_log_clear(r->mem);
    rig_run_for(r, 59 * SEC);
    assert_int_equal(rig_sessions(r), sessions);
    assert_int_equal(port_mem_log(r->mem).n, 0);
    assert_string_equal(rig_field(r, API_PODGROUP, "early", "status.phase"), "Pending");
    rig_run_for(r, 2 * SEC);
    assert_int_equal(rig_sessions(r), sessions + 1);
    assert_string_equal(rig_field(r, API_PODGROUP, "early", "status.phase"), "Inqueue");
    assert_string_equal(rig_field(r, API_PODGROUP, "g", "status.phase"), "Pending");

    sessions = rig_sessions(r);
    rig_run_for(r, 118 * SEC);
    assert_int_equal(rig_sessions(r), sessions);
    rig_run_for(r, SEC);
    assert_int_equal(rig_sessions(r), sessions + 1);
    assert_string_equal(rig_field(r, API_PODGROUP, "g", "status.phase"), "Inqueue");

    sessions = rig_sessions(r);
    rig_run_for(r, 3600 * SEC); /* their deadlines are over */
    assert_int_equal(rig_sessions(r), sessions);
    rig_free(r);
}

/* The actions before it still place a group that the last action admits. */
static void odd_orders_of_actions_work(void **state)
{
    struct rig *r = rig_new("actions: \"allocate, enqueue\"\n" RIG_PLUGINS);

    rig_small_cluster(r);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "1");
    rig_run(r);
    assert_string_equal(rig_field(r, API_POD, "a", "spec.nodeName"), "n1");
    rig_free(r);
}

/* Fewer members than the minimum run: the group returns to Pending and is admitted again. */
static void a_group_that_lost_members_is_admitted_again(void **state)
{
    struct rig *r = rig_new(RIG_PLAIN);

    rig_small_cluster(r);
    rig_group(r, "g", 2, "");
    rig_pod(r, "a", "g", "1");
    rig_pod(r, "b", "g", "1");
    rig_run(r);
    rig_start(r, "a");
    rig_start(r, "b");
    rig_run(r);
    assert_string_equal(rig_field(r, API_PODGROUP, "g", "status.phase"), "Running");
    rig_remove(r, API_POD, "b");
    rig_run(r);
    rig_pod(r, "b", "g", "1");
    rig_run(r);
    assert_string_equal(rig_field(r, API_POD, "b", "spec.nodeName"), "n1");
    assert_string_equal(rig_field(r, API_PODGROUP, "g", "status.phase"), "Running");
    rig_free(r);
}

/* ---- failures ---- */

static void a_bind_that_fails_is_tried_again(void **state)
{
    struct rig *r = rig_new(RIG_PLAIN);

    rig_small_cluster(r);
    rig_run(r);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "1");
    port_mem_log_clear(r->mem);
    port_mem_fail(r->mem, PORT_CREATE, 1, HK_EIO);
    rig_run(r);
    rig_expect_event(r,
                     "Warning a FailedScheduling: failed to bind to node n1: injected failure x1");
    assert_int_equal(rig_calls(r, "get pods d/a"), 1);
    assert_int_equal(rig_calls(r, "create pods/binding d/a"), 2);
    assert_string_equal(rig_field(r, API_POD, "a", "spec.nodeName"), "n1");
    rig_free(r);
}

static void failing_binds_are_tried_less_and_less_often(void **state)
{
    struct rig *r = rig_new(RIG_PLAIN);

    rig_small_cluster(r);
    rig_run(r);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "1");
    port_mem_log_clear(r->mem);
    for (uint32_t i = 1; i <= 100; i++) {
        port_mem_fail(r->mem, PORT_CREATE, i, HK_EIO);
    }
    rig_run_for(r, 2 * SEC);
    const uint32_t tries = rig_calls(r, "create pods/binding");
    /* 0, 5, 10, 20, ... 1280 ms */
    assert_in_range(tries, 8, 11);
    assert_string_equal(rig_condition(r, API_POD, "a", "PodScheduled"),
                        "False SchedulerError failed to bind to node n1: injected failure");
    rig_run_for(r, 20 * SEC);
    assert_in_range(rig_calls(r, "create pods/binding"), tries + 2, tries + 4);
    rig_free(r);
}

/* The answer to a bind was lost, but the bind succeeded: no other pod gets the room. */
static void a_bind_whose_answer_was_lost_stands(void **state)
{
    struct rig *r = rig_new(RIG_PLAIN);
    int64_t wait = 0;

    rig_small_cluster(r);
    rig_run(r);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "4");
    port_mem_log_clear(r->mem);
    port_mem_fail(r->mem, PORT_CREATE, 1, HK_ETIMEOUT);
    while (rig_calls(r, "create pods/binding") == 0) {
        loop_step(r->l, &wait);
        rig_move_clock(r, MSEC);
    }
    rig_pod_of(r, "a", "g", "4", ",'nodeName':'n1'");
    rig_group(r, "h", 1, "");
    rig_pod(r, "b", "h", "4");
    rig_run_for(r, SEC);
    assert_int_equal(rig_calls(r, "create pods/binding"), 1);
    assert_string_equal(rig_field(r, API_POD, "b", "spec.nodeName"), "-");
    rig_free(r);
}

static void a_pod_deleted_before_its_bind_is_forgotten(void **state)
{
    struct rig *r = rig_new(RIG_PLAIN);
    int64_t wait = 0;

    rig_small_cluster(r);
    rig_run(r);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "4");
    port_mem_fail(r->mem, PORT_CREATE, 1, HK_ENOTFOUND);
    port_mem_log_clear(r->mem);
    while (rig_calls(r, "create pods/binding") == 0) {
        loop_step(r->l, &wait);
        rig_move_clock(r, MSEC);
    }
    rig_remove(r, API_POD, "a");
    rig_run(r);
    assert_true(id_none(model_task_find(loop_model(r->l), HK_STR("d"), HK_STR("a"))));
    rig_pod(r, "b", "g", "4");
    rig_run(r);
    assert_string_equal(rig_field(r, API_POD, "b", "spec.nodeName"), "n1");
    rig_free(r);
}

/* The deletion of a namespace must not cause constant retries. */
static void a_namespace_that_ends_takes_no_binds_and_is_left_alone(void **state)
{
    struct rig *r = rig_new(RIG_PLAIN);

    rig_small_cluster(r);
    rig_run(r);
    port_mem_end_namespace(r->mem, "d");
    port_mem_log_clear(r->mem);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "1");
    rig_run_for(r, 10 * SEC);
    assert_int_equal(rig_calls(r, "create pods/binding"), 1);
    port_mem_end_namespace(r->mem, "");
    rig_run_for(r, 30 * SEC);
    assert_int_equal(rig_calls(r, "create pods/binding"), 2);
    assert_string_equal(rig_field(r, API_POD, "a", "spec.nodeName"), "n1");
    rig_free(r);
}

/* One member of a gang failed to bind. Newer work that would fit waits until the gang is
 * complete. */
static void a_torn_gang_is_mended_before_fresh_work(void **state)
{
    struct rig *r = rig_new(RIG_PLAIN);
    int64_t wait = 0;

    rig_small_cluster(r);
    rig_run(r);
    rig_group(r, "gang", 3, "");
    rig_pod(r, "a", "gang", "1");
    rig_pod(r, "b", "gang", "1");
    rig_pod(r, "c", "gang", "2");
    port_mem_log_clear(r->mem);
    port_mem_fail(r->mem, PORT_CREATE, 3, HK_EIO);
    while (rig_calls(r, "create pods/binding") == 0) {
        loop_step(r->l, &wait);
        rig_move_clock(r, MSEC);
    }
    rig_put(
        r,
        "{'apiVersion':'scheduling.volcano.sh/v1beta1','kind':'PodGroup','metadata':{'name':'late',"
        "'namespace':'d','uid':'g-late','creationTimestamp':'2024-01-02T04:00:00Z'},"
        "'spec':{'minMember':1,'queue':'q'}}");
    rig_pod(r, "x", "late", "1");
    rig_pod(r, "y", "late", "2");
    rig_run(r);
    assert_int_equal(rig_calls(r, "create pods/binding d/c") +
                         rig_calls(r, "create pods/binding d/a") +
                         rig_calls(r, "create pods/binding d/b"),
                     4);
    assert_string_equal(rig_field(r, API_POD, "a", "spec.nodeName"), "n1");
    assert_string_equal(rig_field(r, API_POD, "b", "spec.nodeName"), "n1");
    assert_string_equal(rig_field(r, API_POD, "c", "spec.nodeName"), "n1");
    assert_string_equal(rig_field(r, API_POD, "x", "spec.nodeName"), "-");
    rig_free(r);
}

/* ---- watches ---- */

static void a_watch_that_is_too_old_lists_again(void **state)
{
    struct rig *r = rig_new(RIG_PLAIN);

    rig_small_cluster(r);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "4");
    rig_group(r, "h", 1, "");
    rig_pod(r, "b", "h", "4");
    rig_run(r);
    const bool a_first = strcmp(rig_field(r, API_POD, "a", "spec.nodeName"), "n1") == 0;
    port_mem_end_watches(r->mem, HK_EGONE);
    rig_remove(r, API_POD, a_first ? "a" : "b"); /* without a watch event */
    port_mem_compact(r->mem);
    port_mem_log_clear(r->mem);
    rig_run_for(r, SEC);
    assert_int_equal(rig_calls(r, "list pods"), 1);
    assert_string_equal(rig_field(r, API_POD, a_first ? "b" : "a", "spec.nodeName"), "n1");
    rig_free(r);
}

static void a_broken_watch_goes_on_where_it_was(void **state)
{
    struct rig *r = rig_new(RIG_PLAIN);

    rig_small_cluster(r);
    rig_run(r);
    port_mem_end_watches(r->mem, HK_EIO);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "4");
    port_mem_log_clear(r->mem);
    rig_run_for(r, SEC);
    assert_int_equal(rig_calls(r, "list "), 0);
    assert_string_equal(rig_field(r, API_POD, "a", "spec.nodeName"), "n1");
    rig_free(r);
}

/* ---- configuration ---- */

static void a_new_configuration_is_taken_and_a_bad_one_is_not(void **state)
{
    struct rig *r = rig_new("actions: \"enqueue\"\n" RIG_PLUGINS);

    rig_small_cluster(r);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "1");
    rig_run(r);
    assert_string_equal(rig_field(r, API_POD, "a", "spec.nodeName"), "-");
    rig_write_conf(r, "actions: \"enqueue, levitate\"\n");
    loop_reload_conf(r->l);
    rig_run(r);
    assert_string_equal(rig_field(r, API_POD, "a", "spec.nodeName"), "-");
    rig_write_conf(r, RIG_PLAIN);
    loop_reload_conf(r->l);
    rig_run(r);
    assert_string_equal(rig_field(r, API_POD, "a", "spec.nodeName"), "n1");
    const uint64_t sessions = rig_sessions(r);
    loop_reload_conf(r->l); /* nothing changed */
    rig_run(r);
    assert_int_equal(rig_sessions(r), sessions);
    rig_free(r);
}

/* ---- budget ---- */

/* Each read of this clock takes a millisecond. */
struct slow_clock {
    struct hk_clock clock;
    int64_t now_ns;
};

static int64_t slow_read(struct hk_clock *c)
{
    return ((struct slow_clock *)c)->now_ns += MSEC;
}

static void a_session_ends_when_its_time_is_up(void **state)
{
    struct slow_clock clock = {{slow_read, slow_read}, RIG_START};
    struct rig *r = rig_new_with(
        RIG_PLAIN, (struct loop_opts){.clock = &clock.clock, .session.budget_ns = 2 * MSEC});

    rig_small_cluster(r);
    rig_node(r, "n2", "1000", "4000Gi");
    for (int i = 0; i < 400; i++) {
        char group[16], pod[16];
        snprintf(group, sizeof(group), "g%d", i);
        snprintf(pod, sizeof(pod), "p%d", i);
        rig_group(r, group, 1, "");
        rig_pod(r, pod, group, "1");
    }
    rig_run(r);
    assert_true(loop_stats(r->l).over_budget > 1);
    assert_int_equal(loop_stats(r->l).binds, 400);
    rig_free(r);
}

/* ---- records ---- */

static void cycle_lines(const char *path, struct hk_buf *out)
{
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t cap = 0;

    assert_non_null(f);
    while (getline(&line, &cap, f) >= 0) {
        if (strncmp(line, "{\"cycle\"", 8) == 0) {
            hk_buf_adds(out, line);
        }
    }
    free(line);
    fclose(f);
}

/* A run with everything that makes runs differ: failures, evictions, a budget, a new
 * configuration. */
static void live(struct rig *r)
{
    rig_small_cluster(r);
    rig_run(r);
    for (int i = 0; i < 100; i++) {
        char group[16], pod[16];
        snprintf(group, sizeof(group), "g%d", i % 30);
        snprintf(pod, sizeof(pod), "p%d", i);
        rig_group(r, group, 2, "");
        rig_pod(r, pod, group, "300m");
    }
    port_mem_fail(r->mem, PORT_CREATE, 3, HK_EIO);
    port_mem_fail(r->mem, PORT_CREATE, 9, HK_EIO);
    rig_run_for(r, SEC);
    rig_node(r, "n2", "4", "16Gi");
    rig_run(r);
    for (int i = 0; i < 100; i++) {
        char pod[16];
        snprintf(pod, sizeof(pod), "p%d", i);
        if (strcmp(rig_field(r, API_POD, pod, "spec.nodeName"), "-") != 0) {
            rig_start(r, pod);
        }
    }
    rig_write_conf(r, RIG_PREEMPTING);
    loop_reload_conf(r->l);
    rig_put(
        r, "{'apiVersion':'scheduling.k8s.io/v1','kind':'PriorityClass','metadata':{'name':'high'},"
           "'value':1000}");
    rig_group(r, "high", 1, ",'priorityClassName':'high'");
    rig_pod_of(r, "boss", "high", "2", ",'priority':1000,'priorityClassName':'high'");
    port_mem_fail(r->mem, PORT_DELETE, 1, HK_EIO);
    rig_run_for(r, SEC);
}

static void a_record_gives_the_same_decisions(void **state)
{
    char path[] = "/tmp/hekla-record-XXXXXX";
    HK_AUTO(hk_buf_fini) struct hk_buf want = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf got = {0};
    struct slow_clock clock = {{slow_read, slow_read}, RIG_START};
    struct hk_err err = {0};

    close(mkstemp(path));
    struct rig *r = rig_new_with(RIG_PLAIN, (struct loop_opts){.clock = &clock.clock,
                                                               .session.budget_ns = 2 * MSEC,
                                                               .record_path = path});
    live(r);
    assert_true(loop_stats(r->l).binds > 20);
    assert_true(loop_stats(r->l).evictions > 0);
    rig_free(r);
    cycle_lines(path, &want);
    if (loop_replay(path, &got, &err) < 0) {
        fail_msg("replay: %s", err.text);
    }
    assert_string_equal(got.data, want.data);
    unlink(path);
}

static void a_record_that_was_changed_is_found_out(void **state)
{
    static const struct {
        const char *text;
        int rc;
    } cases[] = {
        {"", -HK_EIO},
        {"{\"hekla\":2}\n", -HK_EINVAL},
        {"{\"hekla\":1}\n{\"put\":\"nonsense\"}\n", -HK_EINVAL},
        {"{\"hekla\":1}\n{\"unbind\":\"d\",\"name\":\"x\"}\n", -HK_EINVAL},
        {"{\"hekla\":1}\n{\"cycle\":1,\"now\":0,\"bind\":[\"d/a n1\"]}\n", -HK_ECONFLICT},
        {"{\"hekla\":1}\nnot json\n", -HK_EINVAL},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        char path[] = "/tmp/hekla-record-XXXXXX";
        HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
        FILE *f;

        close(mkstemp(path));
        f = fopen(path, "w");
        fputs(cases[i].text, f);
        fclose(f);
        const int rc = loop_replay(path, &out, NULL);
        if (rc != cases[i].rc) {
            fail_msg("%s: expected %d, got %d", cases[i].text, cases[i].rc, rc);
        }
        unlink(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_queues_are_made_at_the_start),
        cmocka_unit_test(nothing_is_decided_before_every_list_is_in),
        cmocka_unit_test(lists_come_page_by_page),
        cmocka_unit_test(idle_is_silent),
        cmocka_unit_test(our_own_writes_are_no_news),
        cmocka_unit_test(heartbeats_are_no_news),
        cmocka_unit_test(events_are_gathered_for_a_moment),
        cmocka_unit_test(a_parked_job_sleeps_until_its_own_want_is_met),
        cmocka_unit_test(a_new_label_wakes_who_wants_it),
        cmocka_unit_test(a_bind_wakes_who_wants_to_be_near),
        cmocka_unit_test(new_victims_wake_preemptors),
        cmocka_unit_test(the_clock_wakes_jobs_that_wait_for_it),
        cmocka_unit_test(odd_orders_of_actions_work),
        cmocka_unit_test(a_group_that_lost_members_is_admitted_again),
        cmocka_unit_test(a_bind_that_fails_is_tried_again),
        cmocka_unit_test(failing_binds_are_tried_less_and_less_often),
        cmocka_unit_test(a_namespace_that_ends_takes_no_binds_and_is_left_alone),
        cmocka_unit_test(a_bind_whose_answer_was_lost_stands),
        cmocka_unit_test(a_pod_deleted_before_its_bind_is_forgotten),
        cmocka_unit_test(a_torn_gang_is_mended_before_fresh_work),
        cmocka_unit_test(a_watch_that_is_too_old_lists_again),
        cmocka_unit_test(a_broken_watch_goes_on_where_it_was),
        cmocka_unit_test(a_new_configuration_is_taken_and_a_bad_one_is_not),
        cmocka_unit_test(a_session_ends_when_its_time_is_up),
        cmocka_unit_test(a_record_gives_the_same_decisions),
        cmocka_unit_test(a_record_that_was_changed_is_found_out),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("scheduler/loop", tests, NULL, NULL);
}
