// SPDX-License-Identifier: Apache-2.0
// CustomResourceDefinitions, and their objects when definitions change, conflict or are deleted.
#include "store/rest_story_test.h"

#define DEFINE .req = {.verb = PORT_CREATE}
#define REDEFINE(n) .req = {.verb = PORT_PATCH, .name = HK_STR(n), .patch = PORT_PATCH_MERGE}
#define UNDEFINE(n) .req = {.verb = PORT_DELETE, .name = HK_STR(n)}
#define CRD "CustomResourceDefinition"

/* One version whose spec has the properties. */
#define VERSIONS(properties)                                                                       \
    "'versions':[{'name':'v1','served':true,'storage':true,'schema':{'openAPIV3Schema':{'type':"   \
    "'object','properties':{'spec':{'type':'object','properties':{" properties "}}}}}}]"
#define BOXES(plural, kind, properties)                                                            \
    "{'metadata':{'name':'" plural ".x.io'},'spec':{'group':'x.io','scope':'Namespaced',"          \
    "'names':{'plural':'" plural "','kind':'" kind "'}," VERSIONS(properties) "}}"

static void test_old_objects_are_read_by_the_new_schema(void **state)
{
    static const struct step steps[] = {
        {CRD, DEFINE, BOXES("boxes", "Box", "'a':{'type':'integer'},'b':{'type':'integer'}"), 201},
        {"Box", CREATE, "{'metadata':{'name':'x'},'spec':{'a':1,'b':2}}", 201},
        {"Box", GET("x"), NULL, 200, .see = {"spec", "{\"a\":1,\"b\":2}"}},
        {CRD, REDEFINE("boxes.x.io"),
         "{'spec':{" VERSIONS("'a':{'type':'integer'},'c':{'type':'string','default':'new'}") "}}",
         200},
        {"Box", GET("x"), NULL, 200,
         .see = {"spec", "{\"a\":1,\"c\":\"new\"}", "metadata.generation", "1"}},
        /* a write that changes nothing visible does not change the spec */
        {"Box", MERGE("x"), "{'metadata':{'labels':{'l':'1'}}}", 200,
         .see = {"spec", "{\"a\":1,\"c\":\"new\"}", "metadata.generation", "1"}},
        {"Box", CREATE, "{'metadata':{'name':'y'},'spec':{'a':1}}", 201,
         .see = {"spec", "{\"a\":1,\"c\":\"new\"}"}},
    };

    rig_story(*state, steps);
}

static void test_strategic_merge_is_not_for_custom_resources(void **state)
{
    static const struct step steps[] = {
        {CRD, DEFINE, BOXES("boxes", "Box", "'a':{'type':'integer'}"), 201},
        {"Box", CREATE, "{'metadata':{'name':'x'},'spec':{'a':1}}", 201},
        {"Box",
         .req = {.verb = PORT_PATCH, .ns = NS, .name = HK_STR("x"), .patch = PORT_PATCH_STRATEGIC},
         "{'spec':{'a':2}}", 415, "UnsupportedMediaType",
         "the body of the request was in an unknown format - accepted media types include: "
         "application/json-patch+json, application/merge-patch+json, "
         "application/apply-patch+yaml"},
    };

    rig_story(*state, steps);
}

#define RULE(rule) "'x-kubernetes-validations':[{'rule':'" rule "'}]"
#define PAIR "'type':'object','properties':{'x':{'type':'integer'},'y':{'type':'integer'}}"

static void test_rules_are_enforced(void **state)
{
    static const struct step steps[] = {
        {CRD, DEFINE,
         BOXES("boxes", "Box",
               "'a':{" PAIR
               "," RULE("self.x > self.y") "},"
                                           "'b':{'type':'integer'," RULE("self >= oldSelf") "}"),
         201},
        {"Box", CREATE, "{'metadata':{'name':'x'},'spec':{'a':{'x':1,'y':2}}}", 422, "Invalid",
         "Box.x.io \"x\" is invalid: spec.a: Invalid value: \"object\": failed rule: self.x > "
         "self.y"},
        {"Box", CREATE, "{'metadata':{'name':'x'},'spec':{'a':{'x':3,'y':2},'b':5}}", 201},
        {"Box", MERGE("x"), "{'spec':{'b':4}}", 422, "Invalid",
         "Box.x.io \"x\" is invalid: spec.b: Invalid value: \"integer\": failed rule: self >= "
         "oldSelf"},
        {"Box", MERGE("x"), "{'spec':{'b':6}}", 200},
        /* a stricter rule leaves values alone that do not change */
        {CRD, REDEFINE("boxes.x.io"),
         "{'spec':{" VERSIONS("'a':{" PAIR "," RULE("self.x > 9") "},'b':{'type':'integer'}") "}}",
         200},
        {"Box", MERGE("x"), "{'spec':{'b':7}}", 200},
        {"Box", MERGE("x"), "{'spec':{'a':{'x':4}}}", 422, "Invalid",
         "Box.x.io \"x\" is invalid: spec.a: Invalid value: \"object\": failed rule: self.x > 9"},
    };

    rig_story(*state, steps);
}

static void test_rules_that_do_not_compile_are_refused(void **state)
{
    static const struct step steps[] = {
        {CRD, DEFINE,
         BOXES("boxes", "Box", "'a':{'type':'array','items':{" PAIR "," RULE("self.z > 1") "}}"),
         422, "Invalid",
         "CustomResourceDefinition.apiextensions.k8s.io \"boxes.x.io\" is invalid: "
         "spec.validation.openAPIV3Schema.properties[spec].properties[a].items."
         "x-kubernetes-validations[0].rule: Invalid value: \"self.z > 1\": compilation failed: "
         "ERROR: <input>:1:5: undefined field 'z'\n | self.z > 1\n | ....^"},
    };

    rig_story(*state, steps);
}

static void test_a_taken_name_keeps_a_definition_waiting(void **state)
{
    static const struct step steps[] = {
        {CRD, DEFINE, BOXES("boxes", "Box", ""), 201,
         .see = {"status.conditions",
                 "[{\"type\":\"NamesAccepted\",\"lastTransitionTime\":\"2026-01-02T03:04:05Z\","
                 "\"status\":\"True\",\"reason\":\"NoConflicts\",\"message\":\"no conflicts "
                 "found\"},{\"type\":\"Established\",\"lastTransitionTime\":\"2026-01-02T03:04:05Z"
                 "\",\"status\":\"True\",\"reason\":\"InitialNamesAccepted\",\"message\":\"the "
                 "initial names have been accepted\"}]"}},
        {CRD, DEFINE, BOXES("crates", "Box", ""), 201,
         .see =
             {"status.conditions",
              "[{\"type\":\"NamesAccepted\",\"lastTransitionTime\":\"2026-01-02T03:04:05Z\","
              "\"status\":\"False\",\"reason\":\"ListKindConflict\",\"message\":\"\\\"BoxList\\\""
              " is already in use\"},{\"type\":\"Established\",\"lastTransitionTime\":"
              "\"2026-01-02T03:04:05Z\",\"status\":\"False\",\"reason\":\"NotAccepted\","
              "\"message\":\"not all names are accepted\"}]",
              "status.acceptedNames", "{\"plural\":\"crates\"}"}},
    };
    struct rig *g = *state;
    static const struct step end = {CRD, UNDEFINE("boxes.x.io"), NULL, 200};

    rig_story(g, steps);
    assert_null(rest_kind_find(g->rest, HK_STR("x.io"), HK_STR("v1"), HK_STR("crates")));
    rig_step(g, &end, __func__, 2);
    assert_non_null(rest_kind_find(g->rest, HK_STR("x.io"), HK_STR("v1"), HK_STR("crates")));
}

static void test_an_ending_definition_takes_nothing_new(void **state)
{
    static const struct step steps[] = {
        {CRD, DEFINE, BOXES("boxes", "Box", "'a':{'type':'integer'}"), 201},
        {"Box", CREATE, "{'metadata':{'name':'held','finalizers':['x.io/hold']}}", 201},
        {"Box", CREATE, "{'metadata':{'name':'free'}}", 201},
        {CRD, UNDEFINE("boxes.x.io"), NULL, 200},
        {"Box", GET("free"), NULL, 404},
        {"Box", GET("held"), NULL, 200,
         .see = {"metadata.deletionTimestamp", "2026-01-02T03:04:05Z"}},
        {"Box", CREATE, "{'metadata':{'name':'late'}}", 405, "MethodNotAllowed",
         "create not allowed while custom resource definition is terminating"},
        {"Box", MERGE("held"), "{'metadata':{'finalizers':null}}", 200},
        {CRD, .req = {.verb = PORT_GET, .name = HK_STR("boxes.x.io")}, NULL, 404},
    };
    struct rig *g = *state;

    rig_story(g, steps);
    assert_null(rest_kind_find(g->rest, HK_STR("x.io"), HK_STR("v1"), HK_STR("boxes")));
}

/* Versions are listed before they are validated. */
static void test_a_version_without_a_name_is_refused(void **state)
{
    static const struct step steps[] = {
        {CRD, DEFINE, BOXES("boxes", "Box", "'a':{'type':'integer'}"), 201},
        {CRD, REDEFINE("boxes.x.io"), "{'spec':{'versions':[{'served':true,'storage':true}]}}", 422,
         "Invalid"},
        {CRD, REDEFINE("boxes.x.io"), "{'spec':{'versions':[{'name':7,'storage':true}]}}", 422,
         "Invalid"},
        {CRD, REDEFINE("boxes.x.io"), "{'spec':{'versions':[null]}}", 422, "Invalid"},
        {CRD, REDEFINE("boxes.x.io"), "{'spec':null}", 422, "Invalid"},
        {CRD, .req = {.verb = PORT_GET, .name = HK_STR("boxes.x.io")}, NULL, 200},
    };

    rig_story(*state, steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(old_objects_are_read_by_the_new_schema),
        TEST(strategic_merge_is_not_for_custom_resources),
        TEST(rules_are_enforced),
        TEST(rules_that_do_not_compile_are_refused),
        TEST(a_taken_name_keeps_a_definition_waiting),
        TEST(an_ending_definition_takes_nothing_new),
        TEST(a_version_without_a_name_is_refused),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
