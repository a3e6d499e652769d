// SPDX-License-Identifier: Apache-2.0
// Routes and bounds of the admission server. A review is answered within the call that brings it:
// nothing it needs is ever waited for.
#include "webhook/server.h"

#include "net/http.h"
#include "webhook/review.h"

enum {
    MAX_BODY = 3 << 20,
    MAX_BODIES = 256 << 20,
    MAX_CONNECTIONS = 4096,
    REQUEST_MS = 30 * 1000,
    IDLE_MS = 90 * 1000,
    KEPT_BYTES = 4 << 20, /* memory of reviews that is kept for the next one */
};

struct webhook_server {
    struct webhook_server_opts o;
    struct http_server *http, *health;
    struct hk_arena mem; /* of the review under way */
};

/* ---- small answers ---- */

static void write_status(void *ctx, int status, struct hk_buf *body)
{
    static const struct {
        int status;
        const char *reason, *message;
    } rows[] = {
        {404, "NotFound", "404 page not found"},
        {405, "MethodNotAllowed", "method not allowed, want POST"},
        {413, "RequestEntityTooLarge", "request body too large"},
        {429, "TooManyRequests", "too many requests, please try again later"},
    };
    size_t i = 0;

    while (rows[i].status != status) {
        i++;
        hk_assert(i < HK_LEN(rows));
    }
    hk_buf_addf(body,
                "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
                "\"message\":\"%s\",\"reason\":\"%s\",\"code\":%d}\n",
                rows[i].message, rows[i].reason, status);
}

static void refuse(struct http_request *q, int status)
{
    static const struct http_header headers[] = {
        {HK_STR("Content-Type"), HK_STR("application/json")},
        {HK_STR("Allow"), HK_STR("POST")},
    };
    struct hk_buf body = {0};

    write_status(NULL, status, &body);
    http_reply(q, status, headers, status == 405 ? 2 : 1, &body);
}

/* ---- reviews ---- */

/* NULL when the path is none, or not enabled. */
static const struct volcano_rule *find_rule(const struct webhook_server *s, struct hk_str path)
{
    const struct volcano_rule *rule = volcano_rule_find(path);

    return rule && !(s->o.options->disabled & 1U << (rule - volcano_rules)) ? rule : NULL;
}

static void review(struct webhook_server *s, const struct volcano_rule *rule,
                   struct http_request *q)
{
    static const struct http_header json = {HK_STR("Content-Type"), HK_STR("application/json")};
    const struct webhook_review r = {.rule = rule,
                                     .options = s->o.options,
                                     .lookup = s->o.lookup,
                                     .now_ns = s->o.clock->wall_ns(s->o.clock),
                                     .mem = &s->mem};
    struct hk_buf body = {0};

    (void)webhook_review(&r, q->body, &body);
    if (s->mem.total > KEPT_BYTES) {
        hk_arena_fini(&s->mem);
    } else {
        hk_arena_clear(&s->mem);
    }
    http_reply(q, 200, &json, 1, &body);
}

static void handle(void *ctx, struct http_request *q)
{
    struct webhook_server *s = ctx;
    const struct volcano_rule *rule = find_rule(s, q->path);
    struct hk_buf nothing = {0};

    if (!rule) {
        refuse(q, 404);
    } else if (!hk_str_is(q->method, "POST")) {
        refuse(q, 405);
    } else if (!hk_str_is(http_request_header(q, "Content-Type"), "application/json")) {
        http_reply(q, 200, NULL, 0, &nothing); /* as upstream does */
    } else {
        review(s, rule, q);
    }
}

/* Nobody reads what is sent to a path that does not exist. */
static int admit(void *ctx, const struct http_request *q)
{
    return find_rule(ctx, q->path) ? 0 : 404;
}

/* ---- health ---- */

static void handle_health(void *ctx, struct http_request *q)
{
    static const struct http_header plain = {HK_STR("Content-Type"),
                                             HK_STR("text/plain; charset=utf-8")};
    struct hk_buf body = {0};

    if (!hk_str_is(q->path, "/healthz")) {
        refuse(q, 404);
        return;
    }
    hk_buf_adds(&body, "ok");
    http_reply(q, 200, &plain, 1, &body);
}

/* ---- life ---- */

static int open_reviews(struct webhook_server *s, struct hk_err *err)
{
    const struct http_opts o = {.addr = s->o.addr,
                                .port = s->o.port,
                                .cert_pem = s->o.cert_pem,
                                .key_pem = s->o.key_pem,
                                .max_body = MAX_BODY,
                                .max_bodies = MAX_BODIES,
                                .max_connections = MAX_CONNECTIONS,
                                .idle_timeout_ms = IDLE_MS,
                                .header_timeout_ms = REQUEST_MS,
                                .admit = admit,
                                .handle = handle,
                                .refusal = write_status,
                                .ctx = s};

    return http_server_new(s->o.loop, &o, &s->http, err);
}

static int open_health(struct webhook_server *s, struct hk_err *err)
{
    const struct http_opts o = {.addr = s->o.health_addr,
                                .port = s->o.health_port,
                                .cert_pem = s->o.cert_pem,
                                .key_pem = s->o.key_pem,
                                .max_body = 4096,
                                .max_bodies = 1 << 20,
                                .max_connections = 64,
                                .idle_timeout_ms = IDLE_MS,
                                .header_timeout_ms = REQUEST_MS,
                                .handle = handle_health,
                                .refusal = write_status,
                                .ctx = s};

    return s->o.health ? http_server_new(s->o.loop, &o, &s->health, err) : 0;
}

int webhook_server_new(const struct webhook_server_opts *o, struct webhook_server **ret,
                       struct hk_err *err)
{
    struct webhook_server *s = hk_zalloc(sizeof(*s));
    int rc;

    s->o = *o;
    rc = open_reviews(s, err);
    rc = rc < 0 ? rc : open_health(s, err);
    s->o.cert_pem = s->o.key_pem = NULL;
    if (rc < 0) {
        webhook_server_free(s);
        return rc;
    }
    *ret = s;
    return 0;
}

uint16_t webhook_server_port(const struct webhook_server *s)
{
    return http_server_port(s->http);
}

uint16_t webhook_server_health_port(const struct webhook_server *s)
{
    return s->health ? http_server_port(s->health) : 0;
}

int webhook_server_become(struct webhook_server *s, const char *cert_pem, const char *key_pem,
                          struct hk_err *err)
{
    int rc = http_server_become(s->http, cert_pem, key_pem, err);

    if (rc == 0 && s->health) {
        rc = http_server_become(s->health, cert_pem, key_pem, err);
    }
    return rc;
}

void webhook_server_stop(struct webhook_server *s, int64_t grace_ms)
{
    http_server_stop(s->http, grace_ms);
}

void webhook_server_free(struct webhook_server *s)
{
    if (!s) {
        return;
    }
    http_server_free(s->http);
    http_server_free(s->health);
    hk_arena_fini(&s->mem);
    hk_free(s);
}
