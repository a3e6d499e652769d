// SPDX-License-Identifier: Apache-2.0
// Request targets: whatever is sent, segments come out without slashes, dots alone or control
// characters, and queries within their bounds. The part behind '?' is read as an Accept header too.

#include "apiserver/accept.h"
#include "apiserver/route.h"
#include "fuzz/fuzz.h"

static void check_segment(struct hk_str s)
{
    hk_assert(strlen(s.s) == s.n);
    hk_assert(!strchr(s.s, '/') && strcmp(s.s, ".") != 0 && strcmp(s.s, "..") != 0);
    for (size_t k = 0; k < s.n; k++) {
        hk_assert((unsigned char)s.s[k] >= 0x20);
    }
}

static void check_route(struct hk_str path, struct hk_arena *a)
{
    struct hk_err err = {0};
    struct route r;

    if (route_parse(path, a, &r, &err) < 0) {
        hk_assert(err.text[0] != '\0');
        return;
    }
    if (r.resource) {
        check_segment(r.version);
        check_segment(r.ns);
        check_segment(r.plural);
        check_segment(r.name);
        check_segment(r.sub);
    }
}

static void check_query(struct hk_str text, struct hk_arena *a)
{
    struct hk_err err = {0};
    struct query q;

    if (query_parse(text, a, &q, &err) < 0) {
        hk_assert(err.text[0] != '\0');
        return;
    }
    hk_assert(q.len <= QUERY_MAX);
    for (uint32_t k = 0; k < q.len; k++) {
        hk_assert(query_has(&q, q.at[k].key.s));
        query_bool(&q, q.at[k].key.s);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct hk_str query = {(const char *)data, size}, path;
    struct accept accept = {0};

    hk_str_cut(&query, '?', &path);
    check_route(path, &a);
    if (query.s) {
        check_query(query, &a);
        if (accept_parse(query, ACCEPT_PROTO, &accept) < 0) {
            hk_assert(accept.form == FORM_OBJECT);
        }
    }
    return 0;
}
