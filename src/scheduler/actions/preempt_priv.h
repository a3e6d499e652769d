// SPDX-License-Identifier: Apache-2.0
// Shared by the two modes of preempt.
#pragma once

#include "scheduler/actions/room.h"

struct preempt_args {
    bool topology_aware;
    int64_t candidate_percentage, candidates_min, candidates_max;
};

struct preemptor {
    struct session *ssn;
    const struct preempt_args *args;
    struct room room;
    struct room_memo memo;
    room_candidate *may; /* who can be a victim in this phase */
};

/* Victims on the node as plugins allow them, in the arena. False when even all of them would not
 * make room. */
bool preempt_victims(struct preemptor *p, task_id t, node_id n, task_id **ret, uint32_t *ret_n);

/* Topology-aware mode: tries nodes one by one, takes everything back, and evicts on the one where
 * it hurts least. False: nothing changed. */
bool preempt_dryrun(struct preemptor *p, task_id t, const node_id *nodes, uint32_t n);
