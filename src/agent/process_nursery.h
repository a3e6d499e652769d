// SPDX-License-Identifier: Apache-2.0
// The nursery: a small process that forks the shims of containers. To fork a process costs as much
// as it has memory, and a daemon with a store in it has a lot; the nursery is forked off before
// that, has no threads, and holds no file of the daemon.
#pragma once

#include "base/err.h"

struct nursery;

/* As early as possible: every fork copies what the calling process holds now. */
int nursery_new(struct nursery **ret, struct hk_err *err) HK_CHECKED;
/* Commands beside containers end with it; containers go on. Takes NULL. */
void nursery_free(struct nursery *n);
