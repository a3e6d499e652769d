// SPDX-License-Identifier: Apache-2.0
// YAML: types, streams, anchors and merges, errors with their position, limits, and writing. The
// expected values are from kubectl.

#include "codec/yaml.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct fixture {
    struct hk_arena arena;
    struct hk_buf text, out;
    struct yaml_docs docs;
    struct hk_err err;
};

static void fixture_fini(struct fixture *f)
{
    hk_arena_fini(&f->arena);
    hk_buf_fini(&f->text);
    hk_buf_fini(&f->out);
}

static int parse(struct fixture *f, const char *text, unsigned flags)
{
    return yaml_parse(hk_str(text), flags, &f->arena, &f->docs, &f->err);
}

/* All documents as JSON, separated by blanks; or the error. */
static const char *as_json(struct fixture *f, const char *text, unsigned flags)
{
    hk_buf_clear(&f->out);
    if (parse(f, text, flags) < 0) {
        hk_buf_adds(&f->out, f->err.text);
        return f->out.data;
    }
    hk_buf_adds(&f->out, "");
    for (uint32_t i = 0; i < f->docs.len; i++) {
        if (i > 0) {
            hk_buf_addc(&f->out, ' ');
        }
        json_write(&f->docs.at[i], &f->out);
    }
    return hk_buf_str(&f->out).s;
}

struct case_text {
    const char *in, *want;
};

static void check_cases(const struct case_text *cases, size_t n, const char *format, unsigned flags)
{
    for (size_t i = 0; i < n; i++) {
        HK_AUTO(fixture_fini) struct fixture f = {0};
        hk_buf_adds(&f.text, "");
        for (const char *p = format; *p; p++) {
            if (*p == '@') {
                hk_buf_adds(&f.text, cases[i].in);
            } else {
                hk_buf_addc(&f.text, *p);
            }
        }
        const char *have = as_json(&f, f.text.data, flags);
        if (strcmp(have, cases[i].want) != 0) {
            print_message("input: %s\n", cases[i].in);
        }
        assert_string_equal(have, cases[i].want);
    }
}

#define CHECK(cases, format, flags) check_cases(cases, HK_LEN(cases), format, flags)

static void scalars_are_typed_as_kubectl_types_them(void **state)
{
    static const struct case_text cases[] = {
        {"yes", "[true]"},
        {"Yes", "[true]"},
        {"YES", "[true]"},
        {"y", "[true]"},
        {"Y", "[true]"},
        {"on", "[true]"},
        {"On", "[true]"},
        {"ON", "[true]"},
        {"true", "[true]"},
        {"True", "[true]"},
        {"TRUE", "[true]"},
        {"no", "[false]"},
        {"No", "[false]"},
        {"NO", "[false]"},
        {"n", "[false]"},
        {"N", "[false]"},
        {"off", "[false]"},
        {"Off", "[false]"},
        {"OFF", "[false]"},
        {"false", "[false]"},
        {"False", "[false]"},
        {"FALSE", "[false]"},
        {"tRue", "[\"tRue\"]"},
        {"yEs", "[\"yEs\"]"},
        {"~", "[null]"},
        {"null", "[null]"},
        {"Null", "[null]"},
        {"NULL", "[null]"},
        {"", "[null]"},
        {"nULL", "[\"nULL\"]"},
        {"0", "[0]"},
        {"-0", "[0]"},
        {"0777", "[511]"},
        {"0o777", "[511]"},
        {"0O17", "[15]"},
        {"-0o17", "[-15]"},
        {"0o8", "[\"0o8\"]"},
        {"08", "[8]"},
        {"-08", "[-8]"},
        {"0x1F", "[31]"},
        {"0X1f", "[31]"},
        {"-0x10", "[-16]"},
        {"0x", "[\"0x\"]"},
        {"0x1FFFFFFFFFFFFFFFFF", "[\"0x1FFFFFFFFFFFFFFFFF\"]"},
        {"0b101", "[5]"},
        {"0B1", "[1]"},
        {"0b-101", "[-5]"},
        {"0b2", "[\"0b2\"]"},
        {"0b", "[\"0b\"]"},
        {"1_000", "[1000]"},
        {"1__0", "[10]"},
        {"1_", "[1]"},
        {"_1", "[\"_1\"]"},
        {"1_0.5_0", "[10.5]"},
        {"+1", "[1]"},
        {"-1", "[-1]"},
        {"+", "[\"+\"]"},
        {"--1", "[\"--1\"]"},
        {"1e3", "[1000]"},
        {"1E+3", "[1000]"},
        {"1.", "[1]"},
        {".5", "[0.5]"},
        {"-.5", "[-0.5]"},
        {".5_0", "[0.5]"},
        {"._5", "[\"._5\"]"},
        {".5_", "[\".5_\"]"},
        {"1.0", "[1]"},
        {"1.5", "[1.5]"},
        {"1e-400", "[0]"},
        {"1e400", "[\"1e400\"]"},
        {".5e400", "[\".5e400\"]"},
        {"1e", "[\"1e\"]"},
        {".", "[\".\"]"},
        {"1e21", "[1e+21]"},
        {"1.2.3", "[\"1.2.3\"]"},
        {"10m", "[\"10m\"]"},
        {"9223372036854775807", "[9223372036854775807]"},
        {"-9223372036854775808", "[-9223372036854775808]"},
        {"9223372036854775808", "[9223372036854775808]"},
        {"18446744073709551615", "[18446744073709551615]"},
        {"18446744073709551616", "[18446744073709552000]"},
        {"-9223372036854775809", "[-9223372036854775808]"},
        {"12:30:45", "[\"12:30:45\"]"},
        {"2001-01-01", "[\"2001-01-01\"]"},
        {"=", "[\"=\"]"},
        {"<<", "[\"<<\"]"},
        {"a b", "[\"a b\"]"},
        {"'123'", "[\"123\"]"},
        {"\"yes\"", "[\"yes\"]"},
        {"''", "[\"\"]"},
        {"+.inf1", "[\"+.inf1\"]"},
    };

    CHECK(cases, "- @\n", 0);
}

static void tags_override_or_check_the_type(void **state)
{
    static const struct case_text cases[] = {
        {"!!str 123", "[\"123\"]"},
        {"!!str", "[\"\"]"},
        {"!!binary aGVsbG8=", "[\"hello\"]"},
        {"!!binary \"aGVs\\nbG8=\"", "[\"hello\"]"},
        {"!!binary aGVsbG8hIQ==", "[\"hello!!\"]"},
        {"!!binary ''", "[\"\"]"},
        {"!!binary /w==", "[\"\xef\xbf\xbd\"]"},
        {"!!binary aGVsbG8", "line 1, column 3: !!binary value contains invalid base64 data"},
        {"!!binary aGVsbG8==", "line 1, column 3: !!binary value contains invalid base64 data"},
        {"!!binary a=bc", "line 1, column 3: !!binary value contains invalid base64 data"},
        {"!!int \"5\"", "[5]"},
        {"!!float 3", "[3]"},
        {"!!bool yes", "[true]"},
        {"!!timestamp 2001-01-01", "[\"2001-01-01\"]"},
        {"!!timestamp x", "line 1, column 3: cannot decode !!str `x` as a !!timestamp"},
        {"!!int foo", "line 1, column 3: cannot decode !!str `foo` as a !!int"},
        {"!!int 1.5", "line 1, column 3: cannot decode !!float `1.5` as a !!int"},
        {"!!null foo", "line 1, column 3: cannot decode !!str `foo` as a !!null"},
        {"!foo 12", "[\"12\"]"},
        {"! 12", "[\"12\"]"},
        {"!!set {a, b}", "[{\"a\":null,\"b\":null}]"},
    };

    CHECK(cases, "- @\n", 0);
}

static void values_json_has_no_word_for_are_refused(void **state)
{
    static const struct case_text cases[] = {
        {".inf", "line 1, column 3: unsupported value: +Inf"},
        {"+.Inf", "line 1, column 3: unsupported value: +Inf"},
        {"-.INF", "line 1, column 3: unsupported value: -Inf"},
        {".nan", "line 1, column 3: unsupported value: NaN"},
        {"\"a\\0\"", "line 1, column 3: NUL in a string"},
        {"!!binary AA==", "line 1, column 3: NUL in a string"},
        {"\"\\ud83d\\ude00\"", "line 1, column 6: found invalid Unicode character escape code"},
    };

    CHECK(cases, "- @\n", 0);
}

static void keys_become_strings(void **state)
{
    static const struct case_text cases[] = {
        {"1", "{\"1\":0}"},
        {"0x10", "{\"16\":0}"},
        {"1.5", "{\"1.5\":0}"},
        {"1.0", "{\"1\":0}"},
        {"1e3", "{\"1000\":0}"},
        {"1e6", "{\"1e+06\":0}"},
        {"0.00001", "{\"1e-05\":0}"},
        {"0.0001", "{\"0.0001\":0}"},
        {"3.14159265358979", "{\"3.1415927\":0}"},
        {".inf", "{\".inf\":0}"},
        {"-1e300", "{\"-.inf\":0}"},
        {"true", "{\"true\":0}"},
        {"yes", "{\"true\":0}"},
        {"off", "{\"false\":0}"},
        {"'yes'", "{\"yes\":0}"},
        {"2001-01-01", "{\"2001-01-01\":0}"},
        {"''", "{\"\":0}"},
        {"null", "line 1, column 1: unsupported map key of type: null"},
        {"18446744073709551615", "line 1, column 1: unsupported map key of type: uint64"},
        {"[1]", "line 1, column 1: invalid map key: a list"},
        {"{a: b}", "line 1, column 1: invalid map key: a map"},
        {"? - a\n", "line 1, column 3: invalid map key: a list"},
    };

    CHECK(cases, "@: 0\n", 0);
}

static void streams_hold_any_number_of_documents(void **state)
{
    static const struct case_text cases[] = {
        {"", ""},
        {"[ []", "line 2, column 1: did not find expected ',' or ']'"},
        {"# nothing\n", ""},
        {"---\n---\n...\n# none\n---\n", ""},
        {"null\n--- ~\n", ""},
        {"a: 1\n---\nb: 2\n", "{\"a\":1} {\"b\":2}"},
        {"---\n# one\na: 1 # yes\n---\n---\n- x\n...\n", "{\"a\":1} [\"x\"]"},
        {"\xef\xbb\xbf"
         "a: 1\n",
         "{\"a\":1}"},
        {"%YAML 1.1\n---\na: 1\n", "{\"a\":1}"},
        {"a: |\n  x\n  y\nb: >-\n  p\n  q\n", "{\"a\":\"x\\ny\\n\",\"b\":\"p q\"}"},
        {"a: 1\r\nb: 2\r\n", "{\"a\":1,\"b\":2}"},
    };

    CHECK(cases, "@", 0);
}

static void json_streams_are_read_as_json(void **state)
{
    static const struct case_text cases[] = {
        {"{\"a\": \"\\ud83d\\ude00\"}", "{\"a\":\"\xf0\x9f\x98\x80\"}"},
        {" {\"a\": 1.0}{\"b\": [2]}\n\n[3]", "{\"a\":1} {\"b\":[2]} [3]"},
        {"{\"a\": \"}]\\\"\"} {}", "{\"a\":\"}]\\\"\"} {}"},
        {"{\"a\": \"yes\"}\n---\n{b: yes}\n", "{\"a\":\"yes\"} {\"b\":true}"},
        {"{a: b, c: [1, yes]}", "{\"a\":\"b\",\"c\":[1,true]}"},
        {"[a, {b: c}]\n", "[\"a\",{\"b\":\"c\"}]"},
        {"{\"a\": 1,}", "{\"a\":1}"},
        {"{a: b\n", "line 2, column 1: did not find expected ',' or '}'"},
    };
    HK_AUTO(fixture_fini) struct fixture f = {0};

    CHECK(cases, "@", 0);
    assert_true(parse(&f, "{\"a\": 1}\n{\"b\":\n  x\"y\"}", 0) < 0);
    assert_memory_equal(f.err.text, "line 3, column 3: ", 18);
}

static void anchors_and_merges_work_as_in_kubectl(void **state)
{
    static const struct case_text cases[] = {
        {"a: &x [1, {b: c}]\nd: *x\n", "{\"a\":[1,{\"b\":\"c\"}],\"d\":[1,{\"b\":\"c\"}]}"},
        {"&k b: 1\nc: *k\n", "{\"b\":1,\"c\":\"b\"}"},
        {"a: &k 7\n*k : 1\n", "{\"a\":7,\"7\":1}"},
        {"- &a 1\n- &a 2\n- *a\n", "[1,2,2]"},
        {"m: {<<: {a: 2, b: 2}, a: 1}", "{\"m\":{\"b\":2,\"a\":1}}"},
        {"m: {a: 1, <<: {a: 2, b: 2}}", "{\"m\":{\"a\":2,\"b\":2}}"},
        {"m: {<<: [{a: 1}, {a: 2, b: 2}]}", "{\"m\":{\"b\":2,\"a\":1}}"},
        {"m: {<<: []}", "{\"m\":{}}"},
        {"b: &b {x: 1}\nm: {<<: *b, z: 2}", "{\"b\":{\"x\":1},\"m\":{\"x\":1,\"z\":2}}"},
        {"b: &b {x: 1}\nm: {<<: [*b, *b]}", "{\"b\":{\"x\":1},\"m\":{\"x\":1}}"},
        {"m: {\"<<\": {b: 1}}", "{\"m\":{\"<<\":{\"b\":1}}}"},
        {"m: {!!merge \"<<\": {b: 1}}", "{\"m\":{\"b\":1}}"},
        {"m: {<<: 5}", "line 1, column 9: map merge requires map or sequence of maps as the value"},
        {"m: {<<: [5]}",
         "line 1, column 9: map merge requires map or sequence of maps as the value"},
        {"a: *x\n", "line 1, column 4: unknown anchor 'x' referenced"},
        {"a: &x 1\n---\nb: *x\n", "line 3, column 4: unknown anchor 'x' referenced"},
        {"a: &x [*x]\n", "line 1, column 8: anchor 'x' value contains itself"},
        {"a: &x\n  b: {c: *x}\n", "line 2, column 10: anchor 'x' value contains itself"},
    };

    CHECK(cases, "@", 0);
}

static void the_last_of_duplicate_keys_wins(void **state)
{
    static const struct case_text cases[] = {
        {"a: 1\nb: 2\na: 3\n", "{\"b\":2,\"a\":3}"},
        {"1: x\n\"1\": z\n", "{\"1\":\"z\"}"},
    };

    CHECK(cases, "@", 0);
}

static void strict_mode_names_both_lines_of_a_duplicate(void **state)
{
    static const struct case_text cases[] = {
        {"a: 1\nb: 2\n\na: 3\n", "line 4, column 1: key \"a\" already set in map on line 1"},
        {"z: 1\nb: 2\nb: 3\na: 4\na: 5\n",
         "line 3, column 1: key \"b\" already set in map on line 2"},
        {"x:\n- q: {k: 1,\n   k: 2}\n", "line 3, column 4: key \"k\" already set in map on line 2"},
        {"{\"a\": 1,\n \"a\": 2}", "line 2, column 2: key \"a\" already set in map on line 1"},
        {"m: {<<: {a: 2}, a: 1}", "{\"m\":{\"a\":1}}"},
        {"a: 1\n---\na: 2\n", "{\"a\":1} {\"a\":2}"},
    };

    CHECK(cases, "@", YAML_DUP_REJECT);
}

static void syntax_errors_say_where(void **state)
{
    static const struct case_text cases[] = {
        {"a: b\nc: d: e\n", "line 2, column 5: mapping values are not allowed in this context"},
        {"a: [1, 2\n", "line 2, column 1: did not find expected ',' or ']'"},
        {"a:\n\t- b\n", "line 2, column 1: found character that cannot start any token"},
        {"a: \"b\n", "line 2, column 1: found unexpected end of stream"},
        {"a: 1\n b: 2\n", "line 2, column 3: mapping values are not allowed in this context"},
        {"a: \"\\q\"\n", "line 1, column 5: found unknown escape character"},
        {"a: b\nc: \x01\n", "line 2, column 4: control characters are not allowed"},
        {"a: \xc3\xa9\xff\n", "line 1, column 5: invalid UTF-8"},
        {"a: 1\nb: \xed\xa0\x80\n", "line 2, column 4: invalid UTF-8"},
    };
    HK_AUTO(fixture_fini) struct fixture f = {0};

    CHECK(cases, "@", 0);
    assert_int_equal(yaml_parse(HK_STR("a: 1\nb: \0"), 0, &f.arena, &f.docs, &f.err), -HK_EINVAL);
    assert_string_equal(f.err.text, "line 2, column 4: NUL in the text");
}

static void values_know_their_line(void **state)
{
    HK_AUTO(fixture_fini) struct fixture f = {0};

    assert_int_equal(parse(&f, "a: 1\nb:\n- x\n- c: &q\n    d: z\ne: *q\n", 0), 0);
    const struct json *root = &f.docs.at[0];
    assert_int_equal(root->line, 1);
    assert_int_equal(json_get(root, "a")->line, 1);
    assert_int_equal(json_get(root, "b")->line, 3);
    assert_int_equal(json_item(json_get(root, "b"), 1)->line, 4);
    assert_int_equal(json_get(root, "e")->line, 6);
    assert_int_equal(json_at(root, "e.d")->line, 5);

    assert_int_equal(parse(&f, "\n{\"a\":\n1}\n\n{\"b\":\n[2,\n3]}", 0), 0);
    assert_int_equal(f.docs.at[0].line, 2);
    assert_int_equal(json_get(&f.docs.at[0], "a")->line, 3);
    assert_int_equal(f.docs.at[1].line, 5);
    assert_int_equal(json_item(json_get(&f.docs.at[1], "b"), 1)->line, 7);
}

static void repeat(struct hk_buf *b, const char *what, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        hk_buf_adds(b, what);
    }
}

static void nesting_is_limited(void **state)
{
    HK_AUTO(fixture_fini) struct fixture f = {0};

    repeat(&f.text, "[", YAML_MAX_DEPTH);
    hk_buf_addc(&f.text, 'a');
    repeat(&f.text, "]", YAML_MAX_DEPTH);
    assert_int_equal(parse(&f, f.text.data, 0), 0);

    static const char *const openers[] = {"[", "{a: ", "- ", "? "};
    for (size_t i = 0; i < HK_LEN(openers); i++) {
        hk_buf_clear(&f.text);
        repeat(&f.text, openers[i], 100000);
        const int rc = parse(&f, f.text.data, 0);
        assert_in_set(-rc, ((const LargestIntegralType[]){HK_ELIMIT, HK_EINVAL}), 2);
        assert_non_null(strstr(f.err.text, "line 1, column "));
    }

    hk_buf_clear(&f.text); /* this text would be JSON */
    repeat(&f.text, "[", YAML_MAX_DEPTH + 1);
    repeat(&f.text, "]", YAML_MAX_DEPTH + 1);
    assert_int_equal(parse(&f, f.text.data, 0), -HK_ELIMIT);
    assert_string_equal(f.err.text, "line 1, column 101: nested deeper than 100 levels");
}

static void aliases_cannot_nest_deeper_than_brackets(void **state)
{
    HK_AUTO(fixture_fini) struct fixture f = {0};

    hk_buf_adds(&f.text, "- &a0 [x]\n");
    for (unsigned i = 1; i < YAML_MAX_DEPTH; i++) {
        hk_buf_addf(&f.text, "- &a%u [*a%u]\n", i, i - 1);
    }
    assert_int_equal(parse(&f, f.text.data, 0), -HK_ELIMIT);
    assert_string_equal(f.err.text, "line 100, column 9: nested deeper than 100 levels");
}

static void alias_bombs_are_refused(void **state)
{
    HK_AUTO(fixture_fini) struct fixture f = {0};

    hk_buf_adds(&f.text, "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for (unsigned i = 1; i < 10; i++) {
        hk_buf_addf(&f.text, "a%u: &a%u [", i, i);
        for (unsigned k = 0; k < 10; k++) {
            hk_buf_addf(&f.text, "%s*a%u", k ? ", " : "", i - 1);
        }
        hk_buf_adds(&f.text, "]\n");
    }
    assert_int_equal(parse(&f, f.text.data, 0), -HK_ELIMIT);
    assert_non_null(strstr(f.err.text, ": document contains excessive aliasing"));

    /* Many aliases of a long string, or merges of a wide map, are limited too. */
    hk_buf_clear(&f.text);
    hk_buf_adds(&f.text, "- &s ");
    repeat(&f.text, "0123456789", 10000);
    hk_buf_addc(&f.text, '\n');
    repeat(&f.text, "- *s\n", 10000);
    assert_int_equal(parse(&f, f.text.data, 0), -HK_ELIMIT);

    hk_buf_clear(&f.text);
    hk_buf_adds(&f.text, "- &m {");
    for (unsigned i = 0; i < 1000; i++) {
        hk_buf_addf(&f.text, "k%u: 1, ", i);
    }
    hk_buf_adds(&f.text, "}\n");
    repeat(&f.text, "- {<<: *m}\n", 10000);
    assert_int_equal(parse(&f, f.text.data, 0), -HK_ELIMIT);
}

static void nested_merges_count_as_aliases(void **state)
{
    HK_AUTO(fixture_fini) struct fixture f = {0};

    repeat(&f.text, "{<<: ", YAML_MAX_DEPTH - 1);
    hk_buf_addc(&f.text, '{');
    for (unsigned i = 0; i < 10000; i++) {
        hk_buf_addf(&f.text, "k%u: 1, ", i);
    }
    repeat(&f.text, "}", YAML_MAX_DEPTH);
    assert_int_equal(parse(&f, f.text.data, 0), -HK_ELIMIT);
    assert_non_null(strstr(f.err.text, ": document contains excessive aliasing"));
}

static void honest_aliases_pass(void **state)
{
    HK_AUTO(fixture_fini) struct fixture f = {0};

    hk_buf_adds(&f.text, "- &m {image: busybox, command: [sleep, '10']}\n");
    repeat(&f.text, "- {<<: *m, name: x}\n- *m\n", 10000);
    assert_int_equal(parse(&f, f.text.data, 0), 0);
    assert_int_equal(f.docs.at[0].len, 20001);
}

static void tag_directives_are_limited(void **state)
{
    HK_AUTO(fixture_fini) struct fixture f = {0};

    for (unsigned i = 0; i < 65; i++) {
        hk_buf_addf(&f.text, "%%TAG !a%u! tag:x,1:\n", i);
    }
    hk_buf_adds(&f.text, "---\na: 1\n");
    assert_int_equal(parse(&f, f.text.data, 0), -HK_ELIMIT);
    assert_string_equal(f.err.text, "line 65, column 1: more than 64 %TAG directives");
}

static void writing_is_laid_out_as_kubectl_does(void **state)
{
    static const struct case_text cases[] = {
        {"{}", "{}\n"},
        {"[]", "[]\n"},
        {"{\"b\":1,\"a\":{\"y\":[],\"x\":{}},\"c\":[1,{\"p\":1,\"q\":[2]},[3,[4]],[{\"z\":null}]]}",
         "a:\n  x: {}\n  \"y\": []\nb: 1\nc:\n- 1\n- p: 1\n  q:\n  - 2\n- - 3\n  - - 4\n"
         "- - z: null\n"},
        {"[true,false,null,0.5,-3,1e21,18446744073709551615]",
         "- true\n- false\n- null\n- 0.5\n- -3\n- 1e+21\n- 18446744073709551615\n"},
        {"{\"a10\":1,\"a2\":1,\"a\":1,\"B\":1,\"b\":1,\"a-1\":1,\"a_1\":1,\"1\":1,\"10\":1,\"2\":1,"
         "\"a.b\":1,\"a/b\":1,\"ab\":1,\"\":1,\"a b\":1,\"a02\":1}",
         "\"\": 1\n\"1\": 1\n\"2\": 1\n\"10\": 1\nB: 1\na: 1\na b: 1\na-1: 1\na.b: 1\na/b: 1\n"
         "a_1: 1\na2: 1\na02: 1\na10: 1\nab: 1\nb: 1\n"},
        {"{\"a\\nb\":{\"x\":1,\"w\":[1,2]}}", "? |-\n  a\n  b\n: w:\n  - 1\n  - 2\n  x: 1\n"},
        {"{\"a\\rb\":1}", "? \"a\\rb\"\n: 1\n"},
        {"{\"k\":\"a\\n\\n b\\n\",\"l\":[\"x\\ny\"]}", "k: |\n  a\n\n   b\nl:\n- |-\n  x\n  y\n"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(fixture_fini) struct fixture f = {0};
        struct json v;
        assert_int_equal(json_parse(hk_str(cases[i].in), 0, &f.arena, &v, &f.err), 0);
        yaml_write(&v, &f.out);
        assert_string_equal(f.out.data, cases[i].want);
    }
}

static void strings_take_the_style_kubectl_gives_them(void **state)
{
    static const struct case_text cases[] = {
        {"a b", "a b\n"},
        {"\xc3\xa9", "\xc3\xa9\n"},
        {"\xf0\x9f\x98\x80", "\"\\U0001F600\"\n"},
        {"a\tb", "\"a\\tb\"\n"},
        {"a\nb", "|-\n  a\n  b\n"},
        {"a\n", "|\n  a\n"},
        {"a\n\n", "|+\n  a\n\n"},
        {"\n", "|2+\n\n"},
        {"\na", "|2-\n\n  a\n"},
        {" a\nb", "|2-\n   a\n  b\n"},
        {"a \nb", "\"a \\nb\"\n"},
        {"a\nb ", "\"a\\nb \"\n"},
        {"tab\t\nx", "\"tab\\t\\nx\"\n"},
        {"x\r\ny", "\"x\\r\\ny\"\n"},
        {"- a", "'- a'\n"},
        {"a: b", "'a: b'\n"},
        {"a #b", "'a #b'\n"},
        {"a#b", "a#b\n"},
        {"#a", "'#a'\n"},
        {"@a", "'@a'\n"},
        {"`", "'`'\n"},
        {"12:30:45", "\"12:30:45\"\n"},
        {"1:30", "\"1:30\"\n"},
        {"1:70", "1:70\n"},
        {"2001-01-01", "\"2001-01-01\"\n"},
        {"2001-02-30", "2001-02-30\n"},
        {"2026-01-02T15:04:05Z", "\"2026-01-02T15:04:05Z\"\n"},
        {"2026-1-2t5:4:5.5+01:00", "\"2026-1-2t5:4:5.5+01:00\"\n"},
        {"2026-01-02 15:04:05", "\"2026-01-02 15:04:05\"\n"},
        {"2026-01-02T15:04:05", "2026-01-02T15:04:05\n"},
        {"=", "=\n"},
        {"<<", "<<\n"},
        {"y", "\"y\"\n"},
        {"0777", "\"0777\"\n"},
        {"a,b", "a,b\n"},
        {"[a", "'[a'\n"},
        {"?", "'?'\n"},
        {"? a", "'? a'\n"},
        {"?a", "?a\n"},
        {":", "':'\n"},
        {"::a", "::a\n"},
        {"a:", "'a:'\n"},
        {"%x", "'%x'\n"},
        {"---", "'---'\n"},
        {"---a", "'---a'\n"},
        {"...", "'...'\n"},
        {"-a", "-a\n"},
        {"-", "'-'\n"},
        {"it's", "it's\n"},
        {"'q'", "'''q'''\n"},
        {"\"q\"", "'\"q\"'\n"},
        {"a\\b", "a\\b\n"},
        {" lead", "' lead'\n"},
        {"trail ", "'trail '\n"},
        {"", "\"\"\n"},
        {"null", "\"null\"\n"},
        {"~", "\"~\"\n"},
        {"1e3", "\"1e3\"\n"},
        {"1_0", "\"1_0\"\n"},
        {".5", "\".5\"\n"},
        {".nan", "\".nan\"\n"},
        {".", ".\n"},
        {"10m", "10m\n"},
        {"!x", "'!x'\n"},
        {"a'b: c", "'a''b: c'\n"},
        {"a\xc2\x85"
         "b",
         "\"a\\Nb\"\n"},
        {"\xe2\x80\xa8", "\"\\L\"\n"},
        {"\x1b\x7f", "\"\\e\\x7F\"\n"},
        {"\xef\xbb\xbfx", "\"\\uFEFFx\"\n"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(fixture_fini) struct fixture f = {0};
        const struct json v = json_make_str(hk_str(cases[i].in));
        yaml_write(&v, &f.out);
        assert_string_equal(f.out.data, cases[i].want);

        assert_int_equal(parse(&f, f.out.data, 0), 0);
        assert_int_equal(f.docs.len, 1);
        assert_true(json_equal(&f.docs.at[0], &v));
    }
}

static void a_merge_sign_as_key_is_quoted(void **state)
{
    HK_AUTO(fixture_fini) struct fixture f = {0};

    assert_int_equal(parse(&f, "\"<<\": {a: 1}\n", 0), 0);
    yaml_write(&f.docs.at[0], &f.out);
    assert_string_equal(f.out.data, "\"<<\":\n  a: 1\n");
}

static void malformed_utf8_is_written_as_replacement(void **state)
{
    HK_AUTO(fixture_fini) struct fixture f = {0};
    const struct json v = json_make_str(HK_STR("a\xff"));

    yaml_write(&v, &f.out);
    assert_string_equal(f.out.data, "\"a\xef\xbf\xbd\"\n");
}

static void written_text_parses_to_the_same_value(void **state)
{
    static const char *const docs[] = {
        "{\"\":{\"\":[[],{},[[\"\"]]]}}",
        "[\"\\u0001x\",\"\\ufffe\",\"\\uffff\",\"\\\"\\\\\",\"\\n\\n\",\"\\n \\n\"]",
        "{\"a\\n\":1,\"\\n\":{\"b\":\"\\n x\\n\"},\"? x\":[\"? y\"],\"<<\":[\"<<\"],\"- \":\"-\"}",
        "[[\"\\n a\\n\",{\"k\":\"  x\\n y\\n\\n\"}],[[\"z\\n\"]],{\"m\":[\" l\\n\"]}]",
        "[1.5,-0.25,1e300,5e-324,123456789.5,0.1,1e19,9007199254740993,-9223372036854775808]",
        "{\"k\":[\"#\",\"a\\n#b\\n\",\"---\\n...\\n\",\"--- x\\n\",\"%a\\n%b\",\"key: |\\n  x\"]}",
        "{\"json\":\"{\\\"a\\\":\\\"v1\\\"}\\n\",\"script\":\"#!/bin/sh\\n\\tx\\n\"}",
        "[9223856337204775808.0,-9007199254740994.0,1.8446744073709549568e19,1e20]",
        "\"\\n\\n\"",
        "\" \"",
    };

    for (size_t i = 0; i < HK_LEN(docs); i++) {
        HK_AUTO(fixture_fini) struct fixture f = {0};
        struct json v;
        if (json_parse(hk_str(docs[i]), 0, &f.arena, &v, &f.err) < 0) {
            fail_msg("%s\n%s", docs[i], f.err.text);
        }
        yaml_write(&v, &f.out);
        if (parse(&f, f.out.data, YAML_DUP_REJECT) < 0 || !json_equal(&f.docs.at[0], &v)) {
            fail_msg("%s\nwritten as\n%s\n%s", docs[i], f.out.data, f.err.text);
        }
    }
}

static void a_long_key_is_written_apart(void **state)
{
    HK_AUTO(fixture_fini) struct fixture f = {0};
    struct json v = json_make_object();

    repeat(&f.text, "k", 2000);
    json_put(&v, &f.arena, hk_buf_str(&f.text), json_make_int(1));
    yaml_write(&v, &f.out);
    assert_memory_equal(f.out.data, "? kkk", 5);
    assert_int_equal(parse(&f, f.out.data, 0), 0);
    assert_true(json_equal(&f.docs.at[0], &v));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_are_typed_as_kubectl_types_them),
        cmocka_unit_test(tags_override_or_check_the_type),
        cmocka_unit_test(values_json_has_no_word_for_are_refused),
        cmocka_unit_test(keys_become_strings),
        cmocka_unit_test(streams_hold_any_number_of_documents),
        cmocka_unit_test(json_streams_are_read_as_json),
        cmocka_unit_test(anchors_and_merges_work_as_in_kubectl),
        cmocka_unit_test(the_last_of_duplicate_keys_wins),
        cmocka_unit_test(strict_mode_names_both_lines_of_a_duplicate),
        cmocka_unit_test(syntax_errors_say_where),
        cmocka_unit_test(values_know_their_line),
        cmocka_unit_test(nesting_is_limited),
        cmocka_unit_test(aliases_cannot_nest_deeper_than_brackets),
        cmocka_unit_test(alias_bombs_are_refused),
        cmocka_unit_test(nested_merges_count_as_aliases),
        cmocka_unit_test(honest_aliases_pass),
        cmocka_unit_test(tag_directives_are_limited),
        cmocka_unit_test(writing_is_laid_out_as_kubectl_does),
        cmocka_unit_test(strings_take_the_style_kubectl_gives_them),
        cmocka_unit_test(a_merge_sign_as_key_is_quoted),
        cmocka_unit_test(malformed_utf8_is_written_as_replacement),
        cmocka_unit_test(written_text_parses_to_the_same_value),
        cmocka_unit_test(a_long_key_is_written_apart),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
