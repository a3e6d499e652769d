// SPDX-License-Identifier: Apache-2.0
// hekla down: asks the server of a directory to stop, and waits until it has.
#include "agent/process/process.h"
#include "cli/term.h"
#include "cli/verb.h"
#include "daemon/where.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <unistd.h>

/* Idle servers stop within this time; no progress is shown before. */
enum { LOOK_MS = 500 };

struct down_opts {
    struct where_opts where;
    bool pods;
};

static const struct option_row options[] = {
    ROW_INCLUDE(struct down_opts, where, where_options),
    ROW_FLAG(0, "pods", struct down_opts, pods,
             "End the pods of this machine first, with their grace periods, and remove what they "
             "have here: processes, mounts, control groups, volumes and logs. They are deleted "
             "through the API, so the next server creates those of unfinished jobs again."),
    ROW_END,
};

/* ---- waiting ---- */

/* The number of pods with files on this machine. */
static uint32_t down_count_pods(const char *dir)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    uint32_t n = 0;
    DIR *d;

    hk_buf_addf(&path, "%s/node/run", dir);
    d = opendir(path.data);
    for (const struct dirent *e; d && (e = readdir(d));) {
        n += e->d_name[0] != '.';
    }
    if (d) {
        closedir(d);
    }
    return n;
}

/* One line that is overwritten, on terminals only. */
static void down_show(const struct term *t, bool again, const struct down_opts *o, pid_t pid)
{
    HK_AUTO(hk_buf_fini) struct hk_buf line = {0};
    const uint32_t n = o->pods ? down_count_pods(o->where.dir) : 0;

    if (!t->is) {
        return;
    }
    term_rewind(t, again, &line);
    if (n > 0) {
        hk_buf_addf(&line, "waiting for %u pod%s to end\n", n, n == 1 ? "" : "s");
    } else {
        hk_buf_addf(&line, "waiting for the server, process %d, to end\n", (int)pid);
    }
    fputs(line.data, stderr);
}

static int await(const struct where_server *s, const struct down_opts *o, struct hk_err *err)
{
    const struct term t = term_of(STDERR_FILENO);
    struct pollfd fd = {.fd = s->pidfd, .events = POLLIN};
    HK_AUTO(hk_buf_fini) struct hk_buf wipe = {0};
    bool again = false;
    int n;

    for (; (n = poll(&fd, 1, LOOK_MS)) <= 0; again = true) {
        if (n < 0 && errno != EINTR) {
            return hk_fail(err, HK_EIO, "cannot wait for process %d: %m", (int)s->pid);
        }
        down_show(&t, again, o, s->pid);
    }
    term_rewind(&t, again, &wipe);
    fputs(hk_buf_str(&wipe).s, stderr);
    return 0;
}

/* ---- pods without a server ---- */

static void down_on_end(void *ctx, uint64_t container, const struct runtime_end *end)
{
}

static void down_stop_pod(void *ctx, const char *uid)
{
    struct runtime *r = ctx;

    r->ops->pod_stop(r, uid);
}

/* Kills what an earlier server left running. For the next server this looks like a reboot. */
static int clear_left(const char *dir, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf runs = {0};
    struct net_loop *loop;
    struct runtime *r;
    int claim, rc = where_claim(dir, &claim, err);

    if (rc < 0) {
        return rc;
    }
    hk_buf_addf(&runs, "%s/node/run", dir);
    loop = net_loop_new(hk_clock_system());
    r = process_runtime_new(&(struct process_opts){
        .loop = loop, .clock = hk_clock_system(), .dir = runs.data, .sink = {down_on_end, NULL}});
    r->ops->each_pod(r, down_stop_pod, r);
    while (rc == 0 && down_count_pods(dir) > 0) {
        rc = net_loop_turn(loop, LOOK_MS, err);
    }
    r->ops->free(r);
    net_loop_free(loop);
    close(claim);
    return rc;
}

static int down_without(const struct down_opts *o, const struct hk_err *none)
{
    HK_AUTO(hk_buf_fini) struct hk_buf line = {0};
    const uint32_t n = down_count_pods(o->where.dir);
    struct hk_err err = {0};

    if (!o->pods || n == 0) {
        verb_complain("down: %s", none->text);
        return EXIT_NOT_RUNNING;
    }
    if (clear_left(o->where.dir, &err) < 0) {
        return verb_complain("down: %s", err.text);
    }
    hk_buf_addf(&line, "%s; %u pod%s of an earlier server %s ended\n", none->text, n,
                n == 1 ? "" : "s", n == 1 ? "has" : "have");
    return verb_print(&line);
}

/* ---- the verb ---- */

static int tell_ended(const struct where_server *s, const struct down_opts *o)
{
    HK_AUTO(hk_buf_fini) struct hk_buf line = {0};
    const uint32_t n = down_count_pods(o->where.dir);

    hk_buf_addf(&line, "hekla %s has ended, process %d", s->verb[0] ? s->verb : "server",
                (int)s->pid);
    if (n > 0) {
        hk_buf_addf(&line, "; %u pod%s to run", n, n == 1 ? " continues" : "s continue");
    }
    hk_buf_addc(&line, '\n');
    return verb_print(&line);
}

static int down(const struct down_opts *o)
{
    struct where_server s = {.pidfd = -1};
    struct hk_err err = {0};
    int rc = where_find(o->where.dir, &s, &err);

    if (rc == -HK_ENOTFOUND) {
        return down_without(o, &err);
    }
    if (rc == 0 && pidfd_send_signal(s.pidfd, o->pods ? SIGUSR1 : SIGTERM, NULL, 0) < 0 &&
        errno != ESRCH) {
        rc = hk_fail(&err, HK_EDENIED, "cannot end the server in '%s', process %d: %m",
                     o->where.dir, (int)s.pid);
    }
    if (rc == 0) {
        rc = await(&s, o, &err);
    }
    const int status = rc == 0 ? tell_ended(&s, o) : verb_complain("down: %s", err.text);
    where_server_fini(&s);
    return status;
}

static int down_run(const struct verb *v, int argc, char **argv)
{
    HK_AUTO(hk_buf_fini) struct hk_buf dir = {0};
    struct down_opts o = {0};
    struct hk_err err = {0};
    const int rc = verb_parse(v, argc, argv, &o);

    if (rc != 0) {
        return rc < 0 ? EXIT_BAD : EXIT_OK;
    }
    if (where_settle(&o.where.dir, &dir, &err) < 0) {
        return verb_complain("down: %s", err.text);
    }
    return down(&o);
}

const struct verb verb_down = {
    .name = "down",
    .args = "",
    .about = "end the server of a directory",
    .options = options,
    .text = "Ends the 'hekla up', 'hekla apiserver' or 'hekla agent' that uses the directory, and "
            "returns when it has ended: requests in progress are answered and everything is on "
            "disk.\n"
            "Pods continue to run without the server. The next 'hekla up' finds them again, with "
            "their output and the exit codes of those that ended in the meantime. With --pods "
            "they are ended first; those that an earlier server left running are killed.",
    .rest =
        "EXIT STATUS\n"
        "       0  the server has ended; with --pods and without a server: the pods have ended\n"
        "       1  the server could not be ended, or bad usage; one line on standard error says "
        "why\n"
        "       3  no server runs in the directory\n"
        "\n"
        "EXAMPLES\n"
        "       Restart the program while jobs continue:\n"
        "           hekla down && hekla up --detach\n"
        "\n"
        "       End everything that runs:\n"
        "           hekla down --pods\n",
    .run = down_run,
};
