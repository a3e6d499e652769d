// SPDX-License-Identifier: Apache-2.0
// reclaim: gives a queue that lacks its share what others have beyond theirs. Which queue may take
// and which must give is the plugins' business (Preemptive, Reclaimable); this evicts no more than
// needed, only when nothing fits without, and never what the victim's queue could take right back.

#include "scheduler/actions/domain.h"
#include "scheduler/actions/options.h"
#include "scheduler/actions/room.h"
#include "scheduler/actions/turns.h"

struct reclaimer {
    struct session *ssn;
    struct room room;
    struct room_memo memo;
};

static bool may_be_victim(const struct model *m, const struct task *v, const struct task *t)
{
    if (v->status != TASK_RUNNING || !(v->flags & TASK_PREEMPTABLE) ||
        !room_in_session(m, v->job)) {
        return false;
    }
    const queue_id q = model_job(m, v->job)->queue;
    return !id_eq(q, model_job(m, t->job)->queue) && model_queue(m, q)->reclaimable;
}

/* With the roles swapped, the move could be undone by the same rules: the victim's queue is
 * entitled to the victim again and the task just placed would be its prey. Two queues that each
 * exceed their share in another dimension would evict one another for ever. */
static bool bounces(struct session *ssn, task_id t, task_id victim)
{
    const struct model *m = ssn->m;
    const queue_id q = model_job(m, model_task(m, t)->job)->queue;
    const queue_id vq = model_job(m, model_task(m, victim)->job)->queue;
    task_id *prey;

    return model_queue(m, q)->reclaimable && (model_task(m, t)->flags & TASK_PREEMPTABLE) &&
           hooks_preemptive(ssn, vq, &victim, 1) &&
           hooks_reclaimable(ssn, victim, &t, 1, &prey) > 0;
}

static bool any_bounces(struct session *ssn, task_id t, const task_id *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (bounces(ssn, t, v[i])) {
            return true;
        }
    }
    return false;
}

static bool reclaim_on(struct reclaimer *r, task_id t, node_id n)
{
    struct session *ssn = r->ssn;
    const stmt_mark_t mark = stmt_mark(ssn);
    task_id *victims = NULL;
    uint32_t gone;

    if (!room_candidates(&r->room, t, n, may_be_victim) || r->room.n == 0) {
        return false;
    }
    const uint32_t nvictim = hooks_reclaimable(ssn, t, r->room.at, r->room.n, &victims);
    if (nvictim == 0 || !room_covers(ssn->m, t, n, victims, nvictim) ||
        !room_make(&r->room, t, n, victims, nvictim, &gone)) {
        return false;
    }
    if (stmt_pipeline(ssn, t, n, gone > 0) && !any_bounces(ssn, t, victims, gone)) {
        return true;
    }
    stmt_rewind(ssn, mark);
    return false;
}

/* Waiting for room that comes anyway beats taking it from others. */
static bool wait_somewhere(struct session *ssn, task_id t, const node_id *nodes, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (room_fits(ssn, t, nodes[i]) && stmt_pipeline(ssn, t, nodes[i], false)) {
            return true;
        }
    }
    return false;
}

static bool search(struct reclaimer *r, task_id t)
{
    struct session *ssn = r->ssn;
    struct fit_log *log;
    node_id *nodes;
    const uint32_t n = select_nodes(ssn, t, HYPER_ROOT, FILTER_EVICT, false, false, &nodes, &log);

    if (wait_somewhere(ssn, t, nodes, n)) {
        return true;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (reclaim_on(r, t, nodes[i])) {
            return true;
        }
    }
    return false;
}

static void reclaim_task(struct reclaimer *r, queue_id q, task_id t)
{
    struct session *ssn = r->ssn;
    const struct room_key key = room_key_of(ssn->m, t, 0);
    struct reason why;

    if ((model_task(ssn->m, t)->flags & TASK_NEVER_PREEMPTS) ||
        room_memo_hopeless(&r->memo, ssn, &key) || !hooks_preemptive(ssn, q, &t, 1) ||
        !hooks_pre_predicate(ssn, t, &why)) {
        return;
    }
    if (search(r, t)) {
        room_memo_changed(&r->memo);
    } else {
        room_memo_failed(&r->memo, ssn, &key);
    }
}

static void reclaim_for_job(struct reclaimer *r, queue_id q, job_id j)
{
    struct session *ssn = r->ssn;
    const stmt_mark_t mark = stmt_mark(ssn);
    struct task_list tasks = task_list_ungated(ssn, j);
    task_id t;

    while (hooks_job_starving(ssn, j) && task_list_take(&tasks, &t)) {
        reclaim_task(r, q, t);
    }
    room_settle(&r->memo, ssn, j, mark);
}

/* A job bound to a topology domain would not use room that is freed just anywhere: that is
 * gangreclaim's work. Upstream evicts for it all the same. */
static bool is_reclaimer(struct session *ssn, job_id j)
{
    return hooks_job_starving(ssn, j) && !domain_is_narrow(ssn, j);
}

static void reclaim_run(struct session *ssn, const void *args)
{
    struct reclaimer r = {.ssn = ssn, .room = {.ssn = ssn, .reason = "reclaim"}};
    struct turns turns;
    job_id *jobs;
    queue_id q;
    job_id j;

    room_memo_init(&r.memo);
    const uint32_t n = turns_collect(ssn, is_reclaimer, &jobs);
    turns_init(&turns, ssn, jobs, n);
    while (!session_over_budget(ssn) && turns_take_queue(&turns, &q)) {
        if (hooks_overused(ssn, q)) {
            continue;
        }
        while (!session_over_budget(ssn) && turns_take_job(&turns, q, &j)) {
            reclaim_for_job(&r, q, j);
        }
    }
}

static const struct opt opts[] = {
    OPT_ERROR_CACHE,
};

const struct action action_reclaim = {
    .name = "reclaim",
    .about = "evict from queues beyond their share for queues that lack theirs",
    .evicts = true,
    .opts = opts,
    .nopt = HK_LEN(opts),
    .run = reclaim_run,
};
