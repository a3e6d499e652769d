// SPDX-License-Identifier: Apache-2.0
// The kubelet API of the node: checks permissions (kubelet_access.c), maps paths to calls on pods.
#include "agent/serve/kubelet.h"

#include "agent/serve/kubelet_access.h"
#include "base/arena.h"
#include "net/query.h"

#include <strings.h>

enum {
    MAX_BODY = 64 << 10,
    MAX_BODIES = 1 << 20,
    MAX_CONNECTIONS = 1024,
    IDLE_MS = 90000,
    HEADER_MS = 30000,
    MAX_PARTS = 6,
};

struct kubelet {
    struct kubelet_opts o;
    struct kubelet_access *access;
    struct http_server *server;
};

/* ---- answers ---- */

static void kubelet_reply(struct http_request *q, int status, const char *media,
                          struct hk_buf *body)
{
    const struct http_header header = {HK_STR("Content-Type"), hk_str(media)};

    http_reply(q, status, &header, 1, body);
}

static void reply_text(struct http_request *q, int status, const char *text)
{
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};

    hk_buf_adds(&body, text);
    kubelet_reply(q, status, "text/plain; charset=utf-8", &body);
}

static void reply_pods(const struct kubelet_opts *o, struct http_request *q)
{
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};

    hk_buf_adds(&body, "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[");
    o->write_pods(o->ctx, &body);
    hk_buf_adds(&body, "]}\n");
    kubelet_reply(q, 200, "application/json", &body);
}

/* ---- paths ---- */

/* Splits the path at slashes and decodes the parts; 0: too many, or an invalid one. */
static uint32_t kubelet_split_path(struct hk_str path, struct hk_arena *mem,
                                   struct hk_str parts[MAX_PARTS])
{
    struct hk_str part;
    uint32_t n = 0;

    if (path.n == 0 || path.s[0] != '/') {
        return 0;
    }
    path = (struct hk_str){path.s + 1, path.n - 1};
    while (hk_str_cut(&path, '/', &part)) {
        if (n == MAX_PARTS || query_decode(part, false, mem, &parts[n], NULL) < 0) {
            return 0;
        }
        n++;
    }
    return n;
}

/* The subresource in the API; NULL: not about a container. */
static const char *sub_of(struct hk_str word)
{
    static const struct {
        const char *word, *sub;
    } subs[] = {{"containerLogs", "log"},
                {"exec", "exec"},
                {"attach", "attach"},
                {"portForward", "portforward"}};

    for (size_t i = 0; i < HK_LEN(subs); i++) {
        if (hk_str_is(word, subs[i].word)) {
            return subs[i].sub;
        }
    }
    return NULL;
}

/* After the first word: namespace, pod, optional uid, and container (except for portForward). */
static bool fits(const char *sub, uint32_t parts)
{
    const bool all = strcmp(sub, "portforward") == 0, log = strcmp(sub, "log") == 0;

    return all ? parts == 3 || parts == 4 : parts == 4 || (parts == 5 && !log);
}

/* POST is allowed for everything but logs. */
static bool may_post(const struct http_request *q, const char *sub)
{
    return hk_str_is(q->method, "POST") && strcmp(sub, "log") != 0;
}

void kubelet_serve(const struct kubelet_opts *o, struct http_request *q)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct hk_str parts[MAX_PARTS];
    const uint32_t n = kubelet_split_path(q->path, &mem, parts);
    const char *sub = n > 0 ? sub_of(parts[0]) : NULL;

    if (!hk_str_is(q->method, "GET") && !(sub && may_post(q, sub))) {
        reply_text(q, 405, "405 method not allowed\n");
    } else if (n == 1 && hk_str_is(parts[0], "healthz")) {
        reply_text(q, 200, "ok");
    } else if (n == 1 && hk_str_is(parts[0], "pods")) {
        reply_pods(o, q);
    } else if (sub && fits(sub, n)) {
        o->api->serve(o->api->ctx,
                      &(struct node_call){.ns = parts[1],
                                          .pod = parts[2],
                                          .container = n > 3 ? parts[n - 1] : HK_STR(""),
                                          .sub = hk_str(sub),
                                          .query = q->query,
                                          .http = q,
                                          .kubelet = true});
    } else {
        reply_text(q, 404, "404 page not found\n");
    }
}

/* ---- requests ---- */

static void on_verdict(void *ctx, int status, const char *why)
{
    struct http_request *q = ctx;

    if (status != 200) {
        reply_text(q, status, why);
    } else {
        kubelet_serve(&((struct kubelet *)q->user)->o, q);
    }
}

static struct hk_str bearer(const struct http_request *q)
{
    const struct hk_str header = http_request_header(q, "Authorization");
    const size_t n = strlen("Bearer ");

    if (header.n <= n || strncasecmp(header.s, "Bearer ", n) != 0) {
        return HK_STR("");
    }
    return hk_str_trim((struct hk_str){header.s + n, header.n - n});
}

static void kubelet_on_request(void *ctx, struct http_request *q)
{
    struct kubelet *k = ctx;

    q->user = k;
    kubelet_access_ask(k->access,
                       &(struct kubelet_caller){.method = q->method,
                                                .token = bearer(q),
                                                .cn = q->client_cert_cn,
                                                .orgs = q->client_cert_orgs,
                                                .norgs = q->nclient_cert_orgs},
                       on_verdict, q);
}

static void kubelet_on_http_error(void *ctx, int status, struct hk_buf *body)
{
    hk_buf_adds(body, "{}");
}

/* ---- setup and teardown ---- */

int kubelet_new(const struct kubelet_opts *o, struct kubelet **ret, struct hk_err *err)
{
    struct kubelet *k = hk_zalloc(sizeof(*k));
    const struct http_opts http = {.addr = o->addr,
                                   .port = o->tcp_port,
                                   .cert_pem = o->cert_pem,
                                   .key_pem = o->key_pem,
                                   .client_ca_pem = o->client_ca_pem,
                                   .max_body = MAX_BODY,
                                   .max_bodies = MAX_BODIES,
                                   .max_connections = MAX_CONNECTIONS,
                                   .idle_timeout_ms = IDLE_MS,
                                   .header_timeout_ms = HEADER_MS,
                                   .handle = kubelet_on_request,
                                   .refusal = kubelet_on_http_error,
                                   .ctx = k};
    int rc;

    k->o = *o;
    k->access = kubelet_access_new(
        &(struct kubelet_access_opts){.port = o->port, .clock = o->clock, .node = o->node});
    rc = http_server_new(o->loop, &http, &k->server, err);
    if (rc < 0) {
        kubelet_free(k);
        return rc;
    }
    *ret = k;
    return 0;
}

uint16_t kubelet_port(const struct kubelet *k)
{
    return http_server_port(k->server);
}

int kubelet_become(struct kubelet *k, const char *cert_pem, const char *key_pem, struct hk_err *err)
{
    return http_server_become(k->server, cert_pem, key_pem, err);
}

void kubelet_free(struct kubelet *k)
{
    if (!k) {
        return;
    }
    kubelet_access_free(k->access);
    http_server_free(k->server);
    hk_free(k);
}
