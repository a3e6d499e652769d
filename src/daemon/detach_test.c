// SPDX-License-Identifier: Apache-2.0
// A server in the background: the parent waits for the start, and says how it ended.
#include "daemon/detach.h"

#include "base/file.h"
#include "cli/capture_test.h"
#include "cli/verb.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

struct fixture {
    char dir[32], log[64];
    struct capture printed;
    int status; /* what the parent would exit with */
};

static int setup(void **state)
{
    struct fixture *f = hk_zalloc(sizeof(*f));

    snprintf(f->dir, sizeof(f->dir), "/tmp/detach-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->log, sizeof(f->log), "%s/up.log", f->dir);
    f->status = -1;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf old = {0};

    capture_end(&f->printed);
    hk_buf_addf(&old, "%s.1", f->log);
    unlink(old.data);
    unlink(f->log);
    rmdir(f->dir);
    hk_free(f);
    return 0;
}

/* The life of the child. */
enum life {
    FAILS,        /* before it is ready */
    KILLED,       /* likewise */
    READY_FAILS,  /* between the two calls */
    READY_KILLED, /* likewise */
    SETTLES,
};

static void die(enum life how)
{
    if (how == KILLED || how == READY_KILLED) {
        raise(SIGKILL);
    }
    _exit(7);
}

/* The child never returns to the test. */
static void live_as_child(const char *log, enum life how)
{
    int parent = -1;

    if (how == FAILS || how == KILLED) {
        die(how);
    }
    if (detach_ready(log, &parent, NULL) < 0) {
        _exit(99);
    }
    fprintf(stderr, "working\nlast words\n");
    fflush(stderr);
    if (how == READY_FAILS || how == READY_KILLED) {
        die(how);
    }
    detach_settled(&parent);
    _exit(parent == -1 ? 0 : 98);
}

static void start(struct fixture *f, enum life how)
{
    capture_begin(&f->printed);
    if (detach(f->log, &f->status)) {
        live_as_child(f->log, how);
    }
    capture_end(&f->printed);
}

static const char *text_of(const char *path)
{
    static char text[256];
    HK_AUTO(hk_buf_fini) struct hk_buf all = {0};

    assert_int_equal(hk_read_file(path, sizeof(text) - 1, &all, NULL), 0);
    snprintf(text, sizeof(text), "%s", all.data);
    return text;
}

static void a_started_server_is_left_alone(void **state)
{
    struct fixture *f = *state;

    start(f, SETTLES);
    assert_int_equal(f->status, EXIT_OK);
    assert_string_equal(f->printed.complaints, "");
    assert_string_equal(text_of(f->log), "working\nlast words\n"); /* its output goes there */
}

static void a_server_that_fails_has_its_own_status(void **state)
{
    struct fixture *f = *state;

    start(f, FAILS);
    assert_int_equal(f->status, 7); /* it has said why on the terminal */
    assert_string_equal(f->printed.complaints, "");
}

static void a_killed_server_is_reported(void **state)
{
    struct fixture *f = *state;

    start(f, KILLED);
    assert_int_equal(f->status, EXIT_BAD);
    assert_string_equal(f->printed.complaints,
                        "hekla: up: the server was killed before it was ready\n");
}

static void an_end_after_readiness_shows_the_log(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf want = {0};

    hk_buf_addf(&want,
                "hekla: up: the server became ready and ended with status 7 while it started its "
                "work; the last lines of '%s':\nworking\nlast words\n\n",
                f->log);
    start(f, READY_FAILS);
    assert_int_equal(f->status, EXIT_BAD);
    assert_string_equal(f->printed.complaints, want.data);
}

static void so_does_a_signal(void **state)
{
    struct fixture *f = *state;

    start(f, READY_KILLED);
    assert_int_equal(f->status, EXIT_BAD);
    assert_non_null(strstr(f->printed.complaints, "was ended by signal 9 (Killed)"));
}

static void a_large_log_is_moved_aside(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf old = {0};
    const int fd = open(f->log, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    struct stat st;

    assert_int_equal(ftruncate(fd, 11 << 20), 0);
    close(fd);
    start(f, SETTLES);
    assert_string_equal(text_of(f->log), "working\nlast words\n");
    hk_buf_addf(&old, "%s.1", f->log);
    assert_int_equal(stat(old.data, &st), 0);
    assert_int_equal(st.st_size, 11 << 20);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_started_server_is_left_alone),
        TEST(a_server_that_fails_has_its_own_status),
        TEST(a_killed_server_is_reported),
        TEST(an_end_after_readiness_shows_the_log),
        TEST(so_does_a_signal),
        TEST(a_large_log_is_moved_aside),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("daemon/detach", tests, NULL, NULL);
}
