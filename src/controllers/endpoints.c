// SPDX-License-Identifier: Apache-2.0
// Endpoints and EndpointSlices of Services that select pods. Embedded mode only: in other clusters
// kube-controller-manager writes them.
//
//   a Service, a pod that it selects, or one of the written objects changes
//     -> the endpoints are computed again from all pods -> what differs is written
//
// A Service without a selector has endpoints that somebody else writes; they are left alone.
// Upstream: endpoints_controller.go, endpointslice/reconciler.go.
#include "controllers/endpoints_priv.h"

#include "api/names.h"
#include "controllers/endpoint_pods.h"
#include "controllers/kinds.h"
#include "controllers/table.h"

#include <stdlib.h>

enum { ENDPOINTS_MAX = 1000 }; /* addresses of one Endpoints object */
#define MANAGER "endpoint-controller"

static const struct hk_str none = {"", 0};

struct endpoints_state {
    struct endpoint_pods pods;
};

/* ---- which keys a change concerns ---- */

static void endpoints_touch(void *ctx, uint32_t service)
{
    struct ctl *c = ctx;
    const struct mirror *services = ctl_mirror(c, API_SERVICE);

    ctl_add(c, mirror_ns(services, service), mirror_name(services, service));
}

static void endpoints_pod_changed(struct ctl *c, const struct mirror_change *ch)
{
    struct endpoints_state *s = c->state;

    endpoint_pods_put(&s->pods, ch->row, mirror_ns(ch->mirror, ch->row), ch->now ? ch->root : NULL,
                      endpoints_touch, c);
}

static void endpoints_service_changed(struct ctl *c, const struct mirror_change *ch)
{
    struct endpoints_state *s = c->state;

    endpoint_pods_select(&s->pods, ch->row, mirror_ns(ch->mirror, ch->row),
                         ch->now ? ch->root : NULL);
    ctl_add(c, mirror_ns(ch->mirror, ch->row), mirror_name(ch->mirror, ch->row));
}

static void endpoints_object_changed(struct ctl *c, const struct mirror_change *ch)
{
    ctl_add(c, mirror_ns(ch->mirror, ch->row), mirror_name(ch->mirror, ch->row));
}

static void endpoints_slice_changed(struct ctl *c, const struct mirror_change *ch)
{
    const struct hk_str service = mirror_word(ch->mirror, SLICES_BY_SERVICE, ch->row);

    if (service.n > 0) {
        ctl_add(c, mirror_ns(ch->mirror, ch->row), service);
    }
}

/* ---- the endpoints of a Service ---- */

/* Where the pod listens for this port of the Service; 0: nowhere. */
static int64_t endpoints_target(const struct json *port, const struct json *facts)
{
    const struct json *target = json_get(port, "targetPort");
    const struct hk_str protocol = json_str(json_get(port, "protocol"), HK_STR("TCP"));
    HK_AUTO(hk_buf_fini) struct hk_buf key = {0};

    if (!json_is(target, JSON_STRING)) {
        return json_int(target, json_int(json_get(port, "port"), 0));
    }
    hk_buf_addf(&key, "%.*s/%.*s", HK_FMT(json_str(target, none)), HK_FMT(protocol));
    return json_int(json_get_str(json_get(facts, "ports"), hk_buf_str(&key)), 0);
}

static struct json endpoints_make_ports(const struct endpoints_view *v, const struct json *facts)
{
    const struct json *ports = json_at(v->service, "spec.ports");
    struct hk_arena *a = v->t->mem;
    struct json list = json_make_array();

    for (uint32_t i = 0; i < json_len(ports); i++) {
        const struct json *port = json_item(ports, i);
        const int64_t number = endpoints_target(port, facts);
        struct json one = json_make_object();

        if (number <= 0) {
            continue; /* the pod has no port of that name */
        }
        json_set_str(&one, a, "name", json_str_field(port, "name"));
        json_set_int(&one, a, "port", number);
        json_set_str(&one, a, "protocol", json_str(json_get(port, "protocol"), HK_STR("TCP")));
        if (json_get(port, "appProtocol")) {
            json_set(&one, a, "appProtocol", *json_get(port, "appProtocol"));
        }
        json_push(&list, a, one);
    }
    return list;
}

static uint32_t endpoints_group_of(struct endpoints_view *v, const struct json *facts)
{
    const struct json ports = endpoints_make_ports(v, facts);

    for (uint32_t i = 0; i < v->groups.len; i++) {
        if (json_equal(&v->groups.at[i].ports, &ports)) {
            return i;
        }
    }
    hk_vec_push(&v->groups, (struct endpoint_group){ports});
    return v->groups.len - 1;
}

static void endpoints_add(void *ctx, const struct json *facts)
{
    struct endpoints_view *v = ctx;
    const bool serving = json_bool(json_get(facts, "serving"), false);
    const bool terminating = json_bool(json_get(facts, "terminating"), false);

    hk_vec_push(&v->at,
                ((struct endpoint){
                    .facts = *facts,
                    .address = json_str(json_item(json_at(facts, "endpoint.addresses"), 0), none),
                    .group = endpoints_group_of(v, facts),
                    .serving = serving,
                    .terminating = terminating,
                    .ready = v->publish || (serving && !terminating),
                }));
}

static int endpoints_by_address(const void *a, const void *b)
{
    const struct endpoint *x = a, *y = b;

    return hk_str_cmp(x->address, y->address);
}

static void endpoints_view_fini(struct endpoints_view *v)
{
    hk_vec_fini(&v->at);
    hk_vec_fini(&v->groups);
}

static void endpoints_look(struct ctl *c, struct endpoints_view *v, uint32_t row)
{
    struct endpoints_state *s = c->state;

    v->name = v->t->name;
    v->headless = hk_str_is(json_str_at(v->service, "spec.clusterIP"), "None");
    v->publish = json_bool(json_at(v->service, "spec.publishNotReadyAddresses"), false);
    endpoint_pods_each(&s->pods, row, v->t->mem, endpoints_add, v);
    if (v->at.len > 0) {
        qsort(v->at.at, v->at.len, sizeof(*v->at.at), endpoints_by_address);
    }
}

struct json endpoints_make_labels(const struct endpoints_view *v)
{
    struct json labels =
        json_clone_as(json_at(v->service, "metadata.labels"), JSON_OBJECT, v->t->mem);

    json_del(&labels, API_LABEL_HEADLESS);
    if (v->headless) {
        json_set_cstr(&labels, v->t->mem, API_LABEL_HEADLESS, "");
    }
    return labels;
}

struct hk_str endpoints_hostname(const struct endpoints_view *v, const struct endpoint *e)
{
    return hk_str_eq(json_str_field(&e->facts, "subdomain"), v->name)
               ? json_str_field(&e->facts, "hostname")
               : none;
}

/* ---- the Endpoints object ---- */

static struct json endpoints_make_address(const struct endpoints_view *v, const struct endpoint *e)
{
    struct hk_arena *a = v->t->mem;
    const struct json *endpoint = json_get(&e->facts, "endpoint");
    const struct hk_str hostname = endpoints_hostname(v, e);
    struct json address = json_make_object();

    json_set_str(&address, a, "ip", e->address);
    if (hostname.n > 0) {
        json_set_str(&address, a, "hostname", hostname);
    }
    if (json_get(endpoint, "nodeName")) {
        json_set(&address, a, "nodeName", *json_get(endpoint, "nodeName"));
    }
    json_set(&address, a, "targetRef", *json_get(endpoint, "targetRef"));
    return address;
}

/* Adds the addresses of one group to its subset, at most as many as are left. */
static void endpoints_fill_subset(const struct endpoints_view *v, uint32_t group, bool ready,
                                  uint32_t *left, struct json *subset)
{
    struct json list = json_make_array();

    for (uint32_t i = 0; i<v->at.len && * left> 0; i++) {
        const struct endpoint *e = &v->at.at[i];

        if (e->group == group && e->ready == ready && (!e->terminating || v->publish)) {
            json_push(&list, v->t->mem, endpoints_make_address(v, e));
            --*left;
        }
    }
    if (list.len > 0) {
        json_set(subset, v->t->mem, ready ? "addresses" : "notReadyAddresses", list);
    }
}

/* Ready addresses come first when there are too many. */
static struct json endpoints_make_subsets(const struct endpoints_view *v, bool *ret_truncated)
{
    struct hk_arena *a = v->t->mem;
    struct json *subsets = hk_arena_array(a, v->groups.len + 1, sizeof(*subsets));
    struct json list = json_make_array();
    uint32_t left = ENDPOINTS_MAX;

    for (uint32_t i = 0; i < v->groups.len; i++) {
        subsets[i] = json_make_object();
        endpoints_fill_subset(v, i, true, &left, &subsets[i]);
    }
    for (uint32_t i = 0; i < v->groups.len; i++) {
        endpoints_fill_subset(v, i, false, &left, &subsets[i]);
        if (subsets[i].len == 0) {
            continue;
        }
        if (json_len(&v->groups.at[i].ports) > 0) {
            json_set(&subsets[i], a, "ports", v->groups.at[i].ports);
        }
        json_push(&list, a, subsets[i]);
    }
    *ret_truncated = v->at.len > ENDPOINTS_MAX;
    return list;
}

static void endpoints_set_metadata(const struct endpoints_view *v, struct json *body,
                                   bool truncated)
{
    struct hk_arena *a = v->t->mem;
    struct json *meta = json_need(body, a, "metadata", JSON_OBJECT);
    struct json labels = endpoints_make_labels(v);

    json_set_cstr(&labels, a, API_LABEL_ENDPOINTS_MANAGER, MANAGER);
    json_set(meta, a, "labels", labels);
    if (truncated) {
        json_set_cstr(json_need(meta, a, "annotations", JSON_OBJECT), a, API_ANN_OVER_CAPACITY,
                      "truncated");
    } else if (json_get(json_get(meta, "annotations"), API_ANN_OVER_CAPACITY)) {
        json_del(json_need(meta, a, "annotations", JSON_OBJECT), API_ANN_OVER_CAPACITY);
    }
}

static void endpoints_write_object(struct ctl *c, const struct endpoints_view *v)
{
    const struct mirror *m = ctl_mirror(c, API_ENDPOINTS);
    const uint32_t row = mirror_find(m, v->t->ns, v->t->name);
    struct hk_arena *a = v->t->mem;
    struct json was = row == HK_NONE ? json_make_object() : mirror_read(m, row, a);
    struct json body = json_clone(&was, a);
    bool truncated;
    const struct json subsets = endpoints_make_subsets(v, &truncated);

    json_set_cstr(&body, a, "apiVersion", "v1");
    json_set_cstr(&body, a, "kind", "Endpoints");
    endpoints_set_metadata(v, &body, truncated);
    if (json_len(&subsets) > 0) {
        json_set(&body, a, "subsets", subsets);
    } else {
        json_del(&body, "subsets");
    }
    if (row == HK_NONE) {
        struct json *meta = json_need(&body, a, "metadata", JSON_OBJECT);

        json_set_str(meta, a, "namespace", v->t->ns);
        json_set_str(meta, a, "name", v->t->name);
        pass_create(v->t, api_kind(API_ENDPOINTS), &body);
    } else if (!json_equal(&was, &body)) {
        pass_update(v->t, api_kind(API_ENDPOINTS), &body);
    }
}

/* Only what this controller made. */
static void endpoints_remove_object(struct ctl *c, struct pass *t)
{
    const struct mirror *m = ctl_mirror(c, API_ENDPOINTS);
    const uint32_t row = mirror_find(m, t->ns, t->name);
    struct json was;

    if (row == HK_NONE) {
        return;
    }
    was = mirror_read(m, row, t->mem);
    if (hk_str_is(json_str(kinds_label(&was, API_LABEL_ENDPOINTS_MANAGER), none), MANAGER)) {
        pass_delete(t, api_kind(API_ENDPOINTS), t->ns, t->name, mirror_uid(m, row),
                    PORT_PROPAGATE_DEFAULT);
    }
}

/* ---- one pass ---- */

static bool endpoints_is_served(const struct json *service)
{
    const struct json *selector = json_at(service, "spec.selector");

    return json_is(selector, JSON_OBJECT) && selector->len > 0 &&
           !hk_str_is(json_str_at(service, "spec.type"), "ExternalName") &&
           !json_at(service, "metadata.deletionTimestamp");
}

static void endpoints_reconcile(struct ctl *c, struct pass *t)
{
    const struct mirror *services = ctl_mirror(c, API_SERVICE);
    const uint32_t row = mirror_find(services, t->ns, t->name);
    HK_AUTO(endpoints_view_fini) struct endpoints_view view = {.t = t};
    struct json service;

    if (row != HK_NONE) {
        service = mirror_read(services, row, t->mem);
    }
    if (row == HK_NONE || !endpoints_is_served(&service)) {
        endpoints_remove_object(c, t);
        endpoints_remove_slices(c, t);
        return;
    }
    view.service = &service;
    endpoints_look(c, &view, row);
    endpoints_write_object(c, &view);
    endpoints_write_slices(c, &view);
}

static void endpoints_close(struct ctl *c)
{
    endpoint_pods_fini(&((struct endpoints_state *)c->state)->pods);
}

static const struct ctl_watch watches[] = {{&mirror_services, endpoints_service_changed},
                                           {&mirror_pods, endpoints_pod_changed},
                                           {&mirror_endpoints, endpoints_object_changed},
                                           {&mirror_endpoint_slices, endpoints_slice_changed},
                                           {0}};

const struct ctl_type ctl_endpoints = {
    .name = "endpoints-controller",
    .about = "writes Endpoints and EndpointSlices of Services",
    .watches = watches,
    .state_size = sizeof(struct endpoints_state),
    .close = endpoints_close,
    .reconcile = endpoints_reconcile,
};
