// SPDX-License-Identifier: Apache-2.0
// The part of JSONPath that printer columns use: ".a.b", ".a[0]", ".a['x/y']", ".a[*].b" and
// ".a[?(@.type=="Ready")].status".
#pragma once

#include "codec/json.h"

typedef void jsonpath_fn(void *ctx, const struct json *v);

/* Calls fn for every value that the path selects, in order; for none when a part is missing or the
 * path uses unsupported syntax. */
void jsonpath_each(const struct json *root, struct hk_str path, jsonpath_fn *fn, void *ctx);
