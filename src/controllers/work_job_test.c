// SPDX-License-Identifier: Apache-2.0
#include "controllers/work_rig_test.h"

static const char pi[] = "apiVersion: batch/v1\n"
                         "kind: Job\n"
                         "metadata: {name: pi, namespace: d, generation: 1}\n"
                         "spec:\n"
                         "  parallelism: 2\n"
                         "  completions: 3\n"
                         "  backoffLimit: 2\n"
                         "  template:\n"
                         "    spec: {restartPolicy: Never, containers: [{name: main}]}\n";

static bool is_running(const struct json *pod)
{
    const struct hk_str phase = json_str(json_at(pod, "status.phase"), HK_STR(""));

    return hk_str_is(phase, "Running");
}

/* Ends one running pod. */
static void end_one(struct rig *r, int code)
{
    char yaml[300];

    rig_run(r);
    for (uint32_t i = 0; i < rig_count(r, API_POD); i++) {
        const char *name = work_nth(r, API_POD, i);

        if (is_running(rig_get(r, API_POD, name))) {
            rig_end(r, name, code);
            snprintf(yaml, sizeof(yaml),
                     "status: {containerStatuses: [{name: main, state: {terminated: {exitCode: %d, "
                     "finishedAt: '2026-01-02T10:%02d:00Z'}}}]}",
                     code, (int)((r->clock.now_ns - RIG_START_NS) / 60000000000));
            rig_patch(r, API_POD, name, yaml);
            rig_settle(r);
            return;
        }
    }
    fail_msg("no pod runs");
}

static uint32_t finalizers_of(struct rig *r, const char *pod)
{
    const struct json *list = json_at(rig_get(r, API_POD, pod), "metadata.finalizers");

    return list ? list->len : 0;
}

static uint32_t count_running(struct rig *r)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < rig_count(r, API_POD); i++) {
        n += is_running(rig_get(r, API_POD, work_nth(r, API_POD, i)));
    }
    return n;
}

static void a_job_is_complete_after_its_completions(void **state)
{
    struct rig r;

    work_rig(&r);
    rig_put(&r, pi);
    rig_run(&r);
    rig_expect(&r, API_BATCH_JOB, "pi", "status",
               "{\"active\":2,\"ready\":2,\"terminating\":0,\"uncountedTerminatedPods\":{},"
               "\"startTime\":\"2026-01-02T10:00:00Z\"}");
    end_one(&r, 0);
    end_one(&r, 0);
    rig_run(&r);
    assert_int_equal(count_running(&r), 1);
    work_expect_condition(&r, API_BATCH_JOB, "pi", "Complete", "");
    end_one(&r, 0);
    rig_expect(&r, API_BATCH_JOB, "pi", "status.succeeded", "3");
    rig_expect(&r, API_BATCH_JOB, "pi", "status.active", "");
    rig_expect(&r, API_BATCH_JOB, "pi", "status.completionTime", "\"2026-01-02T10:00:00Z\"");
    work_expect_condition(&r, API_BATCH_JOB, "pi", "SuccessCriteriaMet", "True CompletionsReached");
    work_expect_condition(&r, API_BATCH_JOB, "pi", "Complete", "True CompletionsReached");
    assert_int_equal(manager_metrics(r.m)->writes[PORT_CREATE], 3);
    rig_fini(&r);
}

static void pods_are_tracked_until_they_are_counted(void **state)
{
    struct rig r;
    const char *pod;

    work_rig(&r);
    rig_put(&r, pi);
    rig_run(&r);
    pod = work_nth(&r, API_POD, 0);
    rig_expect(&r, API_POD, pod, "metadata.finalizers", "[\"batch.kubernetes.io/job-tracking\"]");
    assert_string_equal(
        json_str(json_get(json_at(rig_get(&r, API_POD, pod), "metadata.labels"), "job-name"),
                 HK_STR(""))
            .s,
        "pi");
    end_one(&r, 0);
    assert_int_equal(finalizers_of(&r, pod), 0);
    rig_expect(&r, API_BATCH_JOB, "pi", "status.succeeded", "1");
    rig_remove(&r, API_POD, pod);
    rig_settle(&r);
    rig_expect(&r, API_BATCH_JOB, "pi", "status.succeeded", "1");
    rig_fini(&r);
}

static void finalizers_of_pods_of_a_deleted_job_are_removed(void **state)
{
    struct rig r;

    work_rig(&r);
    rig_put(&r, pi);
    rig_run(&r);
    rig_remove(&r, API_BATCH_JOB, "pi");
    rig_settle(&r);
    assert_int_equal(finalizers_of(&r, work_nth(&r, API_POD, 0)), 0);
    rig_fini(&r);
}

static void failures_wait_ever_longer_and_end_the_job(void **state)
{
    struct rig r;

    work_rig(&r);
    rig_put(&r, pi);
    rig_patch(&r, API_BATCH_JOB, "pi", "spec: {parallelism: 1, completions: 1}");
    end_one(&r, 1);
    rig_run(&r);
    assert_int_equal(count_running(&r), 0);
    rig_pass(&r, 11); /* ten seconds after the failure */
    rig_run(&r);
    assert_int_equal(count_running(&r), 1);
    end_one(&r, 1);
    rig_pass(&r, 60);
    end_one(&r, 1);
    rig_expect(&r, API_BATCH_JOB, "pi", "status.failed", "3");
    work_expect_condition(&r, API_BATCH_JOB, "pi", "FailureTarget", "True BackoffLimitExceeded");
    work_expect_condition(&r, API_BATCH_JOB, "pi", "Failed", "True BackoffLimitExceeded");
    rig_fini(&r);
}

static int64_t clock_set_back(struct hk_clock *c)
{
    return c->mono_ns(c) - (int64_t)2 * 3600 * 1000000000;
}

/* The failure lies in the future by the node's clock, or by our own clock after a change. */
static void a_failure_in_the_future_delays_the_next_pod_no_longer(void **state)
{
    struct rig r;

    work_rig(&r);
    rig_put(&r, pi);
    rig_patch(&r, API_BATCH_JOB, "pi", "spec: {parallelism: 1, completions: 1}");
    end_one(&r, 1);
    r.clock.clock.wall_ns = clock_set_back;
    rig_pass(&r, 5);
    rig_run(&r);
    assert_int_equal(count_running(&r), 0);
    rig_pass(&r, 6);
    rig_run(&r);
    assert_int_equal(count_running(&r), 1);
    rig_fini(&r);
}

static void a_failed_job_ends_its_other_pods(void **state)
{
    struct rig r;

    work_rig(&r);
    rig_put(&r, pi);
    rig_patch(&r, API_BATCH_JOB, "pi", "spec: {backoffLimit: 0}");
    end_one(&r, 1);
    work_expect_condition(&r, API_BATCH_JOB, "pi", "FailureTarget", "True BackoffLimitExceeded");
    work_expect_condition(&r, API_BATCH_JOB, "pi", "Failed", "");
    rig_reap(&r);
    work_expect_condition(&r, API_BATCH_JOB, "pi", "Failed", "True BackoffLimitExceeded");
    rig_expect(&r, API_BATCH_JOB, "pi", "status.failed", "2");
    rig_fini(&r);
}

static void indexed_jobs_complete_each_index_once(void **state)
{
    struct rig r;
    const char *pod;

    work_rig(&r);
    rig_put(&r, pi);
    rig_patch(&r, API_BATCH_JOB, "pi", "spec: {completionMode: Indexed}");
    rig_run(&r);
    pod = work_nth(&r, API_POD, 1);
    rig_expect(&r, API_POD, pod, "spec.hostname", "\"pi-1\"");
    rig_expect(&r, API_POD, pod, "spec.containers",
               "[{\"name\":\"main\",\"env\":[{\"name\":\"JOB_COMPLETION_INDEX\",\"valueFrom\":{"
               "\"fieldRef\":{\"fieldPath\":\"metadata.labels['batch.kubernetes.io/"
               "job-completion-index']\"}}}]}]");
    rig_end(&r, pod, 0);
    rig_expect(&r, API_BATCH_JOB, "pi", "status.completedIndexes", "\"1\"");
    end_one(&r, 0);
    rig_expect(&r, API_BATCH_JOB, "pi", "status.completedIndexes", "\"0,1\"");
    end_one(&r, 0);
    rig_expect(&r, API_BATCH_JOB, "pi", "status.completedIndexes", "\"0-2\"");
    work_expect_condition(&r, API_BATCH_JOB, "pi", "Complete", "True CompletionsReached");
    assert_int_equal(manager_metrics(r.m)->writes[PORT_CREATE], 3);
    rig_fini(&r);
}

static void a_suspended_job_has_no_pods_and_no_failures(void **state)
{
    struct rig r;

    work_rig(&r);
    rig_put(&r, pi);
    rig_run(&r);
    rig_patch(&r, API_BATCH_JOB, "pi", "spec: {suspend: true}");
    rig_settle(&r);
    rig_reap(&r);
    assert_int_equal(rig_count(&r, API_POD), 0);
    work_expect_condition(&r, API_BATCH_JOB, "pi", "Suspended", "True JobSuspended");
    rig_expect(&r, API_BATCH_JOB, "pi", "status.startTime", "");
    rig_expect(&r, API_BATCH_JOB, "pi", "status.failed", "");
    rig_patch(&r, API_BATCH_JOB, "pi", "spec: {suspend: false}");
    rig_run(&r);
    work_expect_condition(&r, API_BATCH_JOB, "pi", "Suspended", "False JobResumed");
    rig_expect(&r, API_BATCH_JOB, "pi", "status.active", "2");
    rig_fini(&r);
}

static void a_job_past_its_deadline_fails(void **state)
{
    struct rig r;

    work_rig(&r);
    rig_put(&r, pi);
    rig_patch(&r, API_BATCH_JOB, "pi", "spec: {activeDeadlineSeconds: 30}");
    rig_run(&r);
    rig_pass(&r, 31);
    rig_reap(&r);
    work_expect_condition(&r, API_BATCH_JOB, "pi", "Failed", "True DeadlineExceeded");
    rig_fini(&r);
}

static void the_failure_policy_ignores_or_ends(void **state)
{
    static const char policy[] =
        "spec:\n"
        "  podFailurePolicy:\n"
        "    rules:\n"
        "    - {action: Ignore, onPodConditions: [{type: DisruptionTarget}]}\n"
        "    - {action: FailJob, onExitCodes: {containerName: main, operator: In, values: [42]}}\n";
    struct rig r;

    work_rig(&r);
    rig_put(&r, pi);
    rig_patch(&r, API_BATCH_JOB, "pi", policy);
    rig_run(&r);
    rig_patch(&r, API_POD, work_nth(&r, API_POD, 0),
              "status: {phase: Failed, conditions: [{type: DisruptionTarget, status: 'True'}]}");
    rig_settle(&r);
    rig_expect(&r, API_BATCH_JOB, "pi", "status.failed", "");
    rig_pass(&r, 20);
    rig_run(&r);
    end_one(&r, 42);
    rig_reap(&r);
    work_expect_condition(&r, API_BATCH_JOB, "pi", "Failed", "True PodFailurePolicy");
    rig_fini(&r);
}

static void a_finished_job_is_deleted_after_its_ttl(void **state)
{
    struct rig r;

    work_rig(&r);
    rig_put(&r, pi);
    rig_patch(&r, API_BATCH_JOB, "pi",
              "spec: {parallelism: 1, completions: 1, ttlSecondsAfterFinished: 100}");
    end_one(&r, 0);
    work_expect_condition(&r, API_BATCH_JOB, "pi", "Complete", "True CompletionsReached");
    rig_pass(&r, 99);
    assert_non_null(rig_get(&r, API_BATCH_JOB, "pi"));
    rig_pass(&r, 2);
    assert_null(rig_get(&r, API_BATCH_JOB, "pi"));
    rig_fini(&r);
}

static void without_completions_one_success_and_no_active_pod_are_enough(void **state)
{
    struct rig r;

    work_rig(&r);
    rig_put(&r, pi);
    rig_patch(&r, API_BATCH_JOB, "pi", "spec: {completions: null}");
    end_one(&r, 0);
    rig_run(&r);
    assert_int_equal(count_running(&r), 1);
    work_expect_condition(&r, API_BATCH_JOB, "pi", "Complete", "");
    end_one(&r, 0);
    work_expect_condition(&r, API_BATCH_JOB, "pi", "Complete", "True CompletionsReached");
    rig_expect(&r, API_BATCH_JOB, "pi", "status.succeeded", "2");
    rig_fini(&r);
}

static void fewer_in_parallel_are_no_failures(void **state)
{
    struct rig r;

    work_rig(&r);
    rig_put(&r, pi);
    rig_run(&r);
    rig_patch(&r, API_BATCH_JOB, "pi", "spec: {parallelism: 1}");
    rig_settle(&r);
    rig_reap(&r);
    assert_int_equal(rig_count(&r, API_POD), 1);
    rig_expect(&r, API_BATCH_JOB, "pi", "status.active", "1");
    rig_expect(&r, API_BATCH_JOB, "pi", "status.failed", "");
    rig_fini(&r);
}

static void a_job_does_not_count_pods_of_one_that_had_its_name(void **state)
{
    struct rig r;
    const char *pod;

    work_rig(&r);
    rig_put(&r, pi);
    rig_run(&r);
    pod = work_nth(&r, API_POD, 0);
    rig_remove(&r, API_BATCH_JOB, "pi");
    rig_put(&r, pi);
    rig_patch(&r, API_BATCH_JOB, "pi", "metadata: {uid: u-other}");
    rig_end(&r, pod, 1);
    rig_expect(&r, API_BATCH_JOB, "pi", "status.failed", "");
    rig_expect(&r, API_BATCH_JOB, "pi", "status.active", "2");
    assert_int_equal(finalizers_of(&r, pod), 0);
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_is_complete_after_its_completions),
        cmocka_unit_test(pods_are_tracked_until_they_are_counted),
        cmocka_unit_test(finalizers_of_pods_of_a_deleted_job_are_removed),
        cmocka_unit_test(failures_wait_ever_longer_and_end_the_job),
        cmocka_unit_test(a_failure_in_the_future_delays_the_next_pod_no_longer),
        cmocka_unit_test(a_failed_job_ends_its_other_pods),
        cmocka_unit_test(indexed_jobs_complete_each_index_once),
        cmocka_unit_test(a_suspended_job_has_no_pods_and_no_failures),
        cmocka_unit_test(a_job_past_its_deadline_fails),
        cmocka_unit_test(the_failure_policy_ignores_or_ends),
        cmocka_unit_test(a_finished_job_is_deleted_after_its_ttl),
        cmocka_unit_test(fewer_in_parallel_are_no_failures),
        cmocka_unit_test(a_job_does_not_count_pods_of_one_that_had_its_name),
        cmocka_unit_test(without_completions_one_success_and_no_active_pod_are_enough),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("controllers/work-job", tests, NULL, NULL);
}
