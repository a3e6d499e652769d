// SPDX-License-Identifier: Apache-2.0
// allocate: places the tasks of admitted jobs, queue by queue and job by job. A job gets everything
// it needs to become ready in one turn and then one task per turn, so that queues stay balanced.
// The placements of a ready job are committed. Tasks that wait for room being freed keep their
// place until the session ends.

#include "scheduler/actions/domain.h"
#include "scheduler/actions/options.h"
#include "scheduler/actions/turns.h"
#include "scheduler/reserve.h"
#include "scheduler/stmt.h"

struct allocator {
    struct placer placer;
    struct worksheet **sheet; /* by job, made at its first turn */
};

/* Without the enqueue action, allocate admits every pending job itself. */
static bool admitted(struct session *ssn, job_id j)
{
    if (!job_is_pending(model_job(ssn->m, j))) {
        return true;
    }
    if (ssn->conf->has_enqueue) {
        return false;
    }
    model_job_set_phase(ssn->m, j, PG_INQUEUE);
    return true;
}

static uint32_t allocate_collect_jobs(struct session *ssn, job_id **ret)
{
    job_id *jobs = hk_arena_array(ssn->mem, ssn->njob, sizeof(jobs[0]));
    uint32_t n = 0;

    for (uint32_t i = 0; i < ssn->njob; i++) {
        const job_id j = ssn->jobs[i];
        if (admitted(ssn, j) &&
            (reserve_has(ssn, j) || worksheet_has_work(ssn, j, SHEET_ALLOCATE)) &&
            !hooks_job_valid(ssn, j) && (ssn->m->hyper_ready || !job_has_topology(ssn->m, j))) {
            jobs[n++] = j;
        }
    }
    *ret = jobs;
    return n;
}

static struct worksheet *sheet_of(struct allocator *a, job_id j)
{
    struct session *ssn = a->placer.ssn;

    if (!a->sheet[j.i]) {
        reserve_redeem(ssn, j);
        a->sheet[j.i] = hk_arena_alloc(ssn->mem, sizeof(struct worksheet));
        worksheet_init(a->sheet[j.i], ssn, j, SHEET_ALLOCATE);
    }
    return a->sheet[j.i];
}

/* Both turn functions return true when the job became ready and has tasks left. */

static bool turn_flat(struct allocator *a, struct worksheet *w)
{
    struct session *ssn = a->placer.ssn;
    struct sheet_row *row = &w->rows[0];
    struct sub_job *sub = model_sub(ssn->m, row->sub);
    const stmt_mark_t mark = stmt_mark(ssn);
    const hyper_id before = sub->mark;
    const bool nominated = place_nominated(&a->placer, w, row);
    const hyper_id after = sub->mark;

    sub->mark = before;
    if (!nominated && !place_tasks(&a->placer, w, row, HYPER_ROOT)) {
        return false;
    }
    if (!hooks_job_ready(ssn, w->job)) {
        return false; /* the placements stay, uncommitted */
    }
    stmt_commit(ssn, mark);
    if (nominated) {
        sub->mark = after;
        sub->nominated = NO_HYPER;
    }
    return row->tasks.next < row->tasks.n;
}

static bool turn_domain(struct allocator *a, struct worksheet *w)
{
    struct session *ssn = a->placer.ssn;
    const stmt_mark_t mark = stmt_mark(ssn);
    struct domain_choice choice;

    if (!domain_allocate(&a->placer, w, &choice) || !hooks_job_ready(ssn, w->job)) {
        return false;
    }
    stmt_commit(ssn, mark);
    domain_confirm(ssn->m, w, &choice);
    return w->order.len > 0;
}

static bool turn_once(struct allocator *a, job_id j)
{
    const struct model *m = a->placer.ssn->m;
    struct worksheet *w = sheet_of(a, j);

    if (model_job(m, j)->policies.len > 0 || domain_is_hard(m, j)) {
        return turn_domain(a, w);
    }
    return turn_flat(a, w);
}

/* A job that found no place may have met room reserved for jobs of lower priority, so it tries
 * again without those reservations. Room it then waits for is promised to it instead of them. */
static bool turn_yielded(struct allocator *a, job_id j)
{
    struct session *ssn = a->placer.ssn;
    const stmt_mark_t mark = stmt_mark(ssn);

    a->sheet[j.i] = NULL;
    const bool more = turn_once(a, j);
    if (!reserve_restore(ssn)) {
        stmt_promise(ssn, mark, j);
    }
    return more;
}

static bool allocate_try_job(struct allocator *a, job_id j)
{
    struct session *ssn = a->placer.ssn;

    if (sheet_of(a, j)->n == 0) {
        return false; /* only best-effort tasks held room: backfill places them */
    }
    const stmt_mark_t mark = stmt_mark(ssn);
    bool more = turn_once(a, j);

    if (!more && stmt_mark(ssn) == mark && !hooks_job_ready(ssn, j) && reserve_yield(ssn, j)) {
        more = turn_yielded(a, j);
    }
    if (!more) {
        reserve_return(ssn, j);
    }
    return more;
}

static bool any_reserved(const struct session *ssn, const job_id *jobs, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        if (reserve_has(ssn, jobs[k])) {
            return true;
        }
    }
    return false;
}

/* Records the queue's limit as the reason for every job left in a full queue. */
static void note_left_out(struct allocator *a, struct turns *turns, queue_id q)
{
    job_id j;

    while (turns_take_job(turns, q, &j)) {
        place_note_limit(&a->placer, j);
    }
}

static void allocate_run(struct session *ssn, const void *args)
{
    struct allocator a = {
        .sheet = hk_arena_zalloc(ssn->mem, ssn->m->jobs.len * sizeof(a.sheet[0])),
    };
    struct turns turns;
    job_id *jobs;
    queue_id q;
    job_id j;

    placer_init(&a.placer, ssn);
    const uint32_t n = allocate_collect_jobs(ssn, &jobs);
    const bool held = any_reserved(ssn, jobs, n);
    turns_init(&turns, ssn, jobs, n);
    while (!session_over_budget(ssn) && turns_take_queue(&turns, &q)) {
        const bool full = hooks_overused(ssn, q);
        if (full && !held) {
            note_left_out(&a, &turns, q);
            continue;
        }
        if (!turns_take_job(&turns, q, &j)) {
            continue;
        }
        /* Reservations of a job count against its queue: the job may use them even if they fill
         * it. */
        if (full && !reserve_has(ssn, j)) {
            place_note_limit(&a.placer, j);
        } else if (allocate_try_job(&a, j)) {
            turns_put_job(&turns, q, j);
        }
        turns_put_queue(&turns, q);
    }
}

static const struct opt opts[] = {
    OPT_ERROR_CACHE,
};

const struct action action_allocate = {
    .name = "allocate",
    .about = "place the tasks of admitted jobs",
    .opts = opts,
    .nopt = HK_LEN(opts),
    .run = allocate_run,
};
