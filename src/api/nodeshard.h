// SPDX-License-Identifier: Apache-2.0
// NodeShards: which of several schedulers must use which nodes, and which it still uses.
#pragma once

#include "api/meta.h"

struct api_nodeshard {
    const struct json *raw;
    struct api_meta meta;
    struct api_strs nodes_desired; /* spec: names */
    struct api_strs nodes_in_use;  /* status: not yet released by the owner */
};

int api_nodeshard_decode(const struct json *doc, struct hk_arena *a, struct api_nodeshard *ret,
                         struct hk_err *err) HK_CHECKED;
