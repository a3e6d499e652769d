// SPDX-License-Identifier: Apache-2.0
// Attaching to a running container: its log becomes output, and what is typed becomes its input.
#include "agent/serve/rig_test.h"

#define STDIN ", stdin: true"

/* The container writes a line. */
static void write_output(const struct scene *s, const char *stream, const char *text)
{
    HK_AUTO(hk_buf_fini) struct hk_buf line = {0};
    char path[128];
    int fd;

    snprintf(path, sizeof(path), "%s/pods/u-a/c.0.log", s->r.dir);
    fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_true(fd >= 0);
    hk_buf_addf(&line, "2026-01-02T10:00:00.000000000Z %s F %s\n", stream, text);
    assert_int_equal(write(fd, line.data, line.len), line.len);
    close(fd);
}

static void test_what_is_not_possible_is_refused_with_the_reason(void **state)
{
    static const struct {
        const char *query, *want;
    } cases[] = {
        {"stdout=1&container=z", "container z is not valid for pod a"},
        {"stdin=1", "container c was not given a standard input (stdin: true)"},
        {"stdout=1%zz", "escape"},
    };

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        struct scene s;
        start_with(&s, "attach", "");
        const char *text = answer(&s, cases[k].query, V5);
        assert_non_null(strstr(text, " 400 "));
        assert_non_null(strstr(text, cases[k].want));
        assert_int_equal(s.r.agent->serve.sessions.len, 0);
        finish(&s);
    }
}

static void test_output_is_shown_from_now_on_on_its_two_streams(void **state)
{
    struct scene s;

    start_with(&s, "attach", "");
    write_output(&s, "stdout", "before");
    upgrade(&s, "stdout=1&stderr=1");
    write_output(&s, "stdout", "one");
    write_output(&s, "stderr", "two");
    AWAIT(&s, said(&s, CHANNEL_STDOUT, "one\n") && said(&s, CHANNEL_STDERR, "two\n"));
    assert_false(said(&s, CHANNEL_STDOUT, "before"));
    finish(&s);
}

static void test_a_stream_that_was_not_asked_for_is_left_out(void **state)
{
    struct scene s;

    start_with(&s, "attach", "");
    upgrade(&s, "stderr=1");
    write_output(&s, "stdout", "one");
    write_output(&s, "stderr", "two");
    AWAIT(&s, said(&s, CHANNEL_STDERR, "two\n"));
    assert_int_equal(s.channels[CHANNEL_STDOUT].len, 0);
    finish(&s);
}

static void test_the_end_of_the_container_is_the_end_of_the_session(void **state)
{
    struct scene s;

    start_with(&s, "attach", "");
    upgrade(&s, "stdout=1");
    write_output(&s, "stdout", "last");
    rig_end(&s.r, "c", 3);
    AWAIT(&s, s.closed == WS_CLOSE_NORMAL);
    assert_true(said(&s, CHANNEL_STDOUT, "last\n"));
    assert_true(said(&s, CHANNEL_ERROR, "\"status\":\"Success\""));
    finish(&s);
}

static void test_what_is_typed_reaches_the_container(void **state)
{
    char buf[16] = "";
    struct scene s;

    start_with(&s, "attach", STDIN);
    upgrade(&s, "stdin=1&stdout=1");
    tell(&s, CHANNEL_STDIN, HK_STR("hello"));
    AWAIT(&s, read(s.in, buf, sizeof(buf)) == 5);
    assert_string_equal(buf, "hello");
    shut(&s.fd);
    while (s.r.agent->serve.sessions.len > 0) {
        turn(&s);
    }
    assert_int_equal(s.told.len, 0); /* others may attach later */
    finish(&s);
}

static void test_an_input_for_one_client_ends_with_it(void **state)
{
    struct scene s;

    start_with(&s, "attach", STDIN ", stdinOnce: true");
    upgrade(&s, "stdin=1&stdout=1");
    shut(&s.fd);
    while (s.r.agent->serve.sessions.len > 0) {
        turn(&s);
    }
    assert_string_equal(s.told.data, "in-ends 0\n");
    finish(&s);
}

static void test_only_a_terminal_has_a_size(void **state)
{
    static const struct {
        const char *more, *want;
    } cases[] = {
        {STDIN, ""}, {STDIN ", tty: true", "resize 5242904\n"}, /* 80 << 16 | 24 */
    };

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        char buf[16];
        struct scene s;

        start_with(&s, "attach", cases[k].more);
        upgrade(&s, "stdin=1&stdout=1&tty=1");
        tell(&s, CHANNEL_RESIZE, HK_STR("{\"Width\":80,\"Height\":24}"));
        tell(&s, CHANNEL_STDIN, HK_STR("x")); /* follows the size */
        AWAIT(&s, read(s.in, buf, sizeof(buf)) == 1);
        assert_string_equal(s.told.len > 0 ? s.told.data : "", cases[k].want);
        finish(&s);
    }
}

static void test_clients_come_and_go_and_the_container_runs_on(void **state)
{
    struct scene s;

    start_with(&s, "attach", STDIN);
    upgrade(&s, "stdin=1&stdout=1");
    shut(&s.fd);
    while (s.r.agent->serve.sessions.len > 0) {
        turn(&s);
    }
    hk_buf_clear(&s.raw);
    upgrade(&s, "stdin=1&stdout=1");
    assert_int_equal(s.r.agent->serve.sessions.len, 1);
    assert_null(strstr(s.r.fake.log.data, "kill"));
    finish(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_not_possible_is_refused_with_the_reason),
        cmocka_unit_test(test_output_is_shown_from_now_on_on_its_two_streams),
        cmocka_unit_test(test_a_stream_that_was_not_asked_for_is_left_out),
        cmocka_unit_test(test_the_end_of_the_container_is_the_end_of_the_session),
        cmocka_unit_test(test_what_is_typed_reaches_the_container),
        cmocka_unit_test(test_an_input_for_one_client_ends_with_it),
        cmocka_unit_test(test_only_a_terminal_has_a_size),
        cmocka_unit_test(test_clients_come_and_go_and_the_container_runs_on),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
