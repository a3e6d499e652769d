// SPDX-License-Identifier: Apache-2.0
// The last line of a process that dies of a bug, made without the heap.
#include "daemon/fatal.c" /* the parts of the line */

#include "cli/capture_test.h"

#include <sys/wait.h>

static const char *text_of(struct fatal_line *l)
{
    l->text[l->len] = '\0';
    return l->text;
}

static const struct {
    uint64_t v;
    unsigned base, digits;
    const char *text;
} numbers[] = {
    {0, 10, 1, "0"},
    {7, 10, 2, "07"},
    {1234, 10, 2, "1234"},
    {255, 16, 1, "ff"},
    {255, 16, 4, "00ff"},
    {UINT64_MAX, 10, 1, "18446744073709551615"},
    {UINT64_MAX, 16, 1, "ffffffffffffffff"},
};

static void numbers_have_their_digits(void **state)
{
    for (size_t i = 0; i < HK_LEN(numbers); i++) {
        struct fatal_line l = {.len = 0};
        fatal_add_number(&l, numbers[i].v, numbers[i].base, numbers[i].digits);
        assert_string_equal(text_of(&l), numbers[i].text);
    }
}

static const struct {
    int64_t days;
    const char *text;
} dates[] = {
    {0, "1970-01-01"},     {59, "1970-03-01"},    {789, "1972-02-29"},
    {11016, "2000-02-29"}, {20512, "2026-02-28"}, {20513, "2026-03-01"},
    {47540, "2100-02-28"}, {47541, "2100-03-01"}, /* not a leap year */
};

static void dates_are_those_of_the_calendar(void **state)
{
    for (size_t i = 0; i < HK_LEN(dates); i++) {
        struct fatal_line l = {.len = 0};
        fatal_add_date(&l, dates[i].days);
        assert_string_equal(text_of(&l), dates[i].text);
    }
}

static void a_line_never_outgrows_its_buffer(void **state)
{
    struct fatal_line l = {.len = 0};

    for (int i = 0; i < 2000; i++) {
        fatal_add(&l, "abc");
    }
    assert_int_equal(l.len, sizeof(l.text) - 1);
}

/* Sanitizers keep their own handlers; then only the end by the signal is the same. */
static void the_process_ends_by_its_signal(void **state)
{
    struct capture c = {0};
    int status;

    capture_begin(&c);
    const pid_t pid = fork();
    if (pid == 0) {
        fatal_install();
        abort();
    }
    waitpid(pid, &status, 0);
    capture_end(&c);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    if (!FATAL_BY_SANITIZER) {
        assert_non_null(strstr(c.complaints,
                               "level=error msg=\"fatal signal\" version=" HEKLA_VERSION
                               " signal=SIGABRT address=0x0 pid="));
        assert_non_null(strstr(c.complaints, " backtrace=hekla+0x"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_have_their_digits),
        cmocka_unit_test(dates_are_those_of_the_calendar),
        cmocka_unit_test(a_line_never_outgrows_its_buffer),
        cmocka_unit_test(the_process_ends_by_its_signal),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("daemon/fatal", tests, NULL, NULL);
}
