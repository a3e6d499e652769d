// SPDX-License-Identifier: Apache-2.0
// CronJobs over time: slots, zones, policies, history, and jobs that block a slot. The clock starts
// at 10:00 UTC on 2 January 2026, a Friday.
#include "controllers/fault_rig_test.h"
#include "controllers/table.h"

static const struct ctl_type *const types[] = {&ctl_cronjob};

#define MINUTE (60)
#define HOUR (60 * 60)
#define CRON(spec)                                                                                 \
    "apiVersion: batch.volcano.sh/v1alpha1\n"                                                      \
    "kind: CronJob\n"                                                                              \
    "metadata: {name: c, namespace: d}\n"                                                          \
    "spec:\n" spec "  jobTemplate:\n"                                                              \
    "    metadata: {labels: {team: x}, annotations: {a: b}, name: ignored}\n"                      \
    "    spec: {queue: q, tasks: [{name: w, replicas: 1}]}\n"
#define EVERY_5 "  schedule: '*/5 * * * *'\n"

/* The slots at 10:05 and 10:10. */
#define JOB_1005 "c-29455805"
#define JOB_1010 "c-29455810"

static void begin(struct rig *r, const char *yaml)
{
    rig_init(r, types, HK_LEN(types));
    rig_put(r, yaml);
    rig_manager(r);
    rig_settle(r);
}

static void set_phase(struct rig *r, const char *job, const char *phase, const char *at)
{
    char yaml[200];

    snprintf(yaml, sizeof(yaml), "status: {state: {phase: %s, lastTransitionTime: '%s'}}", phase,
             at);
    rig_patch(r, API_JOB, job, yaml);
}

/* Waits for the next pass over the CronJob; returns the milliseconds it took, -1 never. */
static int64_t next_look_ms(struct rig *r)
{
    const int64_t begin_ns = r->clock.now_ns;
    const uint64_t passes = manager_metrics(r->m)->passes;

    for (;;) {
        const int64_t next_ns = manager_run(r->m);

        if (manager_metrics(r->m)->passes > passes) {
            return (r->clock.now_ns - begin_ns) / 1000000;
        }
        if (next_ns == INT64_MAX) {
            return -1;
        }
        rig_set_now(r, HK_MAX(next_ns, r->clock.now_ns));
    }
}

/* ---- slots ---- */

static void a_slot_gets_one_job(void **state)
{
    struct rig r;

    begin(&r, CRON(EVERY_5));
    rig_pass(&r, 3 * MINUTE);
    assert_int_equal(rig_count(&r, API_JOB), 0);
    assert_int_equal(next_look_ms(&r), 2 * MINUTE * 1000 + 100);
    rig_settle(&r);
    assert_string_equal(rig_names(&r, API_JOB), JOB_1005);
    rig_expect(&r, API_CRONJOB, "c", "status.lastScheduleTime", "\"2026-01-02T10:05:00Z\"");
    assert_int_equal(json_at(rig_get(&r, API_CRONJOB, "c"), "status.active")->len, 1);
    assert_int_equal(manager_metrics(r.m)->writes[PORT_CREATE], 1);
    assert_int_equal(manager_metrics(r.m)->writes[PORT_UPDATE], 1);
    rig_expect_events(&r, "SuccessfulCreate", "Created job " JOB_1005 " for CronJob d/c");
    assert_int_equal(next_look_ms(&r), 5 * MINUTE * 1000);
    rig_fini(&r);
}

static void a_job_is_made_from_the_template(void **state)
{
    struct rig r;

    begin(&r, CRON(EVERY_5 "  timeZone: Asia/Kolkata\n"));
    rig_pass(&r, 6 * MINUTE);
    rig_expect(&r, API_JOB, JOB_1005, "metadata.labels", "{\"team\":\"x\"}");
    rig_expect(&r, API_JOB, JOB_1005, "metadata.annotations",
               "{\"a\":\"b\",\"volcano.sh/cronjob-scheduled-timestamp\":"
               "\"2026-01-02T15:35:00+05:30\"}");
    rig_expect(&r, API_JOB, JOB_1005, "metadata.ownerReferences",
               "[{\"apiVersion\":\"batch.volcano.sh/v1alpha1\",\"kind\":\"CronJob\",\"name\":\"c\","
               "\"uid\":\"u-c\",\"controller\":true,\"blockOwnerDeletion\":true}]");
    rig_expect(&r, API_JOB, JOB_1005, "spec",
               "{\"queue\":\"q\",\"tasks\":[{\"name\":\"w\",\"replicas\":1}]}");
    rig_fini(&r);
}

/* Five hourly slots passed before the first pass: only the last one gets a job. */
static void only_the_latest_of_missed_slots_runs(void **state)
{
    struct rig r;

    rig_init(&r, types, HK_LEN(types));
    rig_put(&r, CRON("  schedule: '0 * * * *'\n"));
    rig_set_now(&r, RIG_START_NS + (int64_t)(5 * HOUR + MINUTE) * 1000000000);
    rig_manager(&r);
    rig_settle(&r);
    rig_expect(&r, API_CRONJOB, "c", "status.lastScheduleTime", "\"2026-01-02T15:00:00Z\"");
    assert_int_equal(rig_count(&r, API_JOB), 1);
    rig_fini(&r);
}

/* 31 February. */
static void a_day_that_never_comes_is_an_error(void **state)
{
    struct rig r;

    begin(&r, CRON("  schedule: '59 23 31 2 *'\n"));
    assert_int_equal(next_look_ms(&r), -1);
    rig_expect_events(&r, "InvalidSchedule",
                      "invalid schedule: 59 23 31 2 * : there is no such time within five years");
    rig_fini(&r);
}

static void many_missed_slots_are_reported_and_one_runs(void **state)
{
    struct rig r;

    rig_init(&r, types, HK_LEN(types));
    rig_put(&r, CRON("  schedule: '* * * * *'\n"));
    rig_set_now(&r, RIG_START_NS + (int64_t)(3 * HOUR) * 1000000000);
    rig_manager(&r);
    rig_settle(&r);
    assert_int_equal(rig_count(&r, API_JOB), 1);
    rig_expect(&r, API_CRONJOB, "c", "status.lastScheduleTime", "\"2026-01-02T13:00:00Z\"");
    rig_expect_events(
        &r, "TooManyMissedTimes",
        "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or "
        "check clock skew");
    rig_fini(&r);
}

static void a_slot_past_its_deadline_is_skipped(void **state)
{
    struct rig r;

    rig_init(&r, types, HK_LEN(types));
    rig_put(&r, CRON("  schedule: '0 * * * *'\n  startingDeadlineSeconds: 30\n"));
    rig_set_now(&r, RIG_START_NS + (int64_t)(HOUR + MINUTE) * 1000000000);
    rig_manager(&r);
    rig_settle(&r);
    assert_int_equal(rig_count(&r, API_JOB), 0);
    assert_int_equal(next_look_ms(&r), 59 * MINUTE * 1000 + 100);
    rig_settle(&r);
    rig_expect(&r, API_CRONJOB, "c", "status.lastScheduleTime", "\"2026-01-02T12:00:00Z\"");
    rig_fini(&r);
}

static void a_zone_moves_the_slots(void **state)
{
    struct rig r;

    begin(&r, CRON("  schedule: '30 16 * * *'\n  timeZone: Asia/Kolkata\n"));
    assert_int_equal(next_look_ms(&r), HOUR * 1000 + 100); /* 11:00 UTC */
    rig_fini(&r);
}

static void the_zone_of_the_machine_is_an_option(void **state)
{
    struct rig r;

    rig_init(&r, types, HK_LEN(types));
    r.conf.local_zone = "Asia/Kolkata";
    rig_put(&r, CRON("  schedule: '30 16 * * *'\n"));
    rig_manager(&r);
    rig_settle(&r);
    assert_int_equal(next_look_ms(&r), HOUR * 1000 + 100);
    rig_fini(&r);
}

static void a_zone_in_the_schedule_wins_with_a_warning(void **state)
{
    struct rig r;

    begin(&r, CRON("  schedule: 'TZ=Asia/Kolkata 30 16 * * *'\n  timeZone: Europe/Berlin\n"));
    assert_int_equal(next_look_ms(&r), HOUR * 1000 + 100);
    rig_expect_events(
        &r, "UnsupportedSchedule",
        "CRON_TZ or TZ in the schedule \"TZ=Asia/Kolkata 30 16 * * *\" is not officially "
        "supported. If set, the TimeZone field will be ignored during execution.");
    rig_fini(&r);
}

static void an_unknown_zone_is_reported_and_retried(void **state)
{
    struct rig r;

    begin(&r, CRON(EVERY_5 "  timeZone: Mars/Olympus\n"));
    rig_pass(&r, HOUR);
    assert_int_equal(rig_count(&r, API_JOB), 0);
    rig_expect_events(&r, "InvalidTimeZone",
                      "Invalid time zone \"Mars/Olympus\": unknown time zone Mars/Olympus");
    rig_patch(&r, API_CRONJOB, "c", "spec: {timeZone: UTC}");
    rig_pass(&r, 5 * MINUTE);
    assert_int_equal(rig_count(&r, API_JOB), 1);
    rig_fini(&r);
}

static void an_invalid_schedule_is_reported(void **state)
{
    struct rig r;

    begin(&r, CRON("  schedule: 'often'\n"));
    assert_int_equal(next_look_ms(&r), -1);
    rig_expect_events(&r, "UnParseableCronJobSchedule", "unparseable schedule for cronjob: often");
    rig_fini(&r);
}

/* Slots of the new schedule before the change are ignored. */
static void a_new_schedule_begins_with_its_next_slot(void **state)
{
    struct rig r;

    begin(&r, CRON("  schedule: '0 * * * *'\n"));
    rig_pass(&r, 30 * MINUTE);
    rig_patch(&r, API_CRONJOB, "c", "spec: {schedule: '10 * * * *'}");
    rig_settle(&r);
    assert_int_equal(rig_count(&r, API_JOB), 0);
    rig_pass(&r, 41 * MINUTE);
    rig_expect(&r, API_CRONJOB, "c", "status.lastScheduleTime", "\"2026-01-02T11:10:00Z\"");
    rig_fini(&r);
}

/* ---- policies ---- */

static void forbid_skips_while_one_runs(void **state)
{
    struct rig r;

    begin(&r, CRON(EVERY_5 "  concurrencyPolicy: Forbid\n"));
    rig_pass(&r, 6 * MINUTE);
    rig_pass(&r, 5 * MINUTE);
    assert_string_equal(rig_names(&r, API_JOB), JOB_1005);
    rig_expect(&r, API_CRONJOB, "c", "status.lastScheduleTime", "\"2026-01-02T10:05:00Z\"");
    rig_expect_events(&r, "ForbidConcurrent",
                      "Skipping job creation because another job is already running");
    /* The job ends, and the skipped slot runs late. */
    set_phase(&r, JOB_1005, "Completed", "2026-01-02T10:11:00Z");
    rig_settle(&r);
    assert_string_equal(rig_names(&r, API_JOB), JOB_1005 " " JOB_1010);
    rig_expect(&r, API_CRONJOB, "c", "status.lastScheduleTime", "\"2026-01-02T10:10:00Z\"");
    rig_expect(&r, API_CRONJOB, "c", "status.lastSuccessfulTime", "\"2026-01-02T10:11:00Z\"");
    rig_expect_events(&r, "SawCompletedJob", "Saw completed job: " JOB_1005 " in active, remove");
    rig_fini(&r);
}

static void replace_deletes_the_one_that_runs(void **state)
{
    struct rig r;

    begin(&r, CRON(EVERY_5 "  concurrencyPolicy: Replace\n"));
    rig_pass(&r, 6 * MINUTE);
    rig_pass(&r, 5 * MINUTE);
    assert_string_equal(rig_names(&r, API_JOB), JOB_1010);
    assert_int_equal(json_at(rig_get(&r, API_CRONJOB, "c"), "status.active")->len, 1);
    rig_expect_events(&r, "ReplaceConcurrent", "Replacing active job for CronJob");
    rig_expect_events(&r, "SuccessfulDelete", "Deleted job \"" JOB_1005 "\"");
    rig_expect_events(&r, "StaleReference", "");
    rig_fini(&r);
}

static void allow_lets_them_run_side_by_side(void **state)
{
    struct rig r;

    begin(&r, CRON(EVERY_5));
    rig_pass(&r, 11 * MINUTE);
    assert_string_equal(rig_names(&r, API_JOB), JOB_1005 " " JOB_1010);
    assert_int_equal(json_at(rig_get(&r, API_CRONJOB, "c"), "status.active")->len, 2);
    rig_fini(&r);
}

static void suspended_it_does_nothing(void **state)
{
    struct rig r;

    begin(&r, CRON(EVERY_5 "  suspend: true\n"));
    assert_int_equal(next_look_ms(&r), -1);
    rig_pass(&r, HOUR);
    rig_patch(&r, API_CRONJOB, "c", "spec: {suspend: false}");
    rig_settle(&r);
    rig_expect(&r, API_CRONJOB, "c", "status.lastScheduleTime", "\"2026-01-02T11:00:00Z\"");
    rig_fini(&r);
}

/* ---- jobs that block a slot ---- */

#define OWNED_JOB(owner, phase)                                                                    \
    "apiVersion: batch.volcano.sh/v1alpha1\n"                                                      \
    "kind: Job\n"                                                                                  \
    "metadata:\n"                                                                                  \
    "  name: " JOB_1005 "\n"                                                                       \
    "  namespace: d\n"                                                                             \
    "  annotations: {volcano.sh/cronjob-scheduled-timestamp: '2026-01-02T10:05:00Z'}\n"            \
    "  ownerReferences:\n"                                                                         \
    "  - {apiVersion: batch.volcano.sh/v1alpha1, kind: CronJob, name: c, uid: " owner              \
    ", controller: true}\n"                                                                        \
    "status: {state: {phase: " phase "}}\n"

static void a_finished_job_of_the_name_is_not_run_again(void **state)
{
    struct rig r;

    rig_init(&r, types, HK_LEN(types));
    rig_put(&r, CRON(EVERY_5) "---\n" OWNED_JOB("u-c", "Completed"));
    rig_set_now(&r, RIG_START_NS + (int64_t)(6 * MINUTE) * 1000000000);
    rig_manager(&r);
    rig_settle(&r);
    assert_int_equal(manager_metrics(r.m)->writes[PORT_CREATE], 0);
    rig_expect(&r, API_CRONJOB, "c", "status.active", "");
    rig_expect(&r, API_CRONJOB, "c", "status.lastScheduleTime", "\"2026-01-02T10:05:00Z\"");
    rig_fini(&r);
}

static void a_job_of_that_name_with_another_owner_is_left_alone(void **state)
{
    struct rig r;

    begin(&r, CRON(EVERY_5) "---\n" OWNED_JOB("u-other", "Running"));
    rig_pass(&r, 6 * MINUTE);
    assert_int_equal(manager_metrics(r.m)->writes[PORT_CREATE], 0);
    rig_expect(&r, API_CRONJOB, "c", "status", "");
    rig_expect_events(&r, "ForeignJob",
                      "Job " JOB_1005
                      " exists but is not owned by this CronJob (current owner: c)");
    rig_pass(&r, 5 * MINUTE);
    assert_string_equal(rig_names(&r, API_JOB), JOB_1005 " " JOB_1010);
    rig_fini(&r);
}

/* Forbid considers the existing jobs, not a status list that lost one. */
static void a_job_that_was_lost_track_of_is_taken_back(void **state)
{
    struct rig r;

    rig_init(&r, types, HK_LEN(types));
    rig_put(&r, CRON(EVERY_5 "  concurrencyPolicy: Forbid\n") "---\n" OWNED_JOB("u-c", "Running"));
    rig_patch(&r, API_CRONJOB, "c", "status: {lastScheduleTime: '2026-01-02T10:05:00Z'}");
    rig_set_now(&r, RIG_START_NS + (int64_t)(11 * MINUTE) * 1000000000);
    rig_manager(&r);
    rig_settle(&r);
    assert_string_equal(rig_names(&r, API_JOB), JOB_1005);
    assert_int_equal(json_at(rig_get(&r, API_CRONJOB, "c"), "status.active")->len, 1);
    rig_expect_events(&r, "OrphanedJob",
                      "Detected orphaned job forgotted or not managed by controller: " JOB_1005
                      " (UID: u-" JOB_1005 ")");
    rig_fini(&r);
}

static void references_to_nothing_are_dropped(void **state)
{
    struct rig r;

    rig_init(&r, types, HK_LEN(types));
    rig_put(&r, CRON(EVERY_5));
    rig_patch(&r, API_CRONJOB, "c",
              "status: {active: [{kind: Job, namespace: d, name: x, uid: u-x}, "
              "{kind: Job, namespace: d, name: z, uid: u-z}]}");
    rig_manager(&r);
    rig_settle(&r);
    rig_expect(&r, API_CRONJOB, "c", "status", "{}");
    rig_expect_events(&r, "StaleReference",
                      "Active job \"x\" no longer exists (UID: u-x); "
                      "Active job \"z\" no longer exists (UID: u-z)");
    rig_fini(&r);
}

/* The job is deleted before the status records it. */
static void a_job_that_is_soon_gone_is_not_run_again(void **state)
{
    struct rig r;

    begin(&r, CRON(EVERY_5));
    port_mem_fail(r.mem, PORT_UPDATE, 1, HK_EBUSY);
    rig_set_now(&r, RIG_START_NS + (int64_t)(6 * MINUTE) * 1000000000);
    rig_settle(&r);
    rig_remove(&r, API_JOB, JOB_1005);
    rig_pass(&r, MINUTE);
    assert_int_equal(rig_count(&r, API_JOB), 0);
    rig_expect(&r, API_CRONJOB, "c", "status", "{\"lastScheduleTime\":\"2026-01-02T10:05:00Z\"}");
    rig_fini(&r);
}

/* ---- history ---- */

static void old_jobs_are_deleted(void **state)
{
    static const char *const phases[] = {"Completed",  "Failed",    "Completed", "Completed",
                                         "Terminated", "Completed", "Running"};
    struct rig r;

    begin(&r, CRON(EVERY_5 "  successfulJobsHistoryLimit: 2\n  failedJobsHistoryLimit: 1\n"
                           "  suspend: true\n"));
    for (size_t i = 0; i < HK_LEN(phases); i++) {
        char yaml[600];
        snprintf(
            yaml, sizeof(yaml),
            "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\n"
            "metadata: {name: j%zu, namespace: d, uid: u%zu, "
            "creationTimestamp: '2026-01-02T10:00:0%zuZ', ownerReferences: [{apiVersion: "
            "batch.volcano.sh/v1alpha1, kind: CronJob, name: c, uid: u-c, controller: true}]}\n"
            "status: {state: {phase: %s, lastTransitionTime: '2026-01-02T10:01:0%zuZ'}}\n",
            i, i, i, phases[i], i);
        rig_put(&r, yaml);
    }
    rig_settle(&r);
    assert_string_equal(rig_names(&r, API_JOB), "j3 j4 j5 j6");
    rig_expect(&r, API_CRONJOB, "c", "status.lastSuccessfulTime", "\"2026-01-02T10:01:05Z\"");
    rig_fini(&r);
}

static void a_failed_deletion_is_reported_and_retried(void **state)
{
    struct rig r;

    begin(&r, CRON(EVERY_5 "  successfulJobsHistoryLimit: 0\n"));
    rig_pass(&r, 6 * MINUTE);
    port_mem_fail(r.mem, PORT_DELETE, 1, HK_EBUSY);
    set_phase(&r, JOB_1005, "Completed", "2026-01-02T10:06:00Z");
    rig_pass(&r, MINUTE);
    assert_int_equal(rig_count(&r, API_JOB), 0);
    rig_expect_events(&r, "FailedDelete", "Error deleting job \"" JOB_1005 "\": injected failure");
    rig_expect_events(&r, "SuccessfulDelete", "Deleted job \"" JOB_1005 "\"");
    rig_fini(&r);
}

static void a_job_that_cannot_be_created_is_reported(void **state)
{
    struct rig r;

    begin(&r, CRON(EVERY_5));
    port_mem_fail(r.mem, PORT_CREATE, 1, HK_EINVAL);
    rig_pass(&r, 6 * MINUTE);
    assert_string_equal(rig_names(&r, API_JOB), JOB_1005);
    rig_expect_events(&r, "FailedCreate", "Failed to create job: injected failure");
    rig_fini(&r);
}

/* ---- faults ---- */

static struct rig world;

static void play_day(struct fault_rig *f)
{
    rig_put(f->rig, CRON(EVERY_5 "  concurrencyPolicy: Replace\n"
                                 "  successfulJobsHistoryLimit: 1\n"));
    for (int i = 0; i < 8; i++) {
        fault_rig_pass(f);
        if (i == 4) {
            const char *names = rig_names(f->rig, API_JOB);
            set_phase(f->rig, names, "Completed", "2026-01-02T10:08:00Z");
        }
    }
}

static void describe_day(struct hk_buf *out)
{
    hk_buf_addf(out, "%s", rig_names(&world, API_JOB));
    hk_buf_addf(out, " %s", rig_at(&world, API_CRONJOB, "c", "status.lastScheduleTime"));
    hk_buf_addf(out, " %s", rig_at(&world, API_CRONJOB, "c", "status.lastSuccessfulTime"));
    hk_buf_addf(out, " %u",
                json_is(json_at(rig_get(&world, API_CRONJOB, "c"), "status.active"), JSON_ARRAY)
                    ? json_at(rig_get(&world, API_CRONJOB, "c"), "status.active")->len
                    : 0);
}

static void with_any_fault_the_final_state_is_the_same(void **state)
{
    const struct fault_story story = {&world, types, HK_LEN(types), play_day, describe_day};

    fault_rig_run_all_faults(&story, JOB_1005 " " JOB_1010 " \"2026-01-02T10:10:00Z\" "
                                              "\"2026-01-02T10:08:00Z\" 1");
}

static void a_new_process_writes_nothing(void **state)
{
    struct rig r;

    begin(&r, CRON(EVERY_5));
    rig_pass(&r, 6 * MINUTE);
    rig_restart(&r);
    rig_settle(&r);
    assert_int_equal(manager_metrics(r.m)->writes[PORT_CREATE], 0);
    assert_int_equal(manager_metrics(r.m)->writes[PORT_UPDATE], 0);
    assert_int_equal(manager_metrics(r.m)->events, 0);
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slot_gets_one_job),
        cmocka_unit_test(a_job_is_made_from_the_template),
        cmocka_unit_test(only_the_latest_of_missed_slots_runs),
        cmocka_unit_test(a_day_that_never_comes_is_an_error),
        cmocka_unit_test(many_missed_slots_are_reported_and_one_runs),
        cmocka_unit_test(a_slot_past_its_deadline_is_skipped),
        cmocka_unit_test(a_zone_moves_the_slots),
        cmocka_unit_test(the_zone_of_the_machine_is_an_option),
        cmocka_unit_test(a_zone_in_the_schedule_wins_with_a_warning),
        cmocka_unit_test(an_unknown_zone_is_reported_and_retried),
        cmocka_unit_test(an_invalid_schedule_is_reported),
        cmocka_unit_test(a_new_schedule_begins_with_its_next_slot),
        cmocka_unit_test(forbid_skips_while_one_runs),
        cmocka_unit_test(replace_deletes_the_one_that_runs),
        cmocka_unit_test(allow_lets_them_run_side_by_side),
        cmocka_unit_test(suspended_it_does_nothing),
        cmocka_unit_test(a_finished_job_of_the_name_is_not_run_again),
        cmocka_unit_test(a_job_of_that_name_with_another_owner_is_left_alone),
        cmocka_unit_test(a_job_that_was_lost_track_of_is_taken_back),
        cmocka_unit_test(references_to_nothing_are_dropped),
        cmocka_unit_test(a_job_that_is_soon_gone_is_not_run_again),
        cmocka_unit_test(old_jobs_are_deleted),
        cmocka_unit_test(a_failed_deletion_is_reported_and_retried),
        cmocka_unit_test(a_job_that_cannot_be_created_is_reported),
        cmocka_unit_test(with_any_fault_the_final_state_is_the_same),
        cmocka_unit_test(a_new_process_writes_nothing),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
