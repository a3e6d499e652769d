// SPDX-License-Identifier: Apache-2.0
// Describes one waiting job from a session: the jobs ahead of it and what it lacks.
#include "scheduler/explain.h"

/* ---- order of jobs ---- */

static bool waits(const struct job *j)
{
    return job_is_pending(j) || j->tally.n[TASK_PENDING] > 0;
}

/* The name of the plugin that decides: the first with an opinion, as in hooks_job_order. */
static const char *job_decider(struct session *ssn, job_id a, job_id b)
{
    const struct hook_list *l = &ssn->hooks[HOOK_JOB_ORDER];

    for (uint32_t k = 0; k < l->n; k++) {
        if (l->at[k].p->job_order(ssn, l->at[k].self, a, b) != 0) {
            return l->at[k].p->name;
        }
    }
    return NULL;
}

static const char *queue_decider(struct session *ssn, queue_id a, queue_id b)
{
    const struct hook_list *l = &ssn->hooks[HOOK_QUEUE_ORDER];

    for (uint32_t k = 0; k < l->n; k++) {
        if (l->at[k].p->queue_order(ssn, l->at[k].self, a, b) != 0) {
            return l->at[k].p->name;
        }
    }
    return NULL;
}

static bool is_ahead(struct session *ssn, job_id a, job_id j, struct ahead *ret)
{
    const struct job *x = model_job(ssn->m, a), *y = model_job(ssn->m, j);

    *ret = (struct ahead){.job = a};
    if (id_eq(x->queue, y->queue)) {
        ret->plugin = job_decider(ssn, a, j);
        ret->by = ret->plugin                       ? AHEAD_PLUGIN
                  : x->creation_ns < y->creation_ns ? AHEAD_OLDER
                                                    : AHEAD_NAME;
        return hooks_job_order(ssn, a, j) < 0;
    }
    const struct queue *p = model_queue(ssn->m, x->queue), *q = model_queue(ssn->m, y->queue);
    ret->plugin = queue_decider(ssn, x->queue, y->queue);
    ret->by = ret->plugin                       ? AHEAD_QUEUE_PLUGIN
              : p->creation_ns < q->creation_ns ? AHEAD_QUEUE_OLDER
                                                : AHEAD_QUEUE_NAME;
    return hooks_queue_order(ssn, x->queue, y->queue) < 0;
}

static int ahead_cmp(const void *a, const void *b, void *ctx)
{
    const struct ahead *x = a, *y = b;
    struct session *ssn = ctx;
    const queue_id p = model_job(ssn->m, x->job)->queue, q = model_job(ssn->m, y->job)->queue;

    return id_eq(p, q) ? hooks_job_order(ssn, x->job, y->job) : hooks_queue_order(ssn, p, q);
}

uint32_t explain_ahead(struct session *ssn, job_id j, struct ahead **ret)
{
    struct ahead *out = hk_arena_array(ssn->mem, ssn->njob + 1, sizeof(*out));
    uint32_t n = 0;

    *ret = out;
    if (id_none(model_job(ssn->m, j)->queue)) {
        return 0;
    }
    for (uint32_t k = 0; k < ssn->njob; k++) {
        if (!id_eq(ssn->jobs[k], j) && waits(model_job(ssn->m, ssn->jobs[k])) &&
            is_ahead(ssn, ssn->jobs[k], j, &out[n])) {
            n++;
        }
    }
    qsort_r(out, n, sizeof(*out), ahead_cmp, ssn);
    return n;
}

/* ---- what is missing ---- */

static void find_room(struct session *ssn, const struct shape *s, struct lack *l)
{
    const struct model *m = ssn->m;
    const int64_t *idle = m->nodes.idle.col[l->dim];

    l->most_on = NO_NODE;
    l->want = shape_req(s, l->dim);
    for (uint32_t i = 0; i < m->nodes.len; i++) {
        const node_id n = {i};
        if ((m->nodes.flags[i] & NODE_KNOWN) && session_may_use(ssn, n) &&
            model_static(ssn->m, s->cons, n) == 0 && (id_none(l->most_on) || idle[i] > l->most)) {
            l->most = idle[i];
            l->most_on = n;
        }
    }
}

static int lack_cmp(const void *a, const void *b)
{
    const struct lack *x = a, *y = b;

    if (x->nodes != y->nodes) {
        return x->nodes > y->nodes ? -1 : 1;
    }
    return x->why.code != y->why.code ? (x->why.code > y->why.code) - (x->why.code < y->why.code)
                                      : (x->why.arg > y->why.arg) - (x->why.arg < y->why.arg);
}

static void fill_part(struct session *ssn, const struct fit_log *log, struct lack_part *p)
{
    const struct shape *s = task_shape(ssn->m, p->first);

    p->searched = true;
    p->base = log->base;
    p->nodes = log->nnodes;
    p->at = hk_arena_array(ssn->mem, log->n + 1, sizeof(*p->at));
    p->n = log->n;
    for (uint32_t k = 0; k < log->n; k++) {
        struct lack *l = &p->at[k];
        *l = (struct lack){
            .why = log->at[k].why, .nodes = log->at[k].count, .dim = ID_NONE, .most_on = NO_NODE};
        if (l->why.code == REASON_INSUFFICIENT || l->why.code == REASON_POD_NUMBER) {
            l->dim = l->why.code == REASON_POD_NUMBER ? (uint32_t)DIM_PODS : l->why.arg;
            find_room(ssn, s, l);
        }
    }
    qsort(p->at, p->n, sizeof(*p->at), lack_cmp);
}

static struct lack_part *part_of(struct session *ssn, struct job_lacks *l, task_id t)
{
    const struct task *task = model_task(ssn->m, t);

    for (uint32_t k = 0; k < l->n; k++) {
        const struct task *x = model_task(ssn->m, l->at[k].first);
        if (x->role == task->role && id_eq(x->shape, task->shape)) {
            return &l->at[k];
        }
    }
    l->at[l->n] = (struct lack_part){.first = t};
    return &l->at[l->n++];
}

/* Further shapes are counted with the last one. */
enum { PARTS_MAX = 64 };

static void note_task(struct session *ssn, struct job_lacks *l, task_id t)
{
    struct lack_part *p = l->n < PARTS_MAX ? part_of(ssn, l, t) : &l->at[PARTS_MAX - 1];
    const unsigned placed = STATUS_ALLOCATED | STATUS_BIT(TASK_PIPELINED);

    if (hooks_task_order(ssn, t, p->first) < 0) {
        p->first = t;
    }
    p->tasks++;
    p->fit += status_in(ssn->last[t.i].status, placed);
    if (ssn->fit[t.i] && !p->searched) {
        fill_part(ssn, ssn->fit[t.i], p);
    }
}

void explain_lacks(struct session *ssn, job_id j, struct job_lacks *ret)
{
    const struct job *job = model_job(ssn->m, j);

    *ret = (struct job_lacks){
        .at = hk_arena_array(ssn->mem, PARTS_MAX, sizeof(*ret->at)),
        .refusal = ssn->job_msg[j.i],
        .admitted = !job_is_pending(job),
    };
    for (task_id t = job->pending; !id_none(t); t = model_task(ssn->m, t)->job_next) {
        note_task(ssn, ret, t);
    }
    for (uint32_t k = 0; k < ret->n; k++) {
        ret->waiting += ret->at[k].tasks;
        ret->fit += ret->at[k].fit;
    }
    if (!id_none(job->queue)) {
        ret->invalid = hooks_job_valid(ssn, j);
        ret->overused = hooks_overused(ssn, job->queue);
    }
}
