// SPDX-License-Identifier: Apache-2.0
// Parses a request's path: resource, namespace, name and subresource.
#pragma once

#include "net/query.h"

/* Unset parts are "". Segments are percent-decoded. */
struct route {
    bool resource; /* false: discovery, health and so on; only path is set */
    bool watch;    /* the old /watch/ prefix */
    struct hk_str path;
    struct hk_str group, version;
    struct hk_str ns, plural, name, sub;
    struct hk_str
        rest; /* after the subresource, raw, without leading slash; behind proxy any text */
};

/* Fails with HK_EINVAL on segments that are empty, "." or "..", or contain a slash or control
 * character after decoding; with HK_ENOTFOUND on too few or too many parts. Ignores a trailing
 * slash. */
int route_parse(struct hk_str path, struct hk_arena *a, struct route *ret,
                struct hk_err *err) HK_CHECKED;
