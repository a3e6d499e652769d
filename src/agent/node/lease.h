// SPDX-License-Identifier: Apache-2.0
// The heartbeat of a node.
#pragma once

#include "agent/node/node.h"

/* Interval of heartbeats. */
int64_t lease_beat_ns(const struct host *h);
/* Renews the lease of a registered node, unless a renewal is in flight. */
void lease_beat(struct node *n);
