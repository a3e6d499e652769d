// SPDX-License-Identifier: Apache-2.0
// Shared by the files that know which changes are worth a try.
//
//   explain_change.c        searching; other jobs
//   explain_change_job.c    the job itself
//   explain_change_world.c  queues and nodes
#pragma once

#include "sim/explain_priv.h"

/* The edits that make the change of size v. None: it does not apply. */
typedef void change_make(struct explainer *x, const void *ctx, int64_t v, struct explain_edits *e);

/* A change under which the job started. */
struct tested {
    int64_t v;
    struct explain_edits e;
    struct outcome o;
};

/* Replaces *ret when the job starts. */
bool change_test(struct explainer *x, change_make *make, const void *ctx, int64_t v,
                 struct tested *ret);

struct change_range {
    int64_t lo, hi;
    int64_t hint; /* a good guess inside, else anything outside */
};
/* The largest (by halving) or smallest (by doubling, then halving) size with which it starts. Both
 * suppose that less, or more, helps no less; whatever they return has been tried. */
bool change_largest(struct explainer *x, change_make *make, const void *ctx, struct change_range r,
                    struct tested *ret);
bool change_smallest(struct explainer *x, change_make *make, const void *ctx, struct change_range r,
                     struct tested *ret);

/* Some node refused with that code. */
bool change_is_due_to(const struct explainer *x, const char *code);
/* Admission or the queue is in the way. */
bool change_is_limited(const struct explainer *x);
/* An amount of the answer in stored units, 0 when there is none. */
int64_t change_units(const struct model *m, uint32_t dim, const struct json *amount);

/* Closed queues, groups that are not admitted. */
void change_gate(struct explainer *x);
void change_job(struct explainer *x);
void change_queue(struct explainer *x);
void change_nodes(struct explainer *x);
