// SPDX-License-Identifier: Apache-2.0
// Scores by free and used resources: LeastAllocated, MostAllocated, BalancedAllocation
// (docs/reference/plugins.md section 6). They run for every task over every candidate, so this is
// the innermost loop of scoring.
#pragma once

#include "scheduler/model/model.h"

struct resource_weights {
    int64_t least, most, balanced;
    uint32_t gpu; /* third dimension of the balance, HK_NONE when there is none */
};

/* Adds the weighted scores of placing the shape to score[i] of nodes[i]. */
void resources_score(const struct model *m, const struct shape *s, const struct resource_weights *w,
                     const node_id *nodes, uint32_t n, double *score);
