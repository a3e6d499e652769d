// SPDX-License-Identifier: Apache-2.0
// Borrowed strings, growing buffers, and the hash that never changes.

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void assert_str(struct hk_str got, const char *want)
{
    assert_int_equal(got.n, strlen(want));
    assert_memory_equal(got.s, want, got.n);
}

static void test_equality(void **state)
{
    assert_true(hk_str_eq(HK_STR("a"), HK_STR("a")));
    assert_false(hk_str_eq(HK_STR("a"), HK_STR("ab")));
    assert_false(hk_str_eq(HK_STR("a"), HK_STR("b")));
    assert_true(hk_str_eq(HK_STR(""), (struct hk_str){0}));
    assert_true(hk_str_is((struct hk_str){"queue", 3}, "que"));
    assert_true(hk_str_is(hk_str(NULL), ""));
}

static void test_order(void **state)
{
    static const struct {
        const char *a, *b;
        int want;
    } cases[] = {
        {"", "", 0},     {"a", "a", 0}, {"a", "b", -1},  {"b", "a", 1},
        {"a", "ab", -1}, {"", "a", -1}, {"ab", "b", -1}, {"\x7f", "\x80", -1}, /* unsigned */
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        const int got = hk_str_cmp(hk_str(cases[i].a), hk_str(cases[i].b));
        const int back = hk_str_cmp(hk_str(cases[i].b), hk_str(cases[i].a));
        assert_int_equal((got > 0) - (got < 0), cases[i].want);
        assert_int_equal((back > 0) - (back < 0), -cases[i].want);
    }
    assert_int_equal(hk_str_cmp((struct hk_str){0}, HK_STR("")), 0);
}

static void test_parts(void **state)
{
    const struct hk_str none = {0};

    assert_true(hk_str_starts(HK_STR("volcano.sh/queue"), "volcano.sh/"));
    assert_false(hk_str_starts(HK_STR("vol"), "volcano"));
    assert_true(hk_str_starts(none, ""));
    assert_true(hk_str_ends(HK_STR("10Gi"), "Gi"));
    assert_false(hk_str_ends(HK_STR("i"), "Gi"));
    assert_true(hk_str_ends(none, ""));
    assert_true(hk_str_contains(HK_STR("nvidia.com/gpu"), ".com"));
    assert_true(hk_str_contains(HK_STR("abc"), "abc"));
    assert_false(hk_str_contains(HK_STR("abc"), "abcd"));
    assert_false(hk_str_contains((struct hk_str){"abc", 2}, "c"));
    assert_true(hk_str_contains(none, ""));
    assert_false(hk_str_contains(none, "a"));
}

static void test_trim(void **state)
{
    assert_str(hk_str_trim(HK_STR(" \t a b\r\n")), "a b");
    assert_str(hk_str_trim(HK_STR("a")), "a");
    assert_str(hk_str_head(HK_STR("abc"), 2), "ab");
    assert_str(hk_str_head(HK_STR("abc"), 9), "abc");
    assert_str(hk_str_head(HK_STR("a\xc3\xa9"), 2), "a");
    assert_str(hk_str_trim(HK_STR(" \n ")), "");
    assert_int_equal(hk_str_trim((struct hk_str){0}).n, 0);
}

static void test_cut(void **state)
{
    static const struct {
        const char *in;
        size_t n;
        const char *parts[4];
    } cases[] = {
        {"a,b,c", 3, {"a", "b", "c"}},
        {"abc", 1, {"abc"}},
        {"", 1, {""}},
        {",", 2, {"", ""}},
        {"a,", 2, {"a", ""}},
        {",a", 2, {"", "a"}},
        {"a,,b", 3, {"a", "", "b"}},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct hk_str rest = hk_str(cases[i].in), part;
        size_t n = 0;
        while (hk_str_cut(&rest, ',', &part)) {
            assert_true(n < cases[i].n);
            assert_str(part, cases[i].parts[n++]);
        }
        assert_int_equal(n, cases[i].n);
        assert_null(rest.s);
    }
}

static void test_cut_of_nothing(void **state)
{
    struct hk_str rest = {0}, part = HK_STR("untouched");

    assert_false(hk_str_cut(&rest, ',', &part));
    assert_str(part, "untouched");
}

static void test_int(void **state)
{
    static const struct {
        const char *in;
        bool ok;
        int64_t want;
    } cases[] = {
        {"0", true, 0},
        {"7", true, 7},
        {"-7", true, -7},
        {"+7", true, 7},
        {"007", true, 7},
        {"-0", true, 0},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"99999999999999999999", false, 0},
        {"", false, 0},
        {"-", false, 0},
        {"+", false, 0},
        {"--1", false, 0},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"1.0", false, 0},
        {"0x1", false, 0},
        {"1e3", false, 0},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        int64_t got = 0;
        if (hk_str_int(hk_str(cases[i].in), &got) != cases[i].ok || got != cases[i].want) {
            fail_msg("'%s': got %jd, want %jd", cases[i].in, (intmax_t)got,
                     (intmax_t)cases[i].want);
        }
    }
}

/* From an independent implementation; a change here would silently reorder recorded runs. */
static void test_hash_is_fixed(void **state)
{
    static const struct {
        const char *in;
        uint64_t seed, want;
    } cases[] = {
        {"", 0, 0xc7f5105fab524401u},
        {"", 1, 0x57a5b14e2eb818bbu},
        {"a", 0, 0x8c001fac6bc84d1cu},
        {"a", 1, 0x27cb9c8f3d47cc57u},
        {"abc", 0, 0x7d82961694cb2de0u},
        {"node", 0, 0x657eedbdcce4b7a2u},
        {"queue-1", 0, 0x43949842b6adf0afu},
        {"0123456789abcdef", 0, 0x5595d2e749aa53c1u},
        {"0123456789abcdef0", 0, 0xdd41b8f210aa3726u},
        {"kubernetes.io/hostname", 0, 0xd3ec0027ddcc3d8bu},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        assert_int_equal(hk_hash(cases[i].in, strlen(cases[i].in), cases[i].seed), cases[i].want);
    }
    assert_int_equal(hk_hash(NULL, 0, 0), cases[0].want);
}

static void test_every_byte_counts_in_the_hash(void **state)
{
    char text[64] = {0};

    for (size_t n = 1; n <= sizeof(text); n++) {
        const uint64_t plain = hk_hash(text, n, 0);
        assert_true(plain != hk_hash(text, n - 1, 0));
        for (size_t i = 0; i < n; i++) {
            text[i] = 1;
            assert_true(plain != hk_hash(text, n, 0));
            text[i] = 0;
        }
    }
}

static void test_buf_grows_and_ends_in_nul(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};

    assert_string_equal(hk_buf_str(&b).s, "");
    for (size_t i = 0; i < 1000; i++) {
        hk_buf_addc(&b, 'x');
        assert_int_equal(b.len, i + 1);
        assert_int_equal(b.data[b.len], '\0');
    }
    hk_buf_clear(&b);
    assert_string_equal(b.data, "");
    hk_buf_adds(&b, "a");
    hk_buf_addstr(&b, HK_STR("bc"));
    hk_buf_add(&b, "d\0e", 3);
    assert_int_equal(b.len, 6);
    assert_memory_equal(b.data, "abcd\0e", 7);
}

static void test_buf_of_nothing(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};

    hk_buf_clear(&b);
    hk_buf_add(&b, NULL, 0);
    hk_buf_addstr(&b, (struct hk_str){0});
    assert_int_equal(b.len, 0);
    assert_string_equal(b.data, "");
}

static void test_buf_drops_its_beginning(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};

    hk_buf_drop(&b, 0);
    hk_buf_adds(&b, "abcdef");
    hk_buf_drop(&b, 4);
    assert_string_equal(b.data, "ef");
    assert_int_equal(b.len, 2);
    hk_buf_drop(&b, 2);
    assert_string_equal(b.data, "");
}

static void test_buf_reserve_spares_the_allocator(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};

    hk_buf_reserve(&b, 5000);
    assert_string_equal(b.data, "");
    const uint64_t calls = hk_alloc_calls();
    for (int i = 0; i < 5000; i++) {
        hk_buf_addc(&b, 'x');
    }
    assert_int_equal(hk_alloc_calls() - calls, 0);
}

/* Lengths around the remaining space, where the first attempt does and does not fit. */
static void test_buf_addf_at_every_boundary(void **state)
{
    for (int width = 1; width < 200; width++) {
        HK_AUTO(hk_buf_fini) struct hk_buf b = {0};
        hk_buf_adds(&b, "start ");
        hk_buf_addf(&b, "%*d|", width, 7);
        assert_int_equal(b.len, 6 + width + 1);
        assert_int_equal(strlen(b.data), b.len);
        assert_memory_equal(b.data, "start ", 6);
        assert_string_equal(b.data + b.len - 2, "7|");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equality),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_trim),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_cut_of_nothing),
        cmocka_unit_test(test_int),
        cmocka_unit_test(test_hash_is_fixed),
        cmocka_unit_test(test_every_byte_counts_in_the_hash),
        cmocka_unit_test(test_buf_grows_and_ends_in_nul),
        cmocka_unit_test(test_buf_of_nothing),
        cmocka_unit_test(test_buf_drops_its_beginning),
        cmocka_unit_test(test_buf_reserve_spares_the_allocator),
        cmocka_unit_test(test_buf_addf_at_every_boundary),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
