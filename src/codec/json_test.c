// SPDX-License-Identifier: Apache-2.0
// The JSON tree by itself: what is read, refused and written, looking around, building.

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

/* A text that may hold NUL bytes. */
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

/* The same beyond the size where keys are compared one by one. */
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

static void test_broken_utf8_is_mended(void **state)
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

/* ---- looking around ---- */

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

/* Parsed containers are exactly sized: the first put must move them, not run over. */
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

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, fresh_arena)
    const struct CMUnitTest tests[] = {
        TEST(test_values_survive_a_round_trip),
        TEST(test_number_types),
        TEST(test_refused),
        TEST(test_depth_is_bounded),
        TEST(test_duplicate_keys),
        TEST(test_duplicate_keys_in_large_objects),
        TEST(test_lines),
        TEST(test_plain_strings_point_into_the_input),
        TEST(test_doubles_print_as_in_go),
        TEST(test_broken_utf8_is_mended),
        TEST(test_pretty),
        TEST(test_looking_around),
        TEST(test_type_names),
        TEST(test_equal),
        TEST(test_equal_ignores_the_order_of_large_objects),
        TEST(test_building),
        TEST(test_parsed_trees_can_grow),
        TEST(test_clone_shares_nothing),
        TEST(test_a_shallow_copy_leaves_the_original),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hk_arena_fini(&arena);
    return failed;
}
