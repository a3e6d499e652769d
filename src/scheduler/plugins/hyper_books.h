// SPDX-License-Identifier: Apache-2.0
// The books of hyperNodes during a session: how much of what its nodes have is in use, and which
// hyperNodes a node is in. As in Volcano's plugin, tasks pipelined in this session count as in use,
// and those it evicted do not.
#pragma once

#include "scheduler/session.h"

struct hyper_books {
    uint32_t nhyper;
    uint32_t ndim;
    uint32_t dim[DIM_MAX];    /* the resources looked at */
    uint32_t slot[DIM_MAX];   /* by dimension: place in dim, HK_NONE when not looked at */
    int64_t *used, *capacity; /* [hyper][place in dim] */
    hyper_id *by_tier;        /* the virtual root left out; lowest tier first, then by row */
    uint32_t n;
    int32_t min_tier, max_tier; /* the highest is the virtual root's */
    uint32_t *first;            /* by node: where its hyperNodes begin in at; one more at the end */
    hyper_id *at;               /* in the order of by_tier */
    node_id *place;             /* by task: where this session put it */
};

/* Without any hyperNode n is 0 and the rest is not made. */
void hyper_books_open(struct hyper_books *b, struct session *ssn, const uint32_t *dims,
                      uint32_t ndim);

/* To be told of everything that happens to tasks. Returns the node a task came to or went from; an
 * evicted one is still there, so then NO_NODE. */
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

/* The hyperNode of the lowest tier there is that holds the node; NO_HYPER when none does. */
static inline hyper_id hyper_books_lowest(const struct hyper_books *b, const struct model *m,
                                          node_id n)
{
    const uint32_t k = b->first[n.i];

    if (k == b->first[n.i + 1] || m->hypers.at[b->at[k].i].tier != b->min_tier) {
        return NO_HYPER;
    }
    return b->at[k];
}
