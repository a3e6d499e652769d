// SPDX-License-Identifier: Apache-2.0
// Names are looked up in the table of Services; an index of addresses and a count of Services per
// namespace are kept here, from the changes that the table reports.
#include "dns/dns_zone.h"

#include "api/services.h"
#include "base/err.h"
#include "base/map.h"

#include <arpa/inet.h>
#include <stdio.h>

enum {
    TTL_S = 5,
    ALIASES_MAX = 8, /* of ExternalNames, one after the other */
    WEIGHTS = 100,   /* of all SRV records of a name together */
};

#define VERSION "1.1.0"

/* An address of a Service: its cluster IP, or an endpoint. */
struct zone_address {
    uint32_t address;
    const struct service *svc;
    uint32_t next_same; /* next row with that address; HK_NONE: the last */
    uint32_t next_own;  /* next row of that Service, or next free row */
};

struct dns_zone {
    struct dns_zone_opts o;
    struct dns_name domain;
    struct hk_str labels[DNS_LABELS_MAX]; /* of the domain */
    uint32_t nlabel;
    HK_VEC(struct zone_address) rows;
    uint32_t vacant;
    struct hk_map by_address; /* address to its first row */
    struct hk_map by_service; /* the Service's place in memory to its first row */
    struct hk_map existing;   /* the same of Services that exist */
    struct hk_map namespaces; /* hash of the name to the number of Services */
};

/* The names of one look-up, shortest first. */
struct zone_lookup {
    const struct dns_zone *z;
    struct dns_reply *r;
    struct dns_name owner; /* the name of the question, or what its aliases lead to */
    uint16_t type;
    uint16_t weight; /* of SRV records of endpoints */
    uint32_t turn;
};

/* ---- addresses ---- */

static uint64_t zone_service_key(const struct service *svc)
{
    return (uint64_t)(uintptr_t)svc;
}

static uint64_t zone_namespace_key(struct hk_str ns)
{
    return hk_hash(ns.s, ns.n, 7) >> 1; /* the map reserves the largest */
}

static bool zone_parse_v4(const char *text, uint32_t *ret)
{
    struct in_addr at;

    if (inet_pton(AF_INET, text, &at) != 1) {
        return false;
    }
    *ret = ntohl(at.s_addr);
    return true;
}

static void zone_index_address(struct dns_zone *z, const struct service *svc, const char *text)
{
    struct zone_address row = {.svc = svc};
    uint32_t at = z->vacant;

    if (!zone_parse_v4(text, &row.address)) {
        return;
    }
    row.next_same = hk_map_get(&z->by_address, row.address);
    row.next_own = hk_map_get(&z->by_service, zone_service_key(svc));
    if (at != HK_NONE) {
        z->vacant = z->rows.at[at].next_own;
        z->rows.at[at] = row;
    } else {
        at = z->rows.len;
        hk_vec_push(&z->rows, row);
    }
    hk_map_put(&z->by_address, row.address, at);
    hk_map_put(&z->by_service, zone_service_key(svc), at);
}

/* Takes the row out of the list of its address. */
static void zone_unlink_address(struct dns_zone *z, uint32_t row)
{
    const uint32_t address = z->rows.at[row].address, next = z->rows.at[row].next_same;
    uint32_t at = hk_map_get(&z->by_address, address);

    if (at == row && next == HK_NONE) {
        hk_map_del(&z->by_address, address);
        return;
    }
    if (at == row) {
        hk_map_put(&z->by_address, address, next);
        return;
    }
    while (z->rows.at[at].next_same != row) {
        at = z->rows.at[at].next_same;
    }
    z->rows.at[at].next_same = next;
}

static void zone_forget_addresses(struct dns_zone *z, const struct service *svc)
{
    uint32_t row = hk_map_get(&z->by_service, zone_service_key(svc));

    while (row != HK_NONE) {
        const uint32_t next = z->rows.at[row].next_own;

        zone_unlink_address(z, row);
        z->rows.at[row].next_own = z->vacant;
        z->vacant = row;
        row = next;
    }
    hk_map_del(&z->by_service, zone_service_key(svc));
}

static void zone_count_namespace(struct dns_zone *z, const struct service *svc, bool exists)
{
    const uint64_t key = zone_namespace_key(hk_str(svc->ns));
    const uint32_t n = hk_map_get(&z->namespaces, key);

    if (exists == (hk_map_get(&z->existing, zone_service_key(svc)) != HK_NONE)) {
        return;
    }
    if (exists) {
        hk_map_put(&z->existing, zone_service_key(svc), 1);
        hk_map_put(&z->namespaces, key, n == HK_NONE ? 1 : n + 1);
        return;
    }
    hk_map_del(&z->existing, zone_service_key(svc));
    if (n > 1) {
        hk_map_put(&z->namespaces, key, n - 1);
    } else {
        hk_map_del(&z->namespaces, key);
    }
}

static void zone_on_service(void *ctx, const struct service *svc)
{
    struct dns_zone *z = ctx;

    zone_forget_addresses(z, svc);
    zone_count_namespace(z, svc, svc->exists);
    if (!svc->exists) {
        return;
    }
    zone_index_address(z, svc, svc->address);
    for (uint32_t i = 0; i < svc->slices.len; i++) {
        for (uint32_t k = 0; k < svc->slices.at[i].endpoints.len; k++) {
            zone_index_address(z, svc, svc->slices.at[i].endpoints.at[k].address);
        }
    }
}

/* ---- names ---- */

/* A name below the domain from labels in front of it, ended by an empty one; false: too long. */
static bool zone_name(const struct dns_zone *z, const struct hk_str *labels, struct dns_name *ret)
{
    uint32_t n = 0;

    *ret = z->domain;
    while (labels[n].n > 0) {
        n++;
    }
    while (n-- > 0) {
        if (!dns_name_prepend(ret, labels[n])) {
            return false;
        }
    }
    return true;
}

static bool zone_service_name(const struct dns_zone *z, const struct service *svc,
                              struct dns_name *ret)
{
    const struct hk_str labels[] = {hk_str(svc->name), hk_str(svc->ns), HK_STR("svc"), HK_STR("")};

    return zone_name(z, labels, ret);
}

/* The label of an endpoint: its hostname, else its address with dashes. */
static struct hk_str zone_endpoint_label(const struct service_endpoint *e,
                                         char room[INET6_ADDRSTRLEN])
{
    if (e->hostname) {
        return hk_str(e->hostname);
    }
    snprintf(room, INET6_ADDRSTRLEN, "%s", e->address);
    for (char *at = room; *at; at++) {
        *at = *at == '.' || *at == ':' ? '-' : *at;
    }
    return hk_str(room);
}

static bool zone_endpoint_name(const struct dns_zone *z, const struct service *svc,
                               const struct service_endpoint *e, struct dns_name *ret)
{
    char room[INET6_ADDRSTRLEN];
    const struct hk_str labels[] = {zone_endpoint_label(e, room), hk_str(svc->name),
                                    hk_str(svc->ns), HK_STR("svc"), HK_STR("")};

    return zone_name(z, labels, ret);
}

static bool zone_pod_name(const struct dns_zone *z, struct hk_str ns, uint32_t address,
                          struct dns_name *ret)
{
    char label[INET_ADDRSTRLEN];

    snprintf(label, sizeof(label), "%u-%u-%u-%u", address >> 24, address >> 16 & 255,
             address >> 8 & 255, address & 255);
    const struct hk_str labels[] = {hk_str(label), ns, HK_STR("pod"), HK_STR("")};

    return zone_name(z, labels, ret);
}

/* ---- records ---- */

static bool zone_asks(const struct zone_lookup *q, uint16_t type)
{
    return q->type == type || q->type == DNS_TYPE_ANY;
}

/* False: the reply is full. An address of the other family does not count. */
static bool zone_add_address(struct zone_lookup *q, enum dns_section section,
                             const struct dns_name *owner, const char *text, uint16_t type)
{
    const int family = strchr(text, ':') ? AF_INET6 : AF_INET;
    const uint16_t is = family == AF_INET6 ? DNS_TYPE_AAAA : DNS_TYPE_A;
    char bytes[sizeof(struct in6_addr)];

    if ((type != is && type != DNS_TYPE_ANY) || inet_pton(family, text, bytes) != 1) {
        return true;
    }
    return dns_reply_add(q->r, section, owner, is, TTL_S,
                         (struct hk_str){bytes, family == AF_INET6 ? 16 : 4});
}

static void zone_add_v4(struct zone_lookup *q, const struct dns_name *owner, uint32_t address)
{
    const uint32_t bytes = htonl(address);

    if (zone_asks(q, DNS_TYPE_A)) {
        dns_reply_add(q->r, DNS_ANSWER, owner, DNS_TYPE_A, TTL_S,
                      (struct hk_str){(const char *)&bytes, sizeof(bytes)});
    }
}

/* A look-up of one name visits the ready endpoints in turn. */
struct zone_visit {
    const struct service *svc;
    uint32_t turn, slice, endpoint; /* counted, not rotated */
};

static bool zone_visit_next(struct zone_visit *v, const struct service_slice **ret_slice,
                            const struct service_endpoint **ret)
{
    for (; v->slice < v->svc->slices.len; v->slice++, v->endpoint = 0) {
        const struct service_slice *s =
            &v->svc->slices.at[(v->turn + v->slice) % v->svc->slices.len];

        while (v->endpoint < s->endpoints.len) {
            const uint32_t at = (v->turn % s->endpoints.len + v->endpoint++) % s->endpoints.len;

            if (s->endpoints.at[at].ready) {
                *ret_slice = s;
                *ret = &s->endpoints.at[at];
                return true;
            }
        }
    }
    return false;
}

static bool zone_is_new(struct hk_map *seen, struct hk_str text)
{
    const uint64_t key = hk_hash(text.s, text.n, 11) >> 1;

    if (hk_map_get(seen, key) != HK_NONE) {
        return false;
    }
    hk_map_put(seen, key, 1);
    return true;
}

/* The addresses of the ready endpoints with that label, or of all. An endpoint may be in several
 * slices, of different ports. */
static enum dns_rcode zone_add_endpoints(struct zone_lookup *q, const struct service *svc,
                                         struct hk_str label)
{
    HK_AUTO(hk_map_fini) struct hk_map seen = {0};
    struct zone_visit v = {.svc = svc, .turn = q->turn};
    enum dns_rcode code = DNS_NXDOMAIN;
    const struct service_slice *slice;
    const struct service_endpoint *e;

    while (zone_visit_next(&v, &slice, &e)) {
        char room[INET6_ADDRSTRLEN];

        if (label.n > 0 && !hk_str_eq(label, zone_endpoint_label(e, room))) {
            continue;
        }
        code = DNS_NOERROR;
        if ((q->type != DNS_TYPE_A && q->type != DNS_TYPE_AAAA && q->type != DNS_TYPE_ANY) ||
            (zone_is_new(&seen, hk_str(e->address)) &&
             !zone_add_address(q, DNS_ANSWER, &q->owner, e->address, q->type))) {
            break;
        }
    }
    return code;
}

/* ---- SRV ---- */

static const char *zone_protocol(const struct service_port *port)
{
    static const char *const words[] = {"_tcp", "_udp", "_sctp"};

    return words[port->protocol];
}

/* port and protocol "": all named ports. */
struct zone_port_choice {
    struct hk_str port, protocol; /* with the "_" */
};

static bool zone_port_is(const struct service_port *port, const struct zone_port_choice *c)
{
    if (port->name[0] == '\0') {
        return false;
    }
    return (c->protocol.n == 0 || hk_str_is(c->protocol, zone_protocol(port))) &&
           (c->port.n == 0 || hk_str_is((struct hk_str){c->port.s + 1, c->port.n - 1}, port->name));
}

static uint16_t zone_weight(uint32_t n)
{
    return (uint16_t)HK_MAX(WEIGHTS / HK_MAX(n, 1u), 1u);
}

static uint32_t zone_add_ports(struct zone_lookup *q, const struct service *svc,
                               const struct zone_port_choice *c)
{
    uint32_t n = 0;
    struct dns_name target;

    for (uint32_t i = 0; i < svc->ports.len; i++) {
        n += zone_port_is(&svc->ports.at[i], c);
    }
    if (!zone_asks(q, DNS_TYPE_SRV) || n == 0 || !zone_service_name(q->z, svc, &target)) {
        return n;
    }
    for (uint32_t i = 0; i < svc->ports.len; i++) {
        if (zone_port_is(&svc->ports.at[i], c)) {
            dns_reply_add_service(q->r, &q->owner, TTL_S, zone_weight(n), svc->ports.at[i].port,
                                  &target);
        }
    }
    zone_add_address(q, DNS_ADDITIONAL, &target, svc->address, DNS_TYPE_ANY);
    return n;
}

static uint32_t zone_count_ready(const struct service *svc)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < svc->slices.len; i++) {
        for (uint32_t k = 0; k < svc->slices.at[i].endpoints.len; k++) {
            n += svc->slices.at[i].endpoints.at[k].ready;
        }
    }
    return n;
}

/* Counts the ports in *n. False: the reply is full, or none is wanted. */
static bool zone_add_endpoint_ports(struct zone_lookup *q, const struct service *svc,
                                    const struct service_slice *slice,
                                    const struct service_endpoint *e,
                                    const struct zone_port_choice *c, uint32_t *n)
{
    struct dns_name target;

    for (uint32_t i = 0; i < slice->ports.len; i++) {
        if (!zone_port_is(&slice->ports.at[i], c) || slice->ports.at[i].port == 0) {
            continue;
        }
        ++*n;
        if (!zone_asks(q, DNS_TYPE_SRV) || !zone_endpoint_name(q->z, svc, e, &target)) {
            return false;
        }
        if (!dns_reply_add_service(q->r, &q->owner, TTL_S, q->weight, slice->ports.at[i].port,
                                   &target)) {
            return false;
        }
    }
    return true;
}

/* The SRV records first, then in a second round the addresses. */
static uint32_t zone_add_headless_ports(struct zone_lookup *q, const struct service *svc,
                                        const struct zone_port_choice *c)
{
    struct zone_visit v = {.svc = svc, .turn = q->turn};
    const struct service_slice *slice;
    const struct service_endpoint *e;
    struct dns_name target;
    uint32_t n = 0;

    q->weight = zone_weight(zone_count_ready(svc));
    while (zone_visit_next(&v, &slice, &e) && zone_add_endpoint_ports(q, svc, slice, e, c, &n)) {
    }
    v = (struct zone_visit){.svc = svc, .turn = q->turn};
    while (n > 0 && zone_asks(q, DNS_TYPE_SRV) && zone_visit_next(&v, &slice, &e)) {
        if (!zone_endpoint_name(q->z, svc, e, &target) ||
            !zone_add_address(q, DNS_ADDITIONAL, &target, e->address, DNS_TYPE_ANY)) {
            break;
        }
    }
    return n;
}

static enum dns_rcode zone_answer_ports(struct zone_lookup *q, const struct service *svc,
                                        struct hk_str port, struct hk_str protocol)
{
    const struct zone_port_choice c = {port, protocol};
    const uint32_t n =
        svc->headless ? zone_add_headless_ports(q, svc, &c) : zone_add_ports(q, svc, &c);

    return n > 0 ? DNS_NOERROR : DNS_NXDOMAIN;
}

/* "_tcp.S.N.svc" has no records, but names below it. */
static enum dns_rcode zone_answer_protocol(const struct service *svc, struct hk_str protocol)
{
    const struct zone_port_choice c = {HK_STR(""), protocol};

    for (uint32_t i = 0; i < svc->ports.len; i++) {
        if (zone_port_is(&svc->ports.at[i], &c)) {
            return DNS_NOERROR;
        }
    }
    return DNS_NXDOMAIN;
}

/* ---- svc ---- */

static enum dns_rcode zone_answer_itself(struct zone_lookup *q, const struct service *svc)
{
    enum dns_rcode code = DNS_NOERROR;

    if (q->type == DNS_TYPE_SRV) {
        code = zone_answer_ports(q, svc, HK_STR(""), HK_STR(""));
        if (code == DNS_NOERROR) {
            return code;
        }
    }
    if (svc->headless) {
        return zone_add_endpoints(q, svc, HK_STR(""));
    }
    zone_add_address(q, DNS_ANSWER, &q->owner, svc->address, q->type);
    return DNS_NOERROR;
}

static const struct service *zone_find_service(const struct dns_zone *z, struct hk_str ns,
                                               struct hk_str name)
{
    const struct service *svc = services_find(z->o.services, ns, name);

    return svc && svc->exists ? svc : NULL;
}

/* labels: those before "svc". */
static enum dns_rcode zone_answer_svc(struct zone_lookup *q, const struct hk_str *labels,
                                      uint32_t n, const struct service **ret_external)
{
    const struct service *svc;

    if (n == 0) {
        return DNS_NOERROR;
    }
    if (n == 1) {
        return hk_map_get(&q->z->namespaces, zone_namespace_key(labels[0])) != HK_NONE
                   ? DNS_NOERROR
                   : DNS_NXDOMAIN;
    }
    svc = n <= 4 ? zone_find_service(q->z, labels[n - 1], labels[n - 2]) : NULL;
    if (!svc) {
        return DNS_NXDOMAIN;
    }
    if (n == 2) {
        *ret_external = svc->external ? svc : NULL;
        return svc->external ? DNS_NOERROR : zone_answer_itself(q, svc);
    }
    if (n == 4) {
        return labels[0].s[0] == '_' && labels[1].s[0] == '_'
                   ? zone_answer_ports(q, svc, labels[0], labels[1])
                   : DNS_NXDOMAIN;
    }
    return labels[0].s[0] == '_' ? zone_answer_protocol(svc, labels[0])
                                 : zone_add_endpoints(q, svc, labels[0]);
}

/* ---- pods ---- */

static struct hk_str zone_pod_namespace(const struct dns_zone *z, uint32_t address)
{
    return z->o.pod_namespace ? z->o.pod_namespace(z->o.ctx, address) : (struct hk_str){0};
}

/* Whether an endpoint of the namespace has the address: pods of other machines are found so. */
static bool zone_has_endpoint(const struct dns_zone *z, struct hk_str ns, uint32_t address)
{
    uint32_t row = hk_map_get(&z->by_address, address);

    while (row != HK_NONE && !hk_str_is(ns, z->rows.at[row].svc->ns)) {
        row = z->rows.at[row].next_same;
    }
    return row != HK_NONE;
}

static bool zone_parse_dashed(struct hk_str label, uint32_t *ret)
{
    char text[INET_ADDRSTRLEN] = "";

    if (label.n >= sizeof(text)) {
        return false;
    }
    memcpy(text, label.s, label.n);
    for (char *at = text; *at; at++) {
        *at = *at == '-' ? '.' : *at;
    }
    return zone_parse_v4(text, ret);
}

/* labels: those before "pod". A namespace without a known name is answered like one with pods: it is
 * not known whether there are any. */
static enum dns_rcode zone_answer_pod(struct zone_lookup *q, const struct hk_str *labels,
                                      uint32_t n)
{
    uint32_t address;

    if (n <= 1) {
        return DNS_NOERROR;
    }
    if (n > 2 || !zone_parse_dashed(labels[0], &address) ||
        (!hk_str_eq(zone_pod_namespace(q->z, address), labels[1]) &&
         !zone_has_endpoint(q->z, labels[1], address))) {
        return DNS_NXDOMAIN;
    }
    zone_add_v4(q, &q->owner, address);
    return DNS_NOERROR;
}

/* ---- the domain ---- */

static void zone_answer_apex(struct zone_lookup *q)
{
    struct dns_name server;
    const struct hk_str labels[] = {HK_STR("ns"), HK_STR("dns"), HK_STR("")};

    if (zone_asks(q, DNS_TYPE_SOA)) {
        dns_reply_add_soa(q->r, DNS_ANSWER, &q->z->domain, TTL_S);
    }
    if (zone_asks(q, DNS_TYPE_NS) && zone_name(q->z, labels, &server)) {
        dns_reply_add_name(q->r, DNS_ANSWER, &q->owner, DNS_TYPE_NS, TTL_S, &server);
    }
}

static enum dns_rcode zone_answer_dns(struct zone_lookup *q, const struct hk_str *labels,
                                      uint32_t n)
{
    if (n == 0) {
        return DNS_NOERROR;
    }
    if (n > 1 || !hk_str_is(labels[0], "ns")) {
        return DNS_NXDOMAIN;
    }
    zone_add_v4(q, &q->owner, q->z->o.address);
    return DNS_NOERROR;
}

static void zone_answer_version(struct zone_lookup *q)
{
    if (zone_asks(q, DNS_TYPE_TXT)) {
        dns_reply_add(q->r, DNS_ANSWER, &q->owner, DNS_TYPE_TXT, TTL_S, HK_STR("\005" VERSION));
    }
}

/* labels: those before the domain. */
static enum dns_rcode zone_answer_below(struct zone_lookup *q, const struct hk_str *labels,
                                        uint32_t n, const struct service **ret_external)
{
    if (n == 0) {
        zone_answer_apex(q);
        return DNS_NOERROR;
    }
    if (hk_str_is(labels[n - 1], "svc")) {
        return zone_answer_svc(q, labels, n - 1, ret_external);
    }
    if (hk_str_is(labels[n - 1], "pod")) {
        return zone_answer_pod(q, labels, n - 1);
    }
    if (hk_str_is(labels[n - 1], "dns")) {
        return zone_answer_dns(q, labels, n - 1);
    }
    if (n == 1 && hk_str_is(labels[0], "dns-version")) {
        zone_answer_version(q);
        return DNS_NOERROR;
    }
    return DNS_NXDOMAIN;
}

/* How many labels are in front of the domain; HK_NONE: the name is not below it. */
static uint32_t zone_labels_before(const struct dns_zone *z, const struct hk_str *labels,
                                   uint32_t n)
{
    if (n < z->nlabel) {
        return HK_NONE;
    }
    for (uint32_t i = 0; i < z->nlabel; i++) {
        if (!hk_str_eq(labels[n - z->nlabel + i], z->labels[i])) {
            return HK_NONE;
        }
    }
    return n - z->nlabel;
}

/* ---- addresses to names ---- */

static bool zone_parse_reverse(const struct hk_str *labels, uint32_t n, uint32_t *ret)
{
    uint32_t address = 0;

    if (n != 6 || !hk_str_is(labels[5], "arpa") || !hk_str_is(labels[4], "in-addr")) {
        return false;
    }
    for (uint32_t i = 0; i < 4; i++) {
        int64_t byte;

        if (!hk_str_int(labels[3 - i], &byte) || byte < 0 || byte > 255) {
            return false;
        }
        address = address << 8 | (uint32_t)byte;
    }
    *ret = address;
    return true;
}

static const struct service_endpoint *zone_find_endpoint(const struct service *svc,
                                                         uint32_t address)
{
    struct zone_visit v = {.svc = svc};
    const struct service_slice *slice;
    const struct service_endpoint *e;
    uint32_t at;

    while (zone_visit_next(&v, &slice, &e)) {
        if (zone_parse_v4(e->address, &at) && at == address) {
            return e;
        }
    }
    return NULL;
}

/* The name of one address of a Service. */
static bool zone_reverse_name(const struct dns_zone *z, const struct service *svc, uint32_t address,
                              struct dns_name *ret)
{
    const struct service_endpoint *e;
    uint32_t own;

    if (zone_parse_v4(svc->address, &own) && own == address) {
        return zone_service_name(z, svc, ret);
    }
    e = zone_find_endpoint(svc, address);
    return e && zone_endpoint_name(z, svc, e, ret);
}

static enum dns_zone_verdict zone_answer_reverse(struct zone_lookup *q, uint32_t address)
{
    const struct hk_str ns = zone_pod_namespace(q->z, address);
    uint32_t row = hk_map_get(&q->z->by_address, address);
    struct dns_name name;
    uint32_t n = 0;

    for (; row != HK_NONE && n < ALIASES_MAX; row = q->z->rows.at[row].next_same) {
        if (zone_reverse_name(q->z, q->z->rows.at[row].svc, address, &name)) {
            n++;
            dns_reply_add_name(q->r, DNS_ANSWER, &q->owner, DNS_TYPE_PTR, TTL_S, &name);
        }
    }
    if (n == 0 && ns.n > 0 && zone_pod_name(q->z, ns, address, &name)) {
        n++;
        dns_reply_add_name(q->r, DNS_ANSWER, &q->owner, DNS_TYPE_PTR, TTL_S, &name);
    }
    q->r->authoritative = n > 0;
    return n > 0 ? DNS_ZONE_ANSWERED : DNS_ZONE_ELSEWHERE;
}

/* ---- the whole ---- */

/* Answers for q->owner; false: it is not a name of the zone. */
static bool zone_answer_name(struct zone_lookup *q, const struct service **ret_external)
{
    struct hk_str labels[DNS_LABELS_MAX];
    const uint32_t n = dns_name_labels(&q->owner, labels);
    const uint32_t before = zone_labels_before(q->z, labels, n);

    if (before == HK_NONE) {
        return false;
    }
    if (!services_synced(q->z->o.services)) {
        q->r->code = DNS_SERVFAIL; /* the client asks again */
        return true;
    }
    q->r->code = zone_answer_below(q, labels, before, ret_external);
    return true;
}

/* Adds the CNAME; false: the reply ends here. */
static bool zone_follow(struct zone_lookup *q, const struct service *external)
{
    struct dns_name target;

    if (!dns_name_parse(hk_str(external->external), &target) || target.len == 1) {
        q->r->code = DNS_SERVFAIL;
        return false;
    }
    dns_reply_add_name(q->r, DNS_ANSWER, &q->owner, DNS_TYPE_CNAME, TTL_S, &target);
    q->owner = target;
    return q->type != DNS_TYPE_CNAME && q->type != DNS_TYPE_ANY;
}

static void zone_finish(struct zone_lookup *q)
{
    q->r->authoritative = true;
    if (q->r->count[DNS_ANSWER] == 0 && q->r->code != DNS_SERVFAIL) {
        dns_reply_add_soa(q->r, DNS_AUTHORITY, &q->z->domain, TTL_S);
    }
}

enum dns_zone_verdict dns_zone_answer(const struct dns_zone *z, struct dns_reply *r, uint32_t turn,
                                      struct dns_name *ret_alias)
{
    struct zone_lookup q = {
        .z = z, .r = r, .owner = r->query->name, .type = r->query->type, .turn = turn};
    struct hk_str labels[DNS_LABELS_MAX];
    uint32_t address;

    if (r->query->class != DNS_CLASS_IN && r->query->class != DNS_CLASS_ANY) {
        return DNS_ZONE_ELSEWHERE;
    }
    if (zone_parse_reverse(labels, dns_name_labels(&q.owner, labels), &address)) {
        return zone_asks(&q, DNS_TYPE_PTR) ? zone_answer_reverse(&q, address) : DNS_ZONE_ELSEWHERE;
    }
    for (uint32_t i = 0; i < ALIASES_MAX; i++) {
        const struct service *external = NULL;

        if (!zone_answer_name(&q, &external)) {
            *ret_alias = q.owner;
            return i == 0 ? DNS_ZONE_ELSEWHERE : DNS_ZONE_ALIAS;
        }
        if (!external || !zone_follow(&q, external)) {
            zone_finish(&q);
            return DNS_ZONE_ANSWERED;
        }
    }
    r->code = DNS_SERVFAIL; /* aliases in a circle */
    return DNS_ZONE_ANSWERED;
}

struct dns_zone *dns_zone_new(const struct dns_zone_opts *o, struct hk_err *err)
{
    struct dns_zone *z;
    struct dns_name domain;

    if (!dns_name_parse(hk_str(o->domain), &domain) || domain.len == 1) {
        hk_fail(err, HK_EINVAL, "'%s' is not a domain, such as cluster.local", o->domain);
        return NULL;
    }
    z = hk_zalloc(sizeof(*z));
    z->o = *o;
    z->domain = domain;
    z->nlabel = dns_name_labels(&z->domain, z->labels);
    z->vacant = HK_NONE;
    services_listen(o->services, zone_on_service, z);
    return z;
}

void dns_zone_free(struct dns_zone *z)
{
    if (!z) {
        return;
    }
    services_unlisten(z->o.services, z);
    hk_vec_fini(&z->rows);
    hk_map_fini(&z->by_address);
    hk_map_fini(&z->by_service);
    hk_map_fini(&z->existing);
    hk_map_fini(&z->namespaces);
    hk_free(z);
}
