// SPDX-License-Identifier: Apache-2.0
// The Service kubernetes is there, leads to the server, and comes back.
#include "controllers/rig_test.h"
#include "controllers/table.h"

static const struct ctl_type *const types[] = {&ctl_service_kubernetes};
static struct rig rig;

static int setup(void **state)
{
    rig_init(&rig, types, HK_LEN(types));
    rig.conf.api_address = "127.0.0.1";
    rig.conf.api_port = 6443;
    return 0;
}

static int teardown(void **state)
{
    rig_fini(&rig);
    return 0;
}

static const struct json *get(enum api_kind_id kind)
{
    const struct api_object *o =
        port_mem_peek(rig.mem, api_kind(kind), HK_STR("default"), HK_STR("kubernetes"));

    return o ? &o->root : NULL;
}

static int64_t endpoint_port(void)
{
    return rig_int(json_item(json_get(get(API_ENDPOINT_SLICE), "ports"), 0), "port");
}

static void it_leads_to_the_server(void **state)
{
    rig_manager(&rig);
    rig_settle(&rig);
    assert_non_null(get(API_ENDPOINTS));
    assert_int_equal(rig_int(json_item(json_at(get(API_SERVICE), "spec.ports"), 0), "port"), 443);
    assert_int_equal(endpoint_port(), 6443);
}

static void it_comes_back_and_follows_the_server(void **state)
{
    rig_manager(&rig);
    rig_settle(&rig);
    assert_true(
        port_mem_remove(rig.mem, api_kind(API_SERVICE), HK_STR("default"), HK_STR("kubernetes")));
    rig_settle(&rig);
    assert_non_null(get(API_SERVICE));
    rig.conf.api_port = 7443; /* the next server has another port */
    rig_restart(&rig);
    rig_settle(&rig);
    assert_int_equal(endpoint_port(), 7443);
}

static void it_is_written_once(void **state)
{
    rig_manager(&rig);
    rig_settle(&rig);
    rig_restart(&rig);
    rig_settle(&rig);
    assert_int_equal(manager_metrics(rig.m)->writes[PORT_UPDATE], 0);
    assert_int_equal(manager_metrics(rig.m)->writes[PORT_CREATE], 0);
}

static const struct json *dns_service(void)
{
    const struct api_object *o =
        port_mem_peek(rig.mem, api_kind(API_SERVICE), HK_STR("kube-system"), HK_STR("kube-dns"));

    return o ? &o->root : NULL;
}

static void the_dns_server_has_a_service(void **state)
{
    rig.conf.dns = "127.128.0.10";
    rig_manager(&rig);
    rig_settle(&rig);
    assert_true(hk_str_is(json_str_at(dns_service(), "spec.clusterIP"), "127.128.0.10"));
    assert_true(
        port_mem_remove(rig.mem, api_kind(API_SERVICE), HK_STR("kube-system"), HK_STR("kube-dns")));
    rig_settle(&rig);
    assert_non_null(dns_service());
    rig.conf.dns = "127.129.0.10"; /* an address cannot be changed */
    rig_restart(&rig);
    rig_settle(&rig);
    assert_true(hk_str_is(json_str_at(dns_service(), "spec.clusterIP"), "127.128.0.10"));
    assert_int_equal(manager_metrics(rig.m)->writes[PORT_UPDATE], 0);
}

static void without_a_dns_server_it_has_none(void **state)
{
    rig_manager(&rig);
    rig_settle(&rig);
    assert_null(dns_service());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_leads_to_the_server, setup, teardown),
        cmocka_unit_test_setup_teardown(it_comes_back_and_follows_the_server, setup, teardown),
        cmocka_unit_test_setup_teardown(it_is_written_once, setup, teardown),
        cmocka_unit_test_setup_teardown(the_dns_server_has_a_service, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_dns_server_it_has_none, setup, teardown),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
