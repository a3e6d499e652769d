// SPDX-License-Identifier: Apache-2.0
// Sums per hyperNode; see hyper_books.h. network-topology-aware makes them when a session opens.

#include "scheduler/plugins/hyper_books.h"

struct tier_key {
    int32_t tier;
    hyper_id h;
};

static int tier_cmp(const void *a, const void *b)
{
    const struct tier_key *x = a, *y = b;

    if (x->tier != y->tier) {
        return x->tier < y->tier ? -1 : 1;
    }
    return (x->h.i > y->h.i) - (x->h.i < y->h.i);
}

static void list_by_tier(struct hyper_books *b, struct session *ssn)
{
    const struct model *m = ssn->m;
    struct tier_key *key = hk_arena_array(ssn->mem, m->hypers.len, sizeof(key[0]));

    for (uint32_t i = 1; i < m->hypers.len; i++) {
        if (m->hypers.at[i].used) {
            key[b->n++] = (struct tier_key){m->hypers.at[i].tier, {i}};
        }
    }
    qsort(key, b->n, sizeof(key[0]), tier_cmp);
    b->by_tier = hk_arena_array(ssn->mem, b->n, sizeof(b->by_tier[0]));
    for (uint32_t i = 0; i < b->n; i++) {
        b->by_tier[i] = key[i].h;
    }
    b->max_tier = m->hypers.at[HYPER_ROOT.i].tier;
    b->min_tier = b->n > 0 ? key[0].tier : b->max_tier;
}

/* Two passes: how many hyperNodes each node is in, then which. */
static void list_by_node(struct hyper_books *b, struct session *ssn)
{
    const struct model *m = ssn->m;
    const uint32_t rows = m->nodes.len;
    uint32_t *end = hk_arena_zalloc(ssn->mem, ((size_t)rows + 1) * sizeof(end[0]));

    b->first = hk_arena_zalloc(ssn->mem, ((size_t)rows + 1) * sizeof(b->first[0]));
    for (uint32_t i = 0; i < b->n; i++) {
        const struct hyper *h = &m->hypers.at[b->by_tier[i].i];
        for (uint32_t k = 0; k < h->nodes.len; k++) {
            b->first[h->nodes.at[k].i + 1]++;
        }
    }
    for (uint32_t i = 0; i < rows; i++) {
        b->first[i + 1] += b->first[i];
        end[i] = b->first[i];
    }
    b->at = hk_arena_array(ssn->mem, b->first[rows], sizeof(b->at[0]));
    for (uint32_t i = 0; i < b->n; i++) {
        const struct hyper *h = &m->hypers.at[b->by_tier[i].i];
        for (uint32_t k = 0; k < h->nodes.len; k++) {
            b->at[end[h->nodes.at[k].i]++] = b->by_tier[i];
        }
    }
}

static void sum_up(struct hyper_books *b, const struct model *m, hyper_id id)
{
    const struct hyper *h = &m->hypers.at[id.i];

    for (uint32_t s = 0; s < b->ndim; s++) {
        const int64_t *used = m->nodes.used.col[b->dim[s]];
        const int64_t *alloc = m->nodes.alloc.col[b->dim[s]];
        int64_t sum_used = 0, sum_alloc = 0;
        for (uint32_t k = 0; k < h->nodes.len; k++) {
            sum_used += used[h->nodes.at[k].i];
            sum_alloc += alloc[h->nodes.at[k].i];
        }
        b->used[(size_t)id.i * b->ndim + s] = sum_used;
        b->capacity[(size_t)id.i * b->ndim + s] = sum_alloc;
    }
}

static void sum_all(struct hyper_books *b, struct session *ssn)
{
    const struct model *m = ssn->m;
    const size_t cells = (size_t)b->nhyper * b->ndim;

    b->used = hk_arena_zalloc(ssn->mem, cells * sizeof(b->used[0]));
    b->capacity = hk_arena_zalloc(ssn->mem, cells * sizeof(b->capacity[0]));
    for (uint32_t i = 0; i < b->n; i++) {
        sum_up(b, m, b->by_tier[i]);
    }
    for (uint32_t s = 0; s < b->ndim; s++) {
        b->used[s] = m->used_total[b->dim[s]];
        b->capacity[s] = m->total[b->dim[s]];
    }
}

void hyper_books_open(struct hyper_books *b, struct session *ssn, const uint32_t *dims,
                      uint32_t ndim)
{
    *b = (struct hyper_books){.nhyper = ssn->m->hypers.len, .ndim = ndim};
    for (uint32_t d = 0; d < DIM_MAX; d++) {
        b->slot[d] = HK_NONE;
    }
    for (uint32_t s = 0; s < ndim; s++) {
        b->dim[s] = dims[s];
        b->slot[dims[s]] = s;
    }
    list_by_tier(b, ssn);
    if (b->n == 0) {
        return;
    }
    list_by_node(b, ssn);
    sum_all(b, ssn);
    b->place = hk_arena_array(ssn->mem, ssn->m->tasks.len, sizeof(b->place[0]));
}

static void hyper_books_add_request(struct hyper_books *b, const struct shape *s, hyper_id h,
                                    int sign)
{
    int64_t *used = b->used + (size_t)h.i * b->ndim;

    for (uint32_t k = 0; k < s->nreq; k++) {
        const uint32_t slot = b->slot[s->req[k].dim];
        if (slot != HK_NONE) {
            used[slot] += sign * s->req[k].v;
        }
    }
}

static void add_everywhere(struct hyper_books *b, const struct model *m, task_id t, node_id n,
                           int sign)
{
    const struct shape *s = task_shape(m, t);

    hyper_books_add_request(b, s, HYPER_ROOT, sign);
    for (uint32_t k = b->first[n.i]; k < b->first[n.i + 1]; k++) {
        hyper_books_add_request(b, s, b->at[k], sign);
    }
}

node_id hyper_books_allocate(struct hyper_books *b, const struct model *m, task_id t)
{
    const struct task *task = model_task(m, t);

    add_everywhere(b, m, t, task->node, 1);
    if (task->status != TASK_ALLOCATED && task->status != TASK_PIPELINED) {
        return NO_NODE; /* an undone eviction */
    }
    b->place[t.i] = task->node;
    return task->node;
}

node_id hyper_books_deallocate(struct hyper_books *b, const struct model *m, task_id t)
{
    const struct task *task = model_task(m, t);

    if (task->status == TASK_RELEASING) {
        add_everywhere(b, m, t, task->node, -1);
        return NO_NODE;
    }
    add_everywhere(b, m, t, b->place[t.i], -1);
    return b->place[t.i];
}
