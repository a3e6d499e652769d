// SPDX-License-Identifier: Apache-2.0
// Queues as a tree along spec.parent, for capacity with enableHierarchy.
#pragma once

#include "scheduler/plugins/ledger.h"

struct capacity_node {
    queue_id parent; /* NO_QUEUE for the root and for queues outside the tree */
    queue_id first_child, next;
    uint32_t depth;         /* 0: the root */
    struct rvec capability; /* missing dimensions come from the parent */
};

struct capacity_tree {
    struct capacity_node *at; /* by queue */
    queue_id root;            /* NO_QUEUE when there is none */
    queue_id *order;          /* queues under the root, parents before children */
    uint32_t n;
};

/* Builds the tree and fills the ledger: sums of children, limits, deserved shares. A queue outside
 * the tree does not take part. It, or an inner queue with its own jobs, gets a refusal; other
 * queues are not affected. */
void capacity_tree_open(struct capacity_tree *t, struct session *ssn, struct ledger *books);

static inline queue_id capacity_parent(const struct capacity_tree *t, queue_id q)
{
    return t->at[q.i].parent;
}

/* Only leaves accept jobs. */
static inline bool capacity_is_leaf(const struct capacity_tree *t, queue_id q)
{
    return id_none(t->at[q.i].first_child) && !id_eq(q, t->root);
}

/* The ancestor `level` levels up (1: the parent); NO_QUEUE past the root. */
queue_id capacity_ancestor(const struct capacity_tree *t, queue_id q, int64_t level);
/* Depth of the deepest queue that is an ancestor of both. */
uint32_t capacity_common_depth(const struct capacity_tree *t, queue_id a, queue_id b);
/* q, or its ancestor at that depth. */
queue_id capacity_at_depth(const struct capacity_tree *t, queue_id q, uint32_t depth);
