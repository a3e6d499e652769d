// SPDX-License-Identifier: Apache-2.0
// The language: literals, operators, fields, macros, optionals; and what the compiler refuses.
#include "cel/cel_rig_test.h"

#include <math.h>

static const struct cel_case literals[] = {
    {"1", "", "1"},
    {"-1", "", "-1"},
    {"0x1F", "", "31"},
    {"-0x10", "", "-16"},
    {"9223372036854775807", "", "9223372036854775807"},
    {"-9223372036854775808", "", "-9223372036854775808"},
    {"18446744073709551615u", "", "18446744073709551615"},
    {"0xFFu", "", "255"},
    {"1.5", "", "1.5"},
    {".5", "", "0.5"},
    {"1e3", "", "1000"},
    {"-2.5e-1", "", "-0.25"},
    {"true", "", "true"},
    {"null", "", "null"},
    {"'a'", "", "\"a\""},
    {"\"a'b\"", "", "\"a'b\""},
    {"'''a'b\nc'''", "", "\"a'b\\nc\""},
    {"\"\"\"a\"b\"\"\"", "", "\"a\\\"b\""},
    {"r'a\\n'", "", "\"a\\\\n\""},
    {"R'''\\d'''", "", "\"\\\\d\""},
    {"'\\a\\b\\f\\n\\r\\t\\v' == '\\x07\\x08\\x0c\\x0a\\x0d\\x09\\x0b'", "", "true"},
    {"'\\u00e4\\U0001F600\\x41\\101'", "",
     "\"\xC3\xA4\xF0\x9F\x98\x80"
     "AA\""},
    {"b'abc'", "", "\"YWJj\""},
    {"b'\\xff\\377'", "", "\"//8=\""},
    {"rb'\\x'", "", "\"XHg=\""},
    {"b'\xC3\xA4'.size()", "", "2"},
    {"[1, 2, 3]", "", "[1,2,3]"},
    {"[1, 2, ]", "", "[1,2]"},
    {"[]", "", "[]"},
    {"{'a': 1, 'b': 2}", "", "{\"a\":1,\"b\":2}"},
    {"{1: 'x', 2u: 'y'}", "",
     "refused: ERROR: <input>:1:10: expected type 'int' but found 'uint'\n | {1: 'x', 2u: 'y'}\n"
     " | .........^"},
    {"{1: 'x', dyn(2u): 'y', dyn(true): 'z'}.size()", "", "3"},
    {"{}", "", "{}"},
    {"// a comment\n1 // another", "", "1"},
    {"{'a': 1, 'a': 2}", "", "error: Failed with repeated key"},
    {"{dyn(1.5): 1}", "", "error: unsupported key type: double"},
};

static const struct cel_case operators[] = {
    {"1 + 2 * 3 - 4 / 2", "", "5"},
    {"(1 + 2) * 3", "", "9"},
    {"10 - 2 - 3", "", "5"},
    {"7 / 2", "", "3"},
    {"-7 / 2", "", "-3"},
    {"-7 % 3", "", "-1"},
    {"7u % 4u", "", "3"},
    {"1.0 / 4.0", "", "0.25"},
    {"-(3)", "", "-3"},
    {"--3", "", "3"},
    {"!!true", "", "true"},
    {"'a' + 'b'", "", "\"ab\""},
    {"b'a' + b'b'", "", "\"YWI=\""},
    {"[1] + [2, 3]", "", "[1,2,3]"},
    {"9223372036854775807 + 1", "", "error: integer overflow"},
    {"-9223372036854775808 - 1", "", "error: integer overflow"},
    {"9223372036854775807 * 2", "", "error: integer overflow"},
    {"-9223372036854775808 / -1", "", "error: integer overflow"},
    {"-(x)", "{'x': -9223372036854775808}", "error: integer overflow"},
    {"0u - 1u", "", "error: unsigned integer overflow"},
    {"1 / 0", "", "error: division by zero"},
    {"1 % 0", "", "error: modulus by zero"},
    {"1.0 / 0.0 > 1e300", "", "true"},
    {"1 < 2 && 2 <= 2 && 3 > 2 && 3 >= 3", "", "true"},
    {"'a' < 'b'", "", "true"},
    {"false < true", "", "true"},
    {"b'a' < b'b'", "", "true"},
    /* numbers of different types compare by their value */
    {"1 < 1.5", "", "true"},
    {"2u > 1", "", "true"},
    {"-1 < 0u", "", "true"},
    {"1.0 <= 1u", "", "true"},
    {"9007199254740993 > 9007199254740992.0", "", "true"},
    {"18446744073709551615u < 1e30", "", "true"},
    {"dyn(1) == 1.0", "", "true"},
    {"dyn(1) == 1u", "", "true"},
    {"dyn(1) == 'a'", "", "false"},
    {"dyn(1) != 'a'", "", "true"},
    {"dyn([1]) == [1.0]", "", "true"},
    {"[1, 2] == [1, 3]", "", "false"},
    {"{'a': 1} == {'a': 1}", "", "true"},
    {"{'a': 1, 'b': 2} == {'b': 2, 'a': 1}", "", "true"},
    {"{'a': 1} == {'b': 1}", "", "false"},
    {"double('NaN') == double('NaN')", "", "false"},
    {"double('NaN') < 1.0", "", "false"},
    {"null == null", "", "true"},
    {"x == null", "{'x': null}", "true"},
    {"x == null", "{'x': 1}", "false"},
    {"2 in [1, 2]", "", "true"},
    {"3 in [1, 2]", "", "false"},
    {"'a' in {'a': 1}", "", "true"},
    {"'a' in x", "{'x': {'b': 1}}", "false"},
    {"'a' in 'abc'", "",
     "refused: ERROR: <input>:1:5: found no matching overload for '@in' applied "
     "to '(string, string)'\n | 'a' in 'abc'\n | ....^"},
    {"true ? 1 : 2", "", "1"},
    {"false ? 1 : true ? 2 : 3", "", "2"},
    {"x > 1 ? 'many' : 'one'", "{'x': 1}", "\"one\""},
    {"true ? 1 : 1 / 0", "", "1"},
    /* an operand that decides makes an error vanish, on either side */
    {"1 / 0 == 1 || true", "", "true"},
    {"true || 1 / 0 == 1", "", "true"},
    {"1 / 0 == 1 && false", "", "false"},
    {"1 / 0 == 1 || false", "", "error: division by zero"},
    {"1 / 0 == 1 && true", "", "error: division by zero"},
    {"1 / 0 == 1 || x.y || true", "{'x': {}}", "true"},
    {"x && true", "{'x': 'a'}", "error: no such overload"},
    {"x + 1", "{'x': 'a'}", "error: no such overload"},
    {"true || false && false", "", "true"},
    {"1 + 1 == 2 && 'a' in ['a'] || false", "", "true"},
};

static const struct cel_case fields[] = {
    {"x.a.b", "{'x': {'a': {'b': 7}}}", "7"},
    {"x['a']", "{'x': {'a': 7}}", "7"},
    {"x.a", "{'x': {}}", "error: no such key: a"},
    {"x['a']", "{'x': {}}", "error: no such key: a"},
    {"x[0] + x[1]", "{'x': [1, 2]}", "3"},
    {"x[2]", "{'x': [1, 2]}", "error: index out of bounds: 2"},
    {"x[-1]", "{'x': [1, 2]}", "error: index out of bounds: -1"},
    {"x[1.0]", "{'x': [1, 2]}", "2"},
    {"x[1u]", "{'x': [1, 2]}", "2"},
    {"{1: 'a'}[1]", "", "\"a\""},
    {"{1: 'a'}[dyn(1.0)]", "", "\"a\""},
    {"has(x.a)", "{'x': {'a': null}}", "true"},
    {"has(x.a)", "{'x': {'b': 1}}", "false"},
    {"has(x.a.b)", "{'x': {}}", "error: no such key: a"},
    {"has({'a': 1}.a)", "", "true"},
    {"x.y", "{'x': 1}", "error: no such overload"},
    {"x.in", "{'x': {'in': 1}}", "1"},
    {".x.a", "{'x': {'a': 1}}", "1"},
    {"x.y", "{'x.y': 1}", "1"},
    {"type(1) == int && type('') == string && type([]) == list && type({}) == map", "", "true"},
    {"type(null) == null_type && type(1.0) == double && type(b'') == bytes", "", "true"},
    {"type(timestamp(0)) == google.protobuf.Timestamp", "", "true"},
    {"type(type(1)) == type", "", "true"},
};

static const struct cel_case macros[] = {
    {"[1, 2, 3].all(x, x > 0)", "", "true"},
    {"[1, 2, 3].all(x, x > 1)", "", "false"},
    {"[].all(x, x > 1)", "", "true"},
    {"[1, 2, 3].exists(x, x == 2)", "", "true"},
    {"[].exists(x, x)", "", "false"},
    {"[1, 2, 2].exists_one(x, x == 2)", "", "false"},
    {"[1, 2, 2].existsOne(x, x == 1)", "", "true"},
    {"[1, 2, 3].map(x, x * 2)", "", "[2,4,6]"},
    {"[1, 2, 3].map(x, x > 1, x * 2)", "", "[4,6]"},
    {"[1, 2, 3].filter(x, x != 2)", "", "[1,3]"},
    {"{'a': 1, 'b': 2}.all(k, k in ['a', 'b'])", "", "true"},
    {"{'a': 1, 'b': 2}.map(k, k)", "", "[\"a\",\"b\"]"},
    {"{'a': 1, 'b': 2}.filter(k, k == 'b')", "", "[\"b\"]"},
    {"[[1, 2], [3]].all(x, x.all(y, y > 0))", "", "true"},
    {"[1, 2].map(x, [3, 4].map(y, x * y))", "", "[[3,4],[6,8]]"},
    /* errors are absorbed by an element that decides */
    {"[0, 1].all(x, 1 / x > 1)", "", "false"},
    {"[0, 1].exists(x, 1 / x == 1)", "", "true"},
    {"[0, 1].all(x, 1 / x == 1)", "", "error: division by zero"},
    {"[0, 1].exists_one(x, 1 / x == 1)", "", "error: division by zero"},
    {"[0, 1].map(x, 1 / x)", "", "error: division by zero"},
    {"x.all(y, y)", "{'x': 1}", "error: no such overload"},
    /* two variables: index and element, or key and value */
    {"[5, 6].all(i, v, v == i + 5)", "", "true"},
    {"{'a': 1, 'b': 2}.exists(k, v, k == 'b' && v == 2)", "", "true"},
    {"{'a': 1, 'b': 2}.existsOne(k, v, v > 0)", "", "false"},
    {"[5, 6].transformList(i, v, v * i)", "", "[0,6]"},
    {"[5, 6].transformList(i, v, i > 0, v)", "", "[6]"},
    {"{'a': 1, 'b': 2}.transformList(k, v, k + string(v))", "", "[\"a1\",\"b2\"]"},
    {"{'a': 1, 'b': 2}.transformMap(k, v, v + 1)", "", "{\"a\":2,\"b\":3}"},
    {"{'a': 1, 'b': 2}.transformMap(k, v, v > 1, v)", "", "{\"b\":2}"},
    {"['a', 'b'].transformMapEntry(i, v, {v: i})", "", "{\"a\":0,\"b\":1}"},
    {"['a', 'a'].transformMapEntry(i, v, {v: i})", "", "error: insert failed: key already exists"},
    {"cel.bind(x, 2, x * x)", "", "4"},
    {"cel.bind(x, 2, cel.bind(y, x + 1, x * y))", "", "6"},
    {"[3, 1, 2].sortBy(x, -x)", "", "[3,2,1]"},
    {"[{'n': 'b'}, {'n': 'a'}].sortBy(x, x.n).map(x, x.n)", "", "[\"a\",\"b\"]"},
    {"x.filter(x, x > 1)", "{'x': [1, 2]}", "[2]"}, /* the inner name hides the outer one */
};

static const struct cel_case optionals[] = {
    {"x.?a.orValue(3)", "{'x': {}}", "3"},
    {"x.?a.orValue(3)", "{'x': {'a': 1}}", "1"},
    {"x.?a.b.c.orValue(3)", "{'x': {'a': {'b': {'c': 4}}}}", "4"},
    {"x.?a.b.c.orValue(3)", "{'x': {}}", "3"},
    {"x[?'a'].orValue(3)", "{'x': {}}", "3"},
    {"x[?1].orValue(3)", "{'x': [1]}", "3"},
    {"x[?0].orValue(3)", "{'x': [1]}", "1"},
    {"x.?a[0].orValue(3)", "{'x': {'a': [9]}}", "9"},
    {"has(x.?a.b)", "{'x': {}}", "false"},
    {"has(x.?a.b)", "{'x': {'a': {'b': 1}}}", "true"},
    {"optional.of(1).hasValue()", "", "true"},
    {"optional.none().hasValue()", "", "false"},
    {"optional.of(1).value()", "", "1"},
    {"optional.none().value()", "", "error: optional.none() dereference"},
    {"optional.ofNonZeroValue(0).hasValue()", "", "false"},
    {"optional.ofNonZeroValue('a').value()", "", "\"a\""},
    {"optional.none().or(optional.of(2)).value()", "", "2"},
    {"x.?a.optMap(v, v * 2).orValue(0)", "{'x': {'a': 4}}", "8"},
    {"x.?a.optMap(v, v * 2).orValue(0)", "{'x': {}}", "0"},
    {"x.?a.optFlatMap(v, v.?b).orValue(0)", "{'x': {'a': {'b': 5}}}", "5"},
    {"[?x.?a, 2]", "{'x': {}}", "[2]"},
    {"[?x.?a, 2]", "{'x': {'a': 1}}", "[1,2]"},
    {"{?'k': x.?a, 'l': 1}", "{'x': {}}", "{\"l\":1}"},
    {"optional.of(1) == optional.of(1)", "", "true"},
    {"optional.none() == optional.none()", "", "true"},
    {"optional.unwrap([optional.of(1), optional.none()])", "", "[1]"},
    {"[optional.of(1), optional.none()].unwrapOpt()", "", "[1]"},
};

static const struct cel_case conversions[] = {
    {"int('42') + int(3.9) + int(2u)", "", "47"},
    {"int(-3.9)", "", "-3"},
    {"int('x')", "", "error: type conversion error from 'x' to 'int'"},
    {"int(1e30)", "", "error: integer overflow"},
    {"int(18446744073709551615u)", "", "error: integer overflow"},
    {"uint(-1)", "", "error: unsigned integer overflow"},
    {"uint('7')", "", "7"},
    {"double('1.5') + double(1)", "", "2.5"},
    {"double('x')", "", "error: type conversion error from 'x' to 'double'"},
    {"string(1) + string(2u) + string(true) + string(1.5)", "", "\"12true1.5\""},
    {"string(1000000.0)", "", "\"1e+06\""},
    {"string(0.00001)", "", "\"1e-05\""},
    {"string(123456.5)", "", "\"123456.5\""},
    {"string(b'ab')", "", "\"ab\""},
    {"string(b'\\xff')", "", "error: invalid UTF-8 in bytes, cannot convert to string"},
    {"bytes('ab')", "", "\"YWI=\""},
    {"bool('true') && !bool('0')", "", "true"},
    {"bool('x')", "", "error: type conversion error from 'x' to 'bool'"},
    {"string(timestamp('2026-01-02T03:04:05.120+01:00'))", "", "\"2026-01-02T02:04:05.12Z\""},
    {"int(timestamp('1970-01-01T00:01:00Z'))", "", "60"},
    {"timestamp('2026-02-30T00:00:00Z')", "",
     "refused: ERROR: <input>:1:11: invalid timestamp argument\n"
     " | timestamp('2026-02-30T00:00:00Z')\n | ..........^"},
    {"timestamp(x)", "{'x': '2026-02-30T00:00:00Z'}",
     "error: type conversion error from '2026-02-30T00:00:00Z' to 'timestamp'"},
    {"timestamp('0001-01-01T00:00:00Z') < timestamp('9999-12-31T23:59:59Z')", "", "true"},
    {"string(duration('1h30m1.5s'))", "", "\"5401.5s\""},
    {"duration(x)", "{'x': 'x'}", "error: type conversion error from 'x' to 'duration'"},
};

static const struct cel_case times[] = {
    {"timestamp('2026-01-02T00:00:00Z') + duration('24h')", "", "\"2026-01-03T00:00:00Z\""},
    {"timestamp('2026-01-02T00:00:00Z') - duration('1ms')", "", "\"2026-01-01T23:59:59.999Z\""},
    {"duration('1s') + timestamp(0)", "", "\"1970-01-01T00:00:01Z\""},
    {"timestamp(60) - timestamp(0) == duration('1m')", "", "true"},
    {"duration('1h') - duration('1m')", "", "\"3540s\""},
    {"duration('1h') > duration('59m')", "", "true"},
    {"timestamp('9999-12-31T23:59:59Z') + duration('1s')", "", "error: timestamp overflow"},
    {"timestamp('2026-03-04T05:06:07.089Z').getFullYear()", "", "2026"},
    {"timestamp('2026-03-04T05:06:07.089Z').getMonth()", "", "2"},
    {"timestamp('2026-03-04T05:06:07.089Z').getDayOfMonth()", "", "3"},
    {"timestamp('2026-03-04T05:06:07.089Z').getDate()", "", "4"},
    {"timestamp('2026-03-04T05:06:07.089Z').getDayOfYear()", "", "62"},
    {"timestamp('2026-03-04T05:06:07.089Z').getDayOfWeek()", "", "3"},
    {"timestamp('2026-03-04T05:06:07.089Z').getHours()", "", "5"},
    {"timestamp('2026-03-04T05:06:07.089Z').getHours('-05:30')", "", "23"},
    {"timestamp('2026-03-04T05:06:07.089Z').getMinutes()", "", "6"},
    {"timestamp('2026-03-04T05:06:07.089Z').getSeconds()", "", "7"},
    {"timestamp('2026-03-04T05:06:07.089Z').getMilliseconds()", "", "89"},
    {"timestamp(0).getHours('no/zone')", "", "error: unknown time zone no/zone"},
    {"duration('3661.5s').getHours()", "", "1"},
    {"duration('3661.5s').getMinutes()", "", "61"},
    {"duration('3661.5s').getSeconds()", "", "3661"},
    {"duration('3661.5s').getMilliseconds()", "", "500"},
};

static const struct cel_case refusals[] = {
    {"1 +", "",
     "refused: ERROR: <input>:1:4: Syntax error: unexpected end, expecting an "
     "expression\n | 1 +\n | ...^"},
    {"(1", "",
     "refused: ERROR: <input>:1:3: Syntax error: unexpected end, expecting ')'\n"
     " | (1\n | ..^"},
    {"1 2", "",
     "refused: ERROR: <input>:1:3: Syntax error: unexpected '2', expecting an operator "
     "or the end\n | 1 2\n | ..^"},
    {"'a", "", "refused: ERROR: <input>:1:1: Syntax error: a string is not closed\n | 'a\n | ^"},
    {"'\\q'", "",
     "refused: ERROR: <input>:1:1: invalid escape sequence in a literal\n"
     " | '\\q'\n | ^"},
    {"1 $ 2", "",
     "refused: ERROR: <input>:1:3: Syntax error: token recognition error at: '$'\n"
     " | 1 $ 2\n | ..^"},
    {"9223372036854775808", "",
     "refused: ERROR: <input>:1:1: invalid int literal\n"
     " | 9223372036854775808\n | ^"},
    {"if", "", "refused: ERROR: <input>:1:1: reserved identifier: if\n | if\n | ^"},
    {"y", "",
     "refused: ERROR: <input>:1:1: undeclared reference to 'y' (in container '')\n"
     " | y\n | ^"},
    {"x +\n  y", "{'x': 1}",
     "refused: ERROR: <input>:2:3: undeclared reference to 'y' (in "
     "container '')\n |   y\n | ..^"},
    {"foo(1)", "",
     "refused: ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n"
     " | foo(1)\n | ^"},
    {"size()", "",
     "refused: ERROR: <input>:1:1: found no matching overload for 'size' applied to "
     "'()'\n | size()\n | ^"},
    {"size(1)", "",
     "refused: ERROR: <input>:1:1: found no matching overload for 'size' applied to "
     "'(int)'\n | size(1)\n | ^"},
    {"'a'.startsWith(1)", "",
     "refused: ERROR: <input>:1:15: found no matching overload for "
     "'startsWith' applied to 'string.(int)'\n | 'a'.startsWith(1)\n"
     " | ..............^"},
    {"1 + 'a'", "",
     "refused: ERROR: <input>:1:3: found no matching overload for '_+_' applied to "
     "'(int, string)'\n | 1 + 'a'\n | ..^"},
    {"1 == 'a'", "",
     "refused: ERROR: <input>:1:3: found no matching overload for '_==_' applied "
     "to '(int, string)'\n | 1 == 'a'\n | ..^"},
    {"1 && true", "",
     "refused: ERROR: <input>:1:1: found no matching overload for '_&&_' applied "
     "to '(int, bool)'\n | 1 && true\n | ^"},
    {"[1, 'a']", "",
     "refused: ERROR: <input>:1:5: expected type 'int' but found 'string'\n"
     " | [1, 'a']\n | ....^"},
    {"has(x)", "{'x': 1}",
     "refused: ERROR: <input>:1:5: invalid argument to has() macro\n"
     " | has(x)\n | ....^"},
    {"[1].all(1, true)", "",
     "refused: ERROR: <input>:1:9: argument must be a simple name\n"
     " | [1].all(1, true)\n | ........^"},
    {"1.all(x, true)", "",
     "refused: ERROR: <input>:1:1: expression of type 'int' cannot be range "
     "of a comprehension (must be list, map, or dynamic)\n"
     " | 1.all(x, true)\n | ^"},
    {"'a'.matches('(')", "",
     "refused: ERROR: <input>:1:13: invalid matches argument: pattern '(': "
     "missing closing parenthesis\n | 'a'.matches('(')\n"
     " | ............^"},
    {"Object{a: 1}", "",
     "refused: ERROR: <input>:1:7: undeclared reference to 'Object' (in "
     "container '')\n | Object{a: 1}\n | ......^"},
};

#define TABLE_TEST(table)                                                                          \
    static void test_##table(void **state)                                                         \
    {                                                                                              \
        cel_rig_check(table, HK_LEN(table));                                                       \
    }

TABLE_TEST(literals)
TABLE_TEST(operators)
TABLE_TEST(fields)
TABLE_TEST(macros)
TABLE_TEST(optionals)
TABLE_TEST(conversions)
TABLE_TEST(times)
TABLE_TEST(refusals)

/* ---- limits ---- */

/* Prefix and suffix n times around the middle. */
static void nest(struct hk_buf *out, const char *open, const char *middle, const char *close,
                 unsigned n)
{
    hk_buf_clear(out);
    for (unsigned i = 0; i < n; i++) {
        hk_buf_adds(out, open);
    }
    hk_buf_adds(out, middle);
    for (unsigned i = 0; i < n; i++) {
        hk_buf_adds(out, close);
    }
}

static void test_depth_is_bounded(void **state)
{
    static const struct {
        const char *open, *middle, *close;
    } shapes[] = {
        {"(", "1", ")"},      {"[", "1", "]"},    {"{'a':", "1", "}"}, {"!", "true", ""},
        {"-", "x", ""},       {"1+", "1", ""},    {"", "x", ".a"},     {"", "x", "[0]"},
        {"true?1:", "1", ""}, {"dyn(", "x", ")"},
    };
    const struct cel_var x = {HK_STR("x"), NULL};
    const struct cel_env env = {.vars = &x, .nvars = 1};

    for (size_t i = 0; i < HK_LEN(shapes); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
        struct cel_program *p = NULL;
        struct hk_err err = {0};
        nest(&text, shapes[i].open, shapes[i].middle, shapes[i].close, 5000);
        if (cel_compile(hk_buf_str(&text), &env, &p, &err) == 0 ||
            !strstr(err.text, "expression recursion limit exceeded")) {
            fail_msg("5000 of %s%s: expected a refusal, got %s", shapes[i].open, shapes[i].close,
                     err.text);
        }
        nest(&text, shapes[i].open, shapes[i].middle, shapes[i].close, 100);
        if (cel_compile(hk_buf_str(&text), &env, &p, &err) < 0) {
            fail_msg("100 of %s%s: expected a program, got %s", shapes[i].open, shapes[i].close,
                     err.text);
        }
        cel_program_free(p);
    }
}

/* The deepest expressions that compile are evaluated, too. */
static void test_deep_expressions_are_evaluated(void **state)
{
    static const struct {
        const char *open, *middle, *close;
        unsigned n;
        const char *want;
    } shapes[] = {
        {"(", "1", ")", 240, "1"},
        {"1+", "1", "", 590, "591"},
        {"!", "true", "", 240, "true"},
        {"[1].all(x,", "true", ")", 120, "true"},
        {"true?", "1", ":2", 1, "1"},
        {"false?1:", "2", "", 120, "2"},
        {"cel.bind(x,1,", "x", ")", 120, "1"},
        {"[", "1", "].flatten()", 120, "[1]"},
    };

    for (size_t i = 0; i < HK_LEN(shapes); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0}, out = {0};
        const struct cel_env env = {0};
        nest(&text, shapes[i].open, shapes[i].middle, shapes[i].close, shapes[i].n);
        cel_rig_eval(text.data, &env, NULL, NULL, &a, &out);
        if (!hk_str_is(hk_buf_str(&out), shapes[i].want)) {
            fail_msg("%u of %s%s: expected %s, got %s", shapes[i].n, shapes[i].open,
                     shapes[i].close, shapes[i].want, hk_buf_str(&out).s);
        }
    }
}

/* Texts that grow without bound are stopped by their cost. */
static const struct cel_case expensive[] = {
    {"x.map(i, x.map(j, i * j)).size() > 0", "", ""},
    {"x.all(a, x.all(b, x.all(c, a + b + c >= 0)))", "", ""},
    {"lists.range(2000000).size() > 0", "", ""},
    {"cel.bind(s, x.map(i, '0123456789').join(''), s.replace('', s)).size() > 0", "", ""},
    {"cel.bind(a, [x, x], cel.bind(b, [a, a], cel.bind(c, [b, b], cel.bind(d, [c, c], "
     "cel.bind(e, [d, d], cel.bind(f, [e, e], cel.bind(g, [f, f], cel.bind(h, [g, g], "
     "cel.bind(i, [h, h], cel.bind(j, [i, i], j == j && [j, j] == [j, j]))))))))))",
     "", ""},
};

static void test_cost_is_bounded(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct json doc = json_make_array();
    const struct cel_var x = {HK_STR("x"), NULL};
    const struct cel_env env = {.vars = &x, .nvars = 1};

    for (int i = 0; i < 1000; i++) {
        json_push(&doc, &a, json_make_int(i));
    }
    for (size_t i = 0; i < HK_LEN(expensive); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena scratch = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
        const struct cel_value v = cel_of_json(&doc, NULL, &scratch);
        cel_rig_eval(expensive[i].expr, &env, &v, NULL, &scratch, &out);
        if (!hk_str_is(hk_buf_str(&out),
                       "error: operation cancelled: actual cost limit exceeded")) {
            fail_msg("%s: expected the end of its cost, got %s", expensive[i].expr,
                     hk_buf_str(&out).s);
        }
    }
}

/* Costs that Kubernetes documents in its tests. */
static const struct {
    const char *expr;
    uint64_t want;
} costs[] = {
    {"1", 0},
    {"self", 1},
    {"self.a", 2},
    {"self.a == self.b", 5},
    {"type(self.a) == int", 4},
    {"self.a + 1 == 4", 4},
    {"[1, 2].size() == 2", 12},
    {"{'a': 1}.size() == 1", 32},
    {"has(self.a)", 2},
    {"self.a == 1 && self.b == 2", 6},
    {"'0123456789012345678901234567890123456789'.startsWith('01234567890123456789')", 2},
};

static void test_cost_is_counted_as_in_kubernetes(void **state)
{
    for (size_t i = 0; i < HK_LEN(costs); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
        const struct json doc = json_of_text("{'a': 1, 'b': 2}", &a);
        const struct cel_var self = {HK_STR("self"), NULL};
        const struct cel_env env = {.vars = &self, .nvars = 1};
        const struct cel_value v = cel_of_json(&doc, NULL, &a);
        uint64_t budget = CEL_BUDGET;
        cel_rig_eval(costs[i].expr, &env, &v, &budget, &a, &out);
        if (CEL_BUDGET - budget != costs[i].want) {
            fail_msg("%s: expected cost %llu, was %llu (%s)", costs[i].expr,
                     (unsigned long long)costs[i].want, (unsigned long long)(CEL_BUDGET - budget),
                     hk_buf_str(&out).s);
        }
    }
}

static void test_a_budget_is_shared(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    const struct cel_env env = {0};
    uint64_t budget = 30;

    cel_rig_eval("[1, 2].size() == 2", &env, NULL, &budget, &a, &out);
    assert_string_equal(out.data, "true");
    assert_int_equal(budget, 18);
    hk_buf_clear(&out);
    cel_rig_eval("{'a': 1}.size() == 1", &env, NULL, &budget, &a, &out);
    assert_string_equal(out.data, "error: operation cancelled: actual cost limit exceeded");
    assert_int_equal(budget, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_literals),
        cmocka_unit_test(test_operators),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_macros),
        cmocka_unit_test(test_optionals),
        cmocka_unit_test(test_conversions),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_depth_is_bounded),
        cmocka_unit_test(test_deep_expressions_are_evaluated),
        cmocka_unit_test(test_cost_is_bounded),
        cmocka_unit_test(test_cost_is_counted_as_in_kubernetes),
        cmocka_unit_test(test_a_budget_is_shared),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
