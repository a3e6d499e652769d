// SPDX-License-Identifier: Apache-2.0
// Shared by gang_evict.c, which chooses victims, and gang_trim.c, which spares unneeded ones.
#pragma once

#include "scheduler/actions/bundle.h"
#include "scheduler/actions/worksheet.h"
#include "scheduler/stmt.h"

struct bundles {
    struct bundle *at;
    uint32_t *order; /* indexes in order of eviction */
    uint32_t n;
};

struct evictor {
    struct session *ssn;
    enum evict_kind kind;
    const char *reason;
    uint32_t max_domains;
    bool allow_whole;
    bool watch_share;  /* the queue stays within its share, or its victims were beyond it */
    uint64_t *allowed; /* bit per task row, clear between uses */

    /* The job that needs room. */
    struct worksheet sheet;
    bool was_ready;
    struct demand need;
    hyper_id *placed; /* by row of the sheet */
};

/* Evicts them in the journal for the job that needs room. */
void gang_evict_all(struct evictor *e, const task_id *v, uint32_t n);
/* Since the mark, the first nused bundles in order were evicted and the job was placed. Spares
 * victims whose room is not needed, the last chosen first. Keeps the job's places: a new search
 * could move it off the freed room. False: nothing changed since the mark. */
bool gang_trim(struct evictor *e, const struct bundles *b, uint32_t nused, stmt_mark_t mark);
