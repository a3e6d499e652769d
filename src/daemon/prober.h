// SPDX-License-Identifier: Apache-2.0
// The probes that controllers send to pods, run by the loop.
#pragma once

#include "controllers/prober.h"
#include "net/loop.h"

struct prober *loop_prober_new(struct net_loop *l);
/* Cancels the probes in flight. Takes NULL. */
void loop_prober_free(struct prober *p);
