// SPDX-License-Identifier: Apache-2.0
// Random clusters and configurations, the same on every machine for the same seed, and what the
// world does to them between cycles: pods start, finish, go away and come anew, nodes change.
#pragma once

#include "bench/world.h"
#include "scheduler/session.h"

struct random_world {
    struct world w;
    struct hk_rand rand;
    struct hk_buf conf; /* configuration text */
    uint32_t ns[2];
    uint32_t app, zone, host;           /* label keys */
    uint32_t nqueue, nnode, njob, npod; /* made so far: the numbers in names */
    bool topology;                      /* has hyperNodes */
    struct session_opts opts;           /* but for the plain switch */
};

void random_world_init(struct random_world *r, uint64_t seed);
void random_world_fini(struct random_world *r);
/* What happens between two cycles. Decisions are already in the model. */
void random_world_step(struct random_world *r);
/* Nodes, queues, jobs and tasks as comment lines. */
void random_world_print(const struct random_world *r);
