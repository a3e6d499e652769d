// SPDX-License-Identifier: Apache-2.0
// Routes and limits of the admission server. A review is answered within its request handler. Only
// rules that check rights wait: they ask the API server and respond when its answer arrives.
#include "webhook/server.h"

#include "base/log.h"
#include "net/http.h"
#include "webhook/review.h"

enum {
    MAX_BODY = 3 << 20,
    MAX_BODIES = 256 << 20,
    MAX_CONNECTIONS = 4096,
    REQUEST_MS = 30 * 1000,
    IDLE_MS = 90 * 1000,
    KEPT_BYTES = 4 << 20, /* review memory kept for the next one */
};

static const struct api_kind access_reviews = {.id = API_NKINDS,
                                               .group = "authorization.k8s.io",
                                               .version = "v1",
                                               .kind = "SubjectAccessReview",
                                               .plural = "subjectaccessreviews",
                                               .singular = "subjectaccessreview"};

/* A review that waits for the API server's answer about a user's rights. */
struct waiting {
    struct webhook_server *server;
    struct http_request *http;
    struct webhook_question question;
    uint64_t call;
};

struct webhook_server {
    struct webhook_server_opts o;
    struct http_server *http, *health;
    struct hk_arena mem; /* of the current review */
    HK_VEC(struct waiting *) waiting;
};

/* ---- small answers ---- */

static void webhook_server_write_status(void *ctx, int status, struct hk_buf *body)
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

static void webhook_server_reply_error(struct http_request *q, int status)
{
    static const struct http_header headers[] = {
        {HK_STR("Content-Type"), HK_STR("application/json")},
        {HK_STR("Allow"), HK_STR("POST")},
    };
    struct hk_buf body = {0};

    webhook_server_write_status(NULL, status, &body);
    http_reply(q, status, headers, status == 405 ? 2 : 1, &body);
}

/* ---- reviews ---- */

/* NULL when the path is unknown or its rule not enabled. */
static const struct volcano_rule *find_rule(const struct webhook_server *s, struct hk_str path)
{
    const struct volcano_rule *rule = volcano_rule_find(path);

    return rule && !(s->o.options->disabled & 1U << (rule - volcano_rules)) ? rule : NULL;
}

static void webhook_server_reply(struct http_request *q, struct hk_buf *body)
{
    static const struct http_header json = {HK_STR("Content-Type"), HK_STR("application/json")};

    http_reply(q, 200, &json, 1, body);
}

static void waiting_free(struct waiting *w)
{
    webhook_question_fini(&w->question);
    hk_free(w);
}

/* Refuses the write unless the API server confirms the user's right. */
static void on_access(void *ctx, const struct port_msg *m)
{
    struct waiting *w = ctx;
    struct webhook_server *s = w->server;
    const bool may =
        m->rc == 0 && m->obj && json_bool(json_at(&m->obj->root, "status.allowed"), false);

    if (m->rc < 0) {
        hk_log(HK_LOG_ERROR, "cannot check the user's rights, refusing the write", "err=\"%s\"",
               m->err->text);
    }
    for (uint32_t i = 0; i < s->waiting.len; i++) {
        if (s->waiting.at[i] == w) {
            hk_vec_swap_remove(&s->waiting, i);
            break;
        }
    }
    webhook_server_reply(w->http, may ? &w->question.allowed : &w->question.denied);
    waiting_free(w);
}

static void ask_rights(struct webhook_server *s, struct http_request *q,
                       const struct webhook_question *question)
{
    struct waiting *w = hk_zalloc(sizeof(*w));

    *w = (struct waiting){.server = s, .http = q, .question = *question};
    hk_vec_push(&s->waiting, w);
    w->call = port_submit(s->o.api,
                          &(struct port_request){.verb = PORT_CREATE,
                                                 .kind = &access_reviews,
                                                 .body = &w->question.access_review},
                          (struct port_sink){on_access, w});
}

static void webhook_server_run_review(struct webhook_server *s, const struct volcano_rule *rule,
                                      struct http_request *q)
{
    const struct webhook_review r = {.rule = rule,
                                     .options = s->o.options,
                                     .lookup = s->o.lookup,
                                     .now_ns = s->o.clock->wall_ns(s->o.clock),
                                     .mem = &s->mem};
    struct webhook_question question;
    struct hk_buf body = {0};

    if (rule->asks_rights && s->o.api && webhook_review_asks(&r, q->body, &body, &question)) {
        ask_rights(s, q, &question);
    } else {
        if (!rule->asks_rights || !s->o.api) {
            (void)webhook_review(&r, q->body, &body);
        }
        webhook_server_reply(q, &body);
    }
    if (s->mem.total > KEPT_BYTES) {
        hk_arena_fini(&s->mem);
    } else {
        hk_arena_clear(&s->mem);
    }
}

static void handle(void *ctx, struct http_request *q)
{
    struct webhook_server *s = ctx;
    const struct volcano_rule *rule = find_rule(s, q->path);
    struct hk_buf nothing = {0};

    if (!rule) {
        webhook_server_reply_error(q, 404);
    } else if (!hk_str_is(q->method, "POST")) {
        webhook_server_reply_error(q, 405);
    } else if (!hk_str_is(http_request_header(q, "Content-Type"), "application/json")) {
        http_reply(q, 200, NULL, 0, &nothing); /* as upstream does */
    } else {
        webhook_server_run_review(s, rule, q);
    }
}

/* Refuses unknown paths before the body is read. */
static int webhook_server_check_path(void *ctx, const struct http_request *q)
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
        webhook_server_reply_error(q, 404);
        return;
    }
    hk_buf_adds(&body, "ok");
    http_reply(q, 200, &plain, 1, &body);
}

/* ---- open and close ---- */

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
                                .admit = webhook_server_check_path,
                                .handle = handle,
                                .refusal = webhook_server_write_status,
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
                                .refusal = webhook_server_write_status,
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
    if (rc == 0) {
        rc = open_health(s, err);
    }
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
    for (uint32_t i = 0; i < s->waiting.len; i++) {
        port_cancel(s->o.api, s->waiting.at[i]->call);
        waiting_free(s->waiting.at[i]);
    }
    hk_vec_fini(&s->waiting);
    http_server_free(s->http);
    http_server_free(s->health);
    hk_arena_fini(&s->mem);
    hk_free(s);
}
