// SPDX-License-Identifier: Apache-2.0
// OpenAPI over HTTP: entity tags and cache headers, as in Kubernetes. A document requested by its
// hash never changes; a request with an old hash is redirected to the new one.
#include "apiserver/openapi.h"
#include "apiserver/server_priv.h"

#include <time.h>

/* "Fri, 02 Jan 2026 03:04:05 GMT", one year from now. */
static struct hk_str in_a_year(struct exchange *x)
{
    enum { YEAR_S = 365 * 24 * 3600 };
    struct hk_clock *clock = x->server->opts.clock;
    const time_t t = (time_t)(clock->wall_ns(clock) / 1000000000 + YEAR_S);
    char text[64];
    struct tm tm;

    gmtime_r(&t, &tm);
    strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm);
    return hk_arena_str(&x->mem, hk_str(text));
}

static uint32_t add_headers(struct exchange *x, const struct openapi_reply *r,
                            struct http_header headers[5])
{
    const char *cache = r->immutable ? "public, immutable" : "no-cache, private";
    uint32_t n = 0;

    if (r->code == 301) {
        const char *to = hk_arena_printf(&x->mem, "%.*s?hash=%s", HK_FMT(x->route.path), r->tag);
        headers[n++] = (struct http_header){HK_STR("Location"), hk_str(to)};
        return n;
    }
    headers[n++] = (struct http_header){HK_STR("Content-Type"), hk_str(r->type)};
    headers[n++] =
        (struct http_header){HK_STR("ETag"), hk_str(hk_arena_printf(&x->mem, "\"%s\"", r->tag))};
    headers[n++] = (struct http_header){HK_STR("Vary"), HK_STR("Accept")};
    headers[n++] = (struct http_header){HK_STR("Cache-Control"), hk_str(cache)};
    if (r->immutable) {
        headers[n++] = (struct http_header){HK_STR("Expires"), in_a_year(x)};
    }
    return n;
}

bool openapi_serve(struct exchange *x)
{
    const struct openapi_query q = {
        .path = x->route.path,
        .accept = http_request_header(x->http, "Accept"),
        .hash = query_get(&x->query, "hash"),
        .if_none_match = http_request_header(x->http, "If-None-Match"),
    };
    struct openapi_reply r;
    struct http_header headers[5];
    struct hk_buf body = {0};

    if (!openapi_answer(x->server->openapi, &q, &r)) {
        return false;
    }
    const uint32_t n = add_headers(x, &r, headers);
    hk_buf_addstr(&body, r.body);
    answer_bytes(x, r.code, headers, n, &body);
    return true;
}
