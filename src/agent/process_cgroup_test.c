// SPDX-License-Identifier: Apache-2.0
// Groups: what is written for limits in either version, and how groups are emptied and removed.
// Values are checked in directories that look like groups, so for versions this machine lacks too;
// killing is tried on real ones.
#include "agent/process_priv.h"

#include "base/file.h"

#include <fcntl.h>
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

/* ---- real groups ---- */

static pid_t sleeper(const struct process_groups *g, const char *name)
{
    int fds[PROCESS_HIERARCHIES];
    int born;
    uint32_t n = process_group_open(g, name, fds, &born);
    const pid_t pid = fork();

    if (pid == 0) {
        if (born >= 0) {
            fds[n++] = openat(born, "cgroup.procs", O_WRONLY);
        }
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
    if (born >= 0) {
        close(born);
    }
    return pid;
}

/* Waits until the child is in the group, for it joins on its own. */
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
                break; /* it has no group there */
            }
        }
    }
}

static void check_kill(const struct process_groups *g, struct runtime_limits pod_limits,
                       struct runtime_limits inner_limits)
{
    char pod[64], inner[80];
    struct hk_err err = {0};
    int status = 0;

    snprintf(pod, sizeof(pod), "hekla-unit-%d", (int)getpid());
    snprintf(inner, sizeof(inner), "%s/c.0", pod);
    assert_int_equal(process_group_make(g, pod, &pod_limits, &err), 0);
    assert_int_equal(process_group_make(g, inner, &inner_limits, &err), 0);
    const pid_t pid = sleeper(g, inner);
    await_member(g, inner);
    assert_false(process_group_remove(g, pod));
    process_group_kill(g, pod);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_true(process_group_remove(g, pod));
}

/* Limits of the pod alone, of the container alone, and none. */
static void check_all_kills(const struct process_groups *g)
{
    const struct runtime_limits none = {0}, some = {.mem_bytes = 256 << 20, .pids = 100};

    check_kill(g, some, none);
    check_kill(g, none, some);
    check_kill(g, none, none);
}

static void test_groups_are_made_where_they_are_needed(void **state)
{
    char v1[128], v2[128], path[160];
    struct process_groups g = {
        .at = {{.base = v1, .controllers = PROCESS_CPU},
               {.base = v2, .controllers = PROCESS_PIDS, .v2 = true}},
        .len = 2,
        .controllers = PROCESS_CPU | PROCESS_PIDS,
    };
    const struct runtime_limits none = {0};

    snprintf(v1, sizeof(v1), "%s/v1", (const char *)*state);
    snprintf(v2, sizeof(v2), "%s/v2", (const char *)*state);
    assert_int_equal(mkdir(v1, 0755) | mkdir(v2, 0755), 0);
    assert_int_equal(process_group_make(&g, "pod", &none, NULL), 0);
    assert_int_equal(process_group_make(&g, "pod/c.0", &none, NULL), 0);
    snprintf(path, sizeof(path), "%s/pod", v1);
    assert_int_equal(access(path, F_OK), -1);
    snprintf(path, sizeof(path), "%s/pod/c.0", v2);
    assert_int_equal(access(path, F_OK), 0);

    g.len = 1; /* without version 2 something else has to hold them together */
    assert_int_equal(process_group_make(&g, "pod", &none, NULL), 0);
    snprintf(path, sizeof(path), "%s/pod", v1);
    assert_int_equal(access(path, F_OK), 0);
}

static void test_a_group_is_killed_and_removed(void **state)
{
    struct process_groups g = {0};

    process_groups_find(&g);
    if (g.len == 0) {
        skip();
    }
    check_all_kills(&g);
    process_groups_fini(&g);
}

static void test_a_group_of_version_1_is_killed_and_removed(void **state)
{
    struct process_groups all = {0}, g = {0};

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
    check_all_kills(&g);
    process_groups_fini(&all);
}

#define WITH_DIR(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DIR(test_limits_of_version_1),
        WITH_DIR(test_limits_of_version_2),
        WITH_DIR(test_little_cpu_is_what_the_kernel_takes),
        WITH_DIR(test_no_limit_writes_nothing),
        WITH_DIR(test_a_limit_that_cannot_be_set_is_an_error),
        WITH_DIR(test_kills_for_want_of_memory_are_counted),
        WITH_DIR(test_groups_are_made_where_they_are_needed),
        cmocka_unit_test(test_a_group_is_killed_and_removed),
        cmocka_unit_test(test_a_group_of_version_1_is_killed_and_removed),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
