// SPDX-License-Identifier: Apache-2.0
// Shared by victim filters: the job of a candidate, and a set of rows that can be emptied at no
// cost, for counters within one call.
#pragma once

#include "scheduler/session.h"

static inline void victims_keep(struct victims *v, task_id t)
{
    v->out[v->nout++] = t;
}

static inline void victims_keep_all(struct victims *v)
{
    for (uint32_t k = 0; k < v->n; k++) {
        victims_keep(v, v->in[k]);
    }
}

/* The task's job if it takes part in sessions, else NULL. */
static inline const struct job *victim_job(const struct model *m, task_id t)
{
    const job_id id = model_task(m, t)->job;

    if (id_none(id)) {
        return NULL;
    }
    const struct job *j = model_job(m, id);
    return j->has_pg && !id_none(j->queue) ? j : NULL;
}

/* A set of row numbers below a limit; each has a slot in order of arrival. Set n to 0 to empty it:
 * a row is in the set only if its slot points back at it. */
struct sparse {
    uint32_t *slot; /* by row */
    uint32_t *row;  /* by slot */
    uint32_t n;
};

static inline void sparse_init(struct sparse *s, struct hk_arena *mem, uint32_t limit)
{
    s->slot = hk_arena_zalloc(mem, limit * sizeof(*s->slot));
    s->row = hk_arena_array(mem, limit, sizeof(*s->row));
    s->n = 0;
}

static inline bool sparse_has(const struct sparse *s, uint32_t row)
{
    return s->slot[row] < s->n && s->row[s->slot[row]] == row;
}

/* The row's slot; *fresh tells whether it is new. */
static inline uint32_t sparse_add(struct sparse *s, uint32_t row, bool *fresh)
{
    *fresh = !sparse_has(s, row);
    if (*fresh) {
        s->slot[row] = s->n;
        s->row[s->n++] = row;
    }
    return s->slot[row];
}
