// SPDX-License-Identifier: Apache-2.0
// Whose turn it is: queues in QueueOrder, the jobs of each in JobOrder. A job or queue that was
// taken comes back only when put back, and is then placed by its order of that moment. The keys of
// queues move while they wait (shares do), so queues sit in a heap as in Volcano; a waiting job's
// key does not, so those of a queue are sorted once, when its first turn comes.
#pragma once

#include "scheduler/session.h"

struct job_line {
    uint32_t *at;
    uint32_t n, next;
    bool sorted;
    struct hk_heap back; /* jobs put back */
};

struct turns {
    struct session *ssn;
    struct job_line *line; /* by queue */
    struct hk_heap queues; /* those with jobs */
};

/* Every job must have a queue. Memory comes from the session's arena. */
void turns_init(struct turns *t, struct session *ssn, const job_id *jobs, uint32_t n);
bool turns_take_queue(struct turns *t, queue_id *ret);
void turns_put_queue(struct turns *t, queue_id q);
bool turns_take_job(struct turns *t, queue_id q, job_id *ret);
void turns_put_job(struct turns *t, queue_id q, job_id j);

/* Jobs of the session that were admitted and are valid, for turns_init: those that keep says yes to
 * (NULL: all). */
uint32_t turns_collect(struct session *ssn, bool (*keep)(struct session *ssn, job_id j),
                       job_id **ret);
