// SPDX-License-Identifier: Apache-2.0
// The server of a directory: one at a time, found by the lock it holds, and gone with its process.
#include "daemon/where.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    char dir[32];
    struct hk_err err;
    pid_t server; /* 0: none */
    int ready, stop;
};

static int setup(void **state)
{
    struct fixture *f = hk_zalloc(sizeof(*f));

    snprintf(f->dir, sizeof(f->dir), "/tmp/where-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    *state = f;
    return 0;
}

static void end_server(struct fixture *f)
{
    if (f->server > 0) {
        close(f->stop);
        close(f->ready);
        waitpid(f->server, NULL, 0);
        f->server = 0;
    }
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf file = {0};

    end_server(f);
    hk_buf_addf(&file, "%s/server", f->dir);
    unlink(file.data);
    rmdir(f->dir);
    hk_free(f);
    return 0;
}

/* Another process that claims the directory and lives until end_server. A process that asked for
 * its own claim would lose it. */
static void start_server(struct fixture *f, bool tells)
{
    int up[2], down[2], claim = -1;
    char byte = 0;

    assert_int_equal(pipe(up), 0);
    assert_int_equal(pipe(down), 0);
    f->server = fork();
    if (f->server == 0) {
        close(up[0]);
        close(down[1]);
        if (where_claim(f->dir, &claim, NULL) == 0 &&
            (!tells || where_tell(claim, "up", "https://127.0.0.1:6443", 0, NULL) == 0)) {
            (void)!write(up[1], "r", 1);
        }
        (void)!read(down[0], &byte, 1);
        _exit(0);
    }
    close(up[1]);
    close(down[0]);
    f->ready = up[0];
    f->stop = down[1];
    assert_int_equal(read(f->ready, &byte, 1), 1);
}

/* ---- claims ---- */

static void a_directory_without_a_server_has_none(void **state)
{
    struct fixture *f = *state;
    struct where_server s;
    HK_AUTO(hk_buf_fini) struct hk_buf want = {0};

    hk_buf_addf(&want, "no server runs in '%s'", f->dir);
    assert_int_equal(where_find(f->dir, &s, &f->err), -HK_ENOTFOUND);
    assert_string_equal(f->err.text, want.data);
    assert_int_equal(where_find("/no/such/directory", &s, &f->err), -HK_ENOTFOUND);
}

static void a_running_server_is_found(void **state)
{
    struct fixture *f = *state;
    struct where_server s;

    start_server(f, true);
    assert_int_equal(where_find(f->dir, &s, &f->err), 0);
    assert_int_equal(s.pid, f->server);
    assert_string_equal(s.verb, "up");
    assert_string_equal(s.url, "https://127.0.0.1:6443");
    assert_string_equal(s.since, "1970-01-01T00:00:00Z");
    where_server_fini(&s);
}

static void a_starting_server_has_no_address_yet(void **state)
{
    struct fixture *f = *state;
    struct where_server s;

    start_server(f, false);
    assert_int_equal(where_find(f->dir, &s, &f->err), 0);
    assert_string_equal(s.url, "");
    where_server_fini(&s);
}

static void a_second_server_is_refused(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf want = {0};
    int claim;

    start_server(f, true);
    hk_buf_addf(&want,
                "the directory '%s' is in use by another server, process %d (see 'hekla status' "
                "and 'hekla down')",
                f->dir, (int)f->server);
    assert_int_equal(where_claim(f->dir, &claim, &f->err), -HK_EBUSY);
    assert_string_equal(f->err.text, want.data);
}

static void a_dead_server_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    struct where_server s;
    int claim;

    start_server(f, true);
    kill(f->server, SIGKILL);
    end_server(f);
    assert_int_equal(where_find(f->dir, &s, &f->err), -HK_ENOTFOUND);
    assert_int_equal(where_claim(f->dir, &claim, &f->err), 0);
    close(claim);
}

/* ---- directories ---- */

static void the_default_directory_follows_the_environment(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf dir = {0}, other = {0};
    struct hk_err err = {0};
    const bool root = geteuid() == 0;

    setenv("HOME", "/home/u", 1);
    setenv("XDG_STATE_HOME", "relative", 1); /* the specification ignores it */
    assert_int_equal(where_default(&dir, &err), 0);
    assert_string_equal(dir.data, root ? "/var/lib/hekla" : "/home/u/.local/state/hekla");
    setenv("XDG_STATE_HOME", "/state", 1);
    assert_int_equal(where_default(&other, &err), 0);
    assert_string_equal(other.data, root ? "/var/lib/hekla" : "/state/hekla");
}

static void a_given_directory_is_taken_as_it_is(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf own = {0};
    const char *dir = "given";

    assert_int_equal(where_settle(&dir, &own, NULL), 0);
    assert_string_equal(dir, "given");
    dir = NULL;
    assert_int_equal(where_settle(&dir, &own, NULL), 0);
    assert_ptr_equal(dir, own.data);
}

static void missing_parents_are_made_for_their_owner_only(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf a = {0}, ab = {0};
    struct stat st;

    hk_buf_addf(&a, "%s/a", f->dir);
    hk_buf_addf(&ab, "%s/a/b", f->dir);
    assert_int_equal(where_make(ab.data, &f->err), 0);
    assert_int_equal(stat(a.data, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(where_make(ab.data, &f->err), 0); /* exists */
    rmdir(ab.data);
    rmdir(a.data);
    assert_int_equal(where_make("", &f->err), -HK_EINVAL);
}

static void a_file_is_no_directory(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf inside = {0}, want = {0};
    struct fixture *f = *state;
    int claim;

    assert_int_equal(where_claim(f->dir, &claim, &f->err), 0); /* makes the file "server" */
    close(claim);
    hk_buf_addf(&inside, "%s/server", f->dir);
    hk_buf_addf(&want, "'%s' is not a directory", inside.data);
    assert_int_equal(where_make(inside.data, &f->err), -HK_EIO);
    assert_string_equal(f->err.text, want.data);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_directory_without_a_server_has_none),
        TEST(a_running_server_is_found),
        TEST(a_starting_server_has_no_address_yet),
        TEST(a_second_server_is_refused),
        TEST(a_dead_server_leaves_nothing),
        TEST(the_default_directory_follows_the_environment),
        TEST(a_given_directory_is_taken_as_it_is),
        TEST(missing_parents_are_made_for_their_owner_only),
        TEST(a_file_is_no_directory),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("daemon/where", tests, NULL, NULL);
}
