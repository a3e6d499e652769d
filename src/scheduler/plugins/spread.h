// SPDX-License-Identifier: Apache-2.0
// Pod topology spread for predicates and nodeorder, read from the counters of model/topo.h.
#pragma once

#include "scheduler/fit.h"
#include "scheduler/model/topo.h"

struct spread_row {
    const struct topo_counter *counter;
    int64_t most; /* most pods in the node's domain before this one */
};

/* The hard constraints of one task; made once per search, valid until a placement. Do not copy. */
struct spread_filter {
    uint32_t n;
    struct spread_row *row;
    struct spread_row few[8]; /* storage of row, unless there are more */
};

/* Whether the task has constraints of that kind. */
bool spread_asked(const struct model *m, task_id t, bool hard);

/* False when the task has no hard constraint. mem holds rows that exceed few[]. */
bool spread_begin(struct spread_filter *f, struct model *m, task_id t, struct hk_arena *mem);
/* REASON_NONE when the node passes. */
enum reason_code spread_check(const struct spread_filter *f, node_id n);

/* Adds weight x (0 to 100) to each score, by the soft constraints. */
void spread_score(struct model *m, task_id t, const node_id *nodes, uint32_t n, int64_t weight,
                  struct hk_arena *mem, double *score);
/* Natural logarithm of a positive number, bit-identical on every machine. */
double spread_log(double x);
