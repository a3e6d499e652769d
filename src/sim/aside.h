// SPDX-License-Identifier: Apache-2.0
// Trying things on a world without touching it: the work runs in a copy of the process, and all
// that comes back is what it wrote. Memory is shared until it is changed, so a copy of a large
// cluster costs little, and there is nothing to undo.
#pragma once

#include "base/err.h"
#include "base/str.h"

/* Called in the copy. It must not touch descriptors, threads or anything else that the original
 * shares with it. */
typedef void aside_fn(void *ctx, struct hk_buf *out);

/* What fn wrote is in *ret. Fails when the copy could not be made or ended before its time. */
int aside_run(aside_fn *fn, void *ctx, struct hk_buf *ret, struct hk_err *err) HK_CHECKED;
