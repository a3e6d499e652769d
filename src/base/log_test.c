// SPDX-License-Identifier: Apache-2.0
// A log line is one line, whatever its values, and is not built at all below the level.

#include "base/log.h"

#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Redirects stderr to a file between the two calls. */
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
    assert_string_equal(out.data, "level=info msg=\"say \\\"hi\\\"\\\\\\n\" "
                                  "job=\"a\\nlevel=error\\u001b[2J\\u007f\"\n");
}

static void test_long_lines_are_whole(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct catch c;

    catch_begin(&c);
    hk_log(HK_LOG_INFO, "x", "v=%9000d", 1);
    catch_end(&c, &out);
    assert_int_equal(out.len, strlen("level=info msg=\"x\" v=\"\"\n") + 9000);
}

static void test_values_are_logfmt(void **state)
{
    static const struct {
        const char *value, *bare, *quoted;
    } cases[] = {
        {"default/j1", "v=default/j1", "v=\"default/j1\""},
        {"", "v=\"\"", "v=\"\""},
        {"two words", "v=\"two words\"", "v=\"two words\""},
        {"a=b", "v=\"a=b\"", "v=\"a=b\""},
        {"pods \"p\" \\", "v=\"pods \\\"p\\\" \\\\\"", "v=\"pods \\\"p\\\" \\\\\""},
        {"100%d", "v=100%d", "v=\"100%d\""}, /* a value is not a format */
        {"tab\there", "v=\"tab\\there\"", "v=\"tab\\there\""},
        {"\xc3\xbc", "v=\xc3\xbc", "v=\"\xc3\xbc\""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf out = {0}, want = {0};
        struct catch c;

        catch_begin(&c);
        hk_log(HK_LOG_INFO, "x", "v=%s n=%d", cases[i].value, 1);
        hk_log(HK_LOG_INFO, "x", "v=\"%s\" n=%d", cases[i].value, 1);
        catch_end(&c, &out);
        hk_buf_addf(&want, "level=info msg=\"x\" %s n=1\nlevel=info msg=\"x\" %s n=1\n",
                    cases[i].bare, cases[i].quoted);
        assert_string_equal(out.data, want.data);
    }
}

static void test_conversions(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct catch c;

    catch_begin(&c);
    errno = ENOENT;
    hk_log(HK_LOG_INFO, "x",
           "a=%d b=%u c=%lld d=%llu e=%zu f=%x g=%.*s/%.*s h=%c i=%.1f p=%d%% err=\"%m\"", -1, 2u,
           -3ll, 4ull, (size_t)5, 0xffu, 2, "abc", 1, "de", 'z', 1.25, 7);
    assert_int_equal(errno, ENOENT);
    catch_end(&c, &out);
    assert_string_equal(out.data,
                        "level=info msg=\"x\" a=-1 b=2 c=-3 d=4 e=5 f=ff g=ab/d h=z i=1.2 p=7% "
                        "err=\"No such file or directory\"\n");
}

/* The first of equal lines is written at once; the others are counted until a different line comes,
 * or until some time has passed. */
static void test_repeated_lines_are_counted(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct hk_clock_manual clock;
    struct catch c;
    const int64_t second_ns = 1000000000;

    hk_clock_manual_init(&clock, 86400 * second_ns + 7000000);
    catch_begin(&c);
    hk_log_set_clock(&clock.clock);
    hk_log(HK_LOG_WARN, "a", "n=%d", 1);
    hk_log(HK_LOG_WARN, "a", "n=%d", 1);
    hk_log(HK_LOG_WARN, "a", "n=%d", 1);
    hk_log(HK_LOG_WARN, "a", "n=%d", 2); /* a different line */
    hk_log(HK_LOG_WARN, "a", "n=%d", 2);
    hk_log_tick(); /* too early */
    clock.now_ns += 10 * second_ns;
    hk_log(HK_LOG_WARN, "a", "n=%d", 2); /* time to show the count */
    hk_log(HK_LOG_WARN, "a", "n=%d", 2);
    clock.now_ns += 10 * second_ns;
    hk_log_tick();
    hk_log_tick(); /* nothing new */
    hk_log(HK_LOG_WARN, "a", "n=%d", 2);
    hk_log_set_clock(NULL); /* the end */
    hk_log(HK_LOG_WARN, "a", "n=%d", 2);
    hk_log(HK_LOG_WARN, "a", "n=%d", 2);
    catch_end(&c, &out);
    assert_string_equal(out.data,
                        "time=1970-01-02T00:00:00.007Z level=warn msg=\"a\" n=1\n"
                        "time=1970-01-02T00:00:00.007Z level=warn msg=\"a\" n=1 repeated=2\n"
                        "time=1970-01-02T00:00:00.007Z level=warn msg=\"a\" n=2\n"
                        "time=1970-01-02T00:00:10.007Z level=warn msg=\"a\" n=2 repeated=2\n"
                        "time=1970-01-02T00:00:20.007Z level=warn msg=\"a\" n=2 repeated=1\n"
                        "time=1970-01-02T00:00:20.007Z level=warn msg=\"a\" n=2 repeated=1\n"
                        "level=warn msg=\"a\" n=2\n"
                        "level=warn msg=\"a\" n=2\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_pairs_may_be_missing),
        cmocka_unit_test(test_control_characters_cannot_break_the_line),
        cmocka_unit_test(test_long_lines_are_whole),
        cmocka_unit_test(test_values_are_logfmt),
        cmocka_unit_test(test_conversions),
        cmocka_unit_test(test_repeated_lines_are_counted),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
