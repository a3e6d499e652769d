// SPDX-License-Identifier: Apache-2.0
// Lives of Kubernetes' workloads with faults: a story runs once without faults, then again for
// every call of the controllers and every way in which that call can fail. The final number of pods
// and the final status of every workload must be the same.
#include "base/log.h"
#include "controllers/fault_rig_test.h"
#include "controllers/work_rig_test.h"

#include <stdlib.h>

#define SPEC(image) "{restartPolicy: Never, containers: [{name: main, image: '" image "'}]}"
#define POD(image) "{metadata: {labels: {app: x}}, spec: " SPEC(image) "}"

/* An action of others, done when nothing else is left to do. */
struct deed {
    enum { DEED_NONE, DEED_PATCH, DEED_END } what;
    enum api_kind_id kind; /* of the object x to patch */
    const char *patch;
    int code; /* exit code for a running pod */
};

#define PATCH(kind, text)                                                                          \
    {                                                                                              \
        DEED_PATCH, kind, text, 0                                                                  \
    }
#define END(code)                                                                                  \
    {                                                                                              \
        DEED_END, API_POD, NULL, code                                                              \
    }

struct story {
    const char *name, *object;
    struct deed deeds[6]; /* ends with DEED_NONE */
};

static const struct story stories[] = {
    {"roll out and back",
     "{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, namespace: d}, spec: {replicas: "
     "3, selector: {matchLabels: {app: x}}, template: " POD("a:1") "}}",
     {PATCH(API_DEPLOYMENT, "spec: {template: " POD("a:2") "}"),
      PATCH(API_DEPLOYMENT, "spec: {replicas: 5}"),
      PATCH(API_DEPLOYMENT, "spec: {template: " POD("a:1") "}")}},
    {"recreate",
     "{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, namespace: d}, spec: {replicas: "
     "2, strategy: {type: Recreate}, selector: {matchLabels: {app: x}}, template: " POD("a:1") "}}",
     {PATCH(API_DEPLOYMENT, "spec: {template: " POD("a:2") "}")}},
    {"numbered pods",
     "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x, namespace: d}, spec: {replicas: "
     "2, selector: {matchLabels: {app: x}}, template: " POD(
         "a:1") ", volumeClaimTemplates: "
                "[{metadata: {name: v}, spec: {}}]}}",
     {PATCH(API_STATEFUL_SET, "spec: {template: " POD("a:2") "}"),
      PATCH(API_STATEFUL_SET, "spec: {replicas: 1}")}},
    {"a pod on each node",
     "{apiVersion: v1, kind: Node, metadata: {name: n1}}\n---\n"
     "{apiVersion: v1, kind: Node, metadata: {name: n2}}\n---\n"
     "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: x, namespace: d}, spec: {selector: "
     "{matchLabels: {app: x}}, template: " POD("a:1") "}}",
     {PATCH(API_DAEMON_SET, "spec: {template: " POD("a:2") "}")}},
    {"a failure, then successes",
     "{apiVersion: batch/v1, kind: Job, metadata: {name: x, namespace: d}, spec: {parallelism: 2, "
     "completions: 3, template: " POD("a:1") "}}",
     {END(1), END(0), END(0), END(0)}},
    {"indexes",
     "{apiVersion: batch/v1, kind: Job, metadata: {name: x, namespace: d}, spec: {parallelism: 2, "
     "completions: 2, completionMode: Indexed, template: " POD("a:1") "}}",
     {END(0), END(2), END(0)}},
    {"too many failures",
     "{apiVersion: batch/v1, kind: Job, metadata: {name: x, namespace: d}, spec: {parallelism: 2, "
     "completions: 3, backoffLimit: 0, template: " POD("a:1") "}}",
     {END(1)}},
    {"suspend and resume",
     "{apiVersion: batch/v1, kind: Job, metadata: {name: x, namespace: d}, spec: {completions: 1, "
     "parallelism: 1, template: " POD("a:1") "}}",
     {PATCH(API_BATCH_JOB, "spec: {suspend: true}"), PATCH(API_BATCH_JOB, "spec: {suspend: false}"),
      END(0)}},
};

/* ---- running a story ---- */

struct play {
    struct rig rig;
    struct fault_rig fault;
    const struct story *story;
    uint32_t deed;
};

static bool end_a_pod(struct rig *r, int code)
{
    for (uint32_t i = 0; i < rig_count(r, API_POD); i++) {
        const char *pod = work_nth(r, API_POD, i);
        char yaml[300];

        snprintf(yaml, sizeof(yaml),
                 "status: {phase: %s, containerStatuses: [{name: main, state: {terminated: "
                 "{exitCode: %d}}}]}",
                 code ? "Failed" : "Succeeded", code);
        if (hk_str_is(json_str(json_at(rig_get(r, API_POD, pod), "status.phase"), HK_STR("")),
                      "Running")) {
            rig_patch(r, API_POD, pod, yaml);
            return true;
        }
    }
    return false;
}

static bool try_deed(struct play *p)
{
    const struct deed *d = &p->story->deeds[p->deed];

    switch (d->what) {
    case DEED_PATCH:
        rig_patch(&p->rig, d->kind, "x", d->patch);
        break;
    case DEED_END:
        if (!end_a_pod(&p->rig, d->code)) {
            return false;
        }
        break;
    default:
        return false;
    }
    p->deed++;
    return true;
}

/* Acts as the nodes: ends pods being deleted and runs bound ones. A pod with a finalizer stays
 * until that is removed. */
static void act_on_pod(void *ctx, const struct api_object *o)
{
    struct rig *r = ctx;
    const struct hk_str target = work_target(&o->root);
    const struct hk_str phase = json_str(json_at(&o->root, "status.phase"), HK_STR(""));
    const struct json *finalizers = json_at(&o->root, "metadata.finalizers");
    char name[300], yaml[300];

    snprintf(name, sizeof(name), "%.*s", HK_FMT(o->name));
    if (json_at(&o->root, "metadata.deletionTimestamp")) {
        if (!finalizers || finalizers->len == 0) {
            rig_remove(r, API_POD, name);
        } else if (hk_str_is(phase, "Running")) {
            rig_patch(r, API_POD, name, "status: {phase: Failed}");
        }
    } else if (phase.n == 0) {
        snprintf(yaml, sizeof(yaml),
                 "spec: {nodeName: %.*s}\n"
                 "status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}",
                 HK_FMT(target.n > 0 ? target : HK_STR("n1")));
        rig_patch(r, API_POD, name, yaml);
    }
}

static bool nodes_act(void *ctx)
{
    struct play *p = ctx;
    const uint64_t before = port_mem_rv(p->rig.mem);

    port_mem_each(p->rig.mem, api_kind(API_POD), act_on_pod, &p->rig);
    return port_mem_rv(p->rig.mem) != before;
}

static bool play_to_the_end(struct play *p)
{
    /* Longer than any retry, shorter than the deadlines of rollouts. */
    const int64_t patience_ns = (int64_t)400 * 1000000000;

    for (int i = 0; i < 20000; i++) {
        int64_t next_ns;

        if (fault_rig_step(&p->fault, &next_ns)) {
            continue;
        }
        if (next_ns - p->rig.clock.now_ns <= patience_ns) {
            rig_set_now(&p->rig, next_ns);
        } else if (!try_deed(p)) {
            return true;
        }
    }
    return false;
}

/* ---- comparing ---- */

static int by_key(const void *a, const void *b)
{
    return hk_str_cmp(((const struct json_member *)a)->key, ((const struct json_member *)b)->key);
}

/* Without times, members sorted, conditions by type. */
static struct json in_order(const struct json *v, struct hk_arena *a)
{
    struct json copy = json_make_object();

    if (v->type != JSON_OBJECT && v->type != JSON_ARRAY) {
        return *v;
    }
    for (uint32_t i = 0; i < v->len; i++) {
        const bool is_object = v->type == JSON_OBJECT;
        const struct json *value = is_object ? &v->members[i].value : &v->items[i];
        const struct hk_str key =
            is_object ? v->members[i].key : json_str(json_get(value, "type"), HK_STR("?"));

        if (!hk_str_ends(key, "Time")) {
            json_put(&copy, a, key, in_order(value, a));
        }
    }
    if (copy.len > 0) {
        qsort(copy.members, copy.len, sizeof(*copy.members), by_key);
    }
    return copy;
}

static void tell_one(void *ctx, const struct api_object *o)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct hk_buf *out = ctx;
    const struct json *status = json_get(&o->root, "status");
    struct json bare;

    hk_buf_addf(out, "%s %.*s %lld ", o->kind->kind, HK_FMT(o->name),
                (long long)json_int(json_at(&o->root, "spec.replicas"), -1));
    if (status) {
        bare = in_order(status, &a);
        json_write(&bare, out);
    }
    hk_buf_addc(out, '\n');
}

static void tell_world(struct rig *r, struct hk_buf *out)
{
    static const enum api_kind_id kinds[] = {API_DEPLOYMENT,   API_REPLICA_SET,
                                             API_STATEFUL_SET, API_DAEMON_SET,
                                             API_BATCH_JOB,    API_CONTROLLER_REVISION};

    for (uint32_t k = 0; k < HK_LEN(kinds); k++) {
        port_mem_each(r->mem, api_kind(kinds[k]), tell_one, out);
    }
    hk_buf_addf(out, "%u pods, %u claims\n", rig_count(r, API_POD), rig_count(r, API_PVC));
}

/* Returns the number of calls. */
static uint32_t play(const struct story *story, enum fault fault, uint32_t at, struct hk_buf *out)
{
    struct play p = {.story = story};
    uint32_t n, ntype;
    const struct ctl_type *const *types = manager_workload_types(&ntype);

    p.fault = (struct fault_rig){.rig = &p.rig, .others = nodes_act, .ctx = &p};
    fault_rig_open(&p.fault, types, ntype, fault, at);
    rig_manager(&p.rig);
    rig_put(&p.rig, story->object);
    if (!play_to_the_end(&p)) {
        hk_buf_adds(out, "never at rest\n");
    }
    tell_world(&p.rig, out);
    n = p.fault.port.ncall;
    fault_rig_close(&p.fault);
    return n;
}

static void test_story(void **state)
{
    const struct story *story = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf peace = {0};
    const uint32_t ncall = play(story, FAULT_NONE, 0, &peace);
    uint32_t bad = 0;

    assert_null(strstr(peace.data, "never at rest"));
    for (uint32_t at = 1; at <= ncall; at++) {
        for (enum fault f = FAULT_NONE + 1; f < FAULT_NKINDS; f++) {
            HK_AUTO(hk_buf_fini) struct hk_buf world = {0};

            (void)play(story, f, at, &world);
            if (strcmp(world.data, peace.data) != 0 && bad++ < 3) {
                print_message("# call %u %s\n", at, fault_names[f]);
                print_message("# expected:\n%s", peace.data);
                print_message("# actual:\n%s", world.data);
            }
        }
    }
    assert_int_equal(bad, 0);
}

int main(void)
{
    struct CMUnitTest tests[HK_LEN(stories)];

    for (uint32_t i = 0; i < HK_LEN(stories); i++) {
        tests[i] = (struct CMUnitTest){
            .name = stories[i].name, .test_func = test_story, .initial_state = (void *)&stories[i]};
    }
    hk_log_set_level(HK_LOG_WARN);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("controllers/work-fault", tests, NULL, NULL);
}
