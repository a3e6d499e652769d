// SPDX-License-Identifier: Apache-2.0
// reclaim: gives a queue below its share what other queues hold beyond theirs. Plugins decide which
// queue may take and which must give (Preemptive, Reclaimable). This action evicts no more than
// needed, only if nothing fits without evicting, and only what exceeds the victim queue's share.

#include "scheduler/actions/domain.h"
#include "scheduler/actions/options.h"
#include "scheduler/actions/room.h"
#include "scheduler/actions/turns.h"
#include "scheduler/select.h"
#include "scheduler/stmt.h"

struct reclaimer {
    struct session *ssn;
    struct room room;
    struct room_memo memo;
};

static bool reclaim_may_be_victim(const struct model *m, const struct task *v, const struct task *t)
{
    if (v->status != TASK_RUNNING || !(v->flags & TASK_PREEMPTABLE) ||
        !room_in_session(m, v->job)) {
        return false;
    }
    const struct job *from = model_job(m, v->job);
    return !id_eq(from->queue, model_job(m, t->job)->queue) &&
           model_queue(m, from->queue)->reclaimable && !room_gang_waits(from);
}

/* Without a plugin that knows the shares of queues, each queue may take from every other one. Then
 * a task is not evicted if its queue could at once reclaim the room from the new task. */
static bool reclaim_may_return(struct session *ssn, task_id victim, task_id t)
{
    const struct model *m = ssn->m;
    task_id *prey;

    return model_queue(m, model_job(m, model_task(m, t)->job)->queue)->reclaimable &&
           (model_task(m, t)->flags & TASK_PREEMPTABLE) &&
           hooks_reclaimable(ssn, victim, &t, 1, &prey) > 0;
}

static bool reclaim_on(struct reclaimer *r, task_id t, node_id n)
{
    struct session *ssn = r->ssn;
    const bool shares = ssn->hooks[HOOK_PREEMPTIVE].n > 0;
    const stmt_mark_t mark = stmt_mark(ssn);
    task_id *victims = NULL;
    uint32_t gone;

    if (!room_candidates(&r->room, t, n, reclaim_may_be_victim) || r->room.n == 0) {
        return false;
    }
    const uint32_t nvictim = hooks_reclaimable(ssn, t, r->room.at, r->room.n, &victims);
    if (nvictim == 0 || !room_covers(ssn->m, t, n, victims, nvictim) ||
        !room_make(&r->room, t, n, victims, nvictim, &gone)) {
        return false;
    }
    if (room_occupy(ssn, t, n, victims, gone, shares ? NULL : reclaim_may_return)) {
        return true;
    }
    stmt_rewind(ssn, mark);
    return false;
}

/* Prefers waiting for room that is being freed over evicting other tasks. */
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

/* Leaves jobs bound to a topology domain to gangreclaim: they cannot use room freed on arbitrary
 * nodes. Upstream evicts for them all the same. */
static bool is_reclaimer(struct session *ssn, job_id j)
{
    return hooks_job_starving(ssn, j) && !domain_is_narrow(ssn, j);
}

static void reclaim_run(struct session *ssn, const void *args)
{
    struct reclaimer r = {.ssn = ssn,
                          .room = {.ssn = ssn, .reason = "reclaim", .consent = room_beyond_share}};
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
