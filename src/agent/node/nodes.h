// SPDX-License-Identifier: Apache-2.0
// The nodes of an agent: one with its watch and its topology, or a fleet.
#pragma once

#include "agent/node/node.h"
#include "agent/node/topology.h"
#include "api/feed.h"

struct nodes {
    struct host *host;
    struct node one;  /* unused with a fleet */
    struct feed feed; /* watches that node */
    struct topology topology;
    struct fleet *fleet; /* or NULL */
};

/* ops and ctx are for a single node. */
void nodes_init(struct nodes *ns, struct host *h, const struct node_ops *ops, void *ctx);
void nodes_fini(struct nodes *ns);
/* Does what is due; returns the time of the next action. */
int64_t nodes_tick(struct nodes *ns, int64_t now_ns);
/* NULL when the agent has no node of that name. */
struct node *nodes_find(struct nodes *ns, struct hk_str name);
/* The node of the pods with that nodeName; a single node has all pods of the agent. */
struct node *nodes_for_pod(struct nodes *ns, struct hk_str name);
bool nodes_are_registered(const struct nodes *ns);
/* Records a warning about a single node. */
void nodes_warn(const struct nodes *ns, const char *reason, struct hk_str text);
