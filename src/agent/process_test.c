// SPDX-License-Identifier: Apache-2.0
// Real processes: how they start, what they see, how they end, and that nothing stays behind. What
// the machine does not permit is skipped; the runtime's caveats say what that is.
#include "agent/process.h"

#include "base/file.h"
#include "base/vec.h"

#include <errno.h>
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

#define DEADLINE_NS 30000000000
#define FILE_MAX ((size_t)64 << 20)

struct ended {
    uint64_t id;
    struct runtime_end end;
    char message[512];
};

struct rig {
    char dir[64], state[80], log[80], uid[32];
    bool plain;
    int64_t log_max_bytes;
    struct net_loop *loop;
    struct runtime *r;
    HK_VEC(struct ended) ends;
};

/* ---- the rig ---- */

/* Forks for all but the plain ones, which fork themselves. */
static struct process_nursery *nursery;

static void on_end(void *ctx, uint64_t container, const struct runtime_end *end)
{
    struct rig *rig = ctx;
    struct ended e = {.id = container, .end = *end};

    snprintf(e.message, sizeof(e.message), "%s", end->message);
    hk_vec_push(&rig->ends, e);
}

static void rig_open(struct rig *rig)
{
    const struct process_opts o = {
        .nursery = rig->plain ? NULL : nursery,
        .loop = rig->loop,
        .clock = hk_clock_system(),
        .dir = rig->state,
        .sink = {.on_end = on_end, .ctx = rig},
        .log_max_bytes = rig->log_max_bytes,
        .plain = rig->plain,
    };

    rig->r = process_runtime_new(&o);
}

static void pod_start(struct rig *rig, struct runtime_pod pod)
{
    struct hk_err err = {0};

    pod.uid = rig->uid;
    pod.dir = rig->dir;
    if (rig->r->ops->pod_start(rig->r, &pod, &err) < 0) {
        fail_msg("%s", err.text);
    }
}

static int rig_setup(void **state)
{
    struct rig *rig = hk_zalloc(sizeof(*rig));

    snprintf(rig->dir, sizeof(rig->dir), "/tmp/hekla-process-XXXXXX");
    assert_non_null(mkdtemp(rig->dir));
    assert_int_equal(chmod(rig->dir, 0755), 0);
    snprintf(rig->state, sizeof(rig->state), "%s/state", rig->dir);
    snprintf(rig->log, sizeof(rig->log), "%s/0.log", rig->dir);
    snprintf(rig->uid, sizeof(rig->uid), "test-%d", (int)getpid());
    rig->loop = net_loop_new(hk_clock_system());
    rig_open(rig);
    *state = rig;
    return 0;
}

static int plain_setup(void **state)
{
    struct rig *rig;

    rig_setup(state);
    rig = *state;
    rig->r->ops->free(rig->r);
    rig->plain = true;
    rig_open(rig);
    return 0;
}

static void turn(struct rig *rig)
{
    struct hk_err err = {0};

    assert_int_equal(net_loop_turn(rig->loop, 100, &err), 0);
}

static int64_t deadline(void)
{
    return hk_clock_system()->mono_ns(hk_clock_system()) + DEADLINE_NS;
}

static void check_deadline(int64_t at, const char *what)
{
    if (hk_clock_system()->mono_ns(hk_clock_system()) > at) {
        fail_msg("waited too long for %s", what);
    }
}

static void count_pod(void *ctx, const char *uid)
{
    ++*(int *)ctx;
}

static int pods(struct rig *rig)
{
    int n = 0;

    rig->r->ops->each_pod(rig->r, count_pod, &n);
    return n;
}

static void pod_stop(struct rig *rig)
{
    const int64_t until = deadline();

    rig->r->ops->pod_stop(rig->r, rig->uid);
    while (pods(rig) > 0) {
        turn(rig);
        check_deadline(until, "the pod to be gone");
    }
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

static int rig_teardown(void **state)
{
    struct rig *rig = *state;

    pod_stop(rig);
    rig->r->ops->free(rig->r);
    net_loop_free(rig->loop);
    nftw(rig->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    hk_vec_fini(&rig->ends);
    hk_free(rig);
    return 0;
}

static bool isolated(const struct rig *rig)
{
    return !strstr(rig->r->ops->caveats(rig->r), "no namespaces");
}

/* ---- containers ---- */

static const char *const some_env[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "GREETING=hello world",
                                       NULL};

static struct runtime_container container(const struct rig *rig, const char *const *argv)
{
    return (struct runtime_container){
        .pod_uid = rig->uid,
        .name = "main",
        .argv = argv,
        .env = some_env,
        .uid = -1,
        .gid = -1,
        .log = rig->log,
    };
}

static uint64_t start(struct rig *rig, const struct runtime_container *c)
{
    struct hk_err err = {0};
    uint64_t id = 0;

    if (rig->r->ops->start(rig->r, c, &id, &err) < 0) {
        fail_msg("%s", err.text);
    }
    return id;
}

static uint64_t start_sh(struct rig *rig, const char *script)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    const struct runtime_container c = container(rig, argv);

    return start(rig, &c);
}

static const struct ended *find_end(const struct rig *rig, uint64_t id)
{
    for (uint32_t k = 0; k < rig->ends.len; k++) {
        if (rig->ends.at[k].id == id) {
            return &rig->ends.at[k];
        }
    }
    return NULL;
}

static const struct ended *await_end(struct rig *rig, uint64_t id)
{
    const int64_t until = deadline();
    const struct ended *e;

    while (!(e = find_end(rig, id))) {
        turn(rig);
        check_deadline(until, "the end of a container");
    }
    return e;
}

/* The log's texts without their heads. Freed by the caller. */
static char *log_text(const struct rig *rig)
{
    HK_AUTO(hk_buf_fini) struct hk_buf raw = {0};
    struct hk_buf text = {0};
    struct hk_err err = {0};
    struct hk_str rest, line, word;

    if (hk_read_file(rig->log, FILE_MAX, &raw, &err) < 0) {
        fail_msg("%s", err.text);
    }
    hk_buf_adds(&text, "");
    rest = hk_buf_str(&raw);
    while (hk_str_cut(&rest, '\n', &line)) {
        for (int k = 0; k < 3; k++) {
            hk_str_cut(&line, ' ', &word);
        }
        if (line.s) {
            hk_buf_addstr(&text, line);
            hk_buf_addc(&text, '\n');
        }
    }
    return text.data ? text.data : hk_strdup("");
}

static void assert_log(const struct rig *rig, const char *expected)
{
    HK_AUTO(hk_freep) char *text = log_text(rig);

    assert_string_equal(text, expected);
}

static void await_file(struct rig *rig, const char *path)
{
    const int64_t until = deadline();

    while (access(path, F_OK) < 0) {
        turn(rig);
        check_deadline(until, path);
    }
}

static void write_file(const char *path, const char *text)
{
    struct hk_err err = {0};

    if (hk_write_file(path, hk_str(text), &err) < 0) {
        fail_msg("%s", err.text);
    }
}

/* ---- ends ---- */

static void test_ends_are_reported(void **state)
{
    static const struct {
        const char *script;
        int code, signo;
    } cases[] = {
        {"exit 0", 0, 0},
        {"exit 7", 7, 0},
        {"exit 255", 255, 0},
        {"kill -TERM $$", 143, SIGTERM},
        {"kill -KILL $$", 137, SIGKILL},
        {"kill -SEGV $$", 139, SIGSEGV},
    };
    struct rig *rig = *state;
    const int64_t before = hk_clock_system()->wall_ns(hk_clock_system());

    pod_start(rig, (struct runtime_pod){0});
    for (uint32_t k = 0; k < HK_LEN(cases); k++) {
        const char *const argv[] = {"sh", "-c", cases[k].script, NULL};
        struct runtime_container c = container(rig, argv);
        c.attempt = k;
        const struct ended *e = await_end(rig, start(rig, &c));
        assert_int_equal(e->end.code, cases[k].code);
        assert_int_equal(e->end.signo, cases[k].signo);
        assert_false(e->end.never_ran);
        assert_false(e->end.oom);
        assert_string_equal(e->message, "");
        assert_true(e->end.start_ns >= before);
        assert_true(e->end.end_ns >= e->end.start_ns);
    }
    assert_int_equal(rig->ends.len, HK_LEN(cases));
}

static void test_what_cannot_run_says_why(void **state)
{
    static const struct {
        const char *command, *message;
    } cases[] = {
        {"no-such-program", "exec: \"no-such-program\": executable file not found in $PATH"},
        {"/no/such/program", "exec: \"/no/such/program\": no such file or directory"},
        {"/etc/passwd", "exec: \"/etc/passwd\": permission denied"},
        {"/etc", "exec: \"/etc\": permission denied"},
    };
    struct rig *rig = *state;

    pod_start(rig, (struct runtime_pod){0});
    for (uint32_t k = 0; k < HK_LEN(cases); k++) {
        const char *const argv[] = {cases[k].command, NULL};
        struct runtime_container c = container(rig, argv);
        c.attempt = k;
        const struct ended *e = await_end(rig, start(rig, &c));
        assert_true(e->end.never_ran);
        assert_int_equal(e->end.code, 128);
        assert_string_equal(e->message, cases[k].message);
    }
}

static void test_a_missing_working_directory_says_so(void **state)
{
    static const char *const argv[] = {"true", NULL};
    struct rig *rig = *state;
    struct runtime_container c = container(rig, argv);

    pod_start(rig, (struct runtime_pod){0});
    c.cwd = "/no/such/place";
    const struct ended *e = await_end(rig, start(rig, &c));
    assert_true(e->end.never_ran);
    assert_string_equal(e->message,
                        "cannot change to working directory \"/no/such/place\": no such "
                        "file or directory");
}

static void test_a_container_is_started_once(void **state)
{
    static const char *const argv[] = {"true", NULL};
    struct rig *rig = *state;
    const struct runtime_container c = container(rig, argv);
    struct hk_err err = {0};
    uint64_t id;

    pod_start(rig, (struct runtime_pod){0});
    await_end(rig, start(rig, &c));
    assert_int_equal(rig->r->ops->start(rig->r, &c, &id, &err), -HK_EEXIST);
}

/* ---- surroundings ---- */

static void test_environment_and_directory_are_as_given(void **state)
{
    static const char *const argv[] = {"sh", "-c", "env | grep -v ^_= | grep -v ^PWD= | sort; pwd",
                                       NULL};
    struct rig *rig = *state;
    struct runtime_container c = container(rig, argv);

    pod_start(rig, (struct runtime_pod){0});
    c.cwd = "/usr";
    assert_int_equal(await_end(rig, start(rig, &c))->end.code, 0);
    assert_log(rig, "GREETING=hello world\nPATH=/usr/local/bin:/usr/bin:/bin\n/usr\n");
}

static void test_user_and_groups_are_as_given(void **state)
{
    static const char *const argv[] = {"sh", "-c", "id -u; id -g; id -G", NULL};
    static const int64_t groups[] = {3000, 4000};
    struct rig *rig = *state;
    struct runtime_container c = container(rig, argv);

    if (geteuid() != 0) {
        skip();
    }
    pod_start(rig, (struct runtime_pod){0});
    c.uid = 1000;
    c.gid = 2000;
    c.groups = groups;
    c.ngroup = 2;
    await_end(rig, start(rig, &c));
    assert_log(rig, "1000\n2000\n2000 3000 4000\n");
}

static void test_no_descriptor_leaks_in(void **state)
{
    struct rig *rig = *state;
    const int leak = open("/dev/null", O_RDONLY); /* on purpose without close-on-exec */

    pod_start(rig, (struct runtime_pod){0});
    await_end(rig, start_sh(rig, "n=0; while [ $n -lt 100 ]; do test -e /proc/$$/fd/$n && echo $n;"
                                 "n=$((n + 1)); done"));
    close(leak);
    assert_log(rig, "0\n1\n2\n");
}

static void test_host_name_is_the_pods(void **state)
{
    struct rig *rig = *state;

    if (!isolated(rig)) {
        skip();
    }
    pod_start(rig, (struct runtime_pod){.hostname = "web-0"});
    await_end(rig, start_sh(rig, "uname -n"));
    assert_log(rig, "web-0\n");
}

static void test_processes_of_the_machine_are_not_seen(void **state)
{
    struct rig *rig = *state;

    if (!isolated(rig)) {
        skip();
    }
    pod_start(rig, (struct runtime_pod){0});
    await_end(rig, start_sh(rig, "echo $$; test -d /proc/1 && cat /proc/1/comm"));
    assert_log(rig, "2\nhekla-shim\n");
}

static void test_mounts_are_seen_at_their_paths(void **state)
{
    struct rig *rig = *state;
    char data[96], file[128], hosts[96];
    const char *const argv[] = {
        "sh", "-c",
        "cat /hekla-test-new/deep/f /etc/hekla-test/f /srv/f /etc/hosts;"
        "(echo x >/srv/f) 2>/dev/null || echo read-only;"
        "echo written >/hekla-test-new/deep/g; test -e /etc/passwd && test -x /bin/sh && echo rest;"
        "ls /hekla-test-new/deep/inner",
        NULL};
    struct runtime_container c = container(rig, argv);
    const struct runtime_mount mounts[] = {
        {.from = file, .at = "/hekla-test-new/deep/inner/file"},
        {.from = data, .at = "/hekla-test-new/deep"},
        {.from = data, .at = "/etc/hekla-test"},
        {.from = data, .at = "/srv", .read_only = true},
    };

    if (!isolated(rig)) {
        skip();
    }
    snprintf(data, sizeof(data), "%s/data", rig->dir);
    snprintf(file, sizeof(file), "%s/f", data);
    snprintf(hosts, sizeof(hosts), "%s/hosts", rig->dir);
    assert_int_equal(mkdir(data, 0755), 0);
    write_file(file, "content\n");
    write_file(hosts, "127.64.0.1 me\n");
    pod_start(rig, (struct runtime_pod){.hosts = hosts});
    c.mounts = mounts;
    c.nmount = HK_LEN(mounts);
    const struct ended *e = await_end(rig, start(rig, &c));
    assert_string_equal(e->message, "");
    assert_log(rig, "content\ncontent\ncontent\n127.64.0.1 me\nread-only\nrest\nfile\n");
    assert_int_equal(access("/hekla-test-new", F_OK), -1);
    assert_int_equal(access("/etc/hekla-test", F_OK), -1);
    snprintf(file, sizeof(file), "%s/g", data);
    assert_int_equal(access(file, F_OK), 0);
}

static void test_a_mount_without_source_says_so(void **state)
{
    static const char *const argv[] = {"true", NULL};
    static const struct runtime_mount mount = {.from = "/no/such/source", .at = "/srv"};
    struct rig *rig = *state;
    struct runtime_container c = container(rig, argv);

    if (!isolated(rig)) {
        skip();
    }
    pod_start(rig, (struct runtime_pod){0});
    c.mounts = &mount;
    c.nmount = 1;
    const struct ended *e = await_end(rig, start(rig, &c));
    assert_true(e->end.never_ran);
    assert_string_equal(e->message, "cannot mount \"/no/such/source\": no such file or directory");
}

static void test_a_root_directory_is_all_there_is(void **state)
{
    static const char *const argv[] = {"/usr/bin/sh", "-c", "cd /; echo *; cat /conf/f", NULL};
    static const char *const links[] = {"bin", "lib", "lib64"};
    struct rig *rig = *state;
    struct runtime_container c = container(rig, argv);
    char root[96], link[112], target[32], file[96];
    const struct runtime_mount mounts[] = {
        {.from = "/usr", .at = "/usr", .read_only = true},
        {.from = file, .at = "/conf/f"},
    };

    if (!isolated(rig) || access("/usr/bin/sh", X_OK) < 0 || access("/usr/lib64", X_OK) < 0) {
        skip();
    }
    snprintf(root, sizeof(root), "%s/image", rig->dir);
    snprintf(file, sizeof(file), "%s/f", rig->dir);
    assert_int_equal(mkdir(root, 0755), 0);
    for (size_t k = 0; k < HK_LEN(links); k++) {
        snprintf(link, sizeof(link), "%s/%s", root, links[k]);
        snprintf(target, sizeof(target), "usr/%s", links[k]);
        assert_int_equal(symlink(target, link), 0);
    }
    write_file(file, "configured\n");
    pod_start(rig, (struct runtime_pod){0});
    c.root = root;
    c.mounts = mounts;
    c.nmount = HK_LEN(mounts);
    const struct ended *e = await_end(rig, start(rig, &c));
    assert_string_equal(e->message, "");
    assert_log(rig, "bin conf lib lib64 usr\nconfigured\n");
    snprintf(link, sizeof(link), "%s/conf", root);
    assert_int_equal(access(link, F_OK), -1);
}

/* ---- output ---- */

static void test_logs_have_the_form_of_cri(void **state)
{
    struct rig *rig = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf raw = {0};
    struct hk_err err = {0};
    struct hk_str rest, line;
    static const char *const tails[] = {" stdout F out", " stdout F ", " stderr F err",
                                        " stdout P part"};

    pod_start(rig, (struct runtime_pod){0});
    await_end(rig,
              start_sh(rig, "echo out; echo; sleep 0.1; echo err >&2; sleep 0.1; printf part"));
    assert_int_equal(hk_read_file(rig->log, FILE_MAX, &raw, &err), 0);
    rest = hk_buf_str(&raw);
    for (size_t k = 0; k < HK_LEN(tails); k++) {
        assert_true(hk_str_cut(&rest, '\n', &line));
        assert_int_equal(line.n, strlen("2026-01-02T10:00:00.000000000Z") + strlen(tails[k]));
        assert_int_equal(line.s[4], '-');
        assert_int_equal(line.s[10], 'T');
        assert_int_equal(line.s[29], 'Z');
        assert_memory_equal(line.s + 30, tails[k], strlen(tails[k]));
    }
}

static void test_all_of_a_lot_of_output_arrives(void **state)
{
    struct rig *rig = *state;
    HK_AUTO(hk_freep) char *text = NULL;
    HK_AUTO(hk_buf_fini) struct hk_buf expected = {0};

    pod_start(rig, (struct runtime_pod){0});
    assert_int_equal(await_end(rig, start_sh(rig, "seq 100000"))->end.code, 0);
    for (int k = 1; k <= 100000; k++) {
        hk_buf_addf(&expected, "%d\n", k);
    }
    text = log_text(rig);
    assert_true(strcmp(text, expected.data) == 0);
}

static void test_a_long_line_is_written_in_parts(void **state)
{
    struct rig *rig = *state;
    HK_AUTO(hk_freep) char *text = NULL;
    size_t letters = 0, lines = 0;

    pod_start(rig, (struct runtime_pod){0});
    await_end(rig, start_sh(rig, "head -c 40000 /dev/zero | tr '\\0' x; echo"));
    text = log_text(rig);
    for (const char *p = text; *p; p++) {
        letters += *p == 'x';
        lines += *p == '\n';
    }
    assert_int_equal(letters, 40000);
    assert_int_equal(lines, 3);
}

static void test_a_full_log_begins_anew(void **state)
{
    struct rig *rig = *state;
    struct stat st;
    char old[96];

    rig->r->ops->free(rig->r);
    rig->log_max_bytes = 100000;
    rig_open(rig);
    pod_start(rig, (struct runtime_pod){0});
    await_end(rig, start_sh(rig, "seq 20000"));
    snprintf(old, sizeof(old), "%s.1", rig->log);
    assert_int_equal(stat(old, &st), 0);
    assert_in_range(st.st_size, 100000, 100000 + (64 << 10));
    assert_int_equal(stat(rig->log, &st), 0);
    assert_in_range(st.st_size, 0, 100000);
}

static void test_a_terminal_is_one(void **state)
{
    static const char *const argv[] = {"sh", "-c", "test -t 0 && test -t 1 && echo terminal", NULL};
    struct rig *rig = *state;
    struct runtime_container c = container(rig, argv);

    pod_start(rig, (struct runtime_pod){0});
    c.tty = true;
    const struct ended *e = await_end(rig, start(rig, &c));
    assert_string_equal(e->message, "");
    assert_log(rig, "terminal\r\n");
}

static void test_an_open_stdin_is_waited_for(void **state)
{
    static const char *const argv[] = {"cat", NULL};
    struct rig *rig = *state;
    struct runtime_container c = container(rig, argv);

    pod_start(rig, (struct runtime_pod){0});
    assert_int_equal(await_end(rig, start(rig, &c))->end.code, 0);
    c.attempt = 1;
    c.stdin_open = true;
    const uint64_t id = start(rig, &c);
    for (int k = 0; k < 3; k++) {
        turn(rig);
    }
    assert_null(find_end(rig, id));
    rig->r->ops->kill(rig->r, id, SIGTERM);
    assert_int_equal(await_end(rig, id)->end.code, 143);
}

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

/* Who holds a pipe's write end is alive: the read end tells when the last is gone. */
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

static void test_a_stopped_pod_leaves_no_process(void **state)
{
    struct rig *rig = *state;
    char fifo[96], ready[96], script[512];

    if (strstr(rig->r->ops->caveats(rig->r), "can outlive their pod")) {
        skip();
    }
    snprintf(fifo, sizeof(fifo), "%s/fifo", rig->dir);
    snprintf(ready, sizeof(ready), "%s/ready", rig->dir);
    /* The innermost has left its parents, its group and its session. */
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

    if (!isolated(rig)) {
        skip();
    }
    snprintf(fifo, sizeof(fifo), "%s/fifo", rig->dir);
    snprintf(script, sizeof(script), "exec 3>%s; (setsid sleep 1000 &); exit 5", fifo);
    const int fd = open_fifo(fifo);
    pod_start(rig, (struct runtime_pod){0});
    assert_int_equal(await_end(rig, start_sh(rig, script))->end.code, 5);
    assert_all_gone(rig, fifo, fd);
    close(fd);
}

/* ---- limits ---- */

static void test_a_fork_bomb_stays_within_its_limit(void **state)
{
    static const char *const argv[] = {
        "sh", "-c", "bomb() { bomb & bomb & }; bomb 2>/dev/null; sleep 1000", NULL};
    struct rig *rig = *state;
    struct runtime_container c = container(rig, argv);

    if (strstr(rig->r->ops->caveats(rig->r), "pid limits")) {
        skip();
    }
    pod_start(rig, (struct runtime_pod){0});
    c.limits.pids = 24;
    start(rig, &c);
    for (int k = 0; k < 3; k++) {
        turn(rig);
    }
    pod_stop(rig);
    assert_int_equal(rig->ends.len, 1);
}

static void test_a_pod_limits_its_containers_together(void **state)
{
    static const char *const argv[] = {"sh", "-c",
                                       "exec dd if=/dev/zero of=/dev/null bs=200M count=1", NULL};
    struct rig *rig = *state;
    const struct runtime_container c = container(rig, argv);

    if (strstr(rig->r->ops->caveats(rig->r), "memory limits")) {
        skip();
    }
    pod_start(rig, (struct runtime_pod){.limits = {.mem_bytes = 32 << 20}});
    const struct ended *e = await_end(rig, start(rig, &c));
    assert_int_equal(e->end.code, 137);
    assert_true(e->end.oom);
}

static void test_a_memory_hog_is_killed_and_named(void **state)
{
    static const char *const argv[] = {"sh", "-c",
                                       "exec dd if=/dev/zero of=/dev/null bs=200M count=1", NULL};
    struct rig *rig = *state;
    struct runtime_container c = container(rig, argv);

    if (strstr(rig->r->ops->caveats(rig->r), "memory limits")) {
        skip();
    }
    pod_start(rig, (struct runtime_pod){0});
    c.limits.mem_bytes = 32 << 20;
    const struct ended *e = await_end(rig, start(rig, &c));
    assert_int_equal(e->end.code, 137);
    assert_true(e->end.oom);
}

/* ---- beside a container ---- */

static void test_a_command_beside_a_container_is_inside(void **state)
{
    static const char *const inside[] = {
        "sh", "-c", "uname -n; echo $GREETING; cat; test -e /proc/2 || exit 1; exit 9", NULL};
    static const char *const missing[] = {"no-such-program", NULL};
    struct rig *rig = *state;
    struct hk_err err = {0};
    int in[2], out[2];
    char text[128] = "";
    uint64_t id;

    if (!isolated(rig)) {
        skip();
    }
    pod_start(rig, (struct runtime_pod){.hostname = "web-0"});
    const uint64_t of = start_sh(rig, "sleep 1000");
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(write(in[1], "typed\n", 6), 6);
    close(in[1]);
    assert_int_equal(rig->r->ops->exec(rig->r, of, inside, in[0], out[1], out[1], &id, &err), 0);
    close(in[0]);
    close(out[1]);
    const struct ended *e = await_end(rig, id);
    assert_string_equal(e->message, "");
    assert_int_equal(e->end.code, 9);
    assert_true(read(out[0], text, sizeof(text) - 1) > 0);
    assert_string_equal(text, "web-0\nhello world\ntyped\n");
    close(out[0]);

    assert_int_equal(rig->r->ops->exec(rig->r, of, missing, -1, -1, -1, &id, &err), 0);
    e = await_end(rig, id);
    assert_true(e->end.never_ran);
    assert_string_equal(e->message,
                        "exec: \"no-such-program\": executable file not found in $PATH");
    assert_null(find_end(rig, of));
}

/* ---- the agent starts again ---- */

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

/* Another agent, that has started the container when this returns. */
static pid_t fork_agent(struct rig *rig, const char *script, const char *ready)
{
    const pid_t pid = fork();

    if (pid == 0) {
        rig->loop = net_loop_new(hk_clock_system());
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

static void test_what_never_was_is_not_found(void **state)
{
    struct rig *rig = *state;
    struct hk_err err = {0};
    uint64_t id;

    pod_start(rig, (struct runtime_pod){0});
    assert_int_equal(rig->r->ops->adopt(rig->r, rig->uid, "main", 0, &id, &err), -HK_ENOTFOUND);
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

#define WITH_RIG(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
#define PLAIN(f) cmocka_unit_test_setup_teardown(f, plain_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RIG(test_ends_are_reported),
        PLAIN(test_ends_are_reported),
        WITH_RIG(test_what_cannot_run_says_why),
        WITH_RIG(test_a_missing_working_directory_says_so),
        WITH_RIG(test_a_container_is_started_once),
        WITH_RIG(test_environment_and_directory_are_as_given),
        WITH_RIG(test_user_and_groups_are_as_given),
        WITH_RIG(test_no_descriptor_leaks_in),
        WITH_RIG(test_host_name_is_the_pods),
        WITH_RIG(test_processes_of_the_machine_are_not_seen),
        WITH_RIG(test_mounts_are_seen_at_their_paths),
        WITH_RIG(test_a_mount_without_source_says_so),
        WITH_RIG(test_a_root_directory_is_all_there_is),
        WITH_RIG(test_logs_have_the_form_of_cri),
        WITH_RIG(test_all_of_a_lot_of_output_arrives),
        WITH_RIG(test_a_long_line_is_written_in_parts),
        WITH_RIG(test_a_full_log_begins_anew),
        WITH_RIG(test_a_terminal_is_one),
        WITH_RIG(test_an_open_stdin_is_waited_for),
        WITH_RIG(test_signals_reach_the_command),
        WITH_RIG(test_who_ignores_term_is_killed),
        WITH_RIG(test_a_stopped_pod_leaves_no_process),
        WITH_RIG(test_what_the_command_leaves_behind_ends_with_it),
        WITH_RIG(test_a_fork_bomb_stays_within_its_limit),
        WITH_RIG(test_a_memory_hog_is_killed_and_named),
        WITH_RIG(test_a_pod_limits_its_containers_together),
        WITH_RIG(test_a_command_beside_a_container_is_inside),
        WITH_RIG(test_a_running_container_is_found_again),
        PLAIN(test_a_running_container_is_found_again),
        WITH_RIG(test_an_end_in_between_is_not_lost),
        WITH_RIG(test_a_killed_agent_is_not_missed),
        PLAIN(test_a_killed_agent_is_not_missed),
        WITH_RIG(test_what_never_was_is_not_found),
        WITH_RIG(test_a_pod_nobody_adopted_is_stopped),
        PLAIN(test_a_pod_nobody_adopted_is_stopped),
        WITH_RIG(test_a_killed_shim_takes_its_container_along),
        PLAIN(test_without_namespaces_mounts_are_refused),
        PLAIN(test_without_cgroups_memory_is_limited_by_process),
        PLAIN(test_without_namespaces_the_group_is_killed),
    };

    int failed;

    cmocka_set_message_output(CM_OUTPUT_TAP);
    nursery = process_nursery_new();
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    process_nursery_free(nursery);
    return failed;
}
