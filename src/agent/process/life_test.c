// SPDX-License-Identifier: Apache-2.0
// Real processes and their supervision: signals reach them, nothing is left behind, and the death
// of an agent, a spawner or a shim does not change that.
#include "agent/process/rig_test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

/* ---- signals ---- */

static void test_signals_reach_the_command(void **state)
{
    struct rig *rig = *state;
    char ready[96], script[256];

    snprintf(ready, sizeof(ready), "%s/ready", rig->dir);
    snprintf(script, sizeof(script),
             "exec 2>&-; trap 'echo told; exit 3' TERM; echo >%s; while :; do sleep 0.05; done",
             ready);
    pod_start(rig, (struct runtime_pod){0});
    const uint64_t id = start_sh(rig, script);
    await_file(rig, ready);
    rig->r->ops->kill(rig->r, id, SIGTERM);
    assert_int_equal(await_end(rig, id)->end.code, 3);
    assert_log(rig, "told\n");
}

static void test_who_ignores_term_is_killed(void **state)
{
    struct rig *rig = *state;
    char ready[96], script[256];

    snprintf(ready, sizeof(ready), "%s/ready", rig->dir);
    snprintf(script, sizeof(script), "trap '' TERM; echo >%s; sleep 1000", ready);
    pod_start(rig, (struct runtime_pod){0});
    const uint64_t id = start_sh(rig, script);
    await_file(rig, ready);
    rig->r->ops->kill(rig->r, id, SIGTERM);
    for (int k = 0; k < 3; k++) {
        turn(rig);
    }
    assert_null(find_end(rig, id));
    rig->r->ops->kill(rig->r, id, SIGKILL);
    const struct ended *e = await_end(rig, id);
    assert_int_equal(e->end.code, 137);
    assert_int_equal(e->end.signo, SIGKILL);
}

/* Every living process holds the write end of a pipe: end of file means that all are gone. */
static void assert_all_gone(struct rig *rig, const char *fifo, int fd)
{
    const int64_t until = deadline();
    char buf[64];
    ssize_t n;

    while ((n = read(fd, buf, sizeof(buf))) != 0) {
        if (n < 0) {
            assert_int_equal(errno, EAGAIN);
            turn(rig);
        }
        check_deadline(until, "processes to be gone");
    }
    unlink(fifo);
}

static int open_fifo(const char *fifo)
{
    assert_int_equal(mkfifo(fifo, 0666), 0);
    const int fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void test_who_talks_all_the_time_is_killed_too(void **state)
{
    struct rig *rig = *state;

    pod_start(rig, (struct runtime_pod){0});
    const uint64_t id = start_sh(rig, "exec yes");
    await_size(rig, rig->log, 1 << 20);
    rig->r->ops->kill(rig->r, id, SIGTERM);
    assert_int_equal(await_end(rig, id)->end.code, 128 + SIGTERM);
}

static void test_a_stopped_pod_leaves_no_process(void **state)
{
    struct rig *rig = *state;
    char fifo[96], ready[96], script[512];

    snprintf(fifo, sizeof(fifo), "%s/fifo", rig->dir);
    snprintf(ready, sizeof(ready), "%s/ready", rig->dir);
    /* The innermost process has left its parents, its group and its session. */
    snprintf(
        script, sizeof(script),
        "exec 3>%s; (setsid sh -c \"trap '' TERM HUP; (sleep 1000 & ) ; echo >%s; sleep 1000\" "
        "&) ; sleep 1000",
        fifo, ready);
    const int fd = open_fifo(fifo);
    pod_start(rig, (struct runtime_pod){0});
    const uint64_t id = start_sh(rig, script);
    await_file(rig, ready);
    pod_stop(rig);
    const struct ended *e = find_end(rig, id);
    assert_non_null(e);
    assert_int_equal(e->end.code, 137);
    assert_all_gone(rig, fifo, fd);
    close(fd);
}

static void test_what_the_command_leaves_behind_ends_with_it(void **state)
{
    struct rig *rig = *state;
    char fifo[96], script[256];

    snprintf(fifo, sizeof(fifo), "%s/fifo", rig->dir);
    snprintf(script, sizeof(script), "exec 3>%s; (setsid sleep 1000 &); exit 5", fifo);
    const int fd = open_fifo(fifo);
    pod_start(rig, (struct runtime_pod){0});
    assert_int_equal(await_end(rig, start_sh(rig, script))->end.code, 5);
    assert_all_gone(rig, fifo, fd);
    close(fd);
}

/* ---- restarts of the agent ---- */

static void reopen(struct rig *rig)
{
    rig->r->ops->free(rig->r);
    rig_open(rig);
}

static uint64_t adopt(struct rig *rig, const char *name)
{
    struct hk_err err = {0};
    uint64_t id = 0;

    if (rig->r->ops->adopt(rig->r, rig->uid, name, 0, &id, &err) < 0) {
        fail_msg("%s", err.text);
    }
    return id;
}

static void test_a_running_container_is_found_again(void **state)
{
    struct rig *rig = *state;
    char ready[96], script[256];

    snprintf(ready, sizeof(ready), "%s/ready", rig->dir);
    snprintf(script, sizeof(script),
             "exec 2>&-; trap 'echo told; exit 4' TERM; echo >%s; while :; do sleep 0.05; done",
             ready);
    pod_start(rig, (struct runtime_pod){0});
    start_sh(rig, script);
    await_file(rig, ready);
    reopen(rig);
    assert_int_equal(pods(rig), 1);
    const uint64_t id = adopt(rig, "main");
    assert_int_equal(adopt(rig, "main"), id);
    rig->r->ops->kill(rig->r, id, SIGTERM);
    assert_int_equal(await_end(rig, id)->end.code, 4);
    assert_int_equal(rig->ends.len, 1);
    assert_log(rig, "told\n");
}

static void test_an_end_in_between_is_not_lost(void **state)
{
    struct rig *rig = *state;
    char record[128];

    pod_start(rig, (struct runtime_pod){0});
    start_sh(rig, "exit 6");
    rig->r->ops->free(rig->r);
    snprintf(record, sizeof(record), "%s/%s/main.0/end", rig->state, rig->uid);
    await_file(rig, record);
    rig_open(rig);
    const struct ended *e = await_end(rig, adopt(rig, "main"));
    assert_int_equal(e->end.code, 6);
    assert_true(e->end.start_ns > 0);
}

/* Forks another agent; returns once that agent has started the container. */
static pid_t fork_agent(struct rig *rig, const char *script, const char *ready)
{
    const pid_t pid = fork();

    if (pid == 0) {
        rig->loop = net_loop_new(hk_clock_system());
        assert_int_equal(spawner_new(&rig->spawner, NULL), 0);
        rig_open(rig);
        pod_start(rig, (struct runtime_pod){.hostname = "web-0"});
        start_sh(rig, script);
        for (;;) {
            turn(rig);
        }
    }
    await_file(rig, ready);
    return pid;
}

static void test_a_killed_agent_is_not_missed(void **state)
{
    static const char *const argv[] = {"sh", "-c", "test \"$GREETING\" = 'hello world'", NULL};
    struct rig *rig = *state;
    char ready[96], script[256];
    struct hk_err err = {0};
    uint64_t beside;

    snprintf(ready, sizeof(ready), "%s/ready", rig->dir);
    snprintf(script, sizeof(script),
             "exec 2>&-; trap 'echo told; exit 4' TERM; echo >%s; while :; do sleep 0.05; done",
             ready);
    const pid_t agent = fork_agent(rig, script, ready);
    assert_int_equal(kill(agent, SIGKILL), 0);
    assert_int_equal(waitpid(agent, NULL, 0), agent);
    const uint64_t id = adopt(rig, "main");
    assert_int_equal(rig->r->ops->exec(rig->r, id, argv, -1, -1, -1, &beside, &err), 0);
    assert_int_equal(await_end(rig, beside)->end.code, 0);
    rig->r->ops->kill(rig->r, id, SIGTERM);
    assert_int_equal(await_end(rig, id)->end.code, 4);
    assert_log(rig, "told\n");
}

/* The pid of the only child. */
static pid_t spawner_pid(void)
{
    char path[64];
    int pid = 0;

    snprintf(path, sizeof(path), "/proc/self/task/%d/children", gettid());
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%d", &pid), 1);
    fclose(f);
    return pid;
}

static void test_a_killed_spawner_is_replaced(void **state)
{
    static const char *const argv[] = {"true", NULL};
    struct rig *rig = *state;
    uint64_t id, beside;
    siginfo_t info;

    pod_start(rig, (struct runtime_pod){0});
    id = start_sh(rig, "trap 'exit 4' TERM; while :; do sleep 0.05; done");
    const pid_t spawner = spawner_pid();
    assert_int_equal(kill(spawner, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)spawner, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(rig->r->ops->exec(rig->r, id, argv, -1, -1, -1, &beside, NULL), 0);
    assert_int_equal(await_end(rig, beside)->end.code, 0);
    rig->r->ops->kill(rig->r, id, SIGTERM);
    assert_int_equal(await_end(rig, id)->end.code, 4);
}

static void test_what_never_ran_is_to_be_started(void **state)
{
    struct rig *rig = *state;
    struct hk_err err = {0};
    uint64_t id;

    pod_start(rig, (struct runtime_pod){0});
    assert_int_equal(rig->r->ops->adopt(rig->r, rig->uid, "main", 0, &id, &err), -HK_EBUSY);
    assert_int_equal(await_end(rig, start_sh(rig, "exit 3"))->end.code, 3);
}

/* The files in the container's directory are corrupt. */
static void test_broken_records_are_told(void **state)
{
    struct rig *rig = *state;
    struct hk_err err = {0};
    char dir[128], shim[160], end[160];
    uint64_t id;

    snprintf(dir, sizeof(dir), "%s/%s/main.0", rig->state, rig->uid);
    snprintf(shim, sizeof(shim), "%s/shim", dir);
    snprintf(end, sizeof(end), "%s/end", dir);
    pod_start(rig, (struct runtime_pod){0});
    assert_int_equal(mkdir(dir, 0755), 0);
    write_file(shim, "12");
    assert_int_equal(rig->r->ops->adopt(rig->r, rig->uid, "main", 0, &id, &err), -HK_EINVAL);
    assert_non_null(strstr(err.text, "does not name a process"));
    /* Process 1 did not start at that time: the pid was reused. */
    write_file(shim, "1 999999999999 1\n");
    assert_int_equal(rig->r->ops->adopt(rig->r, rig->uid, "main", 0, &id, &err), -HK_ENOTFOUND);
    write_file(end, "0 0");
    assert_int_equal(rig->r->ops->adopt(rig->r, rig->uid, "main", 0, &id, &err), 0);
    const struct ended *e = await_end(rig, id);
    assert_int_equal(e->end.code, 137);
    assert_non_null(strstr(e->message, "is not the record of an end"));
}

static void test_a_pod_nobody_adopted_is_stopped(void **state)
{
    struct rig *rig = *state;
    char fifo[96], ready[96], script[256];

    snprintf(fifo, sizeof(fifo), "%s/fifo", rig->dir);
    snprintf(ready, sizeof(ready), "%s/ready", rig->dir);
    snprintf(script, sizeof(script), "exec 3>%s; echo >%s; sleep 1000", fifo, ready);
    const int fd = open_fifo(fifo);
    pod_start(rig, (struct runtime_pod){0});
    start_sh(rig, script);
    await_file(rig, ready);
    reopen(rig);
    pod_stop(rig);
    assert_all_gone(rig, fifo, fd);
    assert_int_equal(rig->ends.len, 0);
    close(fd);
}

static void test_a_killed_shim_takes_its_container_along(void **state)
{
    struct rig *rig = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct hk_err err = {0};
    struct hk_str rest, word;
    char fifo[96], ready[96], shim[128], script[256];
    int64_t pid;

    if (!isolated(rig)) {
        skip();
    }
    snprintf(fifo, sizeof(fifo), "%s/fifo", rig->dir);
    snprintf(ready, sizeof(ready), "%s/ready", rig->dir);
    snprintf(shim, sizeof(shim), "%s/%s/main.0/shim", rig->state, rig->uid);
    snprintf(script, sizeof(script), "exec 3>%s; echo >%s; sleep 1000", fifo, ready);
    const int fd = open_fifo(fifo);
    pod_start(rig, (struct runtime_pod){0});
    const uint64_t id = start_sh(rig, script);
    await_file(rig, ready);
    assert_int_equal(hk_read_file(shim, FILE_MAX, &text, &err), 0);
    rest = hk_buf_str(&text);
    assert_true(hk_str_cut(&rest, ' ', &word));
    assert_true(hk_str_int(word, &pid));
    assert_int_equal(kill((pid_t)pid, SIGKILL), 0);
    const struct ended *e = await_end(rig, id);
    assert_int_equal(e->end.code, 137);
    assert_string_equal(e->message, "the process that looked after the container was killed");
    assert_all_gone(rig, fifo, fd);
    close(fd);
}

/* ---- without namespaces and cgroups ---- */

static void test_without_namespaces_mounts_are_refused(void **state)
{
    static const char *const argv[] = {"true", NULL};
    static const struct runtime_mount mount = {.from = "/usr", .at = "/srv"};
    struct rig *rig = *state;
    struct runtime_container c = container(rig, argv);
    struct hk_err err = {0};
    uint64_t id;

    pod_start(rig, (struct runtime_pod){0});
    c.mounts = &mount;
    c.nmount = 1;
    assert_int_equal(rig->r->ops->start(rig->r, &c, &id, &err), -HK_EUNSUP);
    assert_string_equal(err.text, "container 'main': a mount needs mount namespaces, which are not "
                                  "permitted here");
    assert_non_null(strstr(rig->r->ops->caveats(rig->r), "no namespaces"));
    assert_non_null(strstr(rig->r->ops->caveats(rig->r), "cpu limits are not enforced"));
}

static void test_without_cgroups_memory_is_limited_by_process(void **state)
{
    static const char *const argv[] = {"sh", "-c", "ulimit -d", NULL};
    struct rig *rig = *state;
    struct runtime_container c = container(rig, argv);

    pod_start(rig, (struct runtime_pod){0});
    c.limits.mem_bytes = 64 << 20;
    await_end(rig, start(rig, &c));
    assert_log(rig, "65536\n");
}

static void test_without_namespaces_the_group_is_killed(void **state)
{
    struct rig *rig = *state;
    char fifo[96], ready[96], script[256];

    snprintf(fifo, sizeof(fifo), "%s/fifo", rig->dir);
    snprintf(ready, sizeof(ready), "%s/ready", rig->dir);
    snprintf(script, sizeof(script), "exec 3>%s; (sleep 1000 &); echo >%s; sleep 1000", fifo,
             ready);
    const int fd = open_fifo(fifo);
    pod_start(rig, (struct runtime_pod){0});
    const uint64_t id = start_sh(rig, script);
    await_file(rig, ready);
    pod_stop(rig);
    assert_int_equal(find_end(rig, id)->end.code, 137);
    assert_all_gone(rig, fifo, fd);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RIG(test_signals_reach_the_command),
        WITH_RIG(test_who_ignores_term_is_killed),
        WITH_RIG(test_who_talks_all_the_time_is_killed_too),
        PLAIN(test_who_talks_all_the_time_is_killed_too),
        WITH_RIG(test_a_stopped_pod_leaves_no_process),
        PLAIN(test_a_stopped_pod_leaves_no_process),
        WITH_RIG(test_what_the_command_leaves_behind_ends_with_it),
        PLAIN(test_what_the_command_leaves_behind_ends_with_it),
        WITH_RIG(test_a_running_container_is_found_again),
        PLAIN(test_a_running_container_is_found_again),
        WITH_RIG(test_an_end_in_between_is_not_lost),
        WITH_RIG(test_a_killed_agent_is_not_missed),
        PLAIN(test_a_killed_agent_is_not_missed),
        WITH_RIG(test_a_killed_spawner_is_replaced),
        WITH_RIG(test_what_never_ran_is_to_be_started),
        WITH_RIG(test_broken_records_are_told),
        WITH_RIG(test_a_pod_nobody_adopted_is_stopped),
        PLAIN(test_a_pod_nobody_adopted_is_stopped),
        WITH_RIG(test_a_killed_shim_takes_its_container_along),
        PLAIN(test_without_namespaces_mounts_are_refused),
        PLAIN(test_without_cgroups_memory_is_limited_by_process),
        PLAIN(test_without_namespaces_the_group_is_killed),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
