// SPDX-License-Identifier: Apache-2.0
// Which hyperNodes a job or sub-job may be put into, as gradients: lists of one tier each, in the
// order they are to be tried (scheduler.md 4.2.4).
#pragma once

#include "scheduler/session.h"

struct gradient_ask {
    hyper_id start;       /* the part of the tree to stay in */
    int32_t limit;        /* highest tier allowed */
    hyper_id mark;        /* where some of its tasks are already, NO_HYPER when nowhere */
    const int64_t *need;  /* by dimension: what all of its tasks ask for; NULL nothing */
    const int64_t *least; /* what it cannot start without; NULL the same as need */
};

/* Lowest tier first, by name within one. Domains that have room for all come before those that have
 * it for the least. False when mark and start have no part of the tree in common. */
bool gradient_allocate(struct session *ssn, const struct gradient_ask *a, struct gradients *ret);
/* Highest tier first, domains large enough when empty, max of them at most. */
bool gradient_evict(struct session *ssn, const struct gradient_ask *a, uint32_t max,
                    struct gradients *ret);
/* The start and nothing else. */
void gradient_only(struct session *ssn, hyper_id start, struct gradients *ret);
