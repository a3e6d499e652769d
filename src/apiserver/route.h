// SPDX-License-Identifier: Apache-2.0
// What a request's target means: resource, namespace, name and subresource from the path, and the
// parameters of the query.
#pragma once

#include "base/arena.h"
#include "base/err.h"

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

struct query_param {
    struct hk_str key, value;
};

struct query {
    struct query_param *at;
    uint32_t len;
};

/* At most QUERY_MAX parameters; '+' is a blank, broken escapes are refused. */
enum { QUERY_MAX = 256 };
int query_parse(struct hk_str text, struct hk_arena *a, struct query *ret,
                struct hk_err *err) HK_CHECKED;
/* The first of that name, "" when there is none. */
struct hk_str query_get(const struct query *q, const char *key);
bool query_has(const struct query *q, const char *key);
/* Absent, "0" and "false" are false; anything else, even nothing, is true. */
bool query_bool(const struct query *q, const char *key);
