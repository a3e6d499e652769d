// SPDX-License-Identifier: Apache-2.0
// Reservations; see reserve.h. They are ordinary pipeline operations at the start of the journal;
// this file remembers which ones, and undoes them one by one.
#include "scheduler/reserve.h"

#include "scheduler/actions/idsort.h"
#include "scheduler/session_priv.h"

struct reserve {
    task_id *at;
    uint32_t n, cap;
    uint64_t *jobs;    /* bit per job row that holds one */
    task_id *yielded;  /* by the last reserve_yield */
    task_id *redeemed; /* by the last reserve_redeem */
    uint32_t nyielded, nredeemed;
    job_id redeemer; /* whose reservations those are */
};

static void reserve_push(struct session *ssn, task_id t)
{
    struct reserve *r = ssn->reserve;
    const job_id j = model_task(ssn->m, t)->job;

    if (!r->jobs) {
        r->jobs = hk_arena_zalloc(ssn->mem, (ssn->m->jobs.len / 64 + 1) * sizeof(*r->jobs));
    }
    if (r->n == r->cap) {
        task_id *at = hk_arena_array(ssn->mem, r->cap * 2 + 16, sizeof(*at));
        for (uint32_t k = 0; k < r->n; k++) {
            at[k] = r->at[k];
        }
        r->at = at;
        r->cap = r->cap * 2 + 16;
    }
    r->at[r->n++] = t;
    r->jobs[j.i / 64] |= 1ULL << (j.i % 64);
}

static bool wants_room(const struct model *m, task_id t)
{
    const struct task *task = model_task(m, t);
    const node_id n = task_nominated(m, t);

    return task->status == TASK_PENDING && !(task->flags & (TASK_GATED | TASK_HELD)) &&
           !id_none(n) && (m->nodes.flags[n.i] & NODE_KNOWN) && !id_none(task->job) &&
           model_job(m, task->job)->has_pg && !id_none(model_job(m, task->job)->queue);
}

/* Removes tasks that were placed or are gone, and duplicates. */
static void drop_stale(struct model *m)
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < m->nominated.len; k++) {
        const task_id t = model_task_of(m, m->nominated.at[k]);
        if (!id_none(t)) {
            model_task(m, t)->flags &= (uint16_t)~TASK_NOMINATED;
        }
    }
    for (uint32_t k = 0; k < m->nominated.len; k++) {
        const task_id t = model_task_of(m, m->nominated.at[k]);
        if (!id_none(t) && !(model_task(m, t)->flags & TASK_NOMINATED) && wants_room(m, t)) {
            model_task(m, t)->flags |= TASK_NOMINATED;
            m->nominated.at[n++] = m->nominated.at[k];
        }
    }
    m->nominated.len = n;
}

static bool reserve_task_before(void *ctx, uint32_t a, uint32_t b)
{
    struct session *ssn = ctx;
    const job_id ja = ssn->m->tasks.at[a].job, jb = ssn->m->tasks.at[b].job;

    return id_eq(ja, jb) ? hooks_task_order(ssn, (task_id){a}, (task_id){b}) < 0
                         : hooks_job_order(ssn, ja, jb) < 0;
}

/* Checks the queue, too: promises that together exceed its limit would keep the first job in order
 * from using its own. */
static bool reserve_hold_nominated(struct session *ssn, task_id t)
{
    const struct model *m = ssn->m;
    const node_id n = task_nominated(m, t);
    node_id one = n;

    return model_fits_future(m, task_shape(m, t), n) &&
           hooks_allocatable(ssn, model_job(m, model_task(m, t)->job)->queue, t) &&
           hooks_filter(ssn, t, FILTER_PLACE, &one, 1, NULL) == 1 &&
           stmt_pipeline(ssn, t, n, false);
}

static bool room_is_coming(const struct model *m, node_id n)
{
    return m->nodes.releasing.col[DIM_PODS][n.i] > 0;
}

void reserve_open(struct session *ssn)
{
    struct model *m = ssn->m;
    task_id *all;

    ssn->reserve = hk_arena_zalloc(ssn->mem, sizeof(*ssn->reserve));
    ssn->reserve->redeemer = NO_JOB;
    drop_stale(m);
    if (m->nominated.len == 0) {
        return;
    }
    all = hk_arena_array(ssn->mem, m->nominated.len, sizeof(*all));
    for (uint32_t k = 0; k < m->nominated.len; k++) {
        all[k] = model_task_of(m, m->nominated.at[k]);
    }
    idsort(&all[0].i, m->nominated.len, reserve_task_before, ssn, ssn->mem);
    for (uint32_t k = 0; k < m->nominated.len; k++) {
        if (reserve_hold_nominated(ssn, all[k])) {
            reserve_push(ssn, all[k]);
        } else if (!room_is_coming(m, task_nominated(m, all[k]))) {
            /* Others used the room. Room freed there later is not for this task. */
            model_task_nominate(m, all[k], NO_NODE);
        }
    }
}

void reserve_add(struct session *ssn, stmt_mark_t mark)
{
    for (uint32_t k = mark; k < ssn->ops.len; k++) {
        const struct op *op = &ssn->ops.at[k];
        if (op->kind == OP_PIPELINE && op->state == OP_OPEN) {
            reserve_push(ssn, op->task);
        }
    }
}

bool reserve_has(const struct session *ssn, job_id j)
{
    const struct reserve *r = ssn->reserve;

    return r->n > 0 && ((r->jobs[j.i / 64] >> (j.i % 64)) & 1);
}

/* Undoes every reservation of the jobs for which drop() returns true. Returns their number, and the
 * tasks in ret unless that is NULL. */
static uint32_t take_back(struct session *ssn,
                          bool (*drop)(struct session *ssn, job_id held, job_id by), job_id by,
                          task_id *ret)
{
    struct reserve *r = ssn->reserve;
    uint32_t n = 0, taken = 0;

    for (uint32_t k = 0; k < r->n; k++) {
        const job_id j = model_task(ssn->m, r->at[k])->job;
        if (model_task(ssn->m, r->at[k])->status != TASK_PIPELINED) {
            continue; /* backfill placed it: the reservation is used up */
        }
        if (drop(ssn, j, by)) {
            r->jobs[j.i / 64] &= ~(1ULL << (j.i % 64));
            stmt_unpipeline(ssn, r->at[k]);
            if (ret) {
                ret[taken] = r->at[k];
            }
            taken++;
        } else {
            r->at[n++] = r->at[k];
        }
    }
    r->n = n;
    return taken;
}

static bool is_own(struct session *ssn, job_id held, job_id by)
{
    return id_eq(held, by);
}

/* Priorities compare only jobs of one queue. Between queues shares decide: otherwise room that a
 * queue reclaimed would return to jobs of higher priority in the queue it came from. */
static bool is_lower(struct session *ssn, job_id held, job_id by)
{
    const struct job *a = model_job(ssn->m, held), *b = model_job(ssn->m, by);

    return id_eq(a->queue, b->queue) && a->priority < b->priority;
}

void reserve_redeem(struct session *ssn, job_id j)
{
    struct reserve *r = ssn->reserve;

    if (reserve_has(ssn, j)) {
        r->redeemed = hk_arena_array(ssn->mem, r->n, sizeof(*r->redeemed));
        r->nredeemed = take_back(ssn, is_own, j, r->redeemed);
    } else if (!id_eq(r->redeemer, j)) { /* kept for the job's second try */
        r->nredeemed = 0;
    }
    r->redeemer = j;
}

bool reserve_yield(struct session *ssn, job_id j)
{
    struct reserve *r = ssn->reserve;

    r->yielded = hk_arena_array(ssn->mem, r->n, sizeof(*r->yielded));
    r->nyielded = take_back(ssn, is_lower, j, r->yielded);
    return r->nyielded > 0;
}

bool reserve_restore(struct session *ssn)
{
    struct reserve *r = ssn->reserve;
    bool all = true;

    for (uint32_t k = 0; k < r->nyielded; k++) {
        if (!wants_room(ssn->m, r->yielded[k])) {
            continue;
        }
        if (reserve_hold_nominated(ssn, r->yielded[k])) {
            reserve_push(ssn, r->yielded[k]);
        } else {
            model_task_nominate(ssn->m, r->yielded[k], NO_NODE);
            all = false;
        }
    }
    r->nyielded = 0;
    return all;
}

/* Drops the job's reservations and its promised nodes. */
static void forget_job(struct session *ssn, job_id j, const task_id *promised, uint32_t n)
{
    take_back(ssn, is_own, j, NULL);
    for (uint32_t k = 0; k < n; k++) {
        model_task_nominate(ssn->m, promised[k], NO_NODE);
    }
}

void reserve_return(struct session *ssn, job_id j)
{
    struct reserve *r = ssn->reserve;
    bool coming = false;
    uint32_t n = 0;

    if (!id_eq(r->redeemer, j) || r->nredeemed == 0) {
        return;
    }
    for (uint32_t k = 0; k < r->nredeemed; k++) {
        if (!wants_room(ssn->m, r->redeemed[k])) {
            continue; /* placed */
        }
        const task_id t = r->redeemed[k];
        r->redeemed[n++] = t;
        coming |= room_is_coming(ssn->m, task_nominated(ssn->m, t));
        if (reserve_hold_nominated(ssn, t)) {
            reserve_push(ssn, t);
        }
    }
    r->nredeemed = 0;
    if (!coming && n > 0 && !hooks_job_pipelined(ssn, j)) {
        forget_job(ssn, j, r->redeemed, n);
    }
}
