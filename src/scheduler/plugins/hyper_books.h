// SPDX-License-Identifier: Apache-2.0
// Resource usage of hyperNodes during a session, and which hyperNodes contain a node. As in
// Volcano's plugin, tasks pipelined in this session count as used, evicted ones do not.
#pragma once

#include "scheduler/session.h"

struct hyper_books {
    uint32_t nhyper;
    uint32_t ndim;
    uint32_t dim[DIM_MAX];    /* the resources counted */
    uint32_t slot[DIM_MAX];   /* by dimension: index in dim, HK_NONE when not counted */
    int64_t *used, *capacity; /* [hyper][index in dim] */
    hyper_id *by_tier;        /* without the virtual root; lowest tier first, then by row */
    uint32_t n;
    int32_t min_tier, max_tier; /* max_tier is the virtual root's */
    uint32_t *first;            /* by node: start of its hyperNodes in at; one extra at the end */
    hyper_id *at;               /* in the order of by_tier */
    node_id *place;             /* by task: where this session placed it */
};

/* Without any hyperNode n is 0 and nothing else is allocated. */
void hyper_books_open(struct hyper_books *b, struct session *ssn, const uint32_t *dims,
                      uint32_t ndim);

/* Call these for every allocate and deallocate event. They return the node a task came to or left;
 * NO_NODE for an evicted task, which is still there. */
node_id hyper_books_allocate(struct hyper_books *b, const struct model *m, task_id t);
node_id hyper_books_deallocate(struct hyper_books *b, const struct model *m, task_id t);

static inline int64_t hyper_books_used(const struct hyper_books *b, hyper_id h, uint32_t slot)
{
    return b->used[(size_t)h.i * b->ndim + slot];
}
static inline int64_t hyper_books_capacity(const struct hyper_books *b, hyper_id h, uint32_t slot)
{
    return b->capacity[(size_t)h.i * b->ndim + slot];
}

/* The hyperNode of the lowest tier (min_tier) that contains the node; NO_HYPER when none. */
static inline hyper_id hyper_books_lowest(const struct hyper_books *b, const struct model *m,
                                          node_id n)
{
    const uint32_t k = b->first[n.i];

    if (k == b->first[n.i + 1] || m->hypers.at[b->at[k].i].tier != b->min_tier) {
        return NO_HYPER;
    }
    return b->at[k];
}
