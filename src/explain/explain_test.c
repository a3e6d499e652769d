// SPDX-License-Identifier: Apache-2.0
// Explanations: each reason, each change that helps, and each state other than waiting.
#include "explain/explain.h"

#include "base/clock.h"
#include "codec/timefmt.h"
#include "codec/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* ---- objects ---- */

#define NODE(name, cpu, more)                                                                      \
    "apiVersion: v1\nkind: Node\nmetadata: {name: " name                                           \
    ", labels: {kubernetes.io/hostname: " name "}}\nspec: {" more                                  \
    "}\nstatus: {allocatable: {cpu: " cpu ", memory: 8Gi, pods: 10}}\n---\n"
#define QUEUE(name, more)                                                                          \
    "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: " name "}\n"         \
    "spec: {weight: 1, reclaimable: true" more "}\nstatus: {state: Open}\n---\n"
#define HEAVY(name)                                                                                \
    "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: " name "}\n"         \
    "spec: {weight: 3}\nstatus: {state: Open}\n---\n"
#define OF(queue, name, cpu)                                                                       \
    "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: " name            \
    ", namespace: x}\nspec: {minMember: 1, queue: " queue                                          \
    "}\nstatus: {phase: Inqueue}\n---\n" WAITS(name, "0", cpu, "")
#define HYPER(name, node)                                                                          \
    "apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {name: " name "}\n"      \
    "spec: {tier: 1, members: [{type: Node, selector: {exactMatch: {name: " node "}}}]}\n---\n"
#define CLASS(name, value)                                                                         \
    "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: " name                \
    "}\nvalue: " value "\n---\n"
#define GROUP(name, min, at, phase, more)                                                          \
    "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: " name            \
    ", namespace: x, creationTimestamp: \"2026-01-01T00:00:0" at "Z\"}\n"                          \
    "spec: {minMember: " min ", queue: q" more "}\nstatus: {phase: " phase "}\n---\n"
#define POD(group, i, cpu, more, phase)                                                            \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: " group "-w-" i ", namespace: x, annotations: "   \
    "{scheduling.k8s.io/group-name: " group ", volcano.sh/task-spec: w}}\n"                        \
    "spec: {schedulerName: volcano" more ", containers: [{name: c, resources: {requests: {cpu: "   \
    "\"" cpu "\"}}}]}\nstatus: {phase: " phase "}\n---\n"
#define WAITS(group, i, cpu, more) POD(group, i, cpu, more, "Pending")
#define RUNS(group, i, cpu, node) POD(group, i, cpu, ", nodeName: " node, "Running")
#define BUSY(cpu, node) GROUP("busy", "1", "1", "Running", "") RUNS("busy", "0", cpu, node)
/* A job with two pods that needs only one. */
#define SPARE(cpu, node)                                                                           \
    GROUP("busy", "1", "1", "Running", "") RUNS("busy", "0", cpu, node) RUNS("busy", "1", cpu, node)
#define MINE(more) GROUP("mine", "1", "2", "Inqueue", more)

#define ALLOCATE                                                                                   \
    "actions: allocate\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n  - name: "        \
    "predicates\n"
#define EVICTING                                                                                   \
    "actions: \"enqueue, allocate, preempt\"\ntiers:\n- plugins:\n  - name: priority\n  - name: "  \
    "gang\n  - name: predicates\n"

/* ---- asking ---- */

struct asked {
    struct hk_arena a;
    struct json answer;
    struct conf *conf;
    HK_VEC(struct api_object *) objects;
    int rc;
    struct hk_err err;
};

static void load(struct asked *q, const char *text)
{
    struct yaml_docs docs = {0};

    assert_int_equal(yaml_parse(hk_str(text), 0, &q->a, &docs, &q->err), 0);
    for (uint32_t k = 0; k < docs.len; k++) {
        struct api_object *o = NULL;
        if (api_object_new(NULL, &docs.at[k], &o, &q->err) < 0) {
            fail_msg("%s", q->err.text);
        }
        hk_vec_push(&q->objects, o);
    }
}

static void ask(struct asked *q, const char *conf, const char *text, enum api_kind_id kind,
                const char *name, uint32_t tries)
{
    struct hk_clock_manual clock;
    struct explain_opts o = {.tries = tries, .clock = &clock.clock};

    *q = (struct asked){0};
    hk_clock_manual_init(&clock, 0);
    load(q, text);
    assert_int_equal(conf_parse(hk_str(conf), &q->conf, &q->err), 0);
    assert_int_equal(time_parse(HK_STR("2026-01-01T00:01:00Z"), &o.now_ns, NULL), 0);
    o.objects = q->objects.at;
    o.n = q->objects.len;
    o.conf = q->conf;
    const struct explain_subject s = {kind, kind == API_QUEUE ? HK_STR("") : HK_STR("x"),
                                      hk_str(name)};
    q->rc = explain(&o, &s, &q->a, &q->answer, &q->err);
}

static void asked_fini(struct asked *q)
{
    for (uint32_t k = 0; k < q->objects.len; k++) {
        api_object_unref(q->objects.at[k]);
    }
    hk_vec_fini(&q->objects);
    conf_free(q->conf);
    hk_arena_fini(&q->a);
}

static void write_answer(const struct asked *q, struct hk_buf *out)
{
    json_write_pretty(&q->answer, 2, out);
}

static void expect(const struct asked *q, const char *path, const char *want)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};
    const struct json *v = json_at(&q->answer, path);

    if (!hk_str_is(json_str(v, HK_STR("(none)")), want)) {
        write_answer(q, &b);
        fail_msg("%s: expected '%s', got '%.*s' in\n%s", path, want,
                 HK_FMT(json_str(v, HK_STR("(none)"))), b.data);
    }
}

static const struct json *change(const struct asked *q, const char *text)
{
    const struct json *list = json_get(&q->answer, "changes");

    for (uint32_t k = 0; k < list->len; k++) {
        if (hk_str_is(json_str(json_get(&list->items[k], "text"), HK_STR("")), text)) {
            return &list->items[k];
        }
    }
    return NULL;
}

static void expect_change(const struct asked *q, const char *text)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};

    if (!change(q, text)) {
        write_answer(q, &b);
        fail_msg("expected the change '%s' in\n%s", text, b.data);
    }
}

static bool has_code(const struct asked *q, const char *code)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0}, want = {0};

    json_write(json_get(&q->answer, "reasons"), &b);
    hk_buf_addf(&want, "\"code\":\"%s\"", code);
    return hk_str_contains(hk_buf_str(&b), want.data);
}

/* ---- reasons and changes ---- */

static const struct {
    const char *name, *conf, *world;
    const char *summary;
    const char *code;       /* of the node's refusal, or NULL */
    const char *changes[5]; /* the answer must contain all of these */
} cases[] = {
    {"room: a job ends, less is asked for, another node",
     ALLOCATE,
     NODE("n1", "4", "") QUEUE("q", "") BUSY("3", "n1") MINE("") WAITS("mine", "0", "2", ""),
     "waits: no node takes it",
     "insufficient",
     {"job x/busy ends", "task w asks for cpu 1 instead of 2 per pod",
      "there is one more node like n1"}},
    {"a gang: fewer at once",
     ALLOCATE,
     NODE("n1", "4", "") QUEUE("q", "") BUSY("2", "n1") GROUP("mine", "3", "2", "Inqueue", "")
         WAITS("mine", "0", "1", "") WAITS("mine", "1", "1", "") WAITS("mine", "2", "1", ""),
     "waits: 3 of its pods must have a place at once, 2 would find one",
     "insufficient",
     {"job x/busy ends", "minAvailable is 2 instead of 3",
      "task w asks for cpu 660m instead of 1 per pod"}},
    {"several nodes at once",
     ALLOCATE,
     NODE("n1", "2", "") QUEUE("q", "") GROUP("mine", "4", "2", "Inqueue", "")
         WAITS("mine", "0", "2", "") WAITS("mine", "1", "2", "") WAITS("mine", "2", "2", "")
             WAITS("mine", "3", "2", ""),
     "waits: 4 of its pods must have a place at once, 1 would find one",
     "insufficient",
     {"minAvailable is 1 instead of 4", "there are 3 more nodes like n1"}},
    {"a node selector",
     ALLOCATE,
     NODE("n1", "4", "") QUEUE("q", "") MINE("")
         WAITS("mine", "0", "1", ", nodeSelector: {disk: ssd}"),
     "waits: no node takes it",
     "nodeAffinity",
     {"its pods do not ask for node label disk=ssd"}},
    {"a taint",
     ALLOCATE,
     NODE("n1", "4", "taints: [{key: only, value: some, effect: NoSchedule}]") QUEUE("q", "")
         MINE("") WAITS("mine", "0", "1", ""),
     "waits: no node takes it",
     "taint",
     {"its pods tolerate the taint only=some:NoSchedule"}},
    {"a cordoned node",
     ALLOCATE,
     NODE("n1", "4", "unschedulable: true") QUEUE("q", "") MINE("") WAITS("mine", "0", "1", ""),
     "waits: no node takes it",
     "cordoned",
     {"node n1 is uncordoned"}},
    {"a cordoned node, as Kubernetes taints it",
     ALLOCATE,
     NODE("n1", "4",
          "unschedulable: true, taints: [{key: node.kubernetes.io/unschedulable, effect: "
          "NoSchedule}]") QUEUE("q", "") MINE("") WAITS("mine", "0", "1", ""),
     "waits: no node takes it",
     "cordoned",
     {"node n1 is uncordoned"}},
    {"anti-affinity",
     ALLOCATE,
     NODE("n1", "4", "") QUEUE("q", "") GROUP("mine", "2", "2", "Inqueue", "")
         WAITS("mine", "0", "1",
               ", affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
               "[{labelSelector: {}, topologyKey: kubernetes.io/hostname}]}}")
             WAITS("mine", "1", "1",
                   ", affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
                   "[{labelSelector: {}, topologyKey: kubernetes.io/hostname}]}}"),
     "waits: 2 of its pods must have a place at once, 1 would find one",
     "podAntiAffinity",
     {"its pods have no podAntiAffinity", "there is one more node like n1"}},
    {"a queue's capability",
     NULL,
     NODE("n1", "8", "") QUEUE("q", ", capability: {cpu: 2}") QUEUE("other", "") BUSY("2", "n1")
         GROUP("mine", "1", "2", "Pending", ", minResources: {cpu: 1}") WAITS("mine", "0", "1", ""),
     "waits: queue 'q' is at its limit",
     NULL,
     {"job x/busy ends", "queue q has capability cpu 3 instead of 2", "it is in queue other"}},
    {"priority, where it evicts",
     EVICTING,
     CLASS("high", "100") NODE("n1", "4", "") QUEUE("q", "") SPARE("2", "n1") MINE("")
         WAITS("mine", "0", "2", ""),
     "waits: no node takes it",
     "insufficient",
     {"it has priority class high (100)", "job x/busy ends"}},
    {"the share of a queue",
     NULL,
     NODE("n1", "4", "") QUEUE("q", "") HEAVY("other") OF("other", "big", "8") MINE("")
         WAITS("mine", "0", "2", ""),
     "waits: queue 'q' is at its limit",
     NULL,
     {"queue q has weight 3 instead of 1"}},
    {"room that is promised to others",
     NULL,
     NODE("n1", "4", "") QUEUE("q", "") GROUP("promised", "1", "1", "Inqueue",
                                              ", minResources: {cpu: 3}")
         GROUP("mine", "1", "2", "Pending", ", minResources: {cpu: 2}") WAITS("mine", "0", "2", ""),
     "waits to be admitted: resource in cluster is overused: overused cpu",
     NULL,
     {"its PodGroup is admitted (phase Inqueue)"}},
    {"a topology",
     "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n  - name: "
     "network-topology-aware\n",
     NODE("n1", "2", "") NODE("n2", "2", "") HYPER("s1", "n1") HYPER("s2", "n2") QUEUE("q", "")
         GROUP("mine", "3", "2", "Inqueue",
               ", networkTopology: {mode: hard, highestTierAllowed: 1}") WAITS("mine", "0", "1", "")
             WAITS("mine", "1", "1", "") WAITS("mine", "2", "1", ""),
     "waits: no hyperNode within the job's network topology has room for it",
     NULL,
     {"its network topology is soft instead of hard", "minAvailable is 2 instead of 3"}},
    {"somebody ahead takes what is left",
     ALLOCATE,
     NODE("n1", "2", "") QUEUE("q", "") GROUP("first", "1", "1", "Inqueue", "")
         WAITS("first", "0", "2", "") MINE("") WAITS("mine", "0", "2", ""),
     "waits: no node takes it",
     "insufficient",
     {"job x/first, which is ahead, is cancelled", "there is one more node like n1"}},
};

static void test_reasons_and_changes(void **state)
{
    for (size_t k = 0; k < HK_LEN(cases); k++) {
        struct asked q;
        print_message("# %s\n", cases[k].name);
        ask(&q, cases[k].conf ? cases[k].conf : conf_default_text, cases[k].world, API_PODGROUP,
            "mine", 100);
        assert_int_equal(q.rc, 0);
        expect(&q, "state", "waiting");
        expect(&q, "summary", cases[k].summary);
        assert_true(!cases[k].code || has_code(&q, cases[k].code));
        for (size_t i = 0; i < HK_LEN(cases[k].changes) && cases[k].changes[i]; i++) {
            expect_change(&q, cases[k].changes[i]);
        }
        asked_fini(&q);
    }
}

static void test_numbers_of_a_refusal(void **state)
{
    struct asked q;

    ask(&q, ALLOCATE,
        NODE("n1", "4", "") NODE("n2", "1", "") QUEUE("q", "") BUSY("3500m", "n1") MINE("")
            WAITS("mine", "0", "2", ""),
        API_PODGROUP, "mine", 0);
    const struct json *part = json_item(json_get(&q.answer, "reasons"), 0);
    const struct json *r = json_item(json_get(part, "refusals"), 0);
    assert_int_equal(json_int(json_get(r, "nodes"), 0), 2);
    assert_true(hk_str_is(json_str(json_get(r, "wants"), HK_STR("")), "2"));
    assert_true(hk_str_is(json_str(json_get(r, "mostFree"), HK_STR("")), "1"));
    assert_true(hk_str_is(json_str(json_get(r, "mostFreeOn"), HK_STR("")), "n2"));
    expect(&q, "wants.cpu", "2");
    expect(&q, "queue.allocated.cpu", "3500m");
    assert_int_equal(json_int(json_get(&q.answer, "tried"), -1), 0);
    asked_fini(&q);
}

static void test_limits_are_told_in_numbers(void **state)
{
    struct asked q;

    ask(&q, conf_default_text,
        NODE("n1", "8", "") QUEUE("q", ", capability: {cpu: 2}") BUSY("1500m", "n1")
            GROUP("mine", "1", "2", "Pending", ", minResources: {cpu: 1}")
                WAITS("mine", "0", "1", ""),
        API_PODGROUP, "mine", 100);
    const struct json *l = json_item(json_get(&q.answer, "limits"), 0);
    assert_true(hk_str_is(json_str(json_get(l, "limit"), HK_STR("")), "capability"));
    assert_true(hk_str_is(json_str(json_get(l, "holds"), HK_STR("")), "1500m"));
    assert_true(hk_str_is(json_str(json_get(l, "most"), HK_STR("")), "2"));
    expect_change(&q, "queue q has capability cpu 2500m instead of 2");
    asked_fini(&q);
}

static void test_who_is_ahead_and_why(void **state)
{
    struct asked q;

    ask(&q, ALLOCATE,
        CLASS("high", "100") NODE("n1", "1", "") QUEUE("q", "")
            GROUP("late", "1", "9", "Inqueue", ", priorityClassName: high")
                WAITS("late", "0", "4", "") GROUP("early", "1", "1", "Inqueue", "")
                    WAITS("early", "0", "3", "") MINE("") WAITS("mine", "0", "2", "")
                        GROUP("after", "1", "3", "Inqueue", "") WAITS("after", "0", "2", ""),
        API_PODGROUP, "mine", 0);
    const struct json *jobs = json_at(&q.answer, "ahead.jobs");
    assert_int_equal(json_int(json_at(&q.answer, "ahead.inQueue"), 0), 2);
    assert_int_equal(jobs->len, 2);
    assert_true(hk_str_is(json_str(json_get(&jobs->items[0], "name"), HK_STR("")), "x/late"));
    assert_true(
        hk_str_is(json_str(json_get(&jobs->items[0], "why"), HK_STR("")), "priority 100 over 0"));
    assert_true(hk_str_is(json_str(json_get(&jobs->items[1], "name"), HK_STR("")), "x/early"));
    assert_true(
        hk_str_is(json_str(json_get(&jobs->items[1], "why"), HK_STR("")), "created earlier"));
    assert_true(hk_str_is(json_str(json_at(&jobs->items[1], "waitsFor.cpu"), HK_STR("")), "3"));
    asked_fini(&q);
}

static void test_what_a_change_costs(void **state)
{
    struct asked q;

    ask(&q, EVICTING,
        CLASS("high", "100") NODE("n1", "4", "") QUEUE("q", "") SPARE("2", "n1") MINE("")
            WAITS("mine", "0", "2", ""),
        API_PODGROUP, "mine", 100);
    const struct json *c = change(&q, "it has priority class high (100)");
    assert_non_null(c);
    assert_true(hk_str_is(json_str(json_item(json_get(c, "evicts"), 0), HK_STR("")), "x/busy-w-1"));
    asked_fini(&q);

    /* Cancelling the job ahead does not count as delaying it; taking its room does. */
    ask(&q, ALLOCATE,
        CLASS("high", "100") NODE("n1", "2", "") QUEUE("q", "")
            GROUP("first", "1", "1", "Inqueue", "") WAITS("first", "0", "2", "") MINE("")
                WAITS("mine", "0", "2", ""),
        API_PODGROUP, "mine", 100);
    c = change(&q, "it has priority class high (100)");
    assert_non_null(c);
    assert_true(hk_str_is(json_str(json_item(json_get(c, "delays"), 0), HK_STR("")), "x/first"));
    c = change(&q, "job x/first, which is ahead, is cancelled");
    assert_non_null(c);
    assert_int_equal(json_get(c, "delays")->len, 0);
    asked_fini(&q);
}

/* ---- jobs of the job controller ---- */

#define JOB(more, status)                                                                          \
    "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j, namespace: x, uid: "    \
    "u1, "                                                                                         \
    "creationTimestamp: \"2026-01-01T00:00:05Z\"}\nspec:\n  queue: q\n  schedulerName: volcano\n"  \
    "  minAvailable: 2\n  tasks:\n  - {name: w, replicas: 2" more                                  \
    ", template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}}\n"            \
    "status: " status "\n---\n"
#define ITS_GROUP(phase)                                                                           \
    "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: j-u1, "           \
    "namespace: "                                                                                  \
    "x, ownerReferences: [{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: j, uid: u1, "   \
    "controller: true}]}\nspec: {minMember: 2, queue: q, minResources: {cpu: 2}}\nstatus: "        \
    "{phase: " phase "}\n---\n"

static const struct {
    const char *name, *world, *state, *summary, *change;
} states[] = {
    {"pods that are yet to be made are made in thought",
     NODE("n1", "3", "") QUEUE("q", "") BUSY("2", "n1") JOB("", "{state: {phase: Pending}}")
         ITS_GROUP("Pending"),
     "waiting", "waits to be admitted: resource in cluster is overused: overused cpu",
     "job x/busy ends"},
    {"an admitted group whose pods are not there yet",
     NODE("n1", "3", "") QUEUE("q", "") BUSY("2", "n1") JOB("", "{state: {phase: Pending}}")
         ITS_GROUP("Inqueue"),
     "waiting", "waits: queue 'q' is at its limit", "minAvailable is 1 instead of 2"},
    {"a change of the minimum lowers what the group asks for",
     NODE("n1", "8", "") QUEUE("q", ", capability: {cpu: 1}") JOB("", "{state: {phase: Pending}}")
         ITS_GROUP("Pending"),
     "waiting", "waits to be admitted: queue resource quota insufficient: insufficient cpu",
     "minAvailable is 1 instead of 2"},
    {"it has a place and only has to be seen",
     NODE("n1", "3", "") QUEUE("q", "") JOB("", "{state: {phase: Pending}}") ITS_GROUP("Pending"),
     "starting", "has a place: it starts in the next scheduling cycle", NULL},
    {"suspended, with room",
     NODE("n1", "3", "") QUEUE("q", "") JOB("", "{state: {phase: Aborted}}"), "suspended",
     "is suspended, and would start if it were resumed", "it is resumed"},
    {"suspended, without", NODE("n1", "1", "") QUEUE("q", "") JOB("", "{state: {phase: Aborted}}"),
     "suspended",
     "is suspended; resumed, it would wait to be admitted: resource in cluster is overused: "
     "overused cpu",
     NULL},
    {"completed",
     JOB("", "{state: {phase: Completed, lastTransitionTime: \"2026-01-01T00:00:45Z\"}, succeeded: "
             "2}"),
     "ended", "has completed: 2 pods succeeded, 0 failed", NULL},
    {"failed", JOB("", "{state: {phase: Failed, message: too often}, failed: 2}"), "ended",
     "has failed: 0 pods succeeded, 2 failed; too often", NULL},
    {"restarting",
     JOB("", "{state: {phase: Restarting}, running: 1, terminating: 1, retryCount: 2}"), "ending",
     "is being restarted: its pods end first (1 running, 1 terminating; retry 2 of 3)", NULL},
    {"a job that its controller refuses",
     NODE("n1", "3", "")
         JOB("", "{state: {phase: Pending, reason: InvalidJob, message: no tasks}}"),
     "blocked", "waits: its controller has made no PodGroup for it: no tasks", NULL},
    {"a queue that nobody made",
     NODE("n1", "3", "") QUEUE("other", "") JOB("", "{state: {phase: Pending}}")
         ITS_GROUP("Pending"),
     "waiting", "waits: its queue 'q' does not exist", "it is in queue other"},
};

static void test_states_of_jobs(void **state)
{
    for (size_t k = 0; k < HK_LEN(states); k++) {
        struct asked q;
        print_message("# %s\n", states[k].name);
        ask(&q, conf_default_text, states[k].world, API_JOB, "j", 100);
        assert_int_equal(q.rc, 0);
        expect(&q, "state", states[k].state);
        expect(&q, "summary", states[k].summary);
        if (states[k].change) {
            expect_change(&q, states[k].change);
        }
        asked_fini(&q);
    }
}

static void test_members_that_wait_beyond_the_minimum(void **state)
{
    struct asked q;

    ask(&q, ALLOCATE,
        NODE("n1", "3", "") QUEUE("q", "") GROUP("mine", "1", "2", "Running", "")
            RUNS("mine", "0", "2", "n1") WAITS("mine", "1", "2", ""),
        API_PODGROUP, "mine", 100);
    expect(&q, "state", "running");
    expect(&q, "summary", "runs: 1 pod has a place, 1 more waits for one");
    assert_true(has_code(&q, "insufficient"));
    expect_change(&q, "there is one more node like n1");
    expect_change(&q, "task w asks for cpu 1 instead of 2 per pod");
    asked_fini(&q);
}

static void test_room_that_is_being_freed(void **state)
{
    struct asked q;

    ask(&q, ALLOCATE,
        NODE("n1", "2", "") QUEUE("q", "") GROUP("busy", "1", "1", "Running", "") MINE("") WAITS(
            "mine", "0", "2",
            "") "apiVersion: v1\nkind: Pod\nmetadata: {name: busy-w-0, namespace: x, annotations: "
                "{scheduling.k8s.io/group-name: busy}, deletionTimestamp: "
                "\"2026-01-01T00:00:50Z\"}\nspec: {schedulerName: volcano, nodeName: n1, "
                "containers: "
                "[{name: c, resources: {requests: {cpu: 2}}}]}\nstatus: {phase: Running}\n",
        API_PODGROUP, "mine", 10);
    expect(&q, "state", "starting");
    expect(&q, "summary", "gets its place when the pods that end there are gone");
    asked_fini(&q);
}

#define READY(name, status)                                                                        \
    "apiVersion: v1\nkind: Node\nmetadata: {name: " name                                           \
    "}\nstatus: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}, conditions: [{type: Ready, "        \
    "status: "                                                                                     \
    "'" status "', lastTransitionTime: '2026-01-01T00:00:30Z'}]}\n---\n"
#define ENDS(i, node)                                                                              \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: j-w-" i ", namespace: x, deletionTimestamp: "     \
    "'2026-01-01T00:00:50Z', annotations: {scheduling.k8s.io/group-name: j-u1}}\nspec: "           \
    "{schedulerName: volcano, nodeName: " node ", containers: [{name: c}]}\nstatus: {phase: "      \
    "Running}\n---\n"
#define HAS(i, node)                                                                               \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: j-w-" i                                           \
    ", namespace: x, annotations: {scheduling.k8s.io/group-name: j-u1}}\nspec: {schedulerName: "   \
    "volcano, nodeName: " node ", containers: [{name: c}]}\nstatus: {phase: Running}\n---\n"

static void test_pods_on_lost_nodes(void **state)
{
    static const struct {
        const char *pods;
        enum api_kind_id kind;
        const char *name, *state, *summary;
    } lost[] = {
        {ENDS("0", "dead") HAS("1", "well"), API_JOB, "j", "blocked",
         "waits for its pod j-w-0, which is ending on node dead: that node is not reachable since "
         "2026-01-01T00:00:30Z, and nobody can tell whether the pod's processes have ended"},
        {HAS("0", "dead") ENDS("1", "dead"), API_JOB, "j", "blocked",
         "waits for its pod j-w-1, which is ending on node dead (and 1 more like it): that node is "
         "not reachable since 2026-01-01T00:00:30Z, and nobody can tell whether the pod's "
         "processes "
         "have ended"},
        {HAS("0", "sick") HAS("1", "well"), API_JOB, "j", "running",
         "runs, but its pod j-w-0 is on node sick, which is not ready since 2026-01-01T00:00:30Z"},
        {HAS("0", "gone") HAS("1", "well"), API_JOB, "j", "running",
         "runs, but its pod j-w-0 is on node gone, which does not exist"},
        {HAS("0", "well") HAS("1", "well"), API_JOB, "j", "running", "runs: 2 pods have a place"},
        {ENDS("0", "dead") HAS("1", "well"), API_POD, "j-w-0", "blocked",
         "is ending on node dead, which is not reachable since 2026-01-01T00:00:30Z"},
        {ENDS("0", "dead") HAS("1", "well"), API_POD, "j-w-1", "running",
         "is Running on node well"},
    };

    for (size_t i = 0; i < HK_LEN(lost); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf world = {0};
        struct asked q;

        hk_buf_addf(&world, "%s%s",
                    READY("dead", "Unknown") READY("sick", "False") READY("well", "True")
                        QUEUE("q", "") JOB("", "{state: {phase: Running}}") ITS_GROUP("Running"),
                    lost[i].pods);
        ask(&q, ALLOCATE, world.data, lost[i].kind, lost[i].name, 10);
        expect(&q, "state", lost[i].state);
        expect(&q, "summary", lost[i].summary);
        asked_fini(&q);
    }
}

static void test_gates(void **state)
{
    struct asked q;

    ask(&q, ALLOCATE,
        NODE("n1", "1", "") QUEUE("q", "") MINE("")
            WAITS("mine", "0", "1", ", schedulingGates: [{name: later}]"),
        API_PODGROUP, "mine", 10);
    expect(&q, "state", "blocked");
    expect(&q, "summary", "waits: its pods have scheduling gates");
    asked_fini(&q);
}

static void test_others_schedulers(void **state)
{
    struct asked q;

    ask(&q, ALLOCATE,
        NODE("n1", "1", "") "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: x}\nspec: "
                            "{schedulerName: default-scheduler, containers: [{name: c}]}\n",
        API_POD, "p", 10);
    expect(&q, "state", "foreign");
    expect(&q, "summary", "is for the scheduler 'default-scheduler'");
    asked_fini(&q);
}

static void test_pods_that_ask_for_nothing(void **state)
{
    struct asked q;

    ask(&q, ALLOCATE,
        NODE("n1", "1", "") QUEUE("q", "") MINE("") POD("mine", "0", "0", "", "Pending"),
        API_PODGROUP, "mine", 10);
    expect(&q, "summary",
           "waits: its pods ask for nothing, and the configuration has no action 'backfill', which "
           "places such pods");
    asked_fini(&q);
}

static void test_times(void **state)
{
    struct asked q;

    ask(&q, conf_default_text,
        NODE("n1", "1", "") QUEUE("q", "") JOB("", "{state: {phase: Pending}}")
            ITS_GROUP("Inqueue"),
        API_JOB, "j", 0);
    expect(&q, "since", "2026-01-01T00:00:05Z");
    assert_int_equal(json_int(json_get(&q.answer, "waitedSeconds"), 0), 55);
    asked_fini(&q);
    ask(&q, conf_default_text,
        JOB("", "{state: {phase: Completed, lastTransitionTime: \"2026-01-01T00:00:45Z\"}}"),
        API_JOB, "j", 0);
    assert_int_equal(json_int(json_get(&q.answer, "tookSeconds"), 0), 40);
    asked_fini(&q);
}

static void test_tasks_that_depend_on_others(void **state)
{
    struct asked q;

    ask(&q, conf_default_text,
        NODE("n1", "1", "") QUEUE("q", "") JOB(", minAvailable: 2, dependsOn: {name: [w]}",
                                               "{state: {phase: Pending}}") ITS_GROUP("Inqueue"),
        API_JOB, "j", 0);
    const struct json *b = json_item(json_get(&q.answer, "blockedTasks"), 0);
    assert_true(hk_str_is(json_str(json_get(b, "task"), HK_STR("")), "w"));
    assert_true(hk_str_is(json_str(json_item(json_get(b, "dependsOn"), 0), HK_STR("")), "w"));
    expect(&q, "summary", "waits: it has 0 pods and needs 2 at once");
    asked_fini(&q);
}

static void test_pods_and_queues(void **state)
{
    struct asked q;
    const char *world = NODE("n1", "2", "") QUEUE("q", "") BUSY("2", "n1") MINE("")
        WAITS("mine", "0", "1", "") QUEUE("shut", "");

    ask(&q, ALLOCATE, world, API_POD, "mine-w-0", 0);
    expect(&q, "kind", "Pod");
    expect(&q, "state", "waiting");
    asked_fini(&q);
    ask(&q, ALLOCATE, world, API_POD, "busy-w-0", 0);
    expect(&q, "summary", "is Running on node n1");
    asked_fini(&q);
    ask(&q, ALLOCATE, world, API_PODGROUP, "busy", 0);
    expect(&q, "state", "running");
    expect(&q, "summary", "runs: 1 pod has a place");
    asked_fini(&q);
    ask(&q, ALLOCATE, world, API_QUEUE, "q", 0);
    expect(&q, "summary", "is open, and 1 of its 2 jobs waits");
    expect(&q, "queue.allocated.cpu", "2");
    asked_fini(&q);
    ask(&q, ALLOCATE, world, API_QUEUE, "none", 0);
    assert_int_equal(q.rc, -HK_ENOTFOUND);
    assert_string_equal(q.err.text, "there is no queue 'none'");
    asked_fini(&q);
    ask(&q, ALLOCATE, world, API_JOB, "none", 0);
    assert_int_equal(q.rc, -HK_ENOTFOUND);
    assert_string_equal(q.err.text, "there is no job 'none' in namespace 'x'");
    asked_fini(&q);
}

static void test_a_limit_of_tries_is_told(void **state)
{
    struct asked q;

    ask(&q, ALLOCATE,
        NODE("n1", "4", "") QUEUE("q", "") BUSY("3", "n1") MINE("") WAITS("mine", "0", "2", ""),
        API_PODGROUP, "mine", 2);
    assert_int_equal(json_int(json_get(&q.answer, "tried"), 0), 2);
    assert_true(json_bool(json_get(&q.answer, "cut"), false));
    expect_change(&q, "job x/busy ends");
    asked_fini(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reasons_and_changes),
        cmocka_unit_test(test_numbers_of_a_refusal),
        cmocka_unit_test(test_limits_are_told_in_numbers),
        cmocka_unit_test(test_who_is_ahead_and_why),
        cmocka_unit_test(test_what_a_change_costs),
        cmocka_unit_test(test_states_of_jobs),
        cmocka_unit_test(test_members_that_wait_beyond_the_minimum),
        cmocka_unit_test(test_room_that_is_being_freed),
        cmocka_unit_test(test_pods_on_lost_nodes),
        cmocka_unit_test(test_gates),
        cmocka_unit_test(test_others_schedulers),
        cmocka_unit_test(test_pods_that_ask_for_nothing),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_tasks_that_depend_on_others),
        cmocka_unit_test(test_pods_and_queues),
        cmocka_unit_test(test_a_limit_of_tries_is_told),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
