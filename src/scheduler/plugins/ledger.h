// SPDX-License-Identifier: Apache-2.0
// Sums per queue that proportion and capacity keep during a session. The model's own sums count
// tasks that hold a node; these also count pipelined tasks, as Volcano's queue attributes do, and
// remember what the session has admitted. The plugin fills in limits and deserved shares.
#pragma once

#include "scheduler/session.h"

struct ledger_row {
    bool in;    /* takes part in this session */
    bool stale; /* share must be recomputed */
    double share;
    const char *refusal;        /* why it accepts no new work, NULL when it does */
    int64_t allocated[DIM_MAX]; /* pipelined tasks included */
    int64_t leaving[DIM_MAX];   /* held by evicted or deleted tasks until they are gone */
    /* Admitted but not running yet, minus what jobs hold beyond their minimum. */
    int64_t promised[DIM_MAX];
    struct rvec guarantee, deserved;
    struct rvec limit; /* "realCapability" */
};

struct ledger {
    struct ledger_row *at; /* by queue */
    uint32_t n, ndim;
    bool undeserving_full; /* a queue that deserves nothing has share 1, not 0 */
};

/* Rows of all queues as the model has them; those with jobs or pods are in, those not Open refuse. */
void ledger_open(struct ledger *l, struct session *ssn, bool undeserving_full);
/* Limits without a hierarchy: what guarantees of other queues leave, capped by the queue's
 * capability. */
void ledger_flat_limits(struct ledger *l, struct session *ssn);

/* The queue of the task's job, NO_QUEUE when it has no PodGroup or queue. */
queue_id ledger_queue(const struct model *m, task_id t);

static inline struct ledger_row *ledger_row(const struct ledger *l, queue_id q)
{
    return &l->at[q.i];
}

/* True when the queue accepts no new work; sets the job's message. */
static inline bool ledger_refuses(struct session *ssn, const struct ledger_row *r, job_id job)
{
    if (r->refusal) {
        ssn->job_msg[job.i] = r->refusal;
    }
    return r->refusal != NULL;
}

/* With the request added the queue stays within the limit, in all requested dimensions except
 * pods. */
static inline bool ledger_has_room(const struct ledger_row *r, const struct rvec *limit,
                                   const struct shape *s)
{
    for (uint32_t k = 0; k < s->nreq; k++) {
        const uint32_t d = s->req[k].dim;
        if (d != DIM_PODS && (double)(r->allocated[d] + s->req[k].v) > rvec_get(limit, d)) {
            return false;
        }
    }
    return true;
}

/* The same for binding at once: amounts of leaving tasks are not free yet. A task without room now
 * may still wait for it (pipelined). */
static inline bool ledger_has_room_now(const struct ledger_row *r, const struct shape *s)
{
    for (uint32_t k = 0; k < s->nreq; k++) {
        const uint32_t d = s->req[k].dim;
        if (d != DIM_PODS && r->leaving[d] > 0 &&
            (double)(r->allocated[d] + r->leaving[d] + s->req[k].v) > rvec_get(&r->limit, d)) {
            return false;
        }
    }
    return true;
}

/* The task got (sign 1) or lost (-1) its place. An evicted task moves from allocated to leaving
 * until it is gone. */
void ledger_move(struct ledger_row *r, const struct model *m, task_id t, int sign);

/* The largest ratio of allocated to deserved over all dimensions. */
double ledger_share(const struct ledger *l, struct ledger_row *r);

/* For reports; false when the queue takes no part, or is newer than the ledger. */
bool ledger_report(const struct ledger *l, queue_id q, struct queue_report *ret);

/* Dimensions where the job's minimum would exceed the queue's limit. */
uint64_t ledger_lacks(const struct model *m, const struct ledger_row *r, job_id job);
/* Adds what the job needs once it runs, without gated pods, to a dense sum. */
void ledger_promise(const struct model *m, job_id job, int64_t *sum);

void ledger_rvec(const struct ledger *l, const struct ledger_row *r, struct rvec *ret);
void shape_rvec(const struct shape *s, struct rvec *ret);
/* Adds the request to a dense sum. */
void shape_add(const struct shape *s, int64_t *sum);
/* The sum of the tasks' requests. */
void tasks_rvec(const struct model *m, const task_id *t, uint32_t n, struct rvec *ret);

/* "prefix: verb cpu, verb memory". Caches the last text: many jobs of a queue share one reason. */
struct names_text {
    uint64_t mask;
    const char *text;
};
const char *names_text(struct session *ssn, struct names_text *last, const char *prefix,
                       const char *verb, uint64_t mask);
