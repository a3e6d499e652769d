// SPDX-License-Identifier: Apache-2.0
// Victims of gang eviction by victim job: those its gang can spare (safe), and the rest, whose loss
// breaks it (whole), to be taken all together or not at all.
#pragma once

#include "scheduler/session.h"

struct bundle {
    job_id job;
    bool safe;
    task_id *at;
    uint32_t n;
    double roi; /* use to the evictor for what it costs the victim */
};

/* Amounts asked for, one per dimension of the model. */
struct demand {
    int64_t *v;
    uint32_t n;
};

/* Splits tasks of one job, given lowest priority first, into at most two bundles; the order within
 * each is kept. Returns how many. */
uint32_t bundle_split(const struct model *m, struct hk_arena *mem, job_id j, const task_id *tasks,
                      uint32_t n, struct bundle ret[2]);
/* Leaves what allowed says yes to: a safe bundle shrinks, a whole one empties unless all of it is
 * allowed. */
void bundle_restrict(struct bundle *b, bool (*allowed)(const void *ctx, task_id t),
                     const void *ctx);
double bundle_roi(const struct model *m, const struct bundle *b, const struct demand *need);
