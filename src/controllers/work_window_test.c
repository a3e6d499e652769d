// SPDX-License-Identifier: Apache-2.0
// Large Kubernetes workloads: pods are created as they can be placed, the other replicas are only
// counted, and other workloads make progress.
#include "controllers/pass.h"
#include "controllers/pod_window.h"
#include "controllers/work_rig_test.h"

#define TEMPLATE(notes)                                                                            \
    "selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}, annotations: "     \
    "{" notes "}}, spec: {schedulerName: volcano, containers: [{name: main}]}}"
#define OBJECT(version, kind, name, notes, spec)                                                   \
    "{apiVersion: " version ", kind: " kind ", metadata: {name: " name                             \
    ", namespace: d, generation: 1, annotations: {" notes "}}, spec: {" spec "}}\n"
#define REPLICA_SET(name, n, notes)                                                                \
    OBJECT("apps/v1", "ReplicaSet", name, notes, "replicas: " n ", " TEMPLATE(""))
#define DEPLOYMENT(n, more)                                                                        \
    OBJECT("apps/v1", "Deployment", "web", "", "replicas: " n ", " more TEMPLATE(""))
#define STATEFUL_SET(n, more)                                                                      \
    OBJECT("apps/v1", "StatefulSet", "db", "", "replicas: " n ", " more TEMPLATE(""))
#define BATCH_JOB(spec)                                                                            \
    OBJECT("batch/v1", "Job", "sum", "",                                                           \
           spec                                                                                    \
           "template: {spec: {schedulerName: volcano, restartPolicy: Never, containers: [{name: "  \
           "main}]}}")
#define GROUP(n)                                                                                   \
    "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: gang, "          \
    "namespace: d}, spec: {minMember: " n "}}\n"

static struct rig rig;

/* All workload controllers and the PodGroup controller. */
static int window_setup(void **state)
{
    static const struct ctl_type *types[16];
    uint32_t n;
    const struct ctl_type *const *workloads = manager_workload_types(&n);

    memcpy(types, workloads, n * sizeof(types[0]));
    types[n] = &ctl_podgroup;
    rig_init(&rig, types, n + 1);
    rig_manager(&rig);
    return 0;
}

static int window_teardown(void **state)
{
    rig_fini(&rig);
    return 0;
}

/* Pods that have no node yet and are not being deleted. */
struct window_pods {
    uint32_t waiting, placed;
    uint32_t left; /* number of pods still to change */
    const char *patch;
    bool of_placed; /* change pods with a node, else those without */
};

static void look_at_pod(void *ctx, const struct api_object *o)
{
    struct window_pods *w = ctx;
    const struct hk_str phase = json_str(json_at(&o->root, "status.phase"), HK_STR(""));
    const bool ended = hk_str_is(phase, "Succeeded") || hk_str_is(phase, "Failed");
    const bool placed = json_at(&o->root, "spec.nodeName") != NULL;

    if (ended || json_at(&o->root, "metadata.deletionTimestamp")) {
        return;
    }
    w->placed += placed;
    w->waiting += !placed;
    if (w->left > 0 && placed == w->of_placed) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};

        w->left--;
        rig_patch(&rig, API_POD, hk_arena_strndup(&a, o->name.s, o->name.n), w->patch);
    }
}

static struct window_pods change_pods(struct window_pods w)
{
    port_mem_each(rig.mem, api_kind(API_POD), look_at_pod, &w);
    rig_settle(&rig);
    return w;
}

static void place_pods(uint32_t n)
{
    const struct window_pods w = {
        .left = n,
        .patch = "spec: {nodeName: n1}\n"
                 "status: {phase: Running, startTime: '2026-01-02T10:00:00Z', containerStatuses: "
                 "[{name: main, ready: true, restartCount: 0}]}\n"};

    assert_int_equal(change_pods(w).left, 0);
}

static void succeed(uint32_t n)
{
    const struct window_pods w = {
        .left = n,
        .of_placed = true,
        .patch = "status: {phase: Succeeded, containerStatuses: [{name: main, ready: false, "
                 "restartCount: 0, state: {terminated: {exitCode: 0, finishedAt: "
                 "'2026-01-02T10:00:05Z'}}}]}\n"};

    assert_int_equal(change_pods(w).left, 0);
}

static uint32_t waiting(void)
{
    return change_pods((struct window_pods){0}).waiting;
}

/* Places all waiting pods, also new ones, and removes pods being deleted, until nothing changes. */
static void place_all(void)
{
    for (;;) {
        const uint64_t before = manager_metrics(rig.m)->passes;

        rig_reap(&rig);
        rig_run(&rig);
        if (manager_metrics(rig.m)->passes == before) {
            return;
        }
    }
}

/* ---- ReplicaSets and Deployments ---- */

static void a_large_set_gets_a_window(void **state)
{
    rig_put(&rig, REPLICA_SET("web", "50000", ""));
    rig_settle(&rig);
    assert_int_equal(rig_count(&rig, API_POD), POD_WINDOW);
    rig_expect(&rig, API_REPLICA_SET, "web", "spec.replicas", "50000");
    rig_expect(&rig, API_REPLICA_SET, "web", "status",
               "{\"replicas\":1000,\"fullyLabeledReplicas\":1000,\"observedGeneration\":1}");
}

static void the_window_moves_on_with_placed_pods(void **state)
{
    rig_put(&rig, REPLICA_SET("web", "50000", ""));
    rig_settle(&rig);
    place_pods(10); /* too few for a pass */
    assert_int_equal(rig_count(&rig, API_POD), POD_WINDOW);
    place_pods(390);
    assert_int_equal(rig_count(&rig, API_POD), POD_WINDOW + 400);
    rig_expect(&rig, API_REPLICA_SET, "web", "status.replicas", "1400");
    rig_expect(&rig, API_REPLICA_SET, "web", "status.readyReplicas", "400");
}

static void a_large_set_comes_to_its_end(void **state)
{
    rig_put(&rig, REPLICA_SET("web", "2300", ""));
    place_all();
    assert_int_equal(rig_count(&rig, API_POD), 2300);
    rig_expect(&rig, API_REPLICA_SET, "web", "status.readyReplicas", "2300");
    rig_restart(&rig);
    rig_settle(&rig);
    assert_int_equal(manager_metrics(rig.m)->writes[PORT_CREATE], 0);
    assert_int_equal(manager_metrics(rig.m)->writes[PORT_DELETE], 0);
}

static void sets_up_to_the_window_get_all_pods(void **state)
{
    rig_put(&rig, REPLICA_SET("web", "1001", ""));
    rig_settle(&rig);
    assert_int_equal(rig_count(&rig, API_POD), 1001);
}

static void scaled_to_nothing_a_large_set_leaves_nothing(void **state)
{
    rig_put(&rig, REPLICA_SET("web", "50000", ""));
    rig_settle(&rig);
    place_pods(600);
    rig_patch(&rig, API_REPLICA_SET, "web", "spec: {replicas: 0}");
    rig_settle(&rig);
    rig_reap(&rig);
    assert_int_equal(rig_count(&rig, API_POD), 0);
    rig_expect(&rig, API_REPLICA_SET, "web", "status.replicas", "0");
}

/* Only existing pods need a delete; replicas that are only counted go without a write. */
static void a_large_set_shrinks_first_where_nothing_exists(void **state)
{
    rig_put(&rig, REPLICA_SET("web", "50000", ""));
    rig_settle(&rig);
    place_pods(600);
    rig_patch(&rig, API_REPLICA_SET, "web", "spec: {replicas: 2000}");
    rig_settle(&rig);
    assert_int_equal(manager_metrics(rig.m)->writes[PORT_DELETE], 0);
    rig_patch(&rig, API_REPLICA_SET, "web", "spec: {replicas: 500}");
    rig_settle(&rig);
    assert_int_equal(waiting(), 0);
}

static void a_large_deployment_rolls_out(void **state)
{
    rig_put(&rig, DEPLOYMENT("2500", "strategy: {rollingUpdate: {maxSurge: 100%}}, "));
    rig_settle(&rig);
    assert_int_equal(rig_count(&rig, API_POD), POD_WINDOW);
    work_expect_condition(&rig, API_DEPLOYMENT, "web", "Available",
                          "False MinimumReplicasUnavailable");
    place_all();
    rig_expect(&rig, API_DEPLOYMENT, "web", "status.availableReplicas", "2500");
    work_expect_condition(&rig, API_DEPLOYMENT, "web", "Progressing",
                          "True NewReplicaSetAvailable");
    rig_patch(&rig, API_DEPLOYMENT, "web",
              "metadata: {generation: 2}\n"
              "spec: {template: {metadata: {labels: {app: x, v: '2'}}}}\n");
    rig_settle(&rig);
    assert_int_equal(waiting(), POD_WINDOW); /* not 2,500 more at once */
    place_all();
    assert_int_equal(rig_count(&rig, API_POD), 2500);
    rig_expect(&rig, API_DEPLOYMENT, "web", "status.updatedReplicas", "2500");
    rig_expect(&rig, API_DEPLOYMENT, "web", "status.availableReplicas", "2500");
    work_expect_condition(&rig, API_DEPLOYMENT, "web", "Progressing",
                          "True NewReplicaSetAvailable");
}

/* A template that cannot be placed is replaced by one that can. */
static void a_deployment_that_waits_can_be_corrected(void **state)
{
    rig_put(&rig, DEPLOYMENT("50000", ""));
    rig_settle(&rig);
    place_pods(300);
    rig_patch(&rig, API_DEPLOYMENT, "web",
              "metadata: {generation: 2}\n"
              "spec: {replicas: 3, template: {metadata: {labels: {app: x, v: '2'}}}}\n");
    place_all();
    assert_int_equal(rig_count(&rig, API_POD), 3);
    rig_expect(&rig, API_DEPLOYMENT, "web", "status.updatedReplicas", "3");
}

/* ---- gangs ---- */

static void the_gang_of_a_set_is_made_whole(void **state)
{
    rig_put(&rig, REPLICA_SET("web", "50000", "scheduling.volcano.sh/group-min-member: '3000'"));
    rig_settle(&rig);
    assert_int_equal(rig_count(&rig, API_POD), 3000);
    rig_patch(&rig, API_POD, work_nth(&rig, API_POD, 0),
              "metadata: {deletionTimestamp: '2026-01-02T10:00:00Z'}");
    rig_reap(&rig);
    assert_int_equal(rig_count(&rig, API_POD), 3000);
}

static void a_group_that_the_template_names_is_a_gang(void **state)
{
    static const char set[] =
        OBJECT("apps/v1", "ReplicaSet", "web", "",
               "replicas: 50000, " TEMPLATE("scheduling.k8s.io/group-name: gang"));

    rig_put(&rig, set);
    rig_settle(&rig);
    assert_int_equal(rig_count(&rig, API_POD), POD_WINDOW);
    rig_put(&rig, GROUP("1500")); /* created after the pods */
    rig_settle(&rig);
    assert_int_equal(rig_count(&rig, API_POD), 1500);
    rig_patch(&rig, API_PODGROUP, "gang", "spec: {minMember: 2500}");
    rig_settle(&rig);
    assert_int_equal(rig_count(&rig, API_POD), 2500);
}

static void gangs_of_jobs_and_stateful_sets(void **state)
{
    rig_put(&rig, BATCH_JOB("parallelism: 20000, completions: 20000, "));
    rig_patch(&rig, API_BATCH_JOB, "sum",
              "metadata: {annotations: {scheduling.volcano.sh/group-min-member: '1200'}}");
    rig_put(&rig, STATEFUL_SET("20000", "podManagementPolicy: Parallel, "));
    rig_patch(&rig, API_STATEFUL_SET, "db",
              "metadata: {annotations: {scheduling.volcano.sh/group-min-member: '1300'}}");
    rig_settle(&rig);
    rig_expect(&rig, API_BATCH_JOB, "sum", "status.active", "1200");
    rig_expect(&rig, API_STATEFUL_SET, "db", "status.replicas", "1300");
}

/* ---- batch/v1 Jobs ---- */

static void a_large_batch_job_gets_a_window(void **state)
{
    rig_put(&rig, BATCH_JOB("parallelism: 50000, completions: 50000, "));
    rig_settle(&rig);
    assert_int_equal(rig_count(&rig, API_POD), POD_WINDOW);
    rig_expect(&rig, API_BATCH_JOB, "sum", "status.active", "1000");
    place_pods(300);
    rig_expect(&rig, API_BATCH_JOB, "sum", "status.active", "1300");
    rig_expect(&rig, API_BATCH_JOB, "sum", "status.ready", "300");
    succeed(200);
    rig_expect(&rig, API_BATCH_JOB, "sum", "status.succeeded", "200");
    rig_expect(&rig, API_BATCH_JOB, "sum", "status.active", "1100");
    work_expect_condition(&rig, API_BATCH_JOB, "sum", "Complete", "");
}

static void a_large_batch_job_completes_each_pod_once(void **state)
{
    rig_put(&rig, BATCH_JOB("parallelism: 2200, completions: 2500, "));
    rig_settle(&rig);
    for (uint32_t left = 2500; left > 0;) {
        const uint32_t n = waiting();

        assert_in_range(n, 1, POD_WINDOW);
        place_pods(n);
        succeed(n);
        left -= n;
    }
    rig_expect(&rig, API_BATCH_JOB, "sum", "status.succeeded", "2500");
    work_expect_condition(&rig, API_BATCH_JOB, "sum", "Complete", "True CompletionsReached");
    assert_int_equal(rig_count(&rig, API_POD), 2500);
}

static void a_large_indexed_job_makes_the_lowest_indexes_first(void **state)
{
    rig_put(&rig, BATCH_JOB("parallelism: 50000, completions: 50000, completionMode: Indexed, "));
    rig_settle(&rig);
    place_pods(300);
    succeed(300);
    assert_int_equal(waiting(), POD_WINDOW);
    rig_expect(&rig, API_BATCH_JOB, "sum", "status.completedIndexes", "\"0-299\"");
    rig_expect(&rig, API_POD, work_nth(&rig, API_POD, 1299), "spec.hostname", "\"sum-1299\"");
}

/* Without completions, the first success means that the work is done. */
static void without_completions_a_success_ends_the_making(void **state)
{
    rig_put(&rig, BATCH_JOB("parallelism: 50000, "));
    rig_settle(&rig);
    assert_int_equal(rig_count(&rig, API_POD), POD_WINDOW);
    place_pods(POD_WINDOW);
    assert_int_equal(rig_count(&rig, API_POD), 2 * POD_WINDOW);
    succeed(1);
    place_pods(POD_WINDOW);
    assert_int_equal(rig_count(&rig, API_POD), 2 * POD_WINDOW);
    succeed(2 * POD_WINDOW - 1);
    work_expect_condition(&rig, API_BATCH_JOB, "sum", "Complete", "True CompletionsReached");
}

static void a_suspended_large_job_has_no_pods(void **state)
{
    rig_put(&rig, BATCH_JOB("parallelism: 50000, completions: 50000, "));
    rig_settle(&rig);
    rig_patch(&rig, API_BATCH_JOB, "sum", "spec: {suspend: true}");
    rig_settle(&rig);
    rig_reap(&rig);
    assert_int_equal(rig_count(&rig, API_POD), 0);
    rig_expect(&rig, API_BATCH_JOB, "sum", "status.active", "");
    rig_expect(&rig, API_BATCH_JOB, "sum", "status.failed", "");
}

/* ---- StatefulSets ---- */

static void a_large_parallel_set_gets_a_window(void **state)
{
    rig_put(&rig, STATEFUL_SET("50000", "podManagementPolicy: Parallel, volumeClaimTemplates: "
                                        "[{metadata: {name: data}, spec: {}}], "));
    rig_settle(&rig);
    assert_int_equal(rig_count(&rig, API_POD), POD_WINDOW);
    assert_int_equal(rig_count(&rig, API_PVC), POD_WINDOW);
    assert_non_null(rig_get(&rig, API_POD, "db-999"));
    place_pods(250);
    assert_non_null(rig_get(&rig, API_POD, "db-1249"));
    rig_expect(&rig, API_STATEFUL_SET, "db", "status.replicas", "1250");
    rig_expect(&rig, API_STATEFUL_SET, "db", "status.readyReplicas", "250");
    rig_patch(&rig, API_STATEFUL_SET, "db", "spec: {replicas: 0}");
    rig_settle(&rig);
    rig_reap(&rig);
    assert_int_equal(rig_count(&rig, API_POD), 0);
}

static void a_large_ordered_set_makes_one_at_a_time(void **state)
{
    rig_put(&rig, STATEFUL_SET("50000", ""));
    rig_settle(&rig);
    assert_int_equal(rig_count(&rig, API_POD), 1);
    place_pods(1);
    assert_int_equal(rig_count(&rig, API_POD), 2);
}

/* ---- fairness ---- */

static bool has_pods_of(const char *set)
{
    return strstr(rig_names(&rig, API_POD), set) != NULL;
}

/* A pass creates at most 512 pods; then the set waits behind the others. */
static void other_workloads_get_their_turn(void **state)
{
    rig_put(&rig, GROUP("20000"));
    rig_put(&rig, OBJECT("apps/v1", "ReplicaSet", "large", "",
                         "replicas: 20000, " TEMPLATE("scheduling.k8s.io/group-name: gang")));
    rig_put(&rig, REPLICA_SET("small", "2", ""));
    for (int i = 0; !has_pods_of("small-"); i++) {
        assert_in_range(i, 0, 8);
        (void)manager_run(rig.m);
    }
    assert_in_range(rig_count(&rig, API_POD), 2, 4 * TURN_CALLS_MAX);
}

#define test(name) cmocka_unit_test_setup_teardown(name, window_setup, window_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_large_set_gets_a_window),
        test(the_window_moves_on_with_placed_pods),
        test(a_large_set_comes_to_its_end),
        test(sets_up_to_the_window_get_all_pods),
        test(scaled_to_nothing_a_large_set_leaves_nothing),
        test(a_large_set_shrinks_first_where_nothing_exists),
        test(a_large_deployment_rolls_out),
        test(a_deployment_that_waits_can_be_corrected),
        test(the_gang_of_a_set_is_made_whole),
        test(a_group_that_the_template_names_is_a_gang),
        test(gangs_of_jobs_and_stateful_sets),
        test(a_large_batch_job_gets_a_window),
        test(a_large_batch_job_completes_each_pod_once),
        test(a_large_indexed_job_makes_the_lowest_indexes_first),
        test(without_completions_a_success_ends_the_making),
        test(a_suspended_large_job_has_no_pods),
        test(a_large_parallel_set_gets_a_window),
        test(a_large_ordered_set_makes_one_at_a_time),
        test(other_workloads_get_their_turn),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("controllers/work-window", tests, NULL, NULL);
}
