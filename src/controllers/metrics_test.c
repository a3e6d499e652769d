// SPDX-License-Identifier: Apache-2.0
// Metrics while jobs start and end.
#include "controllers/kinds.h"
#include "controllers/metrics.h"
#include "controllers/rig_test.h"
#include "controllers/table.h"

static void do_nothing(struct ctl *c, struct pass *t)
{
}

/* Watches flows; the test itself changes their status. */
static const struct ctl_watch flow_watches[] = {{&mirror_jobflows, NULL}, {0}};
static const struct ctl_type flow_watcher = {
    .name = "flow-watcher", .watches = flow_watches, .reconcile = do_nothing};

static const struct ctl_type *const types[] = {&ctl_job, &flow_watcher};

#define QUEUE(name)                                                                                \
    "apiVersion: scheduling.volcano.sh/v1beta1\n"                                                  \
    "kind: Queue\n"                                                                                \
    "metadata: {name: " name "}\n"                                                                 \
    "---\n"

#define JOB(name) JOB_OF(name, "2026-01-02T10:00:00Z")
#define JOB_OF(name, time)                                                                         \
    "apiVersion: batch.volcano.sh/v1alpha1\n"                                                      \
    "kind: Job\n"                                                                                  \
    "metadata: {name: " name ", namespace: d, uid: u-" name ", creationTimestamp: \"" time "\"}\n" \
    "spec:\n"                                                                                      \
    "  queue: q\n"                                                                                 \
    "  schedulerName: volcano\n"                                                                   \
    "  minAvailable: 2\n"                                                                          \
    "  tasks:\n"                                                                                   \
    "  - name: w\n"                                                                                \
    "    replicas: 2\n"                                                                            \
    "    minAvailable: 2\n"                                                                        \
    "    template: {spec: {restartPolicy: Never, containers: [{name: main, image: i}]}}\n"

struct fixture {
    struct rig rig;
    struct metrics *x;
    struct hk_buf text;
};

static int setup(void **state)
{
    struct fixture *f = hk_zalloc(sizeof(*f));

    rig_init(&f->rig, types, HK_LEN(types));
    rig_put(&f->rig, QUEUE("q") QUEUE("idle"));
    rig_manager(&f->rig);
    f->x = metrics_new(f->rig.m);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    rig_fini(&f->rig);
    metrics_free(f->x);
    hk_buf_fini(&f->text);
    hk_free(f);
    return 0;
}

static const char *scrape(struct fixture *f)
{
    hk_buf_clear(&f->text);
    metrics_write(f->x, &f->text);
    return f->text.data;
}

static void expect_line(struct fixture *f, const char *line)
{
    HK_AUTO(hk_buf_fini) struct hk_buf whole = {0};

    hk_buf_addf(&whole, "\n%s\n", line);
    if (!strstr(scrape(f), whole.data)) {
        fail_msg("expected the line: %s\ngot:\n%s", line, f->text.data);
    }
}

static void expect_none(struct fixture *f, const char *part)
{
    if (strstr(scrape(f), part)) {
        fail_msg("not expected: %s\ngot:\n%s", part, f->text.data);
    }
}

static void live(struct fixture *f)
{
    rig_settle(&f->rig);
    rig_enqueue(&f->rig);
    rig_run(&f->rig);
}

/* ---- tests ---- */

static void queues_are_counted_when_asked(void **state)
{
    struct fixture *f = *state;

    rig_put(&f->rig, JOB("a"));
    rig_settle(&f->rig);
    expect_line(f, "volcano_queue_pod_group_pending_count{queue_name=\"q\"} 1");
    expect_line(f, "volcano_queue_pod_group_inqueue_count{queue_name=\"q\"} 0");
    expect_line(f, "volcano_queue_pod_group_pending_count{queue_name=\"idle\"} 0");
    rig_enqueue(&f->rig);
    expect_line(f, "volcano_queue_pod_group_pending_count{queue_name=\"q\"} 0");
    expect_line(f, "volcano_queue_pod_group_inqueue_count{queue_name=\"q\"} 1");
    rig_remove(&f->rig, API_QUEUE, "idle");
    rig_settle(&f->rig);
    expect_none(f, "idle");
}

static void completed_and_failed_jobs_are_counted_while_they_exist(void **state)
{
    struct fixture *f = *state;

    rig_put(&f->rig, JOB("good"));
    rig_put(&f->rig, JOB("bad"));
    live(f);
    expect_none(f, "job_name=");
    rig_end(&f->rig, "good-w-0", 0);
    rig_end(&f->rig, "good-w-1", 0);
    rig_end(&f->rig, "bad-w-0", 1);
    rig_end(&f->rig, "bad-w-1", 1);
    rig_settle(&f->rig);
    expect_line(f, "volcano_job_completed_phase_count{job_name=\"d/good\",queue_name=\"q\"} 1");
    expect_line(f, "volcano_job_failed_phase_count{job_name=\"d/bad\",queue_name=\"q\"} 1");
    rig_remove(&f->rig, API_JOB, "good");
    rig_settle(&f->rig);
    expect_none(f, "d/good");
}

static void jobs_that_ended_before_are_not_counted(void **state)
{
    struct fixture *f = *state;

    rig_put(&f->rig, JOB("a"));
    live(f);
    rig_end(&f->rig, "a-w-0", 0);
    rig_end(&f->rig, "a-w-1", 0);
    rig_settle(&f->rig);
    metrics_free(f->x);
    rig_restart(&f->rig);
    f->x = metrics_new(f->rig.m);
    rig_settle(&f->rig);
    expect_none(f, "job_name=");
    expect_line(f, "volcano_controller_job_to_pod_creation_latency_milliseconds_count 0");
}

static void the_wait_for_each_pod_is_observed(void **state)
{
    struct fixture *f = *state;

    rig_put(&f->rig, JOB("a"));
    rig_pass(&f->rig, 70);
    live(f);
    rig_put(&f->rig, JOB_OF("b", "2026-01-02T10:01:10Z"));
    live(f);
    expect_line(f,
                "volcano_controller_job_to_pod_creation_latency_milliseconds_bucket{le=\"50\"} 2");
    expect_line(
        f, "volcano_controller_job_to_pod_creation_latency_milliseconds_bucket{le=\"+Inf\"} 4");
    expect_line(f, "volcano_controller_job_to_pod_creation_latency_milliseconds_sum 140000");
    expect_line(f, "volcano_controller_job_to_pod_creation_latency_milliseconds_count 4");
}

static void flows_are_counted_by_namespace(void **state)
{
    struct fixture *f = *state;

    rig_put(&f->rig, "apiVersion: flow.volcano.sh/v1alpha1\n"
                     "kind: JobFlow\n"
                     "metadata: {name: a, namespace: d}\n"
                     "---\n"
                     "apiVersion: flow.volcano.sh/v1alpha1\n"
                     "kind: JobFlow\n"
                     "metadata: {name: b, namespace: d}\n");
    rig_settle(&f->rig);
    expect_none(f, "jobflow_namespace");
    rig_patch(&f->rig, API_JOBFLOW, "a", "{status: {state: {phase: Succeed}}}");
    rig_patch(&f->rig, API_JOBFLOW, "b", "{status: {state: {phase: Failed}}}");
    rig_settle(&f->rig);
    rig_patch(&f->rig, API_JOBFLOW, "a", "{metadata: {labels: {seen: again}}}");
    rig_settle(&f->rig);
    expect_line(f, "volcano_jobflow_succeed_phase_count{jobflow_namespace=\"d\"} 1");
    expect_line(f, "volcano_jobflow_failed_phase_count{jobflow_namespace=\"d\"} 1");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(queues_are_counted_when_asked),
        TEST(completed_and_failed_jobs_are_counted_while_they_exist),
        TEST(jobs_that_ended_before_are_not_counted),
        TEST(the_wait_for_each_pod_is_observed),
        TEST(flows_are_counted_by_namespace),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
