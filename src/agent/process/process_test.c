// SPDX-License-Identifier: Apache-2.0
// Real processes: their start, environment, output, limits and end. Skips what the machine does not
// permit, according to the runtime's caveats.
#include "agent/process/rig_test.h"

#include <fcntl.h>
#include <signal.h>

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
        const char *command, *text; /* of a script with that name, or NULL */
        int code;
        const char *message;
    } cases[] = {
        {"no-such-program", NULL, 127, "executable file not found in $PATH"},
        {"", NULL, 127, "executable file not found in $PATH"},
        {"/no/such/program", NULL, 127, "no such file or directory"},
        {"/etc/passwd", NULL, 126, "permission denied"},
        {"/etc/passwd/x", NULL, 126, "not a directory"},
        {"/etc", NULL, 126, "is a directory"},
        {"%s/bare", "echo hello\n", 126,
         "exec format error (a script has to begin with a line like #!/bin/sh)"},
        {"%s/lost", "#! /no/such/sh -e\n", 127, "its interpreter \"/no/such/sh\" does not exist"},
    };
    struct rig *rig = *state;

    pod_start(rig, (struct runtime_pod){0});
    for (uint32_t k = 0; k < HK_LEN(cases); k++) {
        char command[96], message[256];
        const char *const argv[] = {command, NULL};
        if (cases[k].text) {
            snprintf(command, sizeof(command), "%s%s", rig->dir, cases[k].command + 2);
            write_file(command, cases[k].text);
            assert_int_equal(chmod(command, 0755), 0);
        } else {
            snprintf(command, sizeof(command), "%s", cases[k].command);
        }
        snprintf(message, sizeof(message), "exec: \"%s\": %s", command, cases[k].message);
        struct runtime_container c = container(rig, argv);
        c.attempt = k;
        const struct ended *e = await_end(rig, start(rig, &c));
        assert_true(e->end.never_ran);
        assert_int_equal(e->end.code, cases[k].code);
        assert_string_equal(e->message, message);
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

/* ---- environment ---- */

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
    const int leak = open("/dev/null", O_RDONLY); /* without close-on-exec on purpose */

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

/* The lines counted in the .lost file and the lines in the logs are together all lines of seq. */
static void assert_lost(struct rig *rig, long all)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0}, kept = {0}, gone = {0};
    char path[96];
    long lines, bytes, n = 0;

    snprintf(path, sizeof(path), "%s.lost", rig->log);
    assert_int_equal(hk_read_file(path, 64, &text, NULL), 0);
    assert_int_equal(sscanf(text.data, "%ld %ld", &lines, &bytes), 2);
    snprintf(path, sizeof(path), "%s.1", rig->log);
    assert_int_equal(hk_read_file(path, FILE_MAX, &kept, NULL), 0);
    assert_int_equal(hk_read_file(rig->log, FILE_MAX, &kept, NULL), 0);
    for (const char *at = kept.data; (at = strchr(at, '\n')); at++) {
        n++;
    }
    assert_int_equal(lines + n, all);
    for (long k = 1; k <= lines; k++) {
        hk_buf_addf(&gone, "%ld\n", k);
    }
    assert_int_equal(bytes, gone.len);
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
    assert_lost(rig, 20000);
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

/* ---- exec commands ---- */

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
        WITH_RIG(test_a_fork_bomb_stays_within_its_limit),
        WITH_RIG(test_a_memory_hog_is_killed_and_named),
        WITH_RIG(test_a_pod_limits_its_containers_together),
        WITH_RIG(test_a_command_beside_a_container_is_inside),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
