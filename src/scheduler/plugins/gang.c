// SPDX-License-Identifier: Apache-2.0
// gang: a job starts with all of its minimum members or not at all, and evictions do not take a
// running job below that minimum. close.c writes the conditions that users see.
#include "scheduler/plugins/victims.h"

struct gang {
    struct sparse jobs; /* of the candidates of one call */
};

static void gang_open(struct session *ssn, void *self)
{
    struct gang *g = self;

    sparse_init(&g->jobs, ssn->mem, ssn->m->jobs.len);
}

static bool group_exists(const struct sub_job *s)
{
    return s->tally.total > 0;
}

/* Whether every policy has as many sub-jobs that pass the test as it requires. */
static bool groups_enough(const struct model *m, const struct job *j,
                          bool (*passes)(const struct sub_job *))
{
    for (uint32_t p = 0; p < j->policies.len; p++) {
        int32_t missing = j->policies.at[p].min_groups;

        for (sub_id s = j->first_sub; missing > 0 && !id_none(s); s = model_sub(m, s)->next) {
            const struct sub_job *sub = model_sub(m, s);
            missing -= sub->policy == p && passes(sub);
        }
        if (missing > 0) {
            return false;
        }
    }
    return true;
}

static const char *gang_job_valid(struct session *ssn, void *self, job_id job)
{
    const struct job *j = model_job(ssn->m, job);
    const int64_t valid = tally_valid(&j->tally);

    if (!job_roles_valid(j)) {
        return "Not enough valid pods of each task for gang-scheduling";
    }
    if (!groups_enough(ssn->m, j, group_exists)) {
        return "Not enough valid subGroups of each task for gang-scheduling";
    }
    if (valid < j->min) {
        return hk_arena_printf(ssn->mem,
                               "Not enough valid tasks for gang-scheduling, valid: %lld, min: %d",
                               (long long)valid, j->min);
    }
    return NULL;
}

/* Keeps candidates while their job stays at or above its minimum without them. */
static enum vote gang_spare(struct session *ssn, void *self, task_id evictor, struct victims *v)
{
    struct gang *g = self;
    const struct model *m = ssn->m;
    const struct hk_arena_mark mark = hk_arena_mark(ssn->mem);
    int64_t *left = hk_arena_array(ssn->mem, v->n, sizeof(*left));

    g->jobs.n = 0;
    for (uint32_t k = 0; k < v->n; k++) {
        const struct job *j = victim_job(m, v->in[k]);
        bool fresh;

        if (!j) {
            continue;
        }
        const uint32_t slot = sparse_add(&g->jobs, model_task(m, v->in[k])->job.i, &fresh);
        if (fresh) {
            left[slot] = tally_ready(&j->tally);
        }
        if (left[slot] > j->min) {
            left[slot]--;
            victims_keep(v, v->in[k]);
        }
    }
    hk_arena_rewind(ssn->mem, mark);
    return PERMIT;
}

/* The bundles of the gang actions respect minimums already. */
static enum vote gang_evictable(struct session *ssn, void *self, enum evict_kind kind, job_id job,
                                hyper_id domain, struct victims *v)
{
    victims_keep_all(v);
    return PERMIT;
}

/* The job runs but lost members: a node failed, or a bind failed. */
static bool is_broken(const struct job *j)
{
    return !job_counts_ready(j) && j->tally.n[TASK_RUNNING] + j->tally.n[TASK_BOUND] > 0;
}

/* A job below its minimum goes before a ready one. Roles and sub-groups do not count here. Among
 * jobs below their minimum, one with running members that wait goes before new work (upstream
 * leaves that to age). */
static int gang_job_order(struct session *ssn, void *self, job_id a, job_id b)
{
    const struct job *ja = model_job(ssn->m, a), *jb = model_job(ssn->m, b);
    const int ready = job_counts_ready(ja) - job_counts_ready(jb);

    return ready != 0 ? ready : is_broken(jb) - is_broken(ja);
}

static int gang_sub_order(struct session *ssn, void *self, sub_id a, sub_id b)
{
    return sub_counts_ready(model_sub(ssn->m, a)) - sub_counts_ready(model_sub(ssn->m, b));
}

static bool gang_job_ready(struct session *ssn, void *self, job_id job)
{
    const struct job *j = model_job(ssn->m, job);

    return job_counts_ready(j) && job_roles_ready(j) && groups_enough(ssn->m, j, sub_counts_ready);
}

static enum vote gang_job_pipelined(struct session *ssn, void *self, job_id job)
{
    const struct job *j = model_job(ssn->m, job);
    const bool enough = job_counts_pipelined(j) && job_roles_pipelined(j) &&
                        groups_enough(ssn->m, j, sub_counts_pipelined);

    return enough ? PERMIT : REJECT;
}

static bool gang_sub_ready(struct session *ssn, void *self, sub_id s)
{
    return sub_counts_ready(model_sub(ssn->m, s));
}

static enum vote gang_sub_pipelined(struct session *ssn, void *self, sub_id s)
{
    return sub_counts_pipelined(model_sub(ssn->m, s)) ? PERMIT : REJECT;
}

static bool gang_job_starving(struct session *ssn, void *self, job_id job)
{
    return job_counts_starving(model_job(ssn->m, job));
}

const struct plugin plugin_gang = {
    .name = "gang",
    .about = "start all of a job's minimum members or none",
    .state_size = sizeof(struct gang),
    .open = gang_open,
    .job_valid = gang_job_valid,
    .job_order = gang_job_order,
    .sub_order = gang_sub_order,
    .job_ready = gang_job_ready,
    .job_pipelined = gang_job_pipelined,
    .sub_ready = gang_sub_ready,
    .sub_pipelined = gang_sub_pipelined,
    .job_starving = gang_job_starving,
    .preemptable = gang_spare,
    .reclaimable = gang_spare,
    .evictable = gang_evictable,
};
