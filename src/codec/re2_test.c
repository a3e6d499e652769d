// SPDX-License-Identifier: Apache-2.0
// RE2 patterns against texts, and refused patterns.
#include "codec/re2.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct {
    const char *pattern, *text;
    bool match;
} matches[] = {
    {"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "worker-1", true},
    {"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "Worker_1", false},
    {"^[^:]+$", "/data", true},
    {"^[^:]+$", "/a:b", false},
    {"b", "abc", true}, /* patterns are not anchored */
    {"^(?:a|b){2}$", "ab", true},
    {"^\\d+\\.\\w$", "12.x", true},
    {"^\\S$", " ", false},
    {"^[\\d.]+$", "1.2", true},
    {"", "anything", true},
    {"^$", "", true},
    {"^rack-(a|b)-[0-9]{2}$", "rack-b-07", true},
    {"^rack-(a|b)-[0-9]{2}$", "rack-b-7", false},
    {"^n\\d+$", "n12", true},
    {"^n\\d+$", "ndd", false},
    {"^n\\D$", "nx", true},
    {"^[\\w\\-.]+$", "a-b.c_9", true},
    {"^[\\w\\-.]+$", "a b", false},
    {"^a{2,3}$", "aa", true},
    {"^a{2,}$", "aaaa", true},
    {"a{", "a{", true},
    {"^a.*?b$", "axxb", true},
    {"\\Aab\\z", "ab", true},
    {"^[]x]+$", "]x", true},
    {"^[[:digit:]]$", "7", true},
    {"^n\\.x$", "n.x", true},
    {"^n\\.x$", "nyx", false},
    {"(?i)^RACK-\\d$", "rack-7", true},
    {"^(?i:a)b$", "Ab", true},
    {"^(?i:a)b$", "AB", false},
    {"(?s)^a.b$", "a\nb", true},
    {"^a.b$", "a\nb", false},
    {"a$", "a\n", false}, /* the end of the text, not of a line */
    {"(?m)^b$", "a\nb\nc", true},
    {"(?m:^b$)", "a\nb\nc", true},
    {"(?m:^b)$", "a\nb\n", false},
    {"(?:(?m)^b)$", "a\nb\n", false},
    {"(?m)(?-m:b$)", "a\nb\n", false},
    {"^(?P<rack>r\\d)-(?<node>n\\d)$", "r1-n2", true},
    {"^\\pL+$", "Grüße", true},
    {"^\\p{Greek}$", "λ", true},
    {"^.$", "λ", true}, /* a character, not a byte */
    {"^\\x41\\x{3bb}$", "Aλ", true},
    {"^[\\]\\[^]+$", "[]^", true},
    {"^\\s$", "\v", false},
    {"^\\S$", "\v", true},
    {"^[\\S]$", "\v", true},
    {"^[\\s]$", "\v", false},
    {"^\\v$", "\v", true},
    {"^\\v$", "\n", false},
    {"^\\Qa.b\\E$", "a.b", true},
    {"^\\Qa.b\\E$", "axb", false},
    {"a{,2}", "a{,2}", true},
    {"^\\w$", "é", false}, /* only ASCII, as in RE2 */
    {"^[[=a]+$", "[=a", true},
    {"^(a|aa)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", false},
};

static const char *const refused[] = {
    "(",       "a(b",       "[a",      "[[:x",
    "[[:x:]]", "a\\",       "a{1001}", "((a{100}){100}){100}",
    "(a)\\1",  "\\k<n>",    "\\g1",    "(?=a)",
    "(?!a)",   "(?<=a)b",   "(?<!a)b", "(?>a)",
    "(?#a)",   "(?(1)a|b)", "(?R)",    "(?P=n)",
    "(?P>n)",  "(?|a|b)",   "(?x)a",   "(*ACCEPT)",
    "a*+",     "a++",       "a?+",     "a{2}+",
    "a**",     "*a",        "\\Z",     "\\R",
    "\\X",     "\\K",       "\\h",     "\\N",
    "\\G",     "\\cA",      "\\e",     "\\E",
    "\\C",     "[\\b]",     "[b-a]",   "\\p{None}",
    ")",
};

static void patterns_match(void **state)
{
    for (size_t i = 0; i < HK_LEN(matches); i++) {
        struct hk_err err = {0};
        HK_AUTO(re2_freep) struct re2 *re = NULL;

        if (re2_compile(hk_str(matches[i].pattern), &re, &err) < 0) {
            fail_msg("%s: %s", matches[i].pattern, err.text);
        }
        if (re2_matches(re, hk_str(matches[i].text)) != matches[i].match) {
            fail_msg("%s on '%s': expected %d", matches[i].pattern, matches[i].text,
                     matches[i].match);
        }
    }
}

static void only_the_given_bytes_count(void **state)
{
    HK_AUTO(re2_freep) struct re2 *re = NULL;

    assert_int_equal(re2_compile(HK_STR("c$"), &re, NULL), 0);
    assert_false(re2_matches(re, (struct hk_str){"abc", 2}));
    assert_true(re2_matches(re, (struct hk_str){"abc", 3}));
}

static const struct {
    const char *pattern, *text;
    size_t from;
    const char *hit; /* NULL: none */
} searches[] = {
    {"[0-9]+", "ab12c345", 0, "12"},
    {"[0-9]+", "ab12c345", 4, "345"},
    {"[0-9]+", "abc", 0, NULL},
    {"a|ab", "xab", 0, "a"}, /* the first alternative that matches, not the longest */
    {"a*?b", "aab", 0, "aab"},
    {"^b", "ab", 1, NULL}, /* the text begins at its beginning, not where the search does */
    {"", "ab", 2, ""},
};

static void a_search_returns_what_matches(void **state)
{
    for (size_t i = 0; i < HK_LEN(searches); i++) {
        HK_AUTO(re2_freep) struct re2 *re = NULL;
        struct hk_str hit = HK_STR("");

        assert_int_equal(re2_compile(hk_str(searches[i].pattern), &re, NULL), 0);
        const int rc = re2_search(re, hk_str(searches[i].text), searches[i].from, &hit);
        if (rc != (searches[i].hit != NULL) || (rc > 0 && !hk_str_is(hit, searches[i].hit))) {
            fail_msg("%s in '%s': expected '%s', got %d '%.*s'", searches[i].pattern,
                     searches[i].text, searches[i].hit ? searches[i].hit : "(none)", rc,
                     HK_FMT(hit));
        }
    }
}

static void a_search_takes_bounded_time(void **state)
{
    HK_AUTO(re2_freep) struct re2 *re = NULL;
    struct hk_str hit;

    static const struct hk_str text =
        HK_STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac");

    assert_int_equal(re2_compile(HK_STR("^(a|aa)+b|^a"), &re, NULL), 0);
    assert_int_equal(re2_search(re, text, 0, &hit), -HK_ELIMIT);
    re2_free(re);
    assert_int_equal(re2_compile(HK_STR("^(a|aa)+$"), &re, NULL), 0);
    assert_int_equal(re2_search(re, text, 0, &hit), 0);
}

static void what_go_refuses_is_refused(void **state)
{
    for (size_t i = 0; i < HK_LEN(refused); i++) {
        struct hk_err err = {0};
        struct re2 *re;

        if (re2_compile(hk_str(refused[i]), &re, &err) != -HK_EINVAL) {
            fail_msg("%s: expected a refusal", refused[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_match),
        cmocka_unit_test(only_the_given_bytes_count),
        cmocka_unit_test(a_search_returns_what_matches),
        cmocka_unit_test(a_search_takes_bounded_time),
        cmocka_unit_test(what_go_refuses_is_refused),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
