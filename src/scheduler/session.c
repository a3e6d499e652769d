// SPDX-License-Identifier: Apache-2.0
// Opens and closes a session: selects its jobs, normalises topology, creates plugin states from
// their options, and fills the hook arrays. Also has the checks of a job that several plugins use.
#include "scheduler/reserve.h"
#include "scheduler/session_priv.h"

/* ---- memory kept between cycles ---- */

struct scheduler_mem *scheduler_mem_new(uint64_t seed)
{
    struct scheduler_mem *sm = hk_zalloc(sizeof(*sm));

    hk_rand_seed(&sm->rand, seed);
    sm->select = select_new();
    return sm;
}

void scheduler_mem_free(struct scheduler_mem *sm)
{
    if (!sm) {
        return;
    }
    hk_arena_fini(&sm->arena);
    hk_vec_fini(&sm->ops);
    hk_vec_fini(&sm->decisions);
    hk_vec_fini(&sm->gates);
    hk_vec_fini(&sm->touched);
    hk_free(sm->last);
    hk_free(sm->fit);
    hk_free(sm->op_of);
    select_free(sm->select);
    hk_free(sm);
}

static void *grow_column(void *p, uint32_t from, uint32_t to, size_t size)
{
    char *q = hk_realloc_array(p, to, size);
    memset(q + (size_t)from * size, 0, (size_t)(to - from) * size);
    return q;
}

static void columns_ready(struct scheduler_mem *sm, const struct model *m)
{
    const uint32_t want = m->tasks.cap;

    for (uint32_t k = 0; k < sm->touched.len; k++) {
        const uint32_t i = sm->touched.at[k].i;
        sm->last[i] = (struct last_tx){0};
        sm->fit[i] = NULL;
        sm->op_of[i] = 0;
    }
    hk_vec_clear(&sm->touched);
    if (want > sm->ntask) {
        sm->last = grow_column(sm->last, sm->ntask, want, sizeof(*sm->last));
        sm->fit = grow_column(sm->fit, sm->ntask, want, sizeof(*sm->fit));
        sm->op_of = grow_column(sm->op_of, sm->ntask, want, sizeof(*sm->op_of));
        sm->ntask = want;
    }
}

void session_touch(struct session *ssn, task_id t)
{
    hk_vec_push(&ssn->sm->touched, t);
}

/* ---- topology (docs/reference/scheduler.md section 2.7) ---- */

static bool tier_by_name(const struct model *m, uint32_t name, int32_t *ret)
{
    for (uint32_t i = 1; i < m->hypers.len; i++) {
        if (m->hypers.at[i].used && m->hypers.at[i].tier_name == name) {
            *ret = m->hypers.at[i].tier;
            return true;
        }
    }
    return false;
}

/* Resolves the spec for this session: tier names become numbers, soft becomes hard with a wide
 * limit. With an unknown tier name a hard spec has no effect, as upstream. */
static void normalise(const struct model *m, struct topo_spec *t, int32_t widest)
{
    bool has = t->has_tier;

    t->eff_mode = t->mode;
    t->eff_tier = t->tier;
    if (t->mode == TOPO_NONE) {
        return;
    }
    if (!has && t->tier_name) {
        has = tier_by_name(m, t->tier_name, &t->eff_tier);
    }
    if (t->mode == TOPO_SOFT) {
        t->eff_mode = TOPO_HARD;
        t->eff_tier = widest;
    } else if (!has) {
        t->eff_mode = TOPO_NONE;
    }
}

static void normalise_job(struct model *m, job_id j)
{
    struct job *job = model_job(m, j);
    const int32_t root = m->hypers.at[HYPER_ROOT.i].tier;

    normalise(m, &job->topo, root);
    for (sub_id s = job->first_sub; !id_none(s); s = model_sub(m, s)->next) {
        normalise(m, &model_sub(m, s)->topo,
                  job->topo.eff_mode == TOPO_HARD && job->topo.mode == TOPO_HARD
                      ? job->topo.eff_tier
                      : root);
    }
}

static bool hyper_alive(const struct model *m, hyper_id h)
{
    return !id_none(h) && m->hypers.at[h.i].used;
}

/* The lowest domain that contains all nodes of the sub-job's tasks. */
static hyper_id recover_mark(const struct model *m, sub_id s)
{
    const struct job *j = model_job(m, model_sub(m, s)->job);
    hyper_id best = NO_HYPER;

    for (uint32_t i = 1; i < m->hypers.len; i++) {
        const struct hyper *h = &m->hypers.at[i];
        bool all = h->used;
        for (task_id t = j->others; all && !id_none(t); t = model_task(m, t)->job_next) {
            const struct task *task = model_task(m, t);
            if (id_eq(task->sub, s) && status_in(task->status, STATUS_ALLOCATED)) {
                all = task->node.i < h->nbit &&
                      ((h->bits[task->node.i / 64] >> (task->node.i % 64)) & 1);
            }
        }
        if (all && (id_none(best) || h->tier < m->hypers.at[best.i].tier)) {
            best = (hyper_id){i};
        }
    }
    return best;
}

static void refresh_marks(struct model *m, job_id j)
{
    struct job *job = model_job(m, j);
    hyper_id lca = NO_HYPER;

    for (sub_id s = job->first_sub; !id_none(s); s = model_sub(m, s)->next) {
        struct sub_job *sub = model_sub(m, s);
        if (!hyper_alive(m, sub->mark) || tally_allocated(&sub->tally) == 0) {
            sub->mark = NO_HYPER;
        }
        if (id_none(sub->mark) && sub->topo.mode != TOPO_NONE && tally_allocated(&sub->tally) > 0) {
            sub->mark = recover_mark(m, s);
        }
        lca = model_hyper_lca(m, lca, sub->mark);
    }
    if (!hyper_alive(m, job->mark) || tally_allocated(&job->tally) == 0) {
        job->mark = NO_HYPER;
    }
    if (id_none(job->mark)) {
        job->mark = lca;
    }
}

bool job_has_topology(const struct model *m, job_id j)
{
    const struct job *job = model_job(m, j);

    if (job->topo.mode != TOPO_NONE) {
        return true;
    }
    for (uint32_t k = 0; k < job->policies.len; k++) {
        if (job->policies.at[k].topo.mode != TOPO_NONE) {
            return true;
        }
    }
    return false;
}

/* ---- opening ---- */

#define BUDGET_STRIDE 64

/* Lists active jobs that are awake, in id order. A bit set is cheaper than sorting a hundred
 * thousand. */
static void list_jobs(struct session *ssn)
{
    const struct model *m = ssn->m;
    const uint32_t words = m->jobs.len / 64 + 1;
    uint64_t *bits = hk_arena_zalloc(ssn->mem, words * sizeof(*bits));

    ssn->was_pending = hk_arena_zalloc(ssn->mem, words * sizeof(*bits));
    ssn->jobs = hk_arena_array(ssn->mem, m->active.len + 1, sizeof(*ssn->jobs));
    for (uint32_t k = 0; k < m->active.len; k++) {
        if (!session_is_awake(ssn, m->active.at[k])) {
            continue;
        }
        bits[m->active.at[k].i / 64] |= 1ULL << (m->active.at[k].i % 64);
    }
    for (uint32_t w = 0; w < words; w++) {
        for (uint64_t b = bits[w]; b; b &= b - 1) {
            const job_id j = {w * 64 + (uint32_t)__builtin_ctzll(b)};
            ssn->jobs[ssn->njob++] = j;
            ssn->was_pending[w] |= job_is_pending(model_job(m, j)) ? b & -b : 0;
        }
    }
}

static void *instantiate(struct session *ssn, const struct conf_plugin *cp)
{
    const size_t size = cp->p->state_size;
    void *self = hk_arena_zalloc(ssn->mem, size + 1);

    if (size > 0) {
        memcpy(self, cp->options, size);
    }
    return self;
}

static void add_hooks(struct session *ssn, const struct conf_plugin *cp, struct hook h)
{
    for (uint32_t k = 0; k < HOOK_N; k++) {
        if (plugin_has_hook(cp->p, k) && !((cp->off >> k) & 1)) {
            ssn->hooks[k].at[ssn->hooks[k].n++] = h;
        }
    }
}

static void open_plugins(struct session *ssn)
{
    const struct conf *c = ssn->conf;

    for (uint32_t k = 0; k < HOOK_N; k++) {
        ssn->hooks[k].at = hk_arena_array(ssn->mem, c->plugins.len + 1, sizeof(struct hook));
    }
    ssn->opened = hk_arena_array(ssn->mem, c->plugins.len + 1, sizeof(*ssn->opened));
    for (uint32_t k = 0; k < c->plugins.len; k++) {
        const struct conf_plugin *cp = &c->plugins.at[k];
        if (!cp->p) {
            continue;
        }
        const struct hook h = {.p = cp->p, .self = instantiate(ssn, cp), .tier = cp->tier};
        ssn->opened[ssn->nopened++] = h;
        add_hooks(ssn, cp, h);
    }
    for (uint32_t k = 0; k < ssn->nopened; k++) {
        if (ssn->opened[k].p->open) {
            const int64_t since_ns = meter_start(ssn->opts.meter);
            ssn->opened[k].p->open(ssn, ssn->opened[k].self);
            meter_plugin(ssn->opts.meter, ssn->opened[k].p, false, since_ns);
        }
    }
}

static void prepare_topology(struct session *ssn)
{
    struct model *m = ssn->m;

    model_hyper_root(m);
    for (uint32_t k = 0; k < ssn->njob; k++) {
        if (job_has_topology(m, ssn->jobs[k])) {
            normalise_job(m, ssn->jobs[k]);
            if (m->hyper_ready) {
                refresh_marks(m, ssn->jobs[k]);
            }
        }
    }
}

void session_open(struct session *ssn, struct model *m, const struct conf *conf,
                  const struct session_opts *opts, struct scheduler_mem *sm)
{
    hk_arena_clear(&sm->arena);
    job_id *changed = hk_arena_array(&sm->arena, m->dirty_jobs.len + 1, sizeof(*changed));
    const uint32_t nchanged = m->dirty_jobs.len;
    for (uint32_t k = 0; k < nchanged; k++) {
        changed[k] = m->dirty_jobs.at[k];
    }
    model_settle(m);
    model_words_age(m);
    columns_ready(sm, m);
    hk_vec_clear(&sm->ops);
    hk_vec_clear(&sm->decisions);
    hk_vec_clear(&sm->gates);
    *ssn = (struct session){
        .m = m,
        .conf = conf,
        .opts = *opts,
        .now_ns = opts->now_ns,
        .at_job = NO_JOB,
        .uid = ++sm->sessions,
        .mem = &sm->arena,
        .rand = &sm->rand,
        .ops = sm->ops,
        .serial = sm->serial,
        .decisions = sm->decisions,
        .gates = sm->gates,
        .last = sm->last,
        .fit = sm->fit,
        .op_of = sm->op_of,
        .select = sm->select,
        .sm = sm,
        .changed = changed,
        .nchanged = nchanged,
    };
    if (opts->budget_ns > 0) {
        ssn->budget.since_ns = opts->clock->mono_ns(opts->clock);
    }
    ssn->budget.read_serial = ssn->serial;
    m->in_session = true;
    list_jobs(ssn);
    ssn->job_msg = hk_arena_zalloc(ssn->mem, (m->jobs.len + 1) * sizeof(*ssn->job_msg));
    rvec_from(&ssn->total, m->total, m->dims.n);
    prepare_topology(ssn);
    select_open(ssn);
    open_plugins(ssn);
    reserve_open(ssn);
}

bool session_over_budget(struct session *ssn)
{
    const struct session_opts *o = &ssn->opts;
    const uint64_t call = ++ssn->budget.calls;

    if (ssn->over_budget) {
        return true;
    }
    if (o->stop_after > 0) {
        ssn->over_budget = call >= o->stop_after;
    } else if (o->budget_ns > 0 && (call - ssn->budget.read_call >= BUDGET_STRIDE ||
                                    ssn->serial - ssn->budget.read_serial >= BUDGET_STRIDE)) {
        ssn->over_budget = o->clock->mono_ns(o->clock) - ssn->budget.since_ns >= o->budget_ns;
        ssn->budget.read_call = call;
        ssn->budget.read_serial = ssn->serial;
    }
    if (ssn->over_budget) {
        ssn->budget.read_call = call;
    }
    return ssn->over_budget;
}

void session_run(struct session *ssn)
{
    for (uint32_t k = 0; k < ssn->conf->actions.len; k++) {
        const struct conf_action *c = &ssn->conf->actions.at[k];
        const int64_t since_ns = meter_start(ssn->opts.meter);
        c->a->run(ssn, c->args);
        ssn->at_job = NO_JOB;
        meter_action(ssn->opts.meter, c->a, since_ns);
    }
}

/* ---- closing ---- */

/* Evicted tasks stay on their node until the pod is gone: the next session sees them again. */
static void restore_view(struct session *ssn)
{
    for (uint32_t k = 0; k < ssn->decisions.len; k++) {
        const struct decision *d = &ssn->decisions.at[k];
        struct task *t = model_task(ssn->m, d->task);
        if (d->kind == OP_EVICT && (t->flags & TASK_EVICTED)) {
            t->flags &= (uint16_t)~TASK_EVICTED;
            t->flags |= TASK_PREEMPT_VICTIM;
            t->leaving = true;
            model_task_view(ssn->m, d->task, true);
        }
    }
}

void session_close(struct session *ssn)
{
    for (uint32_t k = 0; k < ssn->nopened; k++) {
        if (ssn->opened[k].p->close) {
            const int64_t since_ns = meter_start(ssn->opts.meter);
            ssn->opened[k].p->close(ssn, ssn->opened[k].self);
            meter_plugin(ssn->opts.meter, ssn->opened[k].p, true, since_ns);
        }
    }
    close_jobs(ssn);
    stmt_release(ssn);
    restore_view(ssn);
    ssn->m->in_session = false;
    if (ssn->decisions.len > 0) { /* other pods may wait to run near the bound ones */
        model_wake_up(ssn->m, WAKE_PODS);
    }
    ssn->sm->ops = ssn->ops;
    ssn->sm->decisions = ssn->decisions;
    ssn->sm->gates = ssn->gates;
    ssn->sm->serial = ssn->serial;
}

/* ---- checks of jobs (docs/reference/scheduler.md section 2.4) ---- */

bool job_is_pending(const struct job *j)
{
    return !j->has_pg || j->phase == PG_PENDING || j->phase == PG_NONE;
}

static bool session_meets_minimum(int64_t have, int32_t min)
{
    return have >= min;
}

bool job_counts_ready(const struct job *j)
{
    return session_meets_minimum((int64_t)tally_ready(&j->tally) + j->tally.pending_be, j->min);
}

bool job_counts_pipelined(const struct job *j)
{
    return session_meets_minimum(
        (int64_t)j->tally.n[TASK_PIPELINED] + tally_ready(&j->tally) + j->tally.pending_be, j->min);
}

bool job_counts_starving(const struct job *j)
{
    return !session_meets_minimum((int64_t)j->tally.n[TASK_PIPELINED] + tally_ready(&j->tally),
                                  j->min);
}

bool sub_counts_ready(const struct sub_job *s)
{
    return session_meets_minimum((int64_t)tally_ready(&s->tally) + s->tally.pending_be, s->min);
}

bool sub_counts_pipelined(const struct sub_job *s)
{
    return session_meets_minimum(
        (int64_t)s->tally.n[TASK_PIPELINED] + tally_ready(&s->tally) + s->tally.pending_be, s->min);
}

typedef uint32_t role_count(const struct tally *t);

static uint32_t count_ready(const struct tally *t)
{
    return tally_ready(t) + t->pending_be;
}

static uint32_t count_pipelined(const struct tally *t)
{
    return count_ready(t) + t->n[TASK_PIPELINED];
}

/* Role minimums count only if minMember is at least their sum. */
static bool session_roles_satisfied(const struct job *j, role_count *count)
{
    if (j->min < j->role_min_total) {
        return true;
    }
    for (uint32_t k = 0; k < j->roles.len; k++) {
        const struct role *r = &j->roles.at[k];
        if (r->min > 0 && !session_meets_minimum(count(&r->tally), r->min)) {
            return false;
        }
    }
    return true;
}

bool job_roles_valid(const struct job *j)
{
    return session_roles_satisfied(j, tally_valid);
}

bool job_roles_ready(const struct job *j)
{
    return session_roles_satisfied(j, count_ready);
}

bool job_roles_pipelined(const struct job *j)
{
    return session_roles_satisfied(j, count_pipelined);
}

void session_ungate(struct session *ssn, task_id t)
{
    const uint64_t bit = 1ULL << (t.i % 64);

    if (!ssn->is_ungated) {
        ssn->is_ungated = hk_arena_zalloc(ssn->mem, (ssn->m->tasks.len / 64 + 1) * sizeof(bit));
    }
    if (!(ssn->is_ungated[t.i / 64] & bit)) {
        ssn->is_ungated[t.i / 64] |= bit;
        hk_vec_push(&ssn->gates, t);
    }
}

void session_fit_set(struct session *ssn, task_id t, struct fit_log *log)
{
    session_touch(ssn, t);
    ssn->fit[t.i] = log;
}

struct fit_log *session_fit_new(struct session *ssn)
{
    struct fit_log *log = hk_arena_zalloc(ssn->mem, sizeof(*log));

    log->mem = ssn->mem;
    log->hyper = NO_HYPER;
    log->never_words = ssn->m->nodes.len / 64 + 1;
    log->never = hk_arena_zalloc(ssn->mem, log->never_words * sizeof(*log->never));
    return log;
}
