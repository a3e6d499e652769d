// SPDX-License-Identifier: Apache-2.0
// What every verb does with its command line: options, --help and errors, all from its table.
#include "cli/verb.h"

#include "cli/capture_test.h"

struct opts {
    struct verb_output output;
    int64_t count;
    const char *name;
};

static const struct option_row options[] = {
    ROW_INT('n', "count", "N", struct opts, count, 1, 9, "1", "How many to make."),
    ROW_INCLUDE(struct opts, output, verb_output_json_options),
    ROW_IGNORED(OPTION_BOOL, "logtostderr", "BOOL"),
    ROW_ARGUMENT("NAME", struct opts, name),
    ROW_END,
};

static const struct verb make = {
    .name = "make",
    .args = "NAME",
    .about = "make things",
    .options = options,
    .text = "Makes one thing or several of them, each under a name of its own that is derived "
            "from NAME.\nA second paragraph.",
    .rest = "EXAMPLES\n       hekla make a\n",
};
static const struct verb rest = {
    .name = "rest", .args = "", .about = "do nothing", .text = "Rests."};

enum { WORDS_MAX = 8 };

/* Parses the words of a command line. */
static int parse(const struct verb *v, struct capture *c, struct opts *o, const char *line)
{
    static char text[128];
    char *argv[WORDS_MAX], *rest_of = text;
    int argc = 0;

    snprintf(text, sizeof(text), "%s", line);
    for (char *word; (word = strsep(&rest_of, " ")) && argc < WORDS_MAX;) {
        if (*word) {
            argv[argc++] = word;
        }
    }
    *o = (struct opts){0};
    capture_begin(c);
    const int rc = verb_parse(v, argc, argv, o);
    capture_end(c);
    return rc;
}

static void options_go_to_their_fields(void **state)
{
    struct capture c = {0};
    struct opts o;

    assert_int_equal(parse(&make, &c, &o, "a --count 3 -o json"), 0);
    assert_int_equal(o.count, 3);
    assert_int_equal(o.output.as, OUTPUT_JSON);
    assert_string_equal(o.name, "a");
    assert_int_equal(parse(&make, &c, &o, "a --logtostderr=true"), 0);
    assert_int_equal(o.count, 1);
    assert_int_equal(o.output.as, OUTPUT_TEXT);
}

static const struct {
    const char *line, *complaint;
} mistakes[] = {
    {"--count 0", "hekla: make: option --count is '0', want a number from 1 to 9 (see 'hekla help "
                  "make')\n"},
    {"a b", "hekla: make: unexpected 'b' (see 'hekla help make')\n"},
};

static void a_mistake_is_one_line_with_a_hint(void **state)
{
    struct capture c = {0};
    struct opts o;

    for (size_t i = 0; i < HK_LEN(mistakes); i++) {
        assert_int_equal(parse(&make, &c, &o, mistakes[i].line), -HK_EINVAL);
        assert_string_equal(c.complaints, mistakes[i].complaint);
        assert_string_equal(c.out, "");
    }
}

static void help_is_the_page_of_the_verb(void **state)
{
    struct capture c = {0};
    struct opts o;

    assert_int_equal(parse(&make, &c, &o, "--help"), 1);
    assert_string_equal(
        c.out,
        "NAME\n       hekla make - make things\n\nSYNOPSIS\n       hekla make [OPTION...] NAME\n\n"
        "DESCRIPTION\n"
        "       Makes one thing or several of them, each under a name of its own that is\n"
        "       derived from NAME.\n\n       A second paragraph.\n\nOPTIONS\n"
        "       -n, --count N\n           How many to make. Default: 1.\n"
        "       -o, --output text|json\n"
        "           Print text for people, or JSON for programs. Default: text.\n"
        "       -h, --help\n           Show this page.\n\n"
        "       " VERB_IGNORED_TEXT "\n           --logtostderr\n"
        "\nEXAMPLES\n       hekla make a\n");
}

static void a_verb_without_options_has_help(void **state)
{
    struct capture c = {0};
    struct opts o;
    HK_AUTO(hk_buf_fini) struct hk_buf synopsis = {0};

    assert_int_equal(parse(&rest, &c, &o, ""), 0);
    assert_int_equal(parse(&rest, &c, &o, "-h"), 1);
    assert_non_null(strstr(c.out, "SYNOPSIS\n       hekla rest\n"));
    verb_write_synopsis(&make, &synopsis);
    assert_string_equal(synopsis.data, " [OPTION...] NAME");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_go_to_their_fields),
        cmocka_unit_test(a_mistake_is_one_line_with_a_hint),
        cmocka_unit_test(help_is_the_page_of_the_verb),
        cmocka_unit_test(a_verb_without_options_has_help),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("cli/verb", tests, NULL, NULL);
}
