// SPDX-License-Identifier: Apache-2.0
// JobFlows: order, probes, patches, records of deleted jobs, and completion. The tests set the
// phases of jobs: the job controller does not run here.
#include "controllers/fault_rig_test.h"
#include "controllers/prober.h"
#include "controllers/table.h"

static const struct ctl_type *const types[] = {&ctl_jobflow};

#define FLOW(spec)                                                                                 \
    "apiVersion: flow.volcano.sh/v1alpha1\n"                                                       \
    "kind: JobFlow\n"                                                                              \
    "metadata: {name: f, namespace: d}\n"                                                          \
    "spec:\n" spec "---\n"
#define TEMPLATE(name)                                                                             \
    "apiVersion: flow.volcano.sh/v1alpha1\n"                                                       \
    "kind: JobTemplate\n"                                                                          \
    "metadata: {name: " name ", namespace: d}\n"                                                   \
    "spec:\n"                                                                                      \
    "  queue: q\n"                                                                                 \
    "  maxRetry: 5\n"                                                                              \
    "  tasks:\n"                                                                                   \
    "  - name: w\n"                                                                                \
    "    replicas: 2\n"                                                                            \
    "    template: {spec: {containers: [{name: main, image: i1, args: [x]}]}}\n"                   \
    "---\n"
#define ONE "  flows: [{name: a}]\n"
#define TWO "  flows: [{name: a}, {name: b, dependsOn: {targets: [a]}}]\n"
/* b after a; c and d after b; e after both. */
#define FIVE                                                                                       \
    "  jobRetainPolicy: delete\n"                                                                  \
    "  flows:\n"                                                                                   \
    "  - {name: a}\n"                                                                              \
    "  - {name: b, dependsOn: {targets: [a]}}\n"                                                   \
    "  - {name: c, dependsOn: {targets: [b]}}\n"                                                   \
    "  - {name: dd, dependsOn: {targets: [b]}}\n"                                                  \
    "  - {name: e, dependsOn: {targets: [c, dd]}}\n"
#define TEMPLATES TEMPLATE("a") TEMPLATE("b") TEMPLATE("c") TEMPLATE("dd") TEMPLATE("e")

static void begin(struct rig *r, const char *yaml)
{
    rig_init(r, types, HK_LEN(types));
    rig_put(r, yaml);
    rig_manager(r);
    rig_settle(r);
}

static void set_phase_now(struct rig *r, const char *job, const char *phase)
{
    char yaml[200];

    snprintf(yaml, sizeof(yaml),
             "status: {state: {phase: %s, lastTransitionTime: '2026-01-02T10:01:00Z'}}", phase);
    rig_patch(r, API_JOB, job, yaml);
}

static void set_phase(struct rig *r, const char *job, const char *phase)
{
    set_phase_now(r, job, phase);
    rig_settle(r);
}

static void expect_phase(struct rig *r, const char *want)
{
    char quoted[40];

    snprintf(quoted, sizeof(quoted), "\"%s\"", want);
    rig_expect(r, API_JOBFLOW, "f", "status.state.phase", quoted);
}

/* ---- order ---- */

static void a_job_is_made_from_the_template(void **state)
{
    struct rig r;

    begin(&r, FLOW(ONE) TEMPLATE("a"));
    rig_expect(&r, API_JOB, "f-a", "metadata.labels",
               "{\"volcano.sh/createdByJobTemplate\":\"d.a\","
               "\"volcano.sh/createdByJobFlow\":\"d.f\"}");
    rig_expect(&r, API_JOB, "f-a", "metadata.annotations",
               "{\"volcano.sh/createdByJobTemplate\":\"d.a\","
               "\"volcano.sh/createdByJobFlow\":\"d.f\"}");
    rig_expect(&r, API_JOB, "f-a", "metadata.ownerReferences",
               "[{\"apiVersion\":\"flow.volcano.sh/v1alpha1\",\"kind\":\"JobFlow\",\"name\":\"f\","
               "\"uid\":\"u-f\",\"controller\":true,\"blockOwnerDeletion\":true}]");
    assert_true(json_equal(json_get(rig_get(&r, API_JOB, "f-a"), "spec"),
                           json_get(rig_get(&r, API_JOBTEMPLATE, "a"), "spec")));
    rig_expect_events(&r, "Created", "create a job named f-a!");
    expect_phase(&r, "Pending");
    rig_expect(&r, API_JOBFLOW, "f", "status.unKnowJobs", "[\"f-a\"]");
    assert_int_equal(manager_metrics(r.m)->writes[PORT_CREATE], 1);
    assert_int_equal(manager_metrics(r.m)->writes[PORT_UPDATE], 1);
    rig_fini(&r);
}

static void the_flow_follows_its_only_job(void **state)
{
    static const struct {
        const char *job, *flow;
    } cases[] = {
        {"Pending", "Pending"}, {"Running", "Running"},    {"Completed", "Succeed"},
        {"Failed", "Failed"},   {"Terminated", "Failed"},  {"Completing", "Pending"},
        {"Aborted", "Pending"}, {"Restarting", "Pending"}, {"Terminating", "Pending"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct rig r;

        begin(&r, FLOW(ONE) TEMPLATE("a"));
        set_phase(&r, "f-a", cases[i].job);
        print_message("# a job that is %s\n", cases[i].job);
        expect_phase(&r, cases[i].flow);
        rig_fini(&r);
    }
}

/* Five steps. */
static void steps_wait_and_their_jobs_are_deleted_in_the_end(void **state)
{
    struct rig r;

    begin(&r, FLOW(FIVE) TEMPLATES);
    assert_string_equal(rig_names(&r, API_JOB), "f-a");
    set_phase(&r, "f-a", "Completed");
    assert_string_equal(rig_names(&r, API_JOB), "f-a f-b");
    expect_phase(&r, "Running");
    set_phase(&r, "f-b", "Completed");
    assert_string_equal(rig_names(&r, API_JOB), "f-a f-b f-c f-dd");
    set_phase(&r, "f-c", "Completed");
    assert_int_equal(rig_count(&r, API_JOB), 4);
    set_phase(&r, "f-dd", "Completed");
    assert_int_equal(rig_count(&r, API_JOB), 5);
    set_phase(&r, "f-e", "Completed");
    expect_phase(&r, "Succeed");
    assert_string_equal(rig_names(&r, API_JOB), "");
    rig_expect(&r, API_JOBFLOW, "f", "status.completedJobs",
               "[\"f-a\",\"f-b\",\"f-c\",\"f-dd\",\"f-e\"]");
    rig_fini(&r);
}

static void jobs_are_kept_without_the_policy(void **state)
{
    struct rig r;

    begin(&r, FLOW("  jobRetainPolicy: retain\n" ONE) TEMPLATE("a"));
    set_phase(&r, "f-a", "Completed");
    expect_phase(&r, "Succeed");
    assert_string_equal(rig_names(&r, API_JOB), "f-a");
    rig_fini(&r);
}

static void a_missing_template_is_waited_for(void **state)
{
    struct rig r;

    begin(&r, FLOW("  flows: [{name: a}, {name: b}]\n") TEMPLATE("b"));
    rig_pass(&r, 1);
    assert_string_equal(rig_names(&r, API_JOB), "f-b");
    set_phase(&r, "f-b", "Running");
    rig_pass(&r, 400);
    expect_phase(&r, "Running"); /* other steps continue */
    rig_expect_events(&r, "FailedStep", "retrying: jobtemplates.flow.volcano.sh \"a\" not found");
    rig_expect_events(
        &r, "SyncJobFlow",
        "SyncJobFlow JobFlow failed for jobtemplates.flow.volcano.sh \"a\" not found");
    rig_put(&r, TEMPLATE("a"));
    rig_settle(&r);
    assert_string_equal(rig_names(&r, API_JOB), "f-b f-a");
    rig_fini(&r);
}

/* The author of the flow may still be changing it. */
static void a_flow_that_cannot_begin_has_no_status(void **state)
{
    struct rig r;

    begin(&r, FLOW("  flows: [{name: a}]\n"));
    rig_pass(&r, 60);
    rig_expect(&r, API_JOBFLOW, "f", "status", "");
    rig_put(&r, TEMPLATE("a"));
    rig_settle(&r);
    assert_string_equal(rig_names(&r, API_JOB), "f-a");
    expect_phase(&r, "Pending");
    rig_fini(&r);
}

static void a_job_of_another_owner_does_not_count(void **state)
{
    struct rig r;

    begin(&r, FLOW(TWO) TEMPLATES "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\n"
                                  "metadata: {name: f-a, namespace: d}\n"
                                  "status: {state: {phase: Completed}}\n");
    rig_pass(&r, 1);
    assert_string_equal(rig_names(&r, API_JOB), "f-a");
    expect_phase(&r, "Pending");
    rig_remove(&r, API_JOB, "f-a");
    rig_pass(&r, 10);
    rig_expect(&r, API_JOB, "f-a", "metadata.labels",
               "{\"volcano.sh/createdByJobTemplate\":\"d.a\","
               "\"volcano.sh/createdByJobFlow\":\"d.f\"}");
    rig_fini(&r);
}

/* ---- deleted jobs ---- */

static void a_completed_job_is_not_run_again(void **state)
{
    struct rig r;

    begin(&r, FLOW(TWO) TEMPLATES);
    set_phase(&r, "f-a", "Completed");
    rig_remove(&r, API_JOB, "f-a"); /* its TTL is over */
    rig_settle(&r);
    assert_string_equal(rig_names(&r, API_JOB), "f-b");
    rig_restart(&r);
    rig_settle(&r);
    assert_string_equal(rig_names(&r, API_JOB), "f-b");
    set_phase(&r, "f-b", "Completed");
    expect_phase(&r, "Succeed");
    rig_remove(&r, API_JOB, "f-b");
    rig_settle(&r);
    assert_string_equal(rig_names(&r, API_JOB), "");
    rig_expect(&r, API_JOBFLOW, "f", "status.completedJobs", "[\"f-a\",\"f-b\"]");
    rig_fini(&r);
}

/* The job is deleted before the status records it. */
static void a_job_that_completes_and_vanishes_is_not_run_again(void **state)
{
    struct rig r;

    begin(&r, FLOW(TWO) TEMPLATES);
    set_phase_now(&r, "f-a", "Completed");
    rig_remove(&r, API_JOB, "f-a");
    rig_settle(&r);
    assert_string_equal(rig_names(&r, API_JOB), "f-b");
    rig_expect(&r, API_JOBFLOW, "f", "status.completedJobs", "[\"f-a\"]");
    rig_fini(&r);
}

static void a_job_that_was_deleted_before_its_end_is_made_again(void **state)
{
    struct rig r;

    begin(&r, FLOW(ONE) TEMPLATE("a"));
    set_phase(&r, "f-a", "Running");
    rig_remove(&r, API_JOB, "f-a");
    rig_settle(&r);
    assert_string_equal(rig_names(&r, API_JOB), "f-a");
    rig_fini(&r);
}

static void steps_added_later_are_run(void **state)
{
    struct rig r;

    begin(&r, FLOW(ONE) TEMPLATES);
    set_phase(&r, "f-a", "Completed");
    expect_phase(&r, "Succeed");
    rig_patch(&r, API_JOBFLOW, "f",
              "spec: {flows: [{name: a}, {name: b, dependsOn: {targets: [a]}}]}");
    rig_settle(&r);
    assert_string_equal(rig_names(&r, API_JOB), "f-a f-b");
    expect_phase(&r, "Running");
    set_phase(&r, "f-b", "Completed");
    expect_phase(&r, "Succeed");
    rig_fini(&r);
}

static void a_failed_flow_starts_nothing_more(void **state)
{
    struct rig r;

    begin(&r, FLOW("  flows: [{name: a}, {name: b}, {name: c, dependsOn: {targets: [b]}}]\n")
                  TEMPLATES);
    set_phase(&r, "f-a", "Failed");
    expect_phase(&r, "Failed");
    set_phase(&r, "f-b", "Completed");
    assert_string_equal(rig_names(&r, API_JOB), "f-a f-b");
    rig_fini(&r);
}

static void the_status_has_the_history_of_each_job(void **state)
{
    struct rig r;

    begin(&r, FLOW(ONE) TEMPLATE("a"));
    set_phase(&r, "f-a", "Pending");
    rig_patch(&r, API_JOB, "f-a",
              "status:\n"
              "  state: {phase: Running, lastTransitionTime: '2026-01-02T10:02:00Z'}\n"
              "  retryCount: 1\n"
              "  runningDuration: 1m30s\n"
              "  taskStatusCount: {w: {phase: {Running: 2}}}\n");
    rig_settle(&r);
    rig_expect(&r, API_JOBFLOW, "f", "status.jobStatusList",
               "[{\"name\":\"f-a\",\"state\":\"Running\","
               "\"startTimestamp\":\"2026-01-02T10:00:00Z\","
               "\"endTimestamp\":\"2026-01-02T10:01:30Z\",\"restartCount\":1,"
               "\"runningHistories\":["
               "{\"startTimestamp\":\"2026-01-02T10:01:00Z\",\"state\":\"Pending\","
               "\"endTimestamp\":\"2026-01-02T10:02:00Z\"},"
               "{\"startTimestamp\":\"2026-01-02T10:02:00Z\",\"state\":\"Running\"}]}]");
    rig_expect(&r, API_JOBFLOW, "f", "status.conditions",
               "{\"f-a\":{\"phase\":\"Running\",\"createTime\":\"2026-01-02T10:00:00Z\","
               "\"runningDuration\":\"1m30s\","
               "\"taskStatusCount\":{\"w\":{\"phase\":{\"Running\":2}}}}}");
    rig_fini(&r);
}

/* ---- patches ---- */

static void a_patch_changes_the_template(void **state)
{
    struct rig r;

    begin(&r,
          FLOW("  flows:\n"
               "  - name: a\n"
               "    patch:\n"
               "      jobSpec:\n"
               "        queue: default\n" /* defaults of the schema change nothing */
               "        maxRetry: 3\n"
               "        priorityClassName: high\n"
               "        tasks:\n"
               "        - name: w\n"
               "          replicas: 7\n"
               "          template: {spec: {containers: [{name: main, image: i2}, {name: log}]}}\n"
               "        - {name: extra, replicas: 1}\n") TEMPLATE("a"));
    rig_expect(&r, API_JOB, "f-a", "spec",
               "{\"queue\":\"q\",\"maxRetry\":5,\"tasks\":["
               "{\"name\":\"w\",\"replicas\":7,\"template\":{\"spec\":{\"containers\":["
               "{\"name\":\"main\",\"image\":\"i2\",\"args\":[\"x\"]},{\"name\":\"log\"}]}}},"
               "{\"name\":\"extra\",\"replicas\":1}],\"priorityClassName\":\"high\"}");
    rig_fini(&r);
}

/* ---- probes ---- */

static void a_probe_of_tasks_goes_by_the_jobs_counts(void **state)
{
    struct rig r;

    begin(&r, FLOW("  flows:\n"
                   "  - {name: a}\n"
                   "  - name: b\n"
                   "    dependsOn:\n"
                   "      targets: [a]\n"
                   "      probe: {taskStatusList: [{taskName: w, phase: Running}]}\n") TEMPLATES);
    set_phase(&r, "f-a", "Running");
    rig_patch(&r, API_JOB, "f-a", "status: {taskStatusCount: {w: {phase: {Running: 1}}}}");
    rig_settle(&r);
    assert_string_equal(rig_names(&r, API_JOB), "f-a");
    /* One of the two pods has already succeeded. */
    rig_patch(&r, API_JOB, "f-a",
              "status: {taskStatusCount: {w: {phase: {Running: 1, Succeeded: 1}}}}");
    rig_settle(&r);
    assert_string_equal(rig_names(&r, API_JOB), "f-a f-b");
    rig_fini(&r);
}

/* Records the probes, and answers when the test says so. */
struct fake_prober {
    struct prober prober;
    struct prober_sink sink[8];
    struct hk_buf asked;
    uint32_t n, ncancel;
};

static uint64_t fake_start(struct prober *p, const struct probe *probe, struct prober_sink sink)
{
    struct fake_prober *f = (struct fake_prober *)p;

    hk_buf_addf(&f->asked, "%s%s %.*s:%u", f->asked.len > 0 ? "; " : "",
                probe->http ? "http" : "tcp", HK_FMT(probe->host), probe->port);
    if (probe->http) {
        hk_buf_addf(&f->asked, "%.*s %.*s=%.*s", HK_FMT(probe->path), HK_FMT(probe->header),
                    HK_FMT(probe->value));
    }
    f->sink[f->n++] = sink;
    return f->n;
}

static void fake_cancel(struct prober *p, uint64_t id)
{
    ((struct fake_prober *)p)->ncancel++;
}

static const struct prober_ops fake_ops = {fake_start, fake_cancel};

static void answer(struct rig *r, struct fake_prober *f, uint64_t id, bool good)
{
    f->sink[id - 1].on_done(f->sink[id - 1].ctx, id, good);
    rig_settle(r);
}

#define NET_FLOW                                                                                   \
    FLOW("  flows:\n"                                                                              \
         "  - {name: a}\n"                                                                         \
         "  - name: b\n"                                                                           \
         "    dependsOn:\n"                                                                        \
         "      targets: [a]\n"                                                                    \
         "      probe:\n"                                                                          \
         "        httpGetList:\n"                                                                  \
         "        - {taskName: w, path: /ok, port: 80, httpHeader: {name: X, value: '1'}}\n"       \
         "        tcpSocketList: [{taskName: w, port: 22}]\n")                                     \
    TEMPLATES

static void put_pod(struct rig *r, int i)
{
    char yaml[200];

    snprintf(yaml, sizeof(yaml),
             "apiVersion: v1\nkind: Pod\nmetadata: {name: f-a-w-%d, namespace: d}\n"
             "status: {podIP: 10.0.0.%d}\n",
             i, i);
    rig_put(r, yaml);
}

static void begin_net(struct rig *r, struct fake_prober *f)
{
    *f = (struct fake_prober){.prober.ops = &fake_ops};
    rig_init(r, types, HK_LEN(types));
    r->conf.prober = &f->prober;
    rig_put(r, NET_FLOW);
    put_pod(r, 0);
    rig_manager(r);
    rig_settle(r);
    set_phase(r, "f-a", "Running");
}

static void probes_ask_every_pod_of_the_task(void **state)
{
    struct fake_prober f;
    struct rig r;

    begin_net(&r, &f);
    assert_string_equal(f.asked.data, "http 10.0.0.0:80/ok X=1; tcp 10.0.0.0:22");
    answer(&r, &f, 1, true); /* the next pod has no address yet */
    answer(&r, &f, 2, true);
    assert_int_equal(f.n, 2);
    put_pod(&r, 1);
    rig_pass(&r, 2);
    assert_string_equal(f.asked.data, "http 10.0.0.0:80/ok X=1; tcp 10.0.0.0:22; "
                                      "http 10.0.0.1:80/ok X=1; tcp 10.0.0.1:22");
    answer(&r, &f, 3, true);
    assert_string_equal(rig_names(&r, API_JOB), "f-a");
    answer(&r, &f, 4, false);
    rig_pass(&r, 1);
    assert_int_equal(f.n, 4);
    rig_pass(&r, 1);
    assert_int_equal(f.n, 5); /* only the failed probe is repeated */
    answer(&r, &f, 5, true);
    assert_string_equal(rig_names(&r, API_JOB), "f-a f-b");
    rig_fini(&r);
    hk_buf_fini(&f.asked);
}

static void a_completed_target_needs_no_probe(void **state)
{
    struct fake_prober f;
    struct rig r;

    begin_net(&r, &f);
    assert_int_equal(f.n, 2);
    set_phase(&r, "f-a", "Completed");
    assert_string_equal(rig_names(&r, API_JOB), "f-a f-b");
    assert_int_equal(f.ncancel, 2);
    rig_fini(&r);
    hk_buf_fini(&f.asked);
}

static void probes_end_with_the_flow(void **state)
{
    struct fake_prober f;
    struct rig r;

    begin_net(&r, &f);
    rig_remove(&r, API_JOBFLOW, "f");
    rig_settle(&r);
    assert_int_equal(f.ncancel, 2);
    rig_fini(&r);
    hk_buf_fini(&f.asked);
}

/* ---- faults ---- */

static struct rig world;
static uint32_t runs; /* of jobs, to completion */

static void end_job(void *ctx, const struct api_object *o)
{
    char name[64];

    snprintf(name, sizeof(name), "%.*s", HK_FMT(o->name));
    if (!json_at(&o->root, "status.state.phase")) {
        set_phase_now(ctx, name, "Completed");
        runs++;
    }
}

/* Deletes finished jobs, as if their TTL were over. */
static void clean_job(void *ctx, const struct api_object *o)
{
    struct rig *r = ctx;

    if (json_at(&o->root, "status.state.phase")) {
        (void)port_mem_remove(r->mem, o->kind, o->ns, o->name);
    }
}

static void play(struct fault_rig *f, const char *flow, bool clean)
{
    runs = 0;
    rig_put(f->rig, flow);
    for (int i = 0; i < 8; i++) {
        fault_rig_pass(f);
        if (clean) {
            port_mem_each(f->rig->mem, api_kind(API_JOB), clean_job, f->rig);
        }
        port_mem_each(f->rig->mem, api_kind(API_JOB), end_job, f->rig);
    }
}

static void play_to_the_end(struct fault_rig *f)
{
    play(f, FLOW(FIVE) TEMPLATES, false);
}

static void play_with_cleaning(struct fault_rig *f)
{
    play(f, FLOW(FIVE) TEMPLATES, true);
}

static void describe_flow(struct hk_buf *out)
{
    hk_buf_addf(out, "%u runs, %u jobs", runs, rig_count(&world, API_JOB));
    hk_buf_addf(out, " %s", rig_at(&world, API_JOBFLOW, "f", "status.state.phase"));
    hk_buf_addf(out, " %s", rig_at(&world, API_JOBFLOW, "f", "status.completedJobs"));
}

static void with_any_fault_the_final_state_is_the_same(void **state)
{
    static void (*const plays[])(struct fault_rig *) = {play_to_the_end, play_with_cleaning};

    for (size_t i = 0; i < HK_LEN(plays); i++) {
        const struct fault_story story = {&world, types, HK_LEN(types), plays[i], describe_flow};

        fault_rig_run_all_faults(&story, "5 runs, 0 jobs \"Succeed\" "
                                         "[\"f-a\",\"f-b\",\"f-c\",\"f-dd\",\"f-e\"]");
    }
}

static void a_new_process_writes_nothing(void **state)
{
    struct rig r;

    begin(&r, FLOW(TWO) TEMPLATES);
    set_phase(&r, "f-a", "Completed");
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
        cmocka_unit_test(a_job_is_made_from_the_template),
        cmocka_unit_test(the_flow_follows_its_only_job),
        cmocka_unit_test(steps_wait_and_their_jobs_are_deleted_in_the_end),
        cmocka_unit_test(jobs_are_kept_without_the_policy),
        cmocka_unit_test(a_missing_template_is_waited_for),
        cmocka_unit_test(a_flow_that_cannot_begin_has_no_status),
        cmocka_unit_test(a_job_of_another_owner_does_not_count),
        cmocka_unit_test(a_completed_job_is_not_run_again),
        cmocka_unit_test(a_job_that_completes_and_vanishes_is_not_run_again),
        cmocka_unit_test(a_job_that_was_deleted_before_its_end_is_made_again),
        cmocka_unit_test(steps_added_later_are_run),
        cmocka_unit_test(a_failed_flow_starts_nothing_more),
        cmocka_unit_test(the_status_has_the_history_of_each_job),
        cmocka_unit_test(a_patch_changes_the_template),
        cmocka_unit_test(a_probe_of_tasks_goes_by_the_jobs_counts),
        cmocka_unit_test(probes_ask_every_pod_of_the_task),
        cmocka_unit_test(a_completed_target_needs_no_probe),
        cmocka_unit_test(probes_end_with_the_flow),
        cmocka_unit_test(with_any_fault_the_final_state_is_the_same),
        cmocka_unit_test(a_new_process_writes_nothing),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
