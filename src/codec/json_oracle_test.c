// SPDX-License-Identifier: Apache-2.0
// Our JSON reader compared with jansson: a table of difficult texts, and generated documents,
// intact and damaged. The fuzz target does the same without end.

#include "codec/json_oracle.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* A text that may contain NUL bytes. */
#define TEXT(lit)                                                                                  \
    {                                                                                              \
        lit, sizeof(lit) - 1                                                                       \
    }

static void test_awkward_texts(void **state)
{
    static const struct hk_str cases[] = {
        TEXT(""),
        TEXT(" "),
        TEXT("null"),
        TEXT("nul"),
        TEXT("nulls"),
        TEXT("[1,]"),
        TEXT("{\"a\":1,}"),
        TEXT("{\"a\":1,\"a\":2,\"b\":3}"),
        TEXT("{\"\":{}}"),
        TEXT("{a:1}"),
        TEXT("['a']"),
        TEXT("[1 /* no */]"),
        TEXT("\xef\xbb\xbf[]"),
        TEXT("[-0,-0.0,0e1,1E+2,1e-400]"),
        TEXT("[01]"),
        TEXT("[1.]"),
        TEXT("[.5]"),
        TEXT("[+1]"),
        TEXT("[-]"),
        TEXT("[1e]"),
        TEXT("[1e999]"),
        TEXT("[NaN]"),
        TEXT("[9223372036854775807,-9223372036854775808]"),
        TEXT("[9223372036854775808]"),
        TEXT("[-9223372036854775809]"),
        TEXT("[0.1,2.5e-8,123456789012345678.5]"),
        TEXT("\"\\ud83d\\ude00\""),
        TEXT("\"\\ud83d\""),
        TEXT("\"\\ude00\\ud83d\""),
        TEXT("\"\\ud83d\\u0041\""),
        TEXT("\"\\u0000\""),
        TEXT("\"\\u12\""),
        TEXT("\"\\x\""),
        TEXT("\"\x7f\""),
        TEXT("\"\x1f\""),
        TEXT("\"\t\""),
        TEXT("\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""),
        TEXT("\"\xc0\x80\""),
        TEXT("\"\xe0\x80\x80\""),
        TEXT("\"\xed\xa0\x80\""),
        TEXT("\"\xf4\x90\x80\x80\""),
        TEXT("\"\xf8\x88\x80\x80\x80\""),
        TEXT("\"\xe2\x82\""),
        TEXT("\"\x80\""),
        TEXT("\"open"),
        TEXT("\"open\\"),
        TEXT("[[[[]]"),
        TEXT("[]]"),
        TEXT("[}"),
        TEXT("\f[]"),
        TEXT("[\v]"),
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        assert_true(json_oracle_agrees(cases[i]));
    }
}

/* ---- generated documents ---- */

static void generate(struct hk_rand *r, int depth, struct hk_buf *out);

static void generate_string(struct hk_rand *r, struct hk_buf *out)
{
    static const char *const pieces[] = {
        "a",
        "name",
        "/var/run",
        " ",
        "\\n",
        "\\\"",
        "\\\\",
        "\\/",
        "\\u00e9",
        "\\ud83d\\ude00",
        "\xc3\xa9",
        "\xe2\x82\xac",
        "\xf0\x9f\x98\x80",
        "volcano.sh/queue-name",
        "\x7f",
        "{}[],:",
    };

    hk_buf_addc(out, '"');
    for (uint32_t n = hk_rand_below(r, 5); n > 0; n--) {
        hk_buf_adds(out, pieces[hk_rand_below(r, HK_LEN(pieces))]);
    }
    hk_buf_addc(out, '"');
}

static void generate_number(struct hk_rand *r, struct hk_buf *out)
{
    const int64_t i = (int64_t)(hk_rand_u64(r) >> hk_rand_below(r, 64));

    switch (hk_rand_below(r, 3)) {
    case 0:
        hk_buf_addf(out, "%lld", (long long)i);
        break;
    case 1:
        hk_buf_addf(out, "%lld.%03u", (long long)i, hk_rand_below(r, 1000));
        break;
    default:
        hk_buf_addf(out, "%.17g", (double)i * hk_rand_unit(r) / 1e9);
        break;
    }
}

static void generate_blank(struct hk_rand *r, struct hk_buf *out)
{
    static const char *const blanks[] = {"", "", "", " ", "\n", "\r\n\t", "    "};

    hk_buf_adds(out, blanks[hk_rand_below(r, HK_LEN(blanks))]);
}

static void generate_container(struct hk_rand *r, int depth, bool object, struct hk_buf *out)
{
    /* Sometimes more members than the reader compares one by one. */
    const uint32_t n = hk_rand_below(r, hk_rand_below(r, 20) == 0 ? 100 : 6);

    hk_buf_addc(out, object ? '{' : '[');
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0) {
            hk_buf_addc(out, ',');
        }
        generate_blank(r, out);
        if (object) {
            generate_string(r, out);
            generate_blank(r, out);
            hk_buf_addc(out, ':');
            generate_blank(r, out);
        }
        generate(r, depth - 1, out);
        generate_blank(r, out);
    }
    hk_buf_addc(out, object ? '}' : ']');
}

static void generate(struct hk_rand *r, int depth, struct hk_buf *out)
{
    static const char *const words[] = {"null", "true", "false"};
    const uint32_t kind = hk_rand_below(r, depth > 0 ? 8 : 4);

    if (kind >= 4) {
        generate_container(r, depth, kind >= 6, out);
    } else if (kind == 3) {
        hk_buf_adds(out, words[hk_rand_below(r, HK_LEN(words))]);
    } else if (kind == 2) {
        generate_number(r, out);
    } else {
        generate_string(r, out);
    }
}

static void test_generated_documents(void **state)
{
    struct hk_rand r;

    hk_rand_seed(&r, 20);
    for (int i = 0; i < 400; i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
        generate(&r, 4, &text);
        assert_true(json_oracle_agrees(hk_buf_str(&text)));
    }
}

/* After any change, cut or repetition in the text, both readers still agree. */
static void test_damaged_documents(void **state)
{
    static const char bytes[] = "\"\\{}[]:,0-.eE \n\x01\x80\xc3\xf0ut";
    struct hk_rand r;

    hk_rand_seed(&r, 21);
    for (int i = 0; i < 2000; i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
        generate(&r, 3, &text);
        const uint32_t at = hk_rand_below(&r, (uint32_t)text.len);
        if (hk_rand_below(&r, 4) == 0) {
            text.len = at;
        } else {
            text.data[at] = bytes[hk_rand_below(&r, sizeof(bytes) - 1)];
        }
        assert_true(json_oracle_agrees(hk_buf_str(&text)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_awkward_texts),
        cmocka_unit_test(test_generated_documents),
        cmocka_unit_test(test_damaged_documents),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
