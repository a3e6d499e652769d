// SPDX-License-Identifier: Apache-2.0
// Cluster IPs and node ports of Services. The book counts which are in use, staged writes included,
// so that two Services of one commit get different ones. It is made from the stored Services at every
// start, and again after a failed write. What a Service has is kept by admission/service.c.
//
// As in kube-apiserver, addresses are chosen from the upper part of the range while it has free ones:
// a client that names an address finds one in the lower part.
#include "base/log.h"
#include "store/rest_priv.h"

#include <arpa/inet.h>

enum {
    NODE_PORT_FIRST = 30000,
    NODE_PORT_LAST = 32767,
    MIN_PREFIX = 8,
    MAX_PREFIX = 28,
    KUBERNETES_INDEX = 1, /* of default/kubernetes, in the range */
    LOWER_PART_MIN = 16,  /* addresses for clients that name one: a 16th of the range */
    LOWER_PART_MAX = 256,
};

struct service_book {
    struct rest_service_range range;
    uint32_t size;           /* addresses of the range */
    struct hk_map addresses; /* index in the range to the number of Services that have it */
    struct hk_map ports;     /* node port to the number of ports that have it */
};

/* ---- the range ---- */

int rest_service_range_parse(const char *text, struct rest_service_range *ret, struct hk_err *err)
{
    struct hk_str prefix = hk_str(text), net;
    char addr[INET_ADDRSTRLEN] = "";
    struct in_addr parsed;
    int64_t bits;

    hk_str_cut(&prefix, '/', &net);
    if (net.n < sizeof(addr)) {
        memcpy(addr, net.s, net.n);
    }
    if (inet_pton(AF_INET, addr, &parsed) != 1 || !hk_str_int(prefix, &bits) || bits < MIN_PREFIX ||
        bits > MAX_PREFIX) {
        return hk_fail(err, HK_EINVAL,
                       "'%s' is not a network of IPv4 with a prefix of %d to %d bits, such as "
                       "127.128.0.0/16",
                       text, MIN_PREFIX, MAX_PREFIX);
    }
    ret->prefix = (uint8_t)bits;
    ret->net = ntohl(parsed.s_addr) & ~((1u << (32 - bits)) - 1);
    return 0;
}

static void write_address(uint32_t address, char out[INET_ADDRSTRLEN])
{
    const struct in_addr in = {htonl(address)};

    inet_ntop(AF_INET, &in, out, INET_ADDRSTRLEN);
}

/* The index of the address in the range; HK_NONE: outside, or one that no host may have. */
static uint32_t rest_service_index(const struct service_book *b, struct hk_str address)
{
    char text[INET_ADDRSTRLEN] = "";
    struct in_addr parsed;
    uint32_t index;

    if (address.n < sizeof(text)) {
        memcpy(text, address.s, address.n);
    }
    if (inet_pton(AF_INET, text, &parsed) != 1) {
        return HK_NONE;
    }
    index = ntohl(parsed.s_addr) - b->range.net;
    return index > 0 && index < b->size - 1 ? index : HK_NONE;
}

/* ---- the book ---- */

static bool rest_service_in_use(const struct hk_map *m, uint32_t key)
{
    return hk_map_get(m, key) != HK_NONE;
}

static void rest_service_count(struct hk_map *m, uint32_t key, bool more)
{
    const uint32_t n = rest_service_in_use(m, key) ? hk_map_get(m, key) : 0;

    if (more) {
        hk_map_put(m, key, n + 1);
    } else if (n > 1) {
        hk_map_put(m, key, n - 1);
    } else {
        hk_map_del(m, key);
    }
}

static void rest_service_count_all(struct service_book *b, const struct json *doc, bool more)
{
    const struct json *spec = json_get(doc, "spec"), *ports = json_get(spec, "ports");
    const uint32_t index = rest_service_index(b, json_str_field(spec, "clusterIP"));

    if (index != HK_NONE) {
        rest_service_count(&b->addresses, index, more);
    }
    for (uint32_t i = 0; i < json_len(ports); i++) {
        const int64_t port = json_int(json_get(json_item(ports, i), "nodePort"), 0);

        if (port > 0) {
            rest_service_count(&b->ports, (uint32_t)port, more);
        }
    }
}

bool rest_service_watches(const struct rest *r, const struct rest_kind *k)
{
    return r->service_book && k == r->services;
}

void rest_service_charge(struct rest *r, const struct json *old, const struct json *new)
{
    if (old) {
        rest_service_count_all(r->service_book, old, false);
    }
    if (new) {
        rest_service_count_all(r->service_book, new, true);
    }
}

/* ---- addresses ---- */

static bool rest_service_has_type(const struct json *spec, const char *type)
{
    return hk_str_is(json_str_field(spec, "type"), type);
}

static bool is_kubernetes(const struct rest_call *c)
{
    return hk_str_is(c->ns, "default") && hk_str_is(c->name, "kubernetes");
}

/* The first free index from a random one on, in [from, to). */
static uint32_t rest_service_search(struct rest_call *c, uint32_t from, uint32_t to)
{
    const struct service_book *b = c->r->service_book;
    const uint32_t n = to - from;
    const uint32_t start = hk_rand_below(c->r->rand, n);

    for (uint32_t i = 0; i < n; i++) {
        const uint32_t index = from + (start + i) % n;

        if (!rest_service_in_use(&b->addresses, index)) {
            return index;
        }
    }
    return HK_NONE;
}

static uint32_t rest_service_choose_address(struct rest_call *c)
{
    const uint32_t size = c->r->service_book->size, part = HK_MAX(size / 16, LOWER_PART_MIN);
    const uint32_t lower = HK_MIN(HK_MIN(part, LOWER_PART_MAX), size / 2);
    uint32_t index;

    if (is_kubernetes(c)) {
        return KUBERNETES_INDEX;
    }
    index = rest_service_search(c, lower, size - 1);
    return index != HK_NONE ? index : rest_service_search(c, KUBERNETES_INDEX + 1, lower);
}

static void put_addresses(struct rest_call *c, struct json *spec, struct hk_str address)
{
    struct json *list;

    json_set_str(spec, &c->mem, "clusterIP", address);
    list = json_set_array(spec, &c->mem, "clusterIPs");
    json_push(list, &c->mem, json_make_str(address));
}

static int rest_service_give_address(struct rest_call *c, struct json *spec)
{
    const uint32_t index = rest_service_choose_address(c);
    char text[INET_ADDRSTRLEN];

    if (index == HK_NONE) {
        return rest_fail(c, 500, HK_ELIMIT, "InternalError",
                         "Internal error occurred: failed to allocate a serviceIP: range is full");
    }
    write_address(c->r->service_book->range.net + index, text);
    put_addresses(c, spec, hk_arena_str(&c->mem, hk_str(text)));
    return 0;
}

static void rest_service_refuse_address(struct rest_call *c, struct hk_str ip, const char *why)
{
    rest_field_error(c, "FieldValueInvalid", "spec.clusterIPs",
                     "Invalid value: [\"%.*s\"]: failed to allocate IP %.*s: %s", HK_FMT(ip),
                     HK_FMT(ip), why);
}

/* The client names an address. */
static void rest_service_check_address(struct rest_call *c, struct hk_str ip)
{
    const struct service_book *b = c->r->service_book;
    const uint32_t index = rest_service_index(b, ip);
    struct in6_addr parsed;
    char net[INET_ADDRSTRLEN];

    if (inet_pton(AF_INET, hk_arena_str(&c->mem, ip).s, &parsed) != 1) {
        return; /* admission refuses it, or it is of IPv6 */
    }
    if (index == HK_NONE) {
        write_address(b->range.net, net);
        rest_service_refuse_address(
            c, ip,
            hk_arena_printf(&c->mem,
                            "the provided IP (%.*s) is not in the valid range. The range of valid "
                            "IPs is %s/%u",
                            HK_FMT(ip), net, b->range.prefix));
    } else if (rest_service_in_use(&b->addresses, index) ||
               (index == KUBERNETES_INDEX && !is_kubernetes(c))) {
        rest_service_refuse_address(c, ip, "provided IP is already allocated");
    }
}

static void rest_service_check_families(struct rest_call *c, const struct json *spec)
{
    const struct json *families = json_get(spec, "ipFamilies");

    for (uint32_t i = 0; i < json_len(families); i++) {
        const struct hk_str family = json_str(json_item(families, i), HK_STR(""));

        if (!hk_str_is(family, "IPv4")) {
            rest_field_error(
                c, "FieldValueInvalid", hk_arena_printf(&c->mem, "spec.ipFamilies[%u]", i),
                "Invalid value: \"%.*s\": not configured on this cluster", HK_FMT(family));
        }
    }
    if (hk_str_is(json_str_field(spec, "ipFamilyPolicy"), "RequireDualStack")) {
        rest_field_error(c, "FieldValueInvalid", "spec.ipFamilyPolicy",
                         "Invalid value: \"RequireDualStack\": this cluster is not configured for "
                         "dual-stack services");
    }
}

/* old: what the Service had; NULL: it is new, or had no address. */
static int rest_service_settle_address(struct rest_call *c, struct json *spec,
                                       const struct json *old)
{
    const struct hk_str ip = json_str_field(spec, "clusterIP");
    const struct hk_str had = json_str_field(old, "clusterIP");

    if (rest_service_has_type(spec, "ExternalName") || hk_str_is(ip, "None")) {
        return 0;
    }
    if (ip.n > 0 && hk_str_eq(ip, had)) {
        return 0;
    }
    rest_service_check_families(c, spec);
    if (ip.n == 0) {
        return rest_service_give_address(c, spec);
    }
    if (had.n == 0) { /* otherwise admission refuses the change */
        rest_service_check_address(c, ip);
    }
    return 0;
}

/* ---- node ports ---- */

static bool rest_service_wants_node_ports(const struct json *spec)
{
    return rest_service_has_type(spec, "NodePort") ||
           (rest_service_has_type(spec, "LoadBalancer") &&
            json_bool(json_get(spec, "allocateLoadBalancerNodePorts"), true));
}

/* One of the first n ports has it: the Service may share it between protocols. */
static bool has_node_port(const struct json *ports, uint32_t n, int64_t port)
{
    for (uint32_t i = 0; i < n && i < json_len(ports); i++) {
        if (json_int(json_get(json_item(ports, i), "nodePort"), 0) == port) {
            return true;
        }
    }
    return false;
}

/* 0: all are in use. */
static int64_t rest_service_choose_node_port(struct rest_call *c, const struct json *ports)
{
    const uint32_t n = NODE_PORT_LAST - NODE_PORT_FIRST + 1;
    const uint32_t start = hk_rand_below(c->r->rand, n);

    for (uint32_t i = 0; i < n; i++) {
        const uint32_t port = NODE_PORT_FIRST + (start + i) % n;

        if (!rest_service_in_use(&c->r->service_book->ports, port) &&
            !has_node_port(ports, UINT32_MAX, port)) {
            return port;
        }
    }
    return 0;
}

/* The client names the node port of ports[i]. */
static void rest_service_check_node_port(struct rest_call *c, const struct json *ports, uint32_t i,
                                         const struct json *old_ports)
{
    const int64_t port = json_int(json_get(json_item(ports, i), "nodePort"), 0);
    const char *field = hk_arena_printf(&c->mem, "spec.ports[%u].nodePort", i);

    if (has_node_port(old_ports, UINT32_MAX, port)) {
        return;
    }
    if (port < NODE_PORT_FIRST || port > NODE_PORT_LAST) {
        rest_field_error(c, "FieldValueInvalid", field,
                         "Invalid value: %lld: provided port is not in the valid range. The range "
                         "of valid ports is %d-%d",
                         (long long)port, NODE_PORT_FIRST, NODE_PORT_LAST);
    } else if (rest_service_in_use(&c->r->service_book->ports, (uint32_t)port) &&
               !has_node_port(ports, i, port)) {
        rest_field_error(c, "FieldValueInvalid", field,
                         "Invalid value: %lld: provided port is already allocated",
                         (long long)port);
    }
}

static int rest_service_settle_node_ports(struct rest_call *c, struct json *spec,
                                          const struct json *old)
{
    struct json *ports = (struct json *)json_get(spec, "ports");

    if (!rest_service_wants_node_ports(spec)) {
        return 0;
    }
    for (uint32_t i = 0; i < json_len(ports); i++) {
        int64_t port;

        if (json_int(json_get(&ports->items[i], "nodePort"), 0) != 0) {
            rest_service_check_node_port(c, ports, i, json_get(old, "ports"));
            continue;
        }
        port = rest_service_choose_node_port(c, ports);
        if (port == 0) {
            return rest_fail(c, 500, HK_ELIMIT, "InternalError",
                             "Internal error occurred: failed to allocate a nodePort: range is "
                             "full");
        }
        json_set_int(&ports->items[i], &c->mem, "nodePort", port);
    }
    return 0;
}

int rest_service_allocate(struct rest_call *c, const char *sub, struct json *doc,
                          const struct json *old)
{
    const struct json *was = json_get(old, "spec");
    struct json *spec;

    if (!rest_service_watches(c->r, c->k) || sub || rest_deleting(doc) ||
        !json_is(json_get(doc, "spec"), JSON_OBJECT)) {
        return 0;
    }
    spec = rest_edit(doc, &c->mem, "spec");
    if (rest_service_settle_address(c, spec, was) < 0) {
        return c->rc;
    }
    return rest_service_settle_node_ports(c, spec, was);
}

/* ---- start ---- */

struct service_scan {
    struct rest *r;
    HK_VEC(const struct store_obj *) poor; /* Services without an address, held */
};

static bool rest_service_lacks_address(const struct json *doc)
{
    const struct json *spec = json_get(doc, "spec");

    return json_str_field(spec, "clusterIP").n == 0 &&
           !rest_service_has_type(spec, "ExternalName") && !rest_deleting(doc);
}

static bool rest_service_on_stored(void *ctx, const struct store_obj *o)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct service_scan *scan = ctx;
    struct json doc;

    if (json_parse(o->text, 0, &mem, &doc, NULL) < 0) {
        return true;
    }
    rest_service_count_all(scan->r->service_book, &doc, true);
    if (rest_service_lacks_address(&doc)) {
        hk_vec_push(&scan->poor, store_obj_ref(o));
    }
    return true;
}

static struct service_scan rest_service_scan(struct rest *r)
{
    struct service_scan scan = {r, {0}};

    store_scan(r->store, r->services->res, HK_STR(""), HK_STR(""), HK_STR(""),
               rest_service_on_stored, &scan);
    return scan;
}

static void rest_service_scan_fini(struct service_scan *scan)
{
    for (uint32_t i = 0; i < scan->poor.len; i++) {
        store_obj_unref(scan->poor.at[i]);
    }
    hk_vec_fini(&scan->poor);
}

static void rest_service_on_mended(void *ctx, const struct port_msg *m)
{
    if (m->rc < 0) {
        hk_log(HK_LOG_WARN, "a Service has no cluster IP", "err=\"%s\"", m->err->text);
    }
}

/* An update without changes: rest_service_allocate adds the address. */
static void rest_service_mend(struct rest *r, const struct store_obj *o)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json doc;

    if (json_parse(o->text, 0, &mem, &doc, NULL) == 0) {
        port_submit(&r->port,
                    &(struct port_request){.verb = PORT_UPDATE,
                                           .kind = r->services->kind,
                                           .ns = o->ns,
                                           .name = o->name,
                                           .body = &doc},
                    (struct port_sink){rest_service_on_mended, NULL});
    }
}

void rest_service_open(struct rest *r, struct rest_service_range range)
{
    if (range.prefix == 0 || !r->admission) {
        return;
    }
    r->service_book = hk_zalloc(sizeof(*r->service_book));
    r->service_book->range = range;
    r->service_book->size = 1u << (32 - range.prefix);
    HK_AUTO(rest_service_scan_fini) struct service_scan scan = rest_service_scan(r);

    for (uint32_t i = 0; i < scan.poor.len; i++) { /* the book is complete now */
        rest_service_mend(r, scan.poor.at[i]);
    }
}

void rest_service_reload(struct rest *r)
{
    if (r->service_book) {
        hk_map_clear(&r->service_book->addresses);
        hk_map_clear(&r->service_book->ports);
        struct service_scan scan = rest_service_scan(r); /* fills the book */

        rest_service_scan_fini(&scan);
    }
}

void rest_service_fini(struct rest *r)
{
    if (r->service_book) {
        hk_map_fini(&r->service_book->addresses);
        hk_map_fini(&r->service_book->ports);
        hk_free(r->service_book);
    }
}
