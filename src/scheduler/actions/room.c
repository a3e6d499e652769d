// SPDX-License-Identifier: Apache-2.0
// Makes room for one task on one node; see room.h. Everything happens on the live model through the
// journal, so queue limits and filters see exactly the resulting state.

#include "scheduler/actions/room.h"

#include "scheduler/reserve.h"
#include "scheduler/select.h"

bool room_fits(struct session *ssn, task_id t, node_id n)
{
    const struct model *m = ssn->m;
    const queue_id q = model_job(m, model_task(m, t)->job)->queue;
    node_id one[1] = {n};

    return model_fits_future(m, task_shape(m, t), n) && hooks_allocatable(ssn, q, t) &&
           hooks_filter(ssn, t, FILTER_PLACE, one, 1, NULL) == 1;
}

bool room_covers(const struct model *m, task_id t, node_id n, const task_id *at, uint32_t nat)
{
    const struct shape *s = task_shape(m, t);

    for (uint32_t k = 0; k < s->nreq; k++) {
        int64_t have = m->nodes.future.col[s->req[k].dim][n.i];
        for (uint32_t i = 0; i < nat && have < s->req[k].v; i++) {
            have += shape_req(task_shape(m, at[i]), s->req[k].dim);
        }
        if (have < s->req[k].v) {
            return false;
        }
    }
    return true;
}

bool room_candidates(struct room *r, task_id t, node_id n, room_candidate *may)
{
    const struct model *m = r->ssn->m;
    const struct task *for_task = model_task(m, t);

    r->n = 0;
    for (task_id v = m->nodes.first[n.i]; !id_none(v); v = model_task(m, v)->node_next) {
        if (!may(m, model_task(m, v), for_task)) {
            continue;
        }
        if (r->n == r->cap) {
            task_id *at = hk_arena_array(r->ssn->mem, r->cap * 2 + 64, sizeof(at[0]));
            for (uint32_t i = 0; i < r->n; i++) {
                at[i] = r->at[i];
            }
            r->at = at;
            r->cap = r->cap * 2 + 64;
        }
        r->at[r->n++] = v;
    }
    return room_covers(m, t, n, r->at, r->n);
}

/* ---- order of victims ---- */

static bool has_surplus(const struct job *j)
{
    return (int64_t)tally_ready(&j->tally) > j->min;
}

/* Volcano's victim order. Between jobs of one queue that plugins rank equal, a member that its gang
 * can spare goes before one whose loss breaks the gang. */
static bool room_victim_before(struct session *ssn, task_id a, task_id b, task_id t)
{
    const struct model *m = ssn->m;
    const job_id ja = model_task(m, a)->job, jb = model_task(m, b)->job;

    if (!id_eq(ja, jb) && id_eq(model_job(m, ja)->queue, model_job(m, jb)->queue)) {
        const bool spare_a = has_surplus(model_job(m, ja)), spare_b = has_surplus(model_job(m, jb));
        if (spare_a != spare_b && hooks_job_order_plugins(ssn, ja, jb) == 0) {
            return spare_a;
        }
    }
    return hooks_victim_before(ssn, a, b, t);
}

/* Moves the next victim to the front. Evictions change shares and surpluses, so all remaining
 * candidates are compared each time. */
static void bring_next(struct session *ssn, task_id t, task_id *v, uint32_t nv)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < nv; i++) {
        if (room_victim_before(ssn, v[i], v[best], t)) {
            best = i;
        }
    }
    const task_id x = v[0];
    v[0] = v[best];
    v[best] = x;
}

/* ---- taking evictions back ---- */

/* Whether the node would have enough for the task without this eviction. */
static bool spares(const struct model *m, task_id t, node_id n, task_id victim)
{
    const struct shape *s = task_shape(m, t), *sv = task_shape(m, victim);

    for (uint32_t k = 0; k < s->nreq; k++) {
        const uint32_t dim = s->req[k].dim;
        if (m->nodes.future.col[dim][n.i] - shape_req(sv, dim) < s->req[k].v) {
            return false;
        }
    }
    return true;
}

static void evict_but(struct room *r, task_id t, const task_id *v, uint32_t nv, uint32_t but)
{
    for (uint32_t i = 0; i < nv; i++) {
        if (i != but) {
            stmt_evict(r->ssn, v[i], r->reason, model_task(r->ssn->m, t)->job);
        }
    }
}

/* Takes back evictions that later ones made unnecessary, the most important victim first. The last
 * eviction stays: before it the task did not fit. */
static uint32_t reprieve(struct room *r, task_id t, node_id n, stmt_mark_t mark, task_id *v,
                         uint32_t nv)
{
    for (uint32_t i = nv - 1; i-- > 0;) {
        if (!spares(r->ssn->m, t, n, v[i])) {
            continue;
        }
        stmt_rewind(r->ssn, mark);
        evict_but(r, t, v, nv, i);
        if (room_fits(r->ssn, t, n)) {
            const task_id stays = v[i];
            memmove(&v[i], &v[i + 1], (nv - i - 1) * sizeof(v[0]));
            v[--nv] = stays;
        } else {
            stmt_rewind(r->ssn, mark);
            evict_but(r, t, v, nv, ID_NONE);
        }
    }
    return nv;
}

bool room_make(struct room *r, task_id t, node_id n, task_id *v, uint32_t nv, uint32_t *ret_n)
{
    const stmt_mark_t mark = stmt_mark(r->ssn);
    uint32_t gone = 0;

    r->took_share = false;
    while (!room_fits(r->ssn, t, n)) {
        if (gone == nv) {
            stmt_rewind(r->ssn, mark);
            return false;
        }
        const stmt_mark_t before = stmt_mark(r->ssn);
        bring_next(r->ssn, t, v + gone, nv - gone);
        stmt_evict(r->ssn, v[gone], r->reason, model_task(r->ssn->m, t)->job);
        if (r->consent && !r->consent(r->ssn, v[gone])) {
            stmt_rewind(r->ssn, before);
            v[gone] = v[--nv];
            continue;
        }
        r->took_share |= r->watch_share && !room_beyond_share(r->ssn, v[gone]);
        gone++;
    }
    *ret_n = gone > 1 ? reprieve(r, t, n, mark, v, gone) : gone;
    return true;
}

/* ---- victims that could return ---- */

bool room_beyond_share(struct session *ssn, task_id evicted)
{
    const queue_id q = model_job(ssn->m, model_task(ssn->m, evicted)->job)->queue;

    return ssn->hooks[HOOK_PREEMPTIVE].n == 0 || !hooks_preemptive(ssn, q, &evicted, 1);
}

bool room_queues_reclaim(const struct session *ssn)
{
    bool found = false;

    for (uint32_t k = 0; k < ssn->conf->actions.len; k++) {
        const char *name = ssn->conf->actions.at[k].a->name;
        found |= strcmp(name, "reclaim") == 0 || strcmp(name, "gangreclaim") == 0;
    }
    return found;
}

bool room_leaves_share(struct session *ssn, const task_id *t, uint32_t n)
{
    const queue_id q = model_job(ssn->m, model_task(ssn->m, t[0])->job)->queue;

    return !hooks_preemptive(ssn, q, t, n);
}

/* Allocates the task for the check, since a gang's protection depends on its count of running
 * members. */
static bool any_returns(struct session *ssn, task_id t, node_id n, const task_id *victims,
                        uint32_t nvictim, room_return *may_return)
{
    const stmt_mark_t mark = stmt_mark(ssn);
    bool returns = !stmt_allocate(ssn, t, n);

    for (uint32_t i = 0; !returns && i < nvictim; i++) {
        returns = may_return(ssn, victims[i], t);
    }
    stmt_rewind(ssn, mark);
    return returns;
}

bool room_occupy(struct session *ssn, task_id t, node_id n, const task_id *victims,
                 uint32_t nvictim, room_return *may_return)
{
    if (nvictim > 0 && may_return && any_returns(ssn, t, n, victims, nvictim, may_return)) {
        return false;
    }
    return stmt_pipeline(ssn, t, n, nvictim > 0);
}

bool room_was_paid(const struct session *ssn, stmt_mark_t mark)
{
    for (uint32_t k = mark; k < ssn->ops.len; k++) {
        if (ssn->ops.at[k].kind == OP_EVICT && ssn->ops.at[k].state == OP_OPEN) {
            return true;
        }
    }
    return false;
}

/* ---- remembered failures ---- */

void room_memo_init(struct room_memo *memo)
{
    memset(memo, 0, sizeof(*memo));
    memo->gen = 1;
}

struct room_key room_key_of(const struct model *m, task_id t, uint8_t phase)
{
    const struct task *task = model_task(m, t);
    const struct job *job = model_job(m, task->job);
    const bool holds = job->tally.total != job->tally.n[TASK_PENDING];
    struct room_key k;

    memset(&k, 0, sizeof(k)); /* keys are compared as bytes */
    k.job = holds ? task->job : NO_JOB;
    k.queue = job->queue;
    k.shape = task->shape;
    k.ident = task->ident;
    k.job_priority = job->priority;
    k.task_priority = task->priority;
    k.pod_priority = task->pod_priority;
    k.flags = task->flags;
    k.preemptable = job->preemptable;
    k.phase = phase;
    return k;
}

static uint32_t slot_of(const struct room_key *k)
{
    return (uint32_t)(hk_hash(k, sizeof(*k), 0) % ROOM_MEMO);
}

bool room_memo_hopeless(const struct room_memo *memo, const struct session *ssn,
                        const struct room_key *k)
{
    const uint32_t i = slot_of(k);

    return memo->slot[i].gen == memo->gen && memcmp(&memo->slot[i].key, k, sizeof(*k)) == 0 &&
           memo->slot[i].seen >= ssn->m->nodes.live;
}

void room_memo_failed(struct room_memo *memo, const struct session *ssn, const struct room_key *k)
{
    const uint32_t i = slot_of(k);

    if (memo->slot[i].gen != memo->gen || memcmp(&memo->slot[i].key, k, sizeof(*k)) != 0) {
        memo->slot[i].key = *k;
        memo->slot[i].gen = memo->gen;
        memo->slot[i].seen = 0;
    }
    memo->slot[i].seen += select_want(&ssn->opts, ssn->m->nodes.live);
}

void room_memo_changed(struct room_memo *memo)
{
    memo->gen++;
}

void room_settle(struct room_memo *memo, struct session *ssn, job_id j, stmt_mark_t mark)
{
    if (stmt_mark(ssn) == mark) {
        return;
    }
    if (!hooks_job_pipelined(ssn, j)) {
        stmt_rewind(ssn, mark);
        room_memo_changed(memo);
    } else if (room_was_paid(ssn, mark)) {
        /* The victims were evicted for all of the placed members. Members that found room without
         * evictions keep it, too, or the gang would lack them once the victims are gone. */
        stmt_promise(ssn, mark, j);
        stmt_commit(ssn, mark);
    } else {
        reserve_add(ssn, mark);
    }
}
