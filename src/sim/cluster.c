// SPDX-License-Identifier: Apache-2.0
// The offline cluster: creation and end, its cycles, and their results. cluster_load.c loads
// manifests.
#include "sim/cluster.h"

#include "api/names.h"
#include "base/clock.h"

#define PAIR_KEY(hi, lo) (((uint64_t)(hi) << 32) | (lo))

/* ---- life cycle ---- */

void cluster_init(struct cluster *c, const struct conf *conf, const struct cluster_opts *o)
{
    static const struct hk_str names[] = {
        {API_SCHEDULER_NAME, sizeof(API_SCHEDULER_NAME) - 1},
        {API_SCHEDULER_NAME_DEFAULT, sizeof(API_SCHEDULER_NAME_DEFAULT) - 1},
    };
    const struct ingest_opts in = {.make_queues = true,
                                   .scheduler_names = names,
                                   .nscheduler_name = o->default_scheduler ? 2 : 1};

    *c = (struct cluster){.opts = *o, .conf = conf, .now_ns = o->now_ns};
    model_init(&c->m);
    c->in = ingest_new(&c->m, &in);
    ingest_own_shard(c->in, o->shard_name);
    c->sm = scheduler_mem_new(o->seed);
}

void cluster_fini(struct cluster *c)
{
    for (uint32_t k = 0; k < c->groups.len; k++) {
        hk_free(c->groups.at[k].message);
        hk_free(c->groups.at[k].event);
    }
    hk_vec_fini(&c->binds);
    hk_vec_fini(&c->evictions);
    hk_vec_fini(&c->pipelined);
    hk_vec_fini(&c->waits);
    hk_vec_fini(&c->shares);
    hk_vec_fini(&c->groups);
    hk_map_fini(&c->group_at);
    hk_vec_fini(&c->effects);
    hk_vec_fini(&c->ignored);
    hk_vec_fini(&c->problems);
    hk_buf_fini(&c->trace);
    scheduler_mem_free(c->sm);
    ingest_free(c->in);
    model_fini(&c->m);
    hk_arena_fini(&c->last);
    hk_arena_fini(&c->kept);
}

/* ---- names ---- */

static struct hk_str pair_name(const struct model *m, uint32_t ns, uint32_t name,
                               struct hk_arena *a)
{
    return hk_str(
        hk_arena_printf(a, "%.*s/%.*s", HK_FMT(model_str(m, ns)), HK_FMT(model_str(m, name))));
}

struct hk_str cluster_task_name(const struct model *m, task_id t, struct hk_arena *a)
{
    return pair_name(m, model_task(m, t)->ns, model_task(m, t)->name, a);
}

struct hk_str cluster_job_name(const struct model *m, job_id j, struct hk_arena *a)
{
    return pair_name(m, model_job(m, j)->ns, model_job(m, j)->name, a);
}

static struct hk_str node_name(const struct model *m, node_id n, struct hk_arena *a)
{
    return hk_arena_str(a, model_str(m, m->nodes.name[n.i]));
}

/* ---- results of a cycle ---- */

static void record_bind(struct cluster *c, const struct decision *d)
{
    const struct cluster_bind b = {cluster_task_name(&c->m, d->task, &c->kept),
                                   node_name(&c->m, d->node, &c->kept), c->cycles};

    hk_vec_push(&c->binds, b);
    hk_buf_addf(&c->trace, "bind      %.*s -> %.*s\n", HK_FMT(b.pod), HK_FMT(b.node));
}

static void record_eviction(struct cluster *c, const struct decision *d)
{
    const struct cluster_eviction e = {
        .pod = cluster_task_name(&c->m, d->task, &c->kept),
        .group = id_none(d->for_job) ? HK_STR("") : cluster_job_name(&c->m, d->for_job, &c->kept),
        .action = hk_str(d->reason),
        .cycle = c->cycles,
    };

    hk_vec_push(&c->evictions, e);
    hk_buf_addf(&c->trace, "evict     %.*s for %.*s (%.*s)\n", HK_FMT(e.pod),
                HK_FMT(e.group.n > 0 ? e.group : HK_STR("nobody")), HK_FMT(e.action));
}

static void record_decisions(struct cluster *c, const struct session *ssn)
{
    c->first_bind = c->binds.len;
    c->first_eviction = c->evictions.len;
    for (uint32_t k = 0; k < ssn->decisions.len; k++) {
        const struct decision *d = &ssn->decisions.at[k];
        const struct task *t = model_task(&c->m, d->task);
        if (d->kind == OP_ALLOCATE) {
            record_bind(c, d);
        } else {
            record_eviction(c, d);
        }
        hk_vec_push(&c->effects, ((struct cluster_effect){t->ns, t->name, d->node, d->kind}));
        hk_intern_keep(&c->m.str, t->ns);
        hk_intern_keep(&c->m.str, t->name);
    }
}

static void record_pipelined(struct cluster *c, const struct session *ssn)
{
    hk_vec_clear(&c->pipelined);
    for (uint32_t k = 0; k < ssn->ops.len; k++) {
        const struct op *op = &ssn->ops.at[k];
        if (op->kind == OP_PIPELINE && op->state == OP_OPEN) {
            const struct cluster_bind b = {cluster_task_name(&c->m, op->task, &c->last),
                                           node_name(&c->m, op->node, &c->last), c->cycles};
            hk_vec_push(&c->pipelined, b);
            hk_buf_addf(&c->trace, "pipeline  %.*s -> %.*s%s\n", HK_FMT(b.pod), HK_FMT(b.node),
                        op->evicted_for ? " (evictions pay)" : "");
        }
    }
}

static struct cluster_group *group_need(struct cluster *c, job_id j)
{
    const struct job *job = model_job(&c->m, j);
    const uint64_t key = PAIR_KEY(job->ns, job->name);
    const uint32_t at = hk_map_get(&c->group_at, key);

    if (at != HK_NONE) {
        return &c->groups.at[at];
    }
    hk_intern_keep(&c->m.str, job->ns);
    hk_intern_keep(&c->m.str, job->name);
    hk_map_put(&c->group_at, key, c->groups.len);
    hk_vec_push(&c->groups, (struct cluster_group){0});
    return &c->groups.at[c->groups.len - 1];
}

const struct cluster_group *cluster_group(const struct cluster *c, job_id j)
{
    const uint64_t key = PAIR_KEY(model_job(&c->m, j)->ns, model_job(&c->m, j)->name);
    const uint32_t at = hk_map_get(&c->group_at, key);

    return at == HK_NONE ? NULL : &c->groups.at[at];
}

static void cluster_set_str(char **at, const char *text)
{
    hk_free(*at);
    *at = text ? hk_strdup(text) : NULL;
}

static void record_groups(struct cluster *c, const struct session *ssn)
{
    for (uint32_t k = 0; k < ssn->notes.n; k++) {
        const struct job_note *n = &ssn->notes.at[k];
        struct cluster_group *g = group_need(c, n->job);
        g->condition = n->condition;
        cluster_set_str(&g->message, n->message);
        cluster_set_str(&g->event, n->event);
        if (n->phase != n->prev_phase) {
            hk_buf_addf(&c->trace, "phase     %.*s %s -> %s\n",
                        HK_FMT(cluster_job_name(&c->m, n->job, &c->last)),
                        pg_phase_name(n->prev_phase), pg_phase_name(n->phase));
        }
    }
}

/* Pods that no session considers: only this function explains why they wait. */
static bool outside(struct cluster *c, const struct task *t, struct cluster_wait *w)
{
    const struct job *j = id_none(t->job) ? NULL : model_job(&c->m, t->job);

    w->reason = HK_STR("Unschedulable");
    if (t->flags & TASK_GATED) {
        w->reason = HK_STR("SchedulingGated");
        w->message = HK_STR("Scheduling is blocked due to non-empty scheduling gates");
    } else if (!j) {
        w->message = HK_STR("pod belongs to no PodGroup");
    } else if (!j->has_pg) {
        w->message = hk_str(hk_arena_printf(&c->last, "PodGroup '%.*s' does not exist",
                                            HK_FMT(cluster_job_name(&c->m, t->job, &c->last))));
    } else if (id_none(j->queue)) {
        w->message = hk_str(hk_arena_printf(&c->last, "queue '%.*s' does not exist",
                                            HK_FMT(model_str(&c->m, j->queue_name))));
    } else {
        return false;
    }
    return true;
}

static void record_waits(struct cluster *c, const struct session *ssn)
{
    struct cluster_wait w;

    hk_vec_clear(&c->waits);
    for (uint32_t k = 0; k < ssn->pod_notes.n; k++) {
        const struct pod_note *n = &ssn->pod_notes.at[k];
        if (model_task(&c->m, n->task)->status != TASK_PENDING) {
            continue;
        }
        w = (struct cluster_wait){
            .pod = cluster_task_name(&c->m, n->task, &c->last),
            .reason = hk_str(n->reason),
            .message = hk_arena_str(&c->last, hk_str(n->message)),
        };
        hk_vec_push(&c->waits, w);
    }
    for (uint32_t i = 0; i < c->m.tasks.len; i++) {
        const struct task *t = &c->m.tasks.at[i];
        if (t->used && (t->flags & TASK_OURS) && t->status == TASK_PENDING && outside(c, t, &w)) {
            w.pod = cluster_task_name(&c->m, (task_id){i}, &c->last);
            hk_vec_push(&c->waits, w);
        }
    }
}

static void record_shares(struct cluster *c, struct session *ssn)
{
    hk_vec_clear(&c->shares);
    for (uint32_t q = 0; q < c->m.queues.len; q++) {
        struct cluster_share s = {0};
        for (uint32_t k = 0; k < ssn->nopened && c->m.queues.at[q].used && !s.known; k++) {
            const struct hook *h = &ssn->opened[k];
            struct queue_report r;
            s.known = h->p->queue_report && h->p->queue_report(ssn, h->self, (queue_id){q}, &r);
            if (s.known) {
                s.deserved = r.deserved;
                s.share = r.share;
            }
        }
        hk_vec_push(&c->shares, s);
    }
}

/* ---- invariants ---- */

static int check_room(const struct cluster *c, const struct session *ssn, struct hk_err *err)
{
    for (uint32_t k = 0; k < ssn->decisions.len; k++) {
        const struct decision *d = &ssn->decisions.at[k];
        const struct shape *s = task_shape(&c->m, d->task);
        for (uint32_t r = 0; d->kind == OP_ALLOCATE && r < s->nreq; r++) {
            const uint32_t dim = s->req[r].dim;
            if (c->m.nodes.idle.col[dim][d->node.i] < 0) {
                return hk_fail(err, HK_EINVAL, "node '%.*s' was given more %.*s than it has",
                               HK_FMT(model_str(&c->m, c->m.nodes.name[d->node.i])),
                               HK_FMT(c->m.dims.text[dim]));
            }
        }
    }
    return 0;
}

static bool gangs_hold(const struct session *ssn)
{
    for (uint32_t k = 0; k < ssn->hooks[HOOK_JOB_READY].n; k++) {
        if (strcmp(ssn->hooks[HOOK_JOB_READY].at[k].p->name, "gang") == 0) {
            return true;
        }
    }
    return false;
}

/* Tasks of the job that held a node before this cycle's binds. */
static uint32_t settled_before(const struct cluster *c, const struct session *ssn, job_id j)
{
    uint32_t bound = 0;

    for (uint32_t k = 0; k < ssn->decisions.len; k++) {
        const struct decision *d = &ssn->decisions.at[k];
        bound += d->kind == OP_ALLOCATE && id_eq(model_task(&c->m, d->task)->job, j);
    }
    return tally_ready(&model_job(&c->m, j)->tally) - bound;
}

static int check_gangs(const struct cluster *c, const struct session *ssn, struct hk_err *err)
{
    if (!gangs_hold(ssn)) {
        return 0;
    }
    for (uint32_t k = 0; k < ssn->decisions.len; k++) {
        const struct decision *d = &ssn->decisions.at[k];
        const job_id j = model_task(&c->m, d->task)->job;
        if (d->kind == OP_ALLOCATE && !id_none(j) && !job_counts_ready(model_job(&c->m, j)) &&
            settled_before(c, ssn, j) == 0) {
            return hk_fail(err, HK_EINVAL, "gang '%.*s' was bound in part: %u of at least %d",
                           HK_FMT(model_str(&c->m, model_job(&c->m, j)->name)),
                           tally_ready(&model_job(&c->m, j)->tally), model_job(&c->m, j)->min);
        }
    }
    return 0;
}

static int check_books(const struct cluster *c, const struct session *ssn, struct hk_err *err)
{
    int rc = model_check(&c->m, err);

    if (rc < 0) {
        return rc;
    }
    rc = check_room(c, ssn, err);
    if (rc < 0) {
        return rc;
    }
    return check_gangs(c, ssn, err);
}

static int cluster_check_invariants(const struct cluster *c, const struct session *ssn,
                                    struct hk_err *err)
{
    const int rc = check_books(c, ssn, err);

    return rc < 0 ? hk_wrap(err, rc, "after cycle %u", c->cycles) : 0;
}

/* ---- cycles ---- */

static void come_true(struct cluster *c, const struct cluster_effect *e)
{
    const struct hk_str ns = model_str(&c->m, e->ns), name = model_str(&c->m, e->name);
    const task_id t = model_task_find(&c->m, ns, name);

    if (id_none(t)) {
        return;
    }
    if (e->kind == OP_EVICT) {
        ingest_del(c->in, api_kind(API_POD), ns, name);
    } else if (model_task(&c->m, t)->status == TASK_BINDING) {
        model_task_move(&c->m, t, TASK_RUNNING, e->node);
    }
}

void cluster_settle(struct cluster *c)
{
    for (uint32_t k = 0; k < c->effects.len; k++) {
        const struct cluster_effect *e = &c->effects.at[k];
        come_true(c, e);
        hk_intern_drop(&c->m.str, e->ns);
        hk_intern_drop(&c->m.str, e->name);
    }
    hk_vec_clear(&c->effects);
}

int cluster_cycle(struct cluster *c, struct hk_err *err)
{
    struct session_opts o = SESSION_OPTS_DEFAULT;
    struct session ssn;
    int rc;

    o.now_ns = c->now_ns;
    o.seed = c->opts.seed;
    o.plain = c->opts.plain;
    o.shard_mode = c->opts.shard_mode;
    o.texts = true;
    c->cycles++;
    c->last_trace = (uint32_t)c->trace.len;
    hk_buf_addf(&c->trace, "cycle %u\n", c->cycles);
    hk_arena_clear(&c->last);

    ingest_settle(c->in);
    session_open(&ssn, &c->m, c->conf, &o, c->sm);
    if (c->watch.opened) {
        c->watch.opened(c->watch.ctx, &ssn);
    }
    session_run(&ssn);
    if (c->watch.ran) {
        c->watch.ran(c->watch.ctx, &ssn);
    }
    session_close(&ssn);
    record_decisions(c, &ssn);
    record_pipelined(c, &ssn);
    record_groups(c, &ssn);
    record_waits(c, &ssn);
    record_shares(c, &ssn);
    rc = cluster_check_invariants(c, &ssn, err);
    if (!c->opts.hold) {
        cluster_settle(c);
    }
    c->now_ns += c->opts.step_ns;
    return rc;
}
