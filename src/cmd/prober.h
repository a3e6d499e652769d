// SPDX-License-Identifier: Apache-2.0
// The controllers' questions to pods, asked through the loop.
#pragma once

#include "controllers/prober.h"
#include "net/loop.h"

struct prober *cmd_prober_new(struct net_loop *l);
/* Drops what is under way. Takes NULL. */
void cmd_prober_free(struct prober *p);
