// SPDX-License-Identifier: Apache-2.0
// preempt: makes room for starving jobs by evicting lower ones of the same queue (phase A), then
// lets tasks of a job displace others of the same job (phase B). Evictions for a job are committed
// only when the whole job has a place; those for a task that finds no place are undone.

#include "scheduler/actions/preempt_priv.h"
#include "scheduler/select.h"
#include "scheduler/stmt.h"

#include "scheduler/actions/options.h"
#include "scheduler/actions/place.h"
#include "scheduler/actions/turns.h"

enum { PHASE_JOBS, PHASE_TASKS };

/* ---- victims ---- */

static bool preempt_may_be_victim(const struct model *m, const struct task *v, const struct task *t)
{
    if (!status_in(v->status, STATUS_BIT(TASK_BOUND) | STATUS_BIT(TASK_RUNNING))) {
        return false;
    }
    if ((t->flags & TASK_BEST_EFFORT) && !(v->flags & TASK_BEST_EFFORT)) {
        return false;
    }
    return (v->flags & TASK_PREEMPTABLE) && room_in_session(m, v->job);
}

/* Upstream lets a tier that ignores priorities (drf, for example) choose jobs of higher priority as
 * victims, which then take their room back by priority, and so on. */
static bool of_other_job(const struct model *m, const struct task *v, const struct task *t)
{
    if (!preempt_may_be_victim(m, v, t) || id_eq(v->job, t->job)) {
        return false;
    }
    const struct job *from = model_job(m, v->job), *to = model_job(m, t->job);
    return id_eq(from->queue, to->queue) &&
           (from->priority < to->priority ||
            (from->priority == to->priority && !room_gang_waits(from)));
}

/* Upstream leaves the choice to plugins: without priority in the deciding tier, a member is evicted
 * for another of equal priority in every cycle. */
static bool of_same_job(const struct model *m, const struct task *v, const struct task *t)
{
    return id_eq(v->job, t->job) && v->priority < t->priority && preempt_may_be_victim(m, v, t);
}

bool preempt_victims(struct preemptor *p, task_id t, node_id n, task_id **ret, uint32_t *ret_n)
{
    if (!room_candidates(&p->room, t, n, p->may)) {
        return false; /* plugins can only shorten this list */
    }
    *ret_n = hooks_preemptable(p->ssn, t, p->room.at, p->room.n, ret);
    meter_victims(p->ssn->opts.meter, *ret_n);
    return room_covers(p->ssn->m, t, n, *ret, *ret_n);
}

/* ---- one task ---- */

/* Whether a victim of an earlier preemption is still terminating on the node. */
static bool room_is_coming(const struct model *m, task_id t, node_id n)
{
    const int32_t priority = model_task(m, t)->pod_priority;

    for (task_id v = m->nodes.first[n.i]; !id_none(v); v = model_task(m, v)->node_next) {
        const struct task *victim = model_task(m, v);
        if ((victim->flags & TASK_TERMINATING) && (victim->flags & TASK_PREEMPT_VICTIM) &&
            victim->pod_priority < priority) {
            return true;
        }
    }
    return false;
}

static bool has_promise(const struct model *m, task_id t)
{
    const node_id n = task_nominated(m, t);

    return !id_none(n) && (m->nodes.flags[n.i] & NODE_KNOWN);
}

/* A task with a nominated node waits while its victims terminate. Upstream asks only the filters,
 * which ignore cpu and memory, so there a task whose promised room was used by others can never
 * preempt again. */
static bool may_preempt(struct session *ssn, task_id t)
{
    const struct model *m = ssn->m;
    const node_id n = task_nominated(m, t);
    node_id one[1] = {n};

    if (model_task(m, t)->flags & TASK_NEVER_PREEMPTS) {
        return false;
    }
    if (!has_promise(m, t)) {
        return true;
    }
    if (hooks_filter(ssn, t, FILTER_EVICT, one, 1, NULL) == 0) {
        return true; /* the node can never fit */
    }
    return !room_is_coming(m, t, n);
}

static bool are_equals(const struct model *m, task_id a, task_id b)
{
    const job_id ja = model_task(m, a)->job, jb = model_task(m, b)->job;

    return !id_eq(ja, jb) && model_job(m, ja)->priority == model_job(m, jb)->priority;
}

/* Whether the victim could preempt the task in turn: between jobs of equal priority, plugins that
 * permit both directions do not permit the eviction. */
static bool preempt_may_return(struct session *ssn, task_id victim, task_id t)
{
    task_id *prey;

    return are_equals(ssn->m, victim, t) && hooks_preemptable(ssn, victim, &t, 1, &prey) > 0;
}

bool preempt_occupy(struct preemptor *p, task_id t, node_id n, const task_id *victims, uint32_t nv)
{
    bool equals = false;

    if (p->room.took_share && room_leaves_share(p->ssn, &t, 1)) {
        return false;
    }
    for (uint32_t i = 0; !equals && i < nv; i++) {
        equals = are_equals(p->ssn->m, victims[i], t);
    }
    return room_occupy(p->ssn, t, n, victims, nv, equals ? preempt_may_return : NULL);
}

/* Nodes by score; on each, the fewest evictions that make room. */
static bool preempt_normal(struct preemptor *p, task_id t, const node_id *nodes, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const stmt_mark_t mark = stmt_mark(p->ssn);
        task_id *victims = NULL;
        uint32_t nvictim, gone;
        if (!preempt_victims(p, t, nodes[i], &victims, &nvictim) ||
            !room_make(&p->room, t, nodes[i], victims, nvictim, &gone)) {
            continue;
        }
        if (preempt_occupy(p, t, nodes[i], victims, gone)) {
            return true;
        }
        stmt_rewind(p->ssn, mark);
    }
    return false;
}

static bool preempt_task(struct preemptor *p, task_id t, uint8_t phase)
{
    struct session *ssn = p->ssn;
    const struct room_key key = room_key_of(ssn->m, t, phase);
    struct fit_log *log;
    struct reason why;
    node_id *nodes;
    bool ok;

    if (room_memo_hopeless(&p->memo, ssn, &key) || !hooks_pre_predicate(ssn, t, &why)) {
        return false;
    }
    if (has_promise(ssn->m, t) && room_fits(ssn, t, task_nominated(ssn->m, t))) {
        /* This task's nominated node still has room; other members of the gang lack room. */
        return stmt_pipeline(ssn, t, task_nominated(ssn->m, t), false);
    }
    if (!may_preempt(ssn, t)) {
        return false;
    }
    const bool topology = p->args->topology_aware;
    const uint32_t n =
        select_nodes(ssn, t, HYPER_ROOT, FILTER_EVICT, false, !topology, &nodes, &log);
    ok = topology ? preempt_dryrun(p, t, nodes, n) : preempt_normal(p, t, nodes, n);
    if (ok) {
        meter_preempted(ssn->opts.meter);
        room_memo_changed(&p->memo);
    } else {
        room_memo_failed(&p->memo, ssn, &key);
    }
    return ok;
}

/* ---- the phases ---- */

struct attempt {
    job_id job;
    struct task_list tasks;
};

static void preempt_for_job(struct preemptor *p, struct attempt *a)
{
    struct session *ssn = p->ssn;
    const stmt_mark_t mark = stmt_mark(ssn);
    task_id t;

    p->may = of_other_job;
    while (hooks_job_starving(ssn, a->job) && task_list_take(&a->tasks, &t)) {
        preempt_task(p, t, PHASE_JOBS);
    }
    room_settle(&p->memo, ssn, a->job, mark);
}

/* Upstream commits these evictions without checking that the job can start, so members are evicted
 * for other members of a gang that still cannot start. */
static void preempt_within_job(struct preemptor *p, const struct attempt *a)
{
    struct session *ssn = p->ssn;
    const stmt_mark_t mark = stmt_mark(ssn);

    p->may = of_same_job;
    for (uint32_t i = 0; i < a->tasks.n; i++) {
        const bool waits = model_task(ssn->m, a->tasks.at[i])->status == TASK_PENDING;
        if (waits && !preempt_task(p, a->tasks.at[i], PHASE_TASKS)) {
            break;
        }
    }
    room_settle(&p->memo, ssn, a->job, mark);
}

static void preempt_in_queue(struct preemptor *p, struct turns *turns, queue_id q)
{
    struct session *ssn = p->ssn;
    const uint32_t room = turns->line[q.i].n;
    struct attempt *done = hk_arena_array(ssn->mem, room, sizeof(done[0]));
    uint32_t n = 0;
    job_id j;

    while (!session_over_budget(ssn) && turns_take_job(turns, q, &j)) {
        done[n] = (struct attempt){j, task_list_ungated(ssn, j)};
        preempt_for_job(p, &done[n++]);
    }
    for (uint32_t i = 0; i < n && !session_over_budget(ssn); i++) {
        preempt_within_job(p, &done[i]);
    }
}

static bool is_preemptor(struct session *ssn, job_id j)
{
    return hooks_job_starving(ssn, j) && !job_has_topology(ssn->m, j);
}

static void preempt_run(struct session *ssn, const void *args)
{
    struct preemptor p = {
        .ssn = ssn,
        .args = args,
        .room = {.ssn = ssn, .reason = "preempt"},
    };
    struct turns turns;
    job_id *jobs;
    queue_id q;

    p.room.watch_share = room_queues_reclaim(ssn);
    room_memo_init(&p.memo);
    const uint32_t n = turns_collect(ssn, is_preemptor, &jobs);
    turns_init(&turns, ssn, jobs, n);
    while (!session_over_budget(ssn) && turns_take_queue(&turns, &q)) {
        preempt_in_queue(&p, &turns, q);
    }
}

static const struct opt opts[] = {
    OPT(OPT_BOOL, struct preempt_args, topology_aware, "enableTopologyAwarePreemption", "false",
        "try nodes one by one and evict where it hurts least"),
    OPT(OPT_INT, struct preempt_args, candidate_percentage, "minCandidateNodesPercentage", "10",
        "share of nodes that a topology-aware search stops at"),
    OPT(OPT_INT, struct preempt_args, candidates_min, "minCandidateNodesAbsolute", "1",
        "nodes that a topology-aware search looks for at least"),
    OPT(OPT_INT, struct preempt_args, candidates_max, "maxCandidateNodesAbsolute", "100",
        "nodes that a topology-aware search looks for at most"),
    {.key = "topologyAwarePreemptWorkerNum",
     .type = OPT_IGNORED,
     .dflt = "16",
     .help = "the search runs on the live model, on one thread"},
    OPT_ERROR_CACHE,
};

const struct action action_preempt = {
    .name = "preempt",
    .about = "evict lower jobs of a queue for starving ones",
    .evicts = true,
    .args_size = sizeof(struct preempt_args),
    .opts = opts,
    .nopt = HK_LEN(opts),
    .run = preempt_run,
};
