// SPDX-License-Identifier: Apache-2.0
// Choosing a node for a task: a pass over the columns of free room, then filters, then scores
// (docs/reference/scheduler.md section 5). Nothing here changes the model. Shortcuts between equal
// tasks give the result of the plain search.
#pragma once

#include "scheduler/session.h"

enum placement {
    PLACE_NONE,
    PLACE_IDLE,   /* the node has room now: stmt_allocate */
    PLACE_FUTURE, /* it will have room: stmt_pipeline */
};

/* Starts a task loop over the nodes of the hyperNode; HYPER_ROOT means the whole cluster. Tasks of
 * one shape share candidate windows within the loop. */
void select_begin(struct session *ssn, hyper_id domain);
/* Finds the best node by resource check, filters and scores, within the domain of select_begin.
 * Nodes with room now precede nodes with room later; within each group, nodes of the own shard come
 * first. On PLACE_NONE *ret_log holds the reasons (in the arena, perhaps shared with tasks of the
 * same shape), or NULL when scoring failed. */
enum placement select_node(struct session *ssn, task_id t, node_id *ret, struct fit_log **ret_log);
/* All nodes of the domain (sampled) that pass the filters in this mode; if scored, best first;
 * nodes of other shards last. check_future adds the resource check before the filters. Returns
 * their number; *ret is in the arena. None when scoring failed. */
uint32_t select_nodes(struct session *ssn, task_id t, hyper_id domain, enum filter_mode mode,
                      bool check_future, bool scored, node_id **ret, struct fit_log **ret_log);
/* How many feasible nodes to look for among n (docs/scheduling.md#how-a-node-is-chosen). */
uint32_t select_want(const struct session_opts *o, uint32_t n);
