// SPDX-License-Identifier: Apache-2.0
// Helpers to describe a container to its runtime.
#include "agent/host/runtime.h"

#include <string.h>

void runtime_add_mount(struct runtime_container *rc, struct runtime_mount m, struct hk_arena *a)
{
    struct runtime_mount *mounts = hk_arena_array(a, rc->nmount + 1, sizeof(*mounts));

    if (rc->nmount > 0) {
        memcpy(mounts, rc->mounts, rc->nmount * sizeof(*mounts));
    }
    mounts[rc->nmount++] = m;
    rc->mounts = mounts;
}
