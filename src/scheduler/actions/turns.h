// SPDX-License-Identifier: Apache-2.0
// The order of turns: queues in QueueOrder, the jobs of each in JobOrder. A taken job or queue
// returns only when put back, at the position of that moment. Keys of waiting queues change (their
// shares do), so queues are in a heap, as in Volcano; keys of waiting jobs do not, so the jobs of a
// queue are sorted once, at its first turn.
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

/* Admitted, valid jobs of the session for which keep returns true (NULL: all), for turns_init. */
uint32_t turns_collect(struct session *ssn, bool (*keep)(struct session *ssn, job_id j),
                       job_id **ret);
