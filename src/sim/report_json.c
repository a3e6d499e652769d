// SPDX-License-Identifier: Apache-2.0
// The report for programs. Its form is an interface: keys may be added, never removed.
#include "sim/report.h"

const struct rvec *report_deserved(const struct cluster *c, uint32_t q)
{
    const struct queue *queue = &c->m.queues.at[q];

    if (q < c->shares.len && c->shares.at[q].known) {
        return &c->shares.at[q].deserved;
    }
    return queue->has_deserved ? &queue->deserved : NULL;
}

static struct json report_json_amount(const struct model *m, uint32_t dim, double v,
                                      struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};

    report_amount(m, dim, v, &b);
    return json_make_str_copy(hk_buf_str(&b), a);
}

/* cpu and memory always, others when not zero; pods are never listed. */
static struct json allocated(const struct model *m, const struct queue *q, struct hk_arena *a)
{
    struct json ret = json_make_object();

    for (uint32_t d = 0; d < m->dims.n; d++) {
        if (d <= DIM_MEM || (d != DIM_PODS && q->allocated[d] > 0)) {
            json_put(&ret, a, m->dims.text[d],
                     report_json_amount(m, d, (double)q->allocated[d], a));
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
            json_put(&ret, a, m->dims.text[d], report_json_amount(m, (uint32_t)d, r->v[d], a));
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
        json_set_str(&o, a, "name", model_str(&c->m, c->m.queues.at[q].name));
        json_set(&o, a, "allocated", allocated(&c->m, &c->m.queues.at[q], a));
        json_set(&o, a, "deserved", deserved(&c->m, report_deserved(c, q), a));
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
    json_set_cstr(&o, a, "type", bad ? "Unschedulable" : "Scheduled");
    json_set_cstr(&o, a, "status", "True");
    json_set_cstr(&o, a, "reason",
                  bad ? "NotEnoughResources" : "tasks in gang are ready to be scheduled");
    json_set_cstr(&o, a, "message", g->message);
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
        json_set_str(&o, a, "name", cluster_job_name(&c->m, (job_id){i}, a));
        json_set_cstr(&o, a, "phase", pg_phase_name(j->phase));
        json_set(&o, a, "conditions", conditions(cluster_group(c, (job_id){i}), a));
        json_push(&list, a, o);
    }
    return list;
}

static struct json binds(const struct cluster *c, struct hk_arena *a)
{
    struct json list = json_make_array();

    for (uint32_t k = 0; k < c->binds.len; k++) {
        struct json o = json_make_object();
        json_set_str(&o, a, "pod", c->binds.at[k].pod);
        json_set_str(&o, a, "node", c->binds.at[k].node);
        json_set_int(&o, a, "cycle", c->binds.at[k].cycle);
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
        json_set_str(&o, a, "pod", e->pod);
        json_set_str(&o, a, "for", e->group);
        json_set_str(&o, a, "action", e->action);
        json_set_int(&o, a, "cycle", e->cycle);
        json_push(&list, a, o);
    }
    return list;
}

static struct json pipelined(const struct cluster *c, struct hk_arena *a)
{
    struct json list = json_make_array();

    for (uint32_t k = 0; k < c->pipelined.len; k++) {
        struct json o = json_make_object();
        json_set_str(&o, a, "pod", c->pipelined.at[k].pod);
        json_set_str(&o, a, "node", c->pipelined.at[k].node);
        json_push(&list, a, o);
    }
    return list;
}

static struct json pending(const struct cluster *c, struct hk_arena *a)
{
    struct json list = json_make_array();

    for (uint32_t k = 0; k < c->waits.len; k++) {
        struct json o = json_make_object();
        json_set_str(&o, a, "pod", c->waits.at[k].pod);
        json_set_str(&o, a, "reason", c->waits.at[k].reason);
        json_set_str(&o, a, "message", c->waits.at[k].message);
        json_push(&list, a, o);
    }
    return list;
}

static struct json report_json_make_place(struct hk_str object, struct hk_str file, uint32_t line,
                                          struct hk_str message, struct hk_arena *a)
{
    struct json o = json_make_object();

    json_set_str(&o, a, "object", object);
    json_set_str(&o, a, "file", file);
    json_set_int(&o, a, "line", line);
    json_set_str(&o, a, "message", message);
    return o;
}

static struct json problems(const struct cluster *c, struct hk_arena *a)
{
    struct json list = json_make_array();
    uint32_t n;
    const struct ingest_problem *p = ingest_problems(c->in, &n);

    for (uint32_t k = 0; k < c->problems.len; k++) {
        const struct cluster_problem *q = &c->problems.at[k];
        json_push(&list, a, report_json_make_place(q->object, q->file, q->line, q->text, a));
    }
    for (uint32_t k = 0; k < n; k++) {
        const char *object = hk_arena_printf(a, "%s %s", api_kind(p[k].kind)->kind, p[k].object);
        json_push(&list, a,
                  report_json_make_place(hk_str(object), hk_str(p[k].file), p[k].line,
                                         hk_str(p[k].text), a));
    }
    return list;
}

static struct json report_json_ignored(const struct cluster *c, struct hk_arena *a)
{
    struct json list = json_make_array();

    for (uint32_t k = 0; k < c->ignored.len; k++) {
        const struct cluster_ignored *i = &c->ignored.at[k];
        json_push(&list, a, report_json_make_place(i->object, i->file, i->line, hk_str(i->why), a));
    }
    return list;
}

void report_json(const struct cluster *c, struct hk_buf *out)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json root = json_make_object();

    json_set(&root, &mem, "binds", binds(c, &mem));
    json_set(&root, &mem, "evictions", evictions(c, &mem));
    json_set(&root, &mem, "pipelined", pipelined(c, &mem));
    json_set(&root, &mem, "podGroups", groups(c, &mem));
    json_set(&root, &mem, "queues", queues(c, &mem));
    json_set(&root, &mem, "pending", pending(c, &mem));
    json_set(&root, &mem, "problems", problems(c, &mem));
    json_set(&root, &mem, "ignored", report_json_ignored(c, &mem));
    json_write_pretty(&root, 2, out);
}
