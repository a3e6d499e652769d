// SPDX-License-Identifier: Apache-2.0
// backfill: places best-effort tasks, which request only a pod slot and which no other action
// places. It ignores queue limits. For a ready job it commits all placed tasks, including those
// that allocate left uncommitted.

#include "scheduler/actions/idsort.h"
#include "scheduler/actions/options.h"
#include "scheduler/actions/place.h"
#include "scheduler/actions/turns.h"
#include "scheduler/select.h"
#include "scheduler/stmt.h"

struct line {
    task_id *at;
    uint32_t n;
};

static bool backfill_is_best_effort(const struct task *t)
{
    return (t->flags & TASK_BEST_EFFORT) && !(t->flags & (TASK_GATED | TASK_HELD));
}

static bool has_best_effort(struct session *ssn, job_id j)
{
    const struct job *job = model_job(ssn->m, j);

    return job->tally.pending_be > 0 || job->tally.n[TASK_PIPELINED] > 0;
}

/* Unpipelines best-effort tasks: there may be a free slot by now. */
static void unpipeline(struct session *ssn, job_id j)
{
    const struct model *m = ssn->m;
    const struct job *job = model_job(m, j);

    if (job->tally.n[TASK_PIPELINED] == 0) {
        return;
    }
    for (task_id t = job->others, next; !id_none(t); t = next) {
        const struct task *task = model_task(m, t);
        next = task->job_next;
        if (task->status == TASK_PIPELINED && (task->flags & TASK_BEST_EFFORT)) {
            stmt_unpipeline(ssn, t);
        }
    }
}

static bool task_first(void *ctx, uint32_t a, uint32_t b)
{
    return hooks_task_order(ctx, (task_id){a}, (task_id){b}) < 0;
}

static void add_tasks(struct session *ssn, job_id j, struct line *line)
{
    const struct model *m = ssn->m;
    task_id *from = line->at + line->n;
    uint32_t n = 0;

    for (task_id t = model_job(m, j)->pending; !id_none(t); t = model_task(m, t)->job_next) {
        if (backfill_is_best_effort(model_task(m, t))) {
            from[n++] = t;
        }
    }
    idsort(&from[0].i, n, task_first, ssn, ssn->mem);
    line->n += n;
}

/* All tasks in the order in which they are tried: all of one queue before the next queue. */
static struct line backfill_collect_tasks(struct session *ssn)
{
    const struct model *m = ssn->m;
    struct turns turns;
    struct line line = {0};
    uint32_t room = 0;
    job_id *jobs;
    queue_id q;
    job_id j;

    const uint32_t n = turns_collect(ssn, has_best_effort, &jobs);
    for (uint32_t i = 0; i < n; i++) {
        unpipeline(ssn, jobs[i]);
        room += model_job(m, jobs[i])->tally.pending_be;
    }
    line.at = hk_arena_array(ssn->mem, room, sizeof(line.at[0]));
    turns_init(&turns, ssn, jobs, n);
    while (turns_take_queue(&turns, &q)) {
        while (turns_take_job(&turns, q, &j)) {
            add_tasks(ssn, j, &line);
        }
    }
    return line;
}

static void backfill_place_task(struct placer *p, task_id t)
{
    struct session *ssn = p->ssn;
    const job_id j = model_task(ssn->m, t)->job;
    struct fit_log *log = NULL;
    struct reason why = {0};
    node_id n;

    ssn->at_job = j;
    if (!hooks_pre_predicate(ssn, t, &why)) {
        session_fit_set(ssn, t, place_refusal(p, HYPER_ROOT, why));
        return;
    }
    switch (select_node(ssn, t, &n, &log)) {
    case PLACE_IDLE:
        if (stmt_allocate(ssn, t, n) && hooks_job_ready(ssn, j)) {
            stmt_commit_job(ssn, j);
        }
        return;
    case PLACE_FUTURE: /* upstream binds here and overfills the node */
        stmt_pipeline(ssn, t, n, false);
        return;
    case PLACE_NONE:
        if (log) {
            session_fit_set(ssn, t, log);
        }
        return;
    }
}

static void backfill_run(struct session *ssn, const void *args)
{
    const struct line line = backfill_collect_tasks(ssn);
    struct placer placer;

    if (line.n == 0) {
        return;
    }
    placer_init(&placer, ssn);
    select_begin(ssn, HYPER_ROOT);
    for (uint32_t i = 0; i < line.n && !session_over_budget(ssn); i++) {
        backfill_place_task(&placer, line.at[i]);
    }
}

static const struct opt opts[] = {
    OPT_ERROR_CACHE,
};

const struct action action_backfill = {
    .name = "backfill",
    .about = "place best-effort tasks",
    .opts = opts,
    .nopt = HK_LEN(opts),
    .run = backfill_run,
};
