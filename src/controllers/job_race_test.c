// SPDX-License-Identifier: Apache-2.0
// Bugs of the past with jobs, in Volcano and here, one test per symptom. A test is named after the
// bug and shows that it does not happen.
#include "controllers/fault_rig_test.h"
#include "controllers/job_rig_test.h"

static struct fault_rig fault = {.rig = &rig};

static int setup(void **state)
{
    fault_rig_open(&fault, job_rig_types, HK_LEN(job_rig_types), FAULT_NONE, 0);
    rig_put(&rig, QUEUE);
    rig_manager(&rig);
    return 0;
}

static int teardown(void **state)
{
    fault_rig_close(&fault);
    return 0;
}

/* Stops the controller. */
static void away(void)
{
    manager_free(rig.m);
    rig.m = NULL;
}

static void back(void)
{
    rig_manager(&rig);
    live_on();
}

static uint32_t writes(enum port_verb verb)
{
    return (uint32_t)manager_metrics(rig.m)->writes[verb];
}

/* The position of the text in the log of calls; the end when it is missing. */
static size_t called(const char *words)
{
    const struct hk_str log = port_mem_log(rig.mem);
    const char *at = log.n > 0 ? strstr(log.s, words) : NULL;

    return at ? (size_t)(at - log.s) : log.n;
}

static void count_event(void *ctx, const struct api_object *o)
{
    struct rig_count *c = ctx;

    c->n += hk_str_is(json_str(json_get(&o->root, "reason"), HK_STR("")), c->names->data);
}

static uint32_t events(const char *reason)
{
    HK_AUTO(hk_buf_fini) struct hk_buf word = {0};
    struct rig_count c = {.names = &word};

    hk_buf_adds(&word, reason);
    port_mem_each(rig.mem, api_kind(API_EVENT), count_event, &c);
    return c.n;
}

#define TWO(policies) JOB("  minAvailable: 2\n" policies "  tasks:\n" TASK("w", "2", ""))
#define ONE(policies) JOB("  minAvailable: 1\n" policies "  tasks:\n" TASK("w", "1", ""))

/* Volcano issue 4616. */
static void counts_vanish_when_the_job_ends(void **state)
{
    start(TWO("  policies: [{event: PodFailed, action: TerminateJob}]\n"));
    rig_end(&rig, "j-w-0", 0);
    rig_end(&rig, "j-w-1", 1);
    live_on();
    expect("status.state.phase", "\"Terminated\"");
    expect("status.succeeded", "1");
    expect("status.failed", "1");
    expect("status.taskStatusCount", "{\"w\":{\"phase\":{\"Succeeded\":1,\"Failed\":1}}}");
}

#define AGAIN                                                                                      \
    "apiVersion: batch.volcano.sh/v1alpha1\n"                                                      \
    "kind: Job\n"                                                                                  \
    "metadata: {name: j, namespace: d, uid: second, creationTimestamp: '2026-01-02T10:00:01Z'}\n"  \
    "spec:\n"                                                                                      \
    "  queue: q\n"                                                                                 \
    "  minAvailable: 1\n"                                                                          \
    "  policies: [{event: '*', action: TerminateJob}]\n"                                           \
    "  tasks:\n" TASK("w", "1", "")

/* Volcano issue 5973. */
static void a_job_made_again_under_its_name_is_forgotten(void **state)
{
    start(ONE(""));
    rig_remove(&rig, API_JOB, "j");
    rig_put(&rig, AGAIN);
    rig_pass(&rig, 5);
    rig_enqueue(&rig);
    rig_remove(&rig, API_PODGROUP, "j-u-j"); /* garbage-collected with their owner */
    rig_remove(&rig, API_POD, "j-w-0");
    rig_pass(&rig, 5);
    live_on();
    rig_expect(&rig, API_POD, "j-w-0", "metadata.ownerReferences",
               "[{\"apiVersion\":\"batch.volcano.sh/v1alpha1\",\"kind\":\"Job\",\"name\":\"j\","
               "\"uid\":\"second\",\"controller\":true,\"blockOwnerDeletion\":true}]");
    expect("status.state.phase", "\"Running\"");
}

/* Volcano issue 5986. */
static void the_end_of_an_old_pod_is_taken_for_that_of_the_new(void **state)
{
    rig_put(&rig, ONE("  policies: [{event: PodPending, action: RestartPod, timeout: 10s}]\n"));
    rig_enqueue(&rig);
    fault.port.watches_paused = true;
    rig_pass(&rig, 11); /* deleted and created again, as our own answers show */
    fault_port_resume_watches(&fault.port);
    rig_settle(&rig);
    expect("status.pending", "1");
    expect("status.retryCount", "1");
    pods("j-w-0");
    assert_int_equal(writes(PORT_CREATE), 3); /* the PodGroup, and the pod twice */
}

/* Volcano issue 3357. */
static void a_job_whose_deletion_is_not_known_yet_makes_pods(void **state)
{
    rig_put(&rig, ONE("  policies: [{event: PodPending, action: RestartJob, timeout: 10s}]\n"));
    rig_enqueue(&rig);
    fault.port.watches_paused = true;
    rig_remove(&rig, API_JOB, "j");
    rig_remove(&rig, API_PODGROUP, "j-u-j");
    rig_remove(&rig, API_POD, "j-w-0");
    rig_pass(&rig, 60);
    pods("");
    assert_int_equal(rig_count(&rig, API_PODGROUP), 0);
    fault_port_resume_watches(&fault.port);
    rig_pass(&rig, 60);
    pods("");
    assert_int_equal(rig_count(&rig, API_PODGROUP), 0);
}

/* Volcano issue 3770. */
static void a_pod_of_an_earlier_job_ends_the_new_one(void **state)
{
    start(ONE(""));
    rig_remove(&rig, API_JOB, "j");
    rig_remove(&rig, API_PODGROUP, "j-u-j");
    rig_put(&rig, AGAIN);
    rig_pass(&rig, 1);
    rig_end(&rig, "j-w-0", 1);
    rig_remove(&rig, API_POD, "j-w-0");
    rig_pass(&rig, 5);
    live_on();
    expect("status.state.phase", "\"Running\"");
}

/* Volcano issue 3967. */
static void a_pod_that_fails_while_we_are_away_is_overlooked(void **state)
{
    start(TWO("  policies: [{event: PodFailed, action: RestartJob}]\n"));
    away();
    rig_end_now(&rig, "j-w-0", 1);
    back();
    phases("Pending Running Restarting Pending Running");
    expect("status.retryCount", "1");
}

/* Volcano issue 3967. */
static void a_task_that_completes_while_we_are_away_is_overlooked(void **state)
{
    start(JOB("  minAvailable: 2\n  policies: [{event: TaskCompleted, action: CompleteJob}]\n"
              "  tasks:\n" TASK("a", "1", "") TASK("b", "1", "")));
    away();
    rig_end_now(&rig, "j-a-0", 0);
    back();
    phases("Pending Running Completing Completed");
}

static void running_pods_are_taken_for_pending_after_a_restart(void **state)
{
    start(ONE("  policies: [{event: PodPending, action: RestartPod, timeout: 10s}]\n"));
    rig_restart(&rig);
    rig_pass(&rig, 60);
    phases("Pending Running");
}

/* Volcano issue 4743. */
static void a_pending_pod_does_not_restart_its_task(void **state)
{
    rig_put(&rig, JOB("  minAvailable: 2\n"
                      "  policies: [{event: PodPending, action: RestartTask, timeout: 10s}]\n"
                      "  tasks:\n" TASK("w", "2", "")));
    rig_enqueue(&rig);
    rig_pass(&rig, 11);
    live_on();
    phases("Pending Restarting Pending Running");
    expect("status.retryCount", "1");
}

/* Volcano issue 5885. */
static void a_pod_that_fails_while_being_deleted_is_no_failure(void **state)
{
    start(ONE("  policies:\n"
              "  - {event: PodFailed, action: AbortJob}\n"
              "  - {event: PodEvicted, action: RestartJob}\n"));
    rig_patch(&rig, API_POD, "j-w-0", "metadata: {deletionTimestamp: '2026-01-02T10:00:01Z'}\n");
    rig_end(&rig, "j-w-0", 137);
    live_on();
    phases("Pending Running Restarting Pending Running");
}

/* Volcano issue 4814. */
static void a_pod_is_deleted_before_it_is_marked(void **state)
{
    start(ONE("  policies: [{event: PodEvicted, action: RestartJob}]\n"));
    rig_put(&rig, COMMAND("RestartJob"));
    port_mem_log_clear(rig.mem);
    port_mem_fail(rig.mem, PORT_PATCH, 1, HK_EIO);
    rig_pass(&rig, 1);
    assert_true(called("patch pods d/j-w-0\ndelete pods d/j-w-0") < port_mem_log(rig.mem).n);
    assert_true(called("patch pods d/j-w-0\ndelete pods d/j-w-0") > called("patch pods"));
    live_on();
    expect("status.retryCount", "1");
    expect("status.version", "1");
}

/* Volcano issue 4072. */
static void scaling_down_is_taken_for_an_eviction(void **state)
{
    start(TWO("  policies: [{event: PodEvicted, action: TerminateJob}]\n"));
    rig_patch(&rig, API_JOB, "j", "spec:\n  minAvailable: 1\n  tasks:\n" TASK("w", "1", ""));
    live_on();
    phases("Pending Running");
    pods("j-w-0");
}

static void a_group_let_in_while_we_are_away_is_overlooked(void **state)
{
    rig_put(&rig, ONE(""));
    rig_settle(&rig);
    away();
    rig_patch(&rig, API_PODGROUP, "j-u-j", "status: {phase: Inqueue}");
    back();
    phases("Pending Running");
}

static void abort_is_swallowed_while_restarting(void **state)
{
    start(TWO("  policies: [{event: PodFailed, action: RestartJob}]\n"));
    rig_end(&rig, "j-w-0", 1);
    expect("status.state.phase", "\"Restarting\"");
    rig_put(&rig, COMMAND("AbortJob"));
    rig_settle(&rig);
    expect("status.state.phase", "\"Aborting\"");
    live_on();
    phases("Pending Running Restarting Aborting Aborted");
    pods("");
}

static void terminate_is_swallowed_while_restarting(void **state)
{
    start(TWO("  policies: [{event: PodFailed, action: RestartJob}]\n"));
    rig_end(&rig, "j-w-0", 1);
    rig_put(&rig, COMMAND("TerminateJob"));
    rig_settle(&rig);
    live_on();
    phases("Pending Running Restarting Terminating Terminated");
}

static void plugin_objects_go_when_one_pod_restarts(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf before = {0};

    start(JOB("  minAvailable: 2\n  policies: [{event: PodFailed, action: RestartPod}]\n"
              "  plugins: {svc: [], ssh: [--ssh-private-key=k]}\n  tasks:\n" TASK("w", "2", "")));
    hk_buf_adds(&before, rig_at(&rig, API_SECRET, "j-ssh", "metadata"));
    port_mem_log_clear(rig.mem);
    rig_end(&rig, "j-w-0", 1);
    live_on();
    expect("status.retryCount", "1");
    rig_expect(&rig, API_SECRET, "j-ssh", "metadata", before.data);
    assert_int_equal(called("delete configmaps"), port_mem_log(rig.mem).n);
    assert_int_equal(called("delete services"), port_mem_log(rig.mem).n);
    assert_int_equal(called("delete podgroups"), port_mem_log(rig.mem).n);
}

/* Volcano issue 2918. */
static void pods_are_killed_before_the_status_says_so(void **state)
{
    start(TWO("  policies: [{event: PodFailed, action: RestartJob}]\n"));
    port_mem_log_clear(rig.mem);
    rig_end(&rig, "j-w-0", 1);
    assert_true(called("update jobs/status d/j") < called("patch pods"));
    assert_true(called("patch pods") < called("delete pods"));
}

static void a_kill_that_fails_counts_twice(void **state)
{
    start(TWO("  policies: [{event: PodFailed, action: RestartJob}]\n"));
    port_mem_fail(rig.mem, PORT_UPDATE, 1, HK_EIO);
    port_mem_fail(rig.mem, PORT_UPDATE, 2, HK_ECONFLICT);
    rig_end(&rig, "j-w-0", 1);
    rig_pass(&rig, 5);
    live_on();
    phases("Pending Running Restarting Pending Running");
    expect("status.version", "1");
    expect("status.retryCount", "1");
}

/* Volcano issue 1029. */
static void a_missing_queue_ends_the_job(void **state)
{
    rig_remove(&rig, API_QUEUE, "q");
    rig_put(&rig, ONE(""));
    rig_pass(&rig, 7200);
    phases("Pending");
    rig_put(&rig, QUEUE);
    rig_enqueue(&rig);
    rig_run(&rig);
    phases("Pending Running");
}

/* Volcano issue 1029. */
static void a_missing_claim_ends_the_job(void **state)
{
    rig_put(&rig, ONE("  volumes: [{mountPath: /a, volumeClaimName: data}]\n"));
    rig_pass(&rig, 7200);
    phases("Pending");
    assert_int_equal(events("PVCError"), 1);
    rig_put(&rig, "apiVersion: v1\nkind: PersistentVolumeClaim\n"
                  "metadata: {name: data, namespace: d}\n");
    rig_pass(&rig, 600);
    rig_enqueue(&rig);
    rig_run(&rig);
    phases("Pending Running");
}

static void fail_creates(uint32_t n, enum hk_code code)
{
    for (uint32_t i = 1; i <= n; i++) {
        port_mem_fail(rig.mem, PORT_CREATE, i, code);
    }
}

/* Volcano issue 1029. */
static void an_exhausted_quota_ends_the_job(void **state)
{
    rig_put(&rig, ONE(""));
    rig_settle(&rig);
    rig_patch(&rig, API_PODGROUP, "j-u-j", "status: {phase: Inqueue}");
    fail_creates(60, HK_EDENIED);
    rig_pass(&rig, 7200);
    live_on();
    phases("Pending Running");
}

/* An error that waiting does not fix still ends the job. */
static void pods_that_are_refused_for_ever_are_tried_for_ever(void **state)
{
    rig_put(&rig, ONE(""));
    rig_settle(&rig);
    rig_patch(&rig, API_PODGROUP, "j-u-j", "status: {phase: Inqueue}");
    fail_creates(200, HK_EINVAL);
    rig_pass(&rig, 7200);
    phases("Pending Terminating Terminated");
}

/* Volcano issue 4100. */
static void each_try_makes_another_claim(void **state)
{
    rig_put(&rig, ONE("  volumes:\n"
                      "  - {mountPath: /a, volumeClaim: {accessModes: [ReadWriteOnce]}}\n"
                      "  - {mountPath: /b, volumeClaim: {accessModes: [ReadWriteOnce]}}\n"));
    fail_creates(5, HK_EIO);
    rig_pass(&rig, 60);
    assert_int_equal(rig_count(&rig, API_PVC), 2);
}

static void the_exit_code_of_a_sidecar_hides_the_real_one(void **state)
{
    start(ONE("  policies: [{exitCode: 3, action: AbortJob}]\n"));
    rig_patch(&rig, API_POD, "j-w-0",
              "status:\n"
              "  phase: Failed\n"
              "  containerStatuses:\n"
              "  - {name: sidecar, state: {terminated: {exitCode: 0}}}\n"
              "  - {name: main, state: {terminated: {exitCode: 3}}}\n");
    live_on();
    phases("Pending Running Aborting Aborted");
}

static void restarts_are_overlooked_when_the_phase_changes_too(void **state)
{
    rig_put(&rig, ONE("  policies: [{event: TaskFailed, action: TerminateJob}]\n"));
    rig_enqueue(&rig);
    rig_patch(&rig, API_POD, "j-w-0",
              "status:\n"
              "  phase: Running\n"
              "  containerStatuses: [{name: main, ready: true, restartCount: 0}]\n"
              "  initContainerStatuses: [{name: init, restartCount: 5}]\n");
    live_on();
    expect("status.state.phase", "\"Terminated\"");
}

/* Volcano issue 740. */
static void the_status_says_why_the_job_ended(void **state)
{
    start(ONE("  policies: [{event: PodFailed, action: TerminateJob}]\n"));
    rig_end(&rig, "j-w-0", 3);
    live_on();
    expect("status.state.phase", "\"Terminated\"");
    expect("status.state.reason", "\"TerminateJob\"");
    expect("status.state.message", "\"PodFailed: pod j-w-0, exit code 3\"");
}

/* Volcano issue 791: known, not changed. */
static void a_succeeded_pod_that_is_deleted_runs_again(void **state)
{
    start(TWO(""));
    rig_end(&rig, "j-w-0", 0);
    rig_remove(&rig, API_POD, "j-w-0");
    live_on();
    expect("status.running", "2");
}

/* Volcano issue 4489. */
static void counts_freeze_while_the_group_waits(void **state)
{
    start(TWO(""));
    rig_patch(&rig, API_PODGROUP, "j-u-j", "status: {phase: Pending}");
    rig_end(&rig, "j-w-0", 0);
    expect("status.succeeded", "1");
    expect("status.running", "1");
    rig_end(&rig, "j-w-1", 0);
    phases("Pending Running Completed");
}

/* Volcano issue 3745. */
static void a_waiting_group_is_reported_repeatedly(void **state)
{
    rig_put(&rig, ONE(""));
    rig_settle(&rig);
    rig_patch(&rig, API_PODGROUP, "j-u-j",
              "status: {phase: Pending, conditions: [{type: Unschedulable, status: 'True', "
              "message: no room, lastTransitionTime: '2026-01-02T10:00:00Z'}]}");
    for (int i = 0; i < 5; i++) {
        rig_pass(&rig, 10);
        rig_patch(&rig, API_JOB, "j",
                  i % 2 ? "metadata: {labels: {a: b}}"
                        : "metadata: {labels: "
                          "{a: c}}");
    }
    rig_settle(&rig);
    assert_int_equal(events("PodGroupPending"), 1);
}

/* Volcano issue 559. */
static void a_change_that_means_nothing_is_written(void **state)
{
    uint64_t rv;

    start(TWO("  plugins: {svc: []}\n"));
    rig_patch(&rig, API_POD, "j-w-0", "metadata: {labels: {a: b}}");
    rv = port_mem_rv(rig.mem);
    rig_pass(&rig, 60);
    assert_int_equal(port_mem_rv(rig.mem), rv);
    assert_int_equal(writes(PORT_CREATE), 6); /* ConfigMap, Service, policy, group, two pods */
}

static void an_action_that_waits_is_lost_by_a_restart(void **state)
{
    start(TWO("  policies: [{event: PodFailed, action: TerminateJob, timeout: 20s}]\n"));
    rig_end(&rig, "j-w-0", 1); /* at :05 by its own timestamp */
    rig_pass(&rig, 10);
    rig_restart(&rig);
    rig_pass(&rig, 10);
    phases("Pending Running");
    rig_pass(&rig, 10);
    live_on();
    phases("Pending Running Terminating Terminated");
}

static void an_action_that_waits_strikes_the_next_generation(void **state)
{
    start(TWO("  policies:\n"
              "  - {event: PodFailed, action: RestartJob, timeout: 10s}\n"));
    rig_end(&rig, "j-w-0", 1);
    rig_put(&rig, COMMAND("RestartJob"));
    live_on();
    expect("status.version", "1");
    rig_pass(&rig, 60);
    live_on();
    expect("status.version", "1");
    expect("status.retryCount", "1");
}

static void an_old_picture_makes_the_phase_flutter(void **state)
{
    rig_put(&rig, TWO("  policies: [{event: PodPending, action: RestartJob, timeout: 10s}]\n"));
    rig_enqueue(&rig);
    rig_patch(&rig, API_POD, "j-w-0",
              "spec: {nodeName: n1}\nstatus: {phase: Running, containerStatuses: [{name: main, "
              "ready: true}]}");
    rig_settle(&rig);
    fault.port.watches_paused = true;
    rig_pass(&rig, 11);
    fault_port_resume_watches(&fault.port);
    live_on();
    phases("Pending Restarting Pending Running");
    expect("status.retryCount", "1");
    expect("status.version", "1");
    assert_int_equal(writes(PORT_CREATE), 6); /* two PodGroups, four pods */
}

static void a_pod_that_ends_silently_leaves_its_timer(void **state)
{
    rig_put(&rig, JOB("  minAvailable: 1\n"
                      "  policies: [{event: PodPending, action: RestartJob, timeout: 10s}]\n"
                      "  tasks:\n" TASK_MIN("w", "2", "1", "")));
    rig_enqueue(&rig);
    rig_patch(&rig, API_POD, "j-w-0",
              "spec: {nodeName: n1}\nstatus: {phase: Running, containerStatuses: [{name: main, "
              "ready: true}]}");
    rig_end(&rig, "j-w-1", 0);
    rig_pass(&rig, 60);
    phases("Pending Running");
}

/* ---- jobs that bypassed admission ---- */

#define BAD(spec, why)                                                                             \
    {                                                                                              \
        JOB(spec), why                                                                             \
    }

static const struct {
    const char *job, *why;
} bad_jobs[] = {
    BAD("  minAvailable: 1\n  plugins: {magic: []}\n  tasks:\n" TASK("w", "1", ""),
        "unable to find job plugin: magic"),
    BAD("  minAvailable: 3\n  tasks:\n" TASK("w", "2", ""),
        "job 'minAvailable' should not be greater than total replicas in tasks"),
    BAD("  minAvailable: 1\n  tasks:\n" TASK("w", "1", "") TASK("w", "1", ""),
        "duplicated task name w"),
    BAD("  minAvailable: 1\n  tasks:\n" TASK("w", "1", "    dependsOn: {name: [nobody]}\n"),
        "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG)"),
    BAD("  minAvailable: 1\n  tasks:\n" TASK("a", "1", "    dependsOn: {name: [b]}\n")
            TASK("b", "1", "    dependsOn: {name: [a]}\n"),
        "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG)"),
    BAD("  minAvailable: 1\n  tasks:\n  - {name: w, replicas: 1, template: {spec: {}}}\n",
        "spec.task[0].template.spec.containers: Required value"),
    BAD("  minAvailable: 1\n  tasks:\n" TASK_MIN("w", "1", "2", ""),
        "'minAvailable' is greater than 'replicas' in task: w"),
    BAD("  minAvailable: 0\n", "No task specified in job spec"),
};

static void an_invalid_job_is_refused_and_blocks_no_other(void **state)
{
    for (unsigned i = 0; i < HK_LEN(bad_jobs); i++) {
        teardown(NULL);
        setup(NULL);
        rig_put(&rig, bad_jobs[i].job);
        rig_put(&rig, "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\n"
                      "metadata: {name: good, namespace: d}\n"
                      "spec:\n  queue: q\n  minAvailable: 1\n  tasks:\n" TASK("w", "1", ""));
        rig_pass(&rig, 3600);
        rig_enqueue(&rig);
        rig_run(&rig);
        pods("good-w-0");
        rig_expect(&rig, API_JOB, "good", "status.state.phase", "\"Running\"");
        expect("status.state.phase", "\"Pending\"");
        expect("status.state.reason", "\"InvalidJob\"");
        if (!strstr(rig_at(&rig, API_JOB, "j", "status.state.message"), bad_jobs[i].why)) {
            fail_msg("expected: %s\nactual:   %s", bad_jobs[i].why,
                     rig_at(&rig, API_JOB, "j", "status.state.message"));
        }
        assert_int_equal(events("InvalidJob"), 1);
    }
}

static void an_invalid_job_runs_after_its_correction(void **state)
{
    start(JOB("  minAvailable: 3\n  tasks:\n" TASK("w", "2", "")));
    expect("status.state.reason", "\"InvalidJob\"");
    rig_patch(&rig, API_JOB, "j", "spec: {minAvailable: 2}");
    live_on();
    expect("status.state.phase", "\"Running\"");
    expect("status.state.reason", "");
    expect("status.state.message", "");
}

static void an_invalid_job_can_be_ended(void **state)
{
    start(JOB("  minAvailable: 3\n  tasks:\n" TASK("w", "2", "")));
    rig_put(&rig, COMMAND("TerminateJob"));
    live_on();
    phases("Pending Terminating Terminated");
}

static void commands_of_no_use_are_cleaned_up(void **state)
{
    start(ONE(""));
    rig_put(&rig, COMMAND("SyncJob"));
    rig_put(&rig, COMMAND("DanceJob"));
    rig_put(&rig, COMMAND("ResumeJob"));
    rig_pass(&rig, 60);
    assert_int_equal(rig_count(&rig, API_COMMAND), 0);
    expect("status.action", "");
    phases("Pending Running");
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(counts_vanish_when_the_job_ends),
        test(a_job_made_again_under_its_name_is_forgotten),
        test(the_end_of_an_old_pod_is_taken_for_that_of_the_new),
        test(a_job_whose_deletion_is_not_known_yet_makes_pods),
        test(a_pod_of_an_earlier_job_ends_the_new_one),
        test(a_pod_that_fails_while_we_are_away_is_overlooked),
        test(a_task_that_completes_while_we_are_away_is_overlooked),
        test(running_pods_are_taken_for_pending_after_a_restart),
        test(a_pending_pod_does_not_restart_its_task),
        test(a_pod_that_fails_while_being_deleted_is_no_failure),
        test(a_pod_is_deleted_before_it_is_marked),
        test(scaling_down_is_taken_for_an_eviction),
        test(a_group_let_in_while_we_are_away_is_overlooked),
        test(abort_is_swallowed_while_restarting),
        test(terminate_is_swallowed_while_restarting),
        test(plugin_objects_go_when_one_pod_restarts),
        test(pods_are_killed_before_the_status_says_so),
        test(a_kill_that_fails_counts_twice),
        test(a_missing_queue_ends_the_job),
        test(a_missing_claim_ends_the_job),
        test(an_exhausted_quota_ends_the_job),
        test(pods_that_are_refused_for_ever_are_tried_for_ever),
        test(each_try_makes_another_claim),
        test(the_exit_code_of_a_sidecar_hides_the_real_one),
        test(restarts_are_overlooked_when_the_phase_changes_too),
        test(the_status_says_why_the_job_ended),
        test(a_succeeded_pod_that_is_deleted_runs_again),
        test(counts_freeze_while_the_group_waits),
        test(a_waiting_group_is_reported_repeatedly),
        test(a_change_that_means_nothing_is_written),
        test(an_action_that_waits_is_lost_by_a_restart),
        test(an_action_that_waits_strikes_the_next_generation),
        test(an_old_picture_makes_the_phase_flutter),
        test(a_pod_that_ends_silently_leaves_its_timer),
        test(an_invalid_job_is_refused_and_blocks_no_other),
        test(an_invalid_job_runs_after_its_correction),
        test(an_invalid_job_can_be_ended),
        test(commands_of_no_use_are_cleaned_up),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("controllers/job-race", tests, NULL, NULL);
}
