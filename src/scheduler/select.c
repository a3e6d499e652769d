// SPDX-License-Identifier: Apache-2.0
// Choosing a node: the best of the feasible ones (docs/reference/scheduler.md section 5).
//
// Tasks of one shape share their candidates (select_slot.c) if the plugins declare that a placement
// affects only its own node (filter_local, score_local); all others search each time. A shape that
// found no node is remembered until something frees room or the journal is rewound past that point.
#include "scheduler/select_priv.h"

struct select *select_new(void)
{
    return hk_zalloc(sizeof(struct select));
}

void select_free(struct select *s)
{
    for (uint32_t k = 0; k < NSLOT; k++) {
        slot_fini(&s->slots[k]);
    }
    hk_vec_fini(&s->failed);
    hk_vec_fini(&s->found);
    hk_vec_fini(&s->score);
    hk_vec_fini(&s->group);
    hk_free(s->fail);
    hk_free(s);
}

void select_open(struct session *ssn)
{
    struct select *s = ssn->select;
    const uint32_t want = ssn->m->shapes.cap;

    hk_vec_clear(&s->failed);
    if (want > s->nfail) {
        s->fail = hk_realloc_array(s->fail, want, sizeof(*s->fail));
        memset(s->fail + s->nfail, 0, (want - s->nfail) * sizeof(*s->fail));
        s->nfail = want;
    }
    hk_vec_reserve(&s->found, ssn->m->nodes.len + BLOCK);
    hk_vec_reserve(&s->group, ssn->m->nodes.len + BLOCK);
    hk_vec_reserve(&s->score, ssn->m->nodes.len + BLOCK);
    select_begin(ssn, HYPER_ROOT);
}

void select_begin(struct session *ssn, hyper_id domain)
{
    ssn->select->run++;
    ssn->select->next_slot = 0; /* every run reuses the same few slots, already in cache */
    ssn->select->domain = domain;
}

uint32_t select_want(const struct session_opts *o, uint32_t n)
{
    uint32_t pct = o->percentage;

    if (n <= o->min_feasible || pct >= 100) {
        return n;
    }
    if (pct == 0) {
        const int64_t adaptive = 50 - (int64_t)n / 125;
        pct = (uint32_t)HK_MAX(adaptive, (int64_t)o->min_percentage);
    }
    return (uint32_t)HK_MAX((uint64_t)n * pct / 100, (uint64_t)o->min_feasible);
}

/* ---- shapes that found no node ---- */

static void remember_failure(struct session *ssn, shape_id shape, struct fit_log *log)
{
    struct select *s = ssn->select;

    s->fail[shape.i] = (struct failure){
        .session = ssn->uid, .gains = ssn->gains, .serial = newest_serial(ssn), .log = log};
    hk_vec_push(&s->failed, shape);
}

static struct fit_log *known_failure(const struct session *ssn, shape_id shape)
{
    const struct failure *f = &ssn->select->fail[shape.i];

    if (ssn->opts.plain || f->session != ssn->uid || f->gains != ssn->gains) {
        return NULL;
    }
    return f->log;
}

/* Failures recorded after the mark that the journal was rewound to are no longer valid. */
void select_rewound(struct session *ssn)
{
    struct select *s = ssn->select;
    const uint64_t serial = newest_serial(ssn);

    while (s->failed.len > 0 && s->fail[s->failed.at[s->failed.len - 1].i].serial > serial) {
        s->fail[hk_vec_pop(&s->failed).i].session = 0;
    }
}

/* ---- candidates shared by a shape ---- */

static enum placement select_shared(struct session *ssn, task_id t, node_id *ret,
                                    struct fit_log **ret_log)
{
    enum placement where;

    *ret_log = NULL;
    if (!slot_choose(ssn, t, ret, &where)) {
        return PLACE_NONE;
    }
    if (where == PLACE_NONE) {
        const struct search q = search_for(ssn, t, ssn->select->domain, FILTER_PLACE, true);
        *ret_log = search_explain(ssn, &q, ssn->select->domain);
        if (id_eq(ssn->select->domain, HYPER_ROOT)) {
            remember_failure(ssn, model_task(ssn->m, t)->shape, *ret_log);
        }
    }
    return where;
}

/* ---- a fresh search: scores that depend on the whole candidate set ---- */

static node_id ask_best_node(struct session *ssn, task_id t, const node_id *nodes, uint32_t n,
                             const double *score)
{
    const struct hook_list *l = &ssn->hooks[HOOK_BEST_NODE];

    for (uint32_t k = 0; k < l->n; k++) {
        const node_id best = l->at[k].p->best_node(ssn, l->at[k].self, t, nodes, n, score);
        if (!id_none(best)) {
            return best;
        }
    }
    return NO_NODE;
}

/* The best node of the group; NO_NODE when there is none or scoring failed. */
static node_id best_in_group(struct session *ssn, task_id t, const struct search *q, enum group g)
{
    const struct shape *shape = task_shape(ssn->m, t);
    node_id *group = ssn->select->group.at;
    double *score = ssn->select->score.at;
    uint32_t n = 0, best = 0;
    node_id asked;

    for (uint32_t i = 0; i < q->n; i++) {
        if (group_of(ssn, shape, q->out[i]) == g) {
            group[n++] = q->out[i];
        }
    }
    if (n <= 1) {
        return n ? group[0] : NO_NODE;
    }
    memset(score, 0, n * sizeof(*score));
    if (hooks_score(ssn, t, group, n, score) < 0) {
        return NO_NODE;
    }
    asked = ask_best_node(ssn, t, group, n, score);
    if (!id_none(asked)) {
        return asked;
    }
    for (uint32_t i = 1; i < n; i++) {
        if (score[i] > score[best]) {
            best = i;
        }
    }
    return group[best];
}

static enum placement select_fresh(struct session *ssn, task_id t, node_id *ret,
                                   struct fit_log **ret_log)
{
    struct search q = search_for(ssn, t, ssn->select->domain, FILTER_PLACE, true);

    search_run(ssn, &q);
    if (q.n == 0) {
        *ret_log = search_explain(ssn, &q, ssn->select->domain);
        return PLACE_NONE;
    }
    const uint32_t step = ssn->opts.shard_mode == SHARD_SOFT ? 1 : 2;
    for (uint32_t g = 0; g < NGROUP; g += step) {
        *ret = best_in_group(ssn, t, &q, g);
        if (!id_none(*ret)) {
            return placement_of(g);
        }
    }
    *ret_log = NULL;
    return PLACE_NONE;
}

enum placement select_node(struct session *ssn, task_id t, node_id *ret, struct fit_log **ret_log)
{
    const bool root = id_eq(ssn->select->domain, HYPER_ROOT);

    if (!hooks_filter_local(ssn, t)) {
        return select_fresh(ssn, t, ret, ret_log);
    }
    if (root) {
        *ret_log = known_failure(ssn, model_task(ssn->m, t)->shape);
        if (*ret_log) {
            return PLACE_NONE;
        }
    }
    if (ssn->hooks[HOOK_BEST_NODE].n > 0 || !hooks_score_local(ssn, t)) {
        return select_fresh(ssn, t, ret, ret_log);
    }
    return select_shared(ssn, t, ret, ret_log);
}

/* ---- many nodes ---- */

struct ranked {
    double score;
    uint32_t seq;
    node_id node;
};

static int rank_cmp(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->score != y->score) {
        return x->score > y->score ? -1 : 1;
    }
    return (x->seq > y->seq) - (x->seq < y->seq);
}

static void sort_by_score(struct session *ssn, node_id *nodes, uint32_t n)
{
    struct ranked *r = hk_arena_array(ssn->mem, n + 1, sizeof(*r));

    for (uint32_t i = 0; i < n; i++) {
        r[i] = (struct ranked){.score = ssn->select->score.at[i], .seq = i, .node = nodes[i]};
    }
    qsort(r, n, sizeof(*r), rank_cmp);
    for (uint32_t i = 0; i < n; i++) {
        nodes[i] = r[i].node;
    }
}

/* Moves nodes of the own shard to the front; order is kept otherwise. */
static void own_shard_first(const struct session *ssn, node_id *nodes, uint32_t n)
{
    node_id *others = ssn->select->group.at;
    uint32_t own = 0, nothers = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (session_in_shard(ssn, nodes[i])) {
            nodes[own++] = nodes[i];
        } else {
            others[nothers++] = nodes[i];
        }
    }
    memcpy(nodes + own, others, nothers * sizeof(*nodes));
}

uint32_t select_nodes(struct session *ssn, task_id t, hyper_id domain, enum filter_mode mode,
                      bool check_future, bool scored, node_id **ret, struct fit_log **ret_log)
{
    struct search q = search_for(ssn, t, domain, mode, check_future);
    node_id *out;

    search_run(ssn, &q);
    *ret_log = NULL;
    if (q.n == 0) {
        *ret_log = search_explain(ssn, &q, domain);
        return 0;
    }
    out = hk_arena_array(ssn->mem, q.n, sizeof(*out));
    memcpy(out, q.out, q.n * sizeof(*out));
    if (scored && q.n > 1) {
        memset(ssn->select->score.at, 0, q.n * sizeof(double));
        if (hooks_score(ssn, t, out, q.n, ssn->select->score.at) < 0) {
            return 0;
        }
        sort_by_score(ssn, out, q.n);
    }
    if (ssn->opts.shard_mode == SHARD_SOFT) {
        own_shard_first(ssn, out, q.n);
    }
    *ret = out;
    return q.n;
}
