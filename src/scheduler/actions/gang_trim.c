// SPDX-License-Identifier: Apache-2.0
// Takes back needless evictions of a gang action: once the job has its places, the room left on
// nodes and in queues may be enough for some of its victims. Called by gang_evict.c.

#include "scheduler/actions/gang_evict_priv.h"

/* Room left on a node, minus what victims that stay use again. */
struct leftover {
    const struct model *m;
    uint32_t *slot; /* by node row: 1 + row in back */
    int64_t *back;  /* [slot][dimension] */
    uint32_t n;
};

static int64_t *regained(struct leftover *l, node_id n)
{
    if (l->slot[n.i] == 0) {
        l->slot[n.i] = ++l->n;
    }
    return l->back + (size_t)(l->slot[n.i] - 1) * l->m->dims.n;
}

static void give_back(struct leftover *l, task_id v, int sign)
{
    const struct shape *s = task_shape(l->m, v);
    int64_t *back = regained(l, model_task(l->m, v)->node);

    for (uint32_t k = 0; k < s->nreq; k++) {
        back[s->req[k].dim] += sign * s->req[k].v;
    }
}

static bool can_stay(struct leftover *l, task_id v)
{
    const node_id n = model_task(l->m, v)->node;
    const struct shape *s = task_shape(l->m, v);
    const int64_t *back = regained(l, n);

    for (uint32_t k = 0; k < s->nreq; k++) {
        const uint32_t dim = s->req[k].dim;
        if (l->m->nodes.future.col[dim][n.i] - back[dim] < s->req[k].v) {
            return false;
        }
    }
    return true;
}

/* Victims that must go and victims that may stay. */
struct trimmed {
    task_id *gone; /* must go */
    uint32_t ngone;
    task_id *stay; /* nodes have room for these again, in the order found */
    uint32_t nstay;
    uint32_t *unit; /* end of each group that stays or goes as one */
    uint32_t nunit;
};

static void let_stay(struct trimmed *r, const task_id *v, uint32_t n)
{
    memcpy(r->stay + r->nstay, v, n * sizeof(v[0]));
    r->nstay += n;
    r->unit[r->nunit++] = r->nstay;
}

static void gang_trim_add_released(struct trimmed *r, const task_id *v, uint32_t n)
{
    memcpy(r->gone + r->ngone, v, n * sizeof(v[0]));
    r->ngone += n;
}

static void trim_bundle(struct leftover *l, const struct bundle *b, struct trimmed *r)
{
    uint32_t stay = 0;

    for (uint32_t i = b->safe ? b->n : 0; i-- > 0;) {
        if (can_stay(l, b->at[i])) {
            give_back(l, b->at[i], 1);
            let_stay(r, &b->at[i], 1);
        } else {
            gang_trim_add_released(r, &b->at[i], 1);
        }
    }
    if (b->safe) {
        return;
    }
    while (stay < b->n && can_stay(l, b->at[stay])) {
        give_back(l, b->at[stay++], 1);
    }
    if (stay == b->n) {
        let_stay(r, b->at, b->n);
        return;
    }
    while (stay > 0) { /* a few members are useless to a broken gang */
        give_back(l, b->at[--stay], -1);
    }
    gang_trim_add_released(r, b->at, b->n);
}

void gang_evict_all(struct evictor *e, const task_id *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        stmt_evict(e->ssn, v[i], e->reason, e->sheet.job);
    }
}

/* Repeats the placements of a saved statement with fewer victims evicted: those that stay may fail
 * a filter for the job or use up the queue's limit. */
static bool place_again(struct session *ssn, const struct saved_ops *saved)
{
    for (uint32_t k = 0; k < saved->n; k++) {
        const struct op *op = &saved->at[k];
        node_id one[1] = {op->node};
        if (op->kind != OP_PIPELINE) {
            continue;
        }
        const queue_id q = model_job(ssn->m, model_task(ssn->m, op->task)->job)->queue;
        if (!model_fits_future(ssn->m, task_shape(ssn->m, op->task), op->node) ||
            !hooks_allocatable(ssn, q, op->task) ||
            hooks_filter(ssn, op->task, FILTER_PLACE, one, 1, NULL) == 0 ||
            !stmt_pipeline(ssn, op->task, op->node, false)) {
            return false;
        }
    }
    return true;
}

/* Whether the job keeps its places when the first nunit groups stay. */
static bool place_with(struct evictor *e, const struct trimmed *r, uint32_t nunit,
                       const struct saved_ops *places, stmt_mark_t mark)
{
    const uint32_t stay = nunit > 0 ? r->unit[nunit - 1] : 0;

    stmt_rewind(e->ssn, mark);
    gang_evict_all(e, r->gone, r->ngone);
    gang_evict_all(e, r->stay + stay, r->nstay - stay);
    return place_again(e->ssn, places);
}

/* Filters and queue limits are easier to pass the more victims go, so a binary search finds how
 * many groups can stay. Returns 0 when none can; then a failed attempt is left in the journal. */
static uint32_t most_that_stay(struct evictor *e, const struct trimmed *r,
                               const struct saved_ops *places, stmt_mark_t mark)
{
    uint32_t low = 0, high = r->nunit;

    if (place_with(e, r, r->nunit, places, mark)) {
        return r->nunit;
    }
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (place_with(e, r, middle, places, mark)) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low > 0 && place_with(e, r, low, places, mark) ? low : 0;
}

bool gang_trim(struct evictor *e, const struct bundles *b, uint32_t nused, stmt_mark_t mark)
{
    struct session *ssn = e->ssn;
    const struct model *m = ssn->m;
    struct leftover l = {.m = m};
    struct trimmed r = {0};
    uint32_t all = 0;

    for (uint32_t i = 0; i < nused; i++) {
        all += b->at[b->order[i]].n;
    }
    r.gone = hk_arena_array(ssn->mem, all, sizeof(r.gone[0]));
    r.stay = hk_arena_array(ssn->mem, all, sizeof(r.stay[0]));
    r.unit = hk_arena_array(ssn->mem, all, sizeof(r.unit[0]));
    l.slot = hk_arena_zalloc(ssn->mem, m->nodes.len * sizeof(l.slot[0]));
    l.back = hk_arena_zalloc(ssn->mem, (size_t)all * m->dims.n * sizeof(l.back[0]));
    for (uint32_t i = nused; i-- > 0;) {
        trim_bundle(&l, &b->at[b->order[i]], &r);
    }
    if (r.nunit == 0) {
        return true;
    }
    const struct saved_ops before = stmt_save(ssn, mark);
    if (most_that_stay(e, &r, &before, mark) > 0) {
        return true;
    }
    stmt_rewind(ssn, mark);
    if (stmt_replay(ssn, &before)) {
        return true;
    }
    stmt_rewind(ssn, mark);
    return false;
}
