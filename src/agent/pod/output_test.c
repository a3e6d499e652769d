// SPDX-License-Identifier: Apache-2.0
// Tests of reading what a container wrote.
#include "agent/pod/output.h"

#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define AT(stream, tag, text) "2026-01-02T10:00:00Z " stream " " tag " " text "\n"

static char path[] = "/tmp/hekla-output-XXXXXX";

static int make_file(void **state)
{
    const int fd = mkstemp(path);

    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    return unlink(path);
}

static void write_text(struct hk_str text)
{
    struct hk_err err = {0};

    assert_int_equal(hk_write_file(path, text, &err), 0);
}

static void test_records_are_told_from_other_lines(void **state)
{
    static const struct {
        const char *line, *text;
        bool is, partial, is_err;
    } cases[] = {
        {"T stdout F a b", "a b", true, false, false},
        {"T stderr P part", "part", true, true, true},
        {"T stdout F ", "", true, false, false},
        {"T stdout F", "", true, false, false},
        {"T stdout ", "", false, false, false},
        {"T", "", false, false, false},
        {"", "", false, false, false},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct output_record r;

        assert_int_equal(output_parse(hk_str(cases[i].line), &r), cases[i].is);
        if (cases[i].is) {
            assert_true(hk_str_is(r.text, cases[i].text));
            assert_int_equal(r.partial, cases[i].partial);
            assert_int_equal(r.is_err, cases[i].is_err);
        }
    }
}

static void test_the_last_bytes_begin_with_a_whole_character(void **state)
{
    static const struct {
        const char *text;
        size_t max;
        const char *want;
    } cases[] = {
        {"", 4, ""},
        {"abc", 4, "abc"},
        {"abcdef", 4, "cdef"},
        {"ab\xc3\xa4"
         "c",
         3,
         "\xc3\xa4"
         "c"},
        {"ab\xc3\xa4"
         "c",
         2, "c"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

        write_text(hk_str(cases[i].text));
        output_last_bytes(path, cases[i].max, &out);
        assert_string_equal(out.data, cases[i].want);
    }
}

static void test_a_file_that_is_missing_is_empty(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    output_last_bytes("/nonexistent", 10, &out);
    output_log_end("/nonexistent", &out);
    assert_int_equal(out.len, 0);
}

static void test_the_end_of_a_log_is_its_text(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    write_text(HK_STR(AT("stdout", "F", "one") AT("stderr", "P", "tw") AT(
        "stderr", "F", "o") "nonsense\n" AT("stdout", "F", "three") "2026-01-02T10:00:00Z std"));
    output_log_end(path, &out);
    assert_string_equal(out.data, "one\ntwo\nthree\n");
}

static void test_of_a_long_log_the_last_80_lines_are_kept(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf log = {0}, want = {0}, out = {0};

    for (int i = 1; i <= 100; i++) {
        hk_buf_addf(&log, AT("stdout", "F", "%d"), i);
        if (i > 20) {
            hk_buf_addf(&want, "%d\n", i);
        }
    }
    write_text(hk_buf_str(&log));
    output_log_end(path, &out);
    assert_string_equal(out.data, want.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records_are_told_from_other_lines),
        cmocka_unit_test(test_the_last_bytes_begin_with_a_whole_character),
        cmocka_unit_test(test_a_file_that_is_missing_is_empty),
        cmocka_unit_test(test_the_end_of_a_log_is_its_text),
        cmocka_unit_test(test_of_a_long_log_the_last_80_lines_are_kept),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
