// SPDX-License-Identifier: Apache-2.0
// Whole lives of jobs: policies, completion, retries, scaling. The numbers in the names only order
// the cases; job_test.c has the missing ones.
#include "controllers/job_priv.h"
#include "controllers/job_rig_test.h"

static const char *note_of(const char *pod, const char *key)
{
    static char text[80];
    const struct json *notes = json_at(rig_get(&rig, API_POD, pod), "metadata.annotations");
    const struct hk_str s = json_str(json_get(notes, key), HK_STR("none"));

    snprintf(text, sizeof(text), "%.*s", HK_FMT(s));
    return text;
}

/* Counts Events with that reason whose message contains the word. */
struct event_search {
    const char *reason, *word;
    uint32_t n;
};

static void search_event(void *ctx, const struct api_object *o)
{
    struct event_search *s = ctx;

    s->n += hk_str_is(json_str(json_get(&o->root, "reason"), HK_STR("")), s->reason) &&
            hk_str_contains(json_str(json_get(&o->root, "message"), HK_STR("")), s->word);
}

static uint32_t events(const char *reason, const char *word)
{
    struct event_search s = {reason, word, 0};

    port_mem_each(rig.mem, api_kind(API_EVENT), search_event, &s);
    return s.n;
}

/* ---- policies ---- */

#define SUCCESS_AND_FAIL "  tasks:\n" TASK("success", "2", "") TASK("fail", "2", "")

static void example_1_restart_until_retries_are_used_up(void **state)
{
    start(JOB("  minAvailable: 4\n"
              "  policies: [{event: PodFailed, action: RestartJob}]\n" SUCCESS_AND_FAIL));
    rig_end(&rig, "j-fail-0", 1);
    expect("status.state.phase", "\"Restarting\"");
    expect("status.terminating", "3"); /* the failed pod was deleted at once */
    live_on();
    expect("status.retryCount", "1");
    expect("status.version", "1");
    rig_end(&rig, "j-fail-0", 1);
    live_on();
    rig_end_now(&rig, "j-fail-0", 1);
    rig_end(&rig, "j-fail-1", 1);
    live_on();
    phases(
        "Pending Running Restarting Pending Running Restarting Pending Running Restarting Failed");
    expect("status.retryCount", "3");
    pods("j-fail-0 j-fail-1");
}

static void example_2_terminate_tells_one_event(void **state)
{
    start(JOB("  minAvailable: 4\n"
              "  policies: [{event: PodFailed, action: TerminateJob}]\n" SUCCESS_AND_FAIL));
    rig_end(&rig, "j-fail-0", 1);
    live_on();
    phases("Pending Running Terminating Terminated");
    pods("j-fail-0");
    expect("status.retryCount", "");
    expect("status.failed", "1");
    assert_int_equal(events("ExecuteAction", "TerminateJob"), 1);
}

static void example_3_resume_keeps_the_failed_pod(void **state)
{
    start(JOB("  minAvailable: 4\n"
              "  policies: [{event: PodFailed, action: AbortJob}]\n" SUCCESS_AND_FAIL));
    rig_end(&rig, "j-fail-0", 1);
    live_on();
    phases("Pending Running Aborting Aborted");
    pods("j-fail-0");
    rig_put(&rig, COMMAND("ResumeJob"));
    live_on();
    phases("Pending Running Aborting Aborted Restarting Pending Running");
    expect("status.retryCount", "1");
    expect("status.failed", "1");
    expect("status.running", "3");
    assert_string_equal(note_of("j-fail-0", API_ANN_JOB_VERSION), "0");
}

static void example_4_a_restarted_pod_arms_no_eviction(void **state)
{
    start(JOB("  minAvailable: 2\n"
              "  policies:\n"
              "  - {event: PodFailed, action: RestartPod}\n"
              "  - {event: PodEvicted, action: TerminateJob, timeout: 5m}\n"
              "  tasks:\n" TASK("w", "2", "")));
    rig_end(&rig, "j-w-1", 1);
    assert_int_equal(rig_count(&rig, API_PODGROUP), 1);
    live_on();
    rig_pass(&rig, 600);
    phases("Pending Running Restarting Pending Running");
    expect("status.retryCount", "1");
    assert_string_equal(note_of("j-w-0", API_ANN_JOB_RETRY_COUNT), "0");
    assert_string_equal(note_of("j-w-1", API_ANN_JOB_RETRY_COUNT), "1");
}

static void example_5_all_pods_are_of_the_next_generation(void **state)
{
    start(JOB("  minAvailable: 2\n  policies: [{event: PodEvicted, action: RestartJob}]\n"
              "  tasks:\n" TASK("delete", "1", "") TASK("other", "1", "")));
    rig_remove(&rig, API_POD, "j-delete-0");
    live_on();
    phases("Pending Running Restarting Pending Running");
    assert_string_equal(note_of("j-delete-0", API_ANN_JOB_VERSION), "1");
    assert_string_equal(note_of("j-other-0", API_ANN_JOB_VERSION), "1");
    assert_string_equal(note_of("j-other-0", API_ANN_JOB_RETRY_COUNT), "1");
}

/* Another writer set the status: the counter is at its maximum and stays there. */
static void counters_stop_at_their_end(void **state)
{
    start(JOB("  minAvailable: 1\n  policies: [{event: PodFailed, action: RestartJob}]\n"
              "  maxRetry: 2147483647\n  tasks:\n" TASK("w", "1", "")));
    rig_patch(&rig, API_POD, "j-w-0",
              "{metadata: {annotations: {" API_ANN_JOB_VERSION ": '2147483647'}}}");
    rig_patch(&rig, API_JOB, "j", "{status: {version: 2147483647, retryCount: 2147483646}}");
    rig_end(&rig, "j-w-0", 1);
    live_on();
    expect("status.version", "2147483647");
    expect("status.retryCount", "2147483647");
}

static void example_6_eviction_ends_the_job(void **state)
{
    start(JOB("  minAvailable: 2\n  policies: [{event: PodEvicted, action: TerminateJob}]\n"
              "  tasks:\n" TASK("w", "2", "")));
    rig_remove(&rig, API_POD, "j-w-0");
    live_on();
    phases("Pending Running Terminating Terminated");
    pods("");
}

static void example_6_eviction_aborts_the_job(void **state)
{
    start(JOB("  minAvailable: 2\n  policies: [{event: PodEvicted, action: AbortJob}]\n"
              "  tasks:\n" TASK("w", "2", "")));
    rig_remove(&rig, API_POD, "j-w-0");
    live_on();
    phases("Pending Running Aborting Aborted");
}

static void example_7_pods_that_start_match_no_star(void **state)
{
    start(JOB("  minAvailable: 2\n  policies: [{event: '*', action: RestartJob}]\n"
              "  tasks:\n" TASK("w", "2", "")));
    rig_pass(&rig, 60);
    phases("Pending Running");
}

static void example_8_a_list_of_events(void **state)
{
    start(JOB("  minAvailable: 2\n"
              "  policies: [{events: [PodEvicted, PodFailed, PodEvicted], action: TerminateJob}]\n"
              "  tasks:\n" TASK("w", "2", "")));
    rig_remove(&rig, API_POD, "j-w-0");
    live_on();
    phases("Pending Running Terminating Terminated");
}

static void example_9_another_exit_code(void **state)
{
    start(JOB("  minAvailable: 1\n  policies: [{exitCode: 3, action: RestartJob}]\n"
              "  tasks:\n" TASK_MIN("w", "2", "1", "")));
    rig_end(&rig, "j-w-0", 1);
    live_on();
    phases("Pending Running");
    rig_end(&rig, "j-w-1", 0);
    phases("Pending Running Completed");
}

static void example_11_task_policy_completes_the_job(void **state)
{
    start(JOB("  minAvailable: 3\n"
              "  tasks:\n" TASK("a", "2",
                                "    policies: [{event: TaskCompleted, action: "
                                "CompleteJob}]\n") TASK("b", "1", "")));
    rig_end(&rig, "j-a-0", 0);
    rig_end(&rig, "j-a-1", 0);
    live_on();
    phases("Pending Running Completing Completed");
    pods("j-a-0 j-a-1");
    expect("status.retryCount", "");
}

static void example_12_a_task_that_restarts_too_often(void **state)
{
    start(JOB("  minAvailable: 1\n  policies: [{event: TaskFailed, action: TerminateJob}]\n"
              "  tasks:\n" TASK("w", "1", "    maxRetry: 3\n")));
    rig_patch(&rig, API_POD, "j-w-0",
              "status: {containerStatuses: [{name: main, ready: true, restartCount: 2}]}");
    live_on();
    phases("Pending Running");
    rig_patch(&rig, API_POD, "j-w-0",
              "status: {containerStatuses: [{name: main, ready: true, restartCount: 4}]}");
    live_on();
    phases("Pending Running Terminating Terminated");
}

/* Upstream ignores the second time. */
static void example_13_a_group_that_falls_apart_twice(void **state)
{
    start(JOB("  minAvailable: 2\n  policies: [{event: Unknown, action: RestartJob}]\n"
              "  tasks:\n" TASK("w", "2", "")));
    rig_patch(&rig, API_PODGROUP, "j-u-j", "status: {phase: Unknown}");
    live_on();
    phases("Pending Running Restarting Pending Running");
    rig_patch(&rig, API_PODGROUP, "j-u-j", "status: {phase: Unknown}");
    live_on();
    phases("Pending Running Restarting Pending Running Restarting Pending Running");
}

static void example_13_abort(void **state)
{
    start(JOB("  minAvailable: 2\n  policies: [{event: Unknown, action: AbortJob}]\n"
              "  tasks:\n" TASK("w", "2", "")));
    rig_patch(&rig, API_PODGROUP, "j-u-j", "status: {phase: Unknown}");
    live_on();
    phases("Pending Running Aborting Aborted");
}

struct judge_case {
    const char *what;
    struct job_request r;
    const char *policy;
    enum api_job_action action;
    int64_t delay_s;
};

#define REQUEST(e) .event = API_EVENT_##e, .task = "w", .pod = "p", .pod_uid = "u", .partition = ""

static const struct judge_case judge_cases[] = {
    {"a command",
     {REQUEST(COMMAND_ISSUED), .forced = true, .action = API_ACTION_ABORT_JOB, .owner = ""},
     "{event: '*', action: RestartJob}",
     API_ACTION_ABORT_JOB,
     0},
    {"out of sync",
     {REQUEST(OUT_OF_SYNC), .owner = "u-j"},
     "{event: '*', action: RestartJob}",
     API_ACTION_SYNC_JOB,
     0},
    {"running",
     {REQUEST(POD_RUNNING), .owner = "u-j"},
     "{event: '*', action: RestartJob}",
     API_ACTION_SYNC_JOB,
     0},
    {"another job's pod",
     {REQUEST(POD_EVICTED), .owner = "other"},
     "{event: PodEvicted, action: TerminateJob}",
     API_ACTION_SYNC_JOB,
     0},
    {"our pod",
     {REQUEST(POD_EVICTED), .owner = "u-j"},
     "{event: PodEvicted, action: TerminateJob}",
     API_ACTION_TERMINATE_JOB,
     0},
    {"pending too long",
     {REQUEST(POD_PENDING), .owner = "u-j"},
     "{event: PodPending, action: RestartPod, timeout: 10s}",
     API_ACTION_RESTART_POD,
     10},
    {"pending",
     {REQUEST(POD_PENDING), .owner = "u-j"},
     "{event: PodPending, action: RestartPod}",
     API_ACTION_SYNC_JOB,
     0},
    {"pending and any",
     {REQUEST(POD_PENDING), .owner = "u-j"},
     "{event: '*', action: RestartPod}",
     API_ACTION_SYNC_JOB,
     0},
    {"an exit code",
     {REQUEST(POD_FAILED), .exit_code = 7, .owner = "u-j"},
     "{exitCode: 7, action: AbortJob}",
     API_ACTION_ABORT_JOB,
     0},
    {"a change without name",
     {REQUEST(NONE), .owner = ""},
     "{event: '*', action: AbortJob}",
     API_ACTION_SYNC_JOB,
     0},
};

static void example_14_policies(void **state)
{
    for (unsigned i = 0; i < HK_LEN(judge_cases); i++) {
        const struct judge_case *c = &judge_cases[i];
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        const char *yaml =
            hk_arena_printf(&a, "%s  policies: [%s]\n  tasks:\n%s", JOB("  minAvailable: 1\n"),
                            c->policy, TASK("w", "1", ""));
        struct yaml_docs docs = rig_yaml(yaml, &a);
        struct api_job job;
        struct job_verdict v;
        char have[80], want[80];

        json_set_cstr((struct json *)json_get(&docs.at[0], "metadata"), &a, "uid", "u-j");
        assert_int_equal(api_job_decode(&docs.at[0], &a, &job, NULL), 0);
        v = job_choose_action(&job, &c->r);
        snprintf(have, sizeof(have), "%s: %s %lld", c->what, api_job_action_name(v.action),
                 (long long)v.delay_ns / 1000000000);
        snprintf(want, sizeof(want), "%s: %s %lld", c->what, api_job_action_name(c->action),
                 (long long)c->delay_s);
        assert_string_equal(have, want);
    }
}

static void example_15_restart_of_one_task(void **state)
{
    start(JOB("  minAvailable: 3\n  policies: [{event: PodFailed, action: RestartTask}]\n"
              "  tasks:\n" TASK("task1", "2", "") TASK("task2", "1", "")));
    rig_end(&rig, "j-task1-0", 1);
    live_on();
    assert_string_equal(note_of("j-task1-0", API_ANN_JOB_RETRY_COUNT), "1");
    assert_string_equal(note_of("j-task1-1", API_ANN_JOB_RETRY_COUNT), "1");
    assert_string_equal(note_of("j-task2-0", API_ANN_JOB_RETRY_COUNT), "0");
}

static void example_15_a_restart_that_concerns_no_pod(void **state)
{
    start(JOB("  minAvailable: 1\n  tasks:\n" TASK("w", "1", "")));
    rig_put(&rig, COMMAND("RestartTask"));
    live_on();
    phases("Pending Running Restarting Pending Running");
    expect("status.retryCount", "1");
    assert_string_equal(note_of("j-w-0", API_ANN_JOB_RETRY_COUNT), "0");
}

static void example_16_a_partition_restarts_alone(void **state)
{
    start(JOB("  minAvailable: 4\n  policies: [{event: PodEvicted, action: RestartPartition}]\n"
              "  tasks:\n" TASK("task1", "4",
                                "    partitionPolicy: {totalPartitions: 2, partitionSize: 2}\n")));
    rig_remove(&rig, API_POD, "j-task1-0");
    live_on();
    expect("status.retryCount", "1");
    assert_string_equal(note_of("j-task1-0", API_ANN_JOB_RETRY_COUNT), "1");
    assert_string_equal(note_of("j-task1-1", API_ANN_JOB_RETRY_COUNT), "1");
    assert_string_equal(note_of("j-task1-2", API_ANN_JOB_RETRY_COUNT), "0");
    assert_string_equal(note_of("j-task1-3", API_ANN_JOB_RETRY_COUNT), "0");
}

/* ---- completion and retries ---- */

static void example_17_enough_successes(void **state)
{
    start(JOB("  minAvailable: 2\n  minSuccess: 2\n"
              "  tasks:\n" TASK_MIN("short", "3", "1", "") TASK_MIN("log", "2", "1", "")));
    rig_end(&rig, "j-short-0", 0);
    phases("Pending Running");
    rig_end(&rig, "j-short-1", 0);
    live_on();
    phases("Pending Running Completed");
    pods("j-short-0 j-short-1");
    expect("status.succeeded", "2");
    expect("status.terminating", "");
}

static void example_19_one_success_is_enough(void **state)
{
    start(JOB("  minAvailable: 1\n  tasks:\n" TASK_MIN("w", "3", "1", "")));
    rig_end(&rig, "j-w-0", 1);
    rig_end(&rig, "j-w-1", 1);
    rig_end(&rig, "j-w-2", 0);
    phases("Pending Running Completed");
}

static void example_20_a_task_below_its_minimum(void **state)
{
    start(JOB("  minAvailable: 3\n"
              "  tasks:\n" TASK_MIN("a", "2", "2", "") TASK_MIN("b", "2", "1", "")));
    rig_end(&rig, "j-a-0", 0);
    rig_end(&rig, "j-a-1", 1);
    rig_end(&rig, "j-b-0", 0);
    rig_end(&rig, "j-b-1", 0);
    phases("Pending Running Failed");
}

static void example_22_a_gang_that_is_lost(void **state)
{
    start(JOB("  minAvailable: 2\n  tasks:\n" TASK_MIN("w", "3", "2", "")));
    rig_remove(&rig, API_POD, "j-w-0");
    rig_settle(&rig);
    phases("Pending Running");
    rig_remove(&rig, API_POD, "j-w-1");
    rig_settle(&rig);
    phases("Pending Running Pending");
    rig_run(&rig);
    phases("Pending Running Pending Running");
}

static void example_23_a_job_being_deleted_is_left_alone(void **state)
{
    rig_put(&rig, JOB("  minAvailable: 2\n  tasks:\n" TASK("w", "2", "")));
    rig_enqueue(&rig);
    rig_patch(&rig, API_JOB, "j", "metadata: {deletionTimestamp: '2026-01-02T10:00:01Z'}");
    rig_settle(&rig);
    rig_remove(&rig, API_POD, "j-w-0");
    rig_remove(&rig, API_PODGROUP, "j-u-j");
    rig_settle(&rig);
    pods("j-w-1");
    rig_remove(&rig, API_JOB, "j");
    rig_remove(&rig, API_POD, "j-w-1");
    rig_settle(&rig);
    pods("");
    assert_int_equal(rig_count(&rig, API_PODGROUP), 0);
}

static void example_24_the_last_failed_pod_stays(void **state)
{
    start(JOB_HEAD "  maxRetry: 2\n  minAvailable: 2\n"
                   "  policies: [{event: PodFailed, action: RestartJob}]\n"
                   "  tasks:\n" TASK("running-task", "1", "") TASK("failed-task", "1", ""));
    for (int i = 0; i < 2; i++) {
        rig_end(&rig, "j-failed-task-0", 1);
        live_on();
    }
    expect("status.state.phase", "\"Failed\"");
    expect("status.retryCount", "2");
    pods("j-failed-task-0");
    rig_expect(&rig, API_POD, "j-failed-task-0", "metadata.deletionTimestamp", "");
}

static void example_25_completed_at_the_first_try(void **state)
{
    start(JOB_HEAD "  maxRetry: 1\n  minAvailable: 2\n"
                   "  policies: [{event: TaskCompleted, action: CompleteJob}]\n"
                   "  tasks:\n" TASK("running-task", "1", "") TASK("succeeded-task", "1", ""));
    rig_end(&rig, "j-succeeded-task-0", 0);
    live_on();
    phases("Pending Running Completing Completed");
    expect("status.retryCount", "");
    pods("j-succeeded-task-0");
}

static void example_27_resuming_uses_up_retries(void **state)
{
    start(JOB("  minAvailable: 1\n  tasks:\n" TASK("w", "1", "")));
    for (int i = 0; i < 3; i++) {
        rig_put(&rig, COMMAND("AbortJob"));
        live_on();
        expect("status.state.phase", "\"Aborted\"");
        rig_put(&rig, COMMAND("ResumeJob"));
        live_on();
    }
    expect("status.state.phase", "\"Failed\"");
    expect("status.retryCount", "3");
}

/* ---- scaling, PodGroup, volumes, dependencies ---- */

static void example_28_scaling_up(void **state)
{
    start(JOB("  minAvailable: 2\n  plugins: {svc: []}\n  tasks:\n" TASK("w", "2", "")));
    rig_patch(&rig, API_JOB, "j", "spec:\n  minAvailable: 4\n  tasks:\n" TASK("w", "4", ""));
    live_on();
    pods("j-w-0 j-w-1 j-w-2 j-w-3");
    expect("status.running", "4");
    expect("status.minAvailable", "4");
    rig_expect(&rig, API_PODGROUP, "j-u-j", "spec.minMember", "4");
    rig_expect(&rig, API_PODGROUP, "j-u-j", "spec.minTaskMember", "{\"w\":4}");
    rig_expect(&rig, API_PODGROUP, "j-u-j", "spec.minResources.cpu", "\"400m\"");
    rig_expect(&rig, API_CONFIGMAP, "j-svc", "data.VC_W_HOSTS",
               "\"j-w-0.j,j-w-1.j,j-w-2.j,j-w-3.j\"");
    rig_expect(&rig, API_CONFIGMAP, "j-svc", "data.VC_W_NUM", "\"4\"");
}

static void example_29_scaling_to_nothing_and_back(void **state)
{
    start(JOB("  minAvailable: 2\n  tasks:\n" TASK("w", "2", "")));
    rig_patch(&rig, API_JOB, "j", "spec:\n  minAvailable: 0\n  tasks:\n" TASK("w", "0", ""));
    live_on();
    pods("");
    phases("Pending Running");
    rig_patch(&rig, API_JOB, "j", "spec:\n  minAvailable: 2\n  tasks:\n" TASK("w", "2", ""));
    live_on();
    pods("j-w-0 j-w-1");
    expect("status.running", "2");
}

#define GPU_TASK(name)                                                                             \
    "  - name: " name "\n"                                                                         \
    "    replicas: 1\n"                                                                            \
    "    minAvailable: 1\n"                                                                        \
    "    template: {spec: {containers: [{name: main, image: i, resources: {"                       \
    "requests: {cpu: 1, memory: 1000Mi, nvidia.com/gpu: 1}, "                                      \
    "limits: {cpu: 1, memory: 1000Mi, nvidia.com/gpu: 1}}}]}}\n"

static void assert_amounts(const struct json *have, const char *want)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct json doc;

    assert_int_equal(json_parse(hk_str(want), 0, &a, &doc, NULL), 0);
    if (!json_equal(have, &doc)) {
        json_write(have, &text);
        assert_string_equal(text.data, want);
    }
}

static void example_30_resources_of_the_group(void **state)
{
    rig_put(&rig, JOB("  minAvailable: 2\n  tasks:\n" GPU_TASK("a") GPU_TASK("b")));
    rig_settle(&rig);
    expect("status.state.phase", "\"Pending\"");
    assert_amounts(json_at(rig_get(&rig, API_PODGROUP, "j-u-j"), "spec.minResources"),
                   "{\"pods\":\"2\",\"count/pods\":\"2\",\"cpu\":\"2\",\"requests.cpu\":\"2\","
                   "\"limits.cpu\":\"2\",\"memory\":\"2000Mi\",\"requests.memory\":\"2000Mi\","
                   "\"limits.memory\":\"2000Mi\",\"nvidia.com/gpu\":\"2\","
                   "\"requests.nvidia.com/gpu\":\"2\"}");
}

#define SIZED_TASK(name, min, cpu, class)                                                          \
    "  - name: " name "\n"                                                                         \
    "    replicas: 2\n"                                                                            \
    "    minAvailable: " min "\n"                                                                  \
    "    template: {spec: {priorityClassName: " class ", containers: [{name: main, image: i, "     \
                                                      "resources: {requests: {cpu: " cpu           \
                                                      "}}}]}}\n"

static const struct {
    const char *job, *cpu, *pods;
} min_cases[] = {
    {JOB("  minAvailable: 3\n  tasks:\n" SIZED_TASK("master", "1", "50m", "high")
             SIZED_TASK("worker", "1", "100m", "low")),
     "\"200m\"", "\"3\""},
    {JOB("  minAvailable: 3\n  tasks:\n" SIZED_TASK("master", "1", "50m", "low")
             SIZED_TASK("worker", "1", "100m", "high")),
     "\"250m\"", "\"3\""},
    {JOB("  minAvailable: 4\n  tasks:\n" SIZED_TASK("master", "1", "50m", "low")
             SIZED_TASK("worker", "1", "100m", "high")),
     "\"300m\"", "\"4\""},
    {JOB("  minAvailable: 2\n  tasks:\n" SIZED_TASK("master", "2", "50m", "low")
             SIZED_TASK("worker", "1", "100m", "low")),
     "\"100m\"", "\"2\""},
};

/* docs/reference/controllers.md section 5.2. */
static void min_resources_go_by_priority(void **state)
{
    for (unsigned i = 0; i < HK_LEN(min_cases); i++) {
        job_rig_teardown(NULL);
        job_rig_setup(NULL);
        rig_put(&rig, "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\n"
                      "metadata: {name: high}\nvalue: 100\n---\n"
                      "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\n"
                      "metadata: {name: low}\nvalue: 1\n");
        rig_put(&rig, min_cases[i].job);
        rig_settle(&rig);
        rig_expect(&rig, API_PODGROUP, "j-u-j", "spec.minResources.cpu", min_cases[i].cpu);
        rig_expect(&rig, API_PODGROUP, "j-u-j", "spec.minResources.pods", min_cases[i].pods);
    }
}

#define PARTED(more)                                                                               \
    JOB("  minAvailable: 3\n"                                                                      \
        "  tasks:\n"                                                                               \
        "  - name: task1\n"                                                                        \
        "    replicas: 6\n"                                                                        \
        "    partitionPolicy: {totalPartitions: 2, partitionSize: 3" more "}\n" TEMPLATE)

static void example_31_partitions_in_the_group(void **state)
{
    rig_put(&rig, PARTED(""));
    rig_settle(&rig);
    rig_expect(&rig, API_PODGROUP, "j-u-j", "spec.minTaskMember", "{\"task1\":6}");
    job_rig_teardown(NULL);
    job_rig_setup(NULL);
    rig_put(&rig, PARTED(", minPartitions: 1"));
    rig_enqueue(&rig);
    rig_expect(&rig, API_PODGROUP, "j-u-j", "spec.minTaskMember", "{\"task1\":3}");
    rig_expect(&rig, API_PODGROUP, "j-u-j", "spec.subGroupPolicy",
               "[{\"name\":\"task1\",\"subGroupSize\":3,\"minSubGroups\":1,\"labelSelector\":"
               "{\"matchLabels\":{\"volcano.sh/task-spec\":\"task1\"}},"
               "\"matchLabelKeys\":[\"volcano.sh/partition-id\"]}]");
    for (int i = 0; i < 6; i++) {
        char name[16], want[2] = {(char)('0' + i / 3), '\0'};
        const struct json *labels;

        snprintf(name, sizeof(name), "j-task1-%d", i);
        labels = json_at(rig_get(&rig, API_POD, name), "metadata.labels");
        assert_true(hk_str_is(json_str(json_get(labels, API_KEY_PARTITION_ID), HK_STR("")), want));
    }
}

static void example_32_two_volumes_of_one_claim(void **state)
{
    rig_put(&rig, "apiVersion: v1\nkind: PersistentVolumeClaim\n"
                  "metadata: {name: data, namespace: d}\n");
    start(JOB("  minAvailable: 1\n"
              "  volumes:\n"
              "  - {mountPath: /a, volumeClaimName: data}\n"
              "  - {mountPath: /b, volumeClaimName: data}\n"
              "  tasks:\n" TASK("w", "1", "")));
    assert_int_equal(json_at(rig_get(&rig, API_POD, "j-w-0"), "spec.volumes")->len, 1);
    assert_int_equal(
        json_get(json_item(json_at(rig_get(&rig, API_POD, "j-w-0"), "spec.containers"), 0),
                 "volumeMounts")
            ->len,
        1);
    expect("status.controlledResources", "{\"volume-pvc-data\":\"data\"}");
}

#define LEANING                                                                                    \
    JOB("  minAvailable: 1\n  tasks:\n" TASK("a", "2", "")                                         \
            TASK("b", "1", "    dependsOn: {name: [a]}\n"))

static void example_33_which_tasks_satisfy_dependencies(void **state)
{
    start(LEANING);
    pods("j-a-0 j-a-1 j-b-0");
    job_rig_teardown(NULL);
    job_rig_setup(NULL);
    rig_put(&rig, LEANING);
    rig_enqueue(&rig);
    rig_patch(&rig, API_POD, "j-a-0",
              "status: {phase: Running, containerStatuses: [{name: main, ready: true}]}");
    rig_patch(&rig, API_POD, "j-a-1",
              "status: {phase: Running, containerStatuses: [{name: main, ready: true}, {name: x, "
              "ready: false}]}");
    rig_settle(&rig);
    pods("j-a-0 j-a-1");
    rig_end(&rig, "j-a-1", 0);
    pods("j-a-0 j-a-1 j-b-0");
}

static void any_of_several_dependencies_will_do(void **state)
{
    rig_put(&rig, JOB("  minAvailable: 1\n  tasks:\n" TASK("a", "1", "") TASK("b", "1", "")
                          TASK("c", "1", "    dependsOn: {name: [a, b], iteration: any}\n")));
    rig_enqueue(&rig);
    pods("j-a-0 j-b-0");
    rig_patch(&rig, API_POD, "j-b-0",
              "status: {phase: Running, containerStatuses: [{name: main, ready: true}]}");
    rig_settle(&rig);
    pods("j-a-0 j-b-0 j-c-0");
}

/* ---- traces ---- */

static void trace_b_every_object_is_of_the_new_generation(void **state)
{
    start(JOB("  minAvailable: 3\n  policies: [{event: PodFailed, action: RestartJob}]\n"
              "  plugins: {svc: []}\n  tasks:\n" TASK("w", "3", "")));
    rig_end(&rig, "j-w-0", 1);
    rig_settle(&rig);
    expect("status.state.phase", "\"Restarting\"");
    expect("status.terminating", "2"); /* the failed pod was deleted at once */
    assert_int_equal(rig_count(&rig, API_CONFIGMAP), 1);
    live_on();
    expect("status.state.phase", "\"Running\"");
    for (int i = 0; i < 3; i++) {
        char name[16];

        snprintf(name, sizeof(name), "j-w-%d", i);
        assert_string_equal(note_of(name, API_ANN_JOB_VERSION), "1");
        assert_string_equal(note_of(name, API_ANN_JOB_RETRY_COUNT), "1");
    }
}

static void trace_c_the_others_run_on(void **state)
{
    start(JOB("  minAvailable: 4\n  policies: [{event: PodFailed, action: RestartPod}]\n"
              "  tasks:\n" TASK("worker", "4", "")));
    rig_end(&rig, "j-worker-1", 1);
    live_on();
    phases("Pending Running Restarting Pending Running");
    expect("status.version", "");
    expect("status.running", "4");
    rig_expect(&rig, API_PODGROUP, "j-u-j", "status.phase", "\"Inqueue\"");
}

/* Unlike upstream, also for finished jobs. */
static void trace_f_a_new_controller_writes_nothing(void **state)
{
    start(JOB("  minAvailable: 2\n  plugins: {svc: []}\n  tasks:\n" TASK("w", "2", "")));
    for (int i = 0; i < 2; i++) {
        const uint64_t rv = port_mem_rv(rig.mem);

        rig_restart(&rig);
        rig_pass(&rig, 60);
        assert_int_equal(port_mem_rv(rig.mem), rv);
        if (i == 0) {
            rig_end(&rig, "j-w-0", 0);
            rig_end(&rig, "j-w-1", 0);
            phases("Pending Running Completed");
        }
    }
}

#define test(name) cmocka_unit_test_setup_teardown(name, job_rig_setup, job_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(example_1_restart_until_retries_are_used_up),
        test(example_2_terminate_tells_one_event),
        test(example_3_resume_keeps_the_failed_pod),
        test(example_4_a_restarted_pod_arms_no_eviction),
        test(example_5_all_pods_are_of_the_next_generation),
        test(counters_stop_at_their_end),
        test(example_6_eviction_ends_the_job),
        test(example_6_eviction_aborts_the_job),
        test(example_7_pods_that_start_match_no_star),
        test(example_8_a_list_of_events),
        test(example_9_another_exit_code),
        test(example_11_task_policy_completes_the_job),
        test(example_12_a_task_that_restarts_too_often),
        test(example_13_a_group_that_falls_apart_twice),
        test(example_13_abort),
        test(example_14_policies),
        test(example_15_restart_of_one_task),
        test(example_15_a_restart_that_concerns_no_pod),
        test(example_16_a_partition_restarts_alone),
        test(example_17_enough_successes),
        test(example_19_one_success_is_enough),
        test(example_20_a_task_below_its_minimum),
        test(example_22_a_gang_that_is_lost),
        test(example_23_a_job_being_deleted_is_left_alone),
        test(example_24_the_last_failed_pod_stays),
        test(example_25_completed_at_the_first_try),
        test(example_27_resuming_uses_up_retries),
        test(example_28_scaling_up),
        test(example_29_scaling_to_nothing_and_back),
        test(example_30_resources_of_the_group),
        test(min_resources_go_by_priority),
        test(example_31_partitions_in_the_group),
        test(example_32_two_volumes_of_one_claim),
        test(example_33_which_tasks_satisfy_dependencies),
        test(any_of_several_dependencies_will_do),
        test(trace_b_every_object_is_of_the_new_generation),
        test(trace_c_the_others_run_on),
        test(trace_f_a_new_controller_writes_nothing),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("controllers/job-example", tests, NULL, NULL);
}
