// SPDX-License-Identifier: Apache-2.0
// The unchanged cluster: runs one cycle in a copy and reads what its session reports about the job
// and its queue. The keys made here go into the answer unchanged.
#include "explain/explain_priv.h"
#include "sim/aside.h"

#include "scheduler/explain.h"

enum { AHEAD_SHOWN = 10, PARTS_SHOWN = 10 };

struct look {
    struct explainer *x;
    job_id job;
    struct json doc;
    int64_t wants[DIM_MAX]; /* needed to start */
    bool seen;              /* only the first session counts */
};

/* ---- amounts ---- */

static struct json dense(const struct model *m, const int64_t *v, struct hk_arena *a)
{
    struct json ret = json_make_object();

    for (uint32_t d = 0; d < m->dims.n; d++) {
        if (v[d] > 0 && d != DIM_PODS) {
            json_put(&ret, a, m->dims.text[d], explain_amount(m, d, (double)v[d], a));
        }
    }
    return ret;
}

static struct json sparse(const struct model *m, const struct rvec *r, struct hk_arena *a)
{
    struct json ret = json_make_object();

    RVEC_EACH(d, r->has | RVEC_BASE)
    {
        if (d != DIM_PODS && r->v[d] > 0 && r->v[d] < RVEC_HUGE / 2) {
            json_put(&ret, a, m->dims.text[d], explain_amount(m, (uint32_t)d, r->v[d], a));
        }
    }
    return ret;
}

/* ---- the queue ---- */

static const char *state_name(uint8_t s)
{
    static const char *const names[] = {[QUEUE_OPEN] = "Open",
                                        [QUEUE_CLOSED] = "Closed",
                                        [QUEUE_CLOSING] = "Closing",
                                        [QUEUE_UNKNOWN] = "Unknown",
                                        [QUEUE_STATELESS] = ""};
    return names[s];
}

/* Asks the plugins in order; the first that knows the queue decides. */
static bool queue_deserves(struct session *ssn, queue_id q, struct rvec *ret, double *ret_share)
{
    for (uint32_t k = 0; k < ssn->nopened; k++) {
        const struct hook *h = &ssn->opened[k];
        struct queue_report r;
        if (h->p->queue_report && h->p->queue_report(ssn, h->self, q, &r)) {
            *ret = r.deserved;
            *ret_share = r.share;
            return true;
        }
    }
    return false;
}

static void put_share(struct explainer *x, struct session *ssn, queue_id q, struct json *o,
                      struct hk_arena *a)
{
    struct rvec deserved = {0};
    double share = 0;

    if (queue_deserves(ssn, q, &deserved, &share)) {
        json_set(o, x->a, "deserved", sparse(ssn->m, &deserved, a));
        json_set(o, x->a, "share", json_make_double(share));
        return;
    }
    const struct queue *row = model_queue(ssn->m, q);
    if (row->has_deserved) {
        json_set(o, x->a, "deserved", sparse(ssn->m, &row->deserved, a));
    }
}

struct json explain_queue(struct explainer *x, struct session *ssn, queue_id q, struct hk_arena *a)
{
    const struct model *m = ssn->m;
    const struct queue *row = model_queue(m, q);
    struct json o = json_make_object();
    uint32_t waiting = 0;

    for (uint32_t k = 0; k < ssn->njob; k++) {
        const struct job *j = model_job(m, ssn->jobs[k]);
        waiting += id_eq(j->queue, q) && (job_is_pending(j) || j->tally.n[TASK_PENDING] > 0);
    }
    json_set_str(&o, x->a, "name", model_str(m, row->name));
    json_set_cstr(&o, x->a, "state", state_name(row->state));
    json_set_int(&o, x->a, "weight", row->weight);
    json_set_int(&o, x->a, "jobs", row->njobs);
    json_set_int(&o, x->a, "waiting", waiting);
    json_set(&o, x->a, "allocated", dense(m, row->allocated, a));
    json_set(&o, x->a, "inqueue", dense(m, row->inqueue, a));
    if (row->has_capability) {
        json_set(&o, x->a, "capability", sparse(m, &row->capability, a));
    }
    if (row->has_guarantee) {
        json_set(&o, x->a, "guarantee", sparse(m, &row->guarantee, a));
    }
    put_share(x, ssn, q, &o, a);
    return o;
}

/* ---- jobs ahead ---- */

static struct json why_ahead(struct look *l, const struct model *m, const struct ahead *a)
{
    const struct job *x = model_job(m, a->job), *y = model_job(m, l->job);

    if (a->by == AHEAD_PLUGIN && strcmp(a->plugin, "priority") == 0) {
        return explain_text(l->x, "priority %d over %d", (int)x->priority, (int)y->priority);
    }
    if (a->by == AHEAD_PLUGIN && strcmp(a->plugin, "gang") == 0) {
        return explain_text(l->x, "gang: has not its minimum yet");
    }
    switch ((enum ahead_by)a->by) {
    case AHEAD_PLUGIN:
        return explain_text(l->x, "%s: holds less for its share", a->plugin);
    case AHEAD_OLDER:
        return explain_text(l->x, "created earlier");
    case AHEAD_NAME:
        return explain_text(l->x, "first by name");
    case AHEAD_QUEUE_PLUGIN:
        return explain_text(l->x, "%s: its queue goes first", a->plugin);
    case AHEAD_QUEUE_OLDER:
        return explain_text(l->x, "its queue was created earlier");
    default:
        return explain_text(l->x, "its queue is first by name");
    }
}

static struct json ahead_entry(struct look *l, const struct model *m, const struct ahead *at)
{
    const struct job *j = model_job(m, at->job);
    struct hk_arena *a = l->x->a;
    struct json o = json_make_object();

    json_set_str(&o, l->x->a, "name",
                 explain_owner(l->x, model_str(m, j->ns), model_str(m, j->name), a));
    json_set_str(&o, l->x->a, "podGroup", cluster_job_name(m, at->job, a));
    json_set_str(&o, l->x->a, "queue", model_str(m, j->queue_name));
    json_set(&o, l->x->a, "why", why_ahead(l, m, at));
    json_set(&o, l->x->a, "holds", dense(m, job_vec(m, at->job, JV_ALLOC), a));
    json_set(&o, l->x->a, "waitsFor",
             dense(m, job_vec(m, at->job, j->tally.total > 0 ? JV_PENDING : JV_MINRES), a));
    return o;
}

static void put_ahead(struct look *l, struct session *ssn)
{
    struct json o = json_make_object(), list = json_make_array();
    struct ahead *at;
    const uint32_t n = explain_ahead(ssn, l->job, &at);
    uint32_t same = 0;

    for (uint32_t k = 0; k < n; k++) {
        same += id_eq(model_job(ssn->m, at[k].job)->queue, model_job(ssn->m, l->job)->queue);
        if (k < AHEAD_SHOWN) {
            json_push(&list, l->x->a, ahead_entry(l, ssn->m, &at[k]));
        }
    }
    json_set_int(&o, l->x->a, "inQueue", same);
    json_set_int(&o, l->x->a, "inCluster", n);
    json_set(&o, l->x->a, "jobs", list);
    json_set(&l->doc, l->x->a, "ahead", o);
}

/* ---- what is missing ---- */

struct members {
    task_id *at;
    uint32_t n;
};

static int explain_view_compare_tasks(const void *a, const void *b, void *ssn)
{
    return hooks_task_order(ssn, *(const task_id *)a, *(const task_id *)b);
}

/* Sums the requests of the members still needed to start, at least one. */
static void sum_wants(struct look *l, struct session *ssn)
{
    const struct model *m = ssn->m;
    const struct job *j = model_job(m, l->job);
    struct members w = {hk_arena_array(ssn->mem, j->tally.n[TASK_PENDING] + 1, sizeof(task_id)), 0};

    if (j->tally.n[TASK_PENDING] == 0) {
        memcpy(l->wants, job_vec(m, l->job, JV_MINRES), m->dims.n * sizeof(l->wants[0]));
        return;
    }
    for (task_id t = j->pending; !id_none(t); t = model_task(m, t)->job_next) {
        w.at[w.n++] = t;
    }
    qsort_r(w.at, w.n, sizeof(*w.at), explain_view_compare_tasks, ssn);
    const int64_t need = HK_MAX((int64_t)j->min - tally_ready(&j->tally), 1);
    for (uint32_t k = 0; k < w.n && k < need; k++) {
        const struct shape *s = task_shape(m, w.at[k]);
        for (uint32_t r = 0; r < s->nreq; r++) {
            l->wants[s->req[r].dim] += s->req[r].v;
        }
    }
}

/* These codes are part of the answer's format. */
static const char *const codes[REASON_N] = {
    [REASON_NONE] = "none",
    [REASON_INSUFFICIENT] = "insufficient",
    [REASON_POD_NUMBER] = "podNumber",
    [REASON_NODE_GONE] = "nodeGone",
    [REASON_UNSCHEDULABLE] = "cordoned",
    [REASON_NODE_AFFINITY] = "nodeAffinity",
    [REASON_TAINT] = "taint",
    [REASON_PORTS] = "ports",
    [REASON_POD_AFFINITY] = "podAffinity",
    [REASON_POD_ANTI_AFFINITY] = "podAntiAffinity",
    [REASON_EXISTING_ANTI_AFFINITY] = "othersAntiAffinity",
    [REASON_SPREAD] = "spread",
    [REASON_SPREAD_LABEL] = "spreadLabel",
    [REASON_VOLUME_COUNT] = "volumeCount",
    [REASON_VOLUME_ZONE] = "volumeZone",
    [REASON_VOLUME_AFFINITY] = "volumeAffinity",
    [REASON_VOLUME_BIND] = "volumeBind",
    [REASON_VOLUME_CAPACITY] = "volumeCapacity",
    [REASON_VOLUME_GONE] = "volumeGone",
    [REASON_SHARD] = "shard",
    [REASON_TEXT] = "other",
};

static struct json lack_entry(struct look *l, const struct model *m, const struct lack *at)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct hk_arena *a = l->x->a;
    struct json o = json_make_object();

    reason_write(m, at->why, &text);
    json_set_int(&o, l->x->a, "nodes", at->nodes);
    json_set_cstr(&o, l->x->a, "code", codes[at->why.code]);
    json_set(&o, l->x->a, "text", json_make_str_copy(hk_buf_str(&text), a));
    if (at->dim != ID_NONE) {
        json_set_str(&o, l->x->a, "resource", m->dims.text[at->dim]);
        json_set(&o, l->x->a, "wants", explain_amount(m, at->dim, (double)at->want, a));
        if (!id_none(at->most_on)) {
            json_set(&o, l->x->a, "mostFree",
                     explain_amount(m, at->dim, (double)HK_MAX(at->most, 0), a));
            json_set_str(&o, l->x->a, "mostFreeOn", model_str(m, m->nodes.name[at->most_on.i]));
        }
    }
    return o;
}

/* The requests of one pod. */
static struct json asks(struct look *l, const struct model *m, const struct shape *s)
{
    int64_t v[DIM_MAX] = {0};

    for (uint32_t r = 0; r < s->nreq; r++) {
        v[s->req[r].dim] = s->req[r].v;
    }
    return dense(m, v, l->x->a);
}

static struct json part_entry(struct look *l, const struct model *m, const struct lack_part *p)
{
    struct json o = json_make_object(), list = json_make_array();
    const struct task *first = model_task(m, p->first);

    json_set_str(&o, l->x->a, "task", model_str(m, first->role));
    json_set_str(&o, l->x->a, "example", model_str(m, first->name));
    json_set_int(&o, l->x->a, "pods", p->tasks);
    json_set_int(&o, l->x->a, "fit", p->fit);
    json_set(&o, l->x->a, "asks", asks(l, m, task_shape(m, p->first)));
    json_set_int(&o, l->x->a, "nodes", p->nodes);
    if (p->base) {
        json_set_cstr(&o, l->x->a, "text", p->base);
    }
    for (uint32_t k = 0; k < p->n; k++) {
        json_push(&list, l->x->a, lack_entry(l, m, &p->at[k]));
    }
    json_set(&o, l->x->a, "refusals", list);
    return o;
}

/* ---- limits ---- */

struct limit {
    const char *of; /* "capability", "deserved", "cluster" */
    uint32_t dim;
    double holds, promised, most;
};

static void push_limit(struct look *l, const struct model *m, const struct limit *at, double want,
                       struct json *list)
{
    struct hk_arena *a = l->x->a;
    struct json o = json_make_object();

    json_set_cstr(&o, l->x->a, "limit", at->of);
    json_set_str(&o, l->x->a, "resource", m->dims.text[at->dim]);
    json_set(&o, l->x->a, "wants", explain_amount(m, at->dim, want, a));
    json_set(&o, l->x->a, "holds", explain_amount(m, at->dim, at->holds, a));
    json_set(&o, l->x->a, "promised", explain_amount(m, at->dim, at->promised, a));
    json_set(&o, l->x->a, "most", explain_amount(m, at->dim, at->most, a));
    json_push(list, a, o);
}

/* Lists limits that the amounts held, promised and needed together exceed: those of the queue, or
 * the cluster's size if the refusal (from overcommit) is about that. The engine decides whether a
 * limit applies; these numbers only explain its refusal. */
static void put_limits(struct look *l, struct session *ssn, const char *refusal)
{
    const bool of_cluster = refusal && strncmp(refusal, "resource in cluster", 19) == 0;
    const struct model *m = ssn->m;
    const struct queue *q = model_queue(m, model_job(m, l->job)->queue);
    struct json list = json_make_array();
    struct rvec deserved = {0};
    const bool shares = queue_deserves(ssn, model_job(m, l->job)->queue, &deserved, &(double){0});

    for (uint32_t d = 0; d < m->dims.n; d++) {
        const double want = (double)l->wants[d], holds = (double)q->allocated[d];
        const struct limit limits[] = {
            {"capability", d, holds, (double)q->inqueue[d],
             q->has_capability ? rvec_get(&q->capability, d) : RVEC_HUGE},
            {"deserved", d, holds, 0, shares ? rvec_get(&deserved, d) : RVEC_HUGE},
            {"cluster", d, (double)m->used_total[d], (double)m->over_inqueue[d],
             (double)m->total[d]},
        };
        for (size_t k = 0; want > 0 && d != DIM_PODS && k < HK_LEN(limits); k++) {
            const bool is_cluster = strcmp(limits[k].of, "cluster") == 0;
            const bool known = is_cluster == of_cluster && limits[k].most < RVEC_HUGE / 2 &&
                               (is_cluster || limits[k].most > 0);
            if (known && limits[k].holds + limits[k].promised + want > limits[k].most) {
                push_limit(l, m, &limits[k], want, &list);
                break;
            }
        }
    }
    json_set(&l->doc, l->x->a, "limits", list);
}

static void put_lacks(struct look *l, struct session *ssn)
{
    const struct model *m = ssn->m;
    const struct job *j = model_job(m, l->job);
    struct json gang = json_make_object(), parts = json_make_array();
    struct job_lacks lacks;

    explain_lacks(ssn, l->job, &lacks);
    json_set_int(&gang, l->x->a, "minimum", j->min);
    json_set_int(&gang, l->x->a, "pods", j->tally.total);
    json_set_int(&gang, l->x->a, "ready", tally_ready(&j->tally));
    json_set_int(&gang, l->x->a, "waiting", lacks.waiting);
    json_set_int(&gang, l->x->a, "fit", lacks.fit);
    json_set_int(&gang, l->x->a, "pipelined", j->tally.n[TASK_PIPELINED]);
    json_set_int(&gang, l->x->a, "bestEffort", j->tally.pending_be);
    json_set(&l->doc, l->x->a, "gang", gang);
    json_set_int(&l->doc, l->x->a, "nodes", m->nodes.live);
    json_set_bool(&l->doc, l->x->a, "admitted", lacks.admitted);
    json_set_bool(&l->doc, l->x->a, "overused", lacks.overused);
    if (lacks.refusal) {
        json_set(&l->doc, l->x->a, "refusal", explain_text(l->x, "%s", lacks.refusal));
    }
    if (lacks.invalid) {
        json_set(&l->doc, l->x->a, "invalid", explain_text(l->x, "%s", lacks.invalid));
    }
    for (uint32_t k = 0; k < lacks.n && k < PARTS_SHOWN; k++) {
        json_push(&parts, l->x->a, part_entry(l, m, &lacks.at[k]));
    }
    json_set(&l->doc, l->x->a, "reasons", parts);
    if ((lacks.refusal || lacks.overused) && !id_none(j->queue)) {
        put_limits(l, ssn, lacks.refusal);
    }
}

static void opened(void *ctx, struct session *ssn)
{
    struct look *l = ctx;
    const struct job *j = model_job(ssn->m, l->job);

    if (l->seen) {
        return;
    }
    json_set_int(&l->doc, l->x->a, "priority", j->priority);
    sum_wants(l, ssn);
    json_set(&l->doc, l->x->a, "wants", dense(ssn->m, l->wants, l->x->a));
    if (!id_none(j->queue)) {
        json_set(&l->doc, l->x->a, "queue", explain_queue(l->x, ssn, j->queue, l->x->a));
    }
    put_ahead(l, ssn);
}

static void ran(void *ctx, struct session *ssn)
{
    struct look *l = ctx;

    if (!l->seen) {
        l->seen = true;
        put_lacks(l, ssn);
    }
}

/* ---- run in the copy ---- */

static void explain_view_write_job_view(void *ctx, struct hk_buf *out)
{
    struct explainer *x = ctx;
    struct look l = {
        .x = x, .job = model_job_find(&x->c.m, x->ns, x->group_name), .doc = json_make_object()};
    HK_AUTO(hk_buf_fini) struct hk_buf fate = {0};
    const struct explain_edits nothing = {0};
    struct json outcome;

    x->c.watch = (struct cluster_watch){opened, ran, &l};
    explain_run(x, &nothing, &fate);
    if (json_parse(hk_buf_str(&fate), 0, x->a, &outcome, NULL) == 0) {
        for (uint32_t k = 0; k < outcome.len; k++) {
            json_put(&l.doc, x->a, outcome.members[k].key, outcome.members[k].value);
        }
    }
    json_write(&l.doc, out);
}

/* ---- run in the original process ---- */

static int explain_view_run_aside(struct explainer *x, aside_fn *fn, void *ctx, struct json *ret,
                                  struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const int rc = aside_run(fn, ctx, &text, err);

    if (rc < 0) {
        return rc;
    }
    return json_parse(hk_arena_str(x->a, hk_buf_str(&text)), 0, x->a, ret, err);
}

int explain_view(struct explainer *x, struct json *ret, struct hk_err *err)
{
    return explain_view_run_aside(x, explain_view_write_job_view, x, ret, err);
}

struct queue_look {
    struct explainer *x;
    queue_id queue;
    struct json doc;
};

static void opened_queue(void *ctx, struct session *ssn)
{
    struct queue_look *l = ctx;

    l->doc = explain_queue(l->x, ssn, l->queue, l->x->a);
}

static void look_at_queue(void *ctx, struct hk_buf *out)
{
    struct queue_look *l = ctx;

    l->x->c.watch = (struct cluster_watch){opened_queue, NULL, l};
    if (cluster_cycle(&l->x->c, NULL) == 0) {
        json_write(&l->doc, out);
    }
}

int explain_queue_view(struct explainer *x, struct hk_str name, struct json *ret,
                       struct hk_err *err)
{
    struct queue_look l = {.x = x, .queue = model_queue_find(&x->c.m, name)};

    return explain_view_run_aside(x, look_at_queue, &l, ret, err);
}
