// SPDX-License-Identifier: Apache-2.0
// Victims of gang eviction, grouped by victim job: those its gang can spare (safe), and the rest,
// whose loss breaks the gang (whole), to be evicted all together or not at all.
#pragma once

#include "scheduler/session.h"

struct bundle {
    job_id job;
    bool safe;
    task_id *at;
    uint32_t n;
    double roi; /* benefit for the evictor relative to the victim's cost */
};

/* Requested amounts, one per dimension of the model. */
struct demand {
    int64_t *v;
    uint32_t n;
};

/* Splits tasks of one job, lowest priority first, into at most two bundles, keeping the order.
 * Returns how many. */
uint32_t bundle_split(const struct model *m, struct hk_arena *mem, job_id j, const task_id *tasks,
                      uint32_t n, struct bundle ret[2]);
/* Removes tasks for which allowed() is false: a safe bundle shrinks, a whole one becomes empty
 * unless all are allowed. */
void bundle_restrict(struct bundle *b, bool (*allowed)(const void *ctx, task_id t),
                     const void *ctx);
double bundle_roi(const struct model *m, const struct bundle *b, const struct demand *need);
