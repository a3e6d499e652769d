// SPDX-License-Identifier: Apache-2.0
// Errors in manifests as users see them: every kind of mistake in Volcano's objects goes through
// the store's port with the built-in definitions and admission rules. All requests are dry runs
// over one prepared state.
#include "apiserver/bootstrap.h"
#include "codec/yaml.h"
#include "store/rest_rig_test.h"

#define BATCH "apiVersion: batch.volcano.sh/v1alpha1\n"
#define SCHEDULING "apiVersion: scheduling.volcano.sh/v1beta1\n"
#define NAMED(name) "metadata: {name: " name ", namespace: default}\n"

#define JOB(spec) BATCH "kind: Job\n" NAMED("j") "spec: " spec "\n"
#define CONTAINERS "containers: [{name: c, image: i}]"
#define POD "template: {spec: {" CONTAINERS "}}"
#define TASK(more) "{name: w, replicas: 2, " POD more "}"
#define JOB_WITH(more) JOB("{tasks: [" TASK("") "], " more "}")
#define JOB_OF(task) JOB("{tasks: [" task "]}")
#define TEMPLATE(container)                                                                        \
    JOB_OF("{name: w, replicas: 1, template: {spec: {containers: [" container "]}}}")

#define QUEUE_NAMED(name, spec)                                                                    \
    SCHEDULING "kind: Queue\nmetadata: {name: " name "}\nspec: " spec "\n"
#define QUEUE(spec) QUEUE_NAMED("q", spec)
#define QUEUE_NOTED(hierarchy, weights)                                                            \
    SCHEDULING "kind: Queue\nmetadata: {name: q, annotations: {volcano.sh/hierarchy: " hierarchy   \
               ", volcano.sh/hierarchy-weights: " weights "}}\nspec: {}\n"
#define PODGROUP(spec) SCHEDULING "kind: PodGroup\n" NAMED("pg") "spec: " spec "\n"
#define CRON_NAMED(name, schedule, more)                                                           \
    BATCH "kind: CronJob\n" NAMED(name) "spec: {schedule: \"" schedule                             \
                                        "\", jobTemplate: {spec: {tasks: [" TASK("") "]}}" more    \
                                                                                     "}\n"
#define CRON(schedule, more) CRON_NAMED("c", schedule, more)
#define FLOW(spec)                                                                                 \
    "apiVersion: flow.volcano.sh/v1alpha1\nkind: JobFlow\n" NAMED("f") "spec: " spec "\n"
#define HYPERNODE(members)                                                                         \
    "apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {name: h}\n"             \
    "spec: {tier: 1" members "}\n"
#define VPOD(notes)                                                                                \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: default, annotations: {" notes      \
    "}}\nspec: {schedulerName: volcano, " CONTAINERS "}\n"

#define LONG_NAME "a23456789b123456789c123456789d123456789e123456789f123"
#define LISTS " valid events are [… PodFailed …], valid actions are [… RestartJob …];"
#define ONE(fault) "1 error occurred:\n\t* " fault "\n\n" LISTS
#define BOTH_TIERS                                                                                 \
    "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology "              \
    "simultaneously"
#define TIERS "networkTopology: {highestTierAllowed: 1, highestTierName: rack}"
#define NO_DAG "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);"
#define FROZEN                                                                                     \
    "job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` " \
    "and `PriorityClassName`"
#define SUBDOMAIN                                                                                  \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "   \
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "  \
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"

/* ---- the state ---- */

static const char state[] = QUEUE_NAMED(
    "closed",
    "{}") "status: {state: Closed}\n"
          "---\n" QUEUE_NAMED("parent", "{}") "---\n" QUEUE_NAMED(
              "child",
              "{parent: parent}") "---\n" SCHEDULING
                                  "kind: Queue\nmetadata: {name: noted, annotations: "
                                  "{volcano.sh/hierarchy: root/node1/node2, "
                                  "volcano.sh/hierarchy-weights: 1/2/3}}\nspec: {}\n"
                                  "---\n" QUEUE_NAMED("l1", "{}") "---\n" QUEUE_NAMED(
                                      "l2",
                                      "{paren"
                                      "t: "
                                      "l1}") "---\n" QUEUE_NAMED("l3", "{parent: l2}") "---"
                                                                                       "\n" QUEUE_NAMED("l4", "{parent: l3}") "---\n" QUEUE_NAMED(
                                                                                           "l5", "{"
                                                                                                 "p"
                                                                                                 "a"
                                                                                                 "r"
                                                                                                 "e"
                                                                                                 "n"
                                                                                                 "t"
                                                                                                 ":"
                                                                                                 " "
                                                                                                 "l"
                                                                                                 "4"
                                                                                                 "}") "---\n" QUEUE_NAMED("busy", "{}") "status: {allocated: {pods: 1}}\n"
                                                                                                                                        "---\n" QUEUE_NAMED("ten",
                                                                                                                                                            "{capability: {cpu: 10}}") "---\n" QUEUE_NAMED("wide", "{capability: {cpu: 20}}") "---\n" QUEUE_NAMED("narrow", "{parent: wide, capability: {cpu: 12}}") "---\n" QUEUE_NAMED("p",
                                                                                                                                                                                                                                                                                                                                         "{deserved: {cpu: 8, memory: 16Gi}, guarantee: "
                                                                                                                                                                                                                                                                                                                                         "{resource: {cpu: 8, "
                                                                                                                                                                                                                                                                                                                                         "memory: 16Gi}}}") "---\n" QUEUE_NAMED("c", "{parent: "
                                                                                                                                                                                                                                                                                                                                                                                     "p, "
                                                                                                                                                                                                                                                                                                                                                                                     "deserved: "
                                                                                                                                                                                                                                                                                                                                                                                     "{cpu: 4, "
                                                                                                                                                                                                                                                                                                                                                                                     "memory: "
                                                                                                                                                                                                                                                                                                                                                                                     "8Gi}, "
                                                                                                                                                                                                                                                                                                                                                                                     "guarantee: "
                                                                                                                                                                                                                                                                                                                                                                                     "{resource: "
                                                                                                                                                                                                                                                                                                                                                                                     "{cpu: 4, "
                                                                                                                                                                                                                                                                                                                                                                                     "memory: "
                                                                                                                                                                                                                                                                                                                                                                                     "8Gi}}}") "-"
                                                                                                                                                                                                                                                                                                                                                                                               "-"
                                                                                                                                                                                                                                                                                                                                                                                               "-"
                                                                                                                                                                                                                                                                                                                                                                                               "\n" BATCH
                                                                                                                                                                                                                                                                                                                                                                                               "k"
                                                                                                                                                                                                                                                                                                                                                                                               "i"
                                                                                                                                                                                                                                                                                                                                                                                               "n"
                                                                                                                                                                                                                                                                                                                                                                                               "d"
                                                                                                                                                                                                                                                                                                                                                                                               ":"
                                                                                                                                                                                                                                                                                                                                                                                               " "
                                                                                                                                                                                                                                                                                                                                                                                               "J"
                                                                                                                                                                                                                                                                                                                                                                                               "o"
                                                                                                                                                                                                                                                                                                                                                                                               "b"
                                                                                                                                                                                                                                                                                                                                                                                               "\n" NAMED(
                                                                                                                                                                                                                                                                                                                                                                                                   "old") "spec: {tasks: [{name: w, replicas: 3, " POD
                                                                                                                                                                                                                                                                                                                                                                                                          "}]}\n";

static struct answer ask_to(struct rig *g, enum port_verb verb, const char *sub,
                            const struct json *doc, bool dry_run)
{
    const struct rest_kind *k =
        rest_kind_by_name(g->rest, json_str(json_get(doc, "apiVersion"), HK_STR("")),
                          json_str(json_get(doc, "kind"), HK_STR("")));
    const struct port_request req = {
        .verb = verb,
        .kind = k->kind,
        .ns = json_str(json_at(doc, "metadata.namespace"), HK_STR("")),
        .name = json_str(json_at(doc, "metadata.name"), HK_STR("")),
        .subresource = sub,
        .body = verb == PORT_DELETE ? NULL : doc,
        .patch = PORT_PATCH_MERGE,
        .dry_run = dry_run,
    };
    return rig_ask(g, &req);
}

static void must(const struct answer *a, const char *what, struct hk_str name)
{
    if (a->code >= 300) {
        fail_msg("%s %.*s: %s", what, HK_FMT(name), a->message);
    }
    api_object_unref(a->obj);
}

static struct yaml_docs parse(struct rig *g, const char *text)
{
    struct yaml_docs docs = {0};
    struct hk_err err = {0};

    if (yaml_parse(hk_str(text), 0, &g->mem, &docs, &err) < 0) {
        fail_msg("%s in:\n%s", err.text, text);
    }
    return docs;
}

static int begin(void **ret)
{
    struct rig *g = hk_zalloc(sizeof(*g));
    struct hk_err err = {0};

    *ret = g;
    rig_open(g, true);
    if (bootstrap_crds(g->rest, &err) < 0 || bootstrap_objects(g->rest, &err) < 0) {
        fail_msg("%s", err.text);
    }
    rig_settle(g);
    const struct yaml_docs docs = parse(g, state);
    for (uint32_t i = 0; i < docs.len; i++) {
        const struct hk_str name = json_str(json_at(&docs.at[i], "metadata.name"), HK_STR(""));
        struct answer a = ask_to(g, PORT_CREATE, NULL, &docs.at[i], false);
        must(&a, "create", name);
        if (json_get(&docs.at[i], "status")) {
            a = ask_to(g, PORT_PATCH, "status", &docs.at[i], false);
            must(&a, "status of", name);
        }
    }
    return 0;
}

static int end(void **ret)
{
    rig_close(*ret);
    hk_free(*ret);
    return 0;
}

/* ---- the mistakes ---- */

enum layer {
    SCHEMA,  /* 422, the server's own message */
    WEBHOOK, /* 400, with the name of the webhook in front */
    FINE,
};

struct mistake {
    const char *name;
    enum port_verb verb;
    enum layer layer;
    const char *text;
    const char *want; /* "…" matches anything */
};

#define C PORT_CREATE
#define U PORT_PATCH
#define D PORT_DELETE

static const struct mistake mistakes[] = {
    {"1: no tasks", C, WEBHOOK, JOB("{}"), "No task specified in job spec"},
    {"1: no spec", C, WEBHOOK, BATCH "kind: Job\n" NAMED("j"), "No task specified in job spec"},
    {"2: an empty list of tasks", C, SCHEMA, JOB("{tasks: []}"),
     "…spec.tasks: …should have at least 1 items"},
    {"3: two tasks of one name", C, WEBHOOK, JOB("{tasks: [" TASK("") ", " TASK("") "]}"),
     "duplicated task name w;"},
    {"4: a task's name in capitals", C, SCHEMA, JOB_OF("{name: Worker_1, replicas: 1, " POD "}"),
     "…spec.tasks[0].name: …should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'"},
    {"5: fewer replicas than none", C, SCHEMA, JOB_OF("{name: w, replicas: -1, " POD "}"),
     "…spec.tasks[0].replicas: …should be greater than or equal to 0…"},
    {"6: a task's minimum above its replicas", C, WEBHOOK, JOB_OF(TASK(", minAvailable: 3")),
     "'minAvailable' is greater than 'replicas' in task: w, job: j;…"},
    {"7: the job's minimum above all replicas", C, WEBHOOK, JOB_WITH("minAvailable: 5"),
     "job 'minAvailable' should not be greater than total replicas in tasks;"},
    {"8: two policies for one event", C, WEBHOOK,
     JOB_WITH("policies: [{event: PodFailed, action: RestartJob}, {event: PodFailed, action: "
              "AbortJob}]"),
     ONE("duplicate event PodFailed  across different policy")},
    {"9: event and exit code in one policy", C, WEBHOOK,
     JOB_WITH("policies: [{event: PodFailed, exitCode: 1, action: RestartJob}]"),
     ONE("must not specify event and exitCode simultaneously")},
    {"10: a policy without event", C, WEBHOOK, JOB_WITH("policies: [{action: RestartJob}]"),
     ONE("either event and exitCode should be specified")},
    {"11: an event that is not for users", C, WEBHOOK,
     JOB_WITH("policies: [{event: PodRunning, action: RestartJob}]"),
     ONE("spec.policies: Invalid value: \"PodRunning\": invalid policy event")},
    {"12: an event nobody knows", C, SCHEMA,
     JOB_WITH("policies: [{event: Foo, action: RestartJob}]"),
     "…spec.policies[0].event: Unsupported value: \"Foo\": supported values: …"},
    {"13: an action that is not for users", C, WEBHOOK,
     JOB_WITH("policies: [{event: PodFailed, action: SyncJob}]"),
     ONE("spec.policies: Invalid value: \"SyncJob\": invalid policy action")},
    {"14: an event without action", C, WEBHOOK, JOB_WITH("policies: [{event: PodFailed}]"),
     ONE("spec.policies: Invalid value: \"\": invalid policy action")},
    {"15: exit code 0", C, WEBHOOK, JOB_WITH("policies: [{exitCode: 0, action: RestartJob}]"),
     ONE("0 is not a valid error code")},
    {"16: one exit code twice", C, WEBHOOK,
     JOB_WITH("policies: [{exitCode: 1, action: RestartJob}, {exitCode: 1, action: AbortJob}]"),
     ONE("duplicate exitCode 1")},
    {"17: any event and another", C, WEBHOOK,
     JOB_WITH("policies: [{event: \"*\", action: RestartJob}, {event: PodFailed, action: "
              "AbortJob}]"),
     ONE("if there's * here, no other policy should be here")},
    {"18: the same in a task", C, WEBHOOK,
     JOB_OF(TASK(", policies: [{events: [\"*\", PodFailed], action: RestartJob}]")),
     ONE("if there's * here, no other policy should be here")},
    {"18: a task's policies by their path", C, WEBHOOK,
     JOB_OF(TASK(", policies: [{event: PodFailed, action: Nothing}]")),
     ONE("spec.tasks.policies: Invalid value: \"Nothing\": invalid policy action")},
    {"19: an unknown plugin", C, WEBHOOK, JOB_WITH("plugins: {big_plugin: []}"),
     "unable to find job plugin: big_plugin;"},
    {"20: mpi without its master", C, WEBHOOK, JOB_WITH("plugins: {mpi: [--master=launcher]}"),
     "The specified mpi master task was not found"},
    {"21: a volume without a path", C, SCHEMA, JOB_WITH("volumes: [{volumeClaimName: a}]"),
     "…spec.volumes[0].mountPath: Required value"},
    {"21: a volume with an empty path", C, SCHEMA,
     JOB_WITH("volumes: [{mountPath: \"\", volumeClaimName: a}]"),
     "…spec.volumes[0].mountPath: …should be at least 1 chars long…"},
    {"22: a colon in the path", C, SCHEMA,
     JOB_WITH("volumes: [{mountPath: \"/a:b\", volumeClaimName: a}]"), "…should match '^[^:]+$'"},
    {"23: two volumes at one path", C, WEBHOOK,
     JOB_WITH("volumes: [{mountPath: /var, volumeClaimName: a}, {mountPath: /var, "
              "volumeClaimName: b}]"),
     "duplicated mountPath: /var;"},
    {"24: a volume without a claim", C, WEBHOOK, JOB_WITH("volumes: [{mountPath: /var}]"),
     "either VolumeClaim or VolumeClaimName must be specified;"},
    {"25: a volume with two claims", C, WEBHOOK,
     JOB_WITH("volumes: [{mountPath: /var, volumeClaimName: a, volumeClaim: {accessModes: "
              "[ReadWriteOnce]}}]"),
     "conflict: If you want to use an existing PVC, just specify VolumeClaimName.If you want to "
     "create a new PVC, you do not need to specify VolumeClaimName"},
    {"26: a claim's name in capitals", C, WEBHOOK,
     JOB_WITH("volumes: [{mountPath: /var, volumeClaimName: Bad_Name}]"),
     "invalid VolumeClaimName Bad_Name : [" SUBDOMAIN "]"},
    {"27: a queue that is not there", C, WEBHOOK, JOB_WITH("queue: nope"),
     "unable to find job queue: queue.scheduling.volcano.sh \"nope\" not found;"},
    {"28: a closed queue", C, WEBHOOK, JOB_WITH("queue: closed"),
     "can only submit job to queue with state `Open`, queue `closed` status is `Closed`;"},
    {"29: the root queue", C, WEBHOOK, JOB_WITH("queue: root"),
     "can not submit job to root queue;"},
    {"30: a queue of queues", C, WEBHOOK, JOB_WITH("queue: parent"),
     "can only submit job to leaf queue, queue `parent` has 1 child queues;"},
    {"31: a queue in capitals", C, SCHEMA, JOB_WITH("queue: Q1"), "…spec.queue: …should match …"},
    {"32: depending on nobody", C, WEBHOOK,
     JOB("{tasks: [{name: t1, " POD "}, {name: t2, dependsOn: {name: [t3]}, " POD "}]}"), NO_DAG},
    {"33: depending on each other", C, WEBHOOK,
     JOB("{tasks: [{name: t1, dependsOn: {name: [t2]}, " POD
         "}, {name: t2, dependsOn: {name: [t1]}, " POD "}]}"),
     NO_DAG},
    {"34: partitions that do not add up", C, WEBHOOK,
     JOB_OF("{name: w, replicas: 5, partitionPolicy: {totalPartitions: 2, partitionSize: 3}, " POD
            "}"),
     "'Replicas' are not equal to TotalPartitions*PartitionSize in task: w, job: j"},
    {"35: partitions of nothing", C, SCHEMA,
     JOB_OF("{name: w, replicas: 5, partitionPolicy: {totalPartitions: 2, partitionSize: 0}, " POD
            "}"),
     "…partitionSize: …should be greater than or equal to 1…"},
    {"36: a minimum that is no number of partitions", C, WEBHOOK,
     JOB_OF("{name: w, replicas: 8, minAvailable: 2, partitionPolicy: {totalPartitions: 2, "
            "partitionSize: 4, minPartitions: 1}, " POD "}"),
     "'MinAvailable' is not equal to MinPartitions*PartitionSize in task: w, job: j"},
    {"37: a tier by number and by name", C, WEBHOOK, JOB_WITH(TIERS), BOTH_TIERS},
    {"38: an unknown mode", C, SCHEMA, JOB_WITH("networkTopology: {mode: firm}"),
     "…spec.networkTopology.mode: Unsupported value: \"firm\": supported values: \"hard\", "
     "\"soft\""},
    {"39: half a processor under a NUMA policy", C, WEBHOOK,
     JOB_OF("{name: w, replicas: 1, topologyPolicy: restricted, template: {spec: {containers: "
            "[{name: c, image: i, resources: {requests: {cpu: 500m}}}]}}}"),
     "the cpu request isn't an integer in spec.task[0] container[0]."},
    {"40: a container without image", C, WEBHOOK, TEMPLATE("{name: c}"),
     "spec.task[0].template.spec.containers[0].image: Required value."},
    {"41: more requested than allowed", C, WEBHOOK,
     TEMPLATE("{name: c, image: i, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}"),
     "spec.task[0].template.spec.containers[0].resources.requests: Invalid value: \"2\": must be "
     "less than or equal to cpu limit of 1."},
    {"42: a pod's name too long", C, WEBHOOK,
     BATCH "kind: Job\n" NAMED(LONG_NAME) "spec: {tasks: [{name: worker-worker, replicas: 1, " POD
                                          "}]}\n",
     "create pod with name " LONG_NAME
     "-worker-worker-0 validate failed [name part must be no more than 63 bytes];"},
    {"43: no success needed", C, SCHEMA, JOB_WITH("minSuccess: 0"),
     "…spec.minSuccess: …should be greater than or equal to 1…"},
    {"44: another image for a job that runs", U, WEBHOOK,
     BATCH "kind: Job\n" NAMED("old") "spec: {tasks: [{name: w, replicas: 3, minAvailable: 3, "
                                      "maxRetry: 3, template: {spec: {containers: [{name: c, "
                                      "image: other}]}}}]}\n",
     FROZEN},
    {"45: another queue for a job that runs", U, WEBHOOK,
     BATCH "kind: Job\n" NAMED("old") "spec: {queue: child}\n", FROZEN},
    {"46: another task for a job that runs", U, WEBHOOK,
     BATCH "kind: Job\n" NAMED("old") "spec: {tasks: [" TASK("") ", {name: v, replicas: 1, " POD
                                                                 "}]}\n",
     "job updates may not add or remove tasks"},
    {"47: a minimum above the replicas of a job that runs", U, WEBHOOK,
     BATCH "kind: Job\n" NAMED("old") "spec: {tasks: [{name: w, replicas: 3, minAvailable: 4, "
                                      "maxRetry: 3, " POD "}]}\n",
     "'minAvailable' must be <= 'replicas' in task: w"},
    {"48: the minimum of a job that runs above all replicas", U, WEBHOOK,
     BATCH "kind: Job\n" NAMED("old") "spec: {minAvailable: 9}\n",
     "job 'minAvailable' must not be greater than total replicas"},
    {"a job that runs may be applied again", U, FINE,
     BATCH "kind: Job\n" NAMED("old") "spec: {tasks: [{name: w, replicas: 3, " POD "}]}\n", ""},
    {"a job that runs may grow", U, FINE,
     BATCH "kind: Job\n" NAMED("old") "spec: {minAvailable: 4, priorityClassName: high, tasks: "
                                      "[{name: w, replicas: 5, minAvailable: 4, maxRetry: 3, " POD
                                      "}]}\n",
     ""},

    {"49: a guarantee that is not deserved", C, WEBHOOK, QUEUE("{guarantee: {resource: {cpu: 1}}}"),
     "requestBody.spec.deserved.cpu: Invalid value: \"<nil>\": deserved[cpu] must be >= "
     "guarantee[cpu]=1"},
    {"50: a guarantee above what is deserved", C, WEBHOOK,
     QUEUE("{deserved: {memory: 1Gi}, guarantee: {resource: {memory: 3Gi}}}"),
     "requestBody.spec.deserved.memory: Invalid value: \"1Gi\": deserved[memory]=1Gi must be >= "
     "guarantee[memory]=3Gi"},
    {"51: more deserved than allowed", C, WEBHOOK,
     QUEUE("{deserved: {cpu: 2}, capability: {cpu: 1}}"),
     "requestBody.spec.deserved.cpu: Invalid value: \"2\": deserved[cpu]=2 must be <= "
     "capability[cpu]=1"},
    {"52: less capability than none", C, WEBHOOK, QUEUE("{capability: {cpu: -10}}"),
     "requestBody.spec.capability.cpu: Invalid value: \"-10\": must be greater than or equal to 0"},
    {"53: less guaranteed than nothing", C, WEBHOOK, QUEUE("{guarantee: {resource: {cpu: -2}}}"),
     "[requestBody.spec.guarantee.resource.cpu: Invalid value: \"-2\": must be greater than or "
     "equal to 0, requestBody.spec.deserved.cpu: Invalid value: \"<nil>\": deserved[cpu] must be "
     ">= guarantee[cpu]=-2]"},
    {"54: weight 0 becomes 1", C, FINE, QUEUE("{weight: 0}"), ""},
    {"55: too much weight", C, SCHEMA, QUEUE("{weight: 70000}"),
     "…spec.weight: …should be less than or equal to 65535…"},
    {"56: a path and weights of different length", C, WEBHOOK, QUEUE_NOTED("root/a/b", "1/2/3/4"),
     "requestBody.metadata.annotations: Invalid value: \"root/a/b\": volcano.sh/hierarchy must "
     "have the same length with volcano.sh/hierarchy-weights"},
    {"57: a weight below zero", C, WEBHOOK, QUEUE_NOTED("root/a/b", "1/-1/3"),
     "requestBody.metadata.annotations: Invalid value: \"1/-1/3\": -1 in the 1/-1/3 must be larger "
     "than 0"},
    {"58: a weight that is no number", C, WEBHOOK, QUEUE_NOTED("root/a/b", "1/a/3"),
     "requestBody.metadata.annotations: Invalid value: \"1/a/3\": a in the 1/a/3 is invalid "
     "number: strconv.ParseFloat: parsing \"a\": invalid syntax"},
    {"59: a path above another queue's", C, WEBHOOK, QUEUE_NOTED("root/node1", "1/2"),
     "requestBody.metadata.annotations: Invalid value: \"root/node1\": root/node1 is not allowed "
     "to be in the sub path of root/node1/node2 of queue noted"},
    {"60: its own parent", C, WEBHOOK, QUEUE("{parent: q}"), "queue q cannot use itself as parent"},
    {"61: a parent that is not there", C, WEBHOOK, QUEUE("{parent: nope}"),
     "failed to get parent queue nope of queue q: queue.scheduling.volcano.sh \"nope\" not found"},
    {"62: the sixth level", C, WEBHOOK, QUEUE("{parent: l5}"),
     "queue q exceeds the maximum allowed depth of 5"},
    {"62: the fifth level", C, FINE, QUEUE("{parent: l4}"), ""},
    {"63: a parent that runs pods", C, WEBHOOK, QUEUE("{parent: busy}"),
     "queue busy cannot be the parent queue of queue q because it has allocated Pods: 1"},
    {"64: more capability than the parent", C, WEBHOOK,
     QUEUE("{parent: ten, capability: {cpu: 20}}"),
     "queue q capability[cpu]=20 exceeds its ancestor's capability=10"},
    {"65: more guarantees than the parent's", C, WEBHOOK,
     QUEUE("{parent: p, deserved: {cpu: 5, memory: 10Gi}, guarantee: {resource: {cpu: 5, memory: "
           "10Gi}}}"),
     "parent queue p validation failed: sum of children's guarantee (cpu 9000.00, memory "
     "19327352832.00) exceeds parent's guarantee limit (cpu 8000.00, memory 17179869184.00)"},
    {"66: less capability than a child", U, WEBHOOK, QUEUE_NAMED("wide", "{capability: {cpu: 10}}"),
     "queue wide capability[cpu]=10 is smaller than its descendants' max capability=12"},
    {"67: the root's capability", U, WEBHOOK, QUEUE_NAMED("root", "{capability: {cpu: 10}}"),
     "root queue's resource attributes (capability, deserved, guarantee) cannot be modified"},
    {"67: the root's weight", U, FINE, QUEUE_NAMED("root", "{weight: 2}"), ""},
    {"68: the default queue goes", D, WEBHOOK, QUEUE_NAMED("default", "{}"),
     "`default` queue can not be deleted"},
    {"68: the root queue goes", D, WEBHOOK, QUEUE_NAMED("root", "{}"),
     "`root` queue can not be deleted"},
    {"69: a parent goes", D, WEBHOOK, QUEUE_NAMED("p", "{}"),
     "queue p can not be deleted because it has 1 child queues: c"},
    {"70: a queue with pods may go unless told otherwise", D, FINE, QUEUE_NAMED("busy", "{}"), ""},

    {"71: a group in no queue", C, WEBHOOK, PODGROUP("{queue: q}"),
     "unable to find queue: queue.scheduling.volcano.sh \"q\" not found"},
    {"72: a group in a closed queue", C, WEBHOOK, PODGROUP("{queue: closed}"),
     "can only submit PodGroup to queue with state `Open`, queue `closed` status is `Closed`."},
    {"73: a sub-group's tier by number and by name", C, WEBHOOK,
     PODGROUP("{subGroupPolicy: [{name: p, " TIERS "}]}"),
     "in subGroupPolicy 'p': " BOTH_TIERS "."},
    {"74: no queue and both tiers", C, WEBHOOK, PODGROUP("{queue: q, " TIERS "}"),
     "unable to find queue: queue.scheduling.volcano.sh \"q\" not found; " BOTH_TIERS "."},
    {"75: sub-groups of nobody", C, SCHEMA,
     PODGROUP("{subGroupPolicy: [{name: p, subGroupSize: 0}]}"),
     "…should be greater than or equal to 1…"},

    {"76: no schedule", C, WEBHOOK, CRON("", ""), "schedule is required, but got empty"},
    {"77: a zone in the schedule", C, WEBHOOK, CRON("TZ=UTC 0 20 * * *", ""),
     "schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field"},
    {"78: no schedule at all", C, WEBHOOK, CRON("error schedule", ""),
     "schedule is not a valid cron expression"},
    {"79: six fields", C, WEBHOOK, CRON("0 0 * * * *", ""),
     "schedule is not a valid cron expression"},
    {"80: the zone of some machine", C, WEBHOOK, CRON("0 * * * *", ", timeZone: Local"),
     "timeZone can't be Local, and must be defined in https://www.iana.org/time-zones"},
    {"81: a zone with a mark", C, WEBHOOK, CRON("0 * * * *", ", timeZone: UTC!"),
     "unknown timeZone invalid timeZone"},
    {"82: a zone misspelt", C, WEBHOOK, CRON("0 * * * *", ", timeZone: Amerrica/New_York"),
     "invalid timeZone"},
    {"83: an empty zone", C, WEBHOOK, CRON("0 * * * *", ", timeZone: \"\""),
     "timeZone must be nil or non-empty string, got empty string"},
    {"84: a name too long for its jobs", C, WEBHOOK, CRON_NAMED(LONG_NAME, "0 * * * *", ""),
     "cronJob name must be no more than 52 characters to accommodate job name suffix (max 63 "
     "total)"},
    {"85: schedule and name", C, WEBHOOK, CRON_NAMED(LONG_NAME, "error schedule", ""),
     "schedule is not a valid cron expression; cronJob name must be no more than 52 characters to "
     "accommodate job name suffix (max 63 total)"},
    {"86: an unknown policy", C, SCHEMA, CRON("0 * * * *", ", concurrencyPolicy: Queue"),
     "…spec.concurrencyPolicy: Unsupported value: \"Queue\"…"},
    {"a good schedule", C, FINE, CRON("*/5 8-18 * * MON-FRI", ", timeZone: Europe/Berlin"), ""},

    {"87: a step that is not there", C, WEBHOOK,
     FLOW("{flows: [{name: a, dependsOn: {targets: [x]}}]}"),
     "jobflow Flow is not DAG: vertex is not defined: x"},
    {"88: steps in a circle", C, WEBHOOK,
     FLOW("{flows: [{name: a, dependsOn: {targets: [b]}}, {name: b, dependsOn: {targets: [a]}}]}"),
     "jobflow Flow is not DAG"},
    {"88: a step behind itself", C, WEBHOOK,
     FLOW("{flows: [{name: a, dependsOn: {targets: [a]}}]}"), "jobflow Flow is not DAG"},
    {"89: a step without name", C, SCHEMA, FLOW("{flows: [{dependsOn: {targets: []}}]}"),
     "…spec.flows[0].name: Required value"},
    {"90: keeping otherwise", C, SCHEMA, FLOW("{flows: [{name: a}], jobRetainPolicy: keep}"),
     "…Unsupported value: \"keep\": supported values: …retain…"},
    {"91: a pattern that does not close", C, WEBHOOK,
     HYPERNODE(", members: [{type: Node, selector: {regexMatch: {pattern: a(b}}}]"),
     "[].spec.members.selector.regexMatch.pattern: Invalid value: \"a(b\": member regexMatch "
     "pattern is invalid: error parsing regexp: missing closing ): `a(b`"},
    {"92: no members", C, WEBHOOK, HYPERNODE(""),
     "[].spec.members: Invalid value: null: member must have at least one member"},
    {"93: a selector that selects nothing", C, SCHEMA,
     HYPERNODE(", members: [{type: Node, selector: {}}]"),
     "…Either ExactMatch or RegexMatch or LabelMatch must be specified"},
    {"94: two selectors", C, SCHEMA,
     HYPERNODE(", members: [{type: Node, selector: {exactMatch: {name: a}, regexMatch: {pattern: "
               "a}}}]"),
     "…Only one of ExactMatch, RegexMatch, or LabelMatch can be specified"},
    {"95: an unknown kind of member", C, SCHEMA,
     HYPERNODE(", members: [{type: Rack, selector: {exactMatch: {name: a}}}]"),
     "…Unsupported value: \"Rack\": supported values: …"},

    {"96: none available at least", C, WEBHOOK, VPOD("volcano.sh/jdb-min-available: \"0\""),
     "invalid value <\"0\"> for volcano.sh/jdb-min-available, it must be a positive integer"},
    {"97: all unavailable at most", C, WEBHOOK, VPOD("volcano.sh/jdb-max-unavailable: 100%"),
     "invalid value <\"100%\"> for volcano.sh/jdb-max-unavailable, it must be a valid percentage "
     "which between 1% ~ 99%"},
    {"98: no number", C, WEBHOOK, VPOD("volcano.sh/jdb-min-available: abc"),
     "invalid value strconv.Atoi: parsing \"abc\": invalid syntax for "
     "volcano.sh/jdb-min-available"},
    {"99: both bounds", C, WEBHOOK,
     VPOD("volcano.sh/jdb-min-available: \"1\", volcano.sh/jdb-max-unavailable: 50%"),
     "not allow configure multiple annotations <[volcano.sh/jdb-min-available "
     "volcano.sh/jdb-max-unavailable]> at same time"},

    {"100: a shard without nodes", C, SCHEMA,
     "apiVersion: shard.volcano.sh/v1alpha1\nkind: NodeShard\nmetadata: {name: s}\nspec: {}\n",
     "…spec.nodesDesired: Required value"},
    {"101: more than all memory", C, SCHEMA,
     "apiVersion: config.volcano.sh/v1alpha1\nkind: ColocationConfiguration\n" NAMED(
         "c") "spec: {memoryQos: {highRatio: 120}}\n",
     "…spec.memoryQos.highRatio: …should be less than or equal to 100…"},
    {"102: a command for nobody", C, SCHEMA,
     "apiVersion: bus.volcano.sh/v1alpha1\nkind: Command\n" NAMED(
         "c") "action: AbortJob\ntarget: {apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: "
              "j}\n",
     "…target.uid: Required value"},
    {"103: a core below the first", C, SCHEMA,
     "apiVersion: nodeinfo.volcano.sh/v1alpha1\nkind: Numatopology\nmetadata: {name: node}\n"
     "spec: {cpuDetail: {\"0\": {core: -1}}}\n",
     "…should be greater than or equal to 0…"},
    {"104: a template without tasks", C, SCHEMA,
     "apiVersion: flow.volcano.sh/v1alpha1\nkind: JobTemplate\n" NAMED("t") "spec: {tasks: []}\n",
     "…spec.tasks: …should have at least 1 items"},
};

static const struct {
    const char *kind, *webhook;
} webhooks[] = {
    {"Job", "validatejob"},         {"CronJob", "validatecronjob"},
    {"Queue", "validatequeue"},     {"PodGroup", "validatepodgroup"},
    {"JobFlow", "validatejobflow"}, {"HyperNode", "validatehypernodes"},
    {"Pod", "validatepod"},
};

static void write_prefix(const struct json *doc, struct hk_buf *out)
{
    for (size_t i = 0; i < HK_LEN(webhooks); i++) {
        if (hk_str_is(json_str(json_get(doc, "kind"), HK_STR("")), webhooks[i].kind)) {
            hk_buf_addf(out, "admission webhook \"%s.volcano.sh\" denied the request: ",
                        webhooks[i].webhook);
        }
    }
}

/* Whether the text matches the pattern, in which "…" matches anything. */
static bool is_like(const char *text, const char *pattern)
{
    static const char gap[] = "…";
    const char *hole = strstr(pattern, gap);

    if (!hole) {
        return strcmp(text, pattern) == 0;
    }
    if (strncmp(text, pattern, (size_t)(hole - pattern)) != 0) {
        return false;
    }
    pattern = hole + strlen(gap);
    for (text += hole - (pattern - strlen(gap)); *text; text++) {
        if (is_like(text, pattern)) {
            return true;
        }
    }
    return is_like(text, pattern);
}

static void every_mistake_is_explained(void **ret)
{
    static const int codes[] = {[SCHEMA] = 422, [WEBHOOK] = 400, [FINE] = 200};
    struct rig *g = *ret;

    for (size_t i = 0; i < HK_LEN(mistakes); i++) {
        const struct mistake *m = &mistakes[i];
        const struct yaml_docs docs = parse(g, m->text);
        HK_AUTO(hk_buf_fini) struct hk_buf want = {0};
        struct answer a = ask_to(g, m->verb, NULL, &docs.at[0], true);
        const int code = a.code == 201 ? 200 : a.code;

        if (m->layer == WEBHOOK) {
            write_prefix(&docs.at[0], &want);
        }
        hk_buf_adds(&want, m->want);
        if (code != codes[m->layer] || !is_like(a.message, hk_buf_str(&want).s) ||
            strcmp(a.reason, m->layer == SCHEMA ? "Invalid" : "") != 0) {
            fail_msg("%s:\nexpected %d: %s\n  actual %d %s: %s", m->name, codes[m->layer],
                     hk_buf_str(&want).s, code, a.reason, a.message);
        }
        api_object_unref(a.obj);
    }
}

/* ---- stored objects ---- */

static void a_plain_job_gets_its_defaults(void **ret)
{
    struct rig *g = *ret;
    const struct yaml_docs docs =
        parse(g, JOB("{tasks: [{replicas: 2, template: {spec: {hostNetwork: true, " CONTAINERS
                     "}}}, {replicas: 3, minAvailable: 1, " POD "}], plugins: {pytorch: []}}"));
    struct answer a = ask_to(g, PORT_CREATE, NULL, &docs.at[0], true);
    HK_AUTO(hk_buf_fini) struct hk_buf got = {0};

    assert_int_equal(a.code, 201);
    json_write(json_get(&a.obj->root, "spec"), &got);
    const struct json want =
        parse(g, "{queue: default, maxRetry: 3, schedulerName: volcano, minAvailable: 3, plugins: "
                 "{pytorch: [], svc: []}, tasks: [{name: default0, replicas: 2, minAvailable: 2, "
                 "maxRetry: 3, template: {spec: {hostNetwork: true, dnsPolicy: "
                 "ClusterFirstWithHostNet, " CONTAINERS
                 "}}}, {name: default1, replicas: 3, minAvailable: 1, maxRetry: 3, " POD "}]}")
            .at[0];
    if (!json_equal(json_get(&a.obj->root, "spec"), &want)) {
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
        json_write(&want, &text);
        fail_msg("expected: %s\n  actual: %s", text.data, got.data);
    }
    api_object_unref(a.obj);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mistake_is_explained),
        cmocka_unit_test(a_plain_job_gets_its_defaults),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, begin, end);
}
