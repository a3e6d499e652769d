// SPDX-License-Identifier: Apache-2.0
// Dumps the model as JSON, to show the scheduler's view: nodes, queues, and jobs with their tasks.
// Amounts are in the model's units: milli-cores, bytes, thousandths, counts.
#include "base/log.h"
#include "codec/json.h"
#include "scheduler/loop_priv.h"

struct dump {
    const struct model *m;
    struct hk_buf *out;
    bool first; /* in its list or object: no comma before it */
};

/* ---- JSON, written without building a tree ---- */

static void loop_dump_next_item(struct dump *d)
{
    hk_buf_adds(d->out, d->first ? "" : ",");
    d->first = false;
}

static void key(struct dump *d, const char *name)
{
    loop_dump_next_item(d);
    hk_buf_addf(d->out, "\"%s\":", name);
}

static void loop_dump_begin(struct dump *d, const char *name, char bracket)
{
    if (name) {
        key(d, name);
    } else {
        loop_dump_next_item(d);
    }
    hk_buf_addc(d->out, bracket);
    d->first = true;
}

static void loop_dump_end(struct dump *d, char bracket)
{
    hk_buf_addc(d->out, bracket);
    d->first = false;
}

static void loop_dump_write_str(struct dump *d, const char *name, struct hk_str v)
{
    key(d, name);
    json_write_str(v, d->out);
}

static void put_id(struct dump *d, const char *name, uint32_t id)
{
    loop_dump_write_str(d, name, model_str(d->m, id));
}

static void loop_dump_write_int(struct dump *d, const char *name, int64_t v)
{
    key(d, name);
    hk_buf_addf(d->out, "%lld", (long long)v);
}

static void put_dim(struct dump *d, uint32_t dim, int64_t v)
{
    if (v != 0) {
        loop_dump_next_item(d);
        json_write_str(d->m->dims.text[dim], d->out);
        hk_buf_addf(d->out, ":%lld", (long long)v);
    }
}

static void put_amounts(struct dump *d, const char *name, const int64_t *v)
{
    loop_dump_begin(d, name, '{');
    for (uint32_t k = 0; k < d->m->dims.n; k++) {
        put_dim(d, k, v[k]);
    }
    loop_dump_end(d, '}');
}

/* ---- rows ---- */

static void put_column(struct dump *d, const char *name, const struct matrix *x, uint32_t row)
{
    loop_dump_begin(d, name, '{');
    for (uint32_t k = 0; k < d->m->dims.n; k++) {
        put_dim(d, k, x->col[k] ? x->col[k][row] : 0);
    }
    loop_dump_end(d, '}');
}

static void put_nodes(struct dump *d)
{
    const struct node_table *n = &d->m->nodes;

    loop_dump_begin(d, "nodes", '[');
    for (uint32_t k = 0; k < n->len; k++) {
        if (!(n->flags[k] & NODE_KNOWN)) {
            continue;
        }
        loop_dump_begin(d, NULL, '{');
        put_id(d, "name", n->name[k]);
        put_column(d, "allocatable", &n->alloc, k);
        put_column(d, "idle", &n->idle, k);
        put_column(d, "used", &n->used, k);
        put_column(d, "releasing", &n->releasing, k);
        put_column(d, "pipelined", &n->pipelined, k);
        loop_dump_end(d, '}');
    }
    loop_dump_end(d, ']');
}

static void put_queues(struct dump *d)
{
    loop_dump_begin(d, "queues", '[');
    for (uint32_t k = 0; k < d->m->queues.len; k++) {
        const struct queue *q = &d->m->queues.at[k];
        if (!q->used) {
            continue;
        }
        loop_dump_begin(d, NULL, '{');
        put_id(d, "name", q->name);
        loop_dump_write_int(d, "weight", q->weight);
        loop_dump_write_int(d, "jobs", q->njobs);
        put_amounts(d, "allocated", q->allocated);
        put_amounts(d, "request", q->request);
        put_amounts(d, "inqueue", q->inqueue);
        loop_dump_end(d, '}');
    }
    loop_dump_end(d, ']');
}

static void put_task(struct dump *d, const struct task *t, const struct shape *s)
{
    loop_dump_begin(d, NULL, '{');
    put_id(d, "name", t->name);
    put_id(d, "uid", t->uid);
    loop_dump_write_str(d, "status", hk_str(task_status_name(t->status)));
    if (!id_none(t->node)) {
        put_id(d, "node", d->m->nodes.name[t->node.i]);
    }
    loop_dump_write_int(d, "priority", t->priority);
    loop_dump_begin(d, "request", '{');
    for (uint32_t k = 0; k < s->nreq; k++) {
        put_dim(d, s->req[k].dim, s->req[k].v);
    }
    loop_dump_end(d, '}');
    loop_dump_end(d, '}');
}

static void put_tasks(struct dump *d, task_id head)
{
    for (task_id t = head; !id_none(t); t = model_task(d->m, t)->job_next) {
        put_task(d, model_task(d->m, t), task_shape(d->m, t));
    }
}

static void put_jobs(struct dump *d)
{
    loop_dump_begin(d, "jobs", '[');
    for (uint32_t k = 0; k < d->m->jobs.len; k++) {
        const struct job *j = &d->m->jobs.at[k];
        if (!j->used) {
            continue;
        }
        loop_dump_begin(d, NULL, '{');
        put_id(d, "namespace", j->ns);
        put_id(d, "name", j->name);
        put_id(d, "uid", j->uid);
        put_id(d, "queue", j->queue_name);
        loop_dump_write_str(d, "phase", hk_str(pg_phase_name(j->phase)));
        loop_dump_write_int(d, "minAvailable", j->min);
        loop_dump_write_int(d, "priority", j->priority);
        put_amounts(d, "allocated", job_vec(d->m, (job_id){k}, JV_ALLOC));
        loop_dump_begin(d, "tasks", '[');
        put_tasks(d, j->pending);
        put_tasks(d, j->others);
        loop_dump_end(d, ']');
        loop_dump_end(d, '}');
    }
    loop_dump_end(d, ']');
}

void loop_dump(const struct loop *l, struct hk_buf *out)
{
    struct dump d = {.m = &l->engine.m, .out = out, .first = true};

    loop_dump_begin(&d, NULL, '{');
    put_nodes(&d);
    put_queues(&d);
    put_jobs(&d);
    loop_dump_end(&d, '}');
    hk_buf_addc(out, '\n');
}

void loop_log_summary(const struct loop *l)
{
    const struct model *m = &l->engine.m;
    const struct loop_stats s = loop_stats(l);
    HK_AUTO(hk_buf_fini) struct hk_buf tasks = {0};
    uint32_t n[TASK_NSTATUS] = {0}, jobs = 0;

    for (uint32_t k = 0; k < m->tasks.len; k++) {
        n[m->tasks.at[k].status] += m->tasks.at[k].used;
    }
    for (uint32_t k = 0; k < m->jobs.len; k++) {
        jobs += m->jobs.at[k].used;
    }
    for (unsigned k = 0; k < TASK_NSTATUS; k++) {
        if (n[k] > 0) {
            hk_buf_addf(&tasks, "%s%s=%u", tasks.len > 0 ? " " : "", task_status_name(k), n[k]);
        }
    }
    hk_log(HK_LOG_INFO, "the cluster as seen",
           "nodes=%u jobs=%u waiting=%u sessions=%llu backlog=%u tasks=\"%s\"", m->nodes.live, jobs,
           m->active.len, (unsigned long long)s.sessions, s.backlog, tasks.data ? tasks.data : "");
}
