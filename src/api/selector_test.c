// SPDX-License-Identifier: Apache-2.0
// Selectors: the operators, the text forms, and what is refused.
#include "api/selector.h"

#include "api/pod.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct hk_arena arena;

static int teardown(void **state)
{
    hk_arena_fini(&arena);
    return 0;
}

static const struct json *parse(const char *text)
{
    struct json *v = hk_arena_alloc(&arena, sizeof(*v));
    struct hk_err err = {0};

    if (json_parse(hk_str(text), 0, &arena, v, &err) < 0) {
        fail_msg("test JSON: %s", err.text);
    }
    return v;
}

/* Labels a=1, b=2, n=10, e="". */
static const struct api_map labels = {
    (struct api_kv[]){
        {{"a", 1}, {"1", 1}}, {{"b", 1}, {"2", 1}}, {{"e", 1}, {"", 0}}, {{"n", 1}, {"10", 2}}},
    4};

static void label_selector_json_matches(void **state)
{
    static const struct {
        const char *json;
        bool match;
    } cases[] = {
        {"null", false}, /* a null selector selects nothing */
        {"{}", true},
        {"{\"matchLabels\":{}}", true},
        {"{\"matchLabels\":{\"a\":\"1\"}}", true},
        {"{\"matchLabels\":{\"a\":\"1\",\"b\":\"x\"}}", false},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"2\",\"1\"]}]}",
         true},
        {"{\"matchExpressions\":[{\"key\":\"z\",\"operator\":\"In\",\"values\":[\"1\"]}]}", false},
        {"{\"matchExpressions\":[{\"key\":\"z\",\"operator\":\"NotIn\",\"values\":[\"1\"]}]}",
         true},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"NotIn\",\"values\":[\"1\"]}]}",
         false},
        {"{\"matchExpressions\":[{\"key\":\"e\",\"operator\":\"Exists\"}]}", true},
        {"{\"matchExpressions\":[{\"key\":\"z\",\"operator\":\"Exists\",\"values\":[]}]}", false},
        {"{\"matchExpressions\":[{\"key\":\"z\",\"operator\":\"DoesNotExist\"}]}", true},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"DoesNotExist\"}]}", false},
        {"{\"matchLabels\":{\"a\":\"1\"},\"matchExpressions\":[{\"key\":\"b\",\"operator\":"
         "\"DoesNotExist\"}]}",
         false},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct api_selector s;
        struct hk_err err = {0};
        if (api_selector_decode(parse(cases[i].json), &arena, &s, &err) < 0) {
            fail_msg("%s: %s", cases[i].json, err.text);
        }
        if (api_selector_match(&s, &labels) != cases[i].match) {
            fail_msg("%s: expected %d, have %d", cases[i].json, cases[i].match, !cases[i].match);
        }
    }
}

static void bad_label_selector_json_is_refused(void **state)
{
    static const struct {
        const char *json, *text;
    } cases[] = {
        {"[]", "line 1: want object, have array"},
        {"{\"matchExpressions\":[{\"operator\":\"In\"}]}",
         "line 1: matchExpressions[0].key: missing"},
        {"{\"matchExpressions\":[{\"key\":\"a\"}]}",
         "line 1: matchExpressions[0].operator: missing"},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Gt\",\"values\":[\"1\"]}]}",
         "line 1: matchExpressions[0]: operator 'Gt' is for node selectors only"},
        {"{\"matchExpressions\":[{\"key\":\"a b\",\"operator\":\"Exists\"}]}",
         "line 1: matchExpressions[0]: bad label key 'a b'"},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\",\"values\":[\"1\"]}]}",
         "line 1: matchExpressions[0]: operator 'Exists' with 1 values"},
        {"{\"matchLabels\":{\"a\":1}}", "line 1: matchLabels.a: want string, have integer 1"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct api_selector s;
        struct hk_err err = {0};
        const int rc = api_selector_decode(parse(cases[i].json), &arena, &s, &err);
        if (rc != -HK_EINVAL || strcmp(err.text, cases[i].text) != 0) {
            fail_msg("%s\nexpected %s\nhave     %s", cases[i].json, cases[i].text, err.text);
        }
    }
}

static void selector_text_matches_and_reads_back(void **state)
{
    static const struct {
        const char *text, *written;
        bool match;
    } cases[] = {
        {"", "", true},
        {"  ", "", true},
        {"a=1", "a=1", true},
        {"a==1", "a=1", true},
        {" a = 1 , b = 2 ", "a=1,b=2", true},
        {"a=2", "a=2", false},
        {"a!=2", "a!=2", true},
        {"z!=2", "z!=2", true},
        {"e=", "e=", true},
        {"e=,a", "e=,a", true},
        {"a", "a", true},
        {"!a", "!a", false},
        {"! z", "!z", true},
        {"a in (2, 1,2)", "a in (1,2)", true},
        {"a in (1)", "a=1", true},
        {"a notin (1,2)", "a notin (1,2)", false},
        {"z notin (1,2)", "z notin (1,2)", true},
        {"e in ()", "e=", true},
        {"e in (,x)", "e in (,x)", true},
        {"in in (in)", "in=in", false},
        {"n>9,n<11", "n>9,n<11", true},
        {"n>10", "n>10", false},
        {"a.b/c=d,volcano.sh/x", "a.b/c=d,volcano.sh/x", false},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
        struct api_selector s;
        struct hk_err err = {0};
        if (api_selector_parse(hk_str(cases[i].text), &arena, &s, &err) < 0) {
            fail_msg("%s: %s", cases[i].text, err.text);
        }
        api_selector_write(&s, &out);
        assert_string_equal(out.data ? out.data : "", cases[i].written);
        if (api_selector_match(&s, &labels) != cases[i].match) {
            fail_msg("%s: expected %d, have %d", cases[i].text, cases[i].match, !cases[i].match);
        }
    }
}

static void bad_selector_text_is_refused(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {",", "selector ',': column 1: want a label key, have ','"},
        {"a,", "selector 'a,': column 3: want a label key, have end of selector"},
        {"a,,b", "selector 'a,,b': column 3: want a label key, have ','"},
        {"a b", "selector 'a b': column 3: want an operator, have 'b'"},
        {"a=1 b", "selector 'a=1 b': column 5: want ',', have 'b'"},
        {"!a=1", "selector '!a=1': column 3: want ',', have '='"},
        {"a in 1", "selector 'a in 1': column 6: want '(', have '1'"},
        {"a in (1", "selector 'a in (1': column 8: want ',' or ')', have end of selector"},
        {"a in (1 2)", "selector 'a in (1 2)': column 9: want ',' or ')', have '2'"},
        {"-a", "selector '-a': column 1: bad label key '-a'"},
        {"a=b/c", "selector 'a=b/c': column 3: bad label value 'b/c'"},
        {"a>x", "selector 'a>x': column 3: want an integer, have 'x'"},
        {"a===b", "selector 'a===b': column 4: want ',', have '='"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct api_selector s;
        struct hk_err err = {0};
        const int rc = api_selector_parse(hk_str(cases[i].text), &arena, &s, &err);
        if (rc != -HK_EINVAL || strcmp(err.text, cases[i].message) != 0) {
            fail_msg("expected %s\nhave     %s", cases[i].message, err.text);
        }
    }
}

static void label_syntax_follows_kubernetes(void **state)
{
    static const struct {
        const char *key;
        bool valid;
    } keys[] = {
        {"a", true},       {"A_b-c.d", true}, {"example.com/x", true}, {"", false},
        {"/x", false},     {"x/", false},     {"a/b/c", false},        {"-a", false},
        {"a-", false},     {"Up/x", false},   {"a..b/x", false},       {"a b", false},
        {"-a.b/x", false},
    };

    for (size_t i = 0; i < HK_LEN(keys); i++) {
        if (api_label_key_valid(hk_str(keys[i].key)) != keys[i].valid) {
            fail_msg("key '%s': expected %d", keys[i].key, keys[i].valid);
        }
    }
    const char *x63 = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
    assert_true(api_label_key_valid((struct hk_str){x63, 63}));
    assert_true(api_label_value_valid((struct hk_str){x63, 63}));
    assert_false(api_label_value_valid(hk_str(hk_arena_printf(&arena, "%sx", x63))));
    assert_true(api_label_value_valid(HK_STR("")));
    assert_false(api_label_value_valid(HK_STR("a/b")));
}

static void node_selector_terms_match(void **state)
{
    /* Terms of a required node affinity, against the labels above on node "n1". */
    static const struct {
        const char *terms;
        bool match;
    } cases[] = {
        {"[]", false},
        {"[{}]", false},
        {"[{\"matchExpressions\":[{\"key\":\"n\",\"operator\":\"Gt\",\"values\":[\"9\"]}]}]", true},
        {"[{\"matchExpressions\":[{\"key\":\"n\",\"operator\":\"Lt\",\"values\":[\"10\"]}]}]",
         false},
        {"[{\"matchExpressions\":[{\"key\":\"e\",\"operator\":\"Gt\",\"values\":[\"0\"]}]}]",
         false},
        /* an invalid term is skipped, the others still count */
        {"[{\"matchExpressions\":[{\"key\":\"n\",\"operator\":\"Gt\",\"values\":[\"x\"]}]}]",
         false},
        {"[{\"matchExpressions\":[{\"key\":\"n\",\"operator\":\"Gt\",\"values\":[\"x\"]}]},"
         "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\"}]}]",
         true},
        {"[{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\"}]}]", false},
        {"[{\"matchExpressions\":[{\"key\":\"a b\",\"operator\":\"DoesNotExist\"}]}]", false},
        {"[{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"n1\"]}]}"
         "]",
         true},
        {"[{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"NotIn\",\"values\":"
         "[\"n1\"]}]}]",
         false},
        {"[{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":"
         "[\"n1\",\"n2\"]}]}]",
         false},
        {"[{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"Exists\"}]}]", false},
        {"[{\"matchFields\":[{\"key\":\"spec.x\",\"operator\":\"NotIn\",\"values\":[\"n1\"]}]}]",
         true},
        {"[{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\"}],\"matchFields\":"
         "[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"n2\"]}]}]",
         false},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct api_pod pod;
        struct hk_err err = {0};
        const char *text = hk_arena_printf(
            &arena,
            "{\"spec\":{\"affinity\":{\"nodeAffinity\":{"
            "\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":%s}}}}}",
            cases[i].terms);
        if (api_pod_decode(parse(text), &arena, &pod, &err) < 0) {
            fail_msg("%s: %s", cases[i].terms, err.text);
        }
        const struct api_node_selector *s = &pod.node_affinity.required;
        if (api_node_selector_match(s, &labels, HK_STR("n1")) != cases[i].match) {
            fail_msg("%s: expected %d, have %d", cases[i].terms, cases[i].match, !cases[i].match);
        }
    }
}

static void absent_node_selector_matches_every_node(void **state)
{
    const struct api_node_selector none = {0};
    assert_true(api_node_selector_match(&none, &labels, HK_STR("n1")));
}

static void field_selector_matches(void **state)
{
    static const struct {
        const char *text;
        bool match;
    } cases[] = {
        {"", true},
        {"metadata.name=x", true},
        {"metadata.name==x,status.phase!=Running", true},
        {"metadata.name!=x", false},
        {",metadata.name=x,", true},
        {"spec.nodeName=", true},
        {"spec.nodeName!=", false},
        {"spec.unschedulable=true", true},
        {"spec.count=3", true},
        {"spec.count=4", false},
        {"spec.odd=a\\,b\\=c\\\\d", true},
        {"spec=", false},
    };
    const struct json *obj =
        parse("{\"metadata\":{\"name\":\"x\"},\"status\":{\"phase\":\"Pending\"},\"spec\":"
              "{\"unschedulable\":true,\"count\":3,\"odd\":\"a,b=c\\\\d\"}}");

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct api_field_selector s;
        struct hk_err err = {0};
        if (api_field_selector_parse(hk_str(cases[i].text), &arena, &s, &err) < 0) {
            fail_msg("%s: %s", cases[i].text, err.text);
        }
        if (api_field_selector_match(&s, obj) != cases[i].match) {
            fail_msg("%s: expected %d, have %d", cases[i].text, cases[i].match, !cases[i].match);
        }
    }
}

static void bad_field_selector_is_refused(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"a", "field selector 'a': want '=', '==' or '!=' in 'a'"},
        {"=a", "field selector '=a': no field name in '=a'"},
        {"a=b=c", "field selector 'a=b=c': bare '=' in value 'b=c'"},
        {"a=b\\x", "field selector 'a=b\\x': bad escape in value 'b\\x'"},
        {"a=b\\", "field selector 'a=b\\': bad escape in value 'b\\'"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct api_field_selector s;
        struct hk_err err = {0};
        const int rc = api_field_selector_parse(hk_str(cases[i].text), &arena, &s, &err);
        if (rc != -HK_EINVAL || strcmp(err.text, cases[i].message) != 0) {
            fail_msg("expected %s\nhave     %s", cases[i].message, err.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(label_selector_json_matches, teardown),
        cmocka_unit_test_teardown(bad_label_selector_json_is_refused, teardown),
        cmocka_unit_test_teardown(selector_text_matches_and_reads_back, teardown),
        cmocka_unit_test_teardown(bad_selector_text_is_refused, teardown),
        cmocka_unit_test_teardown(label_syntax_follows_kubernetes, teardown),
        cmocka_unit_test_teardown(node_selector_terms_match, teardown),
        cmocka_unit_test_teardown(absent_node_selector_matches_every_node, teardown),
        cmocka_unit_test_teardown(field_selector_matches, teardown),
        cmocka_unit_test_teardown(bad_field_selector_is_refused, teardown),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("api/selector", tests, NULL, NULL);
}
