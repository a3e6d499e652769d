// SPDX-License-Identifier: Apache-2.0
// The table of Services follows the API, whichever of a Service and its EndpointSlices comes first.
#include "api/services.h"

#include "api/port_mem.h"
#include "codec/yaml.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct fixture {
    struct port_mem *mem;
    struct hk_clock_manual clock;
    struct services *services;
    uint32_t told; /* how often a listener was called */
};

static void on_service(void *ctx, const struct service *svc)
{
    ((struct fixture *)ctx)->told++;
}

static int setup(void **state)
{
    struct fixture *f = hk_zalloc(sizeof(*f));

    hk_clock_manual_init(&f->clock, 1767323045LL * 1000000000);
    f->mem = port_mem_new(f->clock.now_ns);
    f->services = services_new(port_mem_port(f->mem), &f->clock.clock);
    services_listen(f->services, on_service, f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    services_free(f->services);
    port_free(port_mem_port(f->mem));
    hk_free(f);
    return 0;
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

static void removed(struct fixture *f, enum api_kind_id kind, const char *name)
{
    assert_true(port_mem_remove(f->mem, api_kind(kind), HK_STR("d"), hk_str(name)));
    settle(f);
}

/* The targets of the Service's nth port: "ADDRESS:PORT ...". */
static const char *targets(const struct fixture *f, uint32_t n)
{
    static struct hk_buf text;
    service_targets found = {0};

    hk_buf_clear(&text);
    for (uint32_t i = 0; i < services_rows(f->services); i++) {
        const struct service *svc = services_at(f->services, i);

        if (svc && n < svc->ports.len) {
            service_find_targets(svc, &svc->ports.at[n], &found);
        }
    }
    for (uint32_t i = 0; i < found.len; i++) {
        hk_buf_addf(&text, "%s%s:%u", i > 0 ? " " : "", found.at[i].address, found.at[i].port);
    }
    hk_vec_fini(&found);
    return hk_buf_str(&text).s;
}

#define SERVICE                                                                                    \
    "{apiVersion: v1, kind: Service, metadata: {name: s, namespace: d}, spec: {clusterIP: "        \
    "127.9.9.9, ports: [{name: a, port: 80}, {name: b, port: 81}]}}"
#define SLICE(name, service, endpoints)                                                            \
    "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: " name                \
    ", namespace: d, labels: {kubernetes.io/service-name: " service "}}, addressType: IPv4, "      \
    "ports: [{name: a, port: 8080, protocol: TCP}], endpoints: [" endpoints "]}"
#define READY(ip) "{addresses: [" ip "], conditions: {ready: true}}"
#define LEAVING(ip) "{addresses: [" ip "], conditions: {ready: false, serving: true}}"

static void either_may_come_first(void **state)
{
    struct fixture *f = *state;

    put(f, SLICE("s-1", "s", READY("127.64.0.1")));
    assert_false(services_at(f->services, 0)->exists);
    put(f, SERVICE);
    assert_true(services_at(f->services, 0)->exists);
    assert_string_equal(services_at(f->services, 0)->address, "127.9.9.9");
    assert_string_equal(targets(f, 0), "127.64.0.1:8080");
    assert_string_equal(targets(f, 1), ""); /* no slice has a port of that name */
}

static void all_slices_count_and_changes_are_told(void **state)
{
    struct fixture *f = *state;
    uint32_t told;

    put(f, SERVICE);
    put(f, SLICE("s-1", "s", READY("127.64.0.1")));
    put(f, SLICE("s-2", "s", READY("127.64.0.2")));
    assert_string_equal(targets(f, 0), "127.64.0.1:8080 127.64.0.2:8080");
    told = f->told;
    put(f, SLICE("s-2", "s", READY("127.64.0.3")));
    assert_int_equal(f->told, told + 1);
    assert_string_equal(targets(f, 0), "127.64.0.1:8080 127.64.0.3:8080");
    removed(f, API_ENDPOINT_SLICE, "s-1");
    assert_string_equal(targets(f, 0), "127.64.0.3:8080");
    put(f, SLICE("s-2", "other", READY("127.64.0.3")));
    assert_string_equal(targets(f, 0), "");
}

static void those_that_leave_serve_until_another_is_ready(void **state)
{
    struct fixture *f = *state;

    put(f, SERVICE);
    put(f, SLICE("s-1", "s", LEAVING("127.64.0.1")));
    assert_string_equal(targets(f, 0), "127.64.0.1:8080");
    put(f, SLICE("s-1", "s", LEAVING("127.64.0.1") ", " READY("127.64.0.2")));
    assert_string_equal(targets(f, 0), "127.64.0.2:8080");
}

static void nothing_is_left_of_what_is_gone(void **state)
{
    struct fixture *f = *state;

    put(f, SERVICE);
    put(f, SLICE("s-1", "s", READY("127.64.0.1")));
    removed(f, API_SERVICE, "s");
    assert_false(services_at(f->services, 0)->exists);
    removed(f, API_ENDPOINT_SLICE, "s-1");
    assert_null(services_at(f->services, 0));
    put(f, SERVICE);
    assert_int_equal(services_rows(f->services), 1);
}

static void a_listener_may_leave(void **state)
{
    struct fixture *f = *state;

    services_unlisten(f->services, f);
    put(f, "{apiVersion: v1, kind: Service, metadata: {name: e, namespace: d}, spec: {type: "
           "ExternalName, externalName: a.example}}");
    assert_int_equal(f->told, 0);
    assert_string_equal(services_find(f->services, HK_STR("d"), HK_STR("e"))->external,
                        "a.example");
    assert_null(services_find(f->services, HK_STR("d"), HK_STR("f")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(either_may_come_first, setup, teardown),
        cmocka_unit_test_setup_teardown(all_slices_count_and_changes_are_told, setup, teardown),
        cmocka_unit_test_setup_teardown(those_that_leave_serve_until_another_is_ready, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(nothing_is_left_of_what_is_gone, setup, teardown),
        cmocka_unit_test_setup_teardown(a_listener_may_leave, setup, teardown),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
