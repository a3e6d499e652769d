// SPDX-License-Identifier: Apache-2.0
// APIServices: what is refused, in Kubernetes' words, and the port that is filled in.
#include "admission/rig_test.h"

static const struct api_kind kind = {API_NKINDS,    "apiregistration.k8s.io",
                                     "v1",          "APIService",
                                     "apiservices", "apiservice",
                                     false,         true,
                                     {NULL}};

static void run(struct rig *r, const char *text)
{
    r->q.verb = ADMIT_CREATE;
    r->q.mem = &r->mem;
    r->q.obj = rig_parse(r, text, 0);
    r->q.kind = &kind;
    r->q.name = rig_meta(r->q.obj, "name");
    r->rc = admission_mutate(&r->q, &r->err);
    if (r->rc == 0) {
        r->rc = admission_validate(&r->q, &r->err);
    }
}

#define SPEC(name, fields)                                                                         \
    "{metadata: {name: " name "}, spec: {groupPriorityMinimum: 100, versionPriority: 10, " fields  \
    "}}"
#define FISH(fields) SPEC("v1.fish.io", "group: fish.io, version: v1, " fields)
#define TO "service: {namespace: n, name: s}"

static void wrong_ones_are_refused(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {SPEC("v1.fish.io", "group: fish.io, version: v1"), ""},
        {SPEC("'v1.'", "version: v1"), ""},
        {FISH(TO), ""},
        {FISH(TO ", insecureSkipTLSVerify: true"), ""},
        {SPEC("v2.fish.io", "group: fish.io, version: v1"),
         "metadata.name: Invalid value: \"v2.fish.io\": must be `spec.version+\".\"+spec.group`: "
         "\"v1.fish.io\""},
        {SPEC("'v2.'", "version: v2"),
         "spec.group: Required value: only v1 may have an empty group and it better be legacy "
         "kube"},
        {"{metadata: {name: v1.fish.io}, spec: {group: fish.io, version: v1, "
         "groupPriorityMinimum: 20001}}",
         "spec.groupPriorityMinimum: Invalid value: 20001: must be positive and less than 20000\n"
         "spec.versionPriority: Invalid value: 0: must be positive and less than 1000"},
        {FISH("insecureSkipTLSVerify: true"),
         "spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have "
         "insecureSkipTLSVerify"},
        {FISH("service: {port: 70000}"),
         "spec.service.namespace: Required value\nspec.service.name: Required value\n"
         "spec.service.port: Invalid value: 70000: port is not valid: must be between 1 and 65535, "
         "inclusive"},
        {FISH(TO ", caBundle: bm8="),
         "spec.caBundle: Invalid value: \"...\": unable to load root certificates"},
        {FISH(TO ", caBundle: bm8=, insecureSkipTLSVerify: true"),
         "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct rig r = {0};
        run(&r, cases[i].text);
        const char *got = rig_outcome(&r);
        if (strcmp(got, cases[i].want) != 0) {
            fail_msg("%s\nexpected: %s\n  actual: %s", cases[i].text, cases[i].want, got);
        }
        rig_fini(&r);
    }
}

static void the_port_is_443_unless_given(void **state)
{
    struct rig r = {0}, s = {0};

    run(&r, FISH(TO));
    assert_int_equal(json_int_at(r.q.obj, "spec.service.port"), 443);
    run(&s, FISH("service: {namespace: n, name: s, port: 8443}"));
    assert_int_equal(json_int_at(s.q.obj, "spec.service.port"), 8443);
    rig_fini(&r);
    rig_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_ones_are_refused),
        cmocka_unit_test(the_port_is_443_unless_given),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("admission/apiservice", tests, NULL, NULL);
}
