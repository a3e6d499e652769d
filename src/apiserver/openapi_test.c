// SPDX-License-Identifier: Apache-2.0
// OpenAPI documents: what kubectl looks for before it writes.
#include "apiserver/openapi.h"

#include "store/rest_rig_test.h"

static int begin(void **state)
{
    struct rig *g = hk_zalloc(sizeof(*g));
    static const struct step define = {
        "CustomResourceDefinition",
        {.verb = PORT_CREATE},
        "{'apiVersion':'apiextensions.k8s.io/v1','kind':'CustomResourceDefinition',"
        "'metadata':{'name':'widgets.example.com'},'spec':{'group':'example.com',"
        "'scope':'Namespaced','names':{'plural':'widgets','singular':'widget','kind':'Widget'},"
        "'versions':[{'name':'v1','served':true,'storage':true,'schema':{'openAPIV3Schema':"
        "{'type':'object','properties':{'spec':{'type':'object'}}}}}]}}",
        201,
        NULL,
        NULL,
        NULL,
        {NULL}};

    *state = g;
    rig_open(g, false);
    rig_step(g, &define, "begin", 0);
    return 0;
}

static int end(void **state)
{
    rig_close(*state);
    hk_free(*state);
    return 0;
}

static const struct json *ask(struct rig *g, const char *path)
{
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};
    const char *type = "application/json";
    struct json *v = hk_arena_zalloc(&g->mem, sizeof(*v));
    struct hk_err err = {0};

    if (!openapi_answer(g->rest, hk_str(path), HK_STR("application/json"), &body, &type)) {
        return NULL;
    }
    if (json_parse(hk_arena_str(&g->mem, hk_buf_str(&body)), JSON_DUP_REJECT, &g->mem, v, &err) <
        0) {
        fail_msg("%s: %s", path, err.text);
    }
    return v;
}

static void v2_is_empty_in_binary(void **state)
{
    struct rig *g = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};
    const char *type = "application/json";

    assert_true(openapi_answer(
        g->rest, HK_STR("/openapi/v2"),
                        HK_STR("application/com.github.proto-openapi.spec.v2@v1.0+protobuf"), &body,
                               &type));
    assert_int_equal(body.len, 0);
    assert_string_equal(type, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
    assert_true(hk_str_is(json_str(json_get(ask(g, "/openapi/v2"), "swagger"), HK_STR("")), "2.0"));
}

static void index_leads_to_documents(void **state)
{
    const struct json *paths = json_get(ask(*state, "/openapi/v3"), "paths");

    assert_non_null(json_get(paths, "api/v1"));
    assert_non_null(json_get(paths, "apis/apps/v1"));
    assert_non_null(json_get(paths, "apis/example.com/v1"));
    for (uint32_t k = 0; k < paths->len; k++) {
        const struct hk_str url =
            json_str(json_get(&paths->members[k].value, "serverRelativeURL"), HK_STR(""));
        HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
        hk_buf_addstr(&path, url);
        if (!ask(*state, hk_buf_str(&path).s)) {
            fail_msg("%s is listed but not there", path.data);
        }
    }
    assert_null(ask(*state, "/openapi/v3/apis/nobody/v1"));
    assert_null(ask(*state, "/openapi/v4"));
}

static void patches_take_field_validation(void **state)
{
    const struct json *doc = ask(*state, "/openapi/v3/api/v1");
    const struct json *patch = json_get(
        json_get(json_get(doc, "paths"), "/api/v1/namespaces/{namespace}/pods/{name}"), "patch");
    const struct json *params = json_get(patch, "parameters");
    const struct json *gvk = json_get(patch, "x-kubernetes-group-version-kind");

    assert_true(
        hk_str_is(json_str(json_get(json_item(params, 1), "name"), HK_STR("")), "fieldValidation"));
    assert_true(hk_str_is(json_str(json_get(gvk, "kind"), HK_STR("")), "Pod"));
    assert_non_null(json_get(json_get(doc, "paths"), "/api/v1/nodes/{name}"));
}

static void definitions_lend_their_schema(void **state)
{
    const struct json *doc = ask(*state, "/openapi/v3/apis/example.com/v1");
    const struct json *schema =
        json_get(json_at(doc, "components.schemas"), "example.com.v1.Widget");
    const struct json *gvk = json_item(json_get(schema, "x-kubernetes-group-version-kind"), 0);

    assert_true(hk_str_is(json_str(json_at(schema, "properties.spec.type"), HK_STR("")), "object"));
    assert_true(hk_str_is(json_str(json_get(gvk, "group"), HK_STR("")), "example.com"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(v2_is_empty_in_binary, begin, end),
        cmocka_unit_test_setup_teardown(index_leads_to_documents, begin, end),
        cmocka_unit_test_setup_teardown(patches_take_field_validation, begin, end),
        cmocka_unit_test_setup_teardown(definitions_lend_their_schema, begin, end),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
