// SPDX-License-Identifier: Apache-2.0
// Paths. A path is split first and then decoded segment by segment, so an escaped slash cannot move
// the border between two names.
#include "apiserver/route.h"

enum { MAX_SEGMENTS = 16 };

/* Characters allowed in a path. The store checks object names more strictly. */
static bool segment_valid(struct hk_str s)
{
    if (s.n == 0 || hk_str_is(s, ".") || hk_str_is(s, "..")) {
        return false;
    }
    for (size_t k = 0; k < s.n; k++) {
        const unsigned char c = (unsigned char)s.s[k];
        if (c == '/' || c < 0x20 || c == 0x7f) {
            return false;
        }
    }
    return true;
}

struct segments {
    struct hk_str at[MAX_SEGMENTS];
    struct hk_str tail[MAX_SEGMENTS]; /* not decoded, from this segment on */
    uint32_t len;
};

/* Whether the segments end in the subresource proxy of a pod, Service or node. */
static bool is_proxied(const struct segments *s)
{
    const bool core = s->len > 2 && hk_str_is(s->at[0], "api");

    if (s->len == 5) {
        return core && hk_str_is(s->at[2], "nodes") && hk_str_is(s->at[4], "proxy");
    }
    return s->len == 7 && core && hk_str_is(s->at[2], "namespaces") &&
           (hk_str_is(s->at[4], "pods") || hk_str_is(s->at[4], "services")) &&
           hk_str_is(s->at[6], "proxy");
}

static int route_split_path(struct hk_str path, struct hk_arena *a, struct segments *ret,
                            struct hk_err *err)
{
    struct hk_str part;

    while (hk_str_cut(&path, '/', &part)) {
        const struct hk_str tail = {part.s, part.n + (path.s ? path.n + 1 : 0)};
        if (ret->len == MAX_SEGMENTS) {
            return hk_fail(err, HK_ENOTFOUND, "path of more than %d parts", MAX_SEGMENTS);
        }
        if (part.n == 0 && !path.s) {
            break; /* a trailing slash */
        }
        if (is_proxied(ret)) {
            ret->at[ret->len] = HK_STR("");
            ret->tail[ret->len++] = tail;
            break; /* the rest is for another server */
        }
        ret->tail[ret->len] = tail;
        const int rc = query_decode(part, false, a, &ret->at[ret->len], err);
        if (rc < 0) {
            return rc;
        }
        if (!segment_valid(ret->at[ret->len])) {
            return hk_fail(err, HK_EINVAL, "invalid path segment '%.*s'", HK_FMT(part));
        }
        ret->len++;
    }
    return 0;
}

/* "namespaces/x" is the Namespace itself if alone or before these words, else a prefix. */
static bool namespace_itself(const struct segments *s, uint32_t at)
{
    if (s->len <= at + 2) {
        return true;
    }
    return s->len == at + 3 &&
           (hk_str_is(s->at[at + 2], "status") || hk_str_is(s->at[at + 2], "finalize"));
}

static struct hk_str route_pop_segment(const struct segments *s, uint32_t *at)
{
    return *at < s->len ? s->at[(*at)++] : HK_STR("");
}

static void read_resource(const struct segments *s, uint32_t at, struct route *ret)
{
    ret->resource = true;
    if (hk_str_is(s->at[at], "watch")) {
        ret->watch = true;
        at++;
    }
    if (at < s->len && hk_str_is(s->at[at], "namespaces") && !namespace_itself(s, at)) {
        ret->ns = s->at[at + 1];
        at += 2;
    }
    ret->plural = route_pop_segment(s, &at);
    ret->name = route_pop_segment(s, &at);
    ret->sub = route_pop_segment(s, &at);
    ret->rest = at < s->len ? s->tail[at] : HK_STR("");
}

int route_parse(struct hk_str path, struct hk_arena *a, struct route *ret, struct hk_err *err)
{
    const struct hk_str none = HK_STR("");
    struct segments s = {0};

    *ret = (struct route){false, false, path, none, none, none, none, none, none, none};
    if (path.n == 0 || path.s[0] != '/') {
        return hk_fail(err, HK_ENOTFOUND, "path '%.*s' does not begin with '/'", HK_FMT(path));
    }
    const int rc = route_split_path((struct hk_str){path.s + 1, path.n - 1}, a, &s, err);
    if (rc < 0) {
        return rc;
    }
    if (s.len > 0 && path.s[path.n - 1] == '/') {
        ret->path.n--;
    }
    if (s.len >= 3 && hk_str_is(s.at[0], "api")) {
        ret->version = s.at[1];
        read_resource(&s, 2, ret);
    } else if (s.len >= 4 && hk_str_is(s.at[0], "apis")) {
        ret->group = s.at[1];
        ret->version = s.at[2];
        read_resource(&s, 3, ret);
    }
    return 0;
}
