// SPDX-License-Identifier: Apache-2.0
// What must hold after every step: what was published stays, a pod is bound once, no node is
// overfilled, no queue goes beyond its capability, no job is tried more often than it may be, the
// scheduler's books balance.
#include "world/check.h"

#include "api/names.h"
#include "codec/quantity.h"
#include "scheduler/model/topo.h"

#include <inttypes.h>
#include <stdio.h>

uint32_t check_res(const struct world *w, enum api_kind_id kind)
{
    return store_res(w->store, hk_str(api_kind(kind)->group), hk_str(api_kind(kind)->plural));
}

struct hk_str check_str(const struct json *root, const char *path)
{
    return json_str(json_at(root, path), HK_STR(""));
}

int64_t check_amount(const struct json *list, const char *name, bool milli, int64_t none)
{
    const struct json *v = json_get(list, name);
    struct quantity q;

    if (!v || quantity_parse(json_str(v, HK_STR("0")), &q, NULL) < 0) {
        return none;
    }
    return milli ? quantity_milli(q) : quantity_value(q);
}

static bool check_deleting(const struct json *root)
{
    return json_at(root, "metadata.deletionTimestamp") != NULL;
}

/* ---- what is known of each kind ---- */

struct check_pod *check_pod_find(struct check *c, const char *uid)
{
    for (uint32_t i = c->pods.len; i-- > 0;) {
        if (strcmp(c->pods.at[i].uid, uid) == 0) {
            return &c->pods.at[i];
        }
    }
    return NULL;
}

bool check_has_pod(const struct check *c, const char *uid)
{
    const struct check_pod *p = check_pod_find((struct check *)c, uid);

    return p && !p->gone;
}

static void check_pod_requests(struct check_pod *p, const struct json *root)
{
    const struct json *list = json_at(root, "spec.containers");

    p->cpu_milli = p->mem_bytes = 0;
    for (uint32_t i = 0; json_item(list, i); i++) {
        const struct json *requests = json_at(json_item(list, i), "resources.requests");
        p->cpu_milli += check_amount(requests, "cpu", true, 0);
        p->mem_bytes += check_amount(requests, "memory", false, 0);
    }
}

const char *check_fate(const struct check *c, const char *uid)
{
    const struct check_pod *p = check_pod_find((struct check *)c, uid);

    return p ? p->fate : "{}";
}

/* The part of the annotations that says what becomes of containers. */
static void check_pod_fate(struct check_pod *p, const struct json *notes)
{
    static const char *const keys[] = {SIMULATE_ANN_DURATION, SIMULATE_ANN_EXIT_CODE,
                                       SIMULATE_ANN_FAILURES, SIMULATE_ANN_IGNORE_TERM,
                                       API_ANN_JOB_RETRY_COUNT};
    size_t at = 0;

    for (size_t i = 0; i < HK_LEN(keys); i++) {
        const struct hk_str v = json_str(json_get(notes, keys[i]), HK_STR(""));

        if (v.n > 0) {
            at += (size_t)snprintf(p->fate + at, sizeof(p->fate) - at, "%s\"%s\": \"%.*s\"",
                                   at > 0 ? ", " : "{", keys[i], HK_FMT(v));
        }
    }
    hk_assert(at + 2 < sizeof(p->fate));
    snprintf(p->fate + at, sizeof(p->fate) - at, "%s", at > 0 ? "}" : "{}");
}

/* Whether the pod may leave the API while its processes run: somebody has asked for that, or an
 * administrator has said that its node is gone. What a controller does about a node that has come
 * back may be on its way for a while. */
static bool check_may_leave(struct world *w, const struct check_pod *p)
{
    const struct check_node *n = check_node_named(w->check, p->node);

    return p->forced || p->grace_s == 0 || !n || n->gone || n->out_of_service ||
           (n->gone_ns > 0 && world_now(w) - n->gone_ns < 120 * WORLD_SECOND);
}

static void check_pod_leaves(struct world *w, struct check_pod *p)
{
    const uint32_t running = world_running(w, p->uid);

    p->gone_ns = world_now(w);
    if (running > 0 && !check_may_leave(w, p)) {
        world_fail(w, "a pod leaves after its processes",
                   "expected no process of pod %s/%s (%s) on node %s when it is gone, actual: %u",
                   p->ns, p->name, p->uid, p->node, running);
    }
}

static void check_pod(struct world *w, const struct json *root, bool gone)
{
    struct check *c = w->check;
    const struct hk_str phase = check_str(root, "status.phase");
    const struct hk_str node = check_str(root, "spec.nodeName");
    const struct json *notes = json_at(root, "metadata.annotations");
    char uid[64];
    struct check_pod *p;

    CHECK_PUT(uid, check_str(root, "metadata.uid"));
    p = check_pod_find(c, uid);
    if (!p) {
        hk_vec_push(&c->pods, (struct check_pod){0});
        p = &c->pods.at[c->pods.len - 1];
        CHECK_PUT(p->uid, hk_str(uid));
        CHECK_PUT(p->ns, check_str(root, "metadata.namespace"));
        CHECK_PUT(p->name, check_str(root, "metadata.name"));
        check_pod_requests(p, root);
        check_pod_fate(p, notes);
        p->grace_s = json_int(json_at(root, "spec.terminationGracePeriodSeconds"), 30);
        p->forever =
            hk_str_is(json_str(json_get(notes, SIMULATE_ANN_DURATION), HK_STR("")), "forever");
    }
    if (p->node[0] != '\0' && !hk_str_is(node, p->node)) {
        world_fail(w, "a pod is bound once",
                   "expected pod %s/%s (%s) to stay on node '%s', actual: it is on '%.*s'", p->ns,
                   p->name, uid, p->node, HK_FMT(node));
    }
    CHECK_PUT(p->node, node);
    CHECK_PUT(p->group, json_str(json_get(notes, API_ANN_GROUP_NAME), HK_STR("")));
    p->phase = hk_str_is(phase, "Succeeded") || hk_str_is(phase, "Failed") ? CHECK_POD_OVER
               : hk_str_is(phase, "Running")                               ? CHECK_POD_RUNNING
                                                                           : CHECK_POD_PENDING;
    CHECK_PUT(p->role, json_str(json_get(notes, API_ANN_TASK_SPEC), HK_STR("")));
    p->failed = hk_str_is(phase, "Failed");
    p->deleting = check_deleting(root);
    p->deleting_ns = p->deleting && p->deleting_ns == 0 ? world_now(w) : p->deleting_ns;
    if (gone && !p->gone) {
        check_pod_leaves(w, p);
    }
    p->gone = gone;
}

struct check_group *check_group_find(struct check *c, const char *ns, const char *name)
{
    for (uint32_t i = 0; i < c->groups.len; i++) {
        if (strcmp(c->groups.at[i].name, name) == 0 && strcmp(c->groups.at[i].ns, ns) == 0) {
            return &c->groups.at[i];
        }
    }
    return NULL;
}

/* Whether some condition tells why it waits. */
static bool check_is_explained(const struct json *root)
{
    const struct json *list = json_at(root, "status.conditions");

    for (uint32_t i = 0; json_item(list, i); i++) {
        const struct json *cond = json_item(list, i);
        if (hk_str_is(check_str(cond, "type"), "Unschedulable") &&
            hk_str_is(check_str(cond, "status"), "True") && check_str(cond, "message").n > 0) {
            return true;
        }
    }
    return false;
}

static void check_group_roles(struct check_group *g, const struct json *list)
{
    const uint32_t n = json_is(list, JSON_OBJECT) ? list->len : 0;

    memset(g->roles, 0, sizeof(g->roles));
    for (uint32_t i = 0; i < n && i < HK_LEN(g->roles); i++) {
        CHECK_PUT(g->roles[i].role, list->members[i].key);
        g->roles[i].min = json_int(&list->members[i].value, 0);
    }
}

static void check_group(struct world *w, const struct json *root, bool gone)
{
    struct check *c = w->check;
    char ns[32], name[64];
    struct check_group *g;

    CHECK_PUT(ns, check_str(root, "metadata.namespace"));
    CHECK_PUT(name, check_str(root, "metadata.name"));
    g = check_group_find(c, ns, name);
    if (!g) {
        hk_vec_push(&c->groups, (struct check_group){0});
        g = &c->groups.at[c->groups.len - 1];
        CHECK_PUT(g->ns, hk_str(ns));
        CHECK_PUT(g->name, hk_str(name));
    }
    CHECK_PUT(g->queue, check_str(root, "spec.queue"));
    g->min = json_int(json_at(root, "spec.minMember"), 0);
    check_group_roles(g, json_at(root, "spec.minTaskMember"));
    g->explained = check_is_explained(root);
    g->gone = gone;
}

static struct check_queue *check_queue_find(struct check *c, const char *name)
{
    for (uint32_t i = 0; i < c->queues.len; i++) {
        if (strcmp(c->queues.at[i].name, name) == 0) {
            return &c->queues.at[i];
        }
    }
    return NULL;
}

static void check_queue(struct world *w, const struct json *root, bool gone)
{
    struct check *c = w->check;
    char name[32];
    struct check_queue *q;

    CHECK_PUT(name, check_str(root, "metadata.name"));
    q = check_queue_find(c, name);
    if (!q) {
        hk_vec_push(&c->queues, (struct check_queue){0});
        q = &c->queues.at[c->queues.len - 1];
        CHECK_PUT(q->name, hk_str(name));
    }
    q->cpu_milli = check_amount(json_at(root, "spec.capability"), "cpu", true, -1);
    CHECK_PUT(q->state, check_str(root, "status.state"));
    q->gone = gone;
}

static struct check_job *check_job_find(struct check *c, const char *uid)
{
    for (uint32_t i = 0; i < c->jobs.len; i++) {
        if (strcmp(c->jobs.at[i].uid, uid) == 0) {
            return &c->jobs.at[i];
        }
    }
    return NULL;
}

static void check_job(struct world *w, const struct json *root, bool gone)
{
    struct check *c = w->check;
    const int64_t retries = json_int(json_at(root, "status.retryCount"), 0);
    const int64_t version = json_int(json_at(root, "status.version"), 0);
    char uid[64];
    struct check_job *j;

    CHECK_PUT(uid, check_str(root, "metadata.uid"));
    j = check_job_find(c, uid);
    if (!j) {
        hk_vec_push(&c->jobs, (struct check_job){0});
        j = &c->jobs.at[c->jobs.len - 1];
        CHECK_PUT(j->uid, hk_str(uid));
        CHECK_PUT(j->ns, check_str(root, "metadata.namespace"));
        CHECK_PUT(j->name, check_str(root, "metadata.name"));
        j->huge = hk_str_is(
            json_str(json_get(json_at(root, "metadata.annotations"), "world/huge"), HK_STR("")),
            "true");
    }
    j->max_retry = json_int(json_at(root, "spec.maxRetry"), 3);
    if (retries > j->max_retry) {
        world_fail(w, "retries never exceed maxRetry",
                   "expected retryCount of job %s/%s to be at most %" PRId64 ", actual: %" PRId64,
                   j->ns, j->name, j->max_retry, retries);
    }
    if (retries < j->retries || version < j->version) {
        world_fail(w, "attempts count up",
                   "expected version and retryCount of job %s/%s to be at least %" PRId64
                   " and %" PRId64 ", actual: %" PRId64 " and %" PRId64,
                   j->ns, j->name, j->version, j->retries, version, retries);
    }
    j->retries = retries;
    j->version = version;
    CHECK_PUT(j->phase, check_str(root, "status.state.phase"));
    j->deleting = check_deleting(root);
    j->gone = gone;
}

static void (*const check_kinds[API_NKINDS])(struct world *w, const struct json *root,
                                             bool gone) = {
    [API_POD] = check_pod,     [API_NODE] = check_node, [API_PODGROUP] = check_group,
    [API_QUEUE] = check_queue, [API_JOB] = check_job,
};

static void check_object(struct world *w, enum api_kind_id kind, const struct store_obj *o,
                         bool gone)
{
    struct json root;

    if (check_kinds[kind] && json_parse(o->text, 0, &w->check->mem, &root, NULL) == 0) {
        check_kinds[kind](w, &root, gone);
        w->check->dirty = true;
    }
    hk_arena_clear(&w->check->mem);
}

/* ---- sums ---- */

static bool check_holds(const struct check_pod *p)
{
    return !p->gone && p->node[0] != '\0' && p->phase != CHECK_POD_OVER;
}

static void check_node_sums(struct world *w, const struct check_node *n)
{
    const struct check *c = w->check;
    int64_t cpu = 0, mem = 0, pods = 0;

    for (uint32_t i = 0; i < c->pods.len; i++) {
        const struct check_pod *p = &c->pods.at[i];
        if (check_holds(p) && strcmp(p->node, n->name) == 0) {
            cpu += p->cpu_milli;
            mem += p->mem_bytes;
            pods++;
        }
    }
    if (cpu > n->cpu_milli || mem > n->mem_bytes || pods > n->pods) {
        world_fail(w, "no node over its allocatable",
                   "expected at most %" PRId64 "m cpu, %" PRId64 " bytes, %" PRId64
                   " pods on node %s, actual: %" PRId64 "m, %" PRId64 ", %" PRId64,
                   n->cpu_milli, n->mem_bytes, n->pods, n->name, cpu, mem, pods);
    }
}

/* Who is in it, into the trace. */
static void check_tell_queue(struct world *w, const struct check_queue *q)
{
    struct check *c = w->check;

    for (uint32_t i = 0; i < c->pods.len; i++) {
        const struct check_pod *p = &c->pods.at[i];
        const struct check_group *g = p->group[0] ? check_group_find(c, p->ns, p->group) : NULL;
        if (g && check_holds(p) && strcmp(g->queue, q->name) == 0) {
            trace_add(&w->trace, "check", "%s holds %s/%s on %s: %" PRId64 "m, phase %d%s", q->name,
                      p->ns, p->name, p->node, p->cpu_milli, (int)p->phase,
                      p->deleting ? ", deleting" : "");
        }
    }
}

static void check_queue_sums(struct world *w, const struct check_queue *q)
{
    struct check *c = w->check;
    int64_t cpu = 0;

    for (uint32_t i = 0; i < c->pods.len; i++) {
        const struct check_pod *p = &c->pods.at[i];
        const struct check_group *g =
            check_holds(p) && p->group[0] ? check_group_find(c, p->ns, p->group) : NULL;
        if (g && strcmp(g->queue, q->name) == 0) {
            cpu += p->cpu_milli;
        }
    }
    if (q->cpu_milli >= 0 && cpu > q->cpu_milli) {
        check_tell_queue(w, q);
        world_fail(w, "queue capability holds",
                   "expected at most %" PRId64 "m cpu bound in queue %s, actual: %" PRId64 "m",
                   q->cpu_milli, q->name, cpu);
    }
}

static void check_sums(struct world *w)
{
    const struct check *c = w->check;

    for (uint32_t i = 0; i < c->nodes.len; i++) {
        if (!c->nodes.at[i].gone && c->nodes.at[i].cpu_milli >= 0) {
            check_node_sums(w, &c->nodes.at[i]);
        }
    }
    for (uint32_t i = 0; i < c->queues.len; i++) {
        if (!c->queues.at[i].gone) {
            check_queue_sums(w, &c->queues.at[i]);
        }
    }
}

/* ---- what was published ---- */

static struct check_key *check_key_of(struct check *c, enum api_kind_id kind, struct hk_str ns,
                                      struct hk_str name)
{
    char text[160];
    uint32_t id;

    snprintf(text, sizeof(text), "%d %.*s/%.*s", (int)kind, HK_FMT(ns), HK_FMT(name));
    id = hk_intern(&c->names, hk_str(text));
    while (c->keys.len <= id) {
        hk_vec_push(&c->keys, (struct check_key){.kind = kind});
    }
    c->keys.at[id].kind = kind;
    return &c->keys.at[id];
}

/* Machines with an agent of their own report as long as they live. What changes by that is noticed
 * with the object. */
static bool check_is_heartbeat(const struct world *w, enum api_kind_id kind,
                               const struct store_event *ev)
{
    return (kind == API_LEASE || kind == API_NODE) && ev->type == STORE_MODIFIED &&
           check_remote(w, hk_arena_str(&w->check->mem, ev->obj->name).s);
}

static void check_event(struct world *w, enum api_kind_id kind, const struct store_event *ev)
{
    struct check *c = w->check;
    struct check_key *k = check_key_of(c, kind, ev->obj->ns, ev->obj->name);

    if (ev->rv <= c->rv) {
        world_fail(w, "revisions grow",
                   "expected a revision beyond %" PRIu64 " for %s %.*s, actual: %" PRIu64, c->rv,
                   api_kind(kind)->plural, HK_FMT(ev->obj->name), ev->rv);
    }
    k->present = ev->type != STORE_DELETED;
    k->rv = ev->rv;
    k->hash = hk_hash(ev->obj->text.s, ev->obj->text.n, 1);
    c->writes++;
    if (kind != API_EVENT) {
        static const char *const types[] = {"added", "modified", "deleted"};
        c->last_write_ns = check_is_heartbeat(w, kind, ev) ? c->last_write_ns : world_now(w);
        trace_add(&w->trace, "store", "%s %s %.*s/%.*s rv %" PRIu64, types[ev->type],
                  api_kind(kind)->plural, HK_FMT(ev->obj->ns), HK_FMT(ev->obj->name), ev->rv);
    }
    check_object(w, kind, ev->obj, ev->type == STORE_DELETED);
}

struct check_scan {
    struct world *w;
    enum api_kind_id kind;
    bool boot;
    HK_VEC(uint32_t) met;
};

static bool check_scan_object(void *ctx, const struct store_obj *o)
{
    struct check_scan *s = ctx;
    struct check *c = s->w->check;
    struct check_key *k = check_key_of(c, s->kind, o->ns, o->name);
    const uint64_t hash = hk_hash(o->text.s, o->text.n, 1);

    hk_vec_push(&s->met, (uint32_t)(k - c->keys.at));
    if (k->present && k->rv == o->rv && k->hash == hash) {
        return true;
    }
    if (s->boot && c->booted && o->rv <= c->rv) {
        world_fail(s->w, "no acknowledged write lost",
                   "expected %s %.*s/%.*s at revision %" PRIu64 " (hash %016" PRIx64
                   ") after the restart, or newer than %" PRIu64 ", actual: revision %" PRIu64
                   " (hash %016" PRIx64 ")",
                   api_kind(s->kind)->plural, HK_FMT(o->ns), HK_FMT(o->name),
                   k->present ? k->rv : 0, k->hash, c->rv, o->rv, hash);
    }
    *k = (struct check_key){.kind = s->kind, .present = true, .rv = o->rv, .hash = hash};
    check_object(s->w, s->kind, o, false);
    return true;
}

static void check_vanish(struct world *w, enum api_kind_id kind, const char *key);

/* What was there and has not been met is gone. */
static void check_scan_rest(struct check_scan *s)
{
    struct check *c = s->w->check;

    for (uint32_t i = 0; i < c->keys.len; i++) {
        struct check_key *k = &c->keys.at[i];
        bool met = !k->present || k->kind != s->kind;

        for (uint32_t m = 0; m < s->met.len && !met; m++) {
            met = s->met.at[m] == i;
        }
        if (met) {
            continue;
        }
        if (s->boot && !k->unsure) {
            world_fail(s->w, "no acknowledged write lost",
                       "expected %s '%s' at revision %" PRIu64
                       " after the restart, actual: it is not there",
                       api_kind(s->kind)->plural, hk_intern_str(&c->names, i).s, k->rv);
        }
        k->present = false;
        check_vanish(s->w, s->kind, hk_intern_str(&c->names, i).s);
    }
}

/* Its last state is not known: only that it is gone. */
static void check_vanish(struct world *w, enum api_kind_id kind, const char *key)
{
    struct check *c = w->check;
    const char *at = strchr(key, ' ') + 1, *slash = strchr(at, '/');
    const struct hk_str ns = {at, (size_t)(slash - at)};
    const char *name = slash + 1;

    for (uint32_t i = 0; kind == API_POD && i < c->pods.len; i++) {
        struct check_pod *p = &c->pods.at[i];
        p->gone |= hk_str_is(ns, p->ns) && strcmp(p->name, name) == 0;
    }
    for (uint32_t i = 0; kind == API_JOB && i < c->jobs.len; i++) {
        struct check_job *j = &c->jobs.at[i];
        j->gone |= hk_str_is(ns, j->ns) && strcmp(j->name, name) == 0;
    }
    for (uint32_t i = 0; kind == API_PODGROUP && i < c->groups.len; i++) {
        struct check_group *g = &c->groups.at[i];
        g->gone |= hk_str_is(ns, g->ns) && strcmp(g->name, name) == 0;
    }
    for (uint32_t i = 0; kind == API_NODE && i < c->nodes.len; i++) {
        c->nodes.at[i].gone |= strcmp(c->nodes.at[i].name, name) == 0;
    }
    for (uint32_t i = 0; kind == API_QUEUE && i < c->queues.len; i++) {
        c->queues.at[i].gone |= strcmp(c->queues.at[i].name, name) == 0;
    }
}

/* An object that took the place of another of its name: the other is gone. */
static void check_replaced(struct check *c)
{
    for (uint32_t i = 0; i < c->pods.len; i++) {
        for (uint32_t k = i + 1; k < c->pods.len && !c->pods.at[i].gone; k++) {
            const struct check_pod *a = &c->pods.at[i], *b = &c->pods.at[k];
            c->pods.at[i].gone =
                !b->gone && strcmp(a->name, b->name) == 0 && strcmp(a->ns, b->ns) == 0;
        }
    }
    for (uint32_t i = 0; i < c->jobs.len; i++) {
        for (uint32_t k = i + 1; k < c->jobs.len && !c->jobs.at[i].gone; k++) {
            const struct check_job *a = &c->jobs.at[i], *b = &c->jobs.at[k];
            c->jobs.at[i].gone =
                !b->gone && strcmp(a->name, b->name) == 0 && strcmp(a->ns, b->ns) == 0;
        }
    }
}

static void check_scan(struct world *w, enum api_kind_id kind, bool boot)
{
    struct check_scan s = {.w = w, .kind = kind, .boot = boot};

    store_scan(w->store, check_res(w, kind), HK_STR(""), HK_STR(""), HK_STR(""), check_scan_object,
               &s);
    check_scan_rest(&s);
    hk_vec_fini(&s.met);
    check_replaced(w->check);
}

void check_published(struct world *w)
{
    struct check *c = w->check;

    for (enum api_kind_id kind = 0; kind < API_NKINDS; kind++) {
        const uint32_t res = check_res(w, kind);
        enum store_next next;
        struct store_event ev;

        while ((next = store_next(w->store, res, HK_STR(""), &c->seen[kind], &ev)) ==
               STORE_NEXT_EVENT) {
            check_event(w, kind, &ev);
        }
        if (next == STORE_NEXT_GONE) {
            check_scan(w, kind, false);
            c->seen[kind] = store_rv(w->store);
            c->last_write_ns = world_now(w);
        }
    }
    c->rv = store_rv(w->store);
    if (c->dirty) {
        c->dirty = false;
        check_sums(w);
    }
}

void check_answer(struct world *w, const struct link_call *call, const struct port_msg *m)
{
    if (m->type == PORT_DONE && m->rc == 0 && call->verb >= PORT_CREATE && m->obj &&
        m->obj->rv > w->check->rv && !w->disk->ended) {
        world_fail(w, "nothing is acknowledged before it is durable",
                   "expected revisions up to %" PRIu64 ", actual: %s %s %.*s was answered with "
                   "revision %" PRIu64,
                   w->check->rv, port_verb_name(call->verb), call->kind->plural,
                   HK_FMT(m->obj->name), m->obj->rv);
    }
}

/* ---- ends and starts ---- */

void check_end(struct world *w)
{
    struct check *c = w->check;
    const bool failing = !w->store || store_failure(w->store) != NULL;

    for (uint32_t i = 0; i < c->keys.len; i++) {
        struct check_key *k = &c->keys.at[i];
        const char *key = hk_intern_str(&c->names, i).s;
        const char *at, *slash;
        const struct store_obj *head;
        bool staged = false;

        if (!k->present || !w->store) {
            continue;
        }
        at = strchr(key, ' ') + 1;
        slash = strchr(at, '/');
        head = store_head(w->store, check_res(w, k->kind),
                          (struct hk_str){at, (size_t)(slash - at)}, hk_str(slash + 1), &staged);
        k->unsure = failing || staged || !head || head->rv != k->rv;
    }
}

void check_boot(struct world *w)
{
    struct check *c = w->check;

    if (c->booted && store_rv(w->store) < c->rv) {
        world_fail(w, "revisions grow",
                   "expected revision %" PRIu64 " or more after the restart, actual: %" PRIu64,
                   c->rv, store_rv(w->store));
    }
    for (enum api_kind_id kind = 0; kind < API_NKINDS; kind++) {
        check_scan(w, kind, true);
        c->seen[kind] = store_rv(w->store);
    }
    c->rv = store_rv(w->store);
    c->booted = true;
    for (uint32_t i = 0; i < c->keys.len; i++) {
        c->keys.at[i].unsure = false;
    }
}

/* ---- others ---- */

void check_books(struct world *w)
{
    const struct model *m = loop_model(w->scheduler);
    struct hk_err err = {0};

    if (w->breach == BREACH_BOOKS && m->nodes.len > 0 && w->steps > 500) {
        m->nodes.idle.col[0][0]++;
        w->breaches++;
    }
    if (model_check(m, &err) < 0 || topo_check(m, &err) < 0) {
        world_fail(w, "books balance", "expected sums equal to the rows', actual: %s", err.text);
    }
}

void check_force(struct world *w, const char *ns, const char *name)
{
    for (uint32_t i = 0; i < w->check->pods.len; i++) {
        struct check_pod *p = &w->check->pods.at[i];
        p->forced |= strcmp(p->ns, ns) == 0 && strcmp(p->name, name) == 0;
    }
}

/* A signal ends a container when its pod is deleted, is gone, or was ended for a reason of its own:
 * never because time was set. */
void check_process_end(struct world *w, const char *uid, const char *name,
                       const struct runtime_end *end)
{
    const struct check_pod *p = check_pod_find(w->check, uid);

    if (end->signo != 0 && p && !p->gone && p->deleting_ns == 0 && p->phase == CHECK_POD_RUNNING) {
        world_fail(w, "nothing ends without a reason",
                   "expected container %s of pod %s/%s (%s), which nobody deletes, to run until it "
                   "ends by itself, actual: ended by signal %d",
                   name, p->ns, p->name, uid, end->signo);
    }
}

/* Of the pods of one name the earlier ones have ended, unless somebody did not want to wait. */
static void check_start_successor(struct world *w, const struct check_pod *p, const char *node)
{
    const struct check *c = w->check;

    if (p->gone && check_may_leave(w, p)) {
        return; /* given up: its machine does not know yet that there is a successor */
    }
    for (uint32_t i = 0; i < c->pods.len; i++) {
        const struct check_pod *o = &c->pods.at[i];

        if (o != p && strcmp(o->ns, p->ns) == 0 && strcmp(o->name, p->name) == 0 &&
            !check_may_leave(w, o) && world_running(w, o->uid) > 0) {
            world_fail(w, "no pod runs twice",
                       "expected pod %s/%s to run once, actual: %s is started on %s while %s runs "
                       "on %s",
                       p->ns, p->name, p->uid, node, o->uid, o->node);
        }
    }
}

void check_start(struct world *w, const char *node, const char *uid, const char *name,
                 uint32_t attempt)
{
    const struct check_pod *p = check_pod_find(w->check, uid);

    if (p) {
        check_start_successor(w, p, node);
    }
    if (!p || p->node[0] == '\0') {
        world_fail(w, "no process without a pod",
                   "expected a pod %s that is bound, actual: container %s.%u of %s is started", uid,
                   name, attempt, p ? "one that is not bound" : "none");
    }
}

int64_t check_last_write_ns(const struct check *c)
{
    return c->last_write_ns;
}

uint64_t check_writes(const struct check *c)
{
    return c->writes;
}

struct check *check_new(void)
{
    return hk_zalloc(sizeof(struct check));
}

void check_free(struct check *c)
{
    hk_vec_fini(&c->keys);
    hk_vec_fini(&c->pods);
    hk_vec_fini(&c->nodes);
    hk_vec_fini(&c->groups);
    hk_vec_fini(&c->queues);
    hk_vec_fini(&c->jobs);
    hk_intern_fini(&c->names);
    hk_arena_fini(&c->mem);
    hk_free(c);
}
