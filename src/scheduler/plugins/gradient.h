// SPDX-License-Identifier: Apache-2.0
// Which hyperNodes a job or sub-job may be put into, as gradients: lists of one tier each, in the
// order in which they are tried (docs/reference/scheduler.md section 4.4).
#pragma once

#include "scheduler/session.h"

struct gradient_ask {
    hyper_id start;       /* root of the allowed part of the tree */
    int32_t limit;        /* highest tier allowed */
    hyper_id mark;        /* where its placed tasks are, NO_HYPER when none */
    const int64_t *need;  /* by dimension: request of all its tasks; NULL: nothing */
    const int64_t *least; /* minimum to start; NULL: the same as need */
};

/* Lowest tier first, then by name. Domains with room for need come before those with room only for
 * least. False when mark and start share no part of the tree. */
bool gradient_allocate(struct session *ssn, const struct gradient_ask *a, struct gradients *ret);
/* Highest tier first; only domains that would be large enough when empty, max at most. */
bool gradient_evict(struct session *ssn, const struct gradient_ask *a, uint32_t max,
                    struct gradients *ret);
/* Only the start. */
void gradient_only(struct session *ssn, hyper_id start, struct gradients *ret);
