// SPDX-License-Identifier: Apache-2.0
// Divides the window of a Volcano Job (pod_window.h) among its tasks: each task may create what the
// gang lacks, and its share of the pods without a node. Upstream creates all pods of an admitted
// job at once.
#include "controllers/job_priv.h"
#include "controllers/pod_window.h"

static int64_t sum_of_minimums(const struct api_job *job)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < job->tasks.len; i++) {
        sum += api_job_task_min(&job->tasks.at[i]);
    }
    return sum;
}

void job_window_read(const struct job_pass *p, struct job_window *ret)
{
    const struct api_job *job = &p->job;

    *ret = (struct job_window){
        .limited = pod_window_is_needed(api_job_replicas(job), job->min_available),
        .by_task = job->min_available >= sum_of_minimums(job),
        .share = HK_MAX(POD_WINDOW / HK_MAX((int32_t)job->tasks.len, 1), 1),
        .tasks = hk_arena_zalloc(p->t->mem, (job->tasks.len + 1) * sizeof(ret->tasks[0]))};
    for (uint32_t r = job_first_pod(p); r != HK_NONE; r = job_next_pod(p, r)) {
        const struct pod_digest *d = job_pod(p, r);
        const struct api_job_task *task = api_job_task_find(job, hk_str(d->task));

        if (task) {
            struct job_window_task *t = &ret->tasks[task - job->tasks.at];

            ret->have++;
            t->have++;
            t->waiting += pod_window_counts(d);
        }
    }
}

int32_t job_window_room(const struct job_pass *p, const struct job_window *w, uint32_t task)
{
    const struct job_window_task *t = &w->tasks[task];
    const int64_t missing = (int64_t)p->job.tasks.at[task].replicas - t->have;
    const int64_t lacking = w->by_task ? api_job_task_min(&p->job.tasks.at[task]) - t->have
                                       : (int64_t)p->job.min_available - w->have;
    const struct pod_window window = {
        .missing = missing, .lacking = lacking, .waiting = t->waiting, .size = w->share};

    return (int32_t)(w->limited ? pod_window_room(&window) : HK_MAX(missing, 0));
}

void job_window_made(struct job_window *w, uint32_t task)
{
    w->have++;
    w->tasks[task].have++;
    w->tasks[task].waiting++;
}

int32_t job_window_held_back(const struct job_pass *p)
{
    struct job_window w;
    int64_t held = 0;

    job_window_read(p, &w);
    if (!w.limited || w.have == 0) {
        return 0;
    }
    for (uint32_t i = 0; i < p->job.tasks.len; i++) {
        if (job_task_may_start(p, &p->job.tasks.at[i])) {
            held += HK_MAX((int64_t)p->job.tasks.at[i].replicas - w.tasks[i].have, 0);
        }
    }
    return (int32_t)HK_MIN(held, INT32_MAX / 2);
}
