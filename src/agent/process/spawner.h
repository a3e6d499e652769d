// SPDX-License-Identifier: Apache-2.0
// The spawner: a small process that forks the shims of containers. The cost of fork grows with the
// memory of the caller, and a daemon with a store has a lot. The spawner is forked before that, has
// no threads, and holds no file of the daemon.
#pragma once

#include "base/err.h"

struct spawner;

/* Call it early: every later fork copies the memory that the caller has now. */
int spawner_new(struct spawner **ret, struct hk_err *err) HK_CHECKED;
/* Ends commands run inside containers; containers continue. Takes NULL. */
void spawner_free(struct spawner *n);
