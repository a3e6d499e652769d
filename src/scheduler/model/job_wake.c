// SPDX-License-Identifier: Apache-2.0
// Which jobs the next session considers. Once per session, settle computes what admitted jobs still
// need; a job that cannot be placed is parked until something it waits for changes.
#include "scheduler/model/model_priv.h"

/* A queue holds or requests less now: limits and shares of other queues may have changed. */
void job_wake_queue(struct model *m)
{
    if (!m->in_session) {
        m->wake.queue = ++m->version;
    }
}

/* ---- settling: what admitted jobs still need ---- */

/* The part of minResources not yet allocated, minus gated pods (docs/reference/scheduler.md section
 * 2.4). ephemeral-storage does not count, as upstream. */
static void owed(const struct model *m, job_id job, bool minus_alloc, int64_t *ret)
{
    const struct job *j = model_job(m, job);
    const int64_t *min = job_vec(m, job, JV_MINRES), *alloc = job_vec(m, job, JV_ALLOC);
    const int64_t *gated = job_vec(m, job, JV_GATED);

    for (uint32_t d = 0; d < m->dims.n; d++) {
        int64_t v = min[d];
        if (minus_alloc) {
            v = hk_str_is(m->dims.text[d], "ephemeral-storage") ? 0 : v - alloc[d];
        }
        if (j->ngated > 0) {
            v -= gated[d];
        }
        ret[d] = HK_MAX(v, 0);
    }
}

static void settle_job(struct model *m, job_id job)
{
    const struct job *j = model_job(m, job);
    const bool runs = j->phase == PG_RUNNING && (int64_t)tally_allocated(&j->tally) >= j->min;
    int64_t inq[DIM_MAX] = {0}, over[DIM_MAX] = {0}, elastic[DIM_MAX] = {0};
    struct queue *q = id_none(j->queue) ? NULL : model_queue(m, j->queue);
    int64_t *old_inq = job_vec(m, job, JV_INQ), *old_elastic = job_vec(m, job, JV_ELASTIC);
    int64_t *old_over = job_vec(m, job, JV_OVER);
    bool less = false;

    if (q && j->has_minres && (j->phase == PG_INQUEUE || runs)) {
        owed(m, job, true, inq);
        owed(m, job, j->phase != PG_INQUEUE, over);
    }
    for (uint32_t d = 0; d < m->dims.n; d++) {
        if (q) {
            elastic[d] = HK_MAX(job_vec(m, job, JV_ALLOC)[d] - job_vec(m, job, JV_MINRES)[d], 0);
            q->inqueue[d] += inq[d] - old_inq[d];
            q->elastic[d] += elastic[d] - old_elastic[d];
        }
        m->over_inqueue[d] += over[d] - old_over[d];
        less = less || inq[d] < old_inq[d] || over[d] < old_over[d];
        old_inq[d] = inq[d];
        old_elastic[d] = elastic[d];
        old_over[d] = over[d];
    }
    if (less) {
        job_wake_queue(m);
    }
}

void model_settle(struct model *m)
{
    for (uint32_t k = 0; k < m->dirty_jobs.len; k++) {
        const job_id job = m->dirty_jobs.at[k];
        m->jobs.at[job.i].dirty = false; /* the job may have been deleted since */
        if (m->jobs.at[job.i].used) {
            settle_job(m, job);
            job_refresh_active(m, job);
        }
    }
    hk_vec_clear(&m->dirty_jobs);
}

/* ---- parking ---- */

void model_job_park(struct model *m, job_id job, uint64_t dims, uint8_t why, int64_t due_ns)
{
    model_job(m, job)->park =
        (struct park){.at = m->version, .dims = dims, .why = why, .due_ns = due_ns};
}

bool model_job_awake(const struct model *m, job_id job)
{
    const struct job *j = model_job(m, job);
    const struct park *p = &j->park;

    if (p->at == 0 || j->changed > p->at) {
        return true;
    }
    if (((p->why & WAKE_NODE) && m->wake.node > p->at) ||
        ((p->why & WAKE_PODS) && m->wake.pods > p->at) ||
        ((p->why & WAKE_VICTIM) && m->wake.victim > p->at) ||
        ((p->why & WAKE_VOLUME) && m->wake.volume > p->at) ||
        ((p->why & WAKE_QUEUE) && m->wake.queue > p->at)) {
        return true;
    }
    for (uint64_t d = p->dims; d; d &= d - 1) {
        if (m->wake.gain[__builtin_ctzll(d)] > p->at) {
            return true;
        }
    }
    return false;
}

uint64_t model_wake(const struct model *m)
{
    uint64_t v = HK_MAX(HK_MAX(m->wake.node, m->wake.pods), HK_MAX(m->wake.queue, m->wake.victim));

    v = HK_MAX(v, m->wake.volume);
    for (uint32_t d = 0; d < m->dims.n; d++) {
        v = HK_MAX(v, m->wake.gain[d]);
    }
    return v;
}

void model_wake_up(struct model *m, unsigned why)
{
    const uint64_t now = ++m->version;

    m->wake.node = why & WAKE_NODE ? now : m->wake.node;
    m->wake.pods = why & WAKE_PODS ? now : m->wake.pods;
    m->wake.queue = why & WAKE_QUEUE ? now : m->wake.queue;
    m->wake.victim = why & WAKE_VICTIM ? now : m->wake.victim;
    m->wake.volume = why & WAKE_VOLUME ? now : m->wake.volume;
}
