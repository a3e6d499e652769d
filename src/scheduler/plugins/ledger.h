// SPDX-License-Identifier: Apache-2.0
// The books of queues that proportion and capacity keep during a session. The model's own sums
// count tasks that hold a node; these count pipelined tasks too, as Volcano's queue attributes do,
// and remember what the session has admitted. Limits and deserved shares are the plugin's to fill
// in.
#pragma once

#include "scheduler/session.h"

struct ledger_row {
    bool in;    /* takes part in this session */
    bool stale; /* share is to be worked out again */
    double share;
    const char *refusal;        /* why it takes no new work at all, NULL when it does */
    int64_t allocated[DIM_MAX]; /* pipelined tasks included */
    /* Admitted but not running yet, less what jobs hold beyond their minimum. */
    int64_t promised[DIM_MAX];
    struct rvec guarantee, deserved;
    struct rvec limit; /* "realCapability" */
};

struct ledger {
    struct ledger_row *at; /* by queue */
    uint32_t n, ndim;
    bool undeserving_full; /* a queue that deserves nothing has share 1, not 0 */
};

/* Rows of all queues as the model has them; those with jobs are in, those not Open refuse. */
void ledger_open(struct ledger *l, struct session *ssn, bool undeserving_full);
/* Limits without a tree: what the guarantees of others leave, capped by the queue's capability. */
void ledger_flat_limits(struct ledger *l, struct session *ssn);

/* The queue of the task's job, NO_QUEUE for orphans. */
queue_id ledger_queue(const struct model *m, task_id t);

static inline struct ledger_row *ledger_row(const struct ledger *l, queue_id q)
{
    return &l->at[q.i];
}

/* True when the queue takes no new work at all; the job is told why. */
static inline bool ledger_refuses(struct session *ssn, const struct ledger_row *r, job_id job)
{
    if (r->refusal) {
        ssn->job_msg[job.i] = r->refusal;
    }
    return r->refusal != NULL;
}

/* Holding the request as well would stay within a limit, in the dimensions it asks for but pods. */
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

/* The task got (sign 1) or lost (-1) its place. */
static inline void ledger_move(struct ledger_row *r, const struct shape *s, int sign)
{
    for (uint32_t k = 0; k < s->nreq; k++) {
        r->allocated[s->req[k].dim] += sign * s->req[k].v;
    }
    r->stale = true;
}

/* The largest share of what it deserves that the queue holds in any dimension. */
double ledger_share(const struct ledger *l, struct ledger_row *r);

/* For reports; false when the queue takes no part, or is younger than the books. */
bool ledger_report(const struct ledger *l, queue_id q, struct queue_report *ret);

/* Dimensions in which the job's minimum would take the queue past its limit. */
uint64_t ledger_lacks(const struct model *m, const struct ledger_row *r, job_id job);
/* Adds what the job will need once it runs, gated pods left out, to a dense sum. */
void ledger_promise(const struct model *m, job_id job, int64_t *sum);

void ledger_rvec(const struct ledger *l, const struct ledger_row *r, struct rvec *ret);
void shape_rvec(const struct shape *s, struct rvec *ret);
/* What the tasks ask for together. */
void tasks_rvec(const struct model *m, const task_id *t, uint32_t n, struct rvec *ret);

/* "prefix: verb cpu, verb memory". The last text is kept: whole queues are refused for one reason.
 */
struct names_text {
    uint64_t mask;
    const char *text;
};
const char *names_text(struct session *ssn, struct names_text *last, const char *prefix,
                       const char *verb, uint64_t mask);
