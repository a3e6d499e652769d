// SPDX-License-Identifier: Apache-2.0
// Room that was freed for somebody stays his: a task nominated for a node after evictions is
// pipelined there when the next session opens, so that no job that merely sorts earlier walks into
// the gap (the "eviction without placement" and ping-pong reports against Volcano). Allocate gives
// a job its reservations back when its turn comes; a job of strictly higher priority that finds no
// place makes lower ones yield.
#pragma once

#include "scheduler/session.h"

/* Pipelines nominated tasks that still fit. Called by session_open when plugins are open. */
void reserve_open(struct session *ssn);
bool reserve_has(const struct session *ssn, job_id j);
/* Makes the job's reserved tasks Pending again, for it to place them as it sees fit. */
void reserve_redeem(struct session *ssn, job_id j);
/* Drops the reservations of jobs of lower priority than j's; false when there were none. */
bool reserve_yield(struct session *ssn, job_id j);
