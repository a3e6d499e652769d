// SPDX-License-Identifier: Apache-2.0
// The table of Services. One feed brings the Services, one the EndpointSlices, in any order: a row
// exists as long as either is known.
#include "api/services.h"

#include "api/feed.h"
#include "api/names.h"

struct services_listener {
    void (*fn)(void *ctx, const struct service *svc);
    void *ctx;
};

struct services {
    struct hk_intern str; /* names, for the feeds */
    struct feed services, slices;
    HK_VEC(struct service *) rows; /* NULL: free */
    HK_VEC(uint32_t) vacant;
    struct hk_map by_name;  /* hash of namespace and name to the row */
    struct hk_map by_slice; /* the same of a slice to the row of its Service */
    HK_VEC(struct services_listener) listeners;
};

static uint64_t services_key(struct hk_str ns, struct hk_str name)
{
    return hk_hash(name.s, name.n, hk_hash(ns.s, ns.n, 3)) >> 1; /* the map reserves the largest */
}

static char *services_copy(struct hk_str s)
{
    return hk_strndup(s.s ? s.s : "", s.n);
}

/* ---- rows ---- */

static void service_ports_clear(struct service_port *at, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        hk_free(at[i].name);
    }
}

static void service_slice_fini(struct service_slice *slice)
{
    service_ports_clear(slice->ports.at, slice->ports.len);
    for (uint32_t i = 0; i < slice->endpoints.len; i++) {
        hk_free(slice->endpoints.at[i].address);
        hk_free(slice->endpoints.at[i].hostname);
    }
    hk_vec_fini(&slice->ports);
    hk_vec_fini(&slice->endpoints);
    hk_free(slice->name);
}

/* Forgets what the Service object says. */
static void service_clear(struct service *svc)
{
    service_ports_clear(svc->ports.at, svc->ports.len);
    hk_vec_clear(&svc->ports);
    hk_free(svc->address);
    svc->address = services_copy(HK_STR(""));
    hk_free(svc->external);
    svc->external = NULL;
    svc->exists = svc->headless = false;
    svc->affinity_s = 0;
}

static void service_free(struct service *svc)
{
    if (!svc) {
        return;
    }
    service_clear(svc);
    for (uint32_t i = 0; i < svc->slices.len; i++) {
        service_slice_fini(&svc->slices.at[i]);
    }
    hk_vec_fini(&svc->ports);
    hk_vec_fini(&svc->slices);
    hk_free(svc->address);
    hk_free(svc->ns);
    hk_free(svc->name);
    hk_free(svc);
}

static uint32_t services_row(struct services *s, struct hk_str ns, struct hk_str name)
{
    uint32_t row = hk_map_get(&s->by_name, services_key(ns, name));
    struct service *svc;

    if (row != HK_NONE) {
        return row;
    }
    svc = hk_zalloc(sizeof(*svc));
    svc->ns = services_copy(ns);
    svc->name = services_copy(name);
    svc->address = services_copy(HK_STR(""));
    if (s->vacant.len > 0) {
        row = hk_vec_pop(&s->vacant);
        s->rows.at[row] = svc;
    } else {
        row = s->rows.len;
        hk_vec_push(&s->rows, svc);
    }
    hk_map_put(&s->by_name, services_key(ns, name), row);
    return row;
}

/* Tells the listeners, and frees the row when nothing is known of the Service any more. */
static void services_changed(struct services *s, uint32_t row)
{
    struct service *svc = s->rows.at[row];

    for (uint32_t i = 0; i < s->listeners.len; i++) {
        s->listeners.at[i].fn(s->listeners.at[i].ctx, svc);
    }
    if (!svc->exists && svc->slices.len == 0) {
        hk_map_del(&s->by_name, services_key(hk_str(svc->ns), hk_str(svc->name)));
        s->rows.at[row] = NULL;
        hk_vec_push(&s->vacant, row);
        service_free(svc);
    }
}

/* ---- Services ---- */

static uint8_t services_protocol(const struct json *port)
{
    const struct hk_str word = json_str_field(port, "protocol");

    return hk_str_is(word, "UDP")    ? SERVICE_UDP
           : hk_str_is(word, "SCTP") ? SERVICE_SCTP
                                     : SERVICE_TCP;
}

static uint16_t services_port_number(const struct json *v)
{
    const int64_t n = json_int(v, 0);

    return n > 0 && n <= UINT16_MAX ? (uint16_t)n : 0;
}

static struct service_port services_decode_port(const struct json *port)
{
    return (struct service_port){
        .name = services_copy(json_str_field(port, "name")),
        .port = services_port_number(json_get(port, "port")),
        .node_port = services_port_number(json_get(port, "nodePort")),
        .protocol = services_protocol(port),
    };
}

static void services_on_service(void *ctx, struct api_object *o)
{
    struct services *s = ctx;
    const uint32_t row = services_row(s, o->ns, o->name);
    struct service *svc = s->rows.at[row];
    const struct json *spec = json_get(&o->root, "spec"), *ports = json_get(spec, "ports");
    const struct hk_str ip = json_str_field(spec, "clusterIP");

    service_clear(svc);
    svc->exists = true;
    svc->headless = hk_str_is(ip, "None");
    if (hk_str_is(json_str_field(spec, "type"), "ExternalName")) {
        svc->external = services_copy(json_str_field(spec, "externalName"));
    } else if (!svc->headless) {
        hk_free(svc->address);
        svc->address = services_copy(ip);
    }
    if (hk_str_is(json_str_field(spec, "sessionAffinity"), "ClientIP")) {
        const int64_t given = json_int_at(spec, "sessionAffinityConfig.clientIP.timeoutSeconds");

        svc->affinity_s = given > 0 ? given : 10800;
    }
    for (uint32_t i = 0; i < json_len(ports); i++) {
        hk_vec_push(&svc->ports, services_decode_port(json_item(ports, i)));
    }
    services_changed(s, row);
}

static void services_on_service_gone(void *ctx, struct hk_str ns, struct hk_str name,
                                     const struct api_object *last)
{
    struct services *s = ctx;
    const uint32_t row = hk_map_get(&s->by_name, services_key(ns, name));

    if (row != HK_NONE) {
        service_clear(s->rows.at[row]);
        services_changed(s, row);
    }
}

/* ---- EndpointSlices ---- */

static void services_decode_endpoint(const struct json *endpoint, struct service_slice *ret)
{
    const struct json *conditions = json_get(endpoint, "conditions");
    const struct hk_str hostname = json_str_field(endpoint, "hostname");
    const struct json *addresses = json_get(endpoint, "addresses");
    const bool ready = json_bool(json_get(conditions, "ready"), true);

    /* All addresses of an endpoint are interchangeable. */
    if (json_len(addresses) > 0) {
        hk_vec_push(&ret->endpoints,
                    ((struct service_endpoint){
                        .address = services_copy(json_str(json_item(addresses, 0), HK_STR(""))),
                        .hostname = hostname.n > 0 ? services_copy(hostname) : NULL,
                        .ready = ready,
                        .serving = json_bool(json_get(conditions, "serving"), ready),
                    }));
    }
}

static struct service_slice services_decode_slice(const struct api_object *o)
{
    struct service_slice slice = {.name = services_copy(o->name)};
    const struct json *ports = json_get(&o->root, "ports");
    const struct json *endpoints = json_get(&o->root, "endpoints");

    for (uint32_t i = 0; i < json_len(ports); i++) {
        hk_vec_push(&slice.ports, services_decode_port(json_item(ports, i)));
    }
    for (uint32_t i = 0; i < json_len(endpoints); i++) {
        services_decode_endpoint(json_item(endpoints, i), &slice);
    }
    return slice;
}

static bool services_remove_slice(struct service *svc, struct hk_str name)
{
    for (uint32_t i = 0; i < svc->slices.len; i++) {
        if (hk_str_is(name, svc->slices.at[i].name)) {
            service_slice_fini(&svc->slices.at[i]);
            hk_vec_swap_remove(&svc->slices, i);
            return true;
        }
    }
    return false;
}

static void services_on_slice_gone(void *ctx, struct hk_str ns, struct hk_str name,
                                   const struct api_object *last)
{
    struct services *s = ctx;
    const uint64_t key = services_key(ns, name);
    const uint32_t row = hk_map_get(&s->by_slice, key);

    if (row != HK_NONE) {
        hk_map_del(&s->by_slice, key);
        if (services_remove_slice(s->rows.at[row], name)) {
            services_changed(s, row);
        }
    }
}

static void services_on_slice(void *ctx, struct api_object *o)
{
    struct services *s = ctx;
    const struct hk_str of =
        json_str_field(json_at(&o->root, "metadata.labels"), API_LABEL_SERVICE_NAME);
    const uint64_t key = services_key(o->ns, o->name);
    const uint32_t had = hk_map_get(&s->by_slice, key);
    uint32_t row;

    if (of.n == 0 || hk_str_is(json_str_field(&o->root, "addressType"), "FQDN")) {
        services_on_slice_gone(s, o->ns, o->name, NULL);
        return;
    }
    row = services_row(s, o->ns, of);
    if (had != HK_NONE && had != row) {
        services_on_slice_gone(s, o->ns, o->name, NULL);
    }
    services_remove_slice(s->rows.at[row], o->name);
    hk_vec_push(&s->rows.at[row]->slices, services_decode_slice(o));
    hk_map_put(&s->by_slice, key, row);
    services_changed(s, row);
}

/* ---- reading ---- */

const struct service *services_at(const struct services *s, uint32_t row)
{
    return s->rows.at[row];
}

uint32_t services_rows(const struct services *s)
{
    return s->rows.len;
}

const struct service *services_find(const struct services *s, struct hk_str ns, struct hk_str name)
{
    const uint32_t row = hk_map_get(&s->by_name, services_key(ns, name));
    const struct service *svc = row != HK_NONE ? s->rows.at[row] : NULL;

    return svc && hk_str_is(ns, svc->ns) && hk_str_is(name, svc->name) ? svc : NULL;
}

/* The slice's port of that name and protocol; 0: none. */
static uint16_t service_slice_port(const struct service_slice *slice,
                                   const struct service_port *port)
{
    for (uint32_t i = 0; i < slice->ports.len; i++) {
        if (strcmp(slice->ports.at[i].name, port->name) == 0 &&
            slice->ports.at[i].protocol == port->protocol) {
            return slice->ports.at[i].port;
        }
    }
    return 0;
}

static void service_add_targets(const struct service *svc, const struct service_port *port,
                                bool ready, service_targets *ret)
{
    for (uint32_t i = 0; i < svc->slices.len; i++) {
        const struct service_slice *slice = &svc->slices.at[i];
        const uint16_t number = service_slice_port(slice, port);

        for (uint32_t k = 0; number > 0 && k < slice->endpoints.len; k++) {
            const struct service_endpoint *e = &slice->endpoints.at[k];

            if (ready ? e->ready : e->serving) {
                hk_vec_push(ret, ((struct service_target){e->address, number}));
            }
        }
    }
}

void service_find_targets(const struct service *svc, const struct service_port *port,
                          service_targets *ret)
{
    const uint32_t before = ret->len;

    service_add_targets(svc, port, true, ret);
    if (ret->len == before) {
        service_add_targets(svc, port, false, ret);
    }
}

/* ---- the whole ---- */

static const struct feed_ops service_feed = {.put = services_on_service,
                                             .del = services_on_service_gone};
static const struct feed_ops slice_feed = {.put = services_on_slice, .del = services_on_slice_gone};

struct services *services_new(struct port *port, struct hk_clock *clock)
{
    struct services *s = hk_zalloc(sizeof(*s));
    struct feed_opts o = {.port = port, .clock = clock, .str = &s->str, .ctx = s};

    o.kind = api_kind(API_SERVICE);
    o.ops = &service_feed;
    feed_init(&s->services, &o);
    o.kind = api_kind(API_ENDPOINT_SLICE);
    o.ops = &slice_feed;
    feed_init(&s->slices, &o);
    return s;
}

void services_free(struct services *s)
{
    if (!s) {
        return;
    }
    feed_fini(&s->services);
    feed_fini(&s->slices);
    for (uint32_t i = 0; i < s->rows.len; i++) {
        service_free(s->rows.at[i]);
    }
    hk_vec_fini(&s->rows);
    hk_vec_fini(&s->vacant);
    hk_vec_fini(&s->listeners);
    hk_map_fini(&s->by_name);
    hk_map_fini(&s->by_slice);
    hk_intern_fini(&s->str);
    hk_free(s);
}

int64_t services_tick(struct services *s, int64_t now_ns)
{
    const int64_t a_ns = feed_tick(&s->services, now_ns), b_ns = feed_tick(&s->slices, now_ns);

    return HK_MIN(a_ns, b_ns);
}

bool services_synced(const struct services *s)
{
    return s->services.synced && s->slices.synced;
}

void services_listen(struct services *s, void (*fn)(void *ctx, const struct service *svc),
                     void *ctx)
{
    hk_vec_push(&s->listeners, ((struct services_listener){fn, ctx}));
}

void services_unlisten(struct services *s, const void *ctx)
{
    for (uint32_t i = s->listeners.len; i-- > 0;) {
        if (s->listeners.at[i].ctx == ctx) {
            hk_vec_swap_remove(&s->listeners, i);
        }
    }
}
