// SPDX-License-Identifier: Apache-2.0
// A log line is one line, whatever is in it, and is not made at all below the level.

#include "base/log.h"

#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <unistd.h>

/* Catches stderr in a file between the two calls. */
struct catch
{
    int saved;
    char path[32];
};

static void catch_begin(struct catch *c)
{
    memcpy(c->path, "/tmp/hekla-log-XXXXXX", sizeof("/tmp/hekla-log-XXXXXX"));
    const int fd = mkstemp(c->path);
    assert_true(fd >= 0);
    fflush(stderr);
    c->saved = dup(STDERR_FILENO);
    dup2(fd, STDERR_FILENO);
    close(fd);
}

static void catch_end(struct catch *c, struct hk_buf *out)
{
    dup2(c->saved, STDERR_FILENO);
    close(c->saved);
    assert_int_equal(hk_read_file(c->path, 1 << 20, out, NULL), 0);
    unlink(c->path);
}

static void test_levels(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct catch c;
    int made = 0;

    catch_begin(&c);
    hk_log_set_level(HK_LOG_WARN);
    hk_log(HK_LOG_ERROR, "a", "n=%d", ++made);
    hk_log(HK_LOG_WARN, "b", "n=%d", ++made);
    hk_log(HK_LOG_INFO, "c", "n=%d", ++made);
    hk_log(HK_LOG_DEBUG, "d", "n=%d", ++made);
    const enum hk_log_level level = hk_log_level();
    hk_log_set_level(HK_LOG_INFO);
    catch_end(&c, &out);
    assert_int_equal(level, HK_LOG_WARN);
    assert_int_equal(made, 2); /* arguments below the level are not evaluated */
    assert_string_equal(out.data, "level=error msg=\"a\" n=1\nlevel=warn msg=\"b\" n=2\n");
}

static void test_pairs_may_be_missing(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct catch c;

    catch_begin(&c);
    hk_log(HK_LOG_INFO, "ready", NULL);
    catch_end(&c, &out);
    assert_string_equal(out.data, "level=info msg=\"ready\"\n");
}

static void test_control_characters_cannot_break_the_line(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct catch c;

    catch_begin(&c);
    hk_log(HK_LOG_INFO, "say \"hi\"\\\n", "job=%s", "a\nlevel=error\x1b[2J\x7f");
    catch_end(&c, &out);
    assert_string_equal(out.data, "level=info msg=\"say \\\"hi\\\"\\\\\\x0a\" "
                                  "job=a\\x0alevel=error\\x1b[2J\\x7f\n");
}

static void test_long_lines_are_whole(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct catch c;

    catch_begin(&c);
    hk_log(HK_LOG_INFO, "x", "v=%9000d", 1);
    catch_end(&c, &out);
    assert_int_equal(out.len, strlen("level=info msg=\"x\" v=\n") + 9000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_pairs_may_be_missing),
        cmocka_unit_test(test_control_characters_cannot_break_the_line),
        cmocka_unit_test(test_long_lines_are_whole),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
