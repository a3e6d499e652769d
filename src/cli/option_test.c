// SPDX-License-Identifier: Apache-2.0
// Option tables: every type with valid and invalid values, the ways to write them, defaults,
// included tables, arguments, and help.

#include "cli/option.h"

#include "base/vec.h"
#include "cli/words_test.h"
#include "codec/quantity.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MAX_ARGS = 12, S_NS = 1000 * 1000 * 1000 };

enum color { RED, GREEN, BLUE };

struct shared {
    const char *server;
    bool all;
};

struct opts {
    bool flag, any, on;
    enum color color, set;
    int64_t number;
    uint32_t small;
    uint16_t port;
    int64_t wait_ns, period_ns;
    struct quantity size;
    const char *text, *first;
    struct option_list list, rest;
    struct shared shared;
    int called; /* number of calls of --even's function */
    int64_t even;
};

static int parse_even(void *at, const struct option_row *row, const char *value, struct hk_err *err)
{
    struct opts *o = at;
    int64_t n;

    o->called++;
    if (!hk_str_int(hk_str(value), &n) || n % 2 != 0) {
        return hk_fail(err, HK_EINVAL, "option --%s is '%s', want an even number", row->name,
                       value);
    }
    o->even = n;
    return 0;
}

static const struct option_row shared_table[] = {
    ROW_TEXT('s', "server", "URL", struct shared, server, "here", "The server."),
    ROW_FLAG('A', "all-of-it", struct shared, all, "All of it."),
    ROW_END,
};

static const struct option_row table[] = {
    ROW_FLAG('f', "flag", struct opts, flag, "A flag."),
    ROW_FLAG(0, "any", struct opts, any, "Any."),
    ROW_FLAG_OFF(0, "every", struct opts, any, "Every."),
    ROW_SET(0, "blue", struct opts, set, BLUE, "Blue."),
    ROW_BOOL("on", struct opts, on, "true", "On."),
    ROW_INT('n', "number", "N", struct opts, number, -5, 10, "7", "A number."),
    ROW_INT(0, "small", "N", struct opts, small, 0, INT64_MAX, NULL, "A small number."),
    ROW_INT_OR(0, "port", "N", struct opts, port, 1, UINT16_MAX, "a free one", "A port."),
    ROW_DURATION(0, "wait", struct opts, wait_ns, 1, NULL, "A time."),
    ROW_DURATION(0, "period", struct opts, period_ns, S_NS, "1m30s", "A period."),
    ROW_QUANTITY("size", struct opts, size, (int64_t)65536 * 1000, "10Mi", "A size."),
    ROW_TEXT('t', "text", "TEXT", struct opts, text, NULL, "A text."),
    ROW_LIST('l', "list", "NAME", struct opts, list, "none", "A list."),
    ROW_CHOICE('c', "color", "COLOR", struct opts, color, "red green blue", "green", "A color."),
    ROW_CALL_ALL(0, "even", "N", parse_even, "4", "An even number."),
    ROW_IGNORED(OPTION_DURATION, "old-period", "DURATION"),
    ROW_IGNORED_INT("old-threads", 1, 8),
    ROW_IGNORED(OPTION_BOOL, "old-flag", "BOOL"),
    ROW_IGNORED_CHOICE("old-kind", "KIND", "leases"),
    ROW_INCLUDE(struct opts, shared, shared_table),
    ROW_ARGUMENT("FIRST", struct opts, first),
    ROW_ARGUMENTS("REST", struct opts, rest),
    ROW_END,
};

/* Parses words separated by blanks; values live in text. */
static int parse(const struct option_row *rows, char *text, struct opts *ret, struct hk_err *err)
{
    char *argv[MAX_ARGS];
    const int argc = split_words(text, argv);

    return option_parse(rows, argc, argv, ret, err);
}

static void opts_fini(struct opts *o)
{
    hk_vec_fini(&o->list);
    hk_vec_fini(&o->rest);
}

static void test_defaults_come_from_the_rows(void **state)
{
    HK_AUTO(opts_fini) struct opts o = {.small = 3, .port = 9};
    struct hk_err err = {0};
    char none[] = "";

    assert_int_equal(parse(table, none, &o, &err), 0);
    assert_false(o.flag || o.any || o.shared.all);
    assert_true(o.on);
    assert_int_equal(o.number, 7);
    assert_int_equal(o.small, 3); /* no default: the caller's value stays */
    assert_int_equal(o.port, 9);
    assert_int_equal(o.wait_ns, 0);
    assert_true(o.period_ns == (int64_t)90 * S_NS);
    assert_int_equal(quantity_value(o.size), 10 << 20);
    assert_null(o.text);
    assert_int_equal(o.color, GREEN);
    assert_int_equal(o.even, 4);
    assert_string_equal(o.shared.server, "here");
    assert_int_equal(o.list.len + o.rest.len, 0);
}

static void test_every_way_to_write_an_option(void **state)
{
    static const struct {
        const char *typed, *text, *server;
        int64_t number;
    } cases[] = {
        {"--text a --number 3 --server x", "a", "x", 3},
        {"--text=a --number=3 --server=x", "a", "x", 3},
        {"-t a -n 3 -s x", "a", "x", 3},
        {"-ta -n3 -sx", "a", "x", 3},
        {"-t=a -n=3 -s=x", "a", "x", 3},
        {"-ft a -An 3 -fAs x", "a", "x", 3},
        {"--text a --text b --number -5", "b", "here", -5},
        {"--text= --number 10", "", "here", 10},
        {"--text --number -n 2", "--number", "here", 2},
        {"--all_of_it --text a -n 3", "a", "here", 3},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(opts_fini) struct opts o = {0};
        HK_AUTO(hk_freep) char *typed = hk_strdup(cases[i].typed);
        struct hk_err err = {0};

        assert_int_equal(parse(table, typed, &o, &err), 0);
        assert_string_equal(o.text, cases[i].text);
        assert_string_equal(o.shared.server, cases[i].server);
        assert_int_equal(o.number, cases[i].number);
    }
}

static void test_flags_and_booleans(void **state)
{
    static const struct {
        const char *typed;
        bool flag, any, on;
    } cases[] = {
        {"--flag --any", true, true, true},   {"--any --every", false, false, true},
        {"--every --any", false, true, true}, {"--on=false", false, false, false},
        {"--on=0 --on", false, false, true},  {"--on=F", false, false, false},
        {"--on false", false, false, true}, /* an argument: only '=' gives a bool a value */
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(opts_fini) struct opts o = {0};
        HK_AUTO(hk_freep) char *typed = hk_strdup(cases[i].typed);
        struct hk_err err = {0};

        assert_int_equal(parse(table, typed, &o, &err), 0);
        assert_int_equal(o.flag, cases[i].flag);
        assert_int_equal(o.any, cases[i].any);
        assert_int_equal(o.on, cases[i].on);
    }
}

static void test_values_are_stored_by_type(void **state)
{
    HK_AUTO(opts_fini) struct opts o = {0};
    struct hk_err err = {0};
    char typed[] = "--small 4000000000 --port 65535 --wait 1h30m --size 64Ki --color blue --blue "
                   "-l=a";

    assert_int_equal(parse(table, typed, &o, &err), 0);
    assert_int_equal(o.small, 4000000000U);
    assert_int_equal(o.port, 65535);
    assert_true(o.wait_ns == (int64_t)5400 * S_NS);
    assert_int_equal(quantity_value(o.size), 65536);
    assert_int_equal(o.color, BLUE);
    assert_int_equal(o.set, BLUE);
    assert_int_equal(o.list.len, 1);
}

static void test_refusals_name_the_value_and_what_is_wanted(void **state)
{
    static const struct {
        const char *typed, *says;
    } cases[] = {
        {"--nonsense", "unknown option '--nonsense'"},
        {"--numbe 1", "unknown option '--numbe'"},
        {"-fz", "unknown option '-z'"},
        {"--flag=true", "option --flag takes no value"},
        {"--blue=1", "option --blue takes no value"},
        {"--text", "option --text wants TEXT"},
        {"-n", "option --number wants N"},
        {"--on=perhaps", "option --on is 'perhaps', want true or false"},
        {"--number 11", "option --number is '11', want a number from -5 to 10"},
        {"--number -6", "option --number is '-6', want a number from -5 to 10"},
        {"--number ten", "option --number is 'ten', want a number from -5 to 10"},
        {"--number 1e1", "option --number is '1e1', want a number from -5 to 10"},
        {"--number=", "option --number is '', want a number from -5 to 10"},
        {"--number 99999999999999999999", "want a number from -5 to 10"},
        {"--small -1", "option --small is '-1', want a number of 0 or more"},
        {"--port 65536", "want a number from 1 to 65535"},
        {"--wait 0s", "option --wait is '0s', want a duration such as 90s or 1h30m"},
        {"--wait -1s", "want a duration"},
        {"--wait soon", "option --wait is 'soon', want a duration"},
        {"--period 10ms", "option --period is '10ms', want 1s or more"},
        {"--size 1Ki", "option --size is '1Ki', want an amount of 64Ki or more"},
        {"--size big", "option --size is 'big', want an amount"},
        {"--color pink", "option --color is 'pink', want one of: red, green, blue"},
        {"--color gree", "want one of: red, green, blue"},
        {"--color=", "option --color is '', want one of"},
        {"--even 3", "option --even is '3', want an even number"},
        {"--old-period soon", "option --old-period is 'soon', want a duration"},
        {"--old-threads 0", "option --old-threads is '0', want a number from 1 to 8"},
        {"--old-flag=x", "option --old-flag is 'x', want true or false"},
        {"--old-kind endpoints", "want one of: leases"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(opts_fini) struct opts o = {0};
        HK_AUTO(hk_freep) char *typed = hk_strdup(cases[i].typed);
        struct hk_err err = {0};

        assert_int_equal(parse(table, typed, &o, &err), -HK_EINVAL);
        if (!strstr(err.text, cases[i].says)) {
            fail_msg("'%s' says: %s", cases[i].typed, err.text);
        }
    }
}

static void test_options_without_effect_change_nothing(void **state)
{
    HK_AUTO(opts_fini) struct opts o = {0}, same = {0};
    struct hk_err err = {0};
    char none[] = "", typed[] = "--old-period 3s --old-threads=8 --old-flag --old-kind leases";

    assert_int_equal(parse(table, none, &same, &err), 0);
    assert_int_equal(parse(table, typed, &o, &err), 0);
    assert_true(o.flag == same.flag && o.any == same.any && o.on == same.on);
    assert_int_equal(o.color, same.color);
    assert_int_equal(o.set, same.set);
    assert_int_equal(o.number, same.number);
    assert_int_equal(o.small, same.small);
    assert_int_equal(o.port, same.port);
    assert_int_equal(o.wait_ns, same.wait_ns);
    assert_int_equal(o.period_ns, same.period_ns);
    assert_int_equal(quantity_value(o.size), quantity_value(same.size));
    assert_ptr_equal(o.text, same.text);
    assert_ptr_equal(o.first, same.first);
    assert_int_equal(o.list.len + o.rest.len, same.list.len + same.rest.len);
    assert_int_equal(o.called, same.called);
    assert_int_equal(o.even, same.even);
}

static void test_arguments(void **state)
{
    HK_AUTO(opts_fini) struct opts o = {0};
    struct hk_err err = {0};
    char typed[] = "a --flag b - -- --text -n";

    assert_int_equal(parse(table, typed, &o, &err), 0);
    assert_string_equal(o.first, "a");
    assert_int_equal(o.rest.len, 4);
    assert_string_equal(o.rest.at[0], "b");
    assert_string_equal(o.rest.at[1], "-");
    assert_string_equal(o.rest.at[2], "--text");
    assert_string_equal(o.rest.at[3], "-n");
    assert_true(o.flag);
    assert_null(o.text);
}

static void test_too_many_arguments(void **state)
{
    static const struct option_row none[] = {ROW_END};
    static const struct option_row one[] = {ROW_ARGUMENT("FIRST", struct opts, first), ROW_END};
    struct hk_err err = {0};
    struct opts o = {0};
    char a[] = "a", ab[] = "a b";

    assert_int_equal(parse(none, a, &o, &err), -HK_EINVAL);
    assert_string_equal(err.text, "unexpected 'a'");
    assert_int_equal(parse(one, ab, &o, &err), -HK_EINVAL);
    assert_string_equal(err.text, "unexpected 'b'");
}

static void test_a_command_keeps_its_options(void **state)
{
    static const struct option_row rows[] = {
        ROW_FLAG('f', "flag", struct opts, flag, "A flag."),
        ROW_COMMAND("COMMAND", struct opts, rest),
        ROW_END,
    };
    HK_AUTO(opts_fini) struct opts o = {0};
    struct hk_err err = {0};
    char typed[] = "make -f --help --flag";

    assert_int_equal(parse(rows, typed, &o, &err), 0);
    assert_int_equal(o.rest.len, 4);
    assert_false(o.flag);
}

static void test_help_is_asked_for(void **state)
{
    static const char *const typed[] = {"--help", "-h", "--text a --help --nonsense"};

    for (size_t i = 0; i < HK_LEN(typed); i++) {
        HK_AUTO(opts_fini) struct opts o = {0};
        HK_AUTO(hk_freep) char *text = hk_strdup(typed[i]);
        struct hk_err err = {0};

        assert_int_equal(parse(table, text, &o, &err), 1);
    }
}

static void expect_row(const char *name, const char *usage, const char *help)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct option_row row;

    assert_true(option_find(table, hk_str(name), &row));
    option_write_usage(&row, &out);
    assert_string_equal(out.data, usage);
    hk_buf_clear(&out);
    option_write_help(&row, &out);
    assert_string_equal(out.data, help);
}

static void test_help_comes_from_the_rows(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf ignored = {0};

    expect_row("flag", "-f, --flag", "A flag.");
    expect_row("on", "--on[=BOOL]", "On. Default: true.");
    expect_row("number", "-n, --number N", "A number. Default: 7.");
    expect_row("port", "--port N", "A port. Default: a free one.");
    expect_row("color", "-c, --color red|green|blue", "A color. Default: green.");
    expect_row("server", "-s, --server URL", "The server. Default: here.");
    option_write_ignored(table, &ignored);
    assert_string_equal(ignored.data, "--old-period, --old-threads, --old-flag, --old-kind");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_come_from_the_rows),
        cmocka_unit_test(test_every_way_to_write_an_option),
        cmocka_unit_test(test_flags_and_booleans),
        cmocka_unit_test(test_values_are_stored_by_type),
        cmocka_unit_test(test_refusals_name_the_value_and_what_is_wanted),
        cmocka_unit_test(test_options_without_effect_change_nothing),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_too_many_arguments),
        cmocka_unit_test(test_a_command_keeps_its_options),
        cmocka_unit_test(test_help_is_asked_for),
        cmocka_unit_test(test_help_comes_from_the_rows),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
