// SPDX-License-Identifier: Apache-2.0
// Files are read completely or not at all, within a limit, and replaced atomically.

#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/hekla-file-XXXXXX";

/* A path in the scratch directory; the last two stay valid. */
static const char *in_dir(const char *name)
{
    static char paths[2][256];
    static int turn;
    char *path = paths[turn ^= 1];

    snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
    return path;
}

static int setup(void **state)
{
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    DIR *d = opendir(dir);

    for (struct dirent *e; (e = readdir(d));) {
        unlinkat(dirfd(d), e->d_name, 0);
    }
    closedir(d);
    return rmdir(dir);
}

static int entries(void)
{
    DIR *d = opendir(dir);
    int n = 0;

    while (readdir(d)) {
        n++;
    }
    closedir(d);
    return n - 2; /* . and .. */
}

static void write_text(const char *path, const char *text)
{
    struct hk_err err = {0};

    if (hk_write_file(path, hk_str(text), &err) < 0) {
        fail_msg("%s", err.text);
    }
}

static void test_round_trip(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf big = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf got = {0};

    for (int i = 0; i < 300000; i++) {
        hk_buf_addc(&big, (char)i);
    }
    assert_int_equal(hk_write_file(in_dir("big"), hk_buf_str(&big), NULL), 0);
    assert_int_equal(hk_read_file(in_dir("big"), big.len, &got, NULL), 0);
    assert_int_equal(got.len, big.len);
    assert_memory_equal(got.data, big.data, big.len + 1);
}

static void test_read_appends(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};

    write_text(in_dir("a"), "text");
    hk_buf_adds(&b, "before ");
    assert_int_equal(hk_read_file(in_dir("a"), 4, &b, NULL), 0);
    assert_string_equal(b.data, "before text");
}

static void test_empty_file(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};

    write_text(in_dir("empty"), "");
    assert_int_equal(hk_read_file(in_dir("empty"), 0, &b, NULL), 0);
    assert_string_equal(b.data, "");
}

static void test_too_large_is_refused_and_leaves_the_buffer(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};
    struct hk_err err = {0};
    char want[300];

    write_text(in_dir("five"), "12345");
    hk_buf_adds(&b, "before");
    assert_int_equal(hk_read_file(in_dir("five"), 5, &b, &err), 0);
    hk_buf_clear(&b);
    hk_buf_adds(&b, "before");
    assert_int_equal(hk_read_file(in_dir("five"), 4, &b, &err), -HK_ELIMIT);
    assert_string_equal(b.data, "before");
    assert_int_equal(b.len, 6);
    snprintf(want, sizeof(want), "'%s' is larger than 4 bytes", in_dir("five"));
    assert_string_equal(err.text, want);
}

static void test_read_failures_name_the_path(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};
    struct hk_err err = {0};
    char want[300];

    assert_int_equal(hk_read_file(in_dir("none"), 10, &b, &err), -HK_ENOTFOUND);
    snprintf(want, sizeof(want), "cannot open '%s': No such file or directory", in_dir("none"));
    assert_string_equal(err.text, want);
    assert_int_equal(hk_read_file(dir, 10, &b, &err), -HK_EIO);
    snprintf(want, sizeof(want), "cannot read '%s': Is a directory", dir);
    assert_string_equal(err.text, want);
    assert_int_equal(b.len, 0);
}

static void test_dash_is_stdin(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};
    const int saved = dup(STDIN_FILENO);
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(write(ends[1], "piped", 5), 5);
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    const int rc = hk_read_file("-", 100, &b, NULL);
    const int still_open = fcntl(STDIN_FILENO, F_GETFD);
    dup2(saved, STDIN_FILENO);
    close(saved);
    assert_int_equal(rc, 0);
    assert_string_equal(b.data, "piped");
    assert_true(still_open >= 0);
}

/* A reader of the old file keeps the old text to the end. */
static void test_replacing_leaves_open_readers_alone(void **state)
{
    char text[16] = {0};

    write_text(in_dir("live"), "old");
    const int fd = open(in_dir("live"), O_RDONLY | O_CLOEXEC);
    write_text(in_dir("live"), "new text");
    assert_int_equal(read(fd, text, sizeof(text) - 1), 3);
    assert_string_equal(text, "old");
    close(fd);

    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};
    assert_int_equal(hk_read_file(in_dir("live"), 100, &b, NULL), 0);
    assert_string_equal(b.data, "new text");
}

static void test_modes(void **state)
{
    struct stat st;
    const mode_t mask = umask(027);

    write_text(in_dir("mode"), "x");
    umask(mask);
    assert_int_equal(stat(in_dir("mode"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640); /* the umask applies to a new file */
    assert_int_equal(chmod(in_dir("mode"), 0604), 0);
    write_text(in_dir("mode"), "y");
    assert_int_equal(stat(in_dir("mode"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0604); /* an existing file keeps its mode */
}

static void test_failed_write_changes_nothing(void **state)
{
    struct hk_err err = {0};
    const int before = entries();

    assert_int_equal(hk_write_file(in_dir("no/such"), HK_STR("x"), &err), -HK_ENOTFOUND);
    assert_int_equal(hk_write_file(dir, HK_STR("x"), &err), -HK_EIO);
    assert_int_equal(entries(), before);
}

static void test_no_temporary_file_stays(void **state)
{
    const int before = entries();

    write_text(in_dir("fresh"), "1");
    write_text(in_dir("fresh"), "2");
    assert_int_equal(entries(), before + 1);
}

static void test_left_over_temporary_file_is_no_obstacle(void **state)
{
    char name[64];

    snprintf(name, sizeof(name), "again.%d.0.tmp", (int)getpid());
    write_text(in_dir(name), "left over");
    write_text(in_dir("again"), "new");

    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};
    assert_int_equal(hk_read_file(in_dir("again"), 100, &b, NULL), 0);
    assert_string_equal(b.data, "new");
}

static void test_devices_are_written_in_place(void **state)
{
    struct stat st;

    write_text("/dev/null", "x");
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
}

/* Links and dots can lead anywhere in the directory, but not out of it. */
static void test_a_path_stays_beneath(void **state)
{
    char top_path[] = "/tmp/hekla-beneath-XXXXXX", path[64];
    static const struct {
        const char *path;
        int why;
    } cases[] = {
        {"in/f", 0},           {"./in/../in/f", 0},   {"near/f", 0},          {"..", EXDEV},
        {"in/../../x", EXDEV}, {"far/passwd", EXDEV}, {"/etc/passwd", EXDEV}, {"none", ENOENT},
        {"up/x", EXDEV},
    };

    assert_non_null(mkdtemp(top_path));
    const int top = open(top_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(top >= 0);
    assert_int_equal(mkdirat(top, "in", 0755), 0);
    close(openat(top, "in/f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    assert_int_equal(symlinkat("in", top, "near"), 0);
    assert_int_equal(symlinkat("/etc", top, "far"), 0);
    assert_int_equal(symlinkat("../..", top, "up"), 0);
    for (size_t i = 0; i < HK_LEN(cases); i++) {
        const int fd = hk_open_beneath(top, cases[i].path, O_PATH);

        assert_int_equal(fd < 0 ? errno : 0, cases[i].why);
        if (fd >= 0) {
            close(fd);
        }
    }
    close(top);
    snprintf(path, sizeof(path), "rm -r %s", top_path);
    assert_int_equal(system(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_read_appends),
        cmocka_unit_test(test_empty_file),
        cmocka_unit_test(test_too_large_is_refused_and_leaves_the_buffer),
        cmocka_unit_test(test_read_failures_name_the_path),
        cmocka_unit_test(test_dash_is_stdin),
        cmocka_unit_test(test_replacing_leaves_open_readers_alone),
        cmocka_unit_test(test_modes),
        cmocka_unit_test(test_failed_write_changes_nothing),
        cmocka_unit_test(test_no_temporary_file_stays),
        cmocka_unit_test(test_left_over_temporary_file_is_no_obstacle),
        cmocka_unit_test(test_devices_are_written_in_place),
        cmocka_unit_test(test_a_path_stays_beneath),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, setup, teardown);
}
