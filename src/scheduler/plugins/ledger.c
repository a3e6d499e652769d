// SPDX-License-Identifier: Apache-2.0
// Amounts of queues during a session: loading them from the model's sums, limits of a flat set of
// queues, shares, and whether one more job may be admitted. Used by proportion, capacity and, for
// its messages, overcommit.
#include "scheduler/plugins/ledger.h"

void ledger_open(struct ledger *l, struct session *ssn, bool undeserving_full)
{
    const struct model *m = ssn->m;

    l->n = m->queues.len;
    l->ndim = m->dims.n;
    l->undeserving_full = undeserving_full;
    l->at = hk_arena_array(ssn->mem, l->n, sizeof(*l->at));
    for (uint32_t k = 0; k < l->n; k++) {
        const struct queue *q = &m->queues.at[k];
        struct ledger_row *r = &l->at[k];

        memset(r, 0, sizeof(*r));
        r->stale = true;
        if (!q->used) {
            continue;
        }
        r->in = q->njobs > 0 || q->allocated[DIM_PODS] + q->leaving[DIM_PODS] > 0;
        if (q->state != QUEUE_OPEN) {
            r->refusal = hk_arena_printf(ssn->mem, "queue '%.*s' is not open",
                                         HK_FMT(model_str(m, q->name)));
        }
        for (uint32_t d = 0; d < l->ndim; d++) {
            r->allocated[d] = q->allocated[d];
            r->leaving[d] = q->leaving[d];
            r->promised[d] = q->inqueue[d] - q->elastic[d];
        }
        if (q->has_guarantee) {
            r->guarantee = q->guarantee;
        }
    }
}

/* The queue's capability; without cpu or memory there is no limit for them. */
static void cap_of(const struct queue *q, struct rvec *ret)
{
    *ret = q->capability;
    for (uint32_t d = DIM_CPU; d <= DIM_MEM; d++) {
        if (rvec_get(ret, d) <= 0) {
            rvec_set(ret, d, RVEC_HUGE);
        }
    }
}

void ledger_flat_limits(struct ledger *l, struct session *ssn)
{
    struct rvec guaranteed, spare;

    rvec_zero(&guaranteed);
    for (uint32_t k = 0; k < l->n; k++) {
        rvec_add(&guaranteed, &l->at[k].guarantee);
    }
    rvec_exceed(&spare, &ssn->total, &guaranteed);

    for (uint32_t k = 0; k < l->n; k++) {
        const struct queue *q = &ssn->m->queues.at[k];
        struct ledger_row *r = &l->at[k];

        if (!r->in) {
            continue;
        }
        r->limit = spare;
        rvec_add(&r->limit, &r->guarantee);
        if (q->has_capability) {
            struct rvec cap;
            cap_of(q, &cap);
            rvec_min_inf(&r->limit, &cap);
        }
    }
}

queue_id ledger_queue(const struct model *m, task_id t)
{
    const job_id j = model_task(m, t)->job;

    return id_none(j) || !model_job(m, j)->has_pg ? NO_QUEUE : model_job(m, j)->queue;
}

void ledger_move(struct ledger_row *r, const struct model *m, task_id t, int sign)
{
    const unsigned placed = STATUS_BIT(TASK_ALLOCATED) | STATUS_BIT(TASK_PIPELINED);
    const struct shape *s = task_shape(m, t);
    const uint8_t status = model_task(m, t)->status;
    /* Evicted, or an eviction was undone: then the task has its former state again. */
    const bool evicted = sign < 0 ? status == TASK_RELEASING : !status_in(status, placed);

    for (uint32_t k = 0; k < s->nreq; k++) {
        r->allocated[s->req[k].dim] += sign * s->req[k].v;
        r->leaving[s->req[k].dim] -= evicted ? sign * s->req[k].v : 0;
    }
    r->stale = true;
}

double ledger_share(const struct ledger *l, struct ledger_row *r)
{
    if (!r->stale) {
        return r->share;
    }
    r->stale = false;
    r->share = l->undeserving_full && rvec_empty(&r->deserved) ? 1 : 0;
    RVEC_EACH(d, rvec_names(&r->deserved))
    {
        const double s = rvec_share((double)r->allocated[d], r->deserved.v[d]);
        r->share = HK_MAX(r->share, s);
    }
    return r->share;
}

bool ledger_report(const struct ledger *l, queue_id q, struct queue_report *ret)
{
    struct rvec allocated;

    if (q.i >= l->n || !ledger_row(l, q)->in) {
        return false;
    }
    struct ledger_row *r = ledger_row(l, q);
    ledger_rvec(l, r, &allocated);
    *ret = (struct queue_report){.deserved = r->deserved,
                                 .limit = r->limit,
                                 .share = ledger_share(l, r),
                                 .overused = rvec_le_zero(&r->deserved, &allocated),
                                 .parent = NO_QUEUE};
    return true;
}

uint64_t ledger_lacks(const struct model *m, const struct ledger_row *r, job_id job)
{
    const int64_t *min = job_vec(m, job, JV_MINRES);
    uint64_t lacks = 0;

    for (uint32_t d = 0; d < m->dims.n; d++) {
        const double used = (double)(min[d] + r->allocated[d] + r->promised[d]);

        if (min[d] > 0 && d != DIM_PODS && used > rvec_get(&r->limit, d)) {
            lacks |= 1ULL << d;
        }
    }
    return lacks;
}

void ledger_promise(const struct model *m, job_id job, int64_t *sum)
{
    const int64_t *min = job_vec(m, job, JV_MINRES), *gated = job_vec(m, job, JV_GATED);

    for (uint32_t d = 0; d < m->dims.n; d++) {
        sum[d] += HK_MAX(min[d] - gated[d], 0);
    }
}

void ledger_rvec(const struct ledger *l, const struct ledger_row *r, struct rvec *ret)
{
    rvec_from(ret, r->allocated, l->ndim);
}

void shape_rvec(const struct shape *s, struct rvec *ret)
{
    rvec_zero(ret);
    for (uint32_t k = 0; k < s->nreq; k++) {
        rvec_set(ret, s->req[k].dim, (double)s->req[k].v);
    }
}

void shape_add(const struct shape *s, int64_t *sum)
{
    for (uint32_t k = 0; k < s->nreq; k++) {
        sum[s->req[k].dim] += s->req[k].v;
    }
}

void tasks_rvec(const struct model *m, const task_id *t, uint32_t n, struct rvec *ret)
{
    int64_t sum[DIM_MAX] = {0};

    for (uint32_t k = 0; k < n; k++) {
        shape_add(task_shape(m, t[k]), sum);
    }
    rvec_from(ret, sum, m->dims.n);
}

const char *names_text(struct session *ssn, struct names_text *last, const char *prefix,
                       const char *verb, uint64_t mask)
{
    const char *text = prefix, *sep = ": ";

    if (last->text && last->mask == mask) {
        return last->text;
    }
    RVEC_EACH(d, mask)
    {
        text =
            hk_arena_printf(ssn->mem, "%s%s%s %.*s", text, sep, verb, HK_FMT(ssn->m->dims.text[d]));
        sep = ", ";
    }
    *last = (struct names_text){mask, text};
    return text;
}
