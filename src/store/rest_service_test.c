// SPDX-License-Identifier: Apache-2.0
// Cluster IPs and node ports: given at creation, kept over updates, free again after the deletion,
// and the same after a restart.
#include "store/rest_rig_test.h"

#define NS HK_STR("default")
#define GET(n) .req = {.verb = PORT_GET, .ns = NS, .name = HK_STR(n)}
#define CREATE .req = {.verb = PORT_CREATE, .ns = NS}
#define MERGE(n) .req = {.verb = PORT_PATCH, .ns = NS, .name = HK_STR(n), .patch = PORT_PATCH_MERGE}
#define UPDATE(n) .req = {.verb = PORT_UPDATE, .ns = NS, .name = HK_STR(n)}
#define DELETE(n) .req = {.verb = PORT_DELETE, .ns = NS, .name = HK_STR(n)}
#define SERVICE(n, more) "{'metadata':{'name':'" n "'},'spec':{" more "'ports':[{'port':80}]}}"
#define IP(text) "'clusterIP':'" text "',"
#define TYPE(text) "'type':'" text "',"

/* 127.9.9.0/28 has fourteen addresses, the first for kubernetes. */
static int setup(void **state)
{
    struct rig *g = hk_zalloc(sizeof(*g));

    assert_int_equal(rest_service_range_parse("127.9.9.0/28", &g->services, NULL), 0);
    rig_open(g, true);
    rig_settle(g);
    *state = g;
    return 0;
}

static int teardown(void **state)
{
    rig_close(*state);
    hk_free(*state);
    return 0;
}

static const char *look(struct rig *g, const char *name, const char *path)
{
    const struct port_request req = {
        .verb = PORT_GET, .kind = rig_kind(g, "Service"), .ns = NS, .name = hk_str(name)};
    struct answer a = rig_ask(g, &req);
    const char *text = rig_look(g, a.obj, path);

    answer_fini(&a);
    return text;
}

static void a_range_is_a_network(void **state)
{
    static const struct {
        const char *text;
        int rc;
        uint32_t net;
    } cases[] = {
        {"127.128.0.0/16", 0, 0x7f800000},
        {"127.128.7.7/16", 0, 0x7f800000}, /* the host part does not count */
        {"10.96.0.0/12", 0, 0x0a600000},
        {"127.128.0.0", -HK_EINVAL, 0},
        {"127.128.0.0/29", -HK_EINVAL, 0},
        {"127.128.0.0/7", -HK_EINVAL, 0},
        {"127.128.0/16", -HK_EINVAL, 0},
        {"fd00::/108", -HK_EINVAL, 0},
        {"", -HK_EINVAL, 0},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct rest_service_range r = {0};

        assert_int_equal(rest_service_range_parse(cases[i].text, &r, NULL), cases[i].rc);
        assert_int_equal(r.net, cases[i].net);
    }
}

static void a_service_gets_an_address_and_keeps_it(void **state)
{
    static const struct step created[] = {
        {"Service", CREATE, SERVICE("a", ""), 201,
         .see = {"spec.ipFamilies", "[\"IPv4\"]", "spec.ipFamilyPolicy", "SingleStack",
                 "spec.internalTrafficPolicy", "Cluster"}},
    };
    static const struct step updates[] = {
        {"Service", MERGE("a"), "{'spec':{'sessionAffinity':'ClientIP'}}", 200,
         .see = {"spec.sessionAffinityConfig.clientIP.timeoutSeconds", "10800"}},
        {"Service", UPDATE("a"), SERVICE("a", ""), 200},
        {"Service", MERGE("a"), "{'spec':{'clusterIP':'127.9.9.2'}}", 422, "Invalid",
         "Service \"a\" is invalid: spec.clusterIPs[0]: Invalid value: [\"127.9.9.2\"]: may not "
         "change once set"},
        {"Service", MERGE("a"), "{'spec':{'clusterIP':'None'}}", 422, "Invalid"},
    };
    struct rig *g = *state;
    const char *ip;

    rig_story(g, created);
    ip = look(g, "a", "spec.clusterIP");
    assert_memory_equal(ip, "127.9.9.", 8);
    rig_story(g, updates);
    assert_string_equal(look(g, "a", "spec.clusterIP"), ip);
}

static void no_two_services_share_an_address(void **state)
{
    struct rig *g = *state;
    struct answer answers[14] = {0};

    /* All are under way at once: thirteen addresses are free, none is given twice. */
    for (size_t i = 0; i < HK_LEN(answers); i++) {
        char text[100];

        snprintf(text, sizeof(text), "{'metadata':{'name':'s-%zu'},'spec':{'ports':[{'port':80}]}}",
                 i);
        port_submit(g->port,
                    &(struct port_request){.verb = PORT_CREATE,
                                           .kind = rig_kind(g, "Service"),
                                           .ns = NS,
                                           .body = rig_json(g, text)},
                    (struct port_sink){rig_on_msg, &answers[i]});
    }
    rig_settle(g);
    for (size_t i = 0; i < HK_LEN(answers); i++) {
        assert_int_equal(answers[i].code, i < 13 ? 201 : 500);
        for (size_t k = 0; k < i && i < 13; k++) {
            assert_string_not_equal(rig_look(g, answers[i].obj, "spec.clusterIP"),
                                    rig_look(g, answers[k].obj, "spec.clusterIP"));
        }
    }
    assert_string_equal(answers[13].message, "Internal error occurred: failed to allocate a "
                                             "serviceIP: range is full");
    for (size_t i = 0; i < HK_LEN(answers); i++) {
        answer_fini(&answers[i]);
    }
}

static void a_client_may_name_a_free_address(void **state)
{
    static const struct step steps[] = {
        {"Service", CREATE, SERVICE("a", IP("127.9.9.5")), 201,
         .see = {"spec.clusterIPs", "[\"127.9.9.5\"]"}},
        {"Service", CREATE, SERVICE("b", IP("127.9.9.5")), 422, "Invalid",
         "Service \"b\" is invalid: spec.clusterIPs: Invalid value: [\"127.9.9.5\"]: failed to "
         "allocate IP 127.9.9.5: provided IP is already allocated"},
        {"Service", CREATE, SERVICE("b", IP("127.9.9.1")), 422, "Invalid"},
        {"Service", CREATE, SERVICE("b", IP("10.0.0.1")), 422, "Invalid",
         "Service \"b\" is invalid: spec.clusterIPs: Invalid value: [\"10.0.0.1\"]: failed to "
         "allocate IP 10.0.0.1: the provided IP (10.0.0.1) is not in the valid range. The range "
         "of valid IPs is 127.9.9.0/28"},
        {"Service", CREATE, SERVICE("b", IP("x")), 422, "Invalid",
         "Service \"b\" is invalid: spec.clusterIPs[0]: Invalid value: \"x\": must be a valid IP "
         "address, (e.g. 10.9.8.7 or 2001:db8::ffff)"},
        {"Service", DELETE("a"), NULL, 200},
        {"Service", CREATE, SERVICE("b", IP("127.9.9.5")), 201},
        {"Service", CREATE, SERVICE("kubernetes", ""), 201, .see = {"spec.clusterIP", "127.9.9.1"}},
    };

    rig_story(*state, steps);
}

static void some_services_have_none(void **state)
{
    static const struct step steps[] = {
        {"Service", CREATE, SERVICE("headless", IP("None")), 201,
         .see = {"spec.clusterIPs", "[\"None\"]"}},
        {"Service", CREATE,
         "{'metadata':{'name':'far'},'spec':{'type':'ExternalName','externalName':'x.org'}}", 201,
         .see = {"spec.clusterIP", "-"}},
        {"Service", CREATE,
         "{'metadata':{'name':'odd'},'spec':{'type':'ExternalName','externalName':'x.org',"
         "'clusterIP':'127.9.9.5'}}",
         422, "Invalid",
         "Service \"odd\" is invalid: spec.clusterIPs: Forbidden: may not be set for ExternalName "
         "services"},
        /* One that had an address gives it back with its type. */
        {"Service", CREATE, SERVICE("turns", IP("127.9.9.5")), 201},
        {"Service", MERGE("turns"), "{'spec':{'type':'ExternalName','externalName':'x.org'}}", 200,
         .see = {"spec.clusterIP", "-", "spec.clusterIPs", "-"}},
        {"Service", CREATE, SERVICE("next", IP("127.9.9.5")), 201},
    };

    rig_story(*state, steps);
}

static void node_ports_are_chosen_and_kept(void **state)
{
    static const struct step first[] = {
        {"Service", CREATE, SERVICE("a", TYPE("NodePort")), 201},
    };
    static const struct step rest[] = {
        {"Service", UPDATE("a"), SERVICE("a", TYPE("NodePort")), 200},
        {"Service", CREATE,
         "{'metadata':{'name':'b'},'spec':{'type':'NodePort','ports':[{'port':80,'nodePort':80}]}}",
         422, "Invalid",
         "Service \"b\" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is "
         "not "
         "in the valid range. The range of valid ports is 30000-32767"},
        {"Service", CREATE,
         "{'metadata':{'name':'b'},'spec':{'type':'NodePort','ports':[{'name':'t','port':53,"
         "'nodePort':30053},{'name':'u','port':53,'protocol':'UDP','nodePort':30053}]}}",
         201},
        {"Service", CREATE,
         "{'metadata':{'name':'c'},'spec':{'type':'NodePort','ports':[{'port':53,"
         "'nodePort':30053}]}}",
         422, "Invalid",
         "Service \"c\" is invalid: spec.ports[0].nodePort: Invalid value: 30053: provided port is "
         "already allocated"},
        {"Service", CREATE,
         "{'metadata':{'name':'d'},'spec':{'ports':[{'port':53,'nodePort':30054}]}}", 422,
         "Invalid",
         "Service \"d\" is invalid: spec.ports[0].nodePort: Forbidden: may not be used when `type` "
         "is 'ClusterIP'"},
    };
    static const struct step last[] = {
        {"Service", MERGE("a"), "{'spec':{'type':'ClusterIP'}}", 200,
         .see = {"spec.ports", "[{\"port\":80,\"protocol\":\"TCP\",\"targetPort\":80}]"}},
    };
    struct rig *g = *state;
    const char *ports;

    rig_story(g, first);
    ports = look(g, "a", "spec.ports");
    assert_non_null(strstr(ports, "\"nodePort\":3"));
    rig_story(g, rest);
    assert_string_equal(look(g, "a", "spec.ports"), ports);
    rig_story(g, last);
}

/* The book is made from what is stored. Services of a server without a range get addresses, too. */
static void a_restart_changes_nothing(void **state)
{
    static const struct step before[] = {
        {"Service", CREATE, SERVICE("a", IP("127.9.9.5")), 201},
    };
    static const struct step without[] = {
        {"Service", GET("a"), NULL, 200, .see = {"spec.clusterIP", "127.9.9.5"}},
        {"Service", CREATE, SERVICE("old", ""), 201, .see = {"spec.clusterIP", "-"}},
    };
    static const struct step after[] = {
        {"Service", GET("a"), NULL, 200, .see = {"spec.clusterIP", "127.9.9.5"}},
        {"Service", CREATE, SERVICE("b", IP("127.9.9.5")), 422, "Invalid"},
    };
    struct rig *g = *state;
    struct rest_opts o = {.store = g->store, .clock = &g->clock.clock, .rand = &g->rand};

    rig_story(g, before);
    rest_free(g->rest);
    g->rest = rest_new(&o);
    g->port = rest_port(g->rest);
    rig_story(g, without);
    rest_free(g->rest);
    o.services = g->services;
    g->rest = rest_new(&o);
    g->port = rest_port(g->rest);
    rig_settle(g);
    rig_story(g, after);
    assert_memory_equal(look(g, "old", "spec.clusterIP"), "127.9.9.", 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_range_is_a_network),
        cmocka_unit_test_setup_teardown(a_service_gets_an_address_and_keeps_it, setup, teardown),
        cmocka_unit_test_setup_teardown(no_two_services_share_an_address, setup, teardown),
        cmocka_unit_test_setup_teardown(a_client_may_name_a_free_address, setup, teardown),
        cmocka_unit_test_setup_teardown(some_services_have_none, setup, teardown),
        cmocka_unit_test_setup_teardown(node_ports_are_chosen_and_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(a_restart_changes_nothing, setup, teardown),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
