// SPDX-License-Identifier: Apache-2.0
#include "controllers/work_rig_test.h"

/* The rig's clock starts at 10:00:00, minute 29455800 since 1970. */
static const char hello[] = "apiVersion: batch/v1\n"
                            "kind: CronJob\n"
                            "metadata: {name: hello, namespace: d}\n"
                            "spec:\n"
                            "  schedule: '*/5 * * * *'\n"
                            "  timeZone: Etc/UTC\n"
                            "  jobTemplate:\n"
                            "    metadata: {labels: {app: hello}}\n"
                            "    spec:\n"
                            "      template:\n"
                            "        spec: {restartPolicy: Never, containers: [{name: main}]}\n";

static void begin(struct rig *r, const char *patch)
{
    work_rig(r);
    rig_put(r, hello);
    rig_patch(r, API_BATCH_CRONJOB, "hello", patch);
    rig_settle(r);
}

static void succeed_all(struct rig *r)
{
    rig_run(r);
    for (uint32_t i = 0; i < rig_count(r, API_POD); i++) {
        const char *pod = work_nth(r, API_POD, i);

        if (hk_str_is(json_str(json_at(rig_get(r, API_POD, pod), "status.phase"), HK_STR("")),
                      "Running")) {
            rig_end(r, pod, 0);
        }
    }
}

static void each_slot_starts_one_job(void **state)
{
    struct rig r;

    begin(&r, "{}");
    assert_int_equal(rig_count(&r, API_BATCH_JOB), 0);
    rig_pass(&r, 301);
    assert_string_equal(rig_names(&r, API_BATCH_JOB), "hello-29455805");
    rig_expect(&r, API_BATCH_JOB, "hello-29455805", "metadata.labels.app", "\"hello\"");
    rig_expect(&r, API_BATCH_CRONJOB, "hello", "status.lastScheduleTime",
               "\"2026-01-02T10:05:00Z\"");
    rig_pass(&r, 300);
    assert_string_equal(rig_names(&r, API_BATCH_JOB), "hello-29455805 hello-29455810");
    assert_int_equal(json_at(rig_get(&r, API_BATCH_CRONJOB, "hello"), "status.active")->len, 2);
    rig_fini(&r);
}

static void only_the_latest_missed_slot_is_started(void **state)
{
    struct rig r;

    begin(&r, "spec: {timeZone: null}");
    r.clock.now_ns += (int64_t)3601 * 1000000000;
    port_mem_set_now(r.mem, r.clock.now_ns);
    rig_settle(&r);
    assert_string_equal(rig_names(&r, API_BATCH_JOB), "hello-29455860");
    rig_fini(&r);
}

static void forbid_waits_for_the_job_that_runs(void **state)
{
    struct rig r;

    begin(&r, "spec: {concurrencyPolicy: Forbid}");
    rig_pass(&r, 601);
    assert_int_equal(rig_count(&r, API_BATCH_JOB), 1);
    succeed_all(&r);
    assert_string_equal(rig_names(&r, API_BATCH_JOB), "hello-29455805 hello-29455810");
    rig_fini(&r);
}

static void replace_deletes_the_job_that_runs(void **state)
{
    struct rig r;

    begin(&r, "spec: {concurrencyPolicy: Replace}");
    rig_pass(&r, 601);
    assert_string_equal(rig_names(&r, API_BATCH_JOB), "hello-29455810");
    rig_fini(&r);
}

static void a_suspended_cron_job_starts_nothing(void **state)
{
    struct rig r;

    begin(&r, "spec: {suspend: true}");
    rig_pass(&r, 601);
    assert_int_equal(rig_count(&r, API_BATCH_JOB), 0);
    rig_fini(&r);
}

static void finished_jobs_are_kept_up_to_the_limit(void **state)
{
    struct rig r;

    begin(&r, "spec: {successfulJobsHistoryLimit: 1}");
    for (int i = 0; i < 3; i++) {
        rig_pass(&r, 301);
        succeed_all(&r);
    }
    assert_string_equal(rig_names(&r, API_BATCH_JOB), "hello-29455815");
    rig_expect(&r, API_BATCH_CRONJOB, "hello", "status.lastSuccessfulTime",
               "\"2026-01-02T10:15:03Z\"");
    rig_expect(&r, API_BATCH_CRONJOB, "hello", "status.active", "");
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_slot_starts_one_job),
        cmocka_unit_test(only_the_latest_missed_slot_is_started),
        cmocka_unit_test(forbid_waits_for_the_job_that_runs),
        cmocka_unit_test(replace_deletes_the_job_that_runs),
        cmocka_unit_test(a_suspended_cron_job_starts_nothing),
        cmocka_unit_test(finished_jobs_are_kept_up_to_the_limit),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("controllers/work-cronjob", tests, NULL, NULL);
}
