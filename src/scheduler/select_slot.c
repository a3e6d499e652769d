// SPDX-License-Identifier: Apache-2.0
// Candidates that tasks of one shape share within one run of a task loop. Each shape has a window,
// kept in a slot:
//
//   window   rows [start, start + visited) of the rotation; its feasible rows are the candidates
//   heap     candidates ordered by (group, score, order of visit), made on the second use; on the
//            first, one pass over their scores finds the best
//   update   the journal lists the nodes touched since the last use: only those are scored again
//            or dropped, and the window is widened when candidates run out
//
// This is exact only while a placement affects nothing but its own node; select.c passes only such
// tasks. With session_opts.plain the whole window is evaluated for every task, to test that.
#include "scheduler/select_priv.h"

/* ---- candidates of a slot ---- */

static bool before(const struct cand *a, const struct cand *b)
{
    if (a->group != b->group) {
        return a->group < b->group;
    }
    if (a->score != b->score) {
        return a->score > b->score;
    }
    return a->seq < b->seq;
}

static void put_at(struct slot *s, uint32_t i, struct cand c)
{
    s->c.at[i] = c;
    s->pos[c.node.i] = i + 1;
    s->stamp[c.node.i] = s->life;
}

static uint32_t select_slot_sift_up(struct slot *s, uint32_t i)
{
    const struct cand c = s->c.at[i];

    while (i > 0 && before(&c, &s->c.at[(i - 1) / 2])) {
        put_at(s, i, s->c.at[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    put_at(s, i, c);
    return i;
}

static void select_slot_sift_down(struct slot *s, uint32_t i)
{
    const struct cand c = s->c.at[i];

    for (;;) {
        uint32_t k = 2 * i + 1;
        if (k >= s->c.len) {
            break;
        }
        if (k + 1 < s->c.len && before(&s->c.at[k + 1], &s->c.at[k])) {
            k++;
        }
        if (!before(&s->c.at[k], &c)) {
            break;
        }
        put_at(s, i, s->c.at[k]);
        i = k;
    }
    put_at(s, i, c);
}

static void reheap_at(struct slot *s, uint32_t i)
{
    if (select_slot_sift_up(s, i) == i) {
        select_slot_sift_down(s, i);
    }
}

static void heapify(struct session *ssn, struct slot *s, task_id t)
{
    const struct shape *shape = task_shape(ssn->m, t);

    hk_vec_reserve(&s->c, s->node.len);
    s->c.len = s->node.len;
    for (uint32_t i = 0; i < s->c.len; i++) {
        put_at(s, i,
               (struct cand){.score = s->score.at[i],
                             .seq = i,
                             .node = s->node.at[i],
                             .group = group_of(ssn, shape, s->node.at[i])});
    }
    for (uint32_t i = s->c.len / 2; i-- > 0;) {
        select_slot_sift_down(s, i);
    }
    s->heaped = true;
}

static void remove_at(struct slot *s, uint32_t i)
{
    const struct cand last = hk_vec_pop(&s->c);

    if (i < s->c.len) {
        put_at(s, i, last);
        reheap_at(s, i);
    }
}

static uint32_t slot_len(const struct slot *s)
{
    return s->heaped ? s->c.len : s->node.len;
}

/* The best candidate; PLACE_NONE when there is none. */
static enum placement slot_best(const struct session *ssn, const struct slot *s, task_id t,
                                node_id *ret)
{
    const struct shape *shape = task_shape(ssn->m, t);
    struct cand best = {.seq = UINT32_MAX};

    if (s->heaped && s->c.len > 0) {
        best = s->c.at[0];
    }
    for (uint32_t i = 0; !s->heaped && i < s->node.len; i++) {
        const struct cand c = {.score = s->score.at[i],
                               .seq = i,
                               .node = s->node.at[i],
                               .group = group_of(ssn, shape, s->node.at[i])};
        if (best.seq == UINT32_MAX || before(&c, &best)) {
            best = c;
        }
    }
    if (best.seq == UINT32_MAX) {
        return PLACE_NONE;
    }
    *ret = best.node;
    return placement_of(best.group);
}

/* ---- slots ---- */

void slot_fini(struct slot *s)
{
    hk_vec_fini(&s->node);
    hk_vec_fini(&s->score);
    hk_vec_fini(&s->c);
    hk_free(s->pos);
    hk_free(s->stamp);
}

static struct slot *slot_find(struct select *s, shape_id shape)
{
    for (uint32_t k = 0; k < NSLOT; k++) {
        if (s->slots[k].run == s->run && id_eq(s->slots[k].shape, shape)) {
            return &s->slots[k];
        }
    }
    return NULL;
}

static struct slot *slot_take(struct session *ssn, shape_id shape)
{
    struct select *s = ssn->select;
    struct slot *slot = &s->slots[s->next_slot];
    const uint32_t rows = ssn->m->nodes.cap;

    s->next_slot = (s->next_slot + 1) % NSLOT;
    if (rows > slot->npos) {
        slot->pos = hk_realloc_array(slot->pos, rows, sizeof(*slot->pos));
        slot->stamp = hk_realloc_array(slot->stamp, rows, sizeof(*slot->stamp));
        memset(slot->stamp, 0, rows * sizeof(*slot->stamp));
        slot->npos = rows;
    }
    hk_vec_clear(&slot->node);
    hk_vec_clear(&slot->score);
    hk_vec_clear(&slot->c);
    slot->run = s->run;
    slot->shape = shape;
    slot->start = ssn->m->nodes.len ? s->rotate : 0;
    slot->visited = 0;
    slot->heaped = false;
    slot->gains = ssn->gains;
    slot->life = ++s->lives;
    return slot;
}

static void slot_used(const struct session *ssn, struct slot *s)
{
    s->op_len = ssn->ops.len;
    s->op_serial = newest_serial(ssn);
}

/* Whether nothing was freed or rewound since the slot's last use. */
static bool slot_current(const struct session *ssn, const struct slot *s)
{
    if (s->gains != ssn->gains || s->op_len > ssn->ops.len) {
        return false;
    }
    return s->op_len == 0 || ssn->ops.at[s->op_len - 1].serial == s->op_serial;
}

/* Scores nodes[n] and adds them to the candidates. */
static bool add_candidates(struct session *ssn, struct slot *s, task_id t, const node_id *nodes,
                           uint32_t n, uint32_t first_seq)
{
    const struct shape *shape = task_shape(ssn->m, t);
    const uint32_t at = s->heaped ? 0 : s->score.len;
    double *score;

    hk_vec_reserve(&s->score, at + n);
    score = s->score.at + at;
    memset(score, 0, n * sizeof(*score));
    if (hooks_score(ssn, t, nodes, n, score) < 0) {
        return false;
    }
    if (!s->heaped) {
        hk_vec_reserve(&s->node, at + n);
        memcpy(s->node.at + at, nodes, n * sizeof(*nodes));
        s->node.len = s->score.len = at + n;
        return true;
    }
    hk_vec_reserve(&s->c, s->c.len + n);
    for (uint32_t i = 0; i < n; i++) {
        s->c.at[s->c.len++] = (struct cand){.score = score[i],
                                            .seq = first_seq + i,
                                            .node = nodes[i],
                                            .group = group_of(ssn, shape, nodes[i])};
        select_slot_sift_up(s, s->c.len - 1);
    }
    return true;
}

/* Widens the window until enough candidates are in it. */
static bool slot_fill(struct session *ssn, struct slot *s, task_id t)
{
    struct search q = search_for(ssn, t, ssn->select->domain, FILTER_PLACE, true);

    if (slot_len(s) >= q.want || s->visited >= q.f.n) {
        return true;
    }
    q.start = q.f.n ? s->start % q.f.n : 0;
    q.visited = s->visited;
    q.want -= slot_len(s);
    search_run(ssn, &q);
    /* Visit numbers keep growing: the rows visited so far are an upper bound of earlier ones. */
    const uint32_t first_seq = s->visited;
    s->visited = q.visited;
    return q.n == 0 || add_candidates(ssn, s, t, q.out, q.n, first_seq);
}

/* Updates the candidates on nodes touched since the last use. */
static bool slot_sync(struct session *ssn, struct slot *s, task_id t)
{
    const struct shape *shape = task_shape(ssn->m, t);

    for (uint32_t k = s->op_len; k < ssn->ops.len; k++) {
        const node_id n = ssn->ops.at[k].node;
        node_id one = n;
        double score = 0;
        uint32_t i;

        if (!s->heaped) {
            heapify(ssn, s, t);
        }
        if (s->stamp[n.i] != s->life || s->pos[n.i] == 0) {
            continue;
        }
        i = s->pos[n.i] - 1;
        if (i >= s->c.len || !id_eq(s->c.at[i].node, n)) {
            continue;
        }
        if (!model_fits_future(ssn->m, shape, n) ||
            hooks_filter(ssn, t, FILTER_PLACE, &one, 1, NULL) == 0) {
            s->pos[n.i] = 0;
            remove_at(s, i);
            continue;
        }
        if (hooks_score(ssn, t, &n, 1, &score) < 0) {
            return false;
        }
        s->c.at[i].score = score;
        s->c.at[i].group = group_of(ssn, shape, n);
        reheap_at(s, i);
    }
    return true;
}

/* For comparison: evaluates every row of the window again without any cached state. */
static bool slot_replay(struct session *ssn, struct slot *s, task_id t)
{
    struct search q = search_for(ssn, t, ssn->select->domain, FILTER_PLACE, true);
    const uint32_t visited = s->visited;

    hk_vec_clear(&s->node);
    hk_vec_clear(&s->score);
    for (uint32_t k = 0; k < visited; k++) {
        const uint32_t at = (s->start + k) % q.f.n;
        node_id one;
        if (search_row(ssn, &q, at, &one) && !add_candidates(ssn, s, t, &one, 1, k)) {
            return false;
        }
    }
    return true;
}

bool slot_choose(struct session *ssn, task_id t, node_id *ret, enum placement *ret_where)
{
    const shape_id shape = model_task(ssn->m, t)->shape;
    struct slot *s = slot_find(ssn->select, shape);
    bool ok = true;

    if (s && slot_current(ssn, s)) {
        ok = ssn->opts.plain ? slot_replay(ssn, s, t) : slot_sync(ssn, s, t);
    } else {
        if (s) {
            s->run = 0;
        }
        s = slot_take(ssn, shape);
    }
    ok = ok && slot_fill(ssn, s, t);
    slot_used(ssn, s);
    if (ok) {
        *ret_where = slot_best(ssn, s, t, ret);
    }
    return ok;
}
