// SPDX-License-Identifier: Apache-2.0
// Schemas: what each keyword prunes, defaults and refuses. The server's built-in definitions have
// their own tests.
#include "api/schema.h"
#include "codec/json_text_test.h"

static void on_error(void *ctx, const char *reason, const char *field, const char *message)
{
    hk_buf_addf(ctx, "%s %s: %s\n", reason, field, message);
}

static void on_unknown(void *ctx, const char *path)
{
    hk_buf_addf(ctx, "%s\n", path);
}

static struct schema *compile(const char *text, struct hk_arena *a)
{
    const struct json doc = json_of_text(text, a);
    struct hk_err err = {0};
    struct schema *s = NULL;

    if (schema_new(&doc, &s, &err) < 0) {
        fail_msg("%s: %s", text, err.text);
    }
    return s;
}

#define OBJECT(props) "{'type':'object','properties':{" props "}}"
#define ANY "'x-kubernetes-preserve-unknown-fields':true"
#define INT_OR_STRING "{'x-kubernetes-int-or-string':true}"

static const struct {
    const char *name, *schema, *object, *want;
    const char *unknown; /* paths, one per line */
} prunings[] = {
    {"unknown fields fall out", OBJECT("'spec':" OBJECT("'a':{'type':'string'}")),
     "{'apiVersion':'v','kind':'K','metadata':{'name':'n','x':1},'spec':{'a':'1','b':2},'c':3}",
     "{'apiVersion':'v','kind':'K','metadata':{'name':'n'},'spec':{'a':'1'}}",
     "metadata.x\nspec.b\nc\n"},
    {"in lists and maps as well",
     OBJECT("'l':{'type':'array','items':" OBJECT(
         "'a':{'type':'integer'}") "},"
                                   "'m':{'type':'object','additionalProperties':" OBJECT(
                                       "'a':{'type':'integer'}") "}"),
     "{'l':[{'a':1,'b':2}],'m':{'k':{'a':1,'b':2}}}", "{'l':[{'a':1}],'m':{'k':{'a':1}}}",
     "l[0].b\nm.k.b\n"},
    {"unknown fields are preserved where wished, known ones still pruned",
     "{'type':'object'," ANY ",'properties':{'s':{'type':'object'}}}", "{'x':1,'s':{'y':2}}",
     "{'x':1,'s':{}}", "s.y\n"},
    {"free-form maps stay", OBJECT("'m':{'type':'object','additionalProperties':true}"),
     "{'m':{'a':{'b':1}}}", "{'m':{'a':{'b':1}}}", ""},
    {"embedded resources keep what makes a resource",
     OBJECT("'r':{'type':'object','x-kubernetes-embedded-resource':true}"),
     "{'r':{'apiVersion':'v','kind':'K','metadata':{'name':'n'},'spec':1}}",
     "{'r':{'apiVersion':'v','kind':'K','metadata':{'name':'n'}}}", "r.spec\n"},
};

static void unknown_fields_are_pruned(void **state)
{
    for (size_t i = 0; i < HK_LEN(prunings); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf unknown = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
        struct schema *s = compile(prunings[i].schema, &a);
        struct json obj = json_of_text(prunings[i].object, &a);
        const struct json want = json_of_text(prunings[i].want, &a);
        const struct schema_sink sink = {.ctx = &unknown, .unknown = on_unknown};

        schema_prune(s, &obj, &a, &sink);
        schema_free(s);
        json_write(&obj, &text);
        if (!json_equal(&obj, &want) || !hk_str_is(hk_buf_str(&unknown), prunings[i].unknown)) {
            fail_msg("%s: expected %s and %s, got %s and %s", prunings[i].name, prunings[i].want,
                     prunings[i].unknown, text.data, hk_buf_str(&unknown).s);
        }
    }
}

static const struct {
    const char *name, *schema, *object, *want;
} defaults[] = {
    {"what is absent is filled in", OBJECT("'a':{'type':'integer','default':1}"), "{}", "{'a':1}"},
    {"what is there stays", OBJECT("'a':{'type':'integer','default':1}"), "{'a':2}", "{'a':2}"},
    {"parents are not invented", OBJECT("'s':" OBJECT("'a':{'type':'integer','default':1}")), "{}",
     "{}"},
    {"a default is filled in itself",
     OBJECT("'s':{'type':'object','default':{},'properties':{'a':{'type':'integer','default':1}}}"),
     "{}", "{'s':{'a':1}}"},
    {"null takes the default", OBJECT("'a':{'type':'integer','default':1}"), "{'a':null}",
     "{'a':1}"},
    {"null stays where it is allowed", OBJECT("'a':{'type':'integer','nullable':true,'default':1}"),
     "{'a':null}", "{'a':null}"},
    {"null without default falls out", OBJECT("'a':{'type':'integer'}"), "{'a':null}", "{}"},
    {"elements are filled in",
     OBJECT("'l':{'type':'array','items':" OBJECT("'a':{'type':'integer','default':1}") "}"),
     "{'l':[{},{'a':2}]}", "{'l':[{'a':1},{'a':2}]}"},
};

static void defaults_are_filled_in(void **state)
{
    for (size_t i = 0; i < HK_LEN(defaults); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
        struct schema *s = compile(defaults[i].schema, &a);
        struct json obj = json_of_text(defaults[i].object, &a);
        const struct json want = json_of_text(defaults[i].want, &a);

        schema_default(s, &obj, &a);
        schema_free(s);
        json_write(&obj, &text);
        if (!json_equal(&obj, &want)) {
            fail_msg("%s: expected %s, got %s", defaults[i].name, defaults[i].want, text.data);
        }
    }
}

#define A(schema) OBJECT("'a':" schema)
#define IN "a: Invalid value: "

static const struct {
    const char *schema, *object, *want;
} checks[] = {
    {A("{'type':'integer'}"), "{'a':1}", ""},
    {A("{'type':'integer'}"), "{'a':1.0}", ""},
    {A("{'type':'integer'}"), "{'a':'x'}",
     "FieldValueTypeInvalid " IN "\"string\": a in body must be of type integer: \"string\"\n"},
    {A("{'type':'number'}"), "{'a':1.5}", ""},
    {A("{'type':'boolean'}"), "{'a':0}",
     "FieldValueTypeInvalid " IN "\"integer\": a in body must be of type boolean: \"integer\"\n"},
    {A("{'type':'string'}"), "{'a':null}",
     "FieldValueTypeInvalid " IN "\"null\": a in body must be of type string: \"null\"\n"},
    {A("{'type':'string','nullable':true}"), "{'a':null}", ""},
    {A(INT_OR_STRING), "{'a':1}", ""},
    {A(INT_OR_STRING), "{'a':'1Gi'}", ""},
    {A(INT_OR_STRING), "{'a':true}",
     "FieldValueTypeInvalid " IN
     "\"boolean\": a in body must be of type integer,string: \"boolean\"\n"},
    {A("{'type':'integer','format':'int32'}"), "{'a':2147483648}",
     "FieldValueTypeInvalid " IN "2147483648: a in body must be of type int32: 2147483648\n"},
    {A("{'type':'integer','minimum':1}"), "{'a':0}",
     "FieldValueInvalid " IN "0: a in body should be greater than or equal to 1\n"},
    {A("{'type':'number','minimum':0,'exclusiveMinimum':true}"), "{'a':0}",
     "FieldValueInvalid " IN "0: a in body should be greater than 0\n"},
    {A("{'type':'integer','maximum':5}"), "{'a':6}",
     "FieldValueInvalid " IN "6: a in body should be less than or equal to 5\n"},
    {A("{'type':'integer','multipleOf':3}"), "{'a':7}",
     "FieldValueInvalid " IN "7: a in body should be a multiple of 3\n"},
    {A("{'type':'string','minLength':2}"), "{'a':'x'}",
     "FieldValueInvalid " IN "\"x\": a in body should be at least 2 chars long\n"},
    {A("{'type':'string','maxLength':1}"), "{'a':'\xc3\xa4'}", ""},
    {A("{'type':'string','maxLength':1}"), "{'a':'xy'}",
     "FieldValueInvalid " IN "\"xy\": a in body should be at most 1 chars long\n"},
    {A("{'type':'string','pattern':'^[a-z]+$'}"), "{'a':'A'}",
     "FieldValueInvalid " IN "\"A\": a in body should match '^[a-z]+$'\n"},
    {A("{'type':'string','enum':['x','y']}"), "{'a':'z'}",
     "FieldValueNotSupported a: Unsupported value: \"z\": supported values: \"x\", \"y\"\n"},
    {A("{'type':'string','format':'date-time'}"), "{'a':'2026-01-02T15:04:05Z'}", ""},
    {A("{'type':'string','format':'date-time'}"), "{'a':'now'}",
     "FieldValueTypeInvalid " IN "\"now\": a in body must be of type date-time: \"now\"\n"},
    {A("{'type':'string','format':'byte'}"), "{'a':'YQ='}",
     "FieldValueTypeInvalid " IN "\"YQ=\": a in body must be of type byte: \"YQ=\"\n"},
    {A("{'type':'string','format':'ipv4'}"), "{'a':'10.0.0.1'}", ""},
    {A("{'type':'string','format':'whatever'}"), "{'a':'x'}", ""},
    {A("{'type':'array','minItems':1,'items':{'type':'string'}}"), "{'a':[]}",
     "FieldValueInvalid " IN "0: a in body should have at least 1 items\n"},
    {A("{'type':'array','maxItems':1,'items':{'type':'string'}}"), "{'a':['x','y']}",
     "FieldValueTooMany a: Too many: 2: must have at most 1 items\n"},
    {A("{'type':'array','items':{'type':'string'}}"), "{'a':['x',1]}",
     "FieldValueTypeInvalid a[1]: Invalid value: \"integer\": a[1] in body must be of type string: "
     "\"integer\"\n"},
    {A("{'type':'array','x-kubernetes-list-type':'set','items':{'type':'string'}}"),
     "{'a':['x','y','x']}", "FieldValueDuplicate a[2]: Duplicate value: \"x\"\n"},
    {A("{'type':'array','x-kubernetes-list-type':'map','x-kubernetes-list-map-keys':['n','p'],"
       "'items':" OBJECT("'n':{'type':'string'},'p':{'type':'integer'}") "}"),
     "{'a':[{'n':'x','p':1},{'n':'x','p':2},{'n':'x','p':1}]}",
     "FieldValueDuplicate a[2]: Duplicate value: {\"n\":\"x\",\"p\":1}\n"},
    {"{'type':'object','required':['a']}", "{}", "FieldValueRequired a: Required value\n"},
    {A("{'type':'object','maxProperties':1,'additionalProperties':{'type':'string'}}"),
     "{'a':{'x':'1','y':'2'}}", "FieldValueTooMany a: Too many: 2: must have at most 1 items\n"},
    {A("{'type':'string','anyOf':[{'pattern':'^x'},{'pattern':'^y'}]}"), "{'a':'yes'}", ""},
    {A("{'type':'string','anyOf':[{'pattern':'^x'},{'pattern':'^y'}]}"), "{'a':'no'}",
     "FieldValueInvalid " IN "\"no\": a in body must validate at least one schema (anyOf)\n"},
    {A("{'type':'string','oneOf':[{'pattern':'^x'},{'pattern':'x$'}]}"), "{'a':'x'}",
     "FieldValueInvalid " IN "\"x\": a in body must validate one and only one schema (oneOf)\n"},
    {A("{'type':'string','not':{'pattern':'^x'}}"), "{'a':'x'}",
     "FieldValueInvalid " IN "\"x\": a in body must not validate the schema (not)\n"},
    {A("{'type':'object','x-kubernetes-embedded-resource':true}"), "{'a':{'kind':'K'}}",
     "FieldValueRequired a.apiVersion: Required value\n"},
};

static void values_are_checked(void **state)
{
    for (size_t i = 0; i < HK_LEN(checks); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf found = {0};
        struct schema *s = compile(checks[i].schema, &a);
        const struct json obj = json_of_text(checks[i].object, &a);
        const struct schema_sink sink = {.ctx = &found, .error = on_error};
        const bool valid = schema_validate(s, &obj, NULL, &a, &sink);

        schema_free(s);
        if (!hk_str_is(hk_buf_str(&found), checks[i].want) || valid != (found.len == 0)) {
            fail_msg("%s with %s: expected %s, got %s", checks[i].schema, checks[i].object,
                     checks[i].want, hk_buf_str(&found).s);
        }
    }
}

static const char *const broken[] = {
    "[]",
    "{}",
    "{'type':'map'}",
    OBJECT("'a':{}"),
    OBJECT("'a':{'$ref':'#/x'}"),
    OBJECT("'a':{'type':'string','pattern':'('}"),
    OBJECT("'a':{'type':'array','x-kubernetes-list-type':'map'}"),
};

static void schemas_that_are_not_structural_are_refused(void **state)
{
    for (size_t i = 0; i < HK_LEN(broken); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        const struct json doc = json_of_text(broken[i], &a);
        struct hk_err err = {0};
        struct schema *s = NULL;

        if (schema_new(&doc, &s, &err) != -HK_EINVAL) {
            fail_msg("%s: expected a refusal", broken[i]);
        }
    }
}

/* Defaults are checked with the defaults inside them filled in. */
static void test_a_default_must_fit_its_schema(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf found = {0};
    const struct schema_sink sink = {.ctx = &found, .error = on_error};
    struct schema *s = compile(
        OBJECT("'a':{'type':'integer','default':'x'},'b':{'type':'array','items':{'type':'string',"
               "'enum':['p'],'default':'q'}},'c':{'type':'object','default':{},'required':['d'],"
               "'properties':{'d':{'type':'integer','default':1}}}"),
        &a);

    schema_check_defaults(s, &a, &sink);
    schema_free(s);
    assert_true(hk_str_contains(hk_buf_str(&found), "properties[a].default"));
    assert_true(hk_str_contains(hk_buf_str(&found), "in body must be of type integer"));
    assert_true(hk_str_contains(hk_buf_str(&found), "properties[b].items.default"));
    assert_false(hk_str_contains(hk_buf_str(&found), "properties[c]"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_fields_are_pruned),
        cmocka_unit_test(defaults_are_filled_in),
        cmocka_unit_test(values_are_checked),
        cmocka_unit_test(test_a_default_must_fit_its_schema),
        cmocka_unit_test(schemas_that_are_not_structural_are_refused),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
