// SPDX-License-Identifier: Apache-2.0
// priority: orders jobs, sub-jobs and tasks by priority, and permits preemption only of lower
// priority. It has no say in reclaim between queues.
#include "scheduler/plugins/victims.h"

static int higher_first(int32_t a, int32_t b)
{
    return (a < b) - (a > b);
}

static int priority_job_order(struct session *ssn, void *self, job_id a, job_id b)
{
    return higher_first(model_job(ssn->m, a)->priority, model_job(ssn->m, b)->priority);
}

static int priority_sub_order(struct session *ssn, void *self, sub_id a, sub_id b)
{
    return higher_first(model_sub(ssn->m, a)->priority, model_sub(ssn->m, b)->priority);
}

static int priority_task_order(struct session *ssn, void *self, task_id a, task_id b)
{
    return higher_first(model_task(ssn->m, a)->priority, model_task(ssn->m, b)->priority);
}

/* Between jobs the job priorities decide, inside one job the task priorities. */
static enum vote priority_preemptable(struct session *ssn, void *self, task_id preemptor,
                                      struct victims *v)
{
    const struct model *m = ssn->m;
    const struct job *mine = victim_job(m, preemptor);

    for (uint32_t k = 0; mine && k < v->n; k++) {
        const struct job *theirs = victim_job(m, v->in[k]);

        if (!theirs) {
            continue;
        }
        const bool lower =
            theirs == mine ? model_task(m, v->in[k])->priority < model_task(m, preemptor)->priority
                           : theirs->priority < mine->priority;
        if (lower) {
            victims_keep(v, v->in[k]);
        }
    }
    return PERMIT;
}

static enum vote priority_evictable(struct session *ssn, void *self, enum evict_kind kind,
                                    job_id job, hyper_id domain, struct victims *v)
{
    if (kind == EVICT_GANG_RECLAIM) {
        victims_keep_all(v);
        return PERMIT;
    }
    for (uint32_t k = 0; k < v->n; k++) {
        const struct job *theirs = victim_job(ssn->m, v->in[k]);

        if (theirs && theirs->priority < model_job(ssn->m, job)->priority) {
            victims_keep(v, v->in[k]);
        }
    }
    return PERMIT;
}

/* Every task without a place counts, including best-effort and gated ones. */
static bool priority_job_starving(struct session *ssn, void *self, job_id job)
{
    const struct tally *t = &model_job(ssn->m, job)->tally;

    return tally_ready(t) + t->n[TASK_PIPELINED] < t->total;
}

const struct plugin plugin_priority = {
    .name = "priority",
    .about = "order jobs and tasks by priority and preempt only lower priority",
    .job_order = priority_job_order,
    .sub_order = priority_sub_order,
    .task_order = priority_task_order,
    .preemptable = priority_preemptable,
    .evictable = priority_evictable,
    .job_starving = priority_job_starving,
};
