// SPDX-License-Identifier: Apache-2.0
// DNS messages from arbitrary bytes: as a query, which the zone answers with a message that can be read
// again and is not longer than allowed, and as the answer of a resolver.
#include "api/port_mem.h"
#include "api/services.h"
#include "codec/yaml.h"
#include "dns/dns_zone.h"
#include "fuzz/fuzz.h"

#define TIME_NS (1767323045LL * 1000000000)

static const char *const objects[] = {
    "{apiVersion: v1, kind: Service, metadata: {name: w, namespace: d}, spec: {clusterIP: "
    "127.128.0.5, ports: [{name: h, port: 80}]}}",
    "{apiVersion: v1, kind: Service, metadata: {name: b, namespace: d}, spec: {clusterIP: None, "
    "ports: [{name: s, port: 5}]}}",
    "{apiVersion: v1, kind: Service, metadata: {name: e, namespace: d}, spec: {type: "
    "ExternalName, externalName: x.org}}",
    "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: b-1, namespace: d, "
    "labels: {kubernetes.io/service-name: b}}, addressType: IPv4, ports: [{name: s, port: 5, "
    "protocol: TCP}], endpoints: [{addresses: [127.64.0.2], hostname: b-0}, {addresses: "
    "[127.64.0.3]}]}",
};

static struct dns_zone *make_zone(void)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct port_mem *mem = port_mem_new(TIME_NS);
    struct services *services = services_new(port_mem_port(mem), hk_clock_system());
    struct dns_zone *zone = dns_zone_new(
        &(struct dns_zone_opts){.services = services, .domain = "cluster.local"}, NULL);

    for (size_t i = 0; i < HK_LEN(objects); i++) {
        struct yaml_docs docs = {0};

        hk_assert(yaml_parse(hk_str(objects[i]), 0, &a, &docs, NULL) == 0);
        hk_assert(port_mem_put(mem, &docs.at[0], NULL) == 0);
    }
    do {
        services_tick(services, TIME_NS);
    } while (port_poll(port_mem_port(mem), 100) > 0);
    hk_assert(services_synced(services));
    return zone;
}

static void check_reply(const struct dns_query *q, struct hk_str reply)
{
    struct dns_walk w = {.message = reply};
    struct dns_record record;

    hk_assert(dns_message_id(reply) == q->id);
    if (q->question.n > 0 && q->opcode == 0) {
        hk_assert(dns_walk_open(&w, q));
        while (w.left > 0) {
            hk_assert(dns_walk_next(&w, &record));
        }
    }
}

static void answer(const struct dns_zone *zone, const struct dns_query *q, enum dns_rcode code,
                   size_t max)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct dns_name alias = {0};
    struct dns_reply r;

    dns_reply_init(&r, q, max, &out);
    r.code = code;
    if (code == DNS_NOERROR && dns_zone_answer(zone, &r, max & 7, &alias) == DNS_ZONE_ALIAS) {
        hk_assert(alias.len > 1);
    }
    dns_reply_finish(&r);
    hk_assert(out.len <= max);
    check_reply(q, hk_buf_str(&out));
}

static void walk(struct hk_str message)
{
    const struct dns_query none = {.type = DNS_TYPE_A, .class = DNS_CLASS_IN};
    struct dns_walk w = {.message = message};
    struct dns_record record;
    size_t at = DNS_HEADER_SIZE;
    struct dns_query asked = none;

    if (dns_name_read(message, &at, &asked.name) && dns_walk_open(&w, &asked)) {
        while (dns_walk_next(&w, &record)) {
            hk_assert(record.owner.len > 0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct dns_zone *zone;
    HK_AUTO(hk_buf_fini) struct hk_buf copy = {0}; /* of its own size: reading beyond is noticed */
    struct dns_query q;
    enum dns_rcode code;

    if (!zone) {
        zone = make_zone();
    }
    hk_buf_add(&copy, data, size);
    walk(hk_buf_str(&copy));
    code = dns_query_parse(hk_buf_str(&copy), &q);
    if (code != DNS_NO_REPLY) {
        answer(zone, &q, code, dns_reply_udp_max(&q));
        answer(zone, &q, code, DNS_MESSAGE_MAX);
    }
    return 0;
}
