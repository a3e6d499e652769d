// SPDX-License-Identifier: Apache-2.0
// Quotas: usage follows the changes in the namespace, and two creates cannot share the last place.
#include "store/rest_story_test.h"

#define POD(n, cpu)                                                                                \
    "{'metadata':{'name':'" n "'},'spec':{'nodeName':'n1','containers':[{'name':'c','image':'i',"  \
    "'resources':{'requests':{'cpu':'" cpu "'}}}]}}"
#define USED(text) .see = {"status.used", text}

static void test_usage_follows_the_objects(void **state)
{
    static const struct step steps[] = {
        {"Pod", CREATE, POD("before", "500m"), 201},
        {"ResourceQuota", CREATE,
         "{'metadata':{'name':'q'},'spec':{'hard':{'pods':'3','cpu':'2','count/configmaps':'9'}}}",
         201},
        {"ResourceQuota", GET("q"), NULL, 200,
         .see = {"status.hard", "{\"pods\":\"3\",\"cpu\":\"2\",\"count/configmaps\":\"9\"}",
                 "status.used", "{\"pods\":\"1\",\"cpu\":\"500m\",\"count/configmaps\":\"0\"}"}},
        {"Pod", CREATE, POD("p", "1"), 201},
        {"ConfigMap", CREATE, "{'metadata':{'name':'m'}}", 201},
        {"ResourceQuota", GET("q"), NULL, 200,
         USED("{\"pods\":\"2\",\"cpu\":\"1500m\",\"count/configmaps\":\"1\"}")},
        {"Pod", CREATE, POD("large", "501m"), 403, "Forbidden",
         "pods \"large\" is forbidden: exceeded quota: q, requested: cpu=501m, used: cpu=1500m, "
         "limited: cpu=2"},
        {"Pod", STATUS(PORT_PATCH, "p"), "{'status':{'phase':'Succeeded'}}", 200},
        {"ResourceQuota", GET("q"), NULL, 200,
         USED("{\"pods\":\"1\",\"cpu\":\"500m\",\"count/configmaps\":\"1\"}")},
        {"Pod", DELETE("p"), NULL, 200},
        {"ConfigMap", DELETE("m"), NULL, 200},
        {"ResourceQuota", GET("q"), NULL, 200,
         USED("{\"pods\":\"1\",\"cpu\":\"500m\",\"count/configmaps\":\"0\"}")},
    };

    rig_story(*state, steps);
}

static void test_usage_follows_the_spec(void **state)
{
    static const struct step steps[] = {
        {"ResourceQuota", CREATE, "{'metadata':{'name':'q'},'spec':{'hard':{'pods':'3'}}}", 201},
        {"Pod", CREATE, POD("p", "1"), 201},
        {"ResourceQuota", MERGE("q"), "{'spec':{'hard':{'pods':null,'requests.cpu':'4'}}}", 200},
        {"ResourceQuota", GET("q"), NULL, 200,
         .see = {"status.hard", "{\"requests.cpu\":\"4\"}", "status.used",
                 "{\"requests.cpu\":\"1\"}"}},
        /* values that others write into the status do not stay */
        {"ResourceQuota", STATUS(PORT_PATCH, "q"), "{'status':{'used':{'requests.cpu':'0'}}}", 200},
        {"ResourceQuota", GET("q"), NULL, 200, USED("{\"requests.cpu\":\"1\"}")},
    };

    rig_story(*state, steps);
}

static void test_an_ending_pod_counts_until_its_grace_is_over(void **state)
{
    static const struct step before[] = {
        {"ResourceQuota", CREATE, "{'metadata':{'name':'q'},'spec':{'hard':{'pods':'3'}}}", 201},
        {"Pod", CREATE, POD("p", "1"), 201},
        {"Pod", DELETE("p"), NULL, 200},
        {"ResourceQuota", GET("q"), NULL, 200, USED("{\"pods\":\"1\"}")},
    };
    static const struct step after[] = {
        {"ResourceQuota", GET("q"), NULL, 200, USED("{\"pods\":\"0\"}")},
    };
    struct rig *g = *state;

    rig_story(g, before);
    rig_sleep(g, 40);
    rig_story(g, after);
}

static uint64_t quota_rv(struct rig *g)
{
    const struct port_request req = {
        .verb = PORT_GET, .kind = rig_kind(g, "ResourceQuota"), .ns = NS, .name = HK_STR("q")};
    struct answer a = rig_ask(g, &req);
    const uint64_t rv = a.rv;

    answer_fini(&a);
    return rv;
}

static void test_nothing_is_written_when_nothing_changed(void **state)
{
    static const struct step before[] = {
        {"ResourceQuota", CREATE, "{'metadata':{'name':'q'},'spec':{'hard':{'pods':'3'}}}", 201},
        {"Pod", CREATE, POD("p", "1"), 201},
    };
    static const struct step after[] = {
        {"Pod", MERGE("p"), "{'metadata':{'labels':{'a':'b'}}}", 200},
        {"ConfigMap", CREATE, "{'metadata':{'name':'m'}}", 201},
    };
    struct rig *g = *state;

    rig_story(g, before);
    const uint64_t rv = quota_rv(g);
    rig_story(g, after);
    rig_sleep(g, 600);
    assert_int_equal(quota_rv(g), rv);
}

static void test_creates_of_one_commit_share_the_room(void **state)
{
    static const struct step quota = {
        "ResourceQuota", CREATE, "{'metadata':{'name':'q'},'spec':{'hard':{'pods':'2'}}}", 201};
    static const char *const bodies[] = {POD("a", "1"), POD("b", "1"), POD("c", "1")};
    struct rig *g = *state;
    struct answer answers[3] = {0};

    rig_step(g, &quota, __func__, 0);
    for (size_t i = 0; i < HK_LEN(bodies); i++) {
        const struct port_request req = {.verb = PORT_CREATE,
                                         .kind = rig_kind(g, "Pod"),
                                         .ns = NS,
                                         .body = rig_json(g, bodies[i])};
        port_submit(g->port, &req, (struct port_sink){rig_on_msg, &answers[i]});
    }
    rig_settle(g);
    assert_int_equal(answers[0].code, 201);
    assert_int_equal(answers[1].code, 201);
    assert_int_equal(answers[2].code, 403);
    assert_string_equal(answers[2].message, "pods \"c\" is forbidden: exceeded quota: q, "
                                            "requested: pods=1, used: pods=2, limited: pods=2");
    for (size_t i = 0; i < HK_LEN(answers); i++) {
        answer_fini(&answers[i]);
    }
}

/* The usage is counted from the objects again, and corrects the status. */
static void test_usage_survives_a_restart(void **state)
{
    static const struct step before[] = {
        {"ResourceQuota", CREATE, "{'metadata':{'name':'q'},'spec':{'hard':{'pods':'2'}}}", 201},
        {"Pod", CREATE, POD("p", "1"), 201},
    };
    static const struct step after[] = {
        {"ResourceQuota", GET("q"), NULL, 200, USED("{\"pods\":\"1\"}")},
        {"Pod", CREATE, POD("r", "1"), 201},
        {"Pod", CREATE, POD("s", "1"), 403},
    };
    struct rig *g = *state;
    const struct rest_opts ro = {.store = g->store, .clock = &g->clock.clock, .rand = &g->rand};

    rig_story(g, before);
    rest_free(g->rest);
    g->rest = rest_new(&ro);
    g->port = rest_port(g->rest);
    rig_story(g, after);
}

/* ---- without a quota ---- */

static void test_the_objects_of_a_kind_in_a_namespace_are_limited(void **state)
{
    static const struct step steps[] = {
        {"ConfigMap", CREATE, "{'metadata':{'name':'a'}}", 201},
        {"ConfigMap", CREATE, "{'metadata':{'name':'b'}}", 201},
        {"ConfigMap", CREATE, "{'metadata':{'name':'c'}}", 403, "Forbidden",
         "configmaps \"c\" is forbidden: namespace \"default\" holds 2 configmaps, and at most 2 "
         "are "
         "allowed (--max-objects-per-namespace); delete some of them first"},
        {"Secret", CREATE, "{'metadata':{'name':'c'}}", 201},
        {"ConfigMap", MERGE("a"), "{'data':{'k':'v'}}", 200},
        {"ConfigMap", DELETE("a"), NULL, 200},
        {"ConfigMap", CREATE, "{'metadata':{'name':'c'}}", 201},
        {"ConfigMap", CREATE, "{'metadata':{'name':'d'}}", 403, "Forbidden"},
        {"ConfigMap", DELETE("b"), NULL, 200},
        {"ConfigMap", DELETE("c"), NULL, 200},
        {"ConfigMap", CREATE, "{'metadata':{'name':'d'}}", 201},
    };
    struct rig g = {.max_per_namespace = 2};

    rig_open(&g, true);
    rig_story(&g, steps);
    rig_close(&g);
}

/* Writes count before they are durable. */
static void test_creations_under_way_count(void **state)
{
    struct rig g = {.max_per_namespace = 2};
    struct answer answers[4] = {0};
    uint32_t made = 0, refused = 0;

    rig_open(&g, true);
    for (size_t i = 0; i < HK_LEN(answers); i++) {
        char text[64];
        snprintf(text, sizeof(text), "{'metadata':{'name':'m-%zu'}}", i);
        const struct port_request req = {.verb = PORT_CREATE,
                                         .kind = rig_kind(&g, "ConfigMap"),
                                         .ns = HK_STR("default"),
                                         .body = rig_json(&g, text)};
        port_submit(g.port, &req, (struct port_sink){rig_on_msg, &answers[i]});
    }
    rig_settle(&g);
    for (size_t i = 0; i < HK_LEN(answers); i++) {
        made += answers[i].code == 201;
        refused += answers[i].code == 403;
        answer_fini(&answers[i]);
    }
    assert_int_equal(made, 2);
    assert_int_equal(refused, 2);
    rig_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(usage_follows_the_objects),
        TEST(usage_follows_the_spec),
        TEST(an_ending_pod_counts_until_its_grace_is_over),
        TEST(nothing_is_written_when_nothing_changed),
        TEST(creates_of_one_commit_share_the_room),
        TEST(usage_survives_a_restart),
        cmocka_unit_test(test_the_objects_of_a_kind_in_a_namespace_are_limited),
        cmocka_unit_test(test_creations_under_way_count),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
