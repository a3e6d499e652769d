// SPDX-License-Identifier: Apache-2.0
// Posts to admission webhooks over HTTPS: JSON goes out, a bounded answer comes back, all on the
// caller's loop.
#pragma once

#include "api/webhook_caller.h"
#include "net/loop.h"

struct poster;

/* A post has no time limit of its own, except for connecting: the caller of the table cancels it. An
 * answer longer than max_reply bytes is a failure. */
struct poster *poster_new(struct net_loop *loop, size_t max_reply);
/* Cancels everything. Takes NULL. */
void poster_free(struct poster *p);
/* cancel must not be called from done. */
const struct webhook_caller *poster_caller(const struct poster *p);
