// SPDX-License-Identifier: Apache-2.0
// The life of jobs: pods, policies, completion, scaling. job_example_test.c has longer cases.
#include "controllers/job_rig_test.h"

/* ---- normal operation ---- */

static void pods_wait_for_the_queue(void **state)
{
    rig_put(&rig, JOB("  minAvailable: 2\n  tasks:\n" TASK("w", "2", "")));
    rig_settle(&rig);
    pods("");
    assert_int_equal(rig_count(&rig, API_PODGROUP), 1);
    expect("status.state.phase", "\"Pending\"");
    rig_enqueue(&rig);
    pods("j-w-0 j-w-1");
    expect("status.pending", "2");
}

/* Trace A. */
static void a_job_runs_and_completes(void **state)
{
    start(JOB("  minAvailable: 2\n  tasks:\n" TASK("w", "2", "")));
    expect("status.running", "2");
    expect("status.taskStatusCount", "{\"w\":{\"phase\":{\"Running\":2}}}");
    rig_end(&rig, "j-w-0", 0);
    rig_end(&rig, "j-w-1", 0);
    phases("Pending Running Completed");
    expect("status.succeeded", "2");
    pods("j-w-0 j-w-1");
    assert_int_equal(rig_count(&rig, API_PODGROUP), 0);
    assert_int_equal(json_at(rig_get(&rig, API_JOB, "j"), "status.attempts")->len, 2);
}

static void status_is_written_once_per_transition(void **state)
{
    start(JOB("  minAvailable: 2\n  tasks:\n" TASK("w", "2", "")));
    assert_int_equal(manager_metrics(rig.m)->writes[PORT_CREATE], 3);
    /* Pending; pods created; running */
    assert_int_equal(manager_metrics(rig.m)->writes[PORT_UPDATE], 3);
    rig_restart(&rig);
    rig_settle(&rig);
    assert_int_equal(manager_metrics(rig.m)->writes[PORT_CREATE], 0);
    assert_int_equal(manager_metrics(rig.m)->writes[PORT_UPDATE], 0);
    assert_int_equal(manager_metrics(rig.m)->writes[PORT_PATCH], 0);
}

static void too_few_successes_fail_the_job(void **state)
{
    start(JOB("  minAvailable: 3\n  tasks:\n" TASK("w", "3", "")));
    rig_end(&rig, "j-w-0", 0);
    rig_end(&rig, "j-w-1", 0);
    rig_end(&rig, "j-w-2", 1);
    phases("Pending Running Failed");
    expect("status.failed", "1");
}

/* ---- policies ---- */

static void a_failed_pod_restarts_the_job_until_retries_are_used_up(void **state)
{
    start(JOB("  minAvailable: 2\n  policies: [{event: PodFailed, action: RestartJob}]\n"
              "  tasks:\n" TASK("a", "1", "") TASK("b", "1", "")));
    for (int i = 0; i < 3; i++) {
        rig_end(&rig, "j-b-0", 1);
        live_on();
    }
    phases(
        "Pending Running Restarting Pending Running Restarting Pending Running Restarting Failed");
    expect("status.retryCount", "3");
    expect("status.version", "3");
    pods("j-b-0"); /* the failed pod of the last attempt stays */
}

static void a_failed_pod_ends_the_job(void **state)
{
    start(JOB("  minAvailable: 2\n  policies: [{event: PodFailed, action: TerminateJob}]\n"
              "  tasks:\n" TASK("a", "1", "") TASK("b", "1", "")));
    rig_end(&rig, "j-b-0", 1);
    expect("status.terminating", "1");
    live_on();
    phases("Pending Running Terminating Terminated");
    pods("j-b-0");
    expect("status.retryCount", "");
}

static void only_the_failed_pod_restarts(void **state)
{
    start(JOB("  minAvailable: 2\n  policies: [{event: PodFailed, action: RestartPod}]\n"
              "  tasks:\n" TASK("w", "2", "")));
    rig_end(&rig, "j-w-1", 1);
    live_on();
    phases("Pending Running Restarting Pending Running");
    expect("status.retryCount", "1");
    expect("status.version", "");
    rig_expect(&rig, API_POD, "j-w-0", "status.phase", "\"Running\"");
    expect("status.running", "2");
}

static void a_pod_that_is_taken_away_restarts_the_job(void **state)
{
    start(JOB("  minAvailable: 2\n  policies: [{event: '*', action: RestartJob}]\n"
              "  tasks:\n" TASK("w", "2", "")));
    rig_remove(&rig, API_POD, "j-w-0");
    live_on();
    phases("Pending Running Restarting Pending Running");
    expect("status.retryCount", "1");
    assert_true(hk_str_is(
        json_str(json_get(json_at(rig_get(&rig, API_POD, "j-w-1"), "metadata.annotations"),
                          API_ANN_JOB_VERSION),
                 HK_STR("")),
        "1"));
}

static void restarting_a_task_happens_once(void **state)
{
    start(JOB("  minAvailable: 3\n  policies: [{event: PodEvicted, action: RestartTask}]\n"
              "  tasks:\n" TASK("w", "2", "") TASK("x", "1", "")));
    rig_remove(&rig, API_POD, "j-w-0");
    live_on();
    phases("Pending Running Restarting Pending Running");
    expect("status.retryCount", "1");
    expect("status.running", "3");
}

static void exit_codes_and_task_policies(void **state)
{
    start(JOB(
        "  minAvailable: 2\n  policies: [{event: PodFailed, action: AbortJob}]\n  tasks:\n" TASK(
            "a", "1", "    policies: [{exitCode: 3, action: RestartJob}]\n") TASK("b", "1", "")));
    rig_end(&rig, "j-a-0", 3);
    live_on();
    phases("Pending Running Restarting Pending Running");
    rig_end(&rig, "j-b-0", 3);
    live_on();
    phases("Pending Running Restarting Pending Running Aborting Aborted");
}

static void a_completed_task_completes_the_job(void **state)
{
    start(JOB("  minAvailable: 3\n  policies: [{event: TaskCompleted, action: CompleteJob}]\n"
              "  tasks:\n" TASK("a", "2", "") TASK("b", "1", "")));
    rig_end(&rig, "j-a-0", 0);
    phases("Pending Running");
    rig_end(&rig, "j-a-1", 0);
    live_on();
    phases("Pending Running Completing Completed");
    pods("j-a-0 j-a-1");
    expect("status.succeeded", "2");
}

static void a_pod_pending_for_too_long_is_restarted(void **state)
{
    rig_put(&rig, JOB("  minAvailable: 1\n"
                      "  policies: [{event: PodPending, action: RestartPod, timeout: 10s}]\n"
                      "  tasks:\n" TASK("w", "1", "")));
    rig_enqueue(&rig);
    rig_pass(&rig, 9);
    phases("Pending");
    rig_pass(&rig, 2);
    live_on();
    phases("Pending Restarting Pending Running");
    expect("status.retryCount", "1");
    rig_pass(&rig, 60); /* a running pod is left alone */
    phases("Pending Restarting Pending Running");
}

static int64_t clock_set_back(struct hk_clock *c)
{
    return c->mono_ns(c) - (int64_t)2 * 3600 * 1000000000;
}

static void a_policy_acts_in_time_when_the_clock_is_set_back(void **state)
{
    rig_put(&rig, JOB("  minAvailable: 1\n"
                      "  policies: [{event: PodPending, action: RestartPod, timeout: 10s}]\n"
                      "  tasks:\n" TASK("w", "1", "")));
    rig_enqueue(&rig);
    rig_pass(&rig, 1);
    rig.clock.clock.wall_ns = clock_set_back;
    rig_pass(&rig, 8);
    phases("Pending");
    rig_pass(&rig, 2);
    live_on();
    phases("Pending Restarting Pending Running");
    expect("status.retryCount", "1");
}

static void a_preempted_pod_uses_no_retry(void **state)
{
    start(JOB("  minAvailable: 1\n  policies: [{event: PodEvicted, action: RestartJob}]\n"
              "  tasks:\n" TASK("w", "1", "")));
    rig_patch(&rig, API_POD, "j-w-0",
              "metadata: {deletionTimestamp: '2026-01-02T10:00:01Z'}\n"
              "status: {conditions: [{type: DisruptionTarget, status: 'True'}]}\n");
    live_on();
    phases("Pending Running Restarting Pending Running");
    expect("status.retryCount", "");
    expect("status.version", "1");
}

/* ---- commands ---- */

/* Trace D, 3. */
static void suspend_and_resume(void **state)
{
    start(JOB("  minAvailable: 2\n  tasks:\n" TASK("w", "2", "")));
    rig_put(&rig, COMMAND("AbortJob"));
    live_on();
    phases("Pending Running Aborting Aborted");
    pods("");
    assert_int_equal(rig_count(&rig, API_COMMAND), 0);
    assert_int_equal(rig_count(&rig, API_PODGROUP), 0);
    rig_put(&rig, COMMAND("ResumeJob"));
    live_on();
    phases("Pending Running Aborting Aborted Restarting Pending Running");
    expect("status.retryCount", "1");
    expect("status.running", "2");
    expect("status.action", "");
}

/* ---- scaling, dependencies ---- */

static void scaling_adds_and_removes_the_highest(void **state)
{
    start(JOB("  minAvailable: 2\n  plugins: {svc: []}\n  tasks:\n" TASK("w", "2", "")));
    rig_expect(&rig, API_CONFIGMAP, "j-svc", "data.VC_W_HOSTS", "\"j-w-0.j,j-w-1.j\"");
    rig_patch(&rig, API_JOB, "j", "spec:\n  minAvailable: 1\n  tasks:\n" TASK("w", "1", ""));
    live_on();
    pods("j-w-0");
    rig_expect(&rig, API_CONFIGMAP, "j-svc", "data.VC_W_HOSTS", "\"j-w-0.j\"");
    phases("Pending Running");
}

static void a_task_waits_for_what_it_depends_on(void **state)
{
    rig_put(&rig, JOB("  minAvailable: 1\n  tasks:\n" TASK("a", "1", "")
                          TASK("b", "1", "    dependsOn: {name: [a]}\n")));
    rig_enqueue(&rig);
    pods("j-a-0");
    rig_run(&rig);
    pods("j-a-0 j-b-0");
}

static void plugin_objects_go_when_the_job_rests(void **state)
{
    start(JOB("  minAvailable: 1\n  plugins: {svc: [], ssh: [], env: []}\n"
              "  tasks:\n" TASK("w", "1", "")));
    assert_int_equal(rig_count(&rig, API_SECRET), 1);
    expect("status.controlledResources",
           "{\"plugin-env\":\"env\",\"plugin-svc\":\"svc\",\"plugin-ssh\":\"ssh\"}");
    rig_end(&rig, "j-w-0", 0);
    phases("Pending Running Completed");
    assert_int_equal(rig_count(&rig, API_SECRET), 0);
    assert_int_equal(rig_count(&rig, API_CONFIGMAP), 0);
    assert_int_equal(rig_count(&rig, API_SERVICE), 0);
    assert_int_equal(rig_count(&rig, API_NETWORK_POLICY), 0);
    expect("status.controlledResources", "");
}

#define test(name) cmocka_unit_test_setup_teardown(name, job_rig_setup, job_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(pods_wait_for_the_queue),
        test(a_job_runs_and_completes),
        test(status_is_written_once_per_transition),
        test(too_few_successes_fail_the_job),
        test(a_failed_pod_restarts_the_job_until_retries_are_used_up),
        test(a_failed_pod_ends_the_job),
        test(only_the_failed_pod_restarts),
        test(a_pod_that_is_taken_away_restarts_the_job),
        test(restarting_a_task_happens_once),
        test(exit_codes_and_task_policies),
        test(a_completed_task_completes_the_job),
        test(a_pod_pending_for_too_long_is_restarted),
        test(a_policy_acts_in_time_when_the_clock_is_set_back),
        test(a_preempted_pod_uses_no_retry),
        test(suspend_and_resume),
        test(scaling_adds_and_removes_the_highest),
        test(a_task_waits_for_what_it_depends_on),
        test(plugin_objects_go_when_the_job_rests),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("controllers/job", tests, NULL, NULL);
}
