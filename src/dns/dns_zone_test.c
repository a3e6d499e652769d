// SPDX-License-Identifier: Apache-2.0
// Which names the cluster domain has, and what they stand for. Answers are compared as text: a line
// "TYPE DATA" for each record.
#include "dns/dns_zone.h"

#include "api/port_mem.h"
#include "api/services.h"
#include "codec/yaml.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct fixture {
    struct port_mem *mem;
    struct hk_clock_manual clock;
    struct services *services;
    struct dns_zone *zone;
    struct hk_buf out, text;
    uint32_t turn;
};

static struct hk_str pod_namespace(void *ctx, uint32_t address)
{
    return address == 0x7f400009 ? HK_STR("jobs") : (struct hk_str){0};
}

static void settle(struct fixture *f)
{
    do {
        services_tick(f->services, f->clock.now_ns);
    } while (port_poll(port_mem_port(f->mem), 100) > 0);
}

static void put(struct fixture *f, const char *yaml)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct yaml_docs docs = {0};

    assert_int_equal(yaml_parse(hk_str(yaml), 0, &a, &docs, NULL), 0);
    assert_int_equal(port_mem_put(f->mem, &docs.at[0], NULL), 0);
    settle(f);
}

#define SERVICE(ns, name, spec)                                                                    \
    "{apiVersion: v1, kind: Service, metadata: {name: " name ", namespace: " ns "}, spec: {" spec  \
    "}}"
#define SLICE(ns, service, name, ports, endpoints)                                                 \
    "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: " name                \
    ", namespace: " ns ", labels: {kubernetes.io/service-name: " service                           \
    "}}, addressType: IPv4, ports: [" ports "], endpoints: [" endpoints "]}"
#define READY(address, more) "{addresses: [" address "], " more " conditions: {ready: true}}"

static int setup(void **state)
{
    struct fixture *f = hk_zalloc(sizeof(*f));
    struct hk_err err = {0};

    hk_clock_manual_init(&f->clock, 1767323045LL * 1000000000);
    f->mem = port_mem_new(f->clock.now_ns);
    f->services = services_new(port_mem_port(f->mem), &f->clock.clock);
    f->zone = dns_zone_new(&(struct dns_zone_opts){.services = f->services,
                                                   .domain = "cluster.local",
                                                   .address = 0x7f80000a,
                                                   .pod_namespace = pod_namespace},
                           &err);
    assert_non_null(f->zone);
    settle(f);
    put(f, SERVICE("default", "web",
                   "clusterIP: 127.128.0.5, ports: [{name: http, port: 80}, {name: dns, port: 53, "
                   "protocol: UDP}]"));
    put(f, SLICE("default", "web", "web-1", "{name: http, port: 8080, protocol: TCP}",
                 READY("127.64.0.1", "")));
    put(f, SERVICE("default", "db", "clusterIP: None, ports: [{name: sql, port: 5432}]"));
    put(f,
        SLICE("default", "db", "db-1", "{name: sql, port: 5432, protocol: TCP}",
              READY("127.64.0.2", "hostname: db-0,") ", " READY(
                  "127.64.0.3",
                  "") ", {addresses: [127.64.0.4], hostname: db-2, conditions: {ready: false}}"));
    put(f, SERVICE("default", "idle", "clusterIP: None, ports: [{port: 1}]"));
    put(f, SERVICE("default", "ext", "type: ExternalName, externalName: Www.Example.org."));
    put(f, SERVICE("default", "near",
                   "type: ExternalName, externalName: web.default.svc.cluster.local"));
    put(f, SERVICE("default", "loop",
                   "type: ExternalName, externalName: loop.default.svc.cluster.local"));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    dns_zone_free(f->zone);
    services_free(f->services);
    port_free(port_mem_port(f->mem));
    hk_buf_fini(&f->out);
    hk_buf_fini(&f->text);
    hk_free(f);
    return 0;
}

/* ---- answers as text ---- */

static void write_name(const struct dns_name *name, struct hk_buf *out)
{
    struct hk_str labels[DNS_LABELS_MAX];
    const uint32_t n = dns_name_labels(name, labels);

    for (uint32_t i = 0; i < n; i++) {
        hk_buf_addf(out, "%s%.*s", i > 0 ? "." : "", HK_FMT(labels[i]));
    }
}

static void write_target(struct hk_str message, struct hk_str data, size_t skip, struct hk_buf *out)
{
    size_t at = (size_t)(data.s - message.s) + skip;
    struct dns_name name;

    assert_true(dns_name_read(message, &at, &name));
    write_name(&name, out);
}

static void write_record(struct hk_str message, const struct dns_record *r, struct hk_buf *out)
{
    const uint8_t *d = (const uint8_t *)r->data.s;
    char text[INET6_ADDRSTRLEN];

    if (r->type == DNS_TYPE_A) {
        hk_buf_addf(out, "A %s\n", inet_ntop(AF_INET, d, text, sizeof(text)));
    } else if (r->type == DNS_TYPE_SRV) {
        hk_buf_addf(out, "SRV %u %u ", d[2] << 8 | d[3], d[4] << 8 | d[5]);
        write_target(message, r->data, 6, out);
        hk_buf_addc(out, '\n');
    } else if (r->type == DNS_TYPE_CNAME || r->type == DNS_TYPE_PTR || r->type == DNS_TYPE_NS) {
        hk_buf_adds(out, r->type == DNS_TYPE_PTR  ? "PTR "
                         : r->type == DNS_TYPE_NS ? "NS "
                                                  : "CNAME ");
        write_target(message, r->data, 0, out);
        hk_buf_addc(out, '\n');
    } else {
        hk_buf_addf(out, "TYPE%u\n", r->type);
    }
}

/* The answers; "NODATA", "NXDOMAIN", "SERVFAIL", "ELSEWHERE" without any; "ALIAS" at the end when
 * somebody else has to go on. */
static const char *ask(struct fixture *f, const char *name, uint16_t type)
{
    HK_AUTO(hk_buf_fini) struct hk_buf query = {0};
    struct dns_name asked, alias = {0};
    struct dns_walk w;
    struct dns_record record;
    enum dns_zone_verdict verdict;
    struct dns_query q;
    struct dns_reply r;

    assert_true(dns_name_parse(hk_str(name), &asked));
    dns_query_write(1, &asked, type, &query);
    assert_int_equal(dns_query_parse(hk_buf_str(&query), &q), DNS_NOERROR);
    hk_buf_clear(&f->out);
    hk_buf_clear(&f->text);
    dns_reply_init(&r, &q, 512, &f->out);
    verdict = dns_zone_answer(f->zone, &r, f->turn, &alias);
    if (verdict == DNS_ZONE_ELSEWHERE) {
        return "ELSEWHERE";
    }
    dns_reply_finish(&r);
    w = (struct dns_walk){.message = hk_buf_str(&f->out)};
    assert_true(dns_walk_open(&w, &q));
    while (dns_walk_next(&w, &record)) {
        write_record(w.message, &record, &f->text);
    }
    if (r.count[DNS_ANSWER] == 0) {
        assert_int_equal(r.count[DNS_AUTHORITY], r.code != DNS_SERVFAIL);
        return r.code == DNS_NXDOMAIN ? "NXDOMAIN" : r.code == DNS_SERVFAIL ? "SERVFAIL" : "NODATA";
    }
    if (verdict == DNS_ZONE_ALIAS) {
        hk_buf_adds(&f->text, "ALIAS ");
        write_name(&alias, &f->text);
    }
    return f->text.data;
}

/* ---- tests ---- */

#define SVC ".svc.cluster.local"

static void test_names(void **state)
{
    static const struct {
        const char *name;
        uint16_t type;
        const char *answer;
    } cases[] = {
        {"web.default" SVC, DNS_TYPE_A, "A 127.128.0.5\n"},
        {"WEB.Default" SVC, DNS_TYPE_A, "A 127.128.0.5\n"},
        {"web.default" SVC, DNS_TYPE_ANY, "A 127.128.0.5\n"},
        {"web.default" SVC, DNS_TYPE_AAAA, "NODATA"},
        {"web.other" SVC, DNS_TYPE_A, "NXDOMAIN"},
        {"nosuch.default" SVC, DNS_TYPE_A, "NXDOMAIN"},
        {"default" SVC, DNS_TYPE_A, "NODATA"},
        {"other" SVC, DNS_TYPE_A, "NXDOMAIN"},
        {"svc.cluster.local", DNS_TYPE_A, "NODATA"},
        {"cluster.local", DNS_TYPE_A, "NODATA"},
        {"cluster.local", DNS_TYPE_SOA, "TYPE6\n"},
        {"cluster.local", DNS_TYPE_NS, "NS ns.dns.cluster.local\n"},
        {"ns.dns.cluster.local", DNS_TYPE_A, "A 127.128.0.10\n"},
        {"dns.cluster.local", DNS_TYPE_A, "NODATA"},
        {"dns-version.cluster.local", DNS_TYPE_TXT, "TYPE16\n"},
        {"nosuch.cluster.local", DNS_TYPE_A, "NXDOMAIN"},
        {"local", DNS_TYPE_A, "ELSEWHERE"},
        {"xcluster.local", DNS_TYPE_A, "ELSEWHERE"},
        {"web.default.svc.cluster.local.example.org", DNS_TYPE_A, "ELSEWHERE"},
        {"example.org", DNS_TYPE_A, "ELSEWHERE"},
        /* endpoints */
        {"db.default" SVC, DNS_TYPE_A, "A 127.64.0.2\nA 127.64.0.3\n"},
        {"db.default" SVC, DNS_TYPE_AAAA, "NODATA"},
        {"db-0.db.default" SVC, DNS_TYPE_A, "A 127.64.0.2\n"},
        {"127-64-0-3.db.default" SVC, DNS_TYPE_A, "A 127.64.0.3\n"},
        {"127-64-0-2.db.default" SVC, DNS_TYPE_A, "NXDOMAIN"}, /* it has a hostname */
        {"db-2.db.default" SVC, DNS_TYPE_A, "NXDOMAIN"},       /* is not ready */
        {"idle.default" SVC, DNS_TYPE_A, "NXDOMAIN"},
        {"x.db-0.db.default" SVC, DNS_TYPE_A, "NXDOMAIN"},
        /* SRV */
        {"_http._tcp.web.default" SVC, DNS_TYPE_SRV, "SRV 100 80 web.default" SVC "\n"},
        {"_dns._udp.web.default" SVC, DNS_TYPE_SRV, "SRV 100 53 web.default" SVC "\n"},
        {"_http._udp.web.default" SVC, DNS_TYPE_SRV, "NXDOMAIN"},
        {"_http._tcp.web.default" SVC, DNS_TYPE_A, "NODATA"},
        {"_tcp.web.default" SVC, DNS_TYPE_SRV, "NODATA"},
        {"_sctp.web.default" SVC, DNS_TYPE_SRV, "NXDOMAIN"},
        {"web.default" SVC, DNS_TYPE_SRV,
         "SRV 50 80 web.default" SVC "\nSRV 50 53 web.default" SVC "\n"},
        {"_sql._tcp.db.default" SVC, DNS_TYPE_SRV,
         "SRV 50 5432 db-0.db.default" SVC "\nSRV 50 5432 127-64-0-3.db.default" SVC "\n"},
        {"_sql._tcp.db.default" SVC, DNS_TYPE_A, "NODATA"},
        /* aliases */
        {"ext.default" SVC, DNS_TYPE_A, "CNAME www.example.org\nALIAS www.example.org"},
        {"ext.default" SVC, DNS_TYPE_CNAME, "CNAME www.example.org\n"},
        {"near.default" SVC, DNS_TYPE_A, "CNAME web.default" SVC "\nA 127.128.0.5\n"},
        {"near.default" SVC, DNS_TYPE_AAAA, "CNAME web.default" SVC "\n"},
        /* pods */
        {"127-64-0-9.jobs.pod.cluster.local", DNS_TYPE_A, "A 127.64.0.9\n"},
        {"127-64-0-9.default.pod.cluster.local", DNS_TYPE_A, "NXDOMAIN"},
        {"127-64-0-2.default.pod.cluster.local", DNS_TYPE_A, "A 127.64.0.2\n"}, /* an endpoint */
        {"127-64-0.jobs.pod.cluster.local", DNS_TYPE_A, "NXDOMAIN"},
        {"127.64.0.9.jobs.pod.cluster.local", DNS_TYPE_A, "NXDOMAIN"},
        {"jobs.pod.cluster.local", DNS_TYPE_A, "NODATA"},
        /* addresses */
        {"5.0.128.127.in-addr.arpa", DNS_TYPE_PTR, "PTR web.default" SVC "\n"},
        {"2.0.64.127.in-addr.arpa", DNS_TYPE_PTR, "PTR db-0.db.default" SVC "\n"},
        {"3.0.64.127.in-addr.arpa", DNS_TYPE_PTR, "PTR 127-64-0-3.db.default" SVC "\n"},
        {"9.0.64.127.in-addr.arpa", DNS_TYPE_PTR, "PTR 127-64-0-9.jobs.pod.cluster.local\n"},
        {"8.0.64.127.in-addr.arpa", DNS_TYPE_PTR, "ELSEWHERE"},
        {"0.64.127.in-addr.arpa", DNS_TYPE_PTR, "ELSEWHERE"},
        {"256.0.64.127.in-addr.arpa", DNS_TYPE_PTR, "ELSEWHERE"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        print_message("# %s %u\n", cases[i].name, cases[i].type);
        assert_string_equal(ask(f, cases[i].name, cases[i].type), cases[i].answer);
    }
}

static void test_aliases_in_a_circle_end(void **state)
{
    struct fixture *f = *state;

    ask(f, "loop.default" SVC, DNS_TYPE_A);
    assert_int_equal(dns_message_code(hk_buf_str(&f->out)), DNS_SERVFAIL);
}

static void test_clients_begin_with_different_endpoints(void **state)
{
    struct fixture *f = *state;

    f->turn = 1;
    assert_string_equal(ask(f, "db.default" SVC, DNS_TYPE_A), "A 127.64.0.3\nA 127.64.0.2\n");
}

static void test_answers_follow_the_services(void **state)
{
    struct fixture *f = *state;

    put(f, SLICE("default", "db", "db-1", "{name: sql, port: 5432, protocol: TCP}",
                 READY("127.64.0.4", "hostname: db-2,")));
    assert_string_equal(ask(f, "db.default" SVC, DNS_TYPE_A), "A 127.64.0.4\n");
    assert_string_equal(ask(f, "2.0.64.127.in-addr.arpa", DNS_TYPE_PTR), "ELSEWHERE");
    assert_string_equal(ask(f, "4.0.64.127.in-addr.arpa", DNS_TYPE_PTR),
                        "PTR db-2.db.default" SVC "\n");
    /* The same endpoint in a second slice and behind a second Service. */
    put(f, SLICE("default", "db", "db-2", "", READY("127.64.0.4", "hostname: db-2,")));
    assert_string_equal(ask(f, "db.default" SVC, DNS_TYPE_A), "A 127.64.0.4\n");
    put(f, SLICE("default", "web", "web-1", "", READY("127.64.0.4", "")));
    assert_non_null(strstr(ask(f, "4.0.64.127.in-addr.arpa", DNS_TYPE_PTR),
                           "PTR 127-64-0-4.web.default" SVC "\n"));
    assert_true(port_mem_remove(f->mem, api_kind(API_SERVICE), HK_STR("default"), HK_STR("web")));
    settle(f);
    assert_string_equal(ask(f, "web.default" SVC, DNS_TYPE_A), "NXDOMAIN");
    assert_string_equal(ask(f, "5.0.128.127.in-addr.arpa", DNS_TYPE_PTR), "ELSEWHERE");
}

static void test_a_namespace_ends_with_its_last_service(void **state)
{
    struct fixture *f = *state;

    put(f, SERVICE("other", "s", "clusterIP: 127.128.0.6"));
    put(f, SERVICE("other", "t", "clusterIP: 127.128.0.7"));
    assert_string_equal(ask(f, "other" SVC, DNS_TYPE_A), "NODATA");
    port_mem_remove(f->mem, api_kind(API_SERVICE), HK_STR("other"), HK_STR("s"));
    settle(f);
    assert_string_equal(ask(f, "other" SVC, DNS_TYPE_A), "NODATA");
    port_mem_remove(f->mem, api_kind(API_SERVICE), HK_STR("other"), HK_STR("t"));
    settle(f);
    assert_string_equal(ask(f, "other" SVC, DNS_TYPE_A), "NXDOMAIN");
}

/* 300 endpoints do not fit: as many as fit, and the reply says so. */
static void test_many_endpoints_are_cut_off(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf endpoints = {0}, yaml = {0};
    struct fixture *f = *state;

    for (int i = 0; i < 300; i++) {
        hk_buf_addf(&endpoints, "%s" READY("127.65.%d.%d", ""), i > 0 ? ", " : "", i / 200,
                    i % 200);
    }
    hk_buf_addf(&yaml, SLICE("default", "db", "db-1", "", "%s"), endpoints.data);
    put(f, yaml.data);
    assert_true(strlen(ask(f, "db.default" SVC, DNS_TYPE_A)) > 20);
    assert_true(dns_message_is_truncated(hk_buf_str(&f->out)));
    assert_true(f->out.len <= 512);
}

static void test_nothing_is_denied_before_all_is_known(void **state)
{
    struct fixture *f = *state;

    dns_zone_free(f->zone);
    services_free(f->services);
    f->services = services_new(port_mem_port(f->mem), &f->clock.clock);
    f->zone = dns_zone_new(
        &(struct dns_zone_opts){.services = f->services, .domain = "cluster.local"}, NULL);
    assert_string_equal(ask(f, "web.default" SVC, DNS_TYPE_A), "SERVFAIL");
    settle(f);
    assert_string_equal(ask(f, "web.default" SVC, DNS_TYPE_A), "A 127.128.0.5\n");
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(test_names),
        WITH_FIXTURE(test_aliases_in_a_circle_end),
        WITH_FIXTURE(test_clients_begin_with_different_endpoints),
        WITH_FIXTURE(test_answers_follow_the_services),
        WITH_FIXTURE(test_a_namespace_ends_with_its_last_service),
        WITH_FIXTURE(test_many_endpoints_are_cut_off),
        WITH_FIXTURE(test_nothing_is_denied_before_all_is_known),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
