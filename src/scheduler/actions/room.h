// SPDX-License-Identifier: Apache-2.0
// Making room for one task on one node by evicting others: who goes first, when to stop, and who
// may stay after all. Shared by preempt and reclaim.
#pragma once

#include "scheduler/session.h"

/* Whether the task may be a victim of the one that needs room. */
typedef bool room_candidate(const struct model *m, const struct task *victim,
                            const struct task *for_task);

/* Scratch for tasks of one node; grows in the cycle arena. */
struct room {
    struct session *ssn;
    const char *reason; /* of evictions: the action's name */
    task_id *at;
    uint32_t n, cap;
};

/* The job is one the session works with: it has a PodGroup and its queue exists. */
static inline bool room_in_session(const struct model *m, job_id j)
{
    return !id_none(j) && model_job(m, j)->has_pg && !id_none(model_job(m, j)->queue);
}

/* The queue, the amounts that will be free and every filter let the task onto the node. */
bool room_fits(struct session *ssn, task_id t, node_id n);
/* Collects candidates on the node in r->at. False when evicting all of them would not be enough. */
bool room_candidates(struct room *r, task_id t, node_id n, room_candidate *may);
/* Amounts that will be free on the node plus those of the tasks cover the request. */
bool room_covers(const struct model *m, task_id t, node_id n, const task_id *at, uint32_t nat);
/* Evicts as few of the victims as it can until the task fits; *ret_n of them, moved to the front of
 * v in the order of eviction. Zero when it fits anyway. False: nothing changed. */
bool room_make(struct room *r, task_id t, node_id n, task_id *v, uint32_t nv, uint32_t *ret_n);

/* ---- tasks known to find no room ---- */

/* What the answer depends on. Tasks of jobs that hold nothing yet and agree in all of this fare
 * alike; a job that holds something is known by its id. */
struct room_key {
    job_id job;
    queue_id queue;
    shape_id shape;
    ident_id ident;
    int32_t job_priority, task_priority, pod_priority;
    uint16_t flags;
    uint8_t preemptable, phase;
};

enum { ROOM_MEMO = 64 };

/* A failure stands until somebody succeeds. A search that looks at a sample of nodes counts for its
 * share; only when all were looked at is the matter settled. */
struct room_memo {
    struct {
        struct room_key key;
        uint64_t gen;
        uint32_t seen;
    } slot[ROOM_MEMO];
    uint64_t gen;
};

void room_memo_init(struct room_memo *memo);
struct room_key room_key_of(const struct model *m, task_id t, uint8_t phase);
bool room_memo_hopeless(const struct room_memo *memo, const struct session *ssn,
                        const struct room_key *k);
void room_memo_failed(struct room_memo *memo, const struct session *ssn, const struct room_key *k);
void room_memo_changed(struct room_memo *memo);

/* What was done for the job since the mark is sent off when it gives the whole job a place, and
 * taken back otherwise. */
void room_settle(struct room_memo *memo, struct session *ssn, job_id j, stmt_mark_t mark);
