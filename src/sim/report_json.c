// SPDX-License-Identifier: Apache-2.0
// The report for programs. The shape is a promise: keys may be added, none may go.
#include "sim/report.h"

static struct json text(struct hk_str s)
{
    return json_make_str(s);
}

static void put(struct json *obj, struct hk_arena *a, const char *key, struct json v)
{
    json_put(obj, a, hk_str(key), v);
}

const struct rvec *report_deserved(const struct cluster *c, uint32_t q)
{
    const struct queue *queue = &c->m.queues.at[q];

    if (q < c->shares.len && c->shares.at[q].known) {
        return &c->shares.at[q].deserved;
    }
    return queue->has_deserved ? &queue->deserved : NULL;
}

static struct json amount(const struct model *m, uint32_t dim, double v, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};

    report_amount(m, dim, v, &b);
    return text(hk_arena_str(a, hk_buf_str(&b)));
}

/* cpu and memory always, others when there are any; pods are everywhere and not listed. */
static struct json allocated(const struct model *m, const struct queue *q, struct hk_arena *a)
{
    struct json ret = json_make_object();

    for (uint32_t d = 0; d < m->dims.n; d++) {
        if (d <= DIM_MEM || (d != DIM_PODS && q->allocated[d] > 0)) {
            json_put(&ret, a, m->dims.text[d], amount(m, d, (double)q->allocated[d], a));
        }
    }
    return ret;
}

static struct json deserved(const struct model *m, const struct rvec *r, struct hk_arena *a)
{
    struct json ret = json_make_object();

    if (!r) {
        return ret;
    }
    RVEC_EACH(d, r->has | RVEC_BASE)
    {
        if (d != DIM_PODS && r->v[d] < RVEC_HUGE / 2) {
            json_put(&ret, a, m->dims.text[d], amount(m, (uint32_t)d, r->v[d], a));
        }
    }
    return ret;
}

static struct json queues(const struct cluster *c, struct hk_arena *a)
{
    struct json list = json_make_array();

    for (uint32_t q = 0; q < c->m.queues.len; q++) {
        struct json o = json_make_object();
        if (!report_shows_queue(&c->m, q)) {
            continue;
        }
        put(&o, a, "name", text(model_str(&c->m, c->m.queues.at[q].name)));
        put(&o, a, "allocated", allocated(&c->m, &c->m.queues.at[q], a));
        put(&o, a, "deserved", deserved(&c->m, report_deserved(c, q), a));
        json_push(&list, a, o);
    }
    return list;
}

static struct json conditions(const struct cluster_group *g, struct hk_arena *a)
{
    struct json list = json_make_array(), o = json_make_object();

    if (!g || g->condition == NOTE_NONE) {
        return list;
    }
    const bool bad = g->condition == NOTE_UNSCHEDULABLE;
    put(&o, a, "type", text(bad ? HK_STR("Unschedulable") : HK_STR("Scheduled")));
    put(&o, a, "status", text(HK_STR("True")));
    put(&o, a, "reason",
        text(bad ? HK_STR("NotEnoughResources")
                 : HK_STR("tasks in gang are ready to be scheduled")));
    put(&o, a, "message", text(hk_str(g->message)));
    json_push(&list, a, o);
    return list;
}

static struct json groups(const struct cluster *c, struct hk_arena *a)
{
    struct json list = json_make_array();

    for (uint32_t i = 0; i < c->m.jobs.len; i++) {
        const struct job *j = &c->m.jobs.at[i];
        struct json o = json_make_object();
        if (!j->used || !j->has_pg) {
            continue;
        }
        put(&o, a, "name", text(cluster_job_name(&c->m, (job_id){i}, a)));
        put(&o, a, "phase", text(hk_str(pg_phase_name(j->phase))));
        put(&o, a, "conditions", conditions(cluster_group(c, (job_id){i}), a));
        json_push(&list, a, o);
    }
    return list;
}

static struct json binds(const struct cluster *c, struct hk_arena *a)
{
    struct json list = json_make_array();

    for (uint32_t k = 0; k < c->binds.len; k++) {
        struct json o = json_make_object();
        put(&o, a, "pod", text(c->binds.at[k].pod));
        put(&o, a, "node", text(c->binds.at[k].node));
        put(&o, a, "cycle", json_make_int(c->binds.at[k].cycle));
        json_push(&list, a, o);
    }
    return list;
}

static struct json evictions(const struct cluster *c, struct hk_arena *a)
{
    struct json list = json_make_array();

    for (uint32_t k = 0; k < c->evictions.len; k++) {
        const struct cluster_eviction *e = &c->evictions.at[k];
        struct json o = json_make_object();
        put(&o, a, "pod", text(e->pod));
        put(&o, a, "for", text(e->group));
        put(&o, a, "action", text(e->action));
        put(&o, a, "cycle", json_make_int(e->cycle));
        json_push(&list, a, o);
    }
    return list;
}

static struct json pipelined(const struct cluster *c, struct hk_arena *a)
{
    struct json list = json_make_array();

    for (uint32_t k = 0; k < c->pipelined.len; k++) {
        struct json o = json_make_object();
        put(&o, a, "pod", text(c->pipelined.at[k].pod));
        put(&o, a, "node", text(c->pipelined.at[k].node));
        json_push(&list, a, o);
    }
    return list;
}

static struct json pending(const struct cluster *c, struct hk_arena *a)
{
    struct json list = json_make_array();

    for (uint32_t k = 0; k < c->waits.len; k++) {
        struct json o = json_make_object();
        put(&o, a, "pod", text(c->waits.at[k].pod));
        put(&o, a, "reason", text(c->waits.at[k].reason));
        put(&o, a, "message", text(c->waits.at[k].message));
        json_push(&list, a, o);
    }
    return list;
}

static struct json place(struct hk_str object, struct hk_str file, uint32_t line,
                         struct hk_str message, struct hk_arena *a)
{
    struct json o = json_make_object();

    put(&o, a, "object", text(object));
    put(&o, a, "file", text(file));
    put(&o, a, "line", json_make_int(line));
    put(&o, a, "message", text(message));
    return o;
}

static struct json problems(const struct cluster *c, struct hk_arena *a)
{
    struct json list = json_make_array();
    uint32_t n;
    const struct ingest_problem *p = ingest_problems(c->in, &n);

    for (uint32_t k = 0; k < c->problems.len; k++) {
        const struct cluster_problem *q = &c->problems.at[k];
        json_push(&list, a, place(q->object, q->file, q->line, q->text, a));
    }
    for (uint32_t k = 0; k < n; k++) {
        const char *object = hk_arena_printf(a, "%s %s", api_kind(p[k].kind)->kind, p[k].object);
        json_push(&list, a,
                  place(hk_str(object), hk_str(p[k].file), p[k].line, hk_str(p[k].text), a));
    }
    return list;
}

static struct json ignored(const struct cluster *c, struct hk_arena *a)
{
    struct json list = json_make_array();

    for (uint32_t k = 0; k < c->ignored.len; k++) {
        const struct cluster_ignored *i = &c->ignored.at[k];
        json_push(&list, a, place(i->object, i->file, i->line, hk_str(i->why), a));
    }
    return list;
}

void report_json(const struct cluster *c, struct hk_buf *out)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json root = json_make_object();

    put(&root, &mem, "binds", binds(c, &mem));
    put(&root, &mem, "evictions", evictions(c, &mem));
    put(&root, &mem, "pipelined", pipelined(c, &mem));
    put(&root, &mem, "podGroups", groups(c, &mem));
    put(&root, &mem, "queues", queues(c, &mem));
    put(&root, &mem, "pending", pending(c, &mem));
    put(&root, &mem, "problems", problems(c, &mem));
    put(&root, &mem, "ignored", ignored(c, &mem));
    json_write_pretty(&root, 2, out);
}
