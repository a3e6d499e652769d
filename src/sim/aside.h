// SPDX-License-Identifier: Apache-2.0
// Tries things without changing this process: the work runs in a forked copy, and only what it
// writes comes back. Memory is shared until changed, so a copy of a large cluster costs little, and
// there is nothing to undo.
#pragma once

#include "base/err.h"
#include "base/str.h"

/* Called in the copy. Must not use descriptors, threads or anything else shared with the
 * original. */
typedef void aside_fn(void *ctx, struct hk_buf *out);

/* *ret gets what fn wrote. Fails when fork fails or the copy ends early. */
int aside_run(aside_fn *fn, void *ctx, struct hk_buf *ret, struct hk_err *err) HK_CHECKED;
