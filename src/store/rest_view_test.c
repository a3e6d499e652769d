// SPDX-License-Identifier: Apache-2.0
// One object in several versions: a write in one version is read in the others, and no field is
// lost in a round trip.
#include "api/type.h"
#include "store/rest_rig_test.h"

#define NS HK_STR("default")

/* A version of a kind, as in a path. */
struct at {
    const char *group, *version, *plural;
};

static const struct at pdb_old = {"policy", "v1beta1", "poddisruptionbudgets"};
static const struct at pdb = {"policy", "v1", "poddisruptionbudgets"};
static const struct at cron_old = {"batch", "v1beta1", "cronjobs"};
static const struct at cron = {"batch", "v1", "cronjobs"};
static const struct at scaler_old = {"autoscaling", "v1", "horizontalpodautoscalers"};
static const struct at scaler = {"autoscaling", "v2", "horizontalpodautoscalers"};
static const struct at event_new = {"events.k8s.io", "v1", "events"};
static const struct at event = {"", "v1", "events"};
static const struct at thing_old = {"example.com", "v1", "things"};
static const struct at thing = {"example.com", "v2", "things"};

#define CPU                                                                                        \
    "{'type':'Resource','resource':{'name':'cpu','target':{'type':'Utilization',"                  \
    "'averageUtilization':70}}}"
#define MEMORY                                                                                     \
    "{'type':'Resource','resource':{'name':'memory','target':{'type':'Utilization',"               \
    "'averageUtilization':60}}}"
#define TARGET "'scaleTargetRef':{'kind':'Deployment','name':'d'},'maxReplicas':3"

static struct answer ask(struct rig *g, const struct at *at, struct port_request req,
                         const char *body)
{
    const struct rest_kind *k =
        rest_kind_find(g->rest, hk_str(at->group), hk_str(at->version), hk_str(at->plural));

    assert_non_null(k);
    req.kind = k->kind;
    req.ns = NS;
    req.body = body ? rig_json(g, body) : NULL;
    return rig_ask(g, &req);
}

static void expect(struct rig *g, struct answer *a, int code, const char *const see[], size_t n)
{
    if (a->code != code) {
        fail_msg("want %d, have %d %s", code, a->code, a->message);
    }
    for (size_t i = 0; i + 1 < n && see[i]; i += 2) {
        char want[512];
        snprintf(want, sizeof(want), "%s", see[i + 1]);
        for (char *p = want; *p; p++) {
            *p = *p == '\'' ? '"' : *p;
        }
        assert_string_equal(rig_look(g, a->obj, see[i]), want);
    }
    answer_fini(a);
}

static void test_written_through_one_read_through_the_other(void **state)
{
    static const struct {
        const struct at *write, *read;
        const char *body;
        const char *see[10];
    } cases[] = {
        {&pdb_old,
         &pdb,
         "{'spec':{'minAvailable':1}}",
         {"apiVersion", "policy/v1", "spec", "{'minAvailable':1}"}},
        {&pdb, &pdb_old, "{'spec':{'minAvailable':1}}", {"apiVersion", "policy/v1beta1"}},
        {&cron_old,
         &cron,
         "{'spec':{'schedule':'* * * * *'}}",
         {"apiVersion", "batch/v1", "spec.schedule", "* * * * *"}},
        {&scaler_old,
         &scaler,
         "{'spec':{" TARGET ",'targetCPUUtilizationPercentage':70}}",
         {"apiVersion", "autoscaling/v2", "spec.targetCPUUtilizationPercentage", "-"}},
        {&scaler,
         &scaler_old,
         "{'spec':{" TARGET ",'metrics':[" CPU "]}}",
         {"apiVersion", "autoscaling/v1", "spec.targetCPUUtilizationPercentage", "70",
          "spec.metrics", "-", "metadata.annotations", "-"}},
        {&scaler,
         &scaler_old,
         "{'spec':{" TARGET ",'metrics':[" MEMORY "]}}",
         {"spec.targetCPUUtilizationPercentage", "-", "spec.metrics", "-"}},
        {&event_new,
         &event,
         "{'regarding':{'kind':'Pod','name':'p'},'note':'hello','deprecatedCount':3,"
         "'reportingController':'c'}",
         {"involvedObject.name", "p", "message", "hello", "count", "3", "reportingComponent", "c",
          "note", "-"}},
        {&event,
         &event_new,
         "{'involvedObject':{'kind':'Pod','name':'p'},'message':'hello','firstTimestamp':"
         "'2026-01-01T00:00:00Z','source':{'component':'c'}}",
         {"regarding.name", "p", "note", "hello", "deprecatedFirstTimestamp",
          "2026-01-01T00:00:00Z", "deprecatedSource", "{'component':'c'}", "apiVersion",
          "events.k8s.io/v1"}},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct rig g = {0};
        char body[1024];
        snprintf(body, sizeof(body), "{'metadata':{'name':'x'},%s", cases[i].body + 1);
        rig_open(&g, false);
        struct answer made =
            ask(&g, cases[i].write, (struct port_request){.verb = PORT_CREATE}, body);
        expect(&g, &made, 201, NULL, 0);
        struct answer read = ask(
            &g, cases[i].read, (struct port_request){.verb = PORT_GET, .name = HK_STR("x")}, NULL);
        expect(&g, &read, 200, cases[i].see, HK_LEN(cases[i].see));
        rig_close(&g);
    }
}

static void test_a_patch_is_read_in_the_version_of_its_url(void **state)
{
    struct rig *g = *state;
    const struct port_request merge = {
        .verb = PORT_PATCH, .name = HK_STR("x"), .patch = PORT_PATCH_MERGE};
    const struct port_request get = {.verb = PORT_GET, .name = HK_STR("x")};
    const char *const cpu[] = {"spec.targetCPUUtilizationPercentage", "50"};
    const char *const both[] = {
        "spec.metrics",
        "[" MEMORY ",{'resource':{'name':'cpu','target':{'averageUtilization':50,'type':"
        "'Utilization'}},'type':'Resource'}]",
        "metadata.annotations",
        "-",
    };

    struct answer a =
        ask(g, &scaler, (struct port_request){.verb = PORT_CREATE},
            "{'metadata':{'name':'x'},'spec':{" TARGET ",'metrics':[" CPU "," MEMORY "]}}");
    expect(g, &a, 201, NULL, 0);
    a = ask(g, &scaler_old, merge, "{'spec':{'targetCPUUtilizationPercentage':50}}");
    expect(g, &a, 200, cpu, HK_LEN(cpu));
    a = ask(g, &scaler, get, NULL);
    expect(g, &a, 200, both, HK_LEN(both));
}

static void test_an_apply_is_noted_in_the_kept_version(void **state)
{
    struct rig *g = *state;
    const struct port_request apply = {.verb = PORT_PATCH,
                                       .name = HK_STR("x"),
                                       .patch = PORT_PATCH_APPLY,
                                       .field_manager = HK_STR("m")};
    const char *const shown[] = {"apiVersion", "events.k8s.io/v1", "note", "hello"};
    const char *body = "{'apiVersion':'events.k8s.io/v1','kind':'Event','metadata':{'name':'x'},"
                       "'note':'hello'}";

    struct answer a = ask(g, &event_new, apply, body);
    assert_string_equal(rig_look(g, a.obj, "metadata.managedFields"),
                        "[{\"manager\":\"m\",\"operation\":\"Apply\",\"apiVersion\":\"v1\","
                        "\"time\":\"2026-01-02T03:04:05Z\",\"fieldsType\":\"FieldsV1\","
                        "\"fieldsV1\":{\"f:message\":{}}}]");
    expect(g, &a, 201, shown, HK_LEN(shown));
    a = ask(g, &event_new, apply, body);
    expect(g, &a, 200, shown, HK_LEN(shown));
}

static void test_fields_are_selected_by_the_names_of_the_version(void **state)
{
    struct rig *g = *state;
    const struct port_request list = {.verb = PORT_LIST,
                                      .field_selector = HK_STR("regarding.name=p")};

    struct answer a = ask(g, &event, (struct port_request){.verb = PORT_CREATE},
                          "{'metadata':{'name':'x'},'involvedObject':{'name':'p'}}");
    expect(g, &a, 201, NULL, 0);
    a = ask(g, &event_new, list, NULL);
    assert_string_equal(a.names, "x");
    answer_fini(&a);
    a = ask(g, &event, list, NULL);
    assert_int_equal(a.code, 400);
    answer_fini(&a);
}

static void test_versions_of_a_definition_share_their_objects(void **state)
{
    struct rig *g = *state;
    const struct port_request merge = {
        .verb = PORT_PATCH, .name = HK_STR("x"), .patch = PORT_PATCH_MERGE};
    const struct at crds = {"apiextensions.k8s.io", "v1", "customresourcedefinitions"};
    const char *const see[] = {"apiVersion", "example.com/v1", "spec.size", "2"};

    struct answer a =
        ask(g, &crds, (struct port_request){.verb = PORT_CREATE},
            "{'metadata':{'name':'things.example.com'},'spec':{'group':'example.com','scope':"
            "'Namespaced','names':{'plural':'things','kind':'Thing'},'versions':["
            "{'name':'v2','served':true,'storage':true},"
            "{'name':'v1','served':true,'storage':false}]}}");
    expect(g, &a, 201, NULL, 0);
    a = ask(g, &thing, (struct port_request){.verb = PORT_CREATE},
            "{'metadata':{'name':'x'},'spec':{'size':1}}");
    expect(g, &a, 201, NULL, 0);
    a = ask(g, &thing_old, merge, "{'spec':{'size':2}}");
    expect(g, &a, 200, see, HK_LEN(see));
}

static int set_up(void **state)
{
    *state = hk_zalloc(sizeof(struct rig));
    rig_open(*state, false);
    return 0;
}

static int tear_down(void **state)
{
    rig_close(*state);
    hk_free(*state);
    return 0;
}

/* Protobuf bodies, patches by merge keys and the structs that Go always writes need the type. The
 * type of CustomResourceDefinition would contain itself, and its schemas have forms of their own. */
static void test_every_built_in_kind_and_version_has_a_type(void **state)
{
    struct rig *g = *state;

    for (uint32_t i = 0; i < rest_kinds(g->rest); i++) {
        const struct rest_kind *k = rest_kind_at(g->rest, i);
        const bool crd = strcmp(k->kind->kind, "CustomResourceDefinition") == 0;
        /* Gang scheduling of 1.35 and 1.36: the modules have only its later versions. */
        const bool past = strcmp(k->kind->group, "scheduling.k8s.io") == 0 &&
                          hk_str_starts(hk_str(k->kind->version), "v1alpha");
        const bool typed = strcmp(api_type_of(k->kind)->name, "Object") != 0;
        if (typed == (crd || past || k->flags & REST_CUSTOM)) {
            fail_msg("%s/%s %s: %s", k->kind->group, k->kind->version, k->kind->kind,
                     typed ? "has a type" : "has no type: add it to scripts/api-types");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written_through_one_read_through_the_other),
        cmocka_unit_test_setup_teardown(test_a_patch_is_read_in_the_version_of_its_url, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_an_apply_is_noted_in_the_kept_version, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_fields_are_selected_by_the_names_of_the_version,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_versions_of_a_definition_share_their_objects, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_every_built_in_kind_and_version_has_a_type, set_up,
                                        tear_down),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
