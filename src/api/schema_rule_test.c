// SPDX-License-Identifier: Apache-2.0
// The rules of x-kubernetes-validations: on new objects and updates, their messages, and those that
// a definition may not have. In schemas Q stands for a quote inside of an expression.
#include "api/schema.h"
#include "codec/json_text_test.h"

#define Q "\\u0027"
#define A(schema) "{'type':'object','properties':{'a':" schema "}}"
#define RULES(list) "'x-kubernetes-validations':[" list "]"
#define PAIR "'type':'object','properties':{'x':{'type':'integer'},'y':{'type':'integer'}}"
#define INVALID(type) "FieldValueInvalid a: Invalid value: \"" type "\": "

static void on_error(void *ctx, const char *reason, const char *field, const char *message)
{
    hk_buf_addf(ctx, "%s %s: %s\n", reason, field, message);
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

static const struct {
    const char *schema, *old, *object, *want;
} cases[] = {
    /* messages */
    {A("{" PAIR "," RULES("{'rule':'self.x < self.y'}") "}"), NULL, "{'a':{'x':2,'y':1}}",
     INVALID("object") "failed rule: self.x < self.y\n"},
    {A("{" PAIR "," RULES("{'rule':'self.x < self.y','message':' x comes first '}") "}"), NULL,
     "{'a':{'x':2,'y':1}}", INVALID("object") "x comes first\n"},
    {A("{" PAIR "," RULES("{'rule':'self.x < self.y','message':'m','messageExpression':'" Q
                          "x is " Q " + string(self.x)'}") "}"),
     NULL, "{'a':{'x':2,'y':1}}", INVALID("object") "x is 2\n"},
    {A("{" PAIR "," RULES("{'rule':'self.x < self.y','message':'m','messageExpression':"
                          "'string(self.x / 0)'}") "}"),
     NULL, "{'a':{'x':2,'y':1}}", INVALID("object") "m\n"},
    {A("{" PAIR "," RULES("{'rule':'self.x < self.y','reason':'FieldValueForbidden','message':'no',"
                          "'fieldPath':'.x'}") "}"),
     NULL, "{'a':{'x':2,'y':1}}", "FieldValueForbidden a.x: Forbidden: no\n"},
    {A("{" PAIR "," RULES("{'rule':'has(self.x)','reason':'FieldValueRequired','message':'give x',"
                          "'fieldPath':'.x'}") "}"),
     NULL, "{'a':{}}", "FieldValueRequired a.x: Required value: give x\n"},
    {A("{'type':'object','additionalProperties':{'type':'string'}," RULES(
         "{'rule':'self.size() < 1','reason':'FieldValueDuplicate','fieldPath':'[" Q "k" Q
         "]'}") "}"),
     NULL, "{'a':{'k':'v'}}", "FieldValueDuplicate a[k]: Duplicate value: \"object\"\n"},
    {"{'type':'object','properties':{'a':{'type':'integer'}}," RULES(
         "{'rule':'self.a > 1','fieldPath':'.a','message':'m'}") "}",
     NULL, "{'a':1}", INVALID("object") "m\n"},
    /* values */
    {A("{'type':'integer'," RULES("{'rule':'self > 1'},{'rule':'self < 0'}") "}"), NULL, "{'a':1}",
     INVALID("integer") "failed rule: self > 1\n" INVALID("integer") "failed rule: self < 0\n"},
    {A("{'type':'integer'," RULES("{'rule':'self > 1'}") "}"), NULL, "{}", ""},
    {A("{'type':'integer','nullable':true," RULES("{'rule':'self > 1'}") "}"), NULL, "{'a':null}",
     ""},
    {A("{'type':'string','format':'date-time'," RULES("{'rule':'self < timestamp(" Q
                                                      "2027-01-01T00:00:00Z" Q ")'}") "}"),
     NULL, "{'a':'2028-01-01T00:00:00Z'}",
     INVALID("string") "failed rule: self < timestamp('2027-01-01T00:00:00Z')\n"},
    {A("{'type':'array','items':{'type':'string'}," RULES(
         "{'rule':'self.all(s, s.size() > 1)'}") "}"),
     NULL, "{'a':['xx','y']}", INVALID("array") "failed rule: self.all(s, s.size() > 1)\n"},
    {A("{'type':'array','items':{'type':'string'," RULES("{'rule':'self.size() > 1'}") "}}"), NULL,
     "{'a':['xx','y']}",
     "FieldValueInvalid a[1]: Invalid value: \"string\": failed rule: self.size() > 1\n"},
    {A("{'x-kubernetes-int-or-string':true," RULES("{'rule':'type(self) == int ? self > 1 : "
                                                   "self.endsWith(" Q "%" Q ")'}") "}"),
     NULL, "{'a':'50%'}", ""},
    {A("{'type':'object','properties':{'b-c':{'type':'integer'}}," RULES(
         "{'rule':'self.b__dash__c > 1'}") "}"),
     NULL, "{'a':{'b-c':1}}", INVALID("object") "failed rule: self.b__dash__c > 1\n"},
    {"{'type':'object'," RULES("{'rule':'self.metadata.name.startsWith(" Q "x" Q
                               ") && self.kind != " Q Q "'}") "}",
     NULL, "{'kind':'K','metadata':{'name':'y'}}",
     "FieldValueInvalid : Invalid value: \"object\": failed rule: "
     "self.metadata.name.startsWith('x') && self.kind != ''\n"},
    /* errors of a rule are failures */
    {A("{" PAIR "," RULES("{'rule':'self.x > 1'}") "}"), NULL, "{'a':{}}",
     INVALID("object") "no such key: x evaluating rule: self.x > 1\n"},
    {A("{'x-kubernetes-int-or-string':true," RULES("{'rule':'self > 1'}") "}"), NULL, "{'a':'s'}",
     INVALID("") "'no such overload': call arguments did not match a supported operator, function "
                 "or macro signature for rule: self > 1\n"},
    /* wrong types come first */
    {A("{" PAIR "," RULES("{'rule':'self.x > 1'}") "}"), NULL, "{'a':{'x':'s'}}",
     "FieldValueTypeInvalid a.x: Invalid value: \"string\": a.x in body must be of type integer: "
     "\"string\"\nFieldValueInvalid <nil>: Invalid value: \"null\": some validation rules were not "
     "checked because the object was invalid; correct the existing errors to complete "
     "validation\n"},
    /* transition rules: updates only, also when the value did not change */
    {A("{'type':'integer'," RULES("{'rule':'self == oldSelf'}") "}"), NULL, "{'a':1}", ""},
    {A("{'type':'integer'," RULES("{'rule':'self == oldSelf'}") "}"), "{}", "{'a':1}", ""},
    {A("{'type':'integer'," RULES("{'rule':'self == oldSelf'}") "}"), "{'a':2}", "{'a':1}",
     INVALID("integer") "failed rule: self == oldSelf\n"},
    {A("{'type':'integer'," RULES("{'rule':'self > oldSelf'}") "}"), "{'a':1}", "{'a':1}",
     INVALID("integer") "failed rule: self > oldSelf\n"},
    {A("{'type':'integer'," RULES(
         "{'rule':'oldSelf.orValue(0) < self','optionalOldSelf':true}") "}"),
     NULL, "{'a':0}", INVALID("integer") "failed rule: oldSelf.orValue(0) < self\n"},
    {A("{'type':'integer'," RULES(
         "{'rule':'oldSelf.orValue(0) < self','optionalOldSelf':true}") "}"),
     "{'a':3}", "{'a':4}", ""},
    {A("{'type':'array','x-kubernetes-list-type':'map','x-kubernetes-list-map-keys':['n'],'items':{"
       "'type':'object','properties':{'n':{'type':'string'},'v':{'type':'integer'}}," RULES(
           "{'rule':'self.v >= oldSelf.v'}") "}}"),
     "{'a':[{'n':'p','v':1},{'n':'q','v':5}]}", "{'a':[{'n':'q','v':4},{'n':'r','v':0}]}",
     "FieldValueInvalid a[0]: Invalid value: \"object\": failed rule: self.v >= oldSelf.v\n"},
    /* other rules leave a value alone that did not change */
    {A("{'type':'integer'," RULES("{'rule':'self > 5'}") "}"), "{'a':1}", "{'a':1}", ""},
    {A("{'type':'integer'," RULES("{'rule':'self > 5'}") "}"), "{'a':1}", "{'a':2}",
     INVALID("integer") "failed rule: self > 5\n"},
};

static void test_rules_judge_objects(void **state)
{
    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf found = {0};
        struct schema *s = compile(cases[i].schema, &a);
        const struct json obj = json_of_text(cases[i].object, &a);
        const struct json old = json_of_text(cases[i].old ? cases[i].old : "{}", &a);
        const struct schema_sink sink = {.ctx = &found, .error = on_error};
        const bool valid = schema_validate(s, &obj, cases[i].old ? &old : NULL, &a, &sink);

        schema_free(s);
        if (!hk_str_is(hk_buf_str(&found), cases[i].want) || valid != (found.len == 0)) {
            fail_msg("%s with %s: expected %s, got %s", cases[i].schema, cases[i].object,
                     cases[i].want, hk_buf_str(&found).s);
        }
    }
}

#define AT "properties[a].x-kubernetes-validations[0]"

static const struct {
    const char *schema, *want;
} reviews[] = {
    {A("{" PAIR "," RULES("{'rule':'self.x > 1'}") "}"), ""},
    {A("{" PAIR "," RULES("{'rule':'self.z > 1'}") "}"),
     "FieldValueInvalid " AT ".rule: Invalid value: \"self.z > 1\": compilation failed: ERROR: "
     "<input>:1:5: undefined field 'z'\n | self.z > 1\n | ....^\n"},
    {A("{'type':'integer'," RULES("{'rule':'self'}") "}"),
     "FieldValueInvalid " AT ".rule: Invalid value: \"self\": cel expression must evaluate to "
     "a bool\n"},
    {A("{'type':'integer'," RULES("{'rule':'  '}") "}"),
     "FieldValueRequired " AT ".rule: Required value: rule is not specified\n"},
    {A("{'type':'integer'," RULES("{'rule':'self > 1','message':'a\\nb'}") "}"),
     "FieldValueInvalid " AT ".message: Invalid value: \"a\nb\": message must not contain line "
     "breaks\n"},
    {A("{'type':'integer'," RULES("{'rule':'self > 1','messageExpression':'self'}") "}"),
     "FieldValueInvalid " AT ".messageExpression: Invalid value: \"self\": messageExpression must "
     "evaluate to a string\n"},
    {A("{'type':'integer'," RULES("{'rule':'self > 1','reason':'Other'}") "}"),
     "FieldValueNotSupported " AT ".reason: Unsupported value: \"Other\": supported values: "
     "\"FieldValueRequired\", \"FieldValueInvalid\", \"FieldValueForbidden\", "
     "\"FieldValueDuplicate\"\n"},
    {A("{" PAIR "," RULES("{'rule':'self.x > 1','fieldPath':'.z'}") "}"),
     "FieldValueInvalid " AT ".fieldPath: Invalid value: \".z\": fieldPath must be a valid path\n"},
    {A("{'type':'integer'," RULES("{'rule':'self > 1','optionalOldSelf':true}") "}"),
     "FieldValueInvalid " AT ".optionalOldSelf: Invalid value: true: must not be set to true if "
     "oldSelf is not used in rule\n"},
    {A("{'type':'array','items':{'type':'integer'," RULES("{'rule':'self > oldSelf'}") "}}"),
     "FieldValueInvalid properties[a].items.x-kubernetes-validations[0].rule: Invalid value: "
     "\"self > oldSelf\": oldSelf cannot be used on the uncorrelatable portion of the schema\n"},
    {A("{'type':'integer','allOf':[{'minimum':1," RULES("{'rule':'self > 1'}") "}]}"),
     "FieldValueForbidden properties[a].allOf[0].x-kubernetes-validations: Forbidden: must be "
     "empty "
     "to be structural\n"},
};

static void test_a_definition_is_reviewed(void **state)
{
    for (size_t i = 0; i < HK_LEN(reviews); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf found = {0};
        struct schema *s = compile(reviews[i].schema, &a);
        const struct schema_sink sink = {.ctx = &found, .error = on_error};

        schema_check_rules(s, &a, &sink);
        schema_free(s);
        if (!hk_str_is(hk_buf_str(&found), reviews[i].want)) {
            fail_msg("%s: expected %s, got %s", reviews[i].schema, reviews[i].want,
                     hk_buf_str(&found).s);
        }
    }
}

/* A rule that is too expensive ends all others. */
static void test_an_expensive_rule_ends_all(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf found = {0};
    struct schema *s = compile(A("{'type':'array','items':{'type':'integer'}," RULES(
                                   "{'rule':'self.all(x, self.all(y, self.all(z, x + y + z > "
                                   "0)))'},{'rule':'1 > 2'}") "}"),
                               &a);
    const struct schema_sink sink = {.ctx = &found, .error = on_error};
    struct json list = json_make_array(), obj = json_make_object();

    for (int i = 1; i < 200; i++) {
        json_push(&list, &a, json_make_int(i));
    }
    json_set(&obj, &a, "a", list);
    assert_false(schema_validate(s, &obj, NULL, &a, &sink));
    schema_free(s);
    assert_string_equal(
        hk_buf_str(&found).s,
        INVALID("array") "'operation cancelled: actual cost limit exceeded': no further validation "
                         "rules will be run due to call cost exceeds limit for rule: self.all(x, "
                         "self.all(y, self.all(z, x + y + z > 0)))\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules_judge_objects),
        cmocka_unit_test(test_a_definition_is_reviewed),
        cmocka_unit_test(test_an_expensive_rule_ends_all),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
