// SPDX-License-Identifier: Apache-2.0
// URL escapes and query parameters.
#include "net/query.h"

#include <strings.h>

static int hex(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int query_decode(struct hk_str in, bool plus, struct hk_arena *a, struct hk_str *ret,
                 struct hk_err *err)
{
    char *out = hk_arena_alloc(a, in.n + 1);
    size_t n = 0;

    for (size_t k = 0; k < in.n; k++) {
        if (in.s[k] == '\0') {
            return hk_fail(err, HK_EINVAL, "NUL in the URL");
        }
        if (in.s[k] == '%') {
            const int high = k + 2 < in.n ? hex(in.s[k + 1]) : -1;
            const int low = k + 2 < in.n ? hex(in.s[k + 2]) : -1;
            if (high < 0 || low < 0 || (high | low) == 0) {
                return hk_fail(err, HK_EINVAL, "invalid URL escape in '%.*s'", HK_FMT(in));
            }
            out[n++] = (char)(high << 4 | low);
            k += 2;
        } else {
            out[n++] = plus && in.s[k] == '+' ? ' ' : in.s[k];
        }
    }
    out[n] = '\0';
    *ret = (struct hk_str){out, n};
    return 0;
}

int query_parse(struct hk_str text, struct hk_arena *a, struct query *ret, struct hk_err *err)
{
    struct hk_str part;
    uint32_t n = 0, room = 1;

    for (size_t k = 0; k < text.n && room < QUERY_MAX; k++) {
        room += text.s[k] == '&';
    }
    *ret = (struct query){hk_arena_array(a, room, sizeof(*ret->at)), 0};
    while (hk_str_cut(&text, '&', &part)) {
        struct hk_str key;
        if (part.n == 0) {
            continue;
        }
        if (n == QUERY_MAX) {
            return hk_fail(err, HK_EINVAL, "more than %d query parameters", QUERY_MAX);
        }
        hk_str_cut(&part, '=', &key);
        int rc = query_decode(key, true, a, &ret->at[n].key, err);
        if (rc == 0) {
            rc = query_decode(part.s ? part : HK_STR(""), true, a, &ret->at[n].value, err);
        }
        if (rc < 0) {
            return rc;
        }
        ret->len = ++n;
    }
    return 0;
}

static const struct query_param *query_find_param(const struct query *q, const char *key)
{
    for (uint32_t k = 0; k < q->len; k++) {
        if (hk_str_is(q->at[k].key, key)) {
            return &q->at[k];
        }
    }
    return NULL;
}

struct hk_str query_get(const struct query *q, const char *key)
{
    const struct query_param *p = query_find_param(q, key);

    return p ? p->value : HK_STR("");
}

bool query_has(const struct query *q, const char *key)
{
    return query_find_param(q, key) != NULL;
}

bool query_bool(const struct query *q, const char *key)
{
    const struct query_param *p = query_find_param(q, key);

    return p && !hk_str_is(p->value, "0") && strcasecmp(p->value.s, "false") != 0;
}
