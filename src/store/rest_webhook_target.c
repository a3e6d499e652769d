// SPDX-License-Identifier: Apache-2.0
// Where to call a webhook. A URL is used as it is. A Service is called under the name SERVICE.NS.svc
// and connected to at a ready address of its EndpointSlices or Endpoints; failing those, at its
// external name or cluster IP.
#include "store/rest_webhook_priv.h"

enum { HTTPS_PORT = 443 };

/* The search for an address of a Service. */
struct endpoint {
    struct rest *r;
    struct hk_str service;
    const char *port_name; /* of the Service's port */
    char *address;         /* in mem: ADDRESS:PORT */
    struct hk_arena *mem;
};

static void endpoint_set(struct endpoint *e, struct hk_str address, int64_t port)
{
    const bool v6 = memchr(address.s, ':', address.n) != NULL;

    e->address =
        hk_arena_printf(e->mem, v6 ? "[%.*s]:%lld" : "%.*s:%lld", HK_FMT(address), (long long)port);
}

/* The number of the port with the name, 0 if there is none. */
static int64_t port_number(const struct json *ports, const char *name)
{
    for (uint32_t i = 0; i < json_len(ports); i++) {
        if (hk_str_is(json_str_field(&ports->items[i], "name"), name)) {
            return json_int(json_get(&ports->items[i], "port"), 0);
        }
    }
    return 0;
}

static bool on_slice(void *ctx, const struct store_obj *o)
{
    struct endpoint *e = ctx;
    struct json doc;

    if (json_parse(hk_arena_str(e->mem, o->text), 0, e->mem, &doc, NULL) < 0) {
        return true;
    }
    const struct json *labels = json_at(&doc, "metadata.labels");
    const struct json *list = json_get(&doc, "endpoints");
    const int64_t port = port_number(json_get(&doc, "ports"), e->port_name);
    if (port == 0 || !hk_str_eq(json_str_field(labels, "kubernetes.io/service-name"), e->service)) {
        return true;
    }
    for (uint32_t i = 0; i < json_len(list); i++) {
        const struct json *at = json_get(&list->items[i], "addresses");
        if (json_bool(json_at(&list->items[i], "conditions.ready"), true) && json_len(at) > 0) {
            endpoint_set(e, json_str(&at->items[0], HK_STR("")), port);
            return false;
        }
    }
    return true;
}

static const struct rest_kind *kind_of(struct rest *r, const char *group, const char *plural)
{
    return rest_kind_find(r, hk_str(group), HK_STR("v1"), hk_str(plural));
}

static void find_in_slices(struct endpoint *e, struct hk_str ns)
{
    const struct rest_kind *k = kind_of(e->r, "discovery.k8s.io", "endpointslices");

    if (k) {
        store_scan(e->r->store, k->res, ns, HK_STR(""), HK_STR(""), on_slice, e);
    }
}

/* The object named as the Service. */
static bool read_newest(const struct endpoint *e, const struct rest_kind *k, struct hk_str ns,
                        struct json *ret)
{
    bool staged;
    const struct store_obj *o = store_head(e->r->store, k->res, ns, e->service, &staged);

    return o && json_parse(hk_arena_str(e->mem, o->text), 0, e->mem, ret, NULL) == 0;
}

static void find_in_endpoints(struct endpoint *e, struct hk_str ns)
{
    const struct rest_kind *k = kind_of(e->r, "", "endpoints");
    struct json doc;

    if (!k || !read_newest(e, k, ns, &doc)) {
        return;
    }
    const struct json *subsets = json_get(&doc, "subsets");
    for (uint32_t i = 0; i < json_len(subsets) && !e->address; i++) {
        const struct json *at = json_get(&subsets->items[i], "addresses");
        const int64_t port = port_number(json_get(&subsets->items[i], "ports"), e->port_name);
        if (json_len(at) > 0 && port > 0) {
            endpoint_set(e, json_str_field(&at->items[0], "ip"), port);
        }
    }
}

/* The name of the Service's port with that number; NULL: there is none. */
static const char *port_name(const struct json *service, int64_t number, struct hk_arena *mem)
{
    const struct json *ports = json_at(service, "spec.ports");

    for (uint32_t i = 0; i < json_len(ports); i++) {
        if (json_int(json_get(&ports->items[i], "port"), 0) == number) {
            const struct hk_str name = json_str_field(&ports->items[i], "name");
            return hk_arena_strndup(mem, name.s, name.n);
        }
    }
    return NULL;
}

static int find_address(struct endpoint *e, struct hk_str ns, int64_t port, struct hk_err *err)
{
    const struct rest_kind *k = kind_of(e->r, "", "services");
    struct json doc;

    if (!k || !read_newest(e, k, ns, &doc)) {
        return hk_fail(err, HK_ENOTFOUND, "service \"%.*s\" not found", HK_FMT(e->service));
    }
    const struct hk_str external = json_str(json_at(&doc, "spec.externalName"), HK_STR(""));
    const struct hk_str ip = json_str(json_at(&doc, "spec.clusterIP"), HK_STR(""));
    e->port_name = port_name(&doc, port, e->mem);
    if (external.n > 0) {
        endpoint_set(e, external, port);
        return 0;
    }
    if (!e->port_name) {
        return hk_fail(err, HK_ENOTFOUND, "no service port %lld found for service \"%.*s\"",
                       (long long)port, HK_FMT(e->service));
    }
    find_in_slices(e, ns);
    if (!e->address) {
        find_in_endpoints(e, ns);
    }
    if (!e->address && ip.n > 0 && !hk_str_is(ip, "None")) {
        endpoint_set(e, ip, port);
    }
    if (!e->address) {
        return hk_fail(err, HK_ENOTFOUND, "no endpoints available for service \"%.*s\"",
                       HK_FMT(e->service));
    }
    return 0;
}

int webhook_target(struct rest *r, const struct webhook *h, struct hk_arena *mem,
                   struct webhook_post *ret, struct hk_err *err)
{
    const struct json *service = json_get(h->client, "service");
    const struct hk_str url = json_str_field(h->client, "url");
    const struct hk_str ns = json_str_field(service, "namespace");
    const struct hk_str path = json_str_field(service, "path");
    const int64_t port = json_int(json_get(service, "port"), HTTPS_PORT);
    struct endpoint e = {.r = r, .service = json_str_field(service, "name"), .mem = mem};

    *ret = (struct webhook_post){.ca_pem = h->ca_pem};
    if (url.n > 0) {
        ret->url = hk_arena_printf(mem, "%.*s?timeout=%llds", HK_FMT(url), (long long)h->timeout_s);
    } else {
        ret->url = hk_arena_printf(mem, "https://%.*s.%.*s.svc:%lld%s%.*s?timeout=%llds",
                                   HK_FMT(e.service), HK_FMT(ns), (long long)port,
                                   path.n > 0 && path.s[0] == '/' ? "" : "/", HK_FMT(path),
                                   (long long)h->timeout_s);
    }
    if (h->bad) {
        return hk_fail(err, HK_EINVAL, "%s", h->bad);
    }
    if (url.n == 0) {
        const int rc = find_address(&e, ns, port, err);
        ret->address = e.address;
        return rc < 0 ? hk_wrap(err, rc, "failed to call webhook: Post \"%s\"", ret->url) : 0;
    }
    return 0;
}
