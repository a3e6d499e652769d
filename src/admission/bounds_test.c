// SPDX-License-Identifier: Apache-2.0
// Bounds on every kind that creates other objects: on create, on growth, and in the webhook's
// rules.
#include "admission/vc_rig_test.h"

#define LIVE_NS                                                                                    \
    "{apiVersion: v1, kind: Namespace, metadata: {name: ns}, status: {phase: Active}}\n---\n"      \
    "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: default}, status: " \
    "{state: Open}}\n---\n"
#define META ", metadata: {name: j, namespace: ns, uid: u}, "
#define TEMPLATE                                                                                   \
    "template: {metadata: {labels: {a: b}}, spec: {restartPolicy: Never, containers: [{name: c, "  \
    "image: 'i:1'}]}}"
#define ALWAYS                                                                                     \
    "selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: "  \
    "[{name: c, image: 'i:1'}]}}"
#define TASK(name, replicas) "{name: " name ", replicas: " replicas ", " TEMPLATE "}"
#define TASKS(min, tasks) "{minAvailable: " min ", queue: default, tasks: [" tasks "]}"
#define JOB(spec) "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job" META "spec: " spec "}"
#define APPS(kind, n)                                                                              \
    "{apiVersion: apps/v1, kind: " kind META "spec: {replicas: " n ", " ALWAYS "}}"
#define MOST ": must be less than or equal to 100000 (--max-replicas)"

static const struct rig_case cases[] = {
    CASE("as many as there may be", JOB(TASKS("1", TASK("t", "100000"))), "", .state = LIVE_NS),
    CASE("one more", JOB(TASKS("1", TASK("t", "100001"))),
         "spec.tasks[0].replicas: Invalid value: 100001" MOST, .state = LIVE_NS),
    CASE("the second task", JOB(TASKS("1", TASK("t", "1") ", " TASK("u", "1000000000"))),
         "spec.tasks[1].replicas: Invalid value: 1000000000" MOST, .state = LIVE_NS),
    CASE("all tasks together", JOB(TASKS("1", TASK("t", "60000") ", " TASK("u", "60000"))),
         "spec.tasks: Invalid value: 120000: the replicas of all tasks together must be less than "
         "or equal to 100000 (--max-replicas)",
         .state = LIVE_NS),
    CASE("the minimum", JOB(TASKS("2147483647", TASK("t", "1"))),
         "spec.minAvailable: Invalid value: 2147483647" MOST, .state = LIVE_NS),
    CASE(
        "a cron job",
        "{apiVersion: batch.volcano.sh/v1alpha1, kind: CronJob" META
        "spec: {schedule: '* * * * *', failedJobsHistoryLimit: 2000000, jobTemplate: {spec: " TASKS(
            "1", TASK("t", "200000")) "}}}",
        "spec.failedJobsHistoryLimit: Invalid value: 2000000" MOST
        "\nspec.jobTemplate.spec.tasks[0].replicas: Invalid value: 200000" MOST,
        .state = LIVE_NS),
    CASE("a template of jobs",
         "{apiVersion: flow.volcano.sh/v1alpha1, kind: JobTemplate" META
         "spec: " TASKS("1", TASK("t", "200000")) "}",
         "spec.tasks[0].replicas: Invalid value: 200000" MOST, .state = LIVE_NS),
    CASE("a patch in a flow",
         "{apiVersion: flow.volcano.sh/v1alpha1, kind: JobFlow" META
         "spec: {jobRetainPolicy: retain, flows: [{name: a, patch: {jobSpec: " TASKS(
             "1", TASK("t", "200000")) "}}]}}",
         "spec.flows[0].patch.jobSpec.tasks[0].replicas: Invalid value: 200000" MOST,
         .state = LIVE_NS),
    CASE("jobs of jobs",
         "{apiVersion: training.volcano.sh/v1alpha1, kind: HyperJob" META
         "spec: {minAvailable: 1, replicatedJobs: [{name: r, replicas: 1000, templateSpec: " TASKS(
             "1", TASK("t", "1000")) "}]}}",
         "spec.replicatedJobs: Invalid value: 1000000: the replicas of all jobs together must be "
         "less than or equal to 100000 (--max-replicas)",
         .state = LIVE_NS),
    CASE("a group of pods",
         "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup" META
         "spec: {minMember: 2147483647, minTaskMember: {a: 60000, b: 60000}}}",
         "spec.minMember: Invalid value: 2147483647" MOST
         "\nspec.minTaskMember: Invalid value: 120000: the members of all tasks together must be "
         "less than or equal to 100000 (--max-replicas)",
         .state = LIVE_NS),
    CASE("a Deployment", APPS("Deployment", "1000000000"),
         "spec.replicas: Invalid value: 1000000000" MOST, .state = LIVE_NS),
    CASE("a ReplicaSet", APPS("ReplicaSet", "1000000000"),
         "spec.replicas: Invalid value: 1000000000" MOST, .state = LIVE_NS),
    CASE("a StatefulSet", APPS("StatefulSet", "1000000000"),
         "spec.replicas: Invalid value: 1000000000" MOST, .state = LIVE_NS),
    CASE("a ReplicationController",
         "{apiVersion: v1, kind: ReplicationController" META
         "spec: {replicas: 1000000000, selector: {a: b}, template: {metadata: {labels: {a: b}}, "
         "spec: {containers: [{name: c, image: 'i:1'}]}}}}",
         "spec.replicas: Invalid value: 1000000000" MOST, .state = LIVE_NS),
    CASE("a job of Kubernetes",
         "{apiVersion: batch/v1, kind: Job" META
         "spec: {parallelism: 1000000000, completions: 1000000000, " TEMPLATE "}}",
         "spec.parallelism: Invalid value: 1000000000" MOST
         "\nspec.completions: Invalid value: 1000000000" MOST,
         .state = LIVE_NS),
    CASE("a cron job of Kubernetes",
         "{apiVersion: batch/v1, kind: CronJob" META
         "spec: {schedule: '* * * * *', jobTemplate: {spec: {parallelism: 1000000, " TEMPLATE
         "}}}}",
         "spec.jobTemplate.spec.parallelism: Invalid value: 1000000" MOST, .state = LIVE_NS),
    CASE("growth", APPS("Deployment", "100001"), "spec.replicas: Invalid value: 100001" MOST,
         .state = LIVE_NS, .old = APPS("Deployment", "3")),
    CASE("what an earlier bound allowed stays", APPS("Deployment", "200000"), "", .state = LIVE_NS,
         .old = APPS("Deployment", "200000")),
    CASE("and may shrink", APPS("Deployment", "150000"), "", .state = LIVE_NS,
         .old = APPS("Deployment", "200000")),
};

static void test_one_object_asks_for_no_more_than_it_may(void **state)
{
    rig_check(cases, HK_LEN(cases));
}

/* 5,001 tasks of one replica each. */
static void test_the_number_of_tasks_is_bounded(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct rig r = {0};

    hk_buf_adds(&text,
                "{apiVersion: flow.volcano.sh/v1alpha1, kind: JobTemplate" META "spec: {tasks: [");
    for (int i = 0; i <= ADMISSION_MAX_TASKS; i++) {
        hk_buf_addf(&text, "%s{replicas: 1}", i > 0 ? ", " : "");
    }
    hk_buf_adds(&text, "]}}");
    rig_run(&r, LIVE_NS, NULL, text.data, NULL);
    assert_string_equal(rig_outcome(&r),
                        "spec.tasks: Invalid value: 5001: must have at most 5000 items");
    rig_fini(&r);
}

/* ---- the webhook ---- */

static const struct volcano_options more = {.max_replicas = 2000000};
static const struct volcano_options unbounded = {.max_replicas = -1};

static const struct review reviews[] = {
    REVIEW("a webhook has the same bound", "/jobs/validate", JOB(TASKS("1", TASK("t", "1000000"))),
           "spec.tasks[0].replicas: Invalid value: 1000000" MOST, .state = LIVE_NS),
    REVIEW("growth too", "/jobs/validate", JOB(TASKS("1", TASK("t", "1000000"))),
           "spec.tasks[0].replicas: Invalid value: 1000000" MOST, .state = LIVE_NS,
           .old = JOB(TASKS("1", TASK("t", "1")))),
    REVIEW("or another", "/jobs/validate", JOB(TASKS("1", TASK("t", "1000000"))), "[]",
           .state = LIVE_NS, .opts = &more),
    REVIEW("or none", "/jobs/validate", JOB(TASKS("1", TASK("t", "2147483647"))), "[]",
           .state = LIVE_NS, .opts = &unbounded),
    REVIEW("a group", "/podgroups/validate",
           "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup" META
           "spec: {queue: default, minMember: 1000000}}",
           "spec.minMember: Invalid value: 1000000" MOST, .state = LIVE_NS),
};

static void test_webhooks_keep_the_bounds(void **state)
{
    review_check(reviews, HK_LEN(reviews));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_object_asks_for_no_more_than_it_may),
        cmocka_unit_test(test_the_number_of_tasks_is_bounded),
        cmocka_unit_test(test_webhooks_keep_the_bounds),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
