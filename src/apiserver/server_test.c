// SPDX-License-Identifier: Apache-2.0
// The server over a socket: verbs and their codes, Status bodies, lists, credentials.
#include "apiserver/server_rig_test.h"

#include "codec/yaml.h"

static void test_an_object_is_created_changed_and_deleted(void **state)
{
    struct fixture *f = *state;

    make(f, "a");
    assert_true(hk_str_contains(hk_buf_str(&f->in), "Content-Type: application/json"));
    expect(f, "GET", CONFIGMAPS "/a", NULL, 200, "\"data\":{\"k\":\"v\"}");
    expect(f, "POST", CONFIGMAPS, "{\"metadata\":{\"name\":\"a\"}}", 409, "\"AlreadyExists\"");
    expect(f, "PUT", CONFIGMAPS "/a", "{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"w\"}}", 200,
           "\"data\":{\"k\":\"w\"}");
    expect(f, "GET", CONFIGMAPS, NULL, 200, "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\"");
    expect(f, "DELETE", CONFIGMAPS "/a", NULL, 200, "\"status\":\"Success\"");
    expect(f, "GET", CONFIGMAPS "/a", NULL, 404, "configmaps \\\"a\\\" not found");
}

static void test_patches_go_by_their_content_type(void **state)
{
    struct fixture *f = *state;

    make(f, "a");
    assert_int_equal(call(f, "PATCH", CONFIGMAPS "/a",
                          TOKEN "Content-Type: application/merge-patch+json\r\n",
                          "{\"data\":{\"k\":null,\"n\":\"1\"}}"),
                     200);
    assert_true(hk_str_contains(hk_buf_str(&f->in), "\"data\":{\"n\":\"1\"}"));
    assert_int_equal(call(f, "PATCH", CONFIGMAPS "/a",
                          TOKEN "Content-Type: application/json-patch+json; charset=utf-8\r\n",
                          "[{\"op\":\"add\",\"path\":\"/data/m\",\"value\":\"2\"}]"),
                     200);
    assert_true(hk_str_contains(hk_buf_str(&f->in), "\"m\":\"2\""));
    assert_int_equal(
        call(f, "PATCH", CONFIGMAPS "/a", TOKEN "Content-Type: application/json\r\n", "{}"), 415);
    assert_int_equal(call(f, "PATCH", CONFIGMAPS "/a?force=true",
                          TOKEN "Content-Type: application/merge-patch+json\r\n", "{}"),
                     422);
}

static void test_yaml_is_read_and_written(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(call(f, "POST", CONFIGMAPS,
                          TOKEN "Content-Type: application/yaml\r\nAccept: application/yaml\r\n",
                          "metadata:\n  name: yam\ndata:\n  k: \"1\"\n"),
                     201);
    assert_true(hk_str_contains(hk_buf_str(&f->in), "kind: ConfigMap\n"));
}

/* ---- long lists ---- */

enum { LONG_OBJECTS = 12, LONG_BYTES = 40000 };

/* The body of the answer, joined if it was chunked. */
static void answer_body(const struct hk_buf *in, struct hk_buf *out)
{
    const char *at = strstr(in->data, "\r\n\r\n") + 4;

    hk_buf_clear(out);
    if (!strstr(in->data, "Transfer-Encoding: chunked")) {
        hk_buf_adds(out, at);
        return;
    }
    for (size_t n; (n = strtoul(at, NULL, 16)) > 0; at += n + 2) {
        at = strstr(at, "\r\n") + 2;
        hk_buf_add(out, at, n);
    }
}

static void make_large(struct fixture *f, uint32_t i)
{
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};

    hk_buf_addf(&body, "{\"metadata\":{\"name\":\"m-%02u\"},\"data\":{\"none\":\"\",\"k\":\"", i);
    for (uint32_t k = 0; k < LONG_BYTES / 10; k++) {
        hk_buf_adds(&body, k % 10 == 9 ? "line: [1]\\n" : "123456789 ");
    }
    hk_buf_adds(&body, "\"}}");
    expect(f, "POST", CONFIGMAPS, body.data, 201, "\"resourceVersion\":");
}

/* A long list as indented JSON or YAML has the same contents as its compact form and is written in
 * slices; a counter shows how much was processed in each. */
static void test_long_lists_for_people_come_in_slices(void **state)
{
    static const struct {
        const char *target, *form, *type;
        bool yaml;
    } cases[] = {
        {CONFIGMAPS "?pretty=true", "application/json", "Content-Type: application/json", false},
        {CONFIGMAPS, "application/yaml", "Content-Type: application/yaml", true},
        {CONFIGMAPS "?pretty=true&includeObject=Object",
         "application/json;as=Table;g=meta.k8s.io;v=v1", "Content-Type: application/json", false},
        {CONFIGMAPS "?pretty=true",
         "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
         "Content-Type: application/json", false},
    };
    HK_AUTO(hk_buf_fini) struct hk_buf got = {0}, want = {0}, compact = {0}, headers = {0};
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct fixture *f = *state;
    struct counters *c = &f->server->counters;

    for (uint32_t i = 0; i < LONG_OBJECTS; i++) {
        make_large(f, i);
    }
    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct json v;
        hk_buf_clear(&headers);
        hk_buf_addf(&headers, TOKEN "Accept: %s\r\n", cases[i].yaml ? "*/*" : cases[i].form);
        hk_buf_clear(&compact);
        hk_buf_adds(&compact, cases[i].target);
        char *pretty = strstr(compact.data, "=true");
        if (pretty) {
            memcpy(pretty, "=0&x=", strlen("=true"));
        }
        assert_int_equal(call(f, "GET", compact.data, headers.data, NULL), 200);
        answer_body(&f->in, &compact);
        assert_int_equal(json_parse(hk_buf_str(&compact), 0, &mem, &v, NULL), 0);
        hk_buf_clear(&want);
        if (cases[i].yaml) {
            yaml_write(&v, &want);
        } else {
            json_write_pretty(&v, 2, &want);
        }
        hk_buf_clear(&headers);
        hk_buf_addf(&headers, TOKEN "Accept: %s\r\n", cases[i].form);
        c->list_slices = c->list_slice_bytes_max = 0;
        assert_int_equal(call(f, "GET", cases[i].target, headers.data, NULL), 200);
        assert_non_null(strstr(f->in.data, cases[i].type));
        answer_body(&f->in, &got);
        assert_string_equal(got.data, want.data);
        assert_in_range(c->list_slice_bytes_max, LONG_BYTES, 64 * 1024 + LONG_BYTES + 1000);
        assert_in_range(c->list_slices, LONG_OBJECTS / 3, 100 * LONG_OBJECTS);
    }
}

static void test_refusals_have_kubernetes_words(void **state)
{
    static const struct {
        const char *method, *target, *body;
        int code;
        const char *want;
    } cases[] = {
        {"GET", "/nothing", NULL, 404, "the server could not find the requested resource"},
        {"GET", "/api/v1/unknowns", NULL, 404, "the server could not find the requested resource"},
        {"GET", "/api/v1/configmaps/a", NULL, 404, "could not find the requested resource"},
        {"GET", "/api/v1/namespaces/x/nodes", NULL, 404, "could not find the requested resource"},
        {"GET", CONFIGMAPS "/a/status", NULL, 404, "could not find the requested resource"},
        {"GET", CONFIGMAPS "/a%2Fb", NULL, 400, "invalid path segment"},
        {"GET", CONFIGMAPS "?limit=x", NULL, 400, "invalid limit"},
        {"GET", CONFIGMAPS "?resourceVersion=x", NULL, 400, "invalid resource version"},
        {"GET", CONFIGMAPS "?resourceVersionMatch=Exact", NULL, 422,
         "forbidden unless resourceVersion is provided"},
        {"GET", CONFIGMAPS "?sendInitialEvents=true", NULL, 422, "forbidden for list"},
        {"GET", CONFIGMAPS "?watch=1&sendInitialEvents=true", NULL, 422, "NotOlderThan"},
        {"POST", "/api/v1/configmaps", "{}", 405, "the server does not allow this method"},
        {"POST", CONFIGMAPS, "{", 400, "the object provided is unrecognized"},
        {"POST", CONFIGMAPS, "[]", 400, "it is a JSON array"},
        {"POST", CONFIGMAPS, "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}", 400,
         "Pod in version \\\"v1\\\" cannot be handled as a ConfigMap"},
        {"POST", CONFIGMAPS, "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v2\"}", 400,
         "the API version in the data (v2) does not match the expected API version (v1)"},
        {"POST", CONFIGMAPS "?dryRun=Some", "{}", 422, "supported values: \\\"All\\\""},
        {"POST", CONFIGMAPS "?fieldValidation=Maybe", "{}", 422, "fieldValidation"},
        {"POST", CONFIGMAPS "?fieldValidation=Strict",
         "{\"metadata\":{\"name\":\"a\",\"name\":\"b\"},\"odd\":[{\"x\":1,\"x\":2}]}", 400,
         "ConfigMap in version \\\"v1\\\" cannot be handled as a ConfigMap: strict decoding error: "
         "unknown field \\\"odd\\\", duplicate field \\\"metadata.name\\\", duplicate field "
         "\\\"odd[0].x\\\""},
        {"PUT", CONFIGMAPS, "{}", 405, "does not allow this method"},
        {"BREW", CONFIGMAPS, NULL, 405, "does not allow this method"},
        {"DELETE", CONFIGMAPS "/a?propagationPolicy=Sideways", NULL, 422, "Unsupported value"},
        {"DELETE", CONFIGMAPS "/a", "{\"propagationPolicy\":\"Orphan\",\"orphanDependents\":true}",
         422, "cannot be both set"},
        {"DELETE", CONFIGMAPS "/a", "{\"dryRun\":[\"Some\"]}", 422,
         "\"group\":\"meta.k8s.io\",\"kind\":\"DeleteOptions\",\"causes\":[{\"reason\":"
         "\"FieldValueNotSupported\",\"message\":\"Unsupported value: [\\\"Some\\\"]"},
        {"GET", "/", NULL, 200, "{\"paths\":[\"/api\",\"/api/v1\",\"/apis\","},
        {"POST", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
         "{\"metadata\":{\"name\":\"h\"},\"spec\":{\"maxReplicas\":1,\"minReplicas\":2,"
         "\"scaleTargetRef\":{\"kind\":\"\",\"name\":\"x\"}}}",
         422,
         "[spec.maxReplicas: Invalid value: 1: must be greater than or equal to `minReplicas`, "
         "spec.scaleTargetRef.kind: Required value, spec.scaleTargetRef.apiVersion: Invalid value: "
         "\\\"\\\": apiVersion must specify API group]"},
        {"GET", CONFIGMAPS "?continue=x&resourceVersion=5", NULL, 400,
         "specifying resource version is not allowed when using continue"},
        {"GET", "/api/v1/namespaces/default/pods/p/log", NULL, 501,
         "\"reason\":\"NotImplemented\""},
        {"POST", "/version", "{}", 200, "gitVersion"},
        {"POST", "/metrics", "{}", 405, "MethodNotAllowed"},
    };
    struct fixture *f = *state;

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        expect(f, cases[k].method, cases[k].target, cases[k].body, cases[k].code, cases[k].want);
    }
}

static void test_credentials_decide(void **state)
{
    static const struct {
        const char *target, *headers;
        int code;
    } cases[] = {
        {"/healthz", "", 200},
        {"/readyz?verbose", "", 200},
        {"/livez/ping", "", 200},
        {"/livez/none", "", 401},
        {"/version", "", 200},
        {"/metrics", "", 401},
        {CONFIGMAPS, "", 401},
        {CONFIGMAPS, "Authorization: Bearer wrong\r\n", 401},
        {CONFIGMAPS, "Authorization: Basic secret\r\n", 401},
        {CONFIGMAPS, "Authorization: bearer secret\r\n", 200},
        {CONFIGMAPS, "Authorization: Bearer weak\r\n", 403},
        {CONFIGMAPS, TOKEN "Impersonate-User: bob\r\n", 403},
        {CONFIGMAPS, TOKEN "Accept: text/html\r\n", 406},
        {CONFIGMAPS,
         TOKEN "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1\r\n", 406},
        {"/metrics", TOKEN, 200},
    };
    struct fixture *f = *state;

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        const int got = call(f, "GET", cases[k].target, cases[k].headers, NULL);
        if (got != cases[k].code) {
            fail_msg("%s with '%s': expected %d, got '%s'", cases[k].target, cases[k].headers,
                     cases[k].code, f->in.data);
        }
    }
}

static void test_duplicate_fields_are_reported(void **state)
{
    struct fixture *f = *state;

    expect(f, "POST", CONFIGMAPS,
           "{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"1\",\"k\":\"2\"}}", 201,
           "Warning: 299 - \"duplicate field \\\"data.k\\\"\"");
    assert_true(hk_str_contains(hk_buf_str(&f->in), "\"data\":{\"k\":\"2\"}"));
    expect(f, "POST", CONFIGMAPS "?fieldValidation=Ignore",
           "{\"metadata\":{\"name\":\"b\"},\"data\":{\"k\":\"1\",\"k\":\"2\"}}", 201,
           "\"k\":\"2\"");
    assert_false(hk_str_contains(hk_buf_str(&f->in), "Warning"));
}

static void test_one_may_act_as_another(void **state)
{
    static const struct {
        const char *headers;
        int code;
        const char *want;
    } cases[] = {
        {TOKEN "Impersonate-User: bob\r\n", 403,
         "configmaps is forbidden: User \\\"bob\\\" cannot list resource \\\"configmaps\\\" in API "
         "group \\\"\\\" in the namespace \\\"default\\\""},
        {TOKEN "Impersonate-User: bob\r\nImpersonate-Group: dev\r\nImpersonate-Group: "
               "system:masters\r\n",
         200, "ConfigMapList"},
        {TOKEN "Impersonate-Group: dev\r\n", 500, "without impersonating a user"},
        {"Authorization: Bearer weak\r\nImpersonate-User: admin\r\n", 403,
         "users \\\"admin\\\" is forbidden: User \\\"bob\\\" cannot impersonate resource "
         "\\\"users\\\" in API group \\\"\\\" at the cluster scope"},
        {"Authorization: Bearer weak\r\nImpersonate-User: system:serviceaccount:a:b\r\n", 403,
         "serviceaccounts \\\"b\\\" is forbidden: User \\\"bob\\\" cannot impersonate resource "
         "\\\"serviceaccounts\\\" in API group \\\"\\\" in the namespace \\\"a\\\""},
    };
    struct fixture *f = *state;

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        const int got = call(f, "GET", CONFIGMAPS, cases[k].headers, NULL);
        if (got != cases[k].code || !hk_str_contains(hk_buf_str(&f->in), cases[k].want)) {
            fail_msg("'%s': expected %d with '%s', got '%s'", cases[k].headers, cases[k].code,
                     cases[k].want, f->in.data);
        }
    }
}

static void test_reviews_are_answered_and_not_kept(void **state)
{
    struct fixture *f = *state;

    expect(f, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
           "{\"spec\":{\"resourceAttributes\":{\"verb\":\"create\",\"resource\":\"pods\"}}}", 201,
           "\"allowed\":true");
    expect(f, "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
           "{\"spec\":{\"namespace\":\"default\"}}", 201, "\"resourceRules\":[{\"verbs\":[\"*\"]");
    expect(f, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
           "{\"spec\":{\"user\":\"eve\",\"groups\":[\"dev\"],\"resourceAttributes\":{\"verb\":"
           "\"get\",\"resource\":\"pods\"}}}",
           201, "\"allowed\":false");
    expect(f, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
           "{\"spec\":{\"user\":\"eve\"}}", 422,
           "exactly one of nonResourceAttributes or resourceAttributes must be specified");
    expect(f, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
           "{\"spec\":{\"resourceAttributes\":{\"verb\":\"get\"}}}", 422,
           "at least one of user or group must be specified");
    expect(f, "GET", "/apis/authorization.k8s.io/v1/subjectaccessreviews", NULL, 405,
           "does not allow this method");
    expect(f, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", "{\"spec\":{}}", 400,
           "token is required");
    expect(f, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}", 201,
           "\"userInfo\":{\"username\":\"admin\",\"uid\":\"1\",\"groups\":"
           "[\"system:masters\",\"system:authenticated\"]}");
    expect(f, "POST", "/apis/authentication.k8s.io/v1/tokenreviews",
           "{\"spec\":{\"token\":\"weak\"}}", 201, "\"username\":\"bob\"");
}

static void test_lists_come_as_metadata_too(void **state)
{
    struct fixture *f = *state;

    make(f, "a");
    assert_int_equal(
        call(f, "GET", CONFIGMAPS,
             TOKEN "Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1\r\n",
             NULL),
        200);
    assert_true(hk_str_contains(hk_buf_str(&f->in), "{\"kind\":\"PartialObjectMetadataList\""));
    assert_true(hk_str_contains(hk_buf_str(&f->in), "\"name\":\"a\""));
    assert_false(hk_str_contains(hk_buf_str(&f->in), "\"data\""));
}

static void test_pages_follow_one_another(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf next = {0};

    make(f, "a");
    make(f, "b");
    make(f, "c");
    expect(f, "GET", CONFIGMAPS "?limit=2", NULL, 200, "\"name\":\"b\"");
    assert_false(hk_str_contains(hk_buf_str(&f->in), "\"name\":\"c\""));
    const char *token = strstr(f->in.data, "\"continue\":\"");
    assert_non_null(token);
    token += strlen("\"continue\":\"");
    hk_buf_addf(&next, "%s?limit=2&continue=%.*s", CONFIGMAPS, (int)strcspn(token, "\""), token);
    expect(f, "GET", next.data, NULL, 200, "\"name\":\"c\"");
    assert_false(hk_str_contains(hk_buf_str(&f->in), "\"name\":\"a\""));
    assert_false(hk_str_contains(hk_buf_str(&f->in), "\"continue\""));
}

static void test_people_get_indented_text(void **state)
{
    struct fixture *f = *state;

    make(f, "a");
    assert_int_equal(call(f, "GET", CONFIGMAPS "/a", TOKEN "User-Agent: curl/8\r\n", NULL), 200);
    assert_true(hk_str_contains(hk_buf_str(&f->in), "\n  \"kind\": \"ConfigMap\""));
    assert_int_equal(
        call(f, "GET", CONFIGMAPS "/a?pretty=false", TOKEN "User-Agent: curl/8\r\n", NULL), 200);
    assert_false(hk_str_contains(hk_buf_str(&f->in), "\n  \"kind\""));
}

static void test_caches_keep_openapi_by_its_hash(void **state)
{
    static const char mark[] = "/openapi/v3/api/v1?hash=";
    struct fixture *f = *state;
    char target[64], known[128];

    expect(f, "GET", "/openapi/v3", NULL, 200, "Cache-Control: no-cache, private");
    const char *url = strstr(f->in.data, mark);
    assert_non_null(url);
    snprintf(target, sizeof(target), "%.*s", (int)strcspn(url, "\""), url);
    snprintf(known, sizeof(known), TOKEN "If-None-Match: \"%s\"\r\n", strchr(target, '=') + 1);
    expect(f, "GET", target, NULL, 200, "Cache-Control: public, immutable\r\nExpires: ");
    assert_int_equal(call(f, "GET", "/openapi/v3/api/v1", known, NULL), 304);
    assert_true(hk_str_contains(hk_buf_str(&f->in), "ETag: "));
    expect(f, "GET", "/openapi/v3/api/v1?hash=old", NULL, 301, "Location: ");
    assert_true(hk_str_contains(hk_buf_str(&f->in), target));
    expect(f, "GET", "/openapi/v3/apis/nobody/v1", NULL, 404, "NotFound");
    expect(f, "POST", "/openapi/v2", "{}", 405, "MethodNotAllowed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_an_object_is_created_changed_and_deleted),
        TEST(test_patches_go_by_their_content_type),
        TEST(test_yaml_is_read_and_written),
        TEST(test_long_lists_for_people_come_in_slices),
        TEST(test_refusals_have_kubernetes_words),
        TEST(test_credentials_decide),
        TEST(test_duplicate_fields_are_reported),
        TEST(test_one_may_act_as_another),
        TEST(test_reviews_are_answered_and_not_kept),
        TEST(test_lists_come_as_metadata_too),
        TEST(test_pages_follow_one_another),
        TEST(test_people_get_indented_text),
        TEST(test_caches_keep_openapi_by_its_hash),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
