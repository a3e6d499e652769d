// SPDX-License-Identifier: Apache-2.0
// The parameters of a URL's query.
#pragma once

#include "base/arena.h"
#include "base/err.h"

/* Decodes percent escapes, and with plus '+' as a blank. Refuses NULs and invalid escapes. */
int query_decode(struct hk_str in, bool plus, struct hk_arena *a, struct hk_str *ret,
                 struct hk_err *err) HK_CHECKED;

struct query_param {
    struct hk_str key, value;
};

struct query {
    struct query_param *at;
    uint32_t len;
};

/* At most QUERY_MAX parameters; '+' is a blank; invalid escapes are refused. */
enum { QUERY_MAX = 256 };
int query_parse(struct hk_str text, struct hk_arena *a, struct query *ret,
                struct hk_err *err) HK_CHECKED;
/* The first of that name, "" when there is none. */
struct hk_str query_get(const struct query *q, const char *key);
bool query_has(const struct query *q, const char *key);
/* Absent, "0" and "false" are false; anything else, even "", is true. */
bool query_bool(const struct query *q, const char *key);
