// SPDX-License-Identifier: Apache-2.0
// Exact layouts, from objects. The process's time zone is UTC here.

#include "cli/show.h"

#include "cli/rig_test.h"

#define NOTHING "No resources found\n"

/* ---- jobs ---- */

#define TRAIN                                                                                      \
    "metadata: {name: mnist-train, namespace: default, "                                           \
    "creationTimestamp: '2026-08-20T12:00:00Z'}\n"                                                 \
    "spec: {queue: default, schedulerName: volcano, tasks: [{replicas: 1}, {replicas: 4}]}\n"      \
    "status: {minAvailable: 5, running: 5, state: {phase: Running}}\n"
#define PREP                                                                                       \
    "metadata: {name: prep, namespace: team-a, creationTimestamp: '2026-08-19T12:00:00Z'}\n"       \
    "spec: {queue: side, schedulerName: other, tasks: [{replicas: 1}]}\n"                          \
    "status: {minAvailable: 1, succeeded: 1, retryCount: 2, state: {phase: Completed}}\n"
#define JOB_HEAD                                                                                   \
    "Name          Creation       Phase       JobType     Replicas    Min   Pending   Running   "  \
    "Succeeded   Failed    Unknown     RetryCount\n"
#define TRAIN_ROW                                                                                  \
    "mnist-train   2026-08-20     Running     Batch       5           5     0         5         "  \
    "0           0         0           0         \n"
#define PREP_ROW                                                                                   \
    "prep          2026-08-19     Completed   Batch       1           1     0         0         "  \
    "1           0         0           2         \n"

static void test_job_tables(void **state)
{
    static const struct {
        const char *jobs;
        struct show_jobs how;
        const char *want;
    } cases[] = {
        {"", {{"", "", ""}, false, false}, NOTHING},
        {TRAIN, {{"", "", ""}, false, false}, JOB_HEAD TRAIN_ROW},
        {TRAIN "---\n" PREP,
         {{"", "", ""}, true, false},
         "Namespace   " JOB_HEAD "default     " TRAIN_ROW "team-a      " PREP_ROW},
        {TRAIN "---\n" PREP, {{"default", "", ""}, false, false}, JOB_HEAD TRAIN_ROW},
        {TRAIN "---\n" PREP, {{"", "volcano", ""}, false, false}, JOB_HEAD TRAIN_ROW},
        {TRAIN "---\n" PREP, {{"", "", "tra"}, false, false}, JOB_HEAD TRAIN_ROW},
        {TRAIN "---\n" PREP, {{"default", "other", ""}, false, false}, NOTHING},
        {TRAIN "---\n" PREP, {{"", "other", ""}, false, true}, JOB_HEAD PREP_ROW},
        {TRAIN "---\n" PREP, {{"", "none", ""}, false, true}, JOB_HEAD},
        {"", {{"", "", ""}, false, true}, NOTHING},
        {"metadata: {name: a, labels: {volcano.sh/job-type: MPI}}\n",
         {{"", "", ""}, false, false},
         "Name   Creation       Phase       JobType     Replicas    Min   Pending   Running   "
         "Succeeded   Failed    Unknown     RetryCount\n"
         "a      0001-01-01                 MPI         0           0     0         0         "
         "0           0         0           0         \n"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(given_fini) struct given jobs = given(API_JOB, cases[i].jobs);
        HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
        show_jobs(jobs.at, jobs.n, &cases[i].how, &out);
        assert_string_equal(out.data, cases[i].want);
    }
}

static const char job_text[] =
    "metadata:\n"
    "  name: a\n"
    "  namespace: ns\n"
    "  uid: u-1\n"
    "  resourceVersion: '7'\n"
    "  generation: 2\n"
    "  creationTimestamp: '2026-08-20T12:00:00Z'\n"
    "  labels: {z: '1', b: '2'}\n"
    "spec:\n"
    "  minAvailable: 1\n"
    "  schedulerName: volcano\n"
    "  plugins: {env: [], ssh: [--x, --y], svc: []}\n"
    "  tasks:\n"
    "  - name: w\n"
    "    replicas: 2\n"
    "    template:\n"
    "      metadata: {annotations: {kubernetes.io/availablezone: z1}}\n"
    "      spec:\n"
    "        restartPolicy: Never\n"
    "        imagePullSecrets: [{name: s}]\n"
    "        containers:\n"
    "        - name: c\n"
    "          image: i\n"
    "          command: [sleep, '1']\n"
    "          workingDir: /w\n"
    "          ports: [{containerPort: 80, name: web}]\n"
    "          resources: {requests: {cpu: 1500m, memory: 1Gi}}\n"
    "status:\n"
    "  running: 2\n"
    "  minAvailable: 1\n"
    "  state: {phase: Running}\n"
    "  controlledResources: {plugin-ssh: ssh, plugin-env: env}\n"
    "  conditions: [{status: Pending, lastTransitionTime: '2026-08-20T12:00:01Z'}, {status: "
    "Running}]\n";

#define JOB_PAGE                                                                                   \
    "Name:       \ta\n"                                                                            \
    "Namespace:  \tns\n"                                                                           \
    "Labels:     \t{\"b\":\"2\",\"z\":\"1\"}\n"                                                    \
    "Annotations:\t<none>\n"                                                                       \
    "API Version:\t\n"                                                                             \
    "Kind:       \t\n"                                                                             \
    "Metadata:\n"                                                                                  \
    "  Creation Timestamp:\t2026-08-20 12:00:00 +0000 UTC\n"                                       \
    "  Generate Name:     \t\n"                                                                    \
    "  Generation:        \t2\n"                                                                   \
    "  Resource Version:  \t7\n"                                                                   \
    "  UID:               \tu-1\n"                                                                 \
    "Spec:\n"                                                                                      \
    "  Min Available:     \t1\n"                                                                   \
    "  Plugins:\n"                                                                                 \
    "    Env:\t[]\n"                                                                               \
    "    Ssh:\t[--x --y]\n"                                                                        \
    "  Scheduler Name:    \tvolcano\n"                                                             \
    "  Tasks:\n"                                                                                   \
    "    Name:\tw\n"                                                                               \
    "    Replicas:\t2\n"                                                                           \
    "    Template:\n"                                                                              \
    "      Metadata:\n"                                                                            \
    "        Annotations:\n"                                                                       \
    "          Cri . Cci . Io / Container - Type:          \t\n"                                   \
    "          Kubernetes . Io / Availablezone:            \tz1\n"                                 \
    "          Network . Alpha . Kubernetes . Io / Network:\t\n"                                   \
    "        Creation Timestamp:\t0001-01-01 00:00:00 +0000 UTC\n"                                 \
    "      Spec:\n"                                                                                \
    "        Containers:\n"                                                                        \
    "          Command:\n"                                                                         \
    "            sleep\n"                                                                          \
    "            1\n"                                                                              \
    "          Image:\ti\n"                                                                        \
    "          Name: \tc\n"                                                                        \
    "          Ports:\n"                                                                           \
    "            Container Port:\t80\n"                                                            \
    "            Name:          \tweb\n"                                                           \
    "          Resources:\n"                                                                       \
    "            Limits:\n"                                                                        \
    "              Cpu:   \t0\n"                                                                   \
    "              Memory:\t0\n"                                                                   \
    "            Requests:\n"                                                                      \
    "              Cpu:   \t1500m\n"                                                               \
    "              Memory:\t1Gi\n"                                                                 \
    "            Working Dir:\t/w\n"                                                               \
    "        Image Pull Secrets:\n"                                                                \
    "          Name:     \ts\n"                                                                    \
    "        Restart Policy:   \tNever\n"                                                          \
    "Status:\n"                                                                                    \
    "  Running:      \t2\n"                                                                        \
    "  Min Available:\t1\n"                                                                        \
    "  State:\n"                                                                                   \
    "    Phase:\tRunning\n"                                                                        \
    "  Controlled Resources:\n"                                                                    \
    "    plugin-env: \tenv\n"                                                                      \
    "    plugin-ssh: \tssh\n"

static void test_job_page(void **state)
{
    HK_AUTO(given_fini) struct given jobs = given(API_JOB, job_text);
    HK_AUTO(hk_buf_fini) struct hk_buf with = {0}, without = {0};

    show_job(&jobs.at[0]->root, true, &with);
    assert_string_equal(with.data, JOB_PAGE "  Conditions:\n"
                                            "    Status\tTransitionTime\n"
                                            "    Pending \t2026-08-20 12:00:01 +0000 UTC \n"
                                            "    Running \t0001-01-01 00:00:00 +0000 UTC \n");
    show_job(&jobs.at[0]->root, false, &without);
    assert_string_equal(without.data, JOB_PAGE);
}

#define EVENT_HEAD                                                                                 \
    "Events:\n"                                                                                    \
    "Type           \tReason                                  \tAge                           \t"  \
    "Form                                    \tMessage\n"                                          \
    "-------        \t-------                                 \t-------                       \t"  \
    "-------                                 \t-------\n"

static void test_events(void **state)
{
    static const struct {
        const char *events, *want;
    } cases[] = {
        {"", "Events: \t<none>\n"},
        {"metadata: {name: ab.1}\n", "Events: \t<none>\n"},
        {"metadata: {name: a.1}\ntype: Normal\nreason: ExecuteAction\nmessage: ' Start to execute "
         "action RestartJob '\nfirstTimestamp: '2026-08-20T12:00:00Z'\nsource: {component: "
         "vc-controller-manager}\n",
         EVENT_HEAD
         "Normal         \tExecuteAction                           \t5m10s                         "
         "\tvc-controller-manager                   \tStart to execute action RestartJob\n"},
        {"metadata: {name: a.1}\ntype: Warning\nreason: R\nmessage: m\ncount: 3\n"
         "firstTimestamp: '2026-08-20T12:00:00Z'\nlastTimestamp: '2026-08-20T12:05:00Z'\n"
         "source: {component: c, host: h}\n",
         EVENT_HEAD
         "Warning        \tR                                       \t10s (x3 over 5m10s)           "
         "\tc, h                                    \tm\n"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(given_fini) struct given events = given(API_EVENT, cases[i].events);
        HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
        show_events(HK_STR("a"), events.at, events.n, now(), &out);
        assert_string_equal(out.data, cases[i].want);
    }
}

/* ---- queues ---- */

static void test_queue_tables(void **state)
{
    HK_AUTO(given_fini)
    struct given queues =
        given(API_QUEUE, "metadata: {name: default}\nspec: {weight: 1, parent: root}\n"
                         "status: {state: Open, pending: 7}\n---\n"
                         "metadata: {name: root}\nspec: {weight: 1}\nstatus: {state: Open}\n");
    HK_AUTO(given_fini)
    struct given groups = given(
        API_PODGROUP, "metadata: {name: a}\nspec: {queue: default}\nstatus: {phase: Pending}\n"
                      "---\nmetadata: {name: b}\nspec: {queue: default}\nstatus: {phase: "
                      "Running}\n---\nmetadata: {name: c}\nspec: {queue: default}\nstatus: "
                      "{phase: Running}\n---\nmetadata: {name: d}\nspec: {queue: "
                      "default}\nstatus: {phase: Completed}\n");
    HK_AUTO(hk_buf_fini) struct hk_buf full = {0}, brief = {0}, none = {0};

    show_queues(queues.at, queues.n, groups.at, groups.n, &full);
    assert_string_equal(
        full.data,
        "Name                     Weight  State   Parent  Inqueue Pending Running Unknown "
        "Completed\n"
        "default                  1       Open    root    0       1       2       0       1       "
        "\n"
        "root                     1       Open            0       0       0       0       0       "
        "\n");
    show_queues_brief(queues.at, queues.n, &brief);
    assert_string_equal(
        brief.data, "Name                     Weight  State   Inqueue Pending Running Unknown \n"
                    "default                  1       Open    0       7       0       0       \n"
                    "root                     1       Open    0       0       0       0       \n");
    show_queues(NULL, 0, NULL, 0, &none);
    assert_string_equal(none.data, NOTHING);
}

/* ---- flows and templates ---- */

static void test_flow_tables(void **state)
{
    HK_AUTO(given_fini)
    struct given flows =
        given(API_JOBFLOW, "metadata: {name: nightly-etl, namespace: default, creationTimestamp: "
                           "'2026-08-20T11:51:00Z'}\nstatus: {state: {phase: Running}}\n---\n"
                           "metadata: {name: train, namespace: default, creationTimestamp: "
                           "'2026-08-17T08:00:00Z'}\nstatus: {state: {phase: Succeed}}\n");
    HK_AUTO(hk_buf_fini) struct hk_buf table = {0}, names = {0};

    show_flows(flows.at, flows.n, now(), &table);
    assert_string_equal(table.data, "Name           Namespace    Phase      Age     \n"
                                    "nightly-etl    default      Running    14m     \n"
                                    "train          default      Succeed    3d4h    \n");
    show_templates(flows.at, flows.n, &names);
    assert_string_equal(names.data, "Name           Namespace    \n"
                                    "nightly-etl    default      \n"
                                    "train          default      \n");
}

static void test_whole_objects(void **state)
{
    static const struct {
        const char *format, *want;
    } cases[] = {
        {"yaml", "apiVersion: flow.volcano.sh/v1alpha1\nkind: JobFlow\nmetadata:\n  name: f\n"
                 "spec:\n  jobRetainPolicy: retain\n"},
        {"json", "{\n  \"kind\": \"JobFlow\",\n  \"apiVersion\": \"flow.volcano.sh/v1alpha1\",\n"
                 "  \"metadata\": {\n    \"name\": \"f\"\n  },\n"
                 "  \"spec\": {\n    \"jobRetainPolicy\": \"retain\"\n  }\n}\n"},
        {"table", "Unsupported format: table"},
    };
    HK_AUTO(given_fini)
    struct given flows = given(API_JOBFLOW, "spec: {jobRetainPolicy: retain}\n"
                                            "metadata: {name: f, managedFields: [{manager: m}]}\n");

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
        show_whole(flows.at[0], cases[i].format, &out);
        assert_string_equal(out.data, cases[i].want);
    }
}

/* ---- pods ---- */

static void test_pod_tables(void **state)
{
    HK_AUTO(given_fini)
    struct given pods = given(
        API_POD,
        "metadata: {name: mnist-train-worker-0, namespace: default, creationTimestamp: "
        "'2026-08-20T11:59:58Z'}\nspec: {containers: [{name: c}]}\nstatus: {phase: Running, "
        "containerStatuses: [{name: c, ready: false, restartCount: 3, state: {waiting: {reason: "
        "CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, finishedAt: "
        "'2026-08-20T12:04:50Z'}}}]}\n---\n"
        "metadata: {name: mnist-train-ps-0, namespace: default, creationTimestamp: "
        "'2026-08-20T11:59:58Z'}\nspec: {containers: [{name: c}]}\nstatus: {phase: Running, "
        "containerStatuses: [{name: c, ready: true, restartCount: 0, state: {running: {}}}]}\n");
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0}, wide = {0};

    show_pods(pods.at, pods.n, false, now(), &out);
    assert_string_equal(out.data,
                        "Name                        Ready      Status                  Restart    "
                        "        Age          \n"
                        "mnist-train-ps-0            1/1        Running                 0          "
                        "        5m12s        \n"
                        "mnist-train-worker-0        0/1        CrashLoopBackOff        3 (20s "
                        "ago)        5m12s        \n");
    show_pods(pods.at, 1, true, now(), &wide);
    assert_string_equal(wide.data,
                        "Namespace      Name                        Ready      Status              "
                        "    Restart            Age          \n"
                        "default        mnist-train-worker-0        0/1        CrashLoopBackOff    "
                        "    3 (20s ago)        5m12s        \n");
}

/* ---- a server ---- */

static void show_text(const char *text, struct hk_buf *out)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct yaml_docs docs = {0};
    struct hk_err err = {0};

    if (yaml_parse(hk_str(text), 0, &mem, &docs, &err) < 0) {
        fail_msg("%s", err.text);
    }
    show_server(&docs.at[0], now(), out);
}

static void test_a_server_on_a_page(void **state)
{
    HK_AUTO(hk_buf_fini)
    struct hk_buf page = {0}, none = {0}, starting = {0}, mute = {0}, full = {0};

    show_text(
        "running: true\n"
        "directory: /d\n"
        "pid: 42\n"
        "verb: up\n"
        "version: 1.2.3\n"
        "url: https://127.0.0.1:6443\n"
        "since: '2026-08-20T12:00:10Z'\n"
        "memoryBytes: 29360128\n"
        "cpuMillis: 1250\n"
        "jobs: {Running: 2, Pending: 1}\n"
        "pods: {}\n"
        "nodes:\n"
        "- {name: n1, status: Ready, allocatable: {cpu: '2', memory: 8Gi, pods: '500'},\n"
        "   used: {cpu: 1500m, memory: 512Mi, pods: '3'}}\n"
        "- {name: n2, status: NotReady, allocatable: {}, used: {}, since: "
        "'2026-08-20T12:01:00Z'}\n"
        "total: {name: total, status: '', allocatable: {cpu: '2', memory: 8Gi, pods: '500'},\n"
        "  used: {cpu: 1500m, memory: 512Mi, pods: '3'}}\n"
        "queues: [{name: default, state: Open, weight: 1, jobs: 3}]\n",
        &page);
    assert_string_equal(page.data, "hekla up 1.2.3 is running\n"
                                   "Directory  /d\n"
                                   "URL        https://127.0.0.1:6443\n"
                                   "Process    42, 28.0 MiB of memory, 1.2 s of CPU\n"
                                   "Since      2026-08-20T12:00:10Z, 5m ago\n"
                                   "Jobs       2 Running, 1 Pending\n"
                                   "Pods       none\n"
                                   "\n"
                                   "Node   Status    CPU      Memory             Pods   \n"
                                   "n1     Ready     1500m/2  512.0 MiB/8.0 GiB  3/500  \n"
                                   "n2     NotReady  0/0      0 B/0 B            0/0    \n"
                                   "total            1500m/2  512.0 MiB/8.0 GiB  3/500  \n"
                                   "\n"
                                   "1 node is not ready: n2 since 2026-08-20T12:01:00Z\n"
                                   "\n"
                                   "Queue    State  Weight  Jobs  \n"
                                   "default  Open   1       3     \n");
    show_text("{running: false, directory: /d}", &none);
    assert_string_equal(none.data, "no server runs in '/d'\n");
    show_text("{running: true, directory: /d, pid: 42}", &starting);
    assert_string_equal(starting.data, "the server in '/d', process 42, is starting\n");
    show_text("{running: true, directory: /d, pid: 42, verb: up, version: '1', url: u, since: "
              "'2026-08-20T12:05:00Z', error: no answer}",
              &mute);
    assert_non_null(strstr(mute.data, "Error      no answer\n"));
    show_text("{running: true, directory: /d, pid: 42, verb: up, version: '1', url: u, since: "
              "'2026-08-20T12:05:00Z', writable: false, writesRefused: disk is full}",
              &full);
    assert_non_null(strstr(full.data, "Writes     refused: disk is full\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_job_tables),  cmocka_unit_test(test_job_page),
        cmocka_unit_test(test_events),      cmocka_unit_test(test_queue_tables),
        cmocka_unit_test(test_flow_tables), cmocka_unit_test(test_whole_objects),
        cmocka_unit_test(test_pod_tables),  cmocka_unit_test(test_a_server_on_a_page),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, use_utc, NULL);
}
