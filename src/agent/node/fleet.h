// SPDX-License-Identifier: Apache-2.0
// Many simulated nodes behind one agent.
#pragma once

#include "agent/node/node.h"

struct fleet;

/* Adds its label to those of the host. */
struct fleet *fleet_new(struct host *h, const struct agent_fleet *o);
void fleet_free(struct fleet *f);
int64_t fleet_tick(struct fleet *f, int64_t now_ns);
/* NULL when the fleet has no node of that name. */
struct node *fleet_node(const struct fleet *f, struct hk_str name);
/* Every node is registered. */
bool fleet_is_registered(const struct fleet *f);
