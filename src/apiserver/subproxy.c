// SPDX-License-Identifier: Apache-2.0
// Finds the address behind /api/v1/namespaces/NS/pods/[SCHEME:]NAME[:PORT]/proxy/PATH and its
// siblings for Services and nodes, as kube-apiserver does: a pod by its IP address, a Service by a
// ready endpoint that is a pod, a node by the address in its status. Upstream: ResourceLocation in
// pkg/registry/core/{pod,service/storage,node}, UpgradeAwareHandler.
#include "apiserver/subproxy.h"

#include "apiserver/pod_address.h"
#include "apiserver/server_priv.h"
#include "net/forward.h"

#include <arpa/inet.h>

struct proxy_target {
    struct hk_str scheme, name, port; /* of the request: "https:web:8443" */
    struct hk_str host;
    int64_t number;
    bool tls, kubelet;
};

bool subproxy_matches(const struct route *r)
{
    const bool node = hk_str_is(r->plural, "nodes") && r->ns.n == 0;
    const bool inner =
        (hk_str_is(r->plural, "pods") || hk_str_is(r->plural, "services")) && r->ns.n > 0;

    return (node || inner) && r->group.n == 0 && hk_str_is(r->version, "v1") &&
           hk_str_is(r->sub, "proxy") && r->name.n > 0;
}

void subproxy_refuse(struct http_request *q, int status, const char *why)
{
    static const struct http_header json = {HK_STR("Content-Type"), HK_STR("application/json")};
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};
    const struct port_status s = {
        .code = status,
        .reason = status == 503   ? "ServiceUnavailable"
                  : status == 504 ? "Timeout"
                                  : "InternalError",
        .message = why,
    };

    status_write(&s, &body);
    http_reply(q, status, &json, 1, &body);
}

/* ---- stored objects ---- */

/* The published object; NULL: there is none. */
static const struct json *read_object(struct exchange *x, const char *plural, struct hk_str ns,
                                      struct hk_str name)
{
    const struct rest_kind *k =
        rest_kind_find(x->server->opts.rest, HK_STR(""), HK_STR("v1"), hk_str(plural));
    const struct store_obj *o = k ? store_get(x->server->opts.store, k->res, ns, name) : NULL;
    struct json *doc = hk_arena_zalloc(&x->mem, sizeof(*doc));

    if (!o || json_parse(hk_arena_str(&x->mem, o->text), 0, &x->mem, doc, NULL) < 0) {
        return NULL;
    }
    return doc;
}

static const struct json *need_object(struct exchange *x, struct hk_str name)
{
    const char *plural = hk_arena_str(&x->mem, x->route.plural).s;
    const struct json *doc = read_object(x, plural, x->route.ns, name);

    if (!doc) {
        exchange_refuse(x, 404, "NotFound", "%s \"%.*s\" not found", plural, HK_FMT(name));
        x->refusal.name = hk_arena_str(&x->mem, name).s;
        x->refusal.kind = plural;
    }
    return doc;
}

/* ---- names ---- */

/* "web", "web:80" or "https:web:443". */
static bool split_name(struct hk_str id, struct proxy_target *t)
{
    struct hk_str part[4] = {HK_STR(""), HK_STR(""), HK_STR(""), HK_STR("")};
    uint32_t n = 0;

    while (n < HK_LEN(part) && hk_str_cut(&id, ':', &part[n])) {
        n++;
    }
    const uint32_t name = n == 3;
    t->scheme = n == 3 ? part[0] : HK_STR("");
    t->name = part[name];
    t->port = n > 1 ? part[name + 1] : HK_STR("");
    t->tls = hk_str_is(t->scheme, "https");
    return n <= 3 && t->name.n > 0 && (t->tls || t->scheme.n == 0 || hk_str_is(t->scheme, "http"));
}

/* Ports are numbers here; Go's dialler would look other text up. */
static int read_port(struct exchange *x, struct proxy_target *t)
{
    if (t->port.n == 0) {
        t->number = t->tls ? 443 : 80;
        return 0;
    }
    if (!hk_str_int(t->port, &t->number)) {
        return exchange_refuse(x, 503, "ServiceUnavailable",
                               "error trying to reach service: dial tcp: lookup tcp/%.*s: unknown "
                               "port",
                               HK_FMT(t->port));
    }
    if (t->number <= 0 || t->number > UINT16_MAX) {
        return exchange_refuse(x, 503, "ServiceUnavailable",
                               "error trying to reach service: dial tcp: address %.*s: invalid "
                               "port",
                               HK_FMT(t->port));
    }
    return 0;
}

/* Addresses of pods of this machine are in the loopback network, so that is allowed here, other
 * than in Kubernetes. */
static bool is_proxyable(struct exchange *x, struct hk_str host)
{
    const char *text = hk_arena_str(&x->mem, host).s;
    struct in6_addr v6;
    struct in_addr v4;

    if (inet_pton(AF_INET, text, &v4) == 1) {
        const uint32_t ip = ntohl(v4.s_addr);
        return ip >> 24 != 0 && ip >> 16 != 0xa9fe && ip >> 28 != 0xe && ip != UINT32_MAX;
    }
    return inet_pton(AF_INET6, text, &v6) == 1 && !IN6_IS_ADDR_UNSPECIFIED(&v6) &&
           !IN6_IS_ADDR_LINKLOCAL(&v6) && !IN6_IS_ADDR_MULTICAST(&v6) && !IN6_IS_ADDR_V4MAPPED(&v6);
}

static int set_host(struct exchange *x, struct hk_str host, struct proxy_target *t)
{
    t->host = host;
    return is_proxyable(x, host) ? 0 : exchange_refuse(x, 400, "BadRequest", "address not allowed");
}

/* Whether the address of the pod leads to it. */
static bool is_reachable(const struct exchange *x, const struct json *pod)
{
    const struct server_opts *o = &x->server->opts;
    const struct pod_address all = {o->rest, o->store, o->node_api};

    return pod_address_reachable(&all, json_str_at(pod, "status.podIP"),
                                 json_str_at(pod, "spec.nodeName"));
}

/* ---- pods ---- */

/* The first port that a container of the pod names. */
static struct hk_str first_port(struct exchange *x, const struct json *pod)
{
    const struct json *list = json_list_at(pod, "spec.containers"), *one;

    for (uint32_t k = 0; (one = json_item(list, k)); k++) {
        const int64_t port = json_int_at(json_item(json_get(one, "ports"), 0), "containerPort");
        if (port > 0) {
            return hk_str(hk_arena_printf(&x->mem, "%lld", (long long)port));
        }
    }
    return HK_STR("");
}

static int find_pod(struct exchange *x, struct proxy_target *t)
{
    const struct json *pod = need_object(x, t->name);

    if (!pod) {
        return -HK_ENOTFOUND;
    }
    if (t->port.n == 0) {
        t->port = first_port(x, pod);
    }
    if (!is_reachable(x, pod)) {
        return exchange_refuse(x, 503, "ServiceUnavailable",
                               "error trying to reach service: pod %.*s has a loopback address of "
                               "another machine, node %.*s",
                               HK_FMT(t->name), HK_FMT(json_str_at(pod, "spec.nodeName")));
    }
    const int rc = set_host(x, json_str_at(pod, "status.podIP"), t);
    return rc < 0 ? rc : read_port(x, t);
}

/* ---- Services ---- */

/* The name of the Service's port with that number, or the text itself. */
static int find_port_name(struct exchange *x, struct proxy_target *t, struct hk_str *ret)
{
    int64_t number;

    *ret = t->port;
    if (!hk_str_int(t->port, &number)) {
        return 0;
    }
    const struct json *svc = need_object(x, t->name), *one;
    if (!svc) {
        return -HK_ENOTFOUND;
    }
    const struct json *list = json_list_at(svc, "spec.ports");
    for (uint32_t k = 0; (one = json_item(list, k)); k++) {
        if (json_int_at(one, "port") == number) {
            *ret = json_str_field(one, "name");
            return 0;
        }
    }
    return exchange_refuse(x, 503, "ServiceUnavailable",
                           "no service port %lld found for service \"%.*s\"", (long long)number,
                           HK_FMT(t->name));
}

/* Whoever may write Endpoints must not reach other addresses than those of pods. */
static bool is_pod_address(struct exchange *x, const struct json *address)
{
    const struct json *ref = json_get(address, "targetRef");
    const struct hk_str ns = json_str_field(ref, "namespace");

    if (!hk_str_is(json_str_field(ref, "kind"), "Pod") || !hk_str_eq(ns, x->route.ns)) {
        return false;
    }
    const struct json *pod = read_object(x, "pods", ns, json_str_field(ref, "name"));
    return pod && hk_str_eq(json_str_at(pod, "status.podIP"), json_str_field(address, "ip")) &&
           is_reachable(x, pod);
}

static bool choose_address(struct exchange *x, const struct json *subset, struct proxy_target *t)
{
    const struct json *list = json_get(subset, "addresses");
    const uint32_t n = json_len(list);
    const uint32_t first = n > 0 ? (uint32_t)(hk_rand_u64(x->server->opts.rand) % n) : 0;

    for (uint32_t k = 0; k < n; k++) {
        const struct json *address = json_item(list, (first + k) % n);
        if (is_pod_address(x, address)) {
            t->host = json_str_field(address, "ip");
            return is_proxyable(x, t->host);
        }
    }
    return false;
}

static bool choose_endpoint(struct exchange *x, const struct json *subset, struct hk_str port,
                            struct proxy_target *t)
{
    const struct json *list = json_get(subset, "ports"), *one;

    for (uint32_t k = 0; (one = json_item(list, k)); k++) {
        const int64_t number = json_int_at(one, "port");
        if (hk_str_eq(json_str_field(one, "name"), port) && number > 0 && number <= UINT16_MAX) {
            t->number = number;
            return choose_address(x, subset, t);
        }
    }
    return false;
}

static int find_service(struct exchange *x, struct proxy_target *t)
{
    struct hk_str port;
    const int rc = find_port_name(x, t, &port);

    if (rc < 0) {
        return rc;
    }
    const struct json *endpoints = read_object(x, "endpoints", x->route.ns, t->name);
    if (!endpoints && !need_object(x, t->name)) {
        return -HK_ENOTFOUND;
    }
    const struct json *subsets = json_list_at(endpoints, "subsets");
    const uint32_t n = json_len(subsets);
    const uint32_t first = n > 0 ? (uint32_t)(hk_rand_u64(x->server->opts.rand) % n) : 0;
    for (uint32_t k = 0; k < n; k++) {
        if (choose_endpoint(x, json_item(subsets, (first + k) % n), port, t)) {
            return 0;
        }
    }
    const struct hk_str what = n > 0 ? x->route.name : t->name;
    return exchange_refuse(x, 503, "ServiceUnavailable",
                           "no endpoints available for service \"%.*s\"", HK_FMT(what));
}

/* ---- nodes ---- */

/* Without a port, or with that of the node's own server: that server, over TLS. */
static int find_node(struct exchange *x, struct proxy_target *t)
{
    const struct json *node = need_object(x, t->name);
    int64_t asked = 0;

    if (!node) {
        return -HK_ENOTFOUND;
    }
    const int64_t port = json_int_at(node, "status.daemonEndpoints.kubeletEndpoint.Port");
    if (t->port.n > 0 && !(hk_str_int(t->port, &asked) && asked == port)) {
        const int rc = set_host(x, pod_address_of_node(node), t);
        return rc < 0 ? rc : read_port(x, t);
    }
    if (port <= 0 || port > UINT16_MAX) {
        return exchange_refuse(x, 503, "ServiceUnavailable",
                               "error trying to reach service: node \"%.*s\" does not say where it "
                               "serves",
                               HK_FMT(t->name));
    }
    t->kubelet = t->tls = true;
    t->number = port;
    return set_host(x, pod_address_of_node(node), t);
}

/* ---- requests ---- */

static int subproxy_find(struct exchange *x, struct proxy_target *t)
{
    static const struct {
        const char *plural, *word;
        int (*find)(struct exchange *x, struct proxy_target *t);
    } rows[] = {{"pods", "pod", find_pod},
                {"services", "service", find_service},
                {"nodes", "node", find_node}};

    for (size_t k = 0; k < HK_LEN(rows); k++) {
        if (hk_str_is(x->route.plural, rows[k].plural)) {
            return split_name(x->route.name, t)
                       ? rows[k].find(x, t)
                       : exchange_refuse(x, 400, "BadRequest", "invalid %s request \"%.*s\"",
                                         rows[k].word, HK_FMT(x->route.name));
        }
    }
    return exchange_refuse(x, 404, "NotFound", "the server could not find the requested resource");
}

static const char *with_query(struct exchange *x, struct hk_str path)
{
    const struct hk_str query = x->http->query;

    return hk_arena_printf(&x->mem, "%.*s%s%.*s", HK_FMT(path), query.n > 0 ? "?" : "",
                           HK_FMT(query));
}

/* A page without the last slash would resolve its links wrongly. */
static bool redirect_to_root(struct exchange *x)
{
    const struct hk_str path = x->http->path;
    const bool reads = hk_str_is(x->http->method, "GET") || hk_str_is(x->http->method, "HEAD");
    struct hk_buf body = {0};

    if (x->route.rest.n > 0 || hk_str_ends(path, "/") || !reads ||
        http_request_header(x->http, "Upgrade").n > 0) {
        return false;
    }
    const char *with_slash = hk_arena_printf(&x->mem, "%.*s/", HK_FMT(path));
    const struct http_header location = {HK_STR("Location"),
                                         hk_str(with_query(x, hk_str(with_slash)))};
    answer_bytes(x, 301, &location, 1, &body);
    return true;
}

static bool subproxy_forward(struct exchange *x, const struct proxy_target *t)
{
    const struct cert_pair *kubelet = t->kubelet ? x->server->opts.kubelet_client : NULL;
    const char *rest = hk_arena_printf(&x->mem, "/%.*s", HK_FMT(x->route.rest));
    const size_t suffix =
        x->route.rest.n + (hk_str_ends(x->http->path, "/") || x->route.rest.n > 0);

    return forwarder_start(
        x->server->forwarder,
        &(struct forward_opts){
            .http = x->http,
            .user = hk_str(x->user.name),
            .host = t->host,
            .port = (uint16_t)t->number,
            .tls = t->tls,
            .cert_pem = kubelet ? kubelet->cert_pem : NULL,
            .key_pem = kubelet ? kubelet->key_pem : NULL,
            .path = hk_str(with_query(x, hk_str(rest))),
            .prefix = {x->http->path.s, x->http->path.n - HK_MIN(suffix, x->http->path.n)},
            .refuse = subproxy_refuse,
        });
}

/* A node of this process is asked without a connection. */
static bool serve_local_node(struct exchange *x)
{
    const struct node_api *api = x->server->opts.node_api;
    struct proxy_target t = {0};

    if (!hk_str_is(x->route.plural, "nodes") || !split_name(x->route.name, &t) || t.port.n > 0 ||
        !api || !api->serve_node || !api->has_node(api->ctx, t.name)) {
        return false;
    }
    struct http_request *q = x->http;
    q->path = hk_str(hk_arena_printf(&x->mem, "/%.*s", HK_FMT(x->route.rest)));
    api->serve_node(api->ctx, t.name, q);
    q->path = HK_STR("");
    exchange_free(x);
    return true;
}

void subproxy_serve(struct exchange *x)
{
    struct proxy_target t = {0};

    if (redirect_to_root(x) || serve_local_node(x)) {
        return;
    }
    if (subproxy_find(x, &t) < 0) {
        answer_refusal(x);
    } else if (!subproxy_forward(x, &t)) {
        exchange_refuse(x, 429, "TooManyRequests", "Too many requests, please try again later.");
        x->refusal.retry_after_s = 1;
        answer_refusal(x);
    } else {
        exchange_free(x);
    }
}
