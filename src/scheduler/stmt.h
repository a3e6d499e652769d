// SPDX-License-Identifier: Apache-2.0
// The journal of a session: tentative changes, of which the newest is undone first. Each call moves
// tasks in the model at once and tells listening plugins; a rewind leaves model and plugins as they
// were at the mark. Actions mark before an attempt, and rewind or commit after it.
#pragma once

#include "scheduler/session.h"

/* A position in the journal. It is valid until the journal is rewound to an earlier one. */
typedef uint32_t stmt_mark_t;
stmt_mark_t stmt_mark(const struct session *ssn);

/* Places a Pending task on the node: Allocated uses idle room, Pipelined waits for room that is
 * being released. evicted_for: evictions made that room, so the node stays promised to the task
 * beyond the session. False, with nothing changed, when a plugin refuses or the task has no job. */
bool stmt_allocate(struct session *ssn, task_id t, node_id n);
bool stmt_pipeline(struct session *ssn, task_id t, node_id n, bool evicted_for);
/* Makes a task on a node Releasing, to make room for for_job (NO_JOB: for none). reason is the
 * action's name and must be static. Always succeeds; plugins were asked for victims before. */
void stmt_evict(struct session *ssn, task_id t, const char *reason, job_id for_job);

/* Undoes all changes since the mark, and records each task's undone placement (last_tx). None of
 * them may be committed. */
void stmt_rewind(struct session *ssn, stmt_mark_t mark);
/* Commits the changes since the mark: allocations become Binding, evictions are final, pipelined
 * tasks keep their room until the session ends. */
void stmt_commit(struct session *ssn, stmt_mark_t mark);
/* Commits every Allocated task of the job, whenever it was placed (backfill's dispatch). */
void stmt_commit_job(struct session *ssn, job_id j);
/* Undoes one pipelined task at any position in the journal. */
void stmt_unpipeline(struct session *ssn, task_id t);

/* The places found for the job since the mark are its own beyond the session, until it is bound. */
void stmt_promise(struct session *ssn, stmt_mark_t mark, job_id j);

/* A detached copy of the open operations since the mark, in the session's arena, and its replay. */
struct saved_ops {
    struct op *at;
    uint32_t n;
};
struct saved_ops stmt_save(struct session *ssn, stmt_mark_t mark);
/* False when an operation fails; those before it stay applied. */
bool stmt_replay(struct session *ssn, const struct saved_ops *s);
