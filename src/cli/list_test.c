// SPDX-License-Identifier: Apache-2.0
// Lists for people, from objects. The process's time zone is UTC here.
#include "cli/list.h"

#include "cli/board.h"
#include "cli/rig_test.h"

static const struct term plain = {.columns = 80, .rows = 24};

/* Compares the whole list, in its order. */
static void check(enum api_kind_id kind, const struct given *g, const struct given *more,
                  enum api_kind_id more_kind, struct list_how how, list_heads *heads, list_row *row,
                  const char *want)
{
    HK_AUTO(grid_fini) struct grid grid = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    HK_AUTO(list_more_fini) struct list_more m = {0};
    struct given sorted = *g;
    const struct list_set all = {sorted.at, sorted.n};

    how.now_ns = now();
    if (more) {
        list_more_init(&m, more_kind, (struct list_set){more->at, more->n});
    }
    list_sort(kind, sorted.at, sorted.n);
    heads(&how, &grid);
    for (uint32_t i = 0; i < sorted.n; i++) {
        row(sorted.at[i], &all, &m, &how, &grid);
    }
    grid_write(&grid, &plain, &out);
    assert_string_equal(out.data, want);
}

#define JOBS                                                                                       \
    "metadata: {name: train, namespace: a, uid: u1, creationTimestamp: '2026-08-20T12:00:00Z'}\n"  \
    "spec: {queue: q, minAvailable: 4, tasks: [{replicas: 4}]}\n"                                  \
    "status: {running: 3, succeeded: 1, retryCount: 1, runningDuration: 5m, state: {phase: "       \
    "Running}}\n"                                                                                  \
    "---\n"                                                                                        \
    "metadata: {name: gang, namespace: a, uid: u2, creationTimestamp: '2026-08-20T12:05:00Z'}\n"   \
    "spec: {queue: q, tasks: [{replicas: 9}, {replicas: 1}]}\n"                                    \
    "---\n"                                                                                        \
    "metadata: {name: bad, namespace: a, uid: u3, creationTimestamp: '2026-08-20T11:00:00Z'}\n"    \
    "spec: {queue: q, tasks: [{replicas: 1}]}\n"                                                   \
    "status: {failed: 1, state: {phase: Failed}, attempts: [{task: t, index: 0, exitCode: 3}]}\n"  \
    "---\n"                                                                                        \
    "metadata: {name: held, namespace: a, uid: u4, creationTimestamp: '2026-08-20T12:05:05Z'}\n"   \
    "spec: {queue: q, tasks: [{replicas: 2}]}\n"                                                   \
    "status: {pending: 2, state: {phase: Pending}}\n"
#define GROUPS                                                                                     \
    "metadata: {name: g2, namespace: a, ownerReferences: [{uid: u2}]}\n"                           \
    "spec: {queue: q}\nstatus: {phase: Pending}\n"                                                 \
    "---\n"                                                                                        \
    "metadata: {name: g4, namespace: a, ownerReferences: [{uid: u4}]}\n"                           \
    "spec: {queue: q}\n"                                                                           \
    "status: {phase: Inqueue, conditions: [{type: Unschedulable, status: 'True', message: 2/2 "    \
    "tasks in gang unschedulable}]}\n"                                                             \
    "---\n"                                                                                        \
    "metadata: {name: g1, namespace: a, ownerReferences: [{uid: u1}]}\n"                           \
    "spec: {queue: q}\nstatus: {phase: Running}\n"

static void test_jobs(void **state)
{
    HK_AUTO(given_fini) struct given jobs = given(API_JOB, JOBS);
    HK_AUTO(given_fini) struct given groups = given(API_PODGROUP, GROUPS);

    check(API_JOB, &jobs, &groups, API_PODGROUP, (struct list_how){0}, list_job_heads, list_job,
          "NAME   QUEUE  PHASE    RUN  DONE  FAIL  ALL  AGE    WHY\n"
          "bad    q      Failed     0     0     1    1  65m    t-0: exit code 3\n"
          "train  q      Running    3     1     0    4  5m10s  -\n"
          "gang   q      Pending    0     0     0   10  10s    waits to be admitted to queue 'q'\n"
          "held   q      Pending    0     0     0    2  5s     2/2 tasks in gang unschedulable\n");
    jobs.n = 1;
    check(API_JOB, &jobs, NULL, API_PODGROUP, (struct list_how){.wide = true, .namespaces = true},
          list_job_heads, list_job,
          "NAMESPACE  NAME   QUEUE  PHASE    RUN  DONE  FAIL  ALL  MIN  RETRIES  PRIORITY  RAN  "
          "AGE    WHY\n"
          "a          train  q      Running    3     1     0    4    4        1  -         5m   "
          "5m10s  -\n");
    jobs.n = 4;
}

static void test_pods(void **state)
{
    HK_AUTO(given_fini)
    struct given pods = given(
        API_POD,
        "metadata: {name: j-t-10, namespace: a, labels: {volcano.sh/job-name: j, "
        "volcano.sh/task-spec: t, volcano.sh/task-index: '10'}}\n"
        "spec: {nodeName: n0, containers: [{name: c}]}\n"
        "status: {phase: Failed, containerStatuses: [{name: c, restartCount: 0, state: "
        "{terminated: {exitCode: 3, reason: Error}}}]}\n"
        "---\n"
        "metadata: {name: j-t-9, namespace: a, labels: {volcano.sh/job-name: j, "
        "volcano.sh/task-spec: t, volcano.sh/task-index: '9'}}\n"
        "spec: {nodeName: n0, containers: [{name: c, resources: {requests: {cpu: 1500m, memory: "
        "1536Mi}}}]}\n"
        "status: {phase: Running, podIP: 127.0.0.9, containerStatuses: [{name: c, ready: true, "
        "restartCount: 1, state: {running: {}}}]}\n");

    check(API_POD, &pods, NULL, API_POD, (struct list_how){.wide = true}, list_pod_heads, list_pod,
          "NAME    JOB  READY  STATUS   EXIT  RESTARTS  IP         CPU  MEMORY  NODE  AGE\n"
          "j-t-9   j    1/1    Running     -  1         127.0.0.9  1.5   1.5Gi  n0    <unknown>\n"
          "j-t-10  j    0/1    Error       3  0         -            -       -  n0    <unknown>\n");
}

static void test_queues(void **state)
{
    HK_AUTO(given_fini)
    struct given queues = given(API_QUEUE, "metadata: {name: ai}\n"
                                           "spec: {weight: 2, parent: lab, capability: {cpu: 8}}\n"
                                           "status: {state: Open, allocated: {cpu: 2500m, memory: "
                                           "3Gi}}\n"
                                           "---\n"
                                           "metadata: {name: default}\n"
                                           "spec: {weight: 1, parent: root}\n"
                                           "status: {state: Closed}\n"
                                           "---\n"
                                           "metadata: {name: lab}\n"
                                           "spec: {weight: 1}\n"
                                           "status: {state: Open}\n"
                                           "---\n"
                                           "metadata: {name: root}\n"
                                           "spec: {weight: 1}\n"
                                           "status: {state: Open}\n"
                                           "---\n"
                                           "metadata: {name: x}\n"
                                           "spec: {weight: 1, parent: yy}\n"
                                           "---\n"
                                           "metadata: {name: yy}\n"
                                           "spec: {weight: 1, parent: x}\n");
    HK_AUTO(given_fini)
    struct given groups = given(API_PODGROUP, "metadata: {name: g, namespace: a}\n"
                                              "spec: {queue: ai}\nstatus: {phase: Running}\n");

    queues.n = 4;
    check(
        API_QUEUE, &queues, &groups, API_PODGROUP, (struct list_how){0}, list_queue_heads,
        list_queue,
        "NAME       STATE   WEIGHT    CPU  MEMORY  PENDING  INQUEUE  RUNNING  UNKNOWN  COMPLETED\n"
        "root       Open         1      0       0        0        0        0        0          0\n"
        "  default  Closed       1      0       0        0        0        0        0          0\n"
        "  lab      Open         1      0       0        0        0        0        0          0\n"
        "    ai     Open         2  2.5/8     3Gi        0        0        1        0          "
        "0\n");
    queues.n = 6;
    list_sort(API_QUEUE, queues.at, queues.n); /* a cycle of parents ends */
    assert_string_equal(hk_str_is(queues.at[4]->name, "x") ? "x" : "?", "x");
}

#define NODES                                                                                      \
    "metadata: {name: n1, creationTimestamp: '2026-08-20T12:00:00Z'}\n"                            \
    "status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}, conditions: [{type: Ready, status: "   \
    "'True'}]}\n"                                                                                  \
    "---\n"                                                                                        \
    "metadata: {name: n2, creationTimestamp: '2026-08-20T12:00:00Z'}\n"                            \
    "spec: {unschedulable: true}\n"                                                                \
    "status: {allocatable: {cpu: 1, memory: 1Gi, pods: 10, nvidia.com/gpu: 2}, conditions: "       \
    "[{type: Ready, status: 'False'}]}\n"
#define NODE_PODS                                                                                  \
    "metadata: {name: a, namespace: d}\n"                                                          \
    "spec: {nodeName: n1, containers: [{name: c, resources: {requests: {cpu: 1}, limits: {cpu: "   \
    "3, memory: 512Mi}}}, {name: d, resources: {requests: {cpu: 500m}}}]}\n"                       \
    "---\n"                                                                                        \
    "metadata: {name: b, namespace: d}\n"                                                          \
    "spec: {nodeName: n1, containers: [{name: c, resources: {requests: {cpu: 1}}}]}\n"             \
    "status: {phase: Succeeded}\n"                                                                 \
    "---\n"                                                                                        \
    "metadata: {name: e, namespace: d}\n"                                                          \
    "spec: {nodeName: n2, overhead: {cpu: 100m}, initContainers: [{name: i, resources: "           \
    "{requests: {cpu: 900m}}}], containers: [{name: c, resources: {limits: {nvidia.com/gpu: "      \
    "1}}}]}\n"

static void test_nodes(void **state)
{
    HK_AUTO(given_fini)
    struct given nodes =
        given(API_NODE, NODES "---\n"
                              "metadata: {name: n3, creationTimestamp: '2026-08-20T12:00:00Z'}\n"
                              "status: {conditions: [{type: Ready, status: Unknown}]}\n");
    HK_AUTO(given_fini) struct given pods = given(API_POD, NODE_PODS);

    check(API_NODE, &nodes, &pods, API_POD, (struct list_how){0}, list_node_heads, list_node,
          "NAME  STATUS                  CPU     MEMORY  GPU  PODS  AGE\n"
          "n1    Ready                 1.5/4  512Mi/8Gi    -  1/10  5m10s\n"
          "n2    NotReady,closed         1/1      0/1Gi  1/2  1/10  5m10s\n"
          "n3    NotReady,unreachable      -          -    -     -  5m10s\n");
}

static void test_flows(void **state)
{
    HK_AUTO(given_fini)
    struct given flows = given(API_JOBFLOW, "metadata: {name: f, namespace: a}\n"
                                            "spec: {flows: [{name: a}, {name: b}, {name: c}]}\n"
                                            "status: {state: {phase: Running}, runningJobs: [b], "
                                            "completedJobs: [a]}\n");

    check(API_JOBFLOW, &flows, NULL, API_JOBFLOW, (struct list_how){0}, list_flow_heads, list_flow,
          "NAME  PHASE    RUN  DONE  FAIL  ALL  AGE\n"
          "f     Running    1     1     0    3  <unknown>\n");
}

static void test_amounts(void **state)
{
    static const struct {
        const char *resource;
        int64_t milli;
        const char *want;
    } cases[] = {
        {"cpu", 0, "0"},
        {"cpu", 1500, "1.5"},
        {"cpu", 1250, "1250m"},
        {"cpu", 64000, "64"},
        {"memory", (int64_t)1023 * 1000, "1023"},
        {"memory", (int64_t)1536 * 1000, "1.5Ki"},
        {"memory", ((int64_t)3 << 30) * 1000, "3Gi"},
        {"memory", ((int64_t)24684100 << 10) * 1000, "23.5Gi"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
        list_write_amount(cases[i].resource, cases[i].milli, &out);
        assert_string_equal(out.data, cases[i].want);
    }
}

/* ---- the board ---- */

static void test_board(void **state)
{
    HK_AUTO(given_fini) struct given jobs = given(API_JOB, JOBS);
    HK_AUTO(given_fini) struct given groups = given(API_PODGROUP, GROUPS);
    HK_AUTO(given_fini) struct given nodes = given(API_NODE, NODES);
    HK_AUTO(given_fini) struct given pods = given(API_POD, NODE_PODS);
    HK_AUTO(given_fini)
    struct given queues = given(API_QUEUE, "metadata: {name: q}\nspec: {capability: {cpu: 2}}\n"
                                           "status: {state: Open, allocated: {cpu: 1}}\n");
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    const struct board b = {.jobs = {jobs.at, jobs.n},
                            .groups = {groups.at, groups.n},
                            .pods = {pods.at, pods.n},
                            .nodes = {nodes.at, nodes.n},
                            .queues = {queues.at, queues.n},
                            .sort = BOARD_BY_STATE,
                            .now_ns = now()};

    board_write(&b, &plain, &out);
    assert_string_equal(
        out.data,
        "hekla top  12:05:10  2 nodes  2 pods placed  4 jobs: 1 running, 2 pending, 1 failed\n"
        "\n"
        "ASKED FOR\n"
        "cpu        [##########----------]      2.5/5\n"
        "memory     [#-------------------]  512Mi/9Gi\n"
        "gpu        [##########----------]        1/2\n"
        "\n"
        "QUEUE  STATE  CPU                          WAITING  RUNNING\n"
        "q      Open   [##########----------]  1/2        2        1\n"
        "\n"
        "NODE  STATE     CPU                            MEMORY                             PODS\n"
        "n1    Ready     [#######-------------]  1.5/4  [#-------------------]  512Mi/8Gi     1\n"
        "n2    NotReady  [####################]    1/1  [--------------------]      0/1Gi     1\n"
        "\n"
        "JOB    QUEUE  PHASE    DONE                    RUN  AGE    WHY\n"
        "train  q      Running  [####------------] 1/4    3  5m10s  -\n"
        "held   q      Pending  [----------------] 0/2    0  5s     2/2 tasks in gang "
        "unschedulable\n"
        "gang   q      Pending  [---------------] 0/10    0  10s    waits to be admitted to queue "
        "'q'\n"
        "bad    q      Failed   [----------------] 0/1    0  65m    t-0: exit code 3\n");
}

static void test_a_frame_has_as_many_lines_as_the_terminal(void **state)
{
    HK_AUTO(given_fini) struct given jobs = given(API_JOB, JOBS);
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    const struct term small = {.is = true, .columns = 60, .rows = 16};
    const struct board b = {.jobs = {jobs.at, jobs.n}, .keys = true, .now_ns = now()};
    unsigned lines = 0;

    board_write(&b, &small, &out);
    for (size_t i = 0; i < out.len; i++) {
        lines += out.data[i] == '\n';
    }
    assert_true(lines <= small.rows);
    assert_non_null(strstr(out.data, "... and 2 more\n"));
}

static void test_only_changes_are_written(void **state)
{
    static const struct {
        const char *before, *after, *want;
    } cases[] = {
        {"", "a\nb\n", "\033[2J\033[1;1Ha\033[K\033[2;1Hb\033[K\033[3;1H\033[J"},
        {"a\nb\n", "a\nb\n", "\033[3;1H\033[J"},
        {"a\nb\nc\n", "a\nx\n", "\033[2;1Hx\033[K\033[3;1H\033[J"},
        {"a\n", "a\n\nc\n", "\033[2;1H\033[K\033[3;1Hc\033[K\033[4;1H\033[J"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
        board_change(hk_str(cases[i].before), hk_str(cases[i].after), &out);
        assert_string_equal(out.data, cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_pods),
        cmocka_unit_test(test_queues),
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_flows),
        cmocka_unit_test(test_amounts),
        cmocka_unit_test(test_board),
        cmocka_unit_test(test_a_frame_has_as_many_lines_as_the_terminal),
        cmocka_unit_test(test_only_changes_are_written),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, use_utc, NULL);
}
