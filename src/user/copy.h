// SPDX-License-Identifier: Apache-2.0
// Copies of files and directories between this machine and a pod.
#pragma once

#include "user/remote.h"

struct copy_opts {
    struct remote_opts remote;
    const char *from, *to; /* one of them is POD:PATH */
};

/* A target that is an existing directory gets the copy under its own name. */
int copy_files(const struct copy_opts *o, struct hk_err *err) HK_CHECKED;
