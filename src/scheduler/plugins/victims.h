// SPDX-License-Identifier: Apache-2.0
// What victim filters share: whose job a candidate belongs to, and a set of rows that is emptied at
// no cost, for counters that live during one call.
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

/* The job when it takes part in sessions, NULL for orphans. */
static inline const struct job *victim_job(const struct model *m, task_id t)
{
    const job_id id = model_task(m, t)->job;

    if (id_none(id)) {
        return NULL;
    }
    const struct job *j = model_job(m, id);
    return j->has_pg && !id_none(j->queue) ? j : NULL;
}

/* Row numbers below a limit, numbered in order of arrival. Emptying it is setting n to 0: a row is
 * in when its slot points back at it. */
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
