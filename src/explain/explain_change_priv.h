// SPDX-License-Identifier: Apache-2.0
// Shared by the files that choose changes to try.
//
//   explain_change.c        searching; other jobs
//   explain_change_job.c    the job itself
//   explain_change_world.c  queues and nodes
#pragma once

#include "explain/explain_priv.h"

/* Adds the edits of a change of size v to e. No edits: it does not apply. */
typedef void change_make(struct explainer *x, const void *ctx, int64_t v, struct explain_edits *e);

/* A change with which the job started. */
struct tested {
    int64_t v;
    struct explain_edits e;
    struct outcome o;
};

/* Tries a change; sets *ret when the job starts. */
bool change_test(struct explainer *x, change_make *make, const void *ctx, int64_t v,
                 struct tested *ret);

struct change_range {
    int64_t lo, hi;
    int64_t hint; /* a good guess inside the range; ignored when outside */
};
/* The largest (by bisection) or smallest (by doubling, then bisection) size with which the job
 * starts. Both assume that the effect is monotonic; whatever they return was tried. */
bool change_largest(struct explainer *x, change_make *make, const void *ctx, struct change_range r,
                    struct tested *ret);
bool change_smallest(struct explainer *x, change_make *make, const void *ctx, struct change_range r,
                     struct tested *ret);

/* Whether some node refused with that code. */
bool change_is_due_to(const struct explainer *x, const char *code);
/* Whether admission or the queue holds the job back. */
bool change_is_limited(const struct explainer *x);
/* Converts an amount of the answer to stored units, 0 when absent. */
int64_t change_units(const struct model *m, uint32_t dim, const struct json *amount);

/* Tries to open closed queues and to admit groups. */
void change_gate(struct explainer *x);
void change_job(struct explainer *x);
void change_queue(struct explainer *x);
void change_nodes(struct explainer *x);
