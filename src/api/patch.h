// SPDX-License-Identifier: Apache-2.0
// Patches of JSON trees. They change the target in place, so the caller must own all of it
// (json_clone); after a failure the target is unusable.
#pragma once

#include "api/registry.h"

enum { API_PATCH_MAX_OPS = 10000 };

/* Checks the form of a JSON patch (RFC 6902): a list of known operations with their members. Fails
 * with HK_EINVAL when malformed, HK_ELIMIT when too long. A well-formed patch that does not fit the
 * object fails in api_patch_json. */
int api_patch_json_check(const struct json *patch, struct hk_err *err) HK_CHECKED;
/* Applies all operations of a JSON patch. Values are copied out of the patch. */
int api_patch_json(struct json *target, const struct json *patch, struct hk_arena *a,
                   struct hk_err *err) HK_CHECKED;

/* JSON merge patch (RFC 7386): objects merge, null removes, anything else replaces. The target
 * shares values with patch. */
void api_patch_merge(struct json *target, const struct json *patch, struct hk_arena *a);

/* Kubernetes' strategic merge patch: as the above, but lists of the kind's type that have a merge
 * key (conditions by type, containers by name) merge element by element, and directives ("$patch",
 * "$retainKeys", "$setElementOrder/", "$deleteFromPrimitiveList/") apply. For kinds without a type
 * (custom resources, NULL) only lists in metadata merge. Strings are shared with patch. */
int api_patch_strategic(struct json *target, const struct json *patch, const struct api_kind *kind,
                        struct hk_arena *a, struct hk_err *err) HK_CHECKED;
