// SPDX-License-Identifier: Apache-2.0
// Each request is a relay: reads the pod for its node, reads the node for its address, and forwards
// the node's answer, by an HTTP call for logs and by a tunnel for the rest. A slow reader slows the
// node's stream down.
#include "relay/node_proxy.h"

#include "base/vec.h"
#include "client/get_stream.h"
#include "client/target.h"
#include "net/query.h"
#include "relay/node_tunnel.h"

#include <sys/epoll.h>

#define MS_NS ((int64_t)1000 * 1000)

enum { BUFFER_FULL = 256 << 10, BUFFER_LOW = 64 << 10, POLL_MAX = 64, CERT_DAYS = 3650 };

/* The address of a node. */
struct where {
    struct hk_str host;
    uint16_t port;
};

struct relay {
    struct node_proxy *p;
    struct http_request *http; /* NULL: answered */
    char *ns, *pod, *query;
    char *sub;       /* log, exec, attach, portforward */
    char *container; /* NULL: not known yet */
    uint64_t ask;    /* for pod or node; 0: none */
    struct client *client;
    struct net_watch *watch;
    uint64_t call;     /* to the node; 0: not started, or over */
    struct hk_buf buf; /* data from the node not yet forwarded: [at, len) */
    size_t at;
    bool streaming, held, over;
    struct node_tunnel *tunnel;
};

struct node_proxy {
    struct node_proxy_opts o;
    struct node_api api;
    struct cert_pair cert;
    HK_VEC(struct relay *) relays;
    struct net_timer *sweep; /* frees relays outside their own callbacks */
};

static bool is_log(const struct relay *r)
{
    return strcmp(r->sub, "log") == 0;
}

static bool is_portforward(const struct relay *r)
{
    return strcmp(r->sub, "portforward") == 0;
}

/* ---- closing ---- */

static void relay_free(struct relay *r)
{
    if (r->ask) {
        port_cancel(r->p->o.port, r->ask);
    }
    net_watch_del(r->watch);
    if (r->client) {
        port_free(client_port(r->client));
    }
    node_tunnel_free(r->tunnel);
    hk_buf_fini(&r->buf);
    hk_free(r->sub);
    hk_free(r->ns);
    hk_free(r->pod);
    hk_free(r->query);
    hk_free(r->container);
    hk_free(r);
}

static void on_sweep(void *ctx)
{
    struct node_proxy *p = ctx;

    for (uint32_t i = 0; i < p->relays.len;) {
        struct relay *r = p->relays.at[i];

        if (r->over) {
            hk_vec_swap_remove(&p->relays, i);
            relay_free(r);
        } else {
            i++;
        }
    }
}

static void node_proxy_finish(struct relay *r)
{
    r->over = true;
    r->http = NULL;
    net_timer_at(r->p->sweep, net_loop_now_ns(r->p->o.loop));
}

/* ---- answers ---- */

static void node_proxy_reject(struct relay *r, int code, const char *reason, const char *message)
{
    static const struct http_header json = {HK_STR("Content-Type"), HK_STR("application/json")};
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};

    hk_buf_adds(&body, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                       "\"status\":\"Failure\",\"message\":");
    json_write_str(hk_str(message), &body);
    hk_buf_addf(&body, ",\"reason\":\"%s\",\"code\":%d}\n", reason, code);
    http_reply(r->http, code, &json, 1, &body);
    node_proxy_finish(r);
}

static const struct http_header plain = {HK_STR("Content-Type"), HK_STR("text/plain")};

static void answer_nothing(struct relay *r)
{
    struct hk_buf body = {0};

    http_reply(r->http, 200, &plain, 1, &body);
    node_proxy_finish(r);
}

static bool node_proxy_pull(void *ctx, struct hk_buf *out, size_t room)
{
    struct relay *r = ctx;
    const size_t n = HK_MIN(room, r->buf.len - r->at);

    hk_buf_addstr(out, (struct hk_str){r->buf.data + r->at, n});
    r->at += n;
    if (r->at == r->buf.len) {
        hk_buf_clear(&r->buf);
        r->at = 0;
    }
    if (r->held && r->buf.len - r->at < BUFFER_LOW) {
        r->held = false;
        get_stream_go_on(r->client, r->call);
    }
    return r->call || r->at < r->buf.len;
}

static void on_ended(void *ctx)
{
    node_proxy_finish(ctx);
}

static void begin_answer(struct relay *r)
{
    r->streaming = true;
    http_reply_stream(r->http, 200, &plain, 1,
                      &(struct http_stream){.pull = node_proxy_pull, .ended = on_ended, .ctx = r});
}

/* ---- the node ---- */

static void node_proxy_on_bytes(void *ctx, struct hk_str bytes)
{
    struct relay *r = ctx;

    if (r->over) {
        return;
    }
    hk_buf_addstr(&r->buf, bytes);
    if (r->buf.len - r->at > BUFFER_FULL) {
        r->held = true;
        get_stream_hold(r->client, r->call);
    }
    if (r->streaming) {
        http_resume(r->http);
    } else {
        begin_answer(r);
    }
}

/* Describes the failure of the node, and what the administrator can do. */
static void node_proxy_write_failure(const struct relay *r, const struct port_msg *m,
                                     struct hk_buf *out)
{
    if (m->status && m->status->code == 401) {
        hk_buf_addf(out,
                    "cannot read the log of pod %s: its node answered 401 Unauthorized; start the "
                    "agent there with --client-ca-file FILE, a copy of ca.crt in the data "
                    "directory of this server",
                    r->pod);
    } else if (m->status) {
        hk_buf_addf(out, "cannot read the log of pod %s: its node answered %d: %s", r->pod,
                    m->status->code, m->err->text);
    } else {
        hk_buf_addf(out,
                    "cannot read the log of pod %s: cannot reach its node: %s (an agent listens on "
                    "loopback only, unless it is started with --listen or --address)",
                    r->pod, m->err->text);
    }
}

static void node_proxy_on_done(void *ctx, const struct port_msg *m)
{
    struct relay *r = ctx;
    HK_AUTO(hk_buf_fini) struct hk_buf words = {0};

    r->call = 0;
    if (r->over) {
        return;
    }
    if (r->streaming) {
        http_resume(r->http);
    } else if (m->rc == 0) {
        answer_nothing(r);
    } else if (m->status && (m->status->code == 400 || m->status->code == 404)) {
        node_proxy_reject(r, m->status->code, m->status->code == 400 ? "BadRequest" : "NotFound",
                          m->status->message);
    } else {
        node_proxy_write_failure(r, m, &words);
        node_proxy_reject(r, 500, "InternalError", words.data);
    }
}

static void node_proxy_on_readable(void *ctx, uint32_t events)
{
    struct relay *r = ctx;

    port_poll(client_port(r->client), POLL_MAX);
}

static int node_proxy_connect_to(struct relay *r, const char *url, struct hk_err *err)
{
    const struct node_proxy *p = r->p;
    struct kubeconfig at = {.context = "", .ns = "default", .insecure = true};
    int rc;

    at.server = hk_arena_str(&at.mem, hk_str(url)).s;
    at.cert_pem = p->cert.cert_pem;
    at.key_pem = p->cert.key_pem;
    rc = client_new(&(struct client_opts){.loop = p->o.loop,
                                          .clock = p->o.clock,
                                          .rand = p->o.rand,
                                          .retries = 1,
                                          .retry_last_ms = 250},
                    &at, &r->client, err);
    if (rc == 0) {
        r->watch = net_watch_add(p->o.loop, port_fd(client_port(r->client)), EPOLLIN,
                                 node_proxy_on_readable, r);
    }
    return rc;
}

static void node_proxy_write_path(const struct relay *r, const char *deed, struct hk_buf *out)
{
    hk_buf_addf(out, "/%s/", deed);
    target_escape(hk_str(r->ns), out);
    hk_buf_addc(out, '/');
    target_escape(hk_str(r->pod), out);
    if (!is_portforward(r)) { /* ports belong to the whole pod */
        hk_buf_addc(out, '/');
        target_escape(hk_str(r->container), out);
    }
    hk_buf_addc(out, '?');
}

static void ask_for_logs(struct relay *r, const struct where *at)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0}, url = {0};
    struct hk_err err = {0};

    hk_buf_addf(&url, memchr(at->host.s, ':', at->host.n) ? "https://[%.*s]:%u" : "https://%.*s:%u",
                HK_FMT(at->host), at->port);
    if (node_proxy_connect_to(r, url.data, &err) < 0) {
        node_proxy_reject(r, 500, "InternalError", err.text);
        return;
    }
    node_proxy_write_path(r, "containerLogs", &path);
    hk_buf_adds(&path, r->query);
    r->call = get_stream_open(r->client, &(struct get_stream){.kind = api_kind(API_POD),
                                                              .path = path.data,
                                                              .on_bytes = node_proxy_on_bytes,
                                                              .done = {node_proxy_on_done, r}});
}

/* ---- the tunnel to the node ---- */

static void on_tunnel_over(void *ctx)
{
    node_proxy_finish(ctx);
}

static void on_tunnel_failed(void *ctx, const char *why)
{
    HK_AUTO(hk_buf_fini) struct hk_buf words = {0};

    hk_buf_addf(&words, "error dialing backend: %s", why);
    node_proxy_reject(ctx, 500, "InternalError", words.data);
}

/* Renames parameters: kubelets and the API use different names. */
static int write_params(const struct relay *r, struct hk_buf *out, struct hk_err *err)
{
    static const char *const words[][2] = {{"command", "command"}, {"stdin", "input"},
                                           {"stdout", "output"},   {"stderr", "error"},
                                           {"tty", "tty"},         {"ports", "port"}};
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct query q;
    const int rc = query_parse(hk_str(r->query), &mem, &q, err);

    for (uint32_t i = 0; rc == 0 && i < q.len; i++) {
        for (size_t k = 0; k < HK_LEN(words); k++) {
            if (hk_str_is(q.at[i].key, words[k][0])) {
                hk_buf_addf(out, "%s=", words[k][1]);
                target_escape(q.at[i].value, out);
                hk_buf_addc(out, '&');
            }
        }
    }
    return rc;
}

static void ask_for_tunnel(struct relay *r, const struct where *at)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    struct hk_err err = {0};

    node_proxy_write_path(r, is_portforward(r) ? "portForward" : r->sub, &path);
    if (write_params(r, &path, &err) < 0) {
        node_proxy_reject(r, 400, "BadRequest", err.text);
        return;
    }
    r->tunnel = node_tunnel_new(&(struct node_tunnel_opts){.loop = r->p->o.loop,
                                                           .http = r->http,
                                                           .host = at->host,
                                                           .port = at->port,
                                                           .cert_pem = r->p->cert.cert_pem,
                                                           .key_pem = r->p->cert.key_pem,
                                                           .path = path.data,
                                                           .over = on_tunnel_over,
                                                           .failed = on_tunnel_failed,
                                                           .ctx = r});
}

/* ---- finding the node ---- */

static struct hk_str address_of(const struct json *node)
{
    const struct json *list = json_at(node, "status.addresses"), *one;

    for (uint32_t i = 0; (one = json_item(list, i)); i++) {
        if (hk_str_is(json_str(json_get(one, "type"), HK_STR("")), "InternalIP")) {
            return json_str(json_get(one, "address"), HK_STR(""));
        }
    }
    return HK_STR("");
}

static void node_proxy_on_node(void *ctx, const struct port_msg *m)
{
    struct relay *r = ctx;
    const struct json *node = m->obj ? &m->obj->root : NULL;
    const struct hk_str address = address_of(node);
    const int64_t port = json_int(json_at(node, "status.daemonEndpoints.kubeletEndpoint.Port"), 0);

    r->ask = 0;
    if (m->rc < 0) {
        node_proxy_reject(r, m->rc == -HK_ENOTFOUND ? 404 : 500,
                          m->rc == -HK_ENOTFOUND ? "NotFound" : "InternalError", m->err->text);
        return;
    }
    if (address.n == 0 || port <= 0 || port > UINT16_MAX) {
        node_proxy_reject(r, 501, "NotImplemented",
                          "the node of the pod does not say where it serves");
        return;
    }
    const struct where at = {address, (uint16_t)port};
    if (is_log(r)) {
        ask_for_logs(r, &at);
    } else {
        ask_for_tunnel(r, &at);
    }
}

/* Selects the only container if none was named. */
static int node_proxy_choose(struct relay *r, const struct json *pod, struct hk_err *err)
{
    const struct json *list = json_at(pod, "spec.containers"), *one;
    HK_AUTO(hk_buf_fini) struct hk_buf names = {0};

    if (r->container || is_portforward(r)) {
        return 0;
    }
    for (uint32_t i = 0; (one = json_item(list, i)); i++) {
        hk_buf_addf(&names, "%s%.*s", i > 0 ? " " : "",
                    HK_FMT(json_str(json_get(one, "name"), HK_STR(""))));
    }
    if (json_item(list, 1)) {
        return hk_fail(err, HK_EINVAL,
                       "a container name must be specified for pod %s, choose one of: [%s]", r->pod,
                       names.data);
    }
    r->container = hk_strdup(hk_buf_str(&names).s);
    return 0;
}

static void node_proxy_on_pod(void *ctx, const struct port_msg *m)
{
    struct relay *r = ctx;
    const struct json *pod = m->obj ? &m->obj->root : NULL;
    const struct hk_str node = json_str(json_at(pod, "spec.nodeName"), HK_STR(""));
    struct hk_err err = {0};

    r->ask = 0;
    if (m->rc < 0) {
        node_proxy_reject(r, m->rc == -HK_ENOTFOUND ? 404 : 500,
                          m->rc == -HK_ENOTFOUND ? "NotFound" : "InternalError", m->err->text);
    } else if (node_proxy_choose(r, pod, &err) < 0) {
        node_proxy_reject(r, 400, "BadRequest", err.text);
    } else if (node.n == 0 && is_log(r)) {
        answer_nothing(r); /* as in kube-apiserver */
    } else if (node.n == 0) {
        hk_fail(&err, HK_EINVAL, "pod %s does not have a host assigned", r->pod);
        node_proxy_reject(r, 400, "BadRequest", err.text);
    } else {
        r->ask = port_get(r->p->o.port, api_kind(API_NODE), HK_STR(""), node,
                          (struct port_sink){node_proxy_on_node, r});
    }
}

/* ---- requests ---- */

static struct relay *relay_new(struct node_proxy *p, const struct node_call *call)
{
    struct relay *r = hk_zalloc(sizeof(*r));
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct query q = {0};

    *r = (struct relay){.p = p,
                        .http = call->http,
                        .ns = hk_strndup(call->ns.s, call->ns.n),
                        .pod = hk_strndup(call->pod.s, call->pod.n),
                        .sub = hk_strndup(call->sub.s, call->sub.n),
                        .query = hk_strndup(call->query.s, call->query.n)};
    if (query_parse(call->query, &mem, &q, NULL) == 0 && query_get(&q, "container").n > 0) {
        r->container = hk_strdup(hk_arena_str(&mem, query_get(&q, "container")).s);
    }
    hk_vec_push(&p->relays, r);
    return r;
}

static bool is_offered(struct hk_str sub)
{
    return hk_str_is(sub, "log") || hk_str_is(sub, "exec") || hk_str_is(sub, "attach") ||
           hk_str_is(sub, "portforward");
}

static void node_proxy_serve(void *ctx, const struct node_call *call)
{
    struct node_proxy *p = ctx;
    const struct node_api *local = p->o.local;
    HK_AUTO(hk_buf_fini) struct hk_buf words = {0};
    struct relay *r;

    if (local && local->has(local->ctx, call->ns, call->pod)) {
        local->serve(local->ctx, call);
        return;
    }
    r = relay_new(p, call);
    if (!is_offered(call->sub)) {
        hk_buf_addf(&words, "this server does not offer %s of pods", r->sub);
        node_proxy_reject(r, 501, "NotImplemented", words.data);
        return;
    }
    r->ask = port_get(p->o.port, api_kind(API_POD), call->ns, call->pod,
                      (struct port_sink){node_proxy_on_pod, r});
}

static bool node_proxy_has_node(void *ctx, struct hk_str name)
{
    const struct node_api *local = ((struct node_proxy *)ctx)->o.local;

    return local && local->has_node && local->has_node(local->ctx, name);
}

static void node_proxy_serve_node(void *ctx, struct hk_str name, struct http_request *q)
{
    const struct node_api *local = ((struct node_proxy *)ctx)->o.local;

    local->serve_node(local->ctx, name, q);
}

const struct node_api *node_proxy_api(const struct node_proxy *p)
{
    return &p->api;
}

const struct cert_pair *node_proxy_cert(const struct node_proxy *p)
{
    return &p->cert;
}

int node_proxy_new(const struct node_proxy_opts *o, struct node_proxy **ret, struct hk_err *err)
{
    static const char *const group = "system:masters";
    struct node_proxy *p = hk_zalloc(sizeof(*p));
    const int rc =
        cert_make(&(struct cert_opts){.cn = "hekla-apiserver",
                                      .orgs = &group,
                                      .norgs = 1,
                                      .client = true,
                                      .now_s = o->clock->wall_ns(o->clock) / (1000 * MS_NS),
                                      .days = CERT_DAYS},
                  o->ca, &p->cert, err);

    p->o = *o;
    p->o.ca = NULL;
    p->api = (struct node_api){.serve = node_proxy_serve,
                               .has_node = node_proxy_has_node,
                               .serve_node = node_proxy_serve_node,
                               .ctx = p};
    p->sweep = net_timer_new(o->loop, on_sweep, p);
    if (rc < 0) {
        node_proxy_free(p);
        return rc;
    }
    *ret = p;
    return 0;
}

void node_proxy_free(struct node_proxy *p)
{
    if (!p) {
        return;
    }
    for (uint32_t i = 0; i < p->relays.len; i++) {
        relay_free(p->relays.at[i]);
    }
    hk_vec_fini(&p->relays);
    net_timer_free(p->sweep);
    cert_pair_fini(&p->cert);
    hk_free(p);
}
