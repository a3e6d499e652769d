// SPDX-License-Identifier: Apache-2.0
// enqueue: admits PodGroups, so that their pods get created and the other actions consider them.
// Queues alternate job by job; a refused job does not block the next one of its queue. Job validity
// is not checked: a group has no pods before it is admitted.

#include "scheduler/actions/turns.h"

static bool enqueue_job_is_admitted(struct session *ssn, job_id j)
{
    return !model_job(ssn->m, j)->has_minres || hooks_job_enqueueable(ssn, j);
}

static void enqueue_run(struct session *ssn, const void *args)
{
    job_id *jobs = hk_arena_array(ssn->mem, ssn->njob, sizeof(jobs[0]));
    uint32_t n = 0;
    struct turns turns;
    queue_id q;
    job_id j;

    for (uint32_t i = 0; i < ssn->njob; i++) {
        if (job_is_pending(model_job(ssn->m, ssn->jobs[i]))) {
            jobs[n++] = ssn->jobs[i];
        }
    }
    turns_init(&turns, ssn, jobs, n);
    while (!session_over_budget(ssn) && turns_take_queue(&turns, &q)) {
        if (!turns_take_job(&turns, q, &j)) {
            continue;
        }
        if (enqueue_job_is_admitted(ssn, j)) {
            hooks_job_enqueued(ssn, j);
            model_job_set_phase(ssn->m, j, PG_INQUEUE);
        }
        turns_put_queue(&turns, q);
    }
}

const struct action action_enqueue = {
    .name = "enqueue",
    .about = "admit PodGroups the cluster and their queue have room for",
    .run = enqueue_run,
};
