// SPDX-License-Identifier: Apache-2.0
// Reservations, see reserve.h. They are ordinary pipeline operations at the bottom of the journal;
// this file only remembers which, and takes them back one by one.
#include "scheduler/reserve.h"

#include "scheduler/actions/idsort.h"
#include "scheduler/session_priv.h"

struct reserve {
    task_id *at;
    uint32_t n;
    uint64_t *jobs; /* bit per job row that holds one */
};

static bool wants_room(const struct model *m, task_id t)
{
    const struct task *task = model_task(m, t);

    return task->used && task->status == TASK_PENDING &&
           !(task->flags & (TASK_GATED | TASK_HELD)) && !id_none(task->nominated) &&
           (m->nodes.flags[task->nominated.i] & NODE_KNOWN) && !id_none(task->job) &&
           model_job(m, task->job)->has_pg && !id_none(model_job(m, task->job)->queue);
}

/* Forgets tasks that were placed or are gone; each is listed once. */
static void drop_stale(struct model *m)
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < m->nominated.len; k++) {
        struct task *task = model_task(m, m->nominated.at[k]);
        task->flags &= (uint16_t)~TASK_NOMINATED;
        if (wants_room(m, m->nominated.at[k])) {
            task->flags |= TASK_NOMINATED;
            m->nominated.at[n++] = m->nominated.at[k];
        }
    }
    m->nominated.len = n;
}

static bool goes_before(void *ctx, uint32_t a, uint32_t b)
{
    struct session *ssn = ctx;
    const job_id ja = ssn->m->tasks.at[a].job, jb = ssn->m->tasks.at[b].job;

    return id_eq(ja, jb) ? hooks_task_order(ssn, (task_id){a}, (task_id){b}) < 0
                         : hooks_job_order(ssn, ja, jb) < 0;
}

static bool hold(struct session *ssn, task_id t)
{
    const struct model *m = ssn->m;
    const node_id n = model_task(m, t)->nominated;
    node_id one = n;

    return model_fits_future(m, task_shape(m, t), n) &&
           hooks_filter(ssn, t, FILTER_PLACE, &one, 1, NULL) == 1 &&
           stmt_pipeline(ssn, t, n, false);
}

void reserve_open(struct session *ssn)
{
    struct model *m = ssn->m;
    struct reserve *r = hk_arena_zalloc(ssn->mem, sizeof(*r));
    task_id *all;

    ssn->reserve = r;
    drop_stale(m);
    if (m->nominated.len == 0) {
        return;
    }
    all = hk_arena_array(ssn->mem, m->nominated.len, sizeof(*all));
    memcpy(all, m->nominated.at, m->nominated.len * sizeof(*all));
    idsort(&all[0].i, m->nominated.len, goes_before, ssn, ssn->mem);
    r->at = hk_arena_array(ssn->mem, m->nominated.len, sizeof(*r->at));
    r->jobs = hk_arena_zalloc(ssn->mem, (m->jobs.len / 64 + 1) * sizeof(*r->jobs));
    for (uint32_t k = 0; k < m->nominated.len; k++) {
        const job_id j = model_task(m, all[k])->job;
        if (hold(ssn, all[k])) {
            r->at[r->n++] = all[k];
            r->jobs[j.i / 64] |= 1ULL << (j.i % 64);
        }
    }
}

bool reserve_has(const struct session *ssn, job_id j)
{
    const struct reserve *r = ssn->reserve;

    return r->n > 0 && ((r->jobs[j.i / 64] >> (j.i % 64)) & 1);
}

/* Takes back every reservation of the jobs that drop() says yes to. */
static bool take_back(struct session *ssn,
                      bool (*drop)(struct session *ssn, job_id held, job_id by), job_id by)
{
    struct reserve *r = ssn->reserve;
    uint32_t n = 0;
    bool any = false;

    for (uint32_t k = 0; k < r->n; k++) {
        const job_id j = model_task(ssn->m, r->at[k])->job;
        if (drop(ssn, j, by)) {
            r->jobs[j.i / 64] &= ~(1ULL << (j.i % 64));
            stmt_unpipeline(ssn, r->at[k]);
            any = true;
        } else {
            r->at[n++] = r->at[k];
        }
    }
    r->n = n;
    return any;
}

static bool is_own(struct session *ssn, job_id held, job_id by)
{
    return id_eq(held, by);
}

static bool is_lower(struct session *ssn, job_id held, job_id by)
{
    return model_job(ssn->m, held)->priority < model_job(ssn->m, by)->priority;
}

void reserve_redeem(struct session *ssn, job_id j)
{
    if (reserve_has(ssn, j)) {
        take_back(ssn, is_own, j);
    }
}

bool reserve_yield(struct session *ssn, job_id j)
{
    return take_back(ssn, is_lower, j);
}
