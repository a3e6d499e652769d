// SPDX-License-Identifier: Apache-2.0
// The journal: every tentative change of a session, in order, so that it can be rewound to a mark.
// The model and the plugins see each change at once. Nothing is copied: undo applies the opposite,
// newest first. Committed changes become decisions. Changes neither committed nor rewound (a gang
// that is only pipelined) keep their room until the session ends.
#include "scheduler/stmt.h"
#include "scheduler/session_priv.h"

static struct op *stmt_push_op(struct session *ssn, struct op op)
{
    op.serial = ++ssn->serial;
    hk_vec_push(&ssn->ops, op);
    ssn->op_of[op.task.i] = ssn->ops.len;
    session_touch(ssn, op.task);
    return &ssn->ops.at[ssn->ops.len - 1];
}

stmt_mark_t stmt_mark(const struct session *ssn)
{
    return ssn->ops.len;
}

static bool stmt_place_task(struct session *ssn, task_id t, node_id n, enum op_kind kind,
                            bool evicted_for)
{
    const enum task_status to = kind == OP_ALLOCATE ? TASK_ALLOCATED : TASK_PIPELINED;
    const struct task *task = model_task(ssn->m, t);

    hk_assert(task->status == TASK_PENDING);
    if (id_none(task->job)) {
        return false;
    }
    model_task_move(ssn->m, t, to, n);
    if (!hooks_allocate(ssn, t)) {
        model_task_move(ssn->m, t, TASK_PENDING, NO_NODE);
        hooks_deallocate(ssn, t);
        return false;
    }
    stmt_push_op(ssn, (struct op){.task = t,
                                  .node = n,
                                  .prev_node = NO_NODE,
                                  .kind = (uint8_t)kind,
                                  .prev_status = TASK_PENDING,
                                  .evicted_for = evicted_for,
                                  .for_job = NO_JOB});
    return true;
}

bool stmt_allocate(struct session *ssn, task_id t, node_id n)
{
    return stmt_place_task(ssn, t, n, OP_ALLOCATE, false);
}

bool stmt_pipeline(struct session *ssn, task_id t, node_id n, bool evicted_for)
{
    return stmt_place_task(ssn, t, n, OP_PIPELINE, evicted_for);
}

void stmt_evict(struct session *ssn, task_id t, const char *reason, job_id for_job)
{
    struct task *task = model_task(ssn->m, t);
    const node_id n = task->node;
    const uint8_t from = task->status;

    model_task_view(ssn->m, t, false);
    model_task_move(ssn->m, t, TASK_RELEASING, n);
    task->flags |= TASK_EVICTED;
    hooks_deallocate(ssn, t);
    ssn->gains++;
    stmt_push_op(ssn, (struct op){.task = t,
                                  .node = n,
                                  .prev_node = n,
                                  .kind = OP_EVICT,
                                  .prev_status = from,
                                  .reason = reason,
                                  .for_job = for_job});
}

/* Restores the task's former state. Upstream's Statement.unevict makes every task Running, even one
 * that was only Bound. */
static void undo(struct session *ssn, const struct op *op)
{
    struct task *task = model_task(ssn->m, op->task);

    model_task_move(ssn->m, op->task, op->prev_status, op->prev_node);
    if (op->kind == OP_EVICT) {
        task->flags &= (uint16_t)~TASK_EVICTED;
        model_task_view(ssn->m, op->task, true);
        hooks_allocate(ssn, op->task);
    } else {
        hooks_deallocate(ssn, op->task);
    }
}

void stmt_rewind(struct session *ssn, stmt_mark_t mark)
{
    if (ssn->ops.len == mark) {
        return;
    }
    while (ssn->ops.len > mark) {
        const struct op op = hk_vec_pop(&ssn->ops);
        hk_assert(op.state != OP_COMMITTED);
        if (op.state == OP_OPEN) {
            ssn->last[op.task.i] = (struct last_tx){.status = model_task(ssn->m, op.task)->status,
                                                    .evicted_for = op.evicted_for,
                                                    .node = op.node};
            undo(ssn, &op);
        }
    }
    select_rewound(ssn);
}

static void stmt_commit_op(struct session *ssn, struct op *op, int64_t now_ns)
{
    ssn->last[op->task.i] = (struct last_tx){0};
    if (op->kind == OP_PIPELINE) {
        return;
    }
    if (op->kind == OP_ALLOCATE) {
        model_task_move(ssn->m, op->task, TASK_BINDING, op->node);
        meter_assume(ssn->opts.meter, ssn->m, op->task, now_ns);
    }
    op->state = OP_COMMITTED;
    hk_vec_push(&ssn->decisions, ((struct decision){.kind = op->kind,
                                                    .task = op->task,
                                                    .node = op->node,
                                                    .for_job = op->for_job,
                                                    .reason = op->reason}));
}

void stmt_commit(struct session *ssn, stmt_mark_t mark)
{
    const int64_t now_ns = meter_wall(ssn->opts.meter);
    const char *evicted_by = NULL;

    for (uint32_t k = mark; k < ssn->ops.len; k++) {
        if (ssn->ops.at[k].state == OP_OPEN) {
            const struct op *op = &ssn->ops.at[k];
            stmt_commit_op(ssn, &ssn->ops.at[k], now_ns);
            if (op->kind == OP_EVICT) {
                evicted_by = op->reason;
                meter_eviction(ssn->opts.meter, ssn->m, op->task, op->for_job, op->reason);
            }
        }
    }
    if (evicted_by) {
        meter_evicted(ssn->opts.meter, evicted_by);
    }
}

void stmt_commit_job(struct session *ssn, job_id j)
{
    const int64_t now_ns = meter_wall(ssn->opts.meter);
    const struct job *job = model_job(ssn->m, j);
    task_id next;

    /* The latest placements are first in the list, so the loop ends early. */
    for (task_id t = job->others; job->tally.n[TASK_ALLOCATED] > 0 && !id_none(t); t = next) {
        next = model_task(ssn->m, t)->job_next;
        if (model_task(ssn->m, t)->status == TASK_ALLOCATED) {
            stmt_commit_op(ssn, &ssn->ops.at[ssn->op_of[t.i] - 1], now_ns);
        }
    }
}

void stmt_unpipeline(struct session *ssn, task_id t)
{
    struct op *op = &ssn->ops.at[ssn->op_of[t.i] - 1];

    hk_assert(id_eq(op->task, t) && op->kind == OP_PIPELINE && op->state == OP_OPEN);
    undo(ssn, op);
    op->state = OP_UNDONE;
    ssn->gains++;
}

void stmt_promise(struct session *ssn, stmt_mark_t mark, job_id j)
{
    for (uint32_t k = mark; k < ssn->ops.len; k++) {
        struct op *op = &ssn->ops.at[k];
        op->evicted_for |= op->kind != OP_EVICT && id_eq(model_task(ssn->m, op->task)->job, j);
    }
}

struct saved_ops stmt_save(struct session *ssn, stmt_mark_t mark)
{
    struct saved_ops s = {.at = hk_arena_array(ssn->mem, ssn->ops.len - mark + 1, sizeof(*s.at))};

    for (uint32_t k = mark; k < ssn->ops.len; k++) {
        if (ssn->ops.at[k].state == OP_OPEN) {
            s.at[s.n++] = ssn->ops.at[k];
        }
    }
    return s;
}

bool stmt_replay(struct session *ssn, const struct saved_ops *s)
{
    for (uint32_t k = 0; k < s->n; k++) {
        const struct op *op = &s->at[k];
        bool ok = true;
        switch ((enum op_kind)op->kind) {
        case OP_ALLOCATE:
            ok = stmt_allocate(ssn, op->task, op->node);
            break;
        case OP_PIPELINE:
            ok = stmt_pipeline(ssn, op->task, op->node, op->evicted_for);
            break;
        case OP_EVICT:
            stmt_evict(ssn, op->task, op->reason, op->for_job);
            break;
        }
        if (!ok) {
            return false;
        }
    }
    return true;
}

void stmt_release(struct session *ssn)
{
    for (uint32_t k = ssn->ops.len; k-- > 0;) {
        struct op *op = &ssn->ops.at[k];
        if (op->state != OP_OPEN) {
            continue;
        }
        undo(ssn, op);
        if (op->evicted_for) {
            model_task_nominate(ssn->m, op->task, op->node);
        }
    }
}
