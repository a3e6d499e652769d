// SPDX-License-Identifier: Apache-2.0
// Reports that files may have changed: written in place, replaced by a rename, or swapped by a
// symbolic link above them, as in mounted ConfigMaps and Secrets. The listener reads and compares
// them.
#pragma once

#include "base/err.h"
#include "net/loop.h"

struct net_files;

struct net_files_opts {
    struct net_loop *loop;
    const char *const *paths; /* copied; NULL entries are skipped */
    uint32_t npaths;
    void (*changed)(void *ctx); /* shortly after a change, sometimes without one */
    void *ctx;
};

int net_files_new(const struct net_files_opts *o, struct net_files **ret,
                  struct hk_err *err) HK_CHECKED;
/* Takes NULL. */
void net_files_free(struct net_files *f);
