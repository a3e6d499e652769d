// SPDX-License-Identifier: Apache-2.0
// Inter-pod affinity and anti-affinity for predicates and nodeorder, read from the counters of
// model/topo.h (docs/reference/plugins.md section 4.5).
#pragma once

#include "scheduler/fit.h"
#include "scheduler/model/topo.h"

/* What one task requires of every node; made once per search, valid until a placement. */
struct interpod {
    const struct topo_plan *plan;  /* its own terms, NULL when it has none */
    struct topo_counters existing; /* anti-affinity terms of others that match it */
    bool first;                    /* no pod matches its affinity yet, and it matches itself */
};

/* False when no node can refuse the task. */
bool interpod_begin(struct interpod *ip, struct model *m, task_id t);
/* REASON_NONE when the node passes; the first failure wins. */
enum reason_code interpod_check(const struct interpod *ip, node_id n);
/* Whether a placement elsewhere, now or later in the session, can change a node's answer. */
bool interpod_filters(struct model *m, task_id t);

/* Whether preferred terms, its own or those of others, affect the score. */
bool interpod_scores(struct model *m, task_id t);
/* Adds weight x (0 to 100) to each score. */
void interpod_score(struct model *m, task_id t, const node_id *nodes, uint32_t n, int64_t weight,
                    struct hk_arena *mem, double *score);
