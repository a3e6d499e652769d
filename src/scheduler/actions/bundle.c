// SPDX-License-Identifier: Apache-2.0
// Bundles of victims; see bundle.h. Pure functions of a job's counts, called by gang_evict.c.

#include "scheduler/actions/bundle.h"

#include <math.h>

/* How much a job can lose before its gang breaks; counts down as tasks are evicted. */
struct spare {
    const struct model *m;
    const struct job *job;
    int64_t job_left;
    bool by_role;
    int64_t *role_left;  /* by role of the job, where it has a minimum */
    int64_t *ready_subs; /* by policy, the default sub-job's last */
    sub_id *broken;      /* ready sub-jobs that already lost a member */
    uint32_t nbroken;
};

static uint32_t bundle_policy_index(const struct spare *s, const struct sub_job *sub)
{
    return sub->policy == ID_NONE ? s->job->policies.len : sub->policy;
}

static int64_t group_min(const struct spare *s, uint32_t group)
{
    return group == s->job->policies.len ? 0 : s->job->policies.at[group].min_groups;
}

static struct spare spare_of(const struct model *m, struct hk_arena *mem, job_id j, uint32_t ntask)
{
    const struct job *job = model_job(m, j);
    struct spare s = {
        .m = m,
        .job = job,
        .job_left = (int64_t)tally_ready(&job->tally) - job->min,
        .by_role = job->min >= job->role_min_total,
        .role_left = hk_arena_zalloc(mem, job->roles.len * sizeof(s.role_left[0])),
        .ready_subs = hk_arena_zalloc(mem, (job->policies.len + 1) * sizeof(s.ready_subs[0])),
        .broken = hk_arena_array(mem, ntask, sizeof(s.broken[0])),
    };

    for (uint32_t i = 0; i < job->roles.len; i++) {
        const struct role *r = &job->roles.at[i];
        s.role_left[i] = (int64_t)tally_ready(&r->tally) + r->tally.pending_be - r->min;
    }
    for (sub_id k = job->first_sub; !id_none(k); k = model_sub(m, k)->next) {
        s.ready_subs[bundle_policy_index(&s, model_sub(m, k))] += sub_counts_ready(model_sub(m, k));
    }
    return s;
}

/* The counter of the task's role, NULL when the role has no minimum to keep. */
static int64_t *role_left(const struct spare *s, const struct task *t)
{
    for (uint32_t i = 0; s->by_role && i < s->job->roles.len; i++) {
        if (s->job->roles.at[i].name == t->role) {
            return s->job->roles.at[i].min > 0 ? &s->role_left[i] : NULL;
        }
    }
    return NULL;
}

static bool is_broken(const struct spare *s, sub_id k)
{
    for (uint32_t i = 0; i < s->nbroken; i++) {
        if (id_eq(s->broken[i], k)) {
            return true;
        }
    }
    return !sub_counts_ready(model_sub(s->m, k));
}

static bool bundle_use_surplus(struct spare *s, task_id t)
{
    const struct task *task = model_task(s->m, t);
    int64_t *role = role_left(s, task);

    if (s->job_left <= 0 || (role && *role <= 0)) {
        return false;
    }
    if (s->job->policies.len > 0 && !is_broken(s, task->sub)) {
        const uint32_t group = bundle_policy_index(s, model_sub(s->m, task->sub));
        if (s->ready_subs[group] <= group_min(s, group)) {
            return false;
        }
        s->ready_subs[group]--;
        s->broken[s->nbroken++] = task->sub;
    }
    s->job_left--;
    if (role) {
        --*role;
    }
    return true;
}

uint32_t bundle_split(const struct model *m, struct hk_arena *mem, job_id j, const task_id *tasks,
                      uint32_t n, struct bundle ret[2])
{
    struct spare spare = spare_of(m, mem, j, n);
    struct bundle safe = {.job = j, .safe = true}, whole = {.job = j};
    const bool broken = spare.job_left < 0;
    uint32_t count = 0;

    safe.at = hk_arena_array(mem, n, sizeof(safe.at[0]));
    whole.at = hk_arena_array(mem, n, sizeof(whole.at[0]));
    for (uint32_t i = 0; i < n; i++) {
        if (broken || bundle_use_surplus(&spare, tasks[i])) {
            safe.at[safe.n++] = tasks[i];
        } else {
            whole.at[whole.n++] = tasks[i];
        }
    }
    if (safe.n > 0) {
        ret[count++] = safe;
    }
    if (whole.n > 0) {
        ret[count++] = whole;
    }
    return count;
}

void bundle_restrict(struct bundle *b, bool (*allowed)(const void *ctx, task_id t), const void *ctx)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < b->n; i++) {
        if (allowed(ctx, b->at[i])) {
            b->at[kept++] = b->at[i];
        }
    }
    b->n = b->safe || kept == b->n ? kept : 0;
}

double bundle_roi(const struct model *m, const struct bundle *b, const struct demand *need)
{
    const int64_t *total = job_vec(m, b->job, JV_TOTAL);
    double gain = 0, cost = 0;

    for (uint32_t d = 0; d < need->n; d++) {
        int64_t local = 0;
        if (need->v[d] <= 0) {
            continue;
        }
        for (uint32_t i = 0; i < b->n; i++) {
            local += shape_req(task_shape(m, b->at[i]), d);
        }
        gain += (double)HK_MIN(local, need->v[d]) / (double)need->v[d];
        cost += b->safe ? 0 : (double)total[d] / (double)need->v[d];
    }
    return cost == 0 ? INFINITY : gain / cost;
}
