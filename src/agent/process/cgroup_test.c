// SPDX-License-Identifier: Apache-2.0
// Control groups: the values written for limits in both versions, and the removal of groups. Values
// are checked in plain directories that look like groups, so also for versions that this machine
// lacks; killing uses real groups.
#include "agent/process/process_priv.h"

#include "base/file.h"

#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define ALL (PROCESS_CPU | PROCESS_MEMORY | PROCESS_PIDS)
#define FILE_MAX ((size_t)1 << 20)

static int make_dir(void **state)
{
    char *dir = hk_strdup("/tmp/hekla-cgroup-XXXXXX");

    *state = dir;
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

static int remove_dir(void **state)
{
    const int rc = nftw(*state, remove_one, 16, FTW_DEPTH | FTW_PHYS);

    hk_free(*state);
    return rc;
}

static void path_in(char path[256], const char *dir, const char *name)
{
    snprintf(path, 256, "%s/%s", dir, name);
}

static void put(const char *dir, const char *name, const char *text)
{
    struct hk_err err = {0};
    char path[256];

    path_in(path, dir, name);
    if (hk_write_file(path, hk_str(text), &err) < 0) {
        fail_msg("%s", err.text);
    }
}

static void assert_file(const char *dir, const char *name, const char *expected)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct hk_err err = {0};
    char path[256];

    path_in(path, dir, name);
    if (hk_read_file(path, FILE_MAX, &text, &err) < 0) {
        fail_msg("%s", err.text);
    }
    assert_string_equal(hk_buf_str(&text).s, expected);
}

struct value {
    const char *file, *text;
};

static void check_limits(const char *dir, bool v2, struct runtime_limits limits,
                         const struct value *values, size_t n)
{
    char base[128], pod[160];
    struct hk_err err = {0};

    snprintf(base, sizeof(base), "%s", dir);
    snprintf(pod, sizeof(pod), "%s/pod", dir);
    const struct process_groups g = {
        .at = {{.base = base, .v2 = v2, .controllers = ALL}},
        .len = 1,
        .controllers = ALL,
    };
    mkdir(pod, 0755);
    for (size_t k = 0; k < n; k++) {
        put(pod, values[k].file, "");
    }
    assert_int_equal(process_group_make(&g, "pod", &limits, &err), 0);
    for (size_t k = 0; k < n; k++) {
        assert_file(pod, values[k].file, values[k].text);
    }
}

static void test_limits_of_version_1(void **state)
{
    static const struct value values[] = {
        {"cpu.cfs_quota_us", "150000"},
        {"memory.limit_in_bytes", "67108864"},
        {"memory.memsw.limit_in_bytes", "67108864"},
        {"pids.max", "100"},
    };
    const struct runtime_limits limits = {.cpu_milli = 1500, .mem_bytes = 64 << 20, .pids = 100};

    check_limits(*state, false, limits, values, HK_LEN(values));
}

static void test_limits_of_version_2(void **state)
{
    static const struct value values[] = {
        {"cpu.max", "150000 100000"},
        {"memory.max", "67108864"},
        {"memory.swap.max", "0"},
        {"pids.max", "100"},
    };
    const struct runtime_limits limits = {.cpu_milli = 1500, .mem_bytes = 64 << 20, .pids = 100};

    check_limits(*state, true, limits, values, HK_LEN(values));
}

static void test_no_pod_gets_all_processes(void **state)
{
    char base[128];

    snprintf(base, sizeof(base), "%s", (const char *)*state);
    const struct process_groups g = {
        .at = {{.base = base, .controllers = PROCESS_PIDS}},
        .len = 1,
        .controllers = PROCESS_PIDS,
    };
    put(base, "pids.max", "max\n");
    assert_in_range(process_group_pids_max(&g), 1, 1 << 20);
    put(base, "pids.max", "400\n");
    assert_int_equal(process_group_pids_max(&g), 100);
    put(base, "pids.max", "1\n");
    assert_int_equal(process_group_pids_max(&g), 1);
}

static void test_little_cpu_is_what_the_kernel_takes(void **state)
{
    static const struct value values[] = {{"cpu.cfs_quota_us", "1000"}};

    check_limits(*state, false, (struct runtime_limits){.cpu_milli = 1}, values, HK_LEN(values));
}

static void test_no_limit_writes_nothing(void **state)
{
    static const struct value values[] = {{"cpu.cfs_quota_us", ""}, {"pids.max", ""}};

    check_limits(*state, false, (struct runtime_limits){0}, values, HK_LEN(values));
}

static void test_a_limit_that_cannot_be_set_is_an_error(void **state)
{
    struct process_groups g = {
        .at = {{.base = *state, .controllers = ALL}},
        .len = 1,
        .controllers = ALL,
    };
    struct hk_err err = {0};

    assert_int_equal(
        process_group_make(&g, "pod", &(struct runtime_limits){.cpu_milli = 500}, &err), -HK_EIO);
    assert_string_equal(err.text, "cgroup 'pod': cannot limit cpu: No such file or directory");
}

static void test_kills_for_want_of_memory_are_counted(void **state)
{
    static const struct {
        bool v2;
        const char *file, *text;
        bool oom;
    } cases[] = {
        {false, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", true},
        {false, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n", false},
        {true, "memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\n", true},
        {true, "memory.events", "low 0\nhigh 0\nmax 9\noom 0\noom_kill 0\n", false},
    };
    char pod[160];

    snprintf(pod, sizeof(pod), "%s/pod", (char *)*state);
    assert_int_equal(mkdir(pod, 0755), 0);
    for (size_t k = 0; k < HK_LEN(cases); k++) {
        const struct process_groups g = {
            .at = {{.base = *state, .v2 = cases[k].v2, .controllers = ALL}},
            .len = 1,
        };
        put(pod, cases[k].file, cases[k].text);
        assert_int_equal(process_group_oom(&g, "pod"), cases[k].oom);
    }
}

/* ---- hierarchies ---- */

/* Makes a directory look like a group with or without a process. */
static void put_group(const char *dir, const char *procs, bool root)
{
    mkdir(dir, 0755);
    put(dir, "cgroup.controllers", "cpu io memory pids\n");
    put(dir, "cgroup.subtree_control", "");
    put(dir, "cgroup.procs", procs);
    if (!root) {
        put(dir, "cgroup.type", "domain\n");
    }
}

static void check_place(const char *top, const char *own, const char *want, unsigned controllers)
{
    struct process_groups g = {0};

    process_groups_add_unified(&g, top, own);
    assert_int_equal(g.len, 1);
    assert_true(g.at[0].v2);
    assert_string_equal(g.at[0].base, want);
    assert_int_equal(g.at[0].controllers, controllers);
    assert_int_equal(g.controllers, controllers);
    process_groups_fini(&g);
}

static void test_groups_of_version_2_are_where_no_process_is(void **state)
{
    const char *top = *state;
    char slice[160], scope[200];

    snprintf(slice, sizeof(slice), "%s/user.slice", top);
    snprintf(scope, sizeof(scope), "%s/session.scope", slice);
    put_group(top, "1\n2\n", true);
    put_group(slice, "", false);
    put_group(scope, "12\n", false);
    check_place(top, scope, slice, ALL);
    assert_file(scope, "cgroup.subtree_control", "");
    check_place(top, top, top, ALL);
    put_group(slice, "7\n", false);
    check_place(top, scope, top, ALL);
    put(top, "cgroup.type", "domain\n"); /* in a container it is not the root */
    check_place(top, scope, scope, 0);
    assert_file(scope, "cgroup.subtree_control", "");
}

/* ---- real groups ---- */

static pid_t sleeper(const struct process_groups *g, const char *name)
{
    int fds[PROCESS_HIERARCHIES];
    const uint32_t n = process_group_open(g, name, fds);
    const pid_t pid = fork();

    if (pid == 0) {
        for (uint32_t k = 0; k < n; k++) {
            if (write(fds[k], "0", 1) != 1) {
                _exit(1);
            }
        }
        for (;;) {
            pause();
        }
    }
    for (uint32_t k = 0; k < n; k++) {
        close(fds[k]);
    }
    return pid;
}

/* Waits until the child has joined the group, which it does by itself. */
static void await_member(const struct process_groups *g, const char *name)
{
    for (uint32_t k = 0; k < g->len; k++) {
        char path[256];
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
        snprintf(path, sizeof(path), "%s/%s/cgroup.procs", g->at[k].base, name);
        for (int tries = 0; text.len == 0; tries++) {
            assert_true(tries < 10000);
            usleep(1000);
            if (hk_read_file(path, FILE_MAX, &text, NULL) < 0) {
                fail_msg("cannot read %s", path);
            }
        }
    }
}

static void check_kill(const struct process_groups *g)
{
    const struct runtime_limits none = {0};
    char pod[64], inner[80];
    struct hk_err err = {0};
    int status = 0;

    snprintf(pod, sizeof(pod), "hekla-unit-%d", (int)getpid());
    snprintf(inner, sizeof(inner), "%s/c.0", pod);
    assert_int_equal(process_group_make(g, pod, &none, &err), 0);
    assert_int_equal(process_group_make(g, inner, &none, &err), 0);
    const pid_t pid = sleeper(g, inner);
    await_member(g, inner);
    assert_false(process_group_remove(g, pod));
    process_group_kill(g, pod);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_true(process_group_remove(g, pod));
}

static void test_a_group_is_killed_and_removed(void **state)
{
    struct process_groups g = {0};

    process_groups_find(&g);
    g.track = true;
    if (g.len == 0) {
        skip();
    }
    check_kill(&g);
    process_groups_fini(&g);
}

static void test_a_group_of_version_1_is_killed_and_removed(void **state)
{
    struct process_groups all = {0}, g = {.track = true};

    process_groups_find(&all);
    for (uint32_t k = 0; k < all.len; k++) {
        if (!all.at[k].v2) {
            g.at[g.len++] = all.at[k];
        }
    }
    if (g.len == 0) {
        process_groups_fini(&all);
        skip();
    }
    check_kill(&g);
    process_groups_fini(&all);
}

#define WITH_DIR(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DIR(test_limits_of_version_1),
        WITH_DIR(test_limits_of_version_2),
        WITH_DIR(test_no_pod_gets_all_processes),
        WITH_DIR(test_little_cpu_is_what_the_kernel_takes),
        WITH_DIR(test_no_limit_writes_nothing),
        WITH_DIR(test_a_limit_that_cannot_be_set_is_an_error),
        WITH_DIR(test_kills_for_want_of_memory_are_counted),
        WITH_DIR(test_groups_of_version_2_are_where_no_process_is),
        cmocka_unit_test(test_a_group_is_killed_and_removed),
        cmocka_unit_test(test_a_group_of_version_1_is_killed_and_removed),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
