// SPDX-License-Identifier: Apache-2.0
// Queues and jobs taking turns; see turns.h. Used by every action that works job by job.

#include "scheduler/actions/turns.h"

#include "base/crumb.h"
#include "scheduler/actions/idsort.h"

static bool job_first(void *ctx, uint32_t a, uint32_t b)
{
    return hooks_job_order(ctx, (job_id){a}, (job_id){b}) < 0;
}

static bool queue_first(void *ctx, uint32_t a, uint32_t b)
{
    return hooks_queue_order(ctx, (queue_id){a}, (queue_id){b}) < 0;
}

static struct hk_heap heap_of(struct session *ssn, uint32_t cap, hk_heap_less *less)
{
    return (struct hk_heap){
        .at = hk_arena_array(ssn->mem, cap, sizeof(uint32_t)),
        .cap = cap,
        .fixed = true,
        .less = less,
        .ctx = ssn,
    };
}

void turns_init(struct turns *t, struct session *ssn, const job_id *jobs, uint32_t n)
{
    const struct model *m = ssn->m;
    const uint32_t nqueue = m->queues.len;
    uint32_t used = 0;

    *t = (struct turns){
        .ssn = ssn,
        .line = hk_arena_zalloc(ssn->mem, (size_t)nqueue * sizeof(t->line[0])),
    };
    for (uint32_t i = 0; i < n; i++) {
        t->line[model_job(m, jobs[i])->queue.i].n++;
    }
    uint32_t *at = hk_arena_array(ssn->mem, n, sizeof(at[0]));
    for (uint32_t q = 0; q < nqueue; q++) {
        t->line[q].at = at;
        at += t->line[q].n;
        used += t->line[q].n > 0;
        t->line[q].n = 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct job_line *line = &t->line[model_job(m, jobs[i])->queue.i];
        line->at[line->n++] = jobs[i].i;
    }
    t->queues = heap_of(ssn, used, queue_first);
    for (uint32_t q = 0; q < nqueue; q++) {
        if (t->line[q].n > 0) {
            hk_heap_push(&t->queues, q);
        }
    }
}

bool turns_take_queue(struct turns *t, queue_id *ret)
{
    if (t->queues.len == 0) {
        return false;
    }
    ret->i = hk_heap_pop(&t->queues);
    return true;
}

void turns_put_queue(struct turns *t, queue_id q)
{
    hk_heap_push(&t->queues, q.i);
}

bool turns_take_job(struct turns *t, queue_id q, job_id *ret)
{
    struct job_line *line = &t->line[q.i];

    if (!line->sorted) {
        idsort(line->at, line->n, job_first, t->ssn, t->ssn->mem);
        line->sorted = true;
    }
    const bool waiting = line->next < line->n;
    if (line->back.len > 0 &&
        (!waiting || job_first(t->ssn, line->back.at[0], line->at[line->next]))) {
        ret->i = hk_heap_pop(&line->back);
    } else if (waiting) {
        ret->i = line->at[line->next++];
    } else {
        t->ssn->at_job = NO_JOB;
        return false;
    }
    t->ssn->at_job = *ret;
    hk_crumb_moved();
    return true;
}

void turns_put_job(struct turns *t, queue_id q, job_id j)
{
    struct job_line *line = &t->line[q.i];

    if (!line->back.at) {
        line->back = heap_of(t->ssn, line->n, job_first);
    }
    hk_heap_push(&line->back, j.i);
}

uint32_t turns_collect(struct session *ssn, bool (*keep)(struct session *ssn, job_id j),
                       job_id **ret)
{
    job_id *jobs = hk_arena_array(ssn->mem, ssn->njob, sizeof(jobs[0]));
    uint32_t n = 0;

    for (uint32_t i = 0; i < ssn->njob; i++) {
        const job_id j = ssn->jobs[i];
        if (!job_is_pending(model_job(ssn->m, j)) && !hooks_job_valid(ssn, j) &&
            (!keep || keep(ssn, j))) {
            jobs[n++] = j;
        }
    }
    *ret = jobs;
    return n;
}
