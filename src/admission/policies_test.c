// SPDX-License-Identifier: Apache-2.0
// Admission policies and bindings: what is filled in and what is refused, in Kubernetes' words.
#include "admission/rig_test.h"

#define GROUP "admissionregistration.k8s.io"

static const struct api_kind policy_kinds[] = {
    {API_NKINDS,
     GROUP,
     "v1",
     "ValidatingAdmissionPolicy",
     "validatingadmissionpolicies",
     "",
     false,
     true,
     {NULL}},
    {API_NKINDS,
     GROUP,
     "v1",
     "ValidatingAdmissionPolicyBinding",
     "validatingadmissionpolicybindings",
     "",
     false,
     false,
     {NULL}},
    {API_NKINDS,
     GROUP,
     "v1",
     "MutatingAdmissionPolicy",
     "mutatingadmissionpolicies",
     "",
     false,
     false,
     {NULL}},
};
enum { VALIDATING, BINDING, MUTATING };

static void run(struct rig *r, int kind, const char *text)
{
    r->q.verb = ADMIT_CREATE;
    r->q.mem = &r->mem;
    r->q.obj = rig_parse(r, text, 0);
    r->q.kind = &policy_kinds[kind];
    r->q.name = rig_meta(r->q.obj, "name");
    r->rc = admission_mutate(&r->q, &r->err);
    if (r->rc == 0) {
        r->rc = admission_validate(&r->q, &r->err);
    }
}

#define RULES                                                                                      \
    "resourceRules: [{operations: [CREATE], apiGroups: [''], apiVersions: [v1], resources: "       \
    "[pods]}]"
#define OF(spec) "{metadata: {name: p}, spec: {matchConstraints: {" RULES "}, " spec "}}"
#define HOLDS "validations: [{expression: 'true'}]"
#define PATCHES "reinvocationPolicy: Never, mutations: "
#define BIND(spec) "{metadata: {name: b}, spec: {policyName: p, " spec "}}"

static const struct {
    int kind;
    const char *text, *want;
} cases[] = {
    {VALIDATING, OF(HOLDS), ""},
    {VALIDATING, OF("auditAnnotations: [{key: a, valueExpression: \"'x'\"}]"), ""},
    {VALIDATING, "{metadata: {name: p}, spec: {" HOLDS "}}",
     "spec.matchConstraints: Required value"},
    {VALIDATING, "{metadata: {name: p}, spec: {matchConstraints: {}, " HOLDS "}}",
     "spec.matchConstraints.resourceRules: Required value"},
    {VALIDATING, OF("variables: []"),
     "spec.validations: Required value: validations or auditAnnotations must contain at least one "
     "item\n"
     "spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least "
     "one item"},
    {VALIDATING, OF(HOLDS ", failurePolicy: Maybe, paramKind: {apiVersion: v1}"),
     "spec.failurePolicy: Unsupported value: \"Maybe\": supported values: \"Fail\", \"Ignore\"\n"
     "spec.paramKind.kind: Required value"},
    {VALIDATING,
     OF("validations: [{expression: ' ', message: \"a\\nb\", reason: Bad, messageExpression: "
        "'1'}]"),
     "spec.validations[0].expression: Required value: expression is not specified\n"
     "spec.validations[0].messageExpression: Invalid value: \"1\": must evaluate to string\n"
     "spec.validations[0].message: Invalid value: \"a\\nb\": message must not contain line breaks\n"
     "spec.validations[0].reason: Unsupported value: \"Bad\": supported values: \"Forbidden\", "
     "\"Invalid\", \"RequestEntityTooLarge\""},
    {VALIDATING, OF("validations: [{expression: 'params.x == 1'}]"),
     "spec.validations[0].expression: Invalid value: \"params.x == 1\": compilation failed: ERROR: "
     "<input>:1:1: undeclared reference to 'params' (in container '')\n | params.x == 1\n | ^"},
    {VALIDATING,
     OF("paramKind: {apiVersion: v1, kind: ConfigMap}, "
        "validations: [{expression: 'params.x == 1'}]"),
     ""},
    {VALIDATING,
     OF("validations: [{expression: 'true', messageExpression: \"authorizer.path('/')"
        ".check('get').reason()\"}]"),
     "spec.validations[0].messageExpression: Invalid value: "
     "\"authorizer.path('/').check('get').reason()\": compilation failed: ERROR: <input>:1:1: "
     "undeclared reference to 'authorizer' (in container '')\n"
     " | authorizer.path('/').check('get').reason()\n | ^"},
    {VALIDATING,
     OF("variables: [{name: a, expression: '1'}, {name: 1b, expression: variables.a + 1}, "
        "{name: for, expression: ''}], " HOLDS),
     "spec.variables[1].name: Invalid value: \"1b\": name is not a valid CEL identifier\n"
     "spec.variables[2].name: Invalid value: \"for\": name is not a valid CEL identifier\n"
     "spec.variables[2].expression: Required value: expression is not specified"},
    {VALIDATING,
     OF("matchConditions: [{name: a, expression: 'true'}, {name: a, expression: '1'}, "
        "{expression: ''}], " HOLDS),
     "spec.matchConditions[1].expression: Invalid value: \"1\": must evaluate to bool\n"
     "spec.matchConditions[1].name: Duplicate value: \"a\"\n"
     "spec.matchConditions[2].expression: Required value\n"
     "spec.matchConditions[2].name: Required value"},
    {VALIDATING,
     OF("auditAnnotations: [{key: a, valueExpression: 'true'}, {key: a, valueExpression: 'null'}]"),
     "spec.auditAnnotations[0].valueExpression: Invalid value: \"true\": must evaluate to one of "
     "[string null_type]\n"
     "spec.auditAnnotations[1].key: Duplicate value: \"a\""},
    {BINDING, BIND("validationActions: [Deny, Audit]"), ""},
    {BINDING, "{metadata: {name: b}, spec: {}}",
     "spec.policyName: Required value\n"
     "spec.validationActions: Required value: at least one validation action is required"},
    {BINDING, BIND("validationActions: [Shout, Deny, Deny]"),
     "spec.validationActions[0]: Unsupported value: \"Shout\": supported values: \"Audit\", "
     "\"Deny\", \"Warn\"\n"
     "spec.validationActions[2]: Duplicate value: \"Deny\""},
    {BINDING, BIND("validationActions: [Deny], paramRef: {}"),
     "spec.paramRef: Required value: one of name or selector must be specified\n"
     "spec.paramRef.parameterNotFoundAction: Required value"},
    {BINDING,
     BIND("validationActions: [Deny], paramRef: {name: x, selector: {}, "
          "parameterNotFoundAction: Perhaps}"),
     "spec.paramRef.name: Forbidden: name and selector are mutually exclusive\n"
     "spec.paramRef.selector: Forbidden: name and selector are mutually exclusive\n"
     "spec.paramRef.parameterNotFoundAction: Unsupported value: \"Perhaps\": supported values: "
     "\"Deny\", \"Allow\""},
    {BINDING, BIND("validationActions: [Deny], matchResources: {matchPolicy: Some}"),
     "spec.matchResouces.matchPolicy: Unsupported value: \"Some\": supported values: "
     "\"Equivalent\", \"Exact\""},
    {MUTATING,
     OF(PATCHES "[{patchType: JSONPatch, jsonPatch: {expression: \"[JSONPatch{op: 'remove', path: "
                "'/a'}]\"}}]"),
     ""},
    {MUTATING, OF("mutations: []"),
     "spec.mutations: Required value: mutations must contain at least one item\n"
     "spec.reinvocationPolicy: Required value"},
    {MUTATING,
     OF(PATCHES "[{}, {patchType: Magic}, {patchType: JSONPatch, applyConfiguration: {}}]"),
     "spec.mutations[0].patchType: Required value\n"
     "spec.mutations[1].patchType: Unsupported value: \"Magic\": supported values: "
     "\"ApplyConfiguration\", \"JSONPatch\"\n"
     "spec.mutations[2].applyConfiguration: Forbidden: must not be specified when patchType is "
     "JSONPatch\n"
     "spec.mutations[2].jsonPatch.expression: Required value: expression is not specified"},
    {MUTATING,
     OF(PATCHES "[{patchType: ApplyConfiguration, applyConfiguration: {expression: 'object'}}]"),
     "spec.mutations[0].applyConfiguration.expression: Invalid value: \"object\": must evaluate to "
     "Object"},
    {MUTATING,
     "{metadata: {name: p}, spec: {matchConstraints: {resourceRules: [{operations: [DELETE], "
     "apiGroups: [''], apiVersions: [v1], resources: [pods]}]}, " PATCHES
     "[{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{}'}}]}}",
     "spec.matchConstraints.resourceRules[0].operations[0]: Unsupported value: \"DELETE\": "
     "supported values: \"*\", \"CONNECT\", \"CREATE\", \"UPDATE\""},
};

static void test_validation(void **state)
{
    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct rig r = {0};
        run(&r, cases[i].kind, cases[i].text);
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

    run(&r, VALIDATING, OF(HOLDS));
    json_write(json_get(r.q.obj, "spec"), &got);
    assert_string_equal(
        got.data,
        "{\"matchConstraints\":{\"resourceRules\":[{\"operations\":[\"CREATE\"],\"apiGroups\":["
        "\"\"],"
        "\"apiVersions\":[\"v1\"],\"resources\":[\"pods\"],\"scope\":\"*\"}],\"matchPolicy\":"
        "\"Equivalent\",\"namespaceSelector\":{},\"objectSelector\":{}},\"validations\":[{"
        "\"expression\":\"true\"}],\"failurePolicy\":\"Fail\"}");
    rig_fini(&r);
}

/* A policy that was stored before its expressions were checked can lose a finalizer. */
static void test_unchanged_spec(void **state)
{
    struct rig r = {0};

    r.q.old = rig_parse(&r, OF("validations: [{expression: 'broken('}]"), 0);
    run(&r, VALIDATING, OF("validations: [{expression: 'broken('}]"));
    assert_string_not_equal(rig_outcome(&r), ""); /* defaults make it differ from what is stored */
    rig_fini(&r);

    struct rig s = {0};
    run(&s, VALIDATING, OF("validations: [{expression: 'broken('}]"));
    const struct json old = json_clone(s.q.obj, &s.mem);
    admission_request_fini(&s.q);
    s.q = (struct admission_request){
        .verb = ADMIT_UPDATE, .kind = s.q.kind, .obj = s.q.obj, .old = &old, .mem = &s.mem};
    s.q.name = HK_STR("p");
    assert_int_equal(admission_validate(&s.q, &s.err), 0);
    assert_int_equal(s.q.errors.len, 0);
    rig_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_validation),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_unchanged_spec),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
