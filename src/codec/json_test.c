// SPDX-License-Identifier: Apache-2.0
// The JSON tree: reading, errors, writing, lookup, building.

#include "codec/json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct hk_arena arena;

static int fresh_arena(void **state)
{
    hk_arena_clear(&arena);
    return 0;
}

static struct json parse(const char *text)
{
    struct hk_err err = {0};
    struct json v = {0};

    if (json_parse(hk_str(text), 0, &arena, &v, &err) < 0) {
        fail_msg("%s: %s", text, err.text);
    }
    return v;
}

static const char *written(const struct json *v)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    json_write(v, &out);
    return hk_arena_strndup(&arena, out.data, out.len);
}

/* ---- reading ---- */

static void test_values_survive_a_round_trip(void **state)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"null", "null"},
        {" true ", "true"},
        {"false", "false"},
        {"0", "0"},
        {"-0", "0"},
        {"-1", "-1"},
        {"9223372036854775807", "9223372036854775807"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"9223372036854775808", "9223372036854775808"},
        {"18446744073709551615", "18446744073709551615"},
        {"18446744073709551616", "18446744073709552000"},
        {"-9223372036854775809", "-9223372036854776000"},
        {"\"\"", "\"\""},
        {"\"a\\u0041\\n\\t\\/\"", "\"aA\\n\\t/\""},
        {"\"\\u0001\\u001f\\b\\f\\r\\\\\\\"\"", "\"\\u0001\\u001f\\b\\f\\r\\\\\\\"\""},
        {"\"\\u00e9\\u20ac\\ud83d\\ude00\"", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {"\"0123456789abcdef\\n0123456789abcdef\"", "\"0123456789abcdef\\n0123456789abcdef\""},
        {"[]", "[]"},
        {"{}", "{}"},
        {"[ 1 , [ ] , { \"a\" : null } ]", "[1,[],{\"a\":null}]"},
        {"{\"b\":1,\"a\":{\"c\":[true,false]}}", "{\"b\":1,\"a\":{\"c\":[true,false]}}"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        const struct json v = parse(cases[i].in);
        assert_string_equal(written(&v), cases[i].out);
    }
}

static void test_number_types(void **state)
{
    static const struct {
        const char *in;
        enum json_type type;
    } cases[] = {
        {"0", JSON_INT},
        {"-0", JSON_INT},
        {"9223372036854775807", JSON_INT},
        {"-9223372036854775808", JSON_INT},
        {"9223372036854775808", JSON_UINT},
        {"18446744073709551615", JSON_UINT},
        {"18446744073709551616", JSON_DOUBLE},
        {"-9223372036854775809", JSON_DOUBLE},
        {"1.0", JSON_DOUBLE},
        {"1e2", JSON_DOUBLE},
        {"1e-999", JSON_DOUBLE},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        assert_int_equal(parse(cases[i].in).type, cases[i].type);
    }
}

/* A text that may contain NUL bytes. */
#define TEXT(lit)                                                                                  \
    {                                                                                              \
        lit, sizeof(lit) - 1                                                                       \
    }

static void test_refused(void **state)
{
    static const struct {
        struct hk_str in;
        const char *why;
    } cases[] = {
        {TEXT(""), "line 1, column 1: want a value, have the end of the input"},
        {TEXT("\n\n  ?"), "line 3, column 3: want a value, have '?'"},
        {TEXT("nul"), "line 1, column 1: want a value, have 'n'"},
        {TEXT("[1,]"), "line 1, column 4: want a value, have ']'"},
        {TEXT("[1 2]"), "line 1, column 4: want ',' or ']' after an element, have '2'"},
        {TEXT("[1"), "line 1, column 3: want ',' or ']' after an element, have the end of the "
                     "input"},
        {TEXT("{\"a\":1,}"), "line 1, column 8: want a key in double quotes, have '}'"},
        {TEXT("{\"a\" 1}"), "line 1, column 6: want ':' after a key, have '1'"},
        {TEXT("{\"a\":1 \"b\""), "line 1, column 8: want ',' or '}' after a member, have '\"'"},
        {TEXT("{\n  \"a\": 01\n}"), "line 2, column 9: want ',' or '}' after a member, have '1'"},
        {TEXT("[] x"), "line 1, column 4: want the end of the input after the value, have 'x'"},
        {TEXT("-"), "line 1, column 2: want a digit, have the end of the input"},
        {TEXT("1."), "line 1, column 3: want a digit, have the end of the input"},
        {TEXT("1e+x"), "line 1, column 4: want a digit, have 'x'"},
        {TEXT("[1e999]"), "line 1, column 2: number too large"},
        {TEXT("\"abc"), "line 1, column 5: want '\"' to end the string, have the end of the "
                        "input"},
        {TEXT("\"a\nb\""), "line 1, column 3: want control characters escaped in "
                           "a string, have byte 0x0a"},
        {TEXT("\"a\0b\""), "line 1, column 3: want control characters escaped "
                           "in a string, have byte 0x00"},
        {TEXT("\"\\q\""), "line 1, column 3: want one of \"\\/bfnrtu after the "
                          "backslash, have 'q'"},
        {TEXT("\"\\u00g0\""), "line 1, column 2: want four hex digits after \\u"},
        {TEXT("\"\\u0000\""), "line 1, column 2: NUL in a string"},
        {TEXT("\"\\ud800\""), "line 1, column 2: half of a surrogate pair"},
        {TEXT("\"\\udc00\""), "line 1, column 2: half of a surrogate pair"},
        {TEXT("\"\\ud800\\ud800\""), "line 1, column 2: half of a surrogate pair"},
        {TEXT("\"\xff\""), "line 1, column 2: want well-formed UTF-8, have byte 0xff"},
        {TEXT("\"\xc0\x80\""), "line 1, column 2: want well-formed UTF-8, have byte 0xc0"},
        {TEXT("\"\xed\xa0\x80\""), "line 1, column 2: want well-formed UTF-8, have byte 0xed"},
        {TEXT("\"\xe2\x82\""), "line 1, column 2: want well-formed UTF-8, have byte 0xe2"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct hk_err err = {0};
        struct json v = {.line = 77};
        assert_int_equal(json_parse(cases[i].in, 0, &arena, &v, &err), -HK_EINVAL);
        assert_string_equal(err.text, cases[i].why);
        assert_int_equal(v.line, 77); /* untouched */
    }
}

static void test_depth_is_bounded(void **state)
{
    struct hk_err err = {0};
    struct json v;

    for (int depth = JSON_MAX_DEPTH; depth <= JSON_MAX_DEPTH + 1; depth++) {
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
        for (int i = 0; i < depth; i++) {
            hk_buf_addc(&text, '[');
        }
        for (int i = 0; i < depth; i++) {
            hk_buf_addc(&text, ']');
        }
        const int rc = json_parse(hk_buf_str(&text), 0, &arena, &v, &err);
        assert_int_equal(rc, depth <= JSON_MAX_DEPTH ? 0 : -HK_ELIMIT);
    }
    assert_string_equal(err.text, "line 1, column 201: nested too deeply");
}

static void test_duplicate_keys(void **state)
{
    const char *text = "{\"a\":1,\"b\":2,\n \"\\u0061\":3}";
    struct hk_err err = {0};
    struct json v = parse(text);

    assert_string_equal(written(&v), "{\"a\":3,\"b\":2}");
    assert_int_equal(json_parse(hk_str(text), JSON_DUP_REJECT, &arena, &v, &err), -HK_EINVAL);
    assert_string_equal(err.text, "line 2, column 2: duplicate key \"a\"");
}

/* The same above the size up to which keys are compared one by one. */
static void test_duplicate_keys_in_large_objects(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const uint32_t distinct = 5000;
    struct hk_err err = {0};
    struct json v;

    hk_buf_addc(&text, '{');
    for (uint32_t i = 0; i < 3 * distinct; i++) {
        hk_buf_addf(&text, "%s\"k%u\":%u", i > 0 ? "," : "", i % distinct, i);
    }
    hk_buf_addc(&text, '}');

    assert_int_equal(json_parse(hk_buf_str(&text), 0, &arena, &v, &err), 0);
    assert_int_equal(v.len, distinct);
    for (uint32_t i = 0; i < distinct; i++) {
        assert_int_equal(json_int(&v.members[i].value, -1), 2 * distinct + i);
    }
    assert_int_equal(json_parse(hk_buf_str(&text), JSON_DUP_REJECT, &arena, &v, &err), -HK_EINVAL);
    assert_non_null(strstr(err.text, "duplicate key \"k0\""));
}

static void test_lines(void **state)
{
    const struct json v = parse("\n{\n\"a\":\n 1,\r\n\"b\": [\n2, {\n}]}");

    assert_int_equal(v.line, 2);
    assert_int_equal(json_get(&v, "a")->line, 4);
    assert_int_equal(json_get(&v, "b")->line, 5);
    assert_int_equal(json_item(json_get(&v, "b"), 0)->line, 6);
    assert_int_equal(json_item(json_get(&v, "b"), 1)->line, 6);
}

static void test_plain_strings_point_into_the_input(void **state)
{
    const char *text = "[\"plain\",\"esc\\u0061ped\"]";
    const struct json v = parse(text);

    assert_ptr_equal(v.items[0].s, text + 2);
    assert_true(hk_str_is(json_str(&v.items[1], HK_STR("")), "escaped"));
}

/* ---- writing ---- */

static void test_doubles_print_as_in_go(void **state)
{
    static const struct {
        double d;
        const char *out;
    } cases[] = {
        {0.0, "0"},
        {-0.0, "-0"},
        {1.0, "1"},
        {-1.5, "-1.5"},
        {0.1, "0.1"},
        {0.3, "0.3"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1.0 / 3, "0.3333333333333333"},
        {100, "100"},
        {123456789, "123456789"},
        {1e20, "100000000000000000000"},
        {123456789012345680, "123456789012345680"},
        {1e21, "1e+21"},
        {1.5e300, "1.5e+300"},
        {1e-6, "0.000001"},
        {1.25e-5, "0.0000125"},
        {9.5e-7, "9.5e-7"},
        {1e-7, "1e-7"},
        {2.5e-10, "2.5e-10"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {5e-324, "5e-324"},
        {INFINITY, "null"},
        {NAN, "null"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        const struct json v = json_make_double(cases[i].d);
        assert_string_equal(written(&v), cases[i].out);
    }
}

static void test_broken_utf8_is_replaced(void **state)
{
    const struct json v = json_make_str(HK_STR("a\xff\xc3\xa9\xe2\x82z\x7f"));

    assert_string_equal(written(&v), "\"a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbdz\x7f\"");
}

static void test_pretty(void **state)
{
    const struct json v = parse("{\"a\":[1,{\"b\":null}],\"c\":{},\"d\":[]}");
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    json_write_pretty(&v, 2, &out);
    assert_string_equal(out.data, "{\n"
                                  "  \"a\": [\n"
                                  "    1,\n"
                                  "    {\n"
                                  "      \"b\": null\n"
                                  "    }\n"
                                  "  ],\n"
                                  "  \"c\": {},\n"
                                  "  \"d\": []\n"
                                  "}\n");
}

/* ---- lookup ---- */

static void test_looking_around(void **state)
{
    const struct json v =
        parse("{\"spec\":{\"a.b\":7,\"on\":true,\"name\":\"x\",\"list\":[1,2.0]},\"n\":null}");
    const struct json *spec = json_get(&v, "spec");
    const struct hk_str none = HK_STR("none");

    assert_int_equal(json_int(json_get(spec, "a.b"), -1), 7);
    assert_null(json_at(&v, "spec.a.b"));
    assert_true(json_bool(json_at(&v, "spec.on"), false));
    assert_true(hk_str_is(json_str(json_at(&v, "spec.name"), none), "x"));
    assert_int_equal(json_int(json_item(json_at(&v, "spec.list"), 0), -1), 1);
    assert_int_equal(json_int(json_item(json_at(&v, "spec.list"), 1), -1), -1);
    assert_null(json_item(json_at(&v, "spec.list"), 2));
    assert_true(json_is(json_get(&v, "n"), JSON_NULL));

    assert_null(json_at(&v, "spec.name.deeper"));
    assert_null(json_at(&v, "gone.deeper"));
    assert_null(json_get(NULL, "x"));
    assert_null(json_item(NULL, 0));
    assert_null(json_item(spec, 0));
    assert_true(hk_str_is(json_str(NULL, none), "none"));
    assert_true(hk_str_is(json_str(spec, none), "none"));
    assert_true(json_bool(NULL, true));
    assert_false(json_is(NULL, JSON_NULL));
}

static void test_typed_getters_have_fallbacks_for_missing_members(void **state)
{
    const struct json v = parse("{\"s\":\"x\",\"a.b\":\"dotted\",\"n\":null,"
                                "\"o\":{\"s\":\"y\",\"i\":7,\"list\":[1,2],\"d\":1.5}}");
    static const char *const paths[] = {"absent", "n", "n.x", "s.x", "o.absent", "o.d", "o", ""};

    assert_true(hk_str_is(json_str_field(&v, "s"), "x"));
    assert_true(hk_str_is(json_str_field(&v, "a.b"), "dotted"));
    assert_true(hk_str_is(json_str_at(&v, "o.s"), "y"));
    assert_int_equal(json_int_at(&v, "o.i"), 7);
    assert_int_equal(json_list_at(&v, "o.list")->len, 2);
    assert_int_equal(json_len(json_at(&v, "o.list")), 2);
    for (size_t i = 0; i < HK_LEN(paths); i++) {
        assert_non_null(json_str_at(&v, paths[i]).s);
        assert_int_equal(json_str_at(&v, paths[i]).n, 0);
        assert_int_equal(json_str_field(&v, paths[i]).n, 0);
        assert_int_equal(json_int_at(&v, paths[i]), 0);
        assert_true(json_is(json_list_at(&v, paths[i]), JSON_ARRAY));
        assert_int_equal(json_list_at(&v, paths[i])->len, 0);
        assert_int_equal(json_len(json_at(&v, paths[i])), 0);
    }
    assert_int_equal(json_str_field(NULL, "s").n, 0);
    assert_int_equal(json_str_at(NULL, "s").n, 0);
    assert_int_equal(json_list_at(NULL, "s")->len, 0);
    assert_int_equal(json_len(NULL), 0);
}

static void test_numeric_types(void **state)
{
    static const struct {
        const char *in;
        bool numeric;
    } cases[] = {
        {"1", true},     {"18446744073709551615", true},
        {"1.5", true},   {"\"1\"", false},
        {"true", false}, {"null", false},
        {"[]", false},   {"{}", false},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        const struct json v = parse(cases[i].in);
        assert_int_equal(json_is_numeric(&v), cases[i].numeric);
    }
    assert_false(json_is_numeric(NULL));
}

static void test_type_names(void **state)
{
    static const char *const names[] = {"null",   "boolean", "integer", "integer",
                                        "number", "string",  "array",   "object"};

    for (size_t i = 0; i < HK_LEN(names); i++) {
        assert_string_equal(json_type_name((enum json_type)i), names[i]);
    }
}

static void test_equal(void **state)
{
    static const struct {
        const char *a, *b;
        bool equal;
    } cases[] = {
        {"null", "null", true},
        {"null", "false", false},
        {"true", "false", false},
        {"1", "1.0", true},
        {"-3", "-3e0", true},
        {"1", "1.5", false},
        {"0", "-0.0", true},
        {"9223372036854775807", "9223372036854775808.0", false},
        {"9223372036854775808", "9223372036854775808.0", true},
        {"-9223372036854775808", "-9223372036854775808.0", true},
        {"-9223372036854775808", "9223372036854775808", false},
        {"18446744073709551615", "18446744073709551616", false},
        {"1", "\"1\"", false},
        {"\"a\"", "\"\\u0061\"", true},
        {"\"a\"", "\"b\"", false},
        {"[1,2]", "[1,2]", true},
        {"[1,2]", "[2,1]", false},
        {"[]", "{}", false},
        {"{\"a\":1,\"b\":{\"c\":[]}}", "{\"b\":{\"c\":[]},\"a\":1}", true},
        {"{\"a\":1}", "{\"b\":1}", false},
        {"{\"a\":1}", "{\"a\":1,\"b\":1}", false},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        const struct json a = parse(cases[i].a), b = parse(cases[i].b);
        if (json_equal(&a, &b) != cases[i].equal || json_equal(&b, &a) != cases[i].equal ||
            (cases[i].equal && json_hash(&a) != json_hash(&b))) {
            fail_msg("%s and %s: want %s", cases[i].a, cases[i].b,
                     cases[i].equal ? "equal" : "different");
        }
    }
    assert_true(json_equal(NULL, NULL));
}

static void test_equal_ignores_the_order_of_large_objects(void **state)
{
    struct json a = json_make_object(), b = json_make_object();
    const int n = 500;

    for (int i = 0; i < n; i++) {
        json_put(&a, &arena, hk_str(hk_arena_printf(&arena, "k%d", i)), json_make_int(i));
        json_put(&b, &arena, hk_str(hk_arena_printf(&arena, "k%d", n - 1 - i)),
                 json_make_int(n - 1 - i));
    }
    assert_true(json_equal(&a, &b));
    json_put(&b, &arena, HK_STR("k7"), json_make_int(8));
    assert_false(json_equal(&a, &b));
}

/* ---- building ---- */

static void test_building(void **state)
{
    struct json v = json_make_object();

    json_put(&v, &arena, HK_STR("a"), json_make_int(1));
    struct json *list = json_put(&v, &arena, HK_STR("list"), json_make_array());
    for (int i = 0; i < 6; i++) {
        json_push(list, &arena, json_make_bool(i % 2 == 0));
    }
    json_put(&v, &arena, HK_STR("s"), json_make_str((struct hk_str){NULL, 0}));
    json_put(&v, &arena, HK_STR("a"), json_make_double(0.5));
    assert_string_equal(written(&v),
                        "{\"a\":0.5,\"list\":[true,false,true,false,true,false],\"s\":\"\"}");

    assert_true(json_del(&v, "list"));
    assert_false(json_del(&v, "list"));
    assert_string_equal(written(&v), "{\"a\":0.5,\"s\":\"\"}");
}

/* Parsed containers are exactly sized: the first put must move them, not overflow. */
static void test_parsed_trees_can_grow(void **state)
{
    struct json v = parse("{\"a\":[1,2,3],\"b\":1,\"c\":2}");

    json_push(&v.members[0].value, &arena, json_make_int(4));
    json_put(&v, &arena, HK_STR("d"), json_make_int(3));
    json_del(&v, "b");
    json_put(&v, &arena, HK_STR("e"), json_make_int(5));
    assert_string_equal(written(&v), "{\"a\":[1,2,3,4],\"c\":2,\"d\":3,\"e\":5}");

    struct json w = parse("{\"a\":1,\"b\":2}");
    json_del(&w, "a");
    json_put(&w, &arena, HK_STR("c"), json_make_int(3));
    assert_string_equal(written(&w), "{\"b\":2,\"c\":3}");
}

static void test_clone_shares_nothing(void **state)
{
    char text[] = "{\"key\":[\"value\",{\"x\":1}],\"e\":{},\"n\":[]}";
    struct hk_arena other = {0};
    struct json v = parse(text);

    struct json copy = json_clone(&v, &other);
    assert_true(json_equal(&copy, &v));
    memset(text, '?', sizeof(text) - 1);
    hk_arena_clear(&arena);
    assert_string_equal(written(&copy), "{\"key\":[\"value\",{\"x\":1}],\"e\":{},\"n\":[]}");
    hk_arena_fini(&other);
}

static void test_a_shallow_copy_leaves_the_original(void **state)
{
    struct json v = parse("{\"a\":1,\"b\":[2,3]}");
    struct json list = *json_get(&v, "b");
    struct json copy = json_shallow(&v, &arena), longer = json_shallow(&list, &arena);

    json_put(&copy, &arena, HK_STR("a"), json_make_int(4));
    json_put(&copy, &arena, HK_STR("c"), json_make_int(5));
    json_push(&longer, &arena, json_make_int(6));
    assert_string_equal(written(&v), "{\"a\":1,\"b\":[2,3]}");
    assert_string_equal(written(&copy), "{\"a\":4,\"b\":[2,3],\"c\":5}");
    assert_string_equal(written(&longer), "[2,3,6]");
}

/* Fields of stored objects may be absent: a copy of NULL is defined. */
static void test_copies_of_nothing(void **state)
{
    const struct json text = json_make_str(HK_STR("x")), list = json_make_array();
    struct json none = json_clone(NULL, &arena), flat = json_shallow(NULL, &arena);
    struct json object = json_clone_as(NULL, JSON_OBJECT, &arena);
    struct json array = json_clone_as(&text, JSON_ARRAY, &arena);

    assert_string_equal(written(&none), "null");
    assert_string_equal(written(&flat), "null");
    json_put(&object, &arena, HK_STR("a"), json_make_int(1));
    json_push(&array, &arena, json_clone_as(&list, JSON_OBJECT, &arena));
    assert_string_equal(written(&object), "{\"a\":1}");
    assert_string_equal(written(&array), "[{}]");
}

static void test_needed_members_are_made(void **state)
{
    struct json v = json_make_object(), *at;

    json_put(&v, &arena, HK_STR("null"), (struct json){.type = JSON_NULL});
    json_put(&v, &arena, HK_STR("other"), json_make_int(1));
    at = json_need(&v, &arena, "absent", JSON_OBJECT);
    json_put(at, &arena, HK_STR("a"), json_make_int(1));
    json_push(json_need(&v, &arena, "null", JSON_ARRAY), &arena, json_make_int(2));
    (void)json_need(&v, &arena, "other", JSON_OBJECT);
    json_put(json_need(&v, &arena, "absent", JSON_OBJECT), &arena, HK_STR("b"), json_make_int(3));
    assert_string_equal(written(&v), "{\"null\":[2],\"other\":{},\"absent\":{\"a\":1,\"b\":3}}");
}

static void test_needed_paths_are_made(void **state)
{
    struct json v = parse("{\"a\":{\"b\":{\"kept\":1}},\"n\":null,\"s\":\"x\"}");

    json_set_int(json_need_at(&v, &arena, "a.b", JSON_OBJECT), &arena, "added", 2);
    json_push(json_need_at(&v, &arena, "a.b.list", JSON_ARRAY), &arena, json_make_int(3));
    json_push(json_need_at(&v, &arena, "a.b.list", JSON_ARRAY), &arena, json_make_int(4));
    json_set_at(&v, &arena, "n.c", json_make_bool(true));
    json_set_at(&v, &arena, "s", json_make_int(5));
    json_set_at(&v, &arena, "s.d", json_make_int(6));
    json_set_bool(json_set_at(&v, &arena, "e.f", json_make_object()), &arena, "g", false);
    assert_string_equal(written(&v), "{\"a\":{\"b\":{\"kept\":1,\"added\":2,\"list\":[3,4]}},"
                                     "\"n\":{\"c\":true},\"s\":{\"d\":6},"
                                     "\"e\":{\"f\":{\"g\":false}}}");
}

static void test_setters(void **state)
{
    const int64_t ns = 1767366245123456789; /* 2026-01-02T15:04:05.123456789Z */
    struct json v = json_make_object();

    json_set(&v, &arena, "double", json_make_double(0.5));
    json_set_str(&v, &arena, "str", HK_STR("a\"b"));
    json_set_cstr(&v, &arena, "cstr", "c");
    json_set_int(&v, &arena, "int", INT64_MIN);
    json_set_bool(&v, &arena, "bool", true);
    json_set_time(&v, &arena, "time", ns);
    json_set(&v, &arena, "micro", json_make_micro_time(ns, &arena));
    json_set_quantity(&v, &arena, "quantity", quantity_of_milli(1500, QUANTITY_DECIMAL_SI));
    json_set_int(json_set_object(&v, &arena, "object"), &arena, "x", 1);
    json_push(json_set_array(&v, &arena, "array"), &arena, json_make_int(2));
    assert_string_equal(written(&v),
                        "{\"double\":0.5,\"str\":\"a\\\"b\",\"cstr\":\"c\","
                        "\"int\":-9223372036854775808,\"bool\":true,"
                        "\"time\":\"2026-01-02T15:04:05Z\","
                        "\"micro\":\"2026-01-02T15:04:05.123456Z\",\"quantity\":\"1500m\","
                        "\"object\":{\"x\":1},\"array\":[2]}");
}

/* Each setter replaces a member of any type in its place, and empties a container. */
static void test_setters_replace(void **state)
{
    struct json v = parse("{\"a\":{\"x\":1},\"b\":[1],\"c\":\"s\",\"d\":true}");

    json_set_object(&v, &arena, "a");
    json_set_array(&v, &arena, "b");
    json_set_int(&v, &arena, "c", 3);
    json_set_cstr(&v, &arena, "d", "");
    assert_string_equal(written(&v), "{\"a\":{},\"b\":[],\"c\":3,\"d\":\"\"}");
}

/* As omitempty in Go: an empty value is not written, and removes the old member. */
static void test_empty_values_remove_members(void **state)
{
    const struct json seven = json_make_int(7);
    struct json v = parse("{\"a\":1,\"b\":\"s\",\"c\":[1],\"d\":2,\"e\":3}");

    json_set_int_or_del(&v, &arena, "a", 0);
    json_set_str_or_del(&v, &arena, "b", HK_STR(""));
    json_set_or_del(&v, &arena, "c", json_make_array());
    json_set_if(&v, &arena, "d", NULL);
    json_set_if(&v, &arena, "e", &seven);
    assert_string_equal(written(&v), "{\"d\":2,\"e\":7}");

    json_set_int_or_del(&v, &arena, "d", -1);
    json_set_str_or_del(&v, &arena, "e", HK_STR("t"));
    json_set_or_del(&v, &arena, "f", parse("{\"x\":1}"));
    assert_string_equal(written(&v), "{\"d\":-1,\"e\":\"t\",\"f\":{\"x\":1}}");
}

static void test_a_copied_string_is_the_trees_own(void **state)
{
    char text[] = "before";
    struct json v = json_make_object();

    json_set_str_copy(&v, &arena, "copy", hk_str(text));
    json_set(&v, &arena, "made", json_make_str_copy(hk_str(text), &arena));
    json_set_cstr(&v, &arena, "borrowed", text);
    memcpy(text, "after!", sizeof(text));
    assert_string_equal(written(&v),
                        "{\"copy\":\"before\",\"made\":\"before\",\"borrowed\":\"after!\"}");
}

/* A large object behaves as a small one: random changes, compared with a plain list of what should
 * be there, in order. */
static void large_objects_keep_order_and_members(void **state)
{
    enum { KEYS = 300, STEPS = 20000 };
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct json obj = json_make_object();
    uint32_t order[KEYS], n = 0, random = 1;
    int64_t value[KEYS] = {0};
    char names[KEYS][8];

    for (uint32_t k = 0; k < KEYS; k++) {
        snprintf(names[k], sizeof(names[k]), "k%u", k);
    }
    for (int64_t step = 1; step <= STEPS; step++) {
        random = random * 1103515245 + 12345;
        const uint32_t k = (random >> 8) % KEYS;
        const struct json *had = json_get(&obj, names[k]);
        assert_int_equal(had != NULL, value[k] != 0);
        assert_int_equal(json_int(had, 0), value[k]);
        if ((random >> 20) % 3 > 0) {
            if (value[k] == 0) {
                order[n++] = k;
            }
            value[k] = step;
            json_set_int(&obj, &a, names[k], step);
            continue;
        }
        if ((random >> 24) % 2) {
            json_del(&obj, names[k]);
        } else {
            json_hide(&obj, hk_str(names[k]));
            assert_null(json_get(&obj, names[k]));
            json_remove_hidden(&obj);
        }
        for (uint32_t i = 0, kept = 0; value[k] != 0 && i < n; i++) {
            order[kept] = order[i];
            kept += order[i] != k;
        }
        n -= value[k] != 0;
        value[k] = 0;
    }
    assert_true(n > 64);
    assert_int_equal(obj.len, n);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(hk_str_is(obj.members[i].key, names[order[i]]));
        assert_int_equal(obj.members[i].value.i, value[order[i]]);
    }
}

static void many_members_are_hidden_and_swept(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct json obj = json_make_object();

    for (int k = 0; k < 1000; k++) {
        json_set_int(&obj, &a, hk_arena_printf(&a, "k%d", k), k);
    }
    for (int k = 0; k < 1000; k += 2) {
        json_hide(&obj, hk_str(hk_arena_printf(&a, "k%d", k)));
    }
    json_set_int(&obj, &a, "k0", -1); /* hidden: comes anew, at the end */
    json_remove_hidden(&obj);
    assert_int_equal(obj.len, 501);
    assert_null(json_get(&obj, "k2"));
    assert_int_equal(json_int(json_get(&obj, "k999"), 0), 999);
    assert_int_equal(json_int(json_get(&obj, "k0"), 0), -1);
    assert_true(hk_str_is(obj.members[500].key, "k0"));
}

/* Code outside may sort or shorten the members; look-ups must still be right. */
static void changed_order_and_number_are_noticed(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct json obj = json_make_object();

    for (int k = 0; k < 200; k++) {
        json_set_int(&obj, &a, hk_arena_printf(&a, "k%d", k), k);
    }
    for (uint32_t i = 0; i < 100; i++) {
        const struct json_member m = obj.members[i];
        obj.members[i] = obj.members[199 - i];
        obj.members[199 - i] = m;
    }
    assert_int_equal(json_int(json_get(&obj, "k7"), -1), 7);
    obj.len = 150; /* k49 to k0 are gone */
    assert_null(json_get(&obj, "k7"));
    assert_int_equal(json_int(json_get(&obj, "k50"), -1), 50);
    json_set_int(&obj, &a, "k7", 70);
    assert_int_equal(obj.len, 151);
    assert_int_equal(json_int(json_get(&obj, "k7"), -1), 70);
    assert_int_equal(json_int(json_get(&obj, "k199"), -1), 199);
}

static void an_index_changes_nothing_in_the_original(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct hk_err err;
    struct json obj;

    hk_buf_addc(&text, '{');
    for (int k = 0; k < 500; k++) {
        hk_buf_addf(&text, "%s\"k%d\":%d", k > 0 ? "," : "", k, k);
    }
    hk_buf_addc(&text, '}');
    assert_int_equal(json_parse(hk_buf_str(&text), 0, &a, &obj, &err), 0);
    const struct json *index = json_index(&obj, &a);
    assert_ptr_not_equal(index->members, obj.members);
    assert_true(json_equal(index, &obj));
    for (int k = 0; k < 500; k++) {
        assert_int_equal(json_int(json_get(index, hk_arena_printf(&a, "k%d", k)), -1), k);
    }
    assert_null(json_get(index, "k500"));
    assert_null(json_index(NULL, &a));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, fresh_arena)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_objects_keep_order_and_members),
        cmocka_unit_test(many_members_are_hidden_and_swept),
        cmocka_unit_test(changed_order_and_number_are_noticed),
        cmocka_unit_test(an_index_changes_nothing_in_the_original),
        TEST(test_values_survive_a_round_trip),
        TEST(test_number_types),
        TEST(test_refused),
        TEST(test_depth_is_bounded),
        TEST(test_duplicate_keys),
        TEST(test_duplicate_keys_in_large_objects),
        TEST(test_lines),
        TEST(test_plain_strings_point_into_the_input),
        TEST(test_doubles_print_as_in_go),
        TEST(test_broken_utf8_is_replaced),
        TEST(test_pretty),
        TEST(test_looking_around),
        TEST(test_typed_getters_have_fallbacks_for_missing_members),
        TEST(test_numeric_types),
        TEST(test_type_names),
        TEST(test_equal),
        TEST(test_equal_ignores_the_order_of_large_objects),
        TEST(test_building),
        TEST(test_parsed_trees_can_grow),
        TEST(test_clone_shares_nothing),
        TEST(test_a_shallow_copy_leaves_the_original),
        TEST(test_copies_of_nothing),
        TEST(test_needed_members_are_made),
        TEST(test_needed_paths_are_made),
        TEST(test_setters),
        TEST(test_setters_replace),
        TEST(test_empty_values_remove_members),
        TEST(test_a_copied_string_is_the_trees_own),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hk_arena_fini(&arena);
    return failed;
}
