// SPDX-License-Identifier: Apache-2.0
// Jobs: the patches of the mutating rule in order, several errors in one answer, and what an update
// may change. apiserver/volcano_test.c, which also has the schema, tests single errors.
#include "admission/vc_rig_test.h"

#define JOB(spec)                                                                                  \
    "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: j, namespace: ns}, "      \
    "spec: " spec "}"
#define POD "template: {spec: {containers: [{name: c, image: i}]}}"
#define SIZED(request)                                                                             \
    "template: {spec: {containers: [{name: c, image: i, resources: {" request "}}]}}"
#define QUEUE(name, spec, status)                                                                  \
    "---\n{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: " name         \
    "}, spec: " spec ", status: " status "}\n"

/* ---- mutation ---- */

static void mutation_patches_in_order(void **state)
{
    static const char *const names[] = {"mine", "volcano", NULL};
    static const struct volcano_options renamed = {.scheduler_names = names};
    static const struct review cases[] = {
        REVIEW("everything is missing", "/jobs/mutate", JOB("{tasks: [{replicas: 2}]}"),
               "[{\"op\":\"add\",\"path\":\"/spec/queue\",\"value\":\"default\"},"
               "{\"op\":\"add\",\"path\":\"/spec/schedulerName\",\"value\":\"volcano\"},"
               "{\"op\":\"add\",\"path\":\"/spec/maxRetry\",\"value\":3},"
               "{\"op\":\"replace\",\"path\":\"/spec/tasks\",\"value\":[{\"replicas\":2,\"name\":"
               "\"default0\",\"minAvailable\":2,\"maxRetry\":3}]},"
               "{\"op\":\"add\",\"path\":\"/spec/minAvailable\",\"value\":2}]"),
        REVIEW("nothing is missing", "/jobs/mutate",
               JOB("{queue: q, schedulerName: s, maxRetry: 1, minAvailable: 1, tasks: [{name: a, "
                   "replicas: 1, minAvailable: 0, maxRetry: 2}]}"),
               "[]"),
        REVIEW("no spec at all", "/jobs/mutate",
               "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: j}}",
               "[{\"op\":\"add\",\"path\":\"/spec\",\"value\":{}},"
               "{\"op\":\"add\",\"path\":\"/spec/queue\",\"value\":\"default\"},"
               "{\"op\":\"add\",\"path\":\"/spec/schedulerName\",\"value\":\"volcano\"},"
               "{\"op\":\"add\",\"path\":\"/spec/maxRetry\",\"value\":3},"
               "{\"op\":\"add\",\"path\":\"/spec/minAvailable\",\"value\":0}]"),
        REVIEW("the first name of the scheduler", "/jobs/mutate",
               JOB("{queue: q, maxRetry: 1, minAvailable: 1}"),
               "[{\"op\":\"add\",\"path\":\"/spec/schedulerName\",\"value\":\"mine\"}]",
               .opts = &renamed),
        REVIEW(
            "partitions make the minimum, which counts for the job", "/jobs/mutate",
            JOB("{queue: q, schedulerName: s, maxRetry: 1, tasks: [{name: a, replicas: 8, "
                "maxRetry: "
                "1, partitionPolicy: {totalPartitions: 4, partitionSize: 2, minPartitions: 3}}, "
                "{name: b, replicas: 5, maxRetry: 1, partitionPolicy: {totalPartitions: 5, "
                "partitionSize: 1}}]}"),
            "[{\"op\":\"replace\",\"path\":\"/spec/"
            "tasks\",\"value\":[{\"name\":\"a\",\"replicas\":8,"
            "\"maxRetry\":1,\"partitionPolicy\":{\"totalPartitions\":4,\"partitionSize\":2,"
            "\"minPartitions\":3},\"minAvailable\":6},{\"name\":\"b\",\"replicas\":5,\"maxRetry\":"
            "1,"
            "\"partitionPolicy\":{\"totalPartitions\":5,\"partitionSize\":1},\"minAvailable\":5}]},"
            "{\"op\":\"add\",\"path\":\"/spec/minAvailable\",\"value\":11}]"),
        REVIEW(
            "mpi brings svc and ssh", "/jobs/mutate",
            JOB("{queue: q, schedulerName: s, maxRetry: 1, minAvailable: 1, plugins: {mpi: []}}"),
            "[{\"op\":\"replace\",\"path\":\"/spec/plugins\",\"value\":{\"mpi\":[],\"svc\":[],"
            "\"ssh\":[]}}]"),
        REVIEW(
            "ray brings svc, and what is there stays", "/jobs/mutate",
            JOB("{queue: q, schedulerName: s, maxRetry: 1, minAvailable: 1, plugins: {ray: [], "
                "ssh: "
                "[a]}}"),
            "[{\"op\":\"replace\",\"path\":\"/spec/plugins\",\"value\":{\"ray\":[],\"ssh\":[\"a\"],"
            "\"svc\":[]}}]"),
        REVIEW("a spec that is no object is left to the schema", "/jobs/mutate", JOB("text"), "[]"),
        REVIEW("a deletion", "/jobs/mutate", NULL, "expect operation to be 'CREATE' ",
               .old = JOB("{}")),
    };

    review_check(cases, HK_LEN(cases));
}

static void a_manifest_can_be_applied_again(void **state)
{
    static const char stored[] =
        JOB("{queue: q, tasks: [{name: default0, replicas: 2, minAvailable: 2, maxRetry: 3, "
            "template: {spec: {hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet}}}]}");
    static const struct review cases[] = {
        REVIEW("what creation filled in comes back", "/jobs/mutate",
               JOB("{queue: q, tasks: [{replicas: 2, template: {spec: {hostNetwork: true}}}]}"),
               "[{\"op\":\"replace\",\"path\":\"/spec/tasks\",\"value\":[{\"replicas\":2,"
               "\"template\":{\"spec\":{\"hostNetwork\":true,\"dnsPolicy\":"
               "\"ClusterFirstWithHostNet\"}},\"name\":\"default0\",\"maxRetry\":3,"
               "\"minAvailable\":2}]}]",
               .old = stored),
        REVIEW("what is said stays", "/jobs/mutate", stored, "[]", .old = stored),
        REVIEW("a job that was stored without is left alone", "/jobs/mutate",
               JOB("{tasks: [{replicas: 2}]}"), "[]", .old = JOB("{tasks: [{replicas: 2}]}")),
        REVIEW("other tasks are for validation to refuse", "/jobs/mutate",
               JOB("{tasks: [{replicas: 2}, {replicas: 1}]}"), "[]", .old = stored),
    };

    review_check(cases, HK_LEN(cases));
}

/* ---- creation ---- */

static void findings_come_together(void **state)
{
    static const struct volcano_options patient = {.wait_for_queue_state = true};
    static const struct review cases[] = {
        REVIEW(
            "several at once", "/jobs/validate",
            JOB("{minAvailable: 9, queue: nope, plugins: {x: [], z: []}, tasks: [{name: w, "
                "replicas: "
                "1, minAvailable: 2, " POD "}]}"),
            "'minAvailable' is greater than 'replicas' in task: w, job: j; job 'minAvailable' "
            "should "
            "not be greater than total replicas in tasks; unable to find job plugin: x; unable to "
            "find job plugin: z; unable to find job queue: queue.scheduling.volcano.sh \"nope\" "
            "not "
            "found;",
            .state = QUEUE("q", "{}", "{}")),
        REVIEW("nothing behind a repeated name is judged", "/jobs/validate",
               JOB("{tasks: [{name: w, replicas: 1, " POD
                   "}, {name: w, replicas: 1}, {name: Z, replicas: "
                   "1}]}"),
               "duplicated task name w;"),
        REVIEW(
            "a template's faults one after the other", "/jobs/validate",
            JOB("{tasks: [{name: w, replicas: 1, template: {metadata: {labels: {a: -}}, spec: "
                "{restartPolicy: X, containers: [{name: a, image: i}, {name: a, image: i}]}}}]}"),
            "spec.task[0].template.labels: Invalid value: \"-\": a valid label must be an empty "
            "string "
            "or consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
            "an "
            "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
            "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?'). "
            "template.spec.containers[1].name: Duplicate value: \"a\". "
            "template.spec.restartPolicy: "
            "Unsupported value: \"X\": supported values: \"Always\", \"OnFailure\", \"Never\"."),
        REVIEW("no template", "/jobs/validate", JOB("{tasks: [{name: w, replicas: 1}]}"),
               "spec.task[0].template.spec.containers: Required value."),
        REVIEW(
            "a mount of no volume", "/jobs/validate",
            JOB("{tasks: [{name: w, replicas: 1, template: {spec: {containers: [{name: c, image: "
                "i, "
                "volumeMounts: [{name: data, mountPath: /d}]}]}}}]}"),
            "spec.task[0].template.spec.containers[0].volumeMounts[0].name: Not found: \"data\"."),
        REVIEW("a pod that asks for less than its containers", "/jobs/validate",
               JOB("{tasks: [{name: w, replicas: 1, template: {spec: {resources: {requests: {cpu: "
                   "2}}, containers: [{name: c, image: i, resources: {requests: {cpu: 4}}}]}}}]}"),
               "spec.task[0].template.spec.resources.requests[cpu]: Invalid value: \"2\": must be "
               "greater than or equal to aggregate container requests of 4."),
        REVIEW("limits stand in for requests", "/jobs/validate",
               JOB("{tasks: [{name: w, replicas: 1, topologyPolicy: best-effort, " SIZED(
                   "limits: {cpu: 1500m}") "}]}"),
               "the cpu request isn't an integer in spec.task[0] container[0]."),
        REVIEW("whole processors", "/jobs/validate",
               JOB("{tasks: [{name: w, replicas: 1, topologyPolicy: best-effort, " SIZED(
                   "limits: {cpu: 2}") "}]}"),
               "[]"),
        REVIEW("half a processor without policy", "/jobs/validate",
               JOB("{tasks: [{name: w, replicas: 1, topologyPolicy: none, " SIZED(
                   "requests: {cpu: 500m}") "}]}"),
               "[]"),
        REVIEW(
            "two errors in the policies", "/jobs/validate",
            JOB("{policies: [{events: [\"*\", PodFailed], action: AbortJob}, {exitCode: 0}], "
                "tasks: "
                "[{name: w, replicas: 1, " POD "}]}"),
            "2 errors occurred:\n\t* 0 is not a valid error code\n\t* if there's * here, no other "
            "policy should be here\n\n valid events are [* PodPending PodFailed PodEvicted Unknown "
            "TaskCompleted TaskFailed JobUpdated], valid actions are [AbortJob RestartJob "
            "RestartTask "
            "RestartPod RestartPartition TerminateJob CompleteJob ResumeJob];"),
        REVIEW("an event twice in one policy is once", "/jobs/validate",
               JOB("{policies: [{event: PodFailed, events: [PodFailed, PodEvicted, PodFailed], "
                   "action: "
                   "AbortJob}, {exitCode: 3}], tasks: [{name: w, replicas: 1, " POD "}]}"),
               "[]"),
        REVIEW(
            "a dependency named twice", "/jobs/validate",
            JOB("{tasks: [{name: a, " POD "}, {name: b, dependsOn: {name: [a, a]}, " POD "}]}"),
            "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);"),
        REVIEW(
            "a dependency on itself", "/jobs/validate",
            JOB("{tasks: [{name: a, dependsOn: {name: [a]}, " POD "}]}"),
            "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);"),
        REVIEW("a diamond", "/jobs/validate",
               JOB("{tasks: [{name: a, dependsOn: {name: [b, c]}, " POD
                   "}, {name: b, dependsOn: {name: [d]}, " POD
                   "}, {name: c, dependsOn: {name: [d]}, " POD "}, {name: d, " POD "}]}"),
               "[]"),
        REVIEW("the master by two words", "/jobs/validate",
               JOB("{plugins: {mpi: [--port, \"22\", --master, w]}, tasks: [{name: w, " POD "}]}"),
               "[]"),
        REVIEW("a partition's tier by number and by name", "/jobs/validate",
               JOB("{tasks: [{name: w, replicas: 2, partitionPolicy: {totalPartitions: 1, "
                   "partitionSize: "
                   "2, networkTopology: {highestTierAllowed: 1, highestTierName: rack}}, " POD
                   "}]}"),
               "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology "
               "simultaneously"),
        REVIEW("a queue without a state is open", "/jobs/validate",
               JOB("{queue: q, tasks: [{name: w, replicas: 1, " POD "}]}"), "[]",
               .state = QUEUE("q", "{}", "{}")),
        REVIEW("unless the queue controller is waited for", "/jobs/validate",
               JOB("{queue: q, tasks: [{name: w, replicas: 1, " POD "}]}"),
               "can only submit job to queue with state `Open`, queue `q` status is ``;",
               .state = QUEUE("q", "{}", "{}"), .opts = &patient),
        REVIEW("a queue that closes and has children", "/jobs/validate",
               JOB("{queue: q, tasks: [{name: w, replicas: 1, " POD "}]}"),
               "can only submit job to queue with state `Open`, queue `q` status is `Closing`; can "
               "only "
               "submit job to leaf queue, queue `q` has 2 child queues;",
               .state = QUEUE("q", "{}", "{state: Closing}") QUEUE("a", "{parent: q}", "{}")
                   QUEUE("b", "{parent: q}", "{}")),
        REVIEW("a mount path that is empty", "/jobs/validate",
               JOB("{volumes: [{mountPath: \"\"}], tasks: [{name: w, replicas: 1, " POD "}]}"),
               "mountPath is required;"),
    };

    review_check(cases, HK_LEN(cases));
}

/* ---- update ---- */

#define RUNNING                                                                                    \
    JOB("{queue: q, minAvailable: 2, plugins: {svc: []}, volumes: [{mountPath: /d, volumeClaim: "  \
        "{accessModes: [ReadWriteOnce]}}], tasks: [{name: w, replicas: 3, minAvailable: 2, "       \
        "template: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "          \
        "\"1\"}}}]}}}]}")
#define CHANGED(queue, plugins, volume, task, container)                                           \
    JOB("{queue: " queue ", minAvailable: 1, priorityClassName: high, plugins: " plugins           \
        ", volumes: [{mountPath: /d, " volume                                                      \
        "volumeClaim: {accessModes: [ReadWriteOnce]}}], tasks: [{name: w, " task                   \
        ", template: {spec: {containers: [{name: c, image: i, " container "}]}}}]}")
#define ASKS_ONE "resources: {requests: {cpu: \"1\"}}"
#define FROZEN                                                                                     \
    "job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` " \
    "and `PriorityClassName`"

static void only_the_size_of_a_running_job_changes(void **state)
{
    static const struct review cases[] = {
        REVIEW("sizes and priority", "/jobs/validate",
               CHANGED("q", "{svc: []}", "", "replicas: 9, minAvailable: 1", ASKS_ONE), "[]",
               .old = RUNNING),
        REVIEW("the controller's name for a claim", "/jobs/validate",
               CHANGED("q", "{svc: []}", "volumeClaimName: made, ", "replicas: 3", ASKS_ONE), "[]",
               .old = RUNNING),
        REVIEW("the same amount in other words", "/jobs/validate",
               CHANGED("q", "{svc: null}", "", "replicas: 3, policies: []",
                       "env: [], stdin: false, resources: {requests: {cpu: 1000m}}"),
               "[]", .old = RUNNING),
        REVIEW("another amount", "/jobs/validate",
               CHANGED("q", "{svc: []}", "", "replicas: 3", "resources: {requests: {cpu: 2}}"),
               FROZEN, .old = RUNNING),
        REVIEW("another field", "/jobs/validate",
               CHANGED("q", "{svc: []}", "", "replicas: 3", "tty: true, " ASKS_ONE), FROZEN,
               .old = RUNNING),
        REVIEW("another plugin", "/jobs/validate",
               CHANGED("q", "{svc: [], ssh: []}", "", "replicas: 3", ASKS_ONE), FROZEN,
               .old = RUNNING),
        REVIEW("fewer than none", "/jobs/validate",
               CHANGED("q", "{svc: []}", "", "replicas: -1", ASKS_ONE),
               "'replicas' must be >= 0 in task: w", .old = RUNNING),
        REVIEW("a minimum below none", "/jobs/validate",
               CHANGED("q", "{svc: []}", "", "replicas: 1, minAvailable: -1", ASKS_ONE),
               "'minAvailable' must be >= 0 in task: w", .old = RUNNING),
        REVIEW("replicas of a partitioned task", "/jobs/validate",
               CHANGED("q", "{svc: []}", "",
                       "replicas: 5, partitionPolicy: {totalPartitions: 2, partitionSize: 2}",
                       ASKS_ONE),
               "'Replicas' are not equal to TotalPartitions*PartitionSize in task: w, job: j",
               .old = RUNNING),
    };

    review_check(cases, HK_LEN(cases));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mutation_patches_in_order),
        cmocka_unit_test(a_manifest_can_be_applied_again),
        cmocka_unit_test(findings_come_together),
        cmocka_unit_test(only_the_size_of_a_running_job_changes),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
