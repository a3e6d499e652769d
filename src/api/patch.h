// SPDX-License-Identifier: Apache-2.0
// Patches to JSON trees.
#pragma once

#include "codec/json.h"

/* JSON merge patch (RFC 7386): objects merge, null removes, anything else replaces. target changes
 * in place; what it takes from patch is shared, not copied. */
void api_patch_merge(struct json *target, const struct json *patch, struct hk_arena *a);
