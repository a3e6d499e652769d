// SPDX-License-Identifier: Apache-2.0
// Where the Service of an APIService leads: a ready address of its Endpoints or EndpointSlices, else
// what is wrong, as kube-aggregator's availability controller says it.
#include "apiserver/aggregate_priv.h"
#include "apiserver/pod_address.h"

#include <arpa/inet.h>

struct search {
    const struct aggregate_service *s;
    struct hk_arena *mem;
    struct hk_str port_name; /* of the Service's port */
    bool found;              /* any slice or Endpoints at all */
    struct hk_str chosen;
    int64_t port;
    uint32_t seen; /* ready addresses so far */
};

/* Every address has the same chance. */
static void offer(struct search *f, struct hk_str address, struct hk_str node, int64_t port)
{
    const struct aggregate_opts *o = &f->s->a->o;
    const struct pod_address all = {o->rest, o->store, o->nodes};

    if (pod_address_reachable(&all, address, node) && address.n > 0 && port > 0 &&
        port <= UINT16_MAX && hk_rand_u64(f->s->a->o.rand) % ++f->seen == 0) {
        f->chosen = hk_arena_str(f->mem, address);
        f->port = port;
    }
}

static int64_t find_port(const struct search *f, const struct json *ports)
{
    const struct json *one;

    for (uint32_t k = 0; (one = json_item(ports, k)); k++) {
        if (hk_str_eq(json_str_field(one, "name"), f->port_name)) {
            return json_int(json_get(one, "port"), 0);
        }
    }
    return 0;
}

static void search_endpoints(struct search *f)
{
    const struct aggregate *a = f->s->a;
    const struct json *doc =
        aggregate_read(a, a->endpoints_res, hk_str(f->s->svc_ns), hk_str(f->s->svc_name), f->mem);
    const struct json *subsets = json_list_at(doc, "subsets"), *subset, *address;

    f->found |= doc != NULL;
    for (uint32_t i = 0; (subset = json_item(subsets, i)); i++) {
        const struct json *list = json_get(subset, "addresses");
        const int64_t port = find_port(f, json_get(subset, "ports"));
        for (uint32_t k = 0; (address = json_item(list, k)); k++) {
            offer(f, json_str_field(address, "ip"), json_str_field(address, "nodeName"), port);
        }
    }
}

static bool aggregate_on_slice(void *ctx, const struct store_obj *o)
{
    struct search *f = ctx;
    struct json doc;
    const struct json *one;

    if (json_parse(hk_arena_str(f->mem, o->text), 0, f->mem, &doc, NULL) < 0 ||
        !hk_str_is(json_str_field(json_at(&doc, "metadata.labels"), "kubernetes.io/service-name"),
                   f->s->svc_name)) {
        return true;
    }
    f->found = true;
    const struct json *list = json_get(&doc, "endpoints");
    const int64_t port = find_port(f, json_get(&doc, "ports"));
    for (uint32_t k = 0; (one = json_item(list, k)); k++) {
        const struct json *ready = json_at(one, "conditions.ready");
        if (!json_is(ready, JSON_BOOL) || ready->b) {
            offer(f, json_str(json_item(json_get(one, "addresses"), 0), HK_STR("")),
                  json_str_field(one, "nodeName"), port);
        }
    }
    return true;
}

static void aggregate_fail(struct aggregate_target *ret, const char *reason, const char *message)
{
    ret->reason = reason;
    ret->message = message;
}

static bool find_service_port(struct search *f, const struct json *svc)
{
    const struct json *list = json_list_at(svc, "spec.ports"), *one;

    for (uint32_t k = 0; (one = json_item(list, k)); k++) {
        if (json_int_at(one, "port") == f->s->port) {
            f->port_name = json_str_field(one, "name");
            return true;
        }
    }
    return false;
}

/* The name of another host, which must be an address here. */
static void use_external_name(const struct search *f, struct hk_str name,
                              struct aggregate_target *ret)
{
    struct in6_addr any;
    const char *text = hk_arena_str(f->mem, name).s;

    if (inet_pton(AF_INET, text, &any) != 1 && inet_pton(AF_INET6, text, &any) != 1) {
        aggregate_fail(ret, "FailedDiscoveryCheck",
                       "the Service has an external name, which this server does not look up");
        return;
    }
    ret->host = hk_arena_str(f->mem, name);
    ret->port = (uint16_t)f->s->port;
}

static void describe_missing(const struct search *f, struct aggregate_target *ret)
{
    const struct aggregate_service *s = f->s;

    if (!f->found) {
        aggregate_fail(ret, "EndpointsNotFound",
                       hk_arena_printf(f->mem,
                                       "cannot find endpointslices for service/%s in \"%s\"",
                                       s->svc_name, s->svc_ns));
        return;
    }
    aggregate_fail(ret, "MissingEndpoints",
                   hk_arena_printf(f->mem,
                                   "endpointslices for service/%s in \"%s\" have no addresses with "
                                   "port name \"%.*s\"",
                                   s->svc_name, s->svc_ns, HK_FMT(f->port_name)));
}

void aggregate_find_target(const struct aggregate_service *s, struct hk_arena *mem,
                           struct aggregate_target *ret)
{
    struct search f = {.s = s, .mem = mem, .port_name = HK_STR(""), .chosen = HK_STR("")};
    const struct aggregate *a = s->a;
    const struct json *svc =
        aggregate_read(a, a->services_res, hk_str(s->svc_ns), hk_str(s->svc_name), mem);

    *ret = (struct aggregate_target){0};
    if (!svc) {
        aggregate_fail(
            ret, "ServiceNotFound",
            hk_arena_printf(mem, "service/%s in \"%s\" is not present", s->svc_name, s->svc_ns));
    } else if (hk_str_is(json_str_at(svc, "spec.type"), "ExternalName")) {
        use_external_name(&f, json_str_at(svc, "spec.externalName"), ret);
    } else if (!find_service_port(&f, svc)) {
        aggregate_fail(ret, "ServicePortError",
                       hk_arena_printf(mem, "service/%s in \"%s\" is not listening on port %lld",
                                       s->svc_name, s->svc_ns, (long long)s->port));
    } else {
        search_endpoints(&f);
        if (f.seen == 0) {
            store_scan(a->o.store, a->slices_res, hk_str(s->svc_ns), HK_STR(""), HK_STR(""),
                       aggregate_on_slice, &f);
        }
        if (f.seen == 0) {
            describe_missing(&f, ret);
        }
        ret->host = f.chosen;
        ret->port = (uint16_t)f.port;
    }
}
