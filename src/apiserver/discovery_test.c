// SPDX-License-Identifier: Apache-2.0
// Discovery documents as clients read them.
#include "apiserver/discovery.h"

#include "store/rest_rig_test.h"

#define ASK_V2                                                                                     \
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"                        \
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
#define ASK_V2BETA1                                                                                \
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"

static const char widgets[] =
    "{'apiVersion':'apiextensions.k8s.io/v1','kind':'CustomResourceDefinition',"
    "'metadata':{'name':'widgets.example.com'},'spec':{'group':'example.com','scope':'Cluster',"
    "'names':{'plural':'widgets','singular':'widget','kind':'Widget','listKind':'WidgetList',"
    "'shortNames':['w1','w2','w3','w4'],'categories':['all']},'versions':["
    "{'name':'v1alpha1','served':true,'storage':false,"
    "'schema':{'openAPIV3Schema':{'type':'object'}}},"
    "{'name':'v1','served':true,'storage':true,'subresources':{'status':{}},"
    "'schema':{'openAPIV3Schema':{'type':'object'}}},"
    "{'name':'v1beta1','served':false,'storage':false,"
    "'schema':{'openAPIV3Schema':{'type':'object'}}}]}}";

static int begin(void **state)
{
    struct rig *g = hk_zalloc(sizeof(*g));
    static const struct step define[] = {
        {"CustomResourceDefinition", {.verb = PORT_CREATE}, widgets, 201, NULL, NULL, NULL, {NULL}},
    };

    *state = g;
    rig_open(g, false);
    rig_step(g, &define[0], "begin", 0);
    return 0;
}

static int end(void **state)
{
    rig_close(*state);
    hk_free(*state);
    return 0;
}

/* Group versions of other servers. */
static const struct discovery_foreign *foreign;
static uint32_t nforeign;

/* The document at the path, NULL if there is none. */
static const struct json *ask(struct rig *g, const char *path, const char *accept,
                              const char **ret_type)
{
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};
    struct json *v = hk_arena_zalloc(&g->mem, sizeof(*v));
    struct hk_err err = {0};
    const char *type = "application/json";

    const struct discovery_input in = {g->rest, foreign, nforeign};
    const bool answered = discovery_answer(&in, hk_str(path), hk_str(accept), &body, &type);
    if (ret_type) {
        *ret_type = type;
    }
    if (!answered) {
        assert_int_equal(body.len, 0);
        return NULL;
    }
    if (json_parse(hk_arena_str(&g->mem, hk_buf_str(&body)), JSON_DUP_REJECT, &g->mem, v, &err) <
        0) {
        fail_msg("%s: %s", path, err.text);
    }
    return v;
}

/* The element of a list whose member has that value. */
static const struct json *pick(const struct json *list, const char *key, const char *value)
{
    for (uint32_t k = 0; json_is(list, JSON_ARRAY) && k < list->len; k++) {
        if (hk_str_is(json_str(json_at(&list->items[k], key), HK_STR("")), value)) {
            return &list->items[k];
        }
    }
    return NULL;
}

static void assert_json(const struct json *v, const char *want)
{
    HK_AUTO(hk_buf_fini) struct hk_buf have = {0};

    assert_non_null(v);
    json_write(v, &have);
    assert_string_equal(have.data, want);
}

static void answers_known_paths_alone(void **state)
{
    static const struct {
        const char *path, *kind;
    } cases[] = {
        {"/api", "APIVersions"},
        {"/apis", "APIGroupList"},
        {"/api/v1", "APIResourceList"},
        {"/apis/apps", "APIGroup"},
        {"/apis/apps/v1", "APIResourceList"},
        {"/apis/example.com/v1", "APIResourceList"},
        {"/apis/example.com/v1beta1", NULL}, /* not served */
        {"/api/v2", NULL},
        {"/apis/nobody", NULL},
        {"/apis/apps/v9", NULL},
        {"/apis/apps/v1/deployments", NULL},
        {"/apis//v1", NULL},
        {"/apix", NULL},
        {"/", NULL},
        {"", NULL},
    };

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        const struct json *v = ask(*state, cases[k].path, "", NULL);
        const struct hk_str have = json_str(json_get(v, "kind"), HK_STR(""));
        if (!hk_str_is(have, cases[k].kind ? cases[k].kind : "")) {
            fail_msg("%s: want %s, have %.*s", cases[k].path, cases[k].kind, HK_FMT(have));
        }
    }
}

static void describes_resources(void **state)
{
    const struct json *core = json_get(ask(*state, "/api/v1", "", NULL), "resources");
    const struct json *apps = json_get(ask(*state, "/apis/apps/v1", "", NULL), "resources");
    const struct json *own = json_get(ask(*state, "/apis/example.com/v1", "", NULL), "resources");

    assert_json(pick(core, "name", "pods"),
                "{\"name\":\"pods\",\"singularName\":\"pod\",\"namespaced\":true,\"kind\":\"Pod\","
                "\"verbs\":[\"create\",\"delete\",\"deletecollection\",\"get\",\"list\",\"patch\","
                "\"update\",\"watch\"],\"shortNames\":[\"po\"],\"categories\":[\"all\"]}");
    assert_json(json_get(pick(core, "name", "namespaces"), "verbs"),
                "[\"create\",\"delete\",\"get\",\"list\",\"patch\",\"update\",\"watch\"]");
    assert_json(json_get(pick(core, "name", "bindings"), "verbs"), "[\"create\"]");
    assert_json(pick(core, "name", "pods/eviction"),
                "{\"name\":\"pods/eviction\",\"singularName\":\"\",\"namespaced\":true,"
                "\"group\":\"policy\",\"version\":\"v1\",\"kind\":\"Eviction\","
                "\"verbs\":[\"create\"]}");
    assert_non_null(pick(core, "name", "pods/log"));
    assert_null(pick(core, "name", "configmaps/status"));
    assert_json(pick(apps, "name", "deployments/scale"),
                "{\"name\":\"deployments/scale\",\"singularName\":\"\",\"namespaced\":true,"
                "\"group\":\"autoscaling\",\"version\":\"v1\",\"kind\":\"Scale\","
                "\"verbs\":[\"get\",\"patch\",\"update\"]}");
    assert_json(json_get(pick(own, "name", "widgets"), "shortNames"),
                "[\"w1\",\"w2\",\"w3\",\"w4\"]");
    assert_json(json_get(pick(own, "name", "widgets"), "categories"), "[\"all\"]");
    assert_non_null(pick(own, "name", "widgets/status"));
}

static uint32_t place(const struct json *groups, const char *name)
{
    const struct json *g = pick(groups, "name", name);

    assert_non_null(g);
    return (uint32_t)(g - groups->items);
}

static void orders_groups_and_versions(void **state)
{
    const struct json *groups = json_get(ask(*state, "/apis", "", NULL), "groups");
    const struct json *own = pick(groups, "name", "example.com");

    assert_true(place(groups, "apps") < place(groups, "batch"));
    assert_true(place(groups, "batch") < place(groups, "batch.volcano.sh"));
    /* both have podgroups, and kubectl takes the first */
    assert_true(place(groups, "scheduling.volcano.sh") < place(groups, "scheduling.k8s.io"));
    assert_true(place(groups, "resource.k8s.io") < place(groups, "example.com"));
    assert_null(pick(groups, "name", ""));
    assert_json(json_get(own, "versions"),
                "[{\"groupVersion\":\"example.com/v1\",\"version\":\"v1\"},"
                "{\"groupVersion\":\"example.com/v1alpha1\",\"version\":\"v1alpha1\"}]");
    assert_json(json_at(own, "preferredVersion.version"), "\"v1\"");
}

static void aggregates_when_asked(void **state)
{
    static const struct {
        const char *accept, *version;
    } cases[] = {
        {ASK_V2, "v2"},
        {ASK_V2BETA1, "v2beta1"},
        {"application/json", NULL},
        {"*/*", NULL},
        {"", NULL},
        {"application/json, " ASK_V2, NULL}, /* the first one wins */
        {"application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList", NULL},
        {"application/json; as=APIGroupDiscoveryList; v=v2; g=apidiscovery.k8s.io", "v2"},
    };

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        HK_AUTO(hk_buf_fini) struct hk_buf want = {0};
        const char *type;
        const struct json *v = ask(*state, "/apis", cases[k].accept, &type);
        hk_buf_addf(&want, cases[k].version ? "apidiscovery.k8s.io/%s" : "v1", cases[k].version);
        const struct hk_str have = json_str(json_get(v, "apiVersion"), HK_STR(""));
        if (!hk_str_eq(have, hk_buf_str(&want))) {
            fail_msg("%s: want %s, have %.*s", cases[k].accept, want.data, HK_FMT(have));
        }
        assert_int_equal(strcmp(type, "application/json") != 0, cases[k].version != NULL);
    }
}

static void aggregated_holds_everything(void **state)
{
    const char *type;
    const struct json *core = json_get(ask(*state, "/api", ASK_V2, &type), "items");
    const struct json *rest = json_get(ask(*state, "/apis", ASK_V2, NULL), "items");

    assert_string_equal(type, "application/json;g=apidiscovery.k8s.io;v=v2;"
                              "as=APIGroupDiscoveryList");
    assert_int_equal(core->len, 1);
    const struct json *v1 = json_item(json_get(&core->items[0], "versions"), 0);
    const struct json *pods = pick(json_get(v1, "resources"), "resource", "pods");
    assert_json(json_get(v1, "freshness"), "\"Current\"");
    assert_json(json_get(pods, "responseKind"),
                "{\"group\":\"\",\"version\":\"\",\"kind\":\"Pod\"}");
    assert_json(json_get(pods, "scope"), "\"Namespaced\"");
    assert_json(pick(json_get(pods, "subresources"), "subresource", "eviction"),
                "{\"subresource\":\"eviction\",\"responseKind\":{\"group\":\"policy\","
                "\"version\":\"v1\",\"kind\":\"Eviction\"},"
                "\"verbs\":[\"create\"]}");
    const struct json *own = pick(rest, "metadata.name", "example.com");
    assert_json(json_get(json_item(json_get(own, "versions"), 0), "version"), "\"v1\"");
    assert_non_null(pick(rest, "metadata.name", "authorization.k8s.io"));
}

static void lists_what_other_servers_serve(void **state)
{
    struct rig *g = *state;
    struct hk_err err = {0};
    struct json list;
    char text[] = "[{\"name\":\"salmons\",\"singularName\":\"salmon\",\"namespaced\":true,"
                  "\"kind\":\"Salmon\",\"verbs\":[\"get\"],\"shortNames\":[\"sal\"]},"
                  "{\"name\":\"salmons/status\",\"kind\":\"Salmon\",\"verbs\":[\"get\"]},"
                  "{\"name\":\"salmonsx/status\",\"kind\":\"No\",\"verbs\":[]},7]";
    const char *type;

    assert_int_equal(json_parse(hk_str(text), 0, &g->mem, &list, &err), 0);
    const struct discovery_foreign all[] = {{"fish.io", "v1", &list, false},
                                            {"fish.io", "v1beta1", NULL, true},
                                            {"apps", "v1", NULL, true}};
    foreign = all;
    nforeign = HK_LEN(all);
    assert_json(ask(g, "/apis/fish.io", "", NULL),
                "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\",\"name\":\"fish.io\",\"versions\":["
                "{\"groupVersion\":\"fish.io/v1\",\"version\":\"v1\"},"
                "{\"groupVersion\":\"fish.io/v1beta1\",\"version\":\"v1beta1\"}],"
                "\"preferredVersion\":{\"groupVersion\":\"fish.io/v1\",\"version\":\"v1\"}}");
    assert_null(ask(g, "/apis/fish.io/v1", "", NULL)); /* its server answers */
    assert_null(ask(g, "/apis/apps/v1", "", NULL));
    assert_non_null(pick(json_get(ask(g, "/apis", "", NULL), "groups"), "name", "fish.io"));
    const struct json *doc = ask(g, "/apis", ASK_V2, &type);
    assert_json(json_get(pick(json_get(doc, "items"), "metadata.name", "fish.io"), "versions"),
                "[{\"version\":\"v1\",\"freshness\":\"Current\",\"resources\":[{\"resource\":"
                "\"salmons\",\"responseKind\":{\"group\":\"\",\"version\":\"\",\"kind\":"
                "\"Salmon\"},\"scope\":\"Namespaced\",\"singularResource\":\"salmon\",\"verbs\":"
                "[\"get\"],\"shortNames\":[\"sal\"],\"categories\":[],\"subresources\":["
                "{\"subresource\":\"status\",\"responseKind\":{\"group\":\"\",\"version\":\"\","
                "\"kind\":\"Salmon\"},\"acceptedTypes\":[],\"verbs\":[\"get\"]}]}]},"
                "{\"version\":\"v1beta1\",\"freshness\":\"Stale\",\"resources\":[]}]");
    assert_json(json_get(pick(json_get(doc, "items"), "metadata.name", "apps"), "versions"),
                "[{\"version\":\"v1\",\"freshness\":\"Stale\",\"resources\":[]}]");
    foreign = NULL;
    nforeign = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(answers_known_paths_alone, begin, end),
        cmocka_unit_test_setup_teardown(describes_resources, begin, end),
        cmocka_unit_test_setup_teardown(orders_groups_and_versions, begin, end),
        cmocka_unit_test_setup_teardown(aggregates_when_asked, begin, end),
        cmocka_unit_test_setup_teardown(aggregated_holds_everything, begin, end),
        cmocka_unit_test_setup_teardown(lists_what_other_servers_serve, begin, end),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
