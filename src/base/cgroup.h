// SPDX-License-Identifier: Apache-2.0
// The control groups that this process is in, of both versions and of machines that mix them.
#pragma once

#include "base/str.h"

struct hk_cgroup {
    bool v2;
    struct hk_str options; /* of the mount; in version 1 the controllers are among them */
    const char *mount;     /* where the hierarchy is mounted */
    const char *own;       /* the directory of this process's group, the mount or below it */
};

/* Calls fn for each hierarchy that is mounted and that this process is in, in the order of the
 * mounts. root is put in front of all paths: "" but for tests. */
void hk_cgroup_each(const char *root, void (*fn)(void *ctx, const struct hk_cgroup *g), void *ctx);
/* Whether the list, separated by commas, has the word. */
bool hk_cgroup_lists(struct hk_str list, struct hk_str word);
