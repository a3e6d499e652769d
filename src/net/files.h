// SPDX-License-Identifier: Apache-2.0
// Hears when files may have changed: written in place, replaced by a rename, or swapped by the
// symbolic link above them, as mounted ConfigMaps and Secrets are. What they hold is for the
// listener to read and compare.
#pragma once

#include "base/err.h"
#include "net/loop.h"

struct net_files;

struct net_files_opts {
    struct net_loop *loop;
    const char *const *paths; /* copied from; NULL entries are passed over */
    uint32_t npaths;
    void (*changed)(void *ctx); /* a moment after a change, and now and then without one */
    void *ctx;
};

int net_files_new(const struct net_files_opts *o, struct net_files **ret,
                  struct hk_err *err) HK_CHECKED;
/* Takes NULL. */
void net_files_free(struct net_files *f);
