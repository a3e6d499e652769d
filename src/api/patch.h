// SPDX-License-Identifier: Apache-2.0
// Patches to JSON trees. A target changes in place, so its caller must own all of it (json_clone);
// when a patch fails, the target is spoilt.
#pragma once

#include "api/registry.h"

enum { API_PATCH_MAX_OPS = 10000 };

/* Whether this is a JSON patch (RFC 6902) at all: a list of known operations with their members.
 * What fails here is malformed (HK_EINVAL) or too much (HK_ELIMIT); what fails in api_patch_json
 * is a good patch that does not fit the object. */
int api_patch_json_check(const struct json *patch, struct hk_err *err) HK_CHECKED;
/* Applies a JSON patch, all operations or none that count. Values are copied out of the patch. */
int api_patch_json(struct json *target, const struct json *patch, struct hk_arena *a,
                   struct hk_err *err) HK_CHECKED;

/* JSON merge patch (RFC 7386): objects merge, null removes, anything else replaces. What the target
 * takes from patch is shared, not copied. */
void api_patch_merge(struct json *target, const struct json *patch, struct hk_arena *a);

/* Kubernetes' strategic merge patch: as the above, but lists of the kind's type that have a merge
 * key (conditions by type, containers by name) merge element by element, and directives ("$patch",
 * "$retainKeys", "$setElementOrder/", "$deleteFromPrimitiveList/") are obeyed. Of kinds without a
 * type (custom resources, NULL) only the lists in metadata merge. Strings are shared with patch. */
int api_patch_strategic(struct json *target, const struct json *patch, const struct api_kind *kind,
                        struct hk_arena *a, struct hk_err *err) HK_CHECKED;
