// SPDX-License-Identifier: Apache-2.0
// drf: dominant resource fairness between jobs. The job whose largest share of any resource is
// smallest goes first, and may preempt jobs that hold more. Shares are computed from the model's
// sums on demand and cached until a task of the job moves. Fairness between queues
// (enableHierarchy) is in hdrf.c.
#include "scheduler/plugins/drf.h"

#include "scheduler/plugins/hdrf.h"

#define SHARE_DELTA 1e-6

extern const struct plugin plugin_drf;

static void drf_open(struct session *ssn, void *self)
{
    struct drf *s = self;
    const struct model *m = ssn->m;

    s->ndim = m->dims.n;
    RVEC_EACH(d, rvec_names(&ssn->total))
    {
        s->dom[s->ndom++] = (uint32_t)d;
        s->total[d] = ssn->total.v[d];
    }
    sparse_init(&s->extra_jobs, ssn->mem, m->jobs.len);
    sparse_init(&s->victim_jobs, ssn->mem, m->jobs.len);
    /* Not zeroed: untouched rows cost only address space. */
    s->extra = hk_arena_array(ssn->mem, m->jobs.len, s->ndim * sizeof(*s->extra));
    s->pipelined = hk_arena_zalloc(ssn->mem, (m->tasks.len / 64 + 1) * sizeof(*s->pipelined));
    s->share = hk_arena_array(ssn->mem, m->jobs.len, sizeof(*s->share));
    for (uint32_t k = 0; k < m->jobs.len; k++) {
        s->share[k] = -1;
    }
    if (conf_hierarchy(ssn->conf, &plugin_drf)) {
        s->tree = hdrf_new(ssn, s);
    }
}

void drf_job_alloc(const struct drf *s, const struct model *m, job_id j, int64_t *ret)
{
    const int64_t *base = job_vec(m, j, JV_ALLOC);
    const int64_t *extra = sparse_has(&s->extra_jobs, j.i)
                               ? s->extra + (size_t)s->extra_jobs.slot[j.i] * s->ndim
                               : NULL;

    for (uint32_t d = 0; d < s->ndim; d++) {
        ret[d] = base[d] + (extra ? extra[d] : 0);
    }
}

double drf_dominant(const struct drf *s, const int64_t *amounts)
{
    double most = 0;

    for (uint32_t k = 0; k < s->ndom; k++) {
        const double part = (double)amounts[s->dom[k]] / s->total[s->dom[k]];
        most = HK_MAX(most, part);
    }
    return most;
}

double drf_job_share(struct drf *s, const struct model *m, job_id j)
{
    int64_t alloc[DIM_MAX];

    if (s->share[j.i] < 0) {
        drf_job_alloc(s, m, j, alloc);
        s->share[j.i] = drf_dominant(s, alloc);
    }
    return s->share[j.i];
}

void drf_shift(struct drf *s, job_id j, const struct shape *shape, int sign)
{
    bool fresh;
    int64_t *extra = s->extra + (size_t)sparse_add(&s->extra_jobs, j.i, &fresh) * s->ndim;

    if (fresh) {
        memset(extra, 0, s->ndim * sizeof(*extra));
    }
    for (uint32_t k = 0; k < shape->nreq; k++) {
        extra[shape->req[k].dim] += sign * shape->req[k].v;
    }
    s->share[j.i] = -1;
}

static int drf_job_order(struct session *ssn, void *self, job_id a, job_id b)
{
    const double l = drf_job_share(self, ssn->m, a), r = drf_job_share(self, ssn->m, b);

    return (l > r) - (l < r);
}

static void drf_subtract_request(int64_t *amounts, const struct shape *s)
{
    for (uint32_t k = 0; k < s->nreq; k++) {
        amounts[s->req[k].dim] -= s->req[k].v;
    }
}

/* A candidate is a victim while its job would still hold at least the preemptor's share without it.
 * As upstream, a candidate that is spared counts as evicted for later candidates of its job. */
static enum vote drf_preemptable(struct session *ssn, void *self, task_id preemptor,
                                 struct victims *v)
{
    struct drf *s = self;
    const struct model *m = ssn->m;
    int64_t mine[DIM_MAX];

    if (!victim_job(m, preemptor)) {
        return PERMIT;
    }
    drf_job_alloc(s, m, model_task(m, preemptor)->job, mine);
    for (uint32_t k = 0; k < task_shape(m, preemptor)->nreq; k++) {
        const struct amount *a = &task_shape(m, preemptor)->req[k];
        mine[a->dim] += a->v;
    }
    const double ls = drf_dominant(s, mine);

    const struct hk_arena_mark mark = hk_arena_mark(ssn->mem);
    int64_t *left = hk_arena_array(ssn->mem, v->n, s->ndim * sizeof(*left));

    s->victim_jobs.n = 0;
    for (uint32_t k = 0; k < v->n; k++) {
        const task_id t = v->in[k];
        const job_id job = model_task(m, t)->job;
        bool fresh;

        if (!victim_job(m, t)) {
            continue;
        }
        int64_t *theirs = left + (size_t)sparse_add(&s->victim_jobs, job.i, &fresh) * s->ndim;
        if (fresh) {
            drf_job_alloc(s, m, job, theirs);
        }
        drf_subtract_request(theirs, task_shape(m, t));
        if (ls - drf_dominant(s, theirs) <= SHARE_DELTA) {
            victims_keep(v, t);
        }
    }
    hk_arena_rewind(ssn->mem, mark);
    return PERMIT;
}

/* The model's sums already contain the change; amounts of pipelined tasks are kept here. */
static bool drf_allocate(struct session *ssn, void *self, task_id t)
{
    struct drf *s = self;
    const struct task *task = model_task(ssn->m, t);

    if (id_none(task->job)) {
        return true;
    }
    s->share[task->job.i] = -1;
    if (task->status == TASK_PIPELINED) {
        s->pipelined[t.i / 64] |= 1ULL << (t.i % 64);
        drf_shift(s, task->job, task_shape(ssn->m, t), 1);
    }
    if (s->tree) {
        hdrf_moved(s->tree, ssn->m, t, 1);
    }
    return true;
}

static void drf_deallocate(struct session *ssn, void *self, task_id t)
{
    struct drf *s = self;
    const struct task *task = model_task(ssn->m, t);
    const uint64_t bit = 1ULL << (t.i % 64);

    if (id_none(task->job)) {
        return;
    }
    s->share[task->job.i] = -1;
    if (s->pipelined[t.i / 64] & bit) {
        s->pipelined[t.i / 64] &= ~bit;
        drf_shift(s, task->job, task_shape(ssn->m, t), -1);
    }
    if (s->tree) {
        hdrf_moved(s->tree, ssn->m, t, -1);
    }
}

static int drf_queue_order(struct session *ssn, void *self, queue_id a, queue_id b)
{
    struct drf *s = self;

    return s->tree ? hdrf_queue_order(s->tree, ssn->m, a, b) : 0;
}

static enum vote drf_reclaimable(struct session *ssn, void *self, task_id reclaimer,
                                 struct victims *v)
{
    struct drf *s = self;

    if (!s->tree) {
        return ABSTAIN;
    }
    hdrf_reclaimable(s->tree, ssn->m, reclaimer, v);
    return PERMIT;
}

const struct plugin plugin_drf = {
    .name = "drf",
    .about = "dominant resource fairness between jobs and, with enableHierarchy, queues",
    .state_size = sizeof(struct drf),
    .own_hierarchy = true,
    .open = drf_open,
    .job_order = drf_job_order,
    .queue_order = drf_queue_order,
    .preemptable = drf_preemptable,
    .reclaimable = drf_reclaimable,
    .allocate = drf_allocate,
    .deallocate = drf_deallocate,
};
