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
    room_candidate *may; /* which tasks can be victims in this phase */
};

/* Victims on the node that plugins allow, in the arena. False when evicting all of them would not
 * make room. */
bool preempt_victims(struct preemptor *p, task_id t, node_id n, task_id **ret, uint32_t *ret_n);

/* room_occupy with preempt's room_return rule. */
bool preempt_occupy(struct preemptor *p, task_id t, node_id n, const task_id *victims, uint32_t nv);

/* Topology-aware mode: tries nodes one by one, undoes each try, and evicts on the node with the
 * least harm. False: nothing changed. */
bool preempt_dryrun(struct preemptor *p, task_id t, const node_id *nodes, uint32_t n);
