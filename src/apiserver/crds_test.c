// SPDX-License-Identifier: Apache-2.0
// The built-in definitions: each is well formed and matches the registry, and its schema treats
// objects as Volcano documents.
#include "apiserver/crds.h"

#include "api/registry.h"
#include "api/schema.h"
#include "codec/yaml.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct json load(const struct crd_file *f, struct hk_arena *a)
{
    struct hk_err err = {0};
    struct yaml_docs docs = {0};

    if (yaml_parse((struct hk_str){f->text, f->len}, YAML_DUP_REJECT, a, &docs, &err) < 0) {
        fail_msg("%s: %s", f->name, err.text);
    }
    assert_int_equal(docs.len, 1);
    return docs.at[0];
}

static const struct json *version_of(const struct json *crd)
{
    return json_item(json_at(crd, "spec.versions"), 0);
}

static void definitions_agree_with_the_registry(void **state)
{
    for (const struct crd_file *f = crd_files; f->name; f++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        const struct json crd = load(f, &a);
        const struct hk_str plural = json_str(json_at(&crd, "spec.names.plural"), HK_STR(""));
        const struct hk_str group = json_str(json_at(&crd, "spec.group"), HK_STR(""));
        const struct hk_str version = json_str(json_get(version_of(&crd), "name"), HK_STR(""));
        const struct api_kind *kind = api_kind_by_plural(group, version, plural);
        const bool status = json_at(version_of(&crd), "subresources.status") != NULL;

        if (!kind) {
            fail_msg("%s: no such kind", f->name);
        }
        assert_true(hk_str_is(json_str(json_at(&crd, "spec.names.kind"), HK_STR("")), kind->kind));
        assert_true(
            hk_str_is(json_str(json_at(&crd, "spec.names.singular"), HK_STR("")), kind->singular));
        assert_int_equal(hk_str_is(json_str(json_at(&crd, "spec.scope"), HK_STR("")), "Namespaced"),
                         kind->namespaced);
        assert_int_equal(status, kind->status);
        assert_true(hk_str_is(json_str(json_at(&crd, "metadata.name"), HK_STR("")),
                              hk_arena_printf(&a, "%s.%s", kind->plural, kind->group)));
    }
}

/* Objects may use single quotes. */
static struct json parse(const char *text, struct hk_arena *a)
{
    struct hk_err err = {0};
    struct yaml_docs docs = {0};

    if (yaml_parse(hk_str(text), 0, a, &docs, &err) < 0 || docs.len != 1) {
        fail_msg("%s: %s", text, err.text);
    }
    return docs.at[0];
}

struct findings {
    struct hk_buf text;
};

static void on_error(void *ctx, const char *reason, const char *field, const char *message)
{
    struct findings *f = ctx;

    hk_buf_addf(&f->text, "%s%s: %s", f->text.len > 0 ? "; " : "", field, message);
}

static void on_unknown(void *ctx, const char *path)
{
    struct findings *f = ctx;

    hk_buf_addf(&f->text, "%sunknown %s", f->text.len > 0 ? "; " : "", path);
}

static struct schema *schema_for(const char *name)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct hk_err err = {0};
    struct schema *s = NULL;

    for (const struct crd_file *f = crd_files; f->name; f++) {
        if (!strcmp(f->name, name)) {
            const struct json crd = load(f, &a);
            if (schema_new(json_at(version_of(&crd), "schema.openAPIV3Schema"), &s, &err) < 0) {
                fail_msg("%s: %s", name, err.text);
            }
        }
    }
    assert_non_null(s);
    return s;
}

static void schemas_compile(void **state)
{
    for (const struct crd_file *f = crd_files; f->name; f++) {
        schema_free(schema_for(f->name));
    }
}

#define JOB "batch.volcano.sh_jobs"
#define POD "template: {spec: {containers: [{name: m, image: i}]}}"

static const struct {
    const char *crd, *object;
    const char *want; /* expected errors; "": none */
} cases[] = {
    {JOB, "{spec: {tasks: [{replicas: 1, " POD "}]}}", ""},
    {JOB, "{spec: {tasks: []}}",
     "spec.tasks: Invalid value: 0: spec.tasks in body should have at least 1 items"},
    {JOB, "{spec: {tasks: [{name: Worker_1}]}}",
     "spec.tasks[0].name: Invalid value: \"Worker_1\": spec.tasks[0].name in body should match "
     "'^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'"},
    {JOB, "{spec: {tasks: [{replicas: -1}]}}",
     "spec.tasks[0].replicas: Invalid value: -1: spec.tasks[0].replicas in body should be greater "
     "than or equal to 0"},
    {JOB, "{spec: {policies: [{event: Foo}]}}",
     "spec.policies[0].event: Unsupported value: \"Foo\": supported values: \"*\", \"PodPending\", "
     "\"PodRunning\", \"PodFailed\", \"PodEvicted\", \"Unknown\", \"TaskCompleted\", "
     "\"OutOfSync\", \"CommandIssued\", \"JobUpdated\", \"TaskFailed\""},
    {JOB, "{spec: {volumes: [{}]}}", "spec.volumes[0].mountPath: Required value"},
    {JOB, "{spec: {volumes: [{mountPath: ''}]}}",
     "spec.volumes[0].mountPath: Invalid value: \"\": spec.volumes[0].mountPath in body should be "
     "at least 1 chars long; spec.volumes[0].mountPath: Invalid value: \"\": "
     "spec.volumes[0].mountPath in body should match '^[^:]+$'"},
    {JOB, "{spec: {networkTopology: {mode: firm}}}",
     "spec.networkTopology.mode: Unsupported value: \"firm\": supported values: \"hard\", "
     "\"soft\""},
    {JOB, "{spec: {minSuccess: 0}}",
     "spec.minSuccess: Invalid value: 0: spec.minSuccess in body should be greater than or equal "
     "to 1"},
    {JOB, "{spec: {bogus: 1, tasks: [{" POD ", x: 1}]}}",
     "unknown spec.bogus; unknown spec.tasks[0].x"},
    {JOB, "{spec: {tasks: [{template: {spec: {}}}]}}",
     "spec.tasks[0].template.spec.containers: Required value"},
    {JOB,
     "{spec: {tasks: [{template: {metadata: {uid: u}, spec: {containers: [{name: a}, {name: "
     "a}]}}}]}}",
     "unknown spec.tasks[0].template.metadata.uid; "
     "spec.tasks[0].template.spec.containers[1]: Duplicate value: {\"name\":\"a\"}"},
    {JOB,
     "{spec: {tasks: [{template: {spec: {containers: [{name: a, resources: {limits: {cpu: 1, "
     "memory: 1x}}}]}}}]}}",
     "spec.tasks[0].template.spec.containers[0].resources.limits.memory: Invalid value: \"1x\": "
     "spec.tasks[0].template.spec.containers[0].resources.limits.memory in body should match "
     "'^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+"
     "(\\.[0-9]*)?)|(\\.[0-9]+))))?$'"},
    {"scheduling.volcano.sh_queues", "{spec: {weight: 70000}}",
     "spec.weight: Invalid value: 70000: spec.weight in body should be less than or equal to "
     "65535"},
    {"scheduling.volcano.sh_queues", "{status: {allocated: null}}", ""},
    {"batch.volcano.sh_cronjobs", "{spec: {concurrencyPolicy: Queue}}",
     "spec.jobTemplate: Required value; spec.schedule: Required value; spec.concurrencyPolicy: "
     "Unsupported value: \"Queue\": supported values: \"Allow\", \"Forbid\", \"Replace\""},
    {"flow.volcano.sh_jobflows", "{spec: {flows: [{}], jobRetainPolicy: keep}}",
     "spec.flows[0].name: Required value; spec.jobRetainPolicy: Unsupported value: \"keep\": "
     "supported values: \"retain\", \"delete\""},
    {"topology.volcano.sh_hypernodes", "{spec: {tier: 1, members: [{type: Node, selector: {}}]}}",
     "spec.members[0].selector: Invalid value: \"object\": Either ExactMatch or RegexMatch or "
     "LabelMatch must be specified"},
    {"topology.volcano.sh_hypernodes",
     "{spec: {tier: 1, members: [{type: Node, selector: {exactMatch: {name: a}, regexMatch: "
     "{pattern: b}}}]}}",
     "spec.members[0].selector: Invalid value: \"object\": Only one of ExactMatch, RegexMatch, or "
     "LabelMatch can be specified"},
    {"topology.volcano.sh_hypernodes", "{spec: {tier: 1, members: [{type: Rack}]}}",
     "spec.members[0].type: Unsupported value: \"Rack\": supported values: \"Node\", "
     "\"HyperNode\"; <nil>: Invalid value: \"null\": some validation rules were not checked "
     "because the object was invalid; correct the existing errors to complete validation"},
    {"shard.volcano.sh_nodeshards", "{spec: {}}", "spec.nodesDesired: Required value"},
    {"config.volcano.sh_colocationconfigurations", "{spec: {memoryQos: {highRatio: 120}}}",
     "spec.memoryQos.highRatio: Invalid value: 120: spec.memoryQos.highRatio in body should be "
     "less than or equal to 100"},
    {"bus.volcano.sh_commands", "{target: {apiVersion: v, kind: k, name: x}}",
     "target.uid: Required value"},
    {"nodeinfo.volcano.sh_numatopologies", "{spec: {cpuDetail: {'0': {core: -1}}}}",
     "spec.cpuDetail.0.core: Invalid value: -1: spec.cpuDetail.0.core in body should be greater "
     "than or equal to 0"},
};

static void objects_are_judged_as_documented(void **state)
{
    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
        struct findings found = {0};
        const struct schema_sink sink = {&found, on_error, on_unknown};
        struct schema *s = schema_for(cases[i].crd);
        struct json obj = parse(cases[i].object, &a);

        schema_prune(s, &obj, &a, &sink);
        schema_default(s, &obj, &a);
        schema_validate(s, &obj, NULL, &a, &sink);
        hk_buf_addstr(&text, hk_buf_str(&found.text));
        hk_buf_fini(&found.text);
        schema_free(s);
        if (!hk_str_is(hk_buf_str(&text), cases[i].want)) {
            fail_msg("%s\nexpected %s\nfound    %s", cases[i].object, cases[i].want,
                     hk_buf_str(&text).s);
        }
    }
}

static const struct {
    const char *crd, *object, *want;
} defaults[] = {
    {JOB, "{spec: {networkTopology: {}}}",
     "{spec: {networkTopology: {mode: hard}, maxRetry: 3, queue: default}}"},
    {JOB, "{kind: Job}", "{kind: Job}"}, /* missing parents are not created */
    {"scheduling.volcano.sh_queues", "{spec: {}}",
     "{spec: {dequeueStrategy: traverse, weight: 1}}"},
    {"scheduling.volcano.sh_podgroups", "{spec: {subGroupPolicy: [{}]}}",
     "{spec: {subGroupPolicy: [{minSubGroups: 0, subGroupSize: 1}], queue: default}}"},
    {"batch.volcano.sh_cronjobs", "{spec: {suspend: null, jobTemplate: {spec: {}}}}",
     "{spec: {jobTemplate: {spec: {maxRetry: 3, queue: default}}, concurrencyPolicy: Allow, "
     "failedJobsHistoryLimit: 1, successfulJobsHistoryLimit: 3, suspend: false}}"},
};

static void defaults_are_filled_in(void **state)
{
    for (size_t i = 0; i < HK_LEN(defaults); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
        struct schema *s = schema_for(defaults[i].crd);
        struct json obj = parse(defaults[i].object, &a);
        const struct json want = parse(defaults[i].want, &a);

        schema_default(s, &obj, &a);
        schema_free(s);
        json_write(&obj, &text);
        if (!json_equal(&obj, &want)) {
            fail_msg("%s\nexpected %s\nfound    %s", defaults[i].object, defaults[i].want,
                     text.data);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(definitions_agree_with_the_registry),
        cmocka_unit_test(schemas_compile),
        cmocka_unit_test(objects_are_judged_as_documented),
        cmocka_unit_test(defaults_are_filled_in),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
