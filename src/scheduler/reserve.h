// SPDX-License-Identifier: Apache-2.0
// Keeps freed room for the task it was freed for: a task nominated for a node after evictions is
// pipelined there when the next session opens, so that a job that sorts earlier cannot take the
// room (the "eviction without placement" and ping-pong reports against Volcano). Allocate returns a
// job's reservations when the job's turn comes; a job of strictly higher priority that finds no
// node makes lower ones of its queue yield. Room that preempt and reclaim found without evictions
// is kept in the same way within the session, for allocate to use if it runs later.
#pragma once

#include "scheduler/session.h"
#include "scheduler/stmt.h"

/* Pipelines nominated tasks that still fit. session_open calls it after opening plugins. */
void reserve_open(struct session *ssn);
/* Adds the tasks pipelined since the mark. */
void reserve_add(struct session *ssn, stmt_mark_t mark);
bool reserve_has(const struct session *ssn, job_id j);
/* Makes the job's reserved tasks Pending again, so that they can be placed anywhere. */
void reserve_redeem(struct session *ssn, job_id j);
/* The job has had its turn: reserves again what it redeemed last and did not use, so that nobody is
 * evicted beside room that is promised already. A gang that has not got all its places while no
 * victim is leaving any more will not get them by waiting: its promises are forgotten. */
void reserve_return(struct session *ssn, job_id j);
/* Drops the reservations of jobs of j's queue and lower priority; false when there were none. */
bool reserve_yield(struct session *ssn, job_id j);
/* Reserves again what the last reserve_yield dropped, where it still fits. False when the job has
 * taken some of it: that is forgotten. */
bool reserve_restore(struct session *ssn);
