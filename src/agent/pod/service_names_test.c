// SPDX-License-Identifier: Apache-2.0
// Under which names pods find Services, and how many of them.
#include "agent/pod/service_names.h"

#include "api/port_mem.h"
#include "api/services.h"
#include "codec/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct fixture {
    struct port_mem *mem;
    struct hk_clock_manual clock;
    struct services *services;
    struct service_names *names;
    uint32_t changes;
};

static void on_changed(void *ctx)
{
    ((struct fixture *)ctx)->changes++;
}

static int setup(void **state)
{
    struct fixture *f = hk_zalloc(sizeof(*f));

    hk_clock_manual_init(&f->clock, 1767323045LL * 1000000000);
    f->mem = port_mem_new(f->clock.now_ns);
    f->services = services_new(port_mem_port(f->mem), &f->clock.clock);
    f->names = service_names_new(f->services, "cluster.local", on_changed, f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    service_names_free(f->names);
    services_free(f->services);
    port_free(port_mem_port(f->mem));
    hk_free(f);
    return 0;
}

static void put(struct fixture *f, const char *yaml)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct yaml_docs docs = {0};

    assert_int_equal(yaml_parse(hk_str(yaml), 0, &a, &docs, NULL), 0);
    assert_int_equal(port_mem_put(f->mem, &docs.at[0], NULL), 0);
    do {
        services_tick(f->services, f->clock.now_ns);
    } while (port_poll(port_mem_port(f->mem), 100) > 0);
}

static void service(struct fixture *f, const char *ns, const char *name, const char *ip)
{
    char yaml[300];

    snprintf(yaml, sizeof(yaml),
             "{apiVersion: v1, kind: Service, metadata: {name: %s, namespace: %s}, spec: "
             "{clusterIP: %s, ports: [{port: 80}]}}",
             name, ns, ip);
    put(f, yaml);
}

static void slice(struct fixture *f, const char *ns, const char *service, const char *endpoints)
{
    char yaml[600];

    snprintf(yaml, sizeof(yaml),
             "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: %s-1, "
             "namespace: %s, labels: {kubernetes.io/service-name: %s}}, addressType: IPv4, "
             "endpoints: [%s]}",
             service, ns, service, endpoints);
    put(f, yaml);
}

static const char *lines(struct fixture *f, const char *ns, const char *listed)
{
    static struct hk_buf text;

    hk_buf_clear(&text);
    service_names_write(f->names, hk_str(ns), hk_str(listed), &text);
    return hk_buf_str(&text).s;
}

static void a_cluster_ip_has_four_names(void **state)
{
    struct fixture *f = *state;

    service(f, "d", "web", "127.9.9.9");
    assert_string_equal(lines(f, "d", ""),
                        "127.9.9.9 web web.d web.d.svc web.d.svc.cluster.local\n");
    assert_string_equal(lines(f, "e", ""), "127.9.9.9 web.d web.d.svc web.d.svc.cluster.local\n");
}

static void a_headless_service_names_its_ready_pods(void **state)
{
    struct fixture *f = *state;
    const uint32_t before = f->changes;

    service(f, "d", "db", "None");
    slice(f, "d", "db",
          "{addresses: [127.64.0.1], hostname: db-0, conditions: {ready: true}}, {addresses: "
          "[127.64.0.2], hostname: db-1, conditions: {ready: false}}, {addresses: [127.64.0.3], "
          "conditions: {ready: true}}");
    assert_string_equal(lines(f, "d", ""),
                        "127.64.0.1 db db.d db.d.svc db.d.svc.cluster.local\n"
                        "127.64.0.3 db db.d db.d.svc db.d.svc.cluster.local\n"
                        "127.64.0.1 db-0.db db-0.db.d db-0.db.d.svc db-0.db.d.svc.cluster.local\n");
    /* Pods of that subdomain have the hosts already. */
    assert_string_equal(lines(f, "d", "db"),
                        "127.64.0.1 db db.d db.d.svc db.d.svc.cluster.local\n"
                        "127.64.0.3 db db.d db.d.svc db.d.svc.cluster.local\n");
    assert_int_equal(f->changes, before + 2);
    slice(f, "d", "db", "");
    assert_string_equal(lines(f, "d", ""), "");
}

static void the_api_comes_first(void **state)
{
    struct fixture *f = *state;

    service(f, "a", "first", "127.9.9.9");
    service(f, "default", "kubernetes", "127.9.9.1");
    assert_string_equal(lines(f, "a", ""),
                        "127.9.9.1 kubernetes.default kubernetes.default.svc "
                        "kubernetes.default.svc.cluster.local\n"
                        "127.9.9.9 first first.a first.a.svc first.a.svc.cluster.local\n");
}

static void other_namespaces_do_not_fill_the_file(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 503; i++) {
        char name[20];

        snprintf(name, sizeof(name), "s-%d", i);
        service(f, "many", name, "127.9.9.9");
    }
    assert_non_null(strstr(lines(f, "d", ""),
                           "# 3 more addresses of Services of other namespaces are left out\n"));
    assert_null(strstr(lines(f, "many", ""), "#"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_cluster_ip_has_four_names, setup, teardown),
        cmocka_unit_test_setup_teardown(a_headless_service_names_its_ready_pods, setup, teardown),
        cmocka_unit_test_setup_teardown(the_api_comes_first, setup, teardown),
        cmocka_unit_test_setup_teardown(other_namespaces_do_not_fill_the_file, setup, teardown),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
