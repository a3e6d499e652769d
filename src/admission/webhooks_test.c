// SPDX-License-Identifier: Apache-2.0
// Webhook configurations: what is filled in and what is refused, in Kubernetes' words. And the
// warnings about objects that nothing acts on.
#include "admission/rig_test.h"

#define GROUP "admissionregistration.k8s.io"

static const struct api_kind kinds[] = {
    {API_NKINDS,
     GROUP,
     "v1",
     "MutatingWebhookConfiguration",
     "mutatingwebhookconfigurations",
     "",
     false,
     false,
     {NULL}},
    {API_NKINDS,
     GROUP,
     "v1",
     "ValidatingWebhookConfiguration",
     "validatingwebhookconfigurations",
     "",
     false,
     false,
     {NULL}},
    {API_NKINDS,
     "apiregistration.k8s.io",
     "v1",
     "APIService",
     "apiservices",
     "",
     false,
     true,
     {NULL}},
    {API_NKINDS,
     "networking.k8s.io",
     "v1",
     "NetworkPolicy",
     "networkpolicies",
     "",
     true,
     false,
     {NULL}},
    {API_NKINDS, "", "v1", "ConfigMap", "configmaps", "", true, false, {NULL}},
};

static const struct api_kind *find(const char *kind)
{
    for (size_t i = 0; i < HK_LEN(kinds); i++) {
        if (strcmp(kinds[i].kind, kind) == 0) {
            return &kinds[i];
        }
    }
    fail_msg("no kind %s", kind);
    return NULL;
}

/* Runs defaults and validation over the object; what came of it is in r->q. */
static void run(struct rig *r, const char *kind, const char *text)
{
    r->q.verb = ADMIT_CREATE;
    r->q.mem = &r->mem;
    r->q.obj = rig_parse(r, text, 0);
    r->q.kind = find(kind);
    r->q.name = rig_meta(r->q.obj, "name");
    r->rc = admission_mutate(&r->q, &r->err);
    if (r->rc == 0) {
        r->rc = admission_validate(&r->q, &r->err);
    }
}

#define CLIENT "clientConfig: {url: 'https://h.example/p'}"
#define REST "sideEffects: None, admissionReviewVersions: [v1]"
#define RULE "{operations: [CREATE], apiGroups: [''], apiVersions: [v1], resources: [pods]}"
#define HOOK(fields) "{metadata: {name: c}, webhooks: [{" fields "}]}"
#define HOOK_WITH(fields) HOOK("name: a.b.c, " CLIENT ", " REST ", " fields)

static void test_validation(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {HOOK("name: a.b.c, " CLIENT ", " REST), ""},
        {HOOK_WITH("rules: [" RULE "]"), ""},
        {HOOK(CLIENT ", " REST), "webhooks[0].name: Required value"},
        {HOOK("name: a.b, " CLIENT ", " REST), "webhooks[0].name: Invalid value: \"a.b\": should "
                                               "be a domain with at least three segments "
                                               "separated by dots"},
        {HOOK("name: a.b.c, " REST),
         "webhooks[0].clientConfig: Required value: exactly one of url or service is required"},
        {HOOK("name: a.b.c, " REST
              ", clientConfig: {url: 'https://h/p', service: {name: s, namespace: team}}"),
         "webhooks[0].clientConfig: Required value: exactly one of url or service is required"},
        {HOOK("name: a.b.c, " REST ", clientConfig: {url: 'http://h/p'}"),
         "webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL "
         "scheme; desired format: https://host[/path]"},
        {HOOK("name: a.b.c, " REST ", clientConfig: {url: 'https:///p'}"),
         "webhooks[0].clientConfig.url: Invalid value: \"\": host must be specified; desired "
         "format: https://host[/path]"},
        {HOOK("name: a.b.c, " REST ", clientConfig: {url: 'https://me@h/p?a=b'}"),
         "webhooks[0].clientConfig.url: Invalid value: \"https://me@h/p?a=b\": user information is "
         "not permitted in the URL; desired format: https://host[/path]\n"
         "webhooks[0].clientConfig.url: Invalid value: \"https://me@h/p?a=b\": query parameters "
         "are "
         "not permitted in the URL; desired format: https://host[/path]"},
        {HOOK("name: a.b.c, " REST ", clientConfig: {service: {port: 70000, path: p}}"),
         "webhooks[0].clientConfig.service.name: Required value: service name is required\n"
         "webhooks[0].clientConfig.service.namespace: Required value: service namespace is "
         "required\n"
         "webhooks[0].clientConfig.service.port: Invalid value: 70000: port is not valid: must be "
         "between 1 and 65535, inclusive\n"
         "webhooks[0].clientConfig.service.path: Invalid value: \"p\": must start with a '/'"},
        {HOOK_WITH("matchConditions: [{name: x, expression: 'object.a == 1'}]"), ""},
        {HOOK_WITH("matchConditions: [{name: x, expression: 'params.a == 1'}, {expression: '1'}]"),
         "webhooks[0].matchConditions[0].expression: Invalid value: \"params.a == 1\": compilation "
         "failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n"
         " | params.a == 1\n | ^\n"
         "webhooks[0].matchConditions[1].expression: Invalid value: \"1\": must evaluate to bool\n"
         "webhooks[0].matchConditions[1].name: Required value"},
        {HOOK_WITH("timeoutSeconds: 31"), "webhooks[0].timeoutSeconds: Invalid value: 31: the "
                                          "timeout value must be between 1 and 30 "
                                          "seconds"},
        {HOOK("name: a.b.c, " CLIENT ", admissionReviewVersions: [v1]"),
         "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun"},
        {HOOK("name: a.b.c, " CLIENT ", admissionReviewVersions: [v1], sideEffects: Some"),
         "webhooks[0].sideEffects: Unsupported value: \"Some\": supported values: \"None\", "
         "\"NoneOnDryRun\""},
        {HOOK("name: a.b.c, " CLIENT ", sideEffects: None"),
         "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1"},
        {HOOK("name: a.b.c, " CLIENT ", sideEffects: None, admissionReviewVersions: [v2]"),
         "webhooks[0].admissionReviewVersions: Invalid value: [\"v2\"]: must include at least one "
         "of v1, v1beta1"},
        {HOOK_WITH("failurePolicy: Maybe, matchPolicy: Some, reinvocationPolicy: Often"),
         "webhooks[0].failurePolicy: Unsupported value: \"Maybe\": supported values: \"Fail\", "
         "\"Ignore\"\n"
         "webhooks[0].matchPolicy: Unsupported value: \"Some\": supported values: \"Equivalent\", "
         "\"Exact\"\n"
         "webhooks[0].reinvocationPolicy: Unsupported value: \"Often\": supported values: "
         "\"IfNeeded\", \"Never\""},
        {HOOK_WITH("rules: [{operations: ['*', CREATE], apiGroups: [''], apiVersions: [], "
                   "resources: [pods], scope: All}]"),
         "webhooks[0].rules[0].operations: Invalid value: [\"*\",\"CREATE\"]: if '*' is present, "
         "must not specify other operations\n"
         "webhooks[0].rules[0].apiVersions: Required value\n"
         "webhooks[0].rules[0].scope: Unsupported value: \"All\": supported values: \"*\", "
         "\"Cluster\", \"Namespaced\""},
        {"{metadata: {name: c}, webhooks: [{name: a.b.c, " CLIENT ", " REST
         "}, {name: a.b.c, " CLIENT ", " REST "}]}",
         "webhooks[1].name: Duplicate value: \"a.b.c\""},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct rig r = {0};
        run(&r, "MutatingWebhookConfiguration", cases[i].text);
        const char *got = rig_outcome(&r);
        if (strcmp(got, cases[i].want) != 0) {
            fail_msg("%s\nexpected: %s\n  actual: %s", cases[i].text, cases[i].want, got);
        }
        rig_fini(&r);
    }
}

static void test_defaults(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf got = {0};
    struct rig r = {0};

    run(&r, "MutatingWebhookConfiguration",
        HOOK("name: a.b.c, clientConfig: {service: {name: s, namespace: team}}, " REST
             ", rules: [" RULE "]"));
    json_write(json_get(r.q.obj, "webhooks"), &got);
    assert_string_equal(
        got.data,
        "[{\"name\":\"a.b.c\",\"clientConfig\":{\"service\":{\"name\":\"s\",\"namespace\":\"team\","
        "\"port\":443}},\"sideEffects\":\"None\",\"admissionReviewVersions\":[\"v1\"],\"rules\":[{"
        "\"operations\":[\"CREATE\"],\"apiGroups\":[\"\"],\"apiVersions\":[\"v1\"],\"resources\":["
        "\"pods\"],\"scope\":\"*\"}],\"failurePolicy\":\"Fail\",\"matchPolicy\":\"Equivalent\","
        "\"namespaceSelector\":{},\"objectSelector\":{},\"timeoutSeconds\":10,"
        "\"reinvocationPolicy\":\"Never\"}]");
    rig_fini(&r);
}

static void test_warnings(void **state)
{
    static const struct {
        const char *kind, *text, *want;
    } cases[] = {
        {"ValidatingWebhookConfiguration",
         HOOK_WITH("matchConditions: [{name: x, expression: 'true'}]"), ""},
        {"APIService", "{metadata: {name: v1.g}, spec: {service: {name: s, namespace: team}}}", ""},
        {"APIService", "{metadata: {name: v1.g}, spec: {group: g}}", ""},
        {"NetworkPolicy", "{metadata: {name: p}}",
         "this server does not enforce NetworkPolicies: all traffic is allowed"},
        {"ConfigMap", "{metadata: {name: c}}", ""},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct rig r = {0};
        run(&r, cases[i].kind, cases[i].text);
        const char *got = r.q.warnings.len > 0 ? r.q.warnings.at[0] : "";
        assert_string_equal(got, cases[i].want);
        assert_int_equal(r.q.warnings.len, cases[i].want[0] != '\0');
        rig_fini(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_validation),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_warnings),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
