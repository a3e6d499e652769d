// SPDX-License-Identifier: Apache-2.0
// Shared by the files of the topology counters only: topo.c (pods, constraints), topo_node.c
// (domains and counts), topo_index.c (which pods match which counters).
#pragma once

#include "scheduler/model/model_priv.h"
#include "scheduler/model/topo.h"

enum counter_kind {
    COUNT_TERMS,  /* pods that match all terms of an incoming pod */
    COUNT_SPREAD, /* pods that match a spread row, on the nodes it includes */
    OWNER_ANTI,   /* pods that carry a required anti-affinity term */
    OWNER_PREF,   /* pods that carry a preferred term */
};

/* The values counted for a pod, kept so that the model may change the task's row in any order. */
struct topo_pod {
    task_id next, prev; /* same ident */
    node_id node;
    ident_id ident;
    cons_id cons;
    bool counted, terminating;
};

struct topo_cons {
    struct topo_plan *plans; /* by namespace */
    struct topo_counters owners;
    bool known;
};

struct topo_pair {
    uint64_t key;
    HK_VEC(ident_id) idents;
    struct topo_counters counters;
};

struct topo {
    bool awake;    /* some cons needs counters: pods and idents are tracked */
    uint32_t nrow; /* node rows seen */
    HK_VEC(struct topo_key *) keys;
    struct topo_counters all;
    HK_VEC(struct topo_ident) idents;
    HK_VEC(struct topo_pod) pods;
    HK_VEC(struct topo_cons) cons;
    HK_VEC(struct topo_pair) pairs; /* 0: any labels */
    HK_VEC(uint32_t) vacant_pairs;
    struct hk_map pair_by_key;
};

static inline bool counter_is_owner(const struct topo_counter *c)
{
    return c->kind == OWNER_ANTI || c->kind == OWNER_PREF;
}

/* ---- topo.c ---- */

/* Adds the pod to (sign 1) or removes it from (-1) all its counters. */
void topo_pod_count(struct topo *t, const struct topo_pod *p, int sign);

/* ---- topo_node.c ---- */

void topo_node_count(struct topo_counter *c, node_id n, int sign);
/* Adds the node rows created since the last call. */
void topo_node_rows(const struct model *m);
/* The column of a label key, created when new. */
struct topo_key *topo_node_key(struct model *m, uint32_t label);
void topo_node_key_free(struct topo_key *key);
/* Computes which nodes a new spread counter includes. */
void topo_node_include(const struct model *m, struct topo_counter *c);
void topo_node_zero(struct topo_counter *c);
/* Frees the arrays of a counter. */
void topo_node_fini(struct topo_counter *c);
/* Whether the node counts for a spread row: it has the topology keys, and node affinity and taints
 * let the pod go there as far as the row honours them. Every node counts in other counters. */
bool topo_node_takes_part(const struct model *m, const struct topo_counter *c, node_id n);

/* ---- topo_index.c ---- */

bool topo_index_match(const struct model *m, const struct topo_counter *c, ident_id i);
/* Links a counter to the idents it matches and counts their pods. */
void topo_index_add(const struct model *m, struct topo_counter *c);
void topo_index_remove(struct topo *t, struct topo_counter *c);
struct topo_ident *topo_index_ident(const struct model *m, ident_id i);
void topo_index_ident_fini(struct topo_ident *row);
