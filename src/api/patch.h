// SPDX-License-Identifier: Apache-2.0
// Patches to JSON trees.
#pragma once

#include "codec/json.h"

/* JSON merge patch (RFC 7386): objects merge, null removes, anything else replaces. target changes
 * in place; what it takes from patch is shared, not copied. */
void api_patch_merge(struct json *target, const struct json *patch, struct hk_arena *a);

/* Kubernetes' strategic merge patch: as the above, but lists of the built-in kinds that have a
 * merge key (conditions by type, containers by name) merge element by element, and directives
 * ("$patch", "$retainKeys", "$setElementOrder/", "$deleteFromPrimitiveList/") are obeyed. On
 * failure the target is spoilt. */
int api_patch_strategic(struct json *target, const struct json *patch, struct hk_arena *a,
                        struct hk_err *err) HK_CHECKED;
