// SPDX-License-Identifier: Apache-2.0
// Checks the model: recomputes every sum from the rows and compares it with the stored one. Tests,
// the simulator and the scenario runner call it after every cycle.
#include "scheduler/model/model_priv.h"
#include "scheduler/model/topo.h"
#include "scheduler/model/volumes.h"

struct proof {
    const struct model *m;
    struct matrix used, releasing, pipelined, kused;
    int64_t *nz_cpu, *nz_mem;
    uint32_t *npods;
    struct hk_arena mem;
    struct hk_err *err;
};

static void matrix_init(struct proof *p, struct matrix *x)
{
    for (uint32_t d = 0; d < p->m->dims.n; d++) {
        x->col[d] = hk_arena_zalloc(&p->mem, (p->m->nodes.len + 1) * sizeof(int64_t));
    }
}

static void add_task(struct proof *p, const struct task *t)
{
    const struct shape *s = model_shape(p->m, t->shape);
    const uint32_t n = t->node.i;

    for (uint32_t k = 0; k < s->nreq; k++) {
        const uint32_t d = s->req[k].dim;
        if (t->status == TASK_PIPELINED) {
            p->pipelined.col[d][n] += s->req[k].v;
        } else {
            p->used.col[d][n] += s->req[k].v;
        }
        if (t->status == TASK_RELEASING) {
            p->releasing.col[d][n] += s->req[k].v;
        }
        if (t->flags & TASK_IN_VIEW) {
            p->kused.col[d][n] += s->req[k].v;
        }
    }
    if (t->flags & TASK_IN_VIEW) {
        p->nz_cpu[n] += s->nz_cpu;
        p->nz_mem[n] += s->nz_mem;
        p->npods[n]++;
    }
}

static int model_check_fail_mismatch(struct proof *p, const char *what, struct hk_str name,
                                     struct hk_str dim, int64_t books, int64_t rows)
{
    return hk_fail(p->err, HK_EINVAL, "%s '%.*s' %.*s: books say %lld, rows say %lld", what,
                   HK_FMT(name), HK_FMT(dim), (long long)books, (long long)rows);
}

static int model_check_node(struct proof *p, uint32_t n)
{
    const struct node_table *t = &p->m->nodes;
    const struct hk_str name = model_str(p->m, t->name[n]);

    for (uint32_t d = 0; d < p->m->dims.n; d++) {
        const struct hk_str dim = p->m->dims.text[d];
        if (t->used.col[d][n] != p->used.col[d][n]) {
            return model_check_fail_mismatch(p, "node used", name, dim, t->used.col[d][n],
                                             p->used.col[d][n]);
        }
        if (t->releasing.col[d][n] != p->releasing.col[d][n]) {
            return model_check_fail_mismatch(p, "node releasing", name, dim, t->releasing.col[d][n],
                                             p->releasing.col[d][n]);
        }
        if (t->pipelined.col[d][n] != p->pipelined.col[d][n]) {
            return model_check_fail_mismatch(p, "node pipelined", name, dim, t->pipelined.col[d][n],
                                             p->pipelined.col[d][n]);
        }
        if (t->idle.col[d][n] != t->alloc.col[d][n] - p->used.col[d][n]) {
            return model_check_fail_mismatch(p, "node idle", name, dim, t->idle.col[d][n],
                                             t->alloc.col[d][n] - p->used.col[d][n]);
        }
        if (t->future.col[d][n] !=
            t->idle.col[d][n] + t->releasing.col[d][n] - t->pipelined.col[d][n]) {
            return model_check_fail_mismatch(p, "node future", name, dim, t->future.col[d][n],
                                             t->idle.col[d][n] + t->releasing.col[d][n] -
                                                 t->pipelined.col[d][n]);
        }
        if (t->kused.col[d][n] != p->kused.col[d][n]) {
            return model_check_fail_mismatch(p, "node view", name, dim, t->kused.col[d][n],
                                             p->kused.col[d][n]);
        }
    }
    if (t->npods[n] != p->npods[n]) {
        return model_check_fail_mismatch(p, "node pods in view", name, HK_STR(""), t->npods[n],
                                         p->npods[n]);
    }
    if (t->nz_cpu[n] != p->nz_cpu[n] || t->nz_mem[n] != p->nz_mem[n]) {
        return model_check_fail_mismatch(p, "node non-zero requests", name, HK_STR(""),
                                         t->nz_cpu[n], p->nz_cpu[n]);
    }
    return 0;
}

static int check_nodes(struct proof *p)
{
    const struct model *m = p->m;

    matrix_init(p, &p->used);
    matrix_init(p, &p->releasing);
    matrix_init(p, &p->pipelined);
    matrix_init(p, &p->kused);
    p->nz_cpu = hk_arena_zalloc(&p->mem, (m->nodes.len + 1) * sizeof(*p->nz_cpu));
    p->nz_mem = hk_arena_zalloc(&p->mem, (m->nodes.len + 1) * sizeof(*p->nz_mem));
    p->npods = hk_arena_zalloc(&p->mem, (m->nodes.len + 1) * sizeof(*p->npods));
    for (uint32_t i = 0; i < m->tasks.len; i++) {
        const struct task *t = &m->tasks.at[i];
        if (t->used && status_on_node(t->status) && !id_none(t->node)) {
            add_task(p, t);
        }
    }
    for (uint32_t n = 0; n < m->nodes.len; n++) {
        const int rc = model_check_node(p, n);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* Amounts of the tasks of a job or queue, by state. */
struct holding {
    int64_t alloc[DIM_MAX], leaving[DIM_MAX], pending[DIM_MAX];
};

static void count_task(const struct model *m, task_id t, struct tally *tally, struct holding *sum)
{
    const struct task *task = model_task(m, t);
    const struct shape *s = task_shape(m, t);

    tally->n[task->status]++;
    tally->total++;
    tally->pending_be += task->status == TASK_PENDING && (task->flags & TASK_BEST_EFFORT);
    for (uint32_t k = 0; k < s->nreq; k++) {
        const bool leaving = task->status == TASK_RELEASING && !id_none(task->node);
        sum->alloc[s->req[k].dim] += status_in(task->status, STATUS_ALLOCATED) ? s->req[k].v : 0;
        sum->leaving[s->req[k].dim] += leaving ? s->req[k].v : 0;
        sum->pending[s->req[k].dim] += task->status == TASK_PENDING ? s->req[k].v : 0;
    }
}

static int check_job(struct proof *p, job_id job, struct holding *sum)
{
    const struct model *m = p->m;
    const struct job *j = model_job(m, job);
    struct tally tally = {0};

    for (task_id t = j->pending; !id_none(t); t = model_task(m, t)->job_next) {
        if (model_task(m, t)->status != TASK_PENDING) {
            return model_check_fail_mismatch(p, "job pending list", model_str(m, j->name),
                                             HK_STR("status"), TASK_PENDING,
                                             model_task(m, t)->status);
        }
        count_task(m, t, &tally, sum);
    }
    for (task_id t = j->others; !id_none(t); t = model_task(m, t)->job_next) {
        count_task(m, t, &tally, sum);
    }
    for (uint32_t s = 0; s < TASK_NSTATUS; s++) {
        if (j->tally.n[s] != tally.n[s]) {
            return model_check_fail_mismatch(p, "job", model_str(m, j->name),
                                             hk_str(task_status_name(s)), j->tally.n[s],
                                             tally.n[s]);
        }
    }
    if (j->tally.total != tally.total || j->tally.pending_be != tally.pending_be) {
        return model_check_fail_mismatch(p, "job", model_str(m, j->name), HK_STR("total"),
                                         j->tally.total, tally.total);
    }
    for (uint32_t d = 0; d < m->dims.n; d++) {
        if (job_vec(m, job, JV_ALLOC)[d] != sum->alloc[d]) {
            return model_check_fail_mismatch(p, "job allocated", model_str(m, j->name),
                                             m->dims.text[d], job_vec(m, job, JV_ALLOC)[d],
                                             sum->alloc[d]);
        }
        if (job_vec(m, job, JV_LEAVING)[d] != sum->leaving[d]) {
            return model_check_fail_mismatch(p, "job leaving", model_str(m, j->name),
                                             m->dims.text[d], job_vec(m, job, JV_LEAVING)[d],
                                             sum->leaving[d]);
        }
    }
    return 0;
}

static int model_check_queue(struct proof *p, uint32_t i, const struct holding *sum)
{
    const struct model *m = p->m;
    const struct queue *q = &m->queues.at[i];

    for (uint32_t d = 0; q->used && d < m->dims.n; d++) {
        if (q->allocated[d] != sum->alloc[d]) {
            return model_check_fail_mismatch(p, "queue allocated", model_str(m, q->name),
                                             m->dims.text[d], q->allocated[d], sum->alloc[d]);
        }
        if (q->leaving[d] != sum->leaving[d]) {
            return model_check_fail_mismatch(p, "queue leaving", model_str(m, q->name),
                                             m->dims.text[d], q->leaving[d], sum->leaving[d]);
        }
        if (q->request[d] != sum->alloc[d] + sum->pending[d]) {
            return model_check_fail_mismatch(p, "queue request", model_str(m, q->name),
                                             m->dims.text[d], q->request[d],
                                             sum->alloc[d] + sum->pending[d]);
        }
    }
    return 0;
}

static int check_jobs(struct proof *p)
{
    const struct model *m = p->m;
    struct holding *queues = hk_arena_zalloc(&p->mem, (m->queues.len + 1) * sizeof(*queues));
    int rc = 0;

    for (uint32_t i = 0; i < m->jobs.len; i++) {
        struct holding sum = {0};
        const struct job *j = &m->jobs.at[i];
        rc = j->used ? check_job(p, (job_id){i}, &sum) : 0;
        if (rc < 0) {
            return rc;
        }
        const queue_id q = j->used ? job_books(j) : NO_QUEUE;
        for (uint32_t d = 0; !id_none(q) && d < m->dims.n; d++) {
            queues[q.i].alloc[d] += sum.alloc[d];
            queues[q.i].leaving[d] += sum.leaving[d];
            queues[q.i].pending[d] += j->has_pg ? sum.pending[d] : 0;
        }
    }
    for (uint32_t i = 0; rc == 0 && i < m->queues.len; i++) {
        rc = model_check_queue(p, i, &queues[i]);
    }
    return rc;
}

/* ---- strings ---- */

static void nodes_strings(const struct model *m, struct hk_intern *t, string_fn *f)
{
    for (uint32_t i = 0; i < m->nodes.len; i++) {
        const struct node_face face = node_face(m, (node_id){i});
        f(t, m->nodes.name[i]);
        face_strings(&face, t, f);
        images_strings(&m->nodes.images[i], t, f);
    }
}

static void sub_strings(const struct sub_job *s, struct hk_intern *t, string_fn *f)
{
    f(t, s->id);
}

static void model_strings(const struct model *m, struct hk_intern *t, string_fn *f)
{
    nodes_strings(m, t, f);
    ROWS_STRINGS(&m->tasks, task_strings, t, f);
    ROWS_STRINGS(&m->jobs, job_strings, t, f);
    ROWS_STRINGS(&m->subs, sub_strings, t, f);
    ROWS_STRINGS(&m->queues, queue_strings, t, f);
    ROWS_STRINGS(&m->hypers, hyper_strings, t, f);
    ROWS_STRINGS(&m->quotas, quota_strings, t, f);
    ROWS_STRINGS(&m->pdbs, pdb_strings, t, f);
    ROWS_STRINGS(&m->idents, ident_strings, t, f);
    ROWS_STRINGS(&m->classes, class_strings, t, f);
    for (uint32_t i = 0; i < m->namespaces.len; i++) {
        f(t, m->namespaces.at[i].name);
        labels_strings(m->namespaces.at[i].labels, t, f);
    }
    for (uint32_t i = 0; i < m->cons.len; i++) {
        if (m->cons.at[i]) {
            cons_strings(m->cons.at[i], t, f);
        }
    }
    volumes_strings(m->volumes, t, f);
    topo_strings(m->topo, t, f);
}

static void strings_add_ref(struct hk_intern *t, uint32_t id)
{
    t->at[id].refs++;
}

/* Every row must hold a reference to each string it uses. */
static int check_strings(const struct model *m, struct hk_err *err)
{
    HK_AUTO(hk_freep) struct hk_intern_row *rows = hk_zalloc_array(m->str.len + 1, sizeof(*rows));
    struct hk_intern named = {.at = rows, .len = m->str.len};

    model_strings(m, &named, strings_add_ref);
    for (uint32_t id = 1; id < m->str.len; id++) {
        if (rows[id].refs > hk_intern_refs(&m->str, id)) {
            return hk_fail(err, HK_EINVAL, "string %u '%s': %u references, rows hold %u", id,
                           m->str.at[id].s ? m->str.at[id].s : "(gone)",
                           hk_intern_refs(&m->str, id), rows[id].refs);
        }
    }
    return 0;
}

/* ---- all of it ---- */

static int check_all(struct proof *p)
{
    int rc = check_nodes(p);

    if (rc < 0) {
        return rc;
    }
    rc = check_jobs(p);
    if (rc < 0) {
        return rc;
    }
    rc = check_strings(p->m, p->err);
    if (rc < 0) {
        return rc;
    }
    return topo_check(p->m, p->err);
}

int model_check(const struct model *m, struct hk_err *err)
{
    struct proof p = {.m = m, .err = err};
    const int rc = check_all(&p);

    hk_arena_fini(&p.mem);
    return rc;
}
