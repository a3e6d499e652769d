// SPDX-License-Identifier: Apache-2.0
// Makes room for one task on one node by evicting others: which victims first, when to stop, which
// may stay. Shared by preempt and reclaim.
#pragma once

#include "scheduler/session.h"
#include "scheduler/stmt.h"

/* Whether the task may be a victim of the one that needs room. */
typedef bool room_candidate(const struct model *m, const struct task *victim,
                            const struct task *for_task);

/* Whether to evict the victim; called right after its eviction entered the journal, so that the
 * model shows the state without it. */
typedef bool room_consent(struct session *ssn, task_id victim);

/* Scratch for tasks of one node; grows in the cycle arena. */
struct room {
    struct session *ssn;
    const char *reason;    /* of evictions: the action's name */
    room_consent *consent; /* NULL: all victims that plugins allow */
    bool watch_share;      /* check whether queues of victims are entitled to them */
    bool took_share;       /* result: room_make evicted such a victim */
    task_id *at;
    uint32_t n, cap;
};

/* The job takes part in the session: it has a PodGroup and its queue exists. */
static inline bool room_in_session(const struct model *m, job_id j)
{
    return !id_none(j) && model_job(m, j)->has_pg && !id_none(model_job(m, j)->queue);
}

/* Places are held for members that the gang lacks. Others may have been evicted for it, in vain if
 * it lost a member meanwhile: only more urgent jobs of its own queue take one. */
static inline bool room_gang_waits(const struct job *j)
{
    return j->tally.n[TASK_PIPELINED] > 0 && !job_counts_ready(j);
}

/* The queue, the amounts that will be free and every filter let the task onto the node. */
bool room_fits(struct session *ssn, task_id t, node_id n);
/* Collects candidates on the node in r->at. False when evicting all of them would not suffice. */
bool room_candidates(struct room *r, task_id t, node_id n, room_candidate *may);
/* Future free amounts of the node plus those of the tasks at[] cover the request. */
bool room_covers(const struct model *m, task_id t, node_id n, const task_id *at, uint32_t nat);
/* Evicts as few victims as possible until the task fits: *ret_n of them, moved to the front of v in
 * order of eviction; 0 when it fits anyway. False: nothing changed. */
bool room_make(struct room *r, task_id t, node_id n, task_id *v, uint32_t nv, uint32_t *ret_n);

/* ---- evictions that last ---- */

/* The queue of an evicted task held more than its share of a resource the task used, so it is not
 * entitled to have the task back. True where no plugin knows shares. See
 * docs/design/0011-evictions-end.md. */
bool room_beyond_share(struct session *ssn, task_id evicted);
/* Whether other queues may take what a queue holds beyond its share. */
bool room_queues_reclaim(const struct session *ssn);
/* The tasks of one job would take their queue beyond its share; asked once their victims are evicted
 * in the journal. A pod its queue has a right to (see room_beyond_share) does not make way for such
 * tasks where queues reclaim: others would reclaim those, the pod would get its place back after
 * that, and so on. */
bool room_leaves_share(struct session *ssn, const task_id *t, uint32_t n);
/* The victim could evict the task in turn; asked while the task counts as placed. */
typedef bool room_return(struct session *ssn, task_id victim, task_id t);
/* Pipelines the task onto the room of its victims. False, with nothing changed, when a plugin
 * refuses or a victim could take the room back; may_return NULL skips that check. */
bool room_occupy(struct session *ssn, task_id t, node_id n, const task_id *victims,
                 uint32_t nvictim, room_return *may_return);
/* Whether any task was evicted since the mark. */
bool room_was_paid(const struct session *ssn, stmt_mark_t mark);

/* ---- memo of tasks that find no room ---- */

/* What the answer depends on. Tasks of jobs without placed tasks that agree in all fields get the
 * same answer; a job with placed tasks is identified by its id. */
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

/* A failure is valid until some search succeeds. A search over a sample of nodes counts by its
 * size; the answer is final once all nodes were covered. */
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

/* Commits the changes since the mark if the whole job got a place, else undoes them. For a job that
 * fits without evictions the places are only reserved: allocate places it, in whatever order the
 * actions run. */
void room_settle(struct room_memo *memo, struct session *ssn, job_id j, stmt_mark_t mark);
