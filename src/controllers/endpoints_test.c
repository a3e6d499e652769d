// SPDX-License-Identifier: Apache-2.0
// Endpoints and EndpointSlices follow the pods that a Service selects.
#include "controllers/rig_test.h"
#include "controllers/table.h"

static const struct ctl_type *const types[] = {&ctl_endpoints};
static struct rig rig;

static int setup(void **state)
{
    rig_init(&rig, types, HK_LEN(types));
    return 0;
}

static int teardown(void **state)
{
    rig_fini(&rig);
    return 0;
}

/* A pod of the Service; more: further fields of its spec, each followed by a comma. */
static void pod(const char *name, const char *ip, bool ready, const char *more)
{
    char yaml[800];

    snprintf(yaml, sizeof(yaml),
             "{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: d, labels: {app: web}}, "
             "spec: {nodeName: n1, %s containers: [{name: c, ports: [{name: http, containerPort: "
             "8080}]}]}, status: {phase: Running, podIP: %s, conditions: [{type: Ready, status: "
             "'%s'}]}}",
             name, more, ip, ready ? "True" : "False");
    rig_put(&rig, yaml);
}

static void service(const char *spec)
{
    char yaml[500];

    snprintf(yaml, sizeof(yaml),
             "{apiVersion: v1, kind: Service, metadata: {name: s, namespace: d}, spec: {%s}}",
             spec);
    rig_put(&rig, yaml);
}

#define SELECTS "selector: {app: web}, "
#define PORTS "ports: [{name: web, port: 80, targetPort: http, protocol: TCP}]"

struct slices {
    struct hk_buf text;
    uint32_t n;
};

static void on_slice(void *ctx, const struct api_object *o)
{
    struct slices *s = ctx;
    const struct json *endpoints = json_get(&o->root, "endpoints");

    s->n++;
    hk_buf_addf(&s->text, "%s[", s->text.len > 0 ? " " : "");
    for (uint32_t i = 0; i < json_len(endpoints); i++) {
        const struct json *e = json_item(endpoints, i), *c = json_get(e, "conditions");
        const struct hk_str hostname = json_str_field(e, "hostname");

        hk_buf_addf(&s->text, "%s%.*s", i > 0 ? " " : "",
                    HK_FMT(json_str(json_item(json_get(e, "addresses"), 0), HK_STR(""))));
        hk_buf_adds(&s->text, json_bool(json_get(c, "ready"), false) ? "+" : "-");
        hk_buf_adds(&s->text, json_bool(json_get(c, "terminating"), false) ? "t" : "");
        hk_buf_addf(&s->text, "%s%.*s", hostname.n > 0 ? "=" : "", HK_FMT(hostname));
    }
    hk_buf_adds(&s->text, "]");
    for (uint32_t i = 0; i < json_len(json_get(&o->root, "ports")); i++) {
        hk_buf_addf(&s->text, ":%lld",
                    (long long)rig_int(json_item(json_get(&o->root, "ports"), i), "port"));
    }
}

/* Every slice as "[ADDRESS+ ADDRESS-]:PORT", + ready, - not. */
static const char *slices(void)
{
    static struct slices s;

    hk_buf_clear(&s.text);
    port_mem_each(rig.mem, api_kind(API_ENDPOINT_SLICE), on_slice, &s);
    return hk_buf_str(&s.text).s;
}

static void ready_pods_become_endpoints(void **state)
{
    service(SELECTS PORTS);
    pod("a", "127.64.0.1", true, "");
    pod("b", "127.64.0.2", false, "");
    rig_manager(&rig);
    rig_settle(&rig);
    assert_string_equal(slices(), "[127.64.0.1+ 127.64.0.2-]:8080");
    rig_expect(&rig, API_ENDPOINTS, "s", "subsets",
               "[{\"addresses\":[{\"ip\":\"127.64.0.1\",\"nodeName\":\"n1\",\"targetRef\":"
               "{\"kind\":\"Pod\",\"namespace\":\"d\",\"name\":\"a\",\"uid\":\"u-a\"}}],"
               "\"notReadyAddresses\":[{\"ip\":\"127.64.0.2\",\"nodeName\":\"n1\",\"targetRef\":"
               "{\"kind\":\"Pod\",\"namespace\":\"d\",\"name\":\"b\",\"uid\":\"u-b\"}}],"
               "\"ports\":[{\"name\":\"web\",\"port\":8080,\"protocol\":\"TCP\"}]}]");
    rig_patch(&rig, API_POD, "b", "status: {conditions: [{type: Ready, status: 'True'}]}");
    rig_settle(&rig);
    assert_string_equal(slices(), "[127.64.0.1+ 127.64.0.2+]:8080");
    rig_remove(&rig, API_POD, "a");
    rig_patch(&rig, API_POD, "b", "status: {phase: Succeeded}");
    rig_settle(&rig);
    assert_string_equal(slices(), "[]:8080");
    assert_string_equal(rig_at(&rig, API_ENDPOINTS, "s", "subsets"), "");
}

static void nothing_is_written_when_nothing_changed(void **state)
{
    service(SELECTS PORTS);
    pod("a", "127.64.0.1", true, "");
    rig_manager(&rig);
    rig_settle(&rig);
    rig_restart(&rig);
    rig_settle(&rig);
    rig_patch(&rig, API_POD, "a", "metadata: {annotations: {note: x}}");
    rig_settle(&rig);
    assert_int_equal(manager_metrics(rig.m)->writes[PORT_CREATE], 0);
    assert_int_equal(manager_metrics(rig.m)->writes[PORT_UPDATE], 0);
    assert_int_equal(manager_metrics(rig.m)->writes[PORT_DELETE], 0);
}

static void a_pod_that_ends_still_serves(void **state)
{
    service(SELECTS PORTS);
    pod("a", "127.64.0.1", true, "");
    rig_manager(&rig);
    rig_patch(&rig, API_POD, "a", "metadata: {deletionTimestamp: '2026-01-02T10:00:00Z'}");
    rig_settle(&rig);
    assert_string_equal(slices(), "[127.64.0.1-t]:8080");
    assert_string_equal(rig_at(&rig, API_ENDPOINTS, "s", "subsets"), "");
}

static void a_service_may_publish_pods_that_are_not_ready(void **state)
{
    service(SELECTS PORTS ", publishNotReadyAddresses: true, clusterIP: None");
    pod("a", "127.64.0.1", false, "hostname: h, subdomain: s,");
    pod("b", "127.64.0.2", false, "hostname: h, subdomain: other,");
    rig_manager(&rig);
    rig_settle(&rig);
    assert_string_equal(slices(), "[127.64.0.1+=h 127.64.0.2+]:8080");
    rig_expect(&rig, API_ENDPOINTS, "s", "subsets[0].notReadyAddresses", "");
    assert_non_null(strstr(rig_at(&rig, API_ENDPOINTS, "s", "metadata.labels"),
                           "\"service.kubernetes.io/headless\":\"\""));
}

/* Pods of two versions may name different ports. */
static void each_pod_says_what_a_name_of_a_port_means(void **state)
{
    service(SELECTS PORTS);
    pod("a", "127.64.0.1", true, "");
    pod("b", "127.64.0.2", true, "");
    rig_patch(&rig, API_POD, "b",
              "spec: {containers: [{name: c, ports: [{name: http, containerPort: 9090}]}]}");
    rig_manager(&rig);
    rig_settle(&rig);
    assert_string_equal(slices(), "[127.64.0.1+]:8080 [127.64.0.2+]:9090");
    rig_remove(&rig, API_POD, "a");
    rig_settle(&rig);
    assert_string_equal(slices(), "[127.64.0.2+]:9090");
}

static void a_slice_holds_a_hundred(void **state)
{
    struct slices s = {0};
    uint64_t writes;

    service(SELECTS "ports: [{port: 80, targetPort: 80, protocol: TCP}]");
    for (int i = 0; i < 250; i++) {
        char name[20], ip[20];

        snprintf(name, sizeof(name), "p-%d", i);
        snprintf(ip, sizeof(ip), "127.64.%d.%d", i / 200, 1 + i % 200);
        pod(name, ip, true, "");
    }
    rig_manager(&rig);
    rig_settle(&rig);
    port_mem_each(rig.mem, api_kind(API_ENDPOINT_SLICE), on_slice, &s);
    hk_buf_fini(&s.text);
    assert_int_equal(s.n, 3);
    writes = manager_metrics(rig.m)->writes[PORT_UPDATE];
    rig_remove(&rig, API_POD, "p-7");
    rig_settle(&rig);
    /* The Endpoints, and the one slice that had it. */
    assert_int_equal(manager_metrics(rig.m)->writes[PORT_UPDATE] - writes, 2);
}

static void others_endpoints_are_left_alone(void **state)
{
    service(PORTS);
    rig_put(&rig, "{apiVersion: v1, kind: Endpoints, metadata: {name: s, namespace: d}, subsets: "
                  "[{addresses: [{ip: 10.0.0.1}]}]}");
    pod("a", "127.64.0.1", true, "");
    rig_manager(&rig);
    rig_settle(&rig);
    assert_string_equal(slices(), "");
    rig_expect(&rig, API_ENDPOINTS, "s", "subsets", "[{\"addresses\":[{\"ip\":\"10.0.0.1\"}]}]");
}

static void a_service_that_goes_takes_them_along(void **state)
{
    service(SELECTS PORTS);
    pod("a", "127.64.0.1", true, "");
    rig_manager(&rig);
    rig_settle(&rig);
    assert_int_equal(rig_count(&rig, API_ENDPOINTS), 1);
    rig_patch(&rig, API_SERVICE, "s", "spec: {selector: {app: other}}");
    rig_settle(&rig);
    assert_string_equal(slices(), "[]:8080");
    rig_remove(&rig, API_SERVICE, "s");
    rig_settle(&rig);
    assert_int_equal(rig_count(&rig, API_ENDPOINTS), 0);
    assert_int_equal(rig_count(&rig, API_ENDPOINT_SLICE), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(ready_pods_become_endpoints),
        TEST(nothing_is_written_when_nothing_changed),
        TEST(a_pod_that_ends_still_serves),
        TEST(a_service_may_publish_pods_that_are_not_ready),
        TEST(each_pod_says_what_a_name_of_a_port_means),
        TEST(a_slice_holds_a_hundred),
        TEST(others_endpoints_are_left_alone),
        TEST(a_service_that_goes_takes_them_along),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
