// SPDX-License-Identifier: Apache-2.0
// What a request's path means: resource, namespace, name and subresource.
#pragma once

#include "net/query.h"

/* Unset parts are "". Segments are percent-decoded. */
struct route {
    bool resource; /* else discovery, health and the like: only path is set */
    bool watch;    /* the old /watch/ prefix */
    struct hk_str path;
    struct hk_str group, version;
    struct hk_str ns, plural, name, sub;
    struct hk_str rest; /* behind the subresource, raw, without leading slash */
};

/* Refuses (HK_EINVAL) segments that are empty, "." or "..", or hold a slash or a control character
 * once decoded; (HK_ENOTFOUND) what has too few or too many parts. A trailing slash does no harm.
 */
int route_parse(struct hk_str path, struct hk_arena *a, struct route *ret,
                struct hk_err *err) HK_CHECKED;
