// SPDX-License-Identifier: Apache-2.0
// The shim and the command below it. The spawner forks the shim, as process 1 of a new pid
// namespace where permitted. The shim sets up the container's view, forks the command, copies its
// output to the log, forwards signals, and when the command ends, kills the rest and writes the
// record of the end. An exec command also has a shim, outside the container, that enters the
// container's namespaces; so has a container that shares those of another one.
//
// From here to exec only system calls and stack are safe: a replacement spawner is the fork of a
// process with threads, and libc calls that use the thread list (setuid and similar) would wait for
// them.
//
//     agent --SIGRTMIN(signo)--> shim --kill(-group)--> command
//     agent --SIGRTMIN+1+word--> shim --its streams---> command
//     agent <--pidfd, record---- shim <--pipes, wait--- command

#include "agent/process/process_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAMESPACES (CLONE_NEWNS | CLONE_NEWUTS)
#define GROUPS_MAX 256
#define COMMAND_STACK (64 << 10)
#define KEPT_FDS (PROCESS_HIERARCHIES + 8)
#define READ_MAX (32 << 10)

struct shim {
    const struct process_launch *launch;
    pid_t command;
    int signals;        /* signalfd */
    int streams[2];     /* read ends of stdout and stderr; -1: none */
    int child_stdio[3]; /* streams of the command */
    struct process_input in;
    int64_t start_ns;
    int failed; /* exit code for a command that never ran; 0: it ran */
    char message[PROCESS_MESSAGE];
};

/* ---- the command ---- */

/* The exit code for a failure before the command was looked up, by errno. */
static int code_of(int e)
{
    return process_may_pass(e) ? PROCESS_AGAIN : PROCESS_CANNOT_RUN;
}

static const char *only_one(const struct process_launch *l)
{
    return l->isolation == PROCESS_FULL ? ""
                                        : " (this node is not run by root: there is its user only)";
}

ON_BORROWED_STACK static void become_user(const struct process_launch *l, int report)
{
    gid_t groups[GROUPS_MAX];

    if (l->uid < 0 && l->gid < 0 && l->ngroup == 0) {
        return;
    }
    if (l->ngroup > HK_LEN(groups)) {
        process_give_up(report, PROCESS_CANNOT_RUN,
                        "%u supplementary groups, at most %zu are taken", l->ngroup,
                        HK_LEN(groups));
    }
    for (uint32_t k = 0; k < l->ngroup; k++) {
        groups[k] = (gid_t)l->groups[k];
    }
    /* Without permission to drop groups, keep those of the agent. */
    if (syscall(SYS_setgroups, (size_t)l->ngroup, groups) < 0 &&
        (errno != EPERM || l->ngroup > 0)) {
        process_give_up(report, code_of(errno), "cannot set supplementary groups: " PROCESS_WHY,
                        PROCESS_WHY_OF(errno));
    }
    if (l->gid >= 0 && syscall(SYS_setresgid, (gid_t)l->gid, (gid_t)l->gid, (gid_t)l->gid) < 0) {
        process_give_up(report, code_of(errno), "cannot become group %lld: " PROCESS_WHY "%s",
                        (long long)l->gid, PROCESS_WHY_OF(errno), only_one(l));
    }
    if (l->uid >= 0 && syscall(SYS_setresuid, (uid_t)l->uid, (uid_t)l->uid, (uid_t)l->uid) < 0) {
        process_give_up(report, code_of(errno), "cannot become user %lld: " PROCESS_WHY "%s",
                        (long long)l->uid, PROCESS_WHY_OF(errno), only_one(l));
    }
}

static void process_start_set_rlimit(__rlimit_resource_t what, int64_t most)
{
    const struct rlimit limit = {(rlim_t)most, (rlim_t)most};

    if (most > 0) {
        setrlimit(what, &limit); /* lowering is always permitted */
    }
}

struct command {
    const struct shim *shim;
    int report; /* where to report a failed exec */
};

/* The shim is suspended until exec or exit: do not change its memory. */
ON_BORROWED_STACK __attribute__((noreturn)) static int command_run(void *ctx)
{
    const struct command *c = ctx;
    const struct shim *s = c->shim;
    const struct process_launch *l = s->launch;
    const int report = c->report;
    const char *cwd = l->cwd ? l->cwd : "/";
    char message[PROCESS_MESSAGE];
    sigset_t none;

    setsid();
    for (int fd = 0; fd < 3; fd++) {
        if (dup2(s->child_stdio[fd], fd) < 0) {
            process_give_up(report, code_of(errno), "cannot connect descriptor %d: " PROCESS_WHY,
                            fd, PROCESS_WHY_OF(errno));
        }
    }
    if (l->tty) {
        ioctl(0, TIOCSCTTY, 0);
    }
    for (uint32_t k = 0; k < l->ngroup_fd; k++) {
        if (write(l->group_fds[k], "0", 1) < 0) {
            process_give_up(report, code_of(errno), "cannot join the cgroup: " PROCESS_WHY,
                            PROCESS_WHY_OF(errno));
        }
    }
    process_start_set_rlimit(RLIMIT_DATA, l->data_bytes);
    process_start_set_rlimit(RLIMIT_NPROC, l->max_pids);
    umask(022);
    if (process_rights_drop(&l->rights, message) < 0) {
        process_give_up(report, PROCESS_CANNOT_RUN, "%s", message);
    }
    become_user(l, report);
    if (chdir(cwd) < 0) {
        process_give_up(report, code_of(errno),
                        "cannot change to working directory \"%s\": " PROCESS_WHY, cwd,
                        PROCESS_WHY_OF(errno));
    }
    if (l->beside || l->isolation == PROCESS_PLAIN) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* without a pid namespace to do this */
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    process_exec(l, report);
}

/* ---- records ---- */

/* Writes over the file in which plan.c reserved space, if there is one. */
static bool write_record(const struct shim *s, const char *name, const char *text, size_t n)
{
    char temp[NAME_MAX];
    int fd;

    snprintf(temp, sizeof(temp), "%s" PROCESS_TEMP, name);
    fd = openat(s->launch->state_fd, temp, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return false;
    }
    const bool whole = write(fd, text, n) == (ssize_t)n && ftruncate(fd, (off_t)n) == 0;
    close(fd);
    return whole && renameat(s->launch->state_fd, temp, s->launch->state_fd, name) == 0;
}

/* If this fails, the agent sees a shim that exited without a record. */
static void record_end(const struct shim *s, int status)
{
    char text[PROCESS_RECORD];
    const bool again = s->failed == PROCESS_AGAIN;
    const int signo = s->failed == 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    const int code = again       ? PROCESS_CANNOT_RUN
                     : s->failed ? s->failed
                     : signo     ? 128 + signo
                                 : WEXITSTATUS(status);
    const int64_t now = s->launch->clock->wall_ns(s->launch->clock);
    const int n =
        snprintf(text, sizeof(text), "%d %d %d %lld %lld\n%s", code, signo,
                 (s->failed != 0) + again, (long long)s->start_ns, (long long)now, s->message);

    write_record(s, s->launch->end_name, text, (size_t)n);
}

/* Records the shim's pid as seen from outside: /proc is still the machine's. */
static bool record_self(const struct shim *s)
{
    char stat[1024], text[PROCESS_RECORD];
    int64_t pid, ticks;
    const int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd < 0 ? -1 : read(fd, stat, sizeof(stat));

    if (fd >= 0) {
        close(fd);
    }
    if (got <= 0 || !process_state_stat((struct hk_str){stat, (size_t)got}, &pid, &ticks)) {
        return false;
    }
    const int n = snprintf(text, sizeof(text), "%lld %lld %lld\n", (long long)pid, (long long)ticks,
                           (long long)s->start_ns);
    return write_record(s, PROCESS_SHIM_FILE, text, (size_t)n);
}

__attribute__((noreturn, format(printf, 2, 3))) static void shim_fail(struct shim *s,
                                                                      const char *fmt, ...)
{
    va_list ap;

    s->failed = code_of(errno);
    va_start(ap, fmt);
    vsnprintf(s->message, sizeof(s->message), fmt, ap);
    va_end(ap);
    record_end(s, 0);
    _exit(0);
}

/* ---- the shim ---- */

/* Closes inherited descriptors: a socket of the spawner would stay open as long as the container
 * runs. */
static void close_others(const struct process_launch *l)
{
    int kept[KEPT_FDS];
    uint32_t n = 0;
    unsigned from = 0;

    const int single[] = {l->state_fd, l->log_fd, l->join, l->join_state,
                          l->ipc,      l->in,     l->out,  l->err_out};
    for (size_t k = 0; k < HK_LEN(single); k++) {
        if (single[k] >= 0) {
            kept[n++] = single[k];
        }
    }
    for (uint32_t k = 0; k < l->ngroup_fd; k++) {
        kept[n++] = l->group_fds[k];
    }
    for (uint32_t i = 1; i < n; i++) { /* not qsort: it may use the heap */
        for (uint32_t j = i; j > 0 && kept[j - 1] > kept[j]; j--) {
            const int swap = kept[j];
            kept[j] = kept[j - 1];
            kept[j - 1] = swap;
        }
    }
    for (uint32_t k = 0; k < n; k++) {
        if ((unsigned)kept[k] > from) {
            close_range(from, (unsigned)kept[k] - 1, 0);
        }
        from = (unsigned)kept[k] + 1;
    }
    close_range(from, ~0U, 0);
}

static void reset_signals(void)
{
    for (int signo = 1; signo < NSIG; signo++) {
        signal(signo, SIG_DFL); /* fails only for signals that cannot be changed */
    }
}

/* Occupies descriptors 0 to 2 so that no pipe gets one of them; returns another /dev/null. */
static int open_null(struct shim *s)
{
    for (;;) {
        const int fd = open("/dev/null", O_RDWR);
        if (fd < 0) {
            shim_fail(s, "cannot open /dev/null: " PROCESS_WHY, PROCESS_WHY_OF(errno));
        }
        if (fd > 2) {
            fcntl(fd, F_SETFD, FD_CLOEXEC);
            return fd;
        }
    }
}

static void open_terminal(struct shim *s)
{
    const int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    int locked = 0, peer = -1;

    if (master >= 0 && ioctl(master, TIOCSPTLCK, &locked) == 0) {
        peer = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    }
    if (peer < 0) {
        shim_fail(s, "cannot open a terminal: " PROCESS_WHY, PROCESS_WHY_OF(errno));
    }
    s->streams[0] = master;
    if (s->launch->stdin_open && process_input_open(&s->in, s->launch->state_fd, true) < 0) {
        shim_fail(s, "cannot open standard input: " PROCESS_WHY, PROCESS_WHY_OF(errno));
    }
    for (int k = 0; k < 3; k++) {
        s->child_stdio[k] = peer;
    }
}

static void make_pipe(struct shim *s, int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) < 0) {
        shim_fail(s, "cannot make a pipe: " PROCESS_WHY, PROCESS_WHY_OF(errno));
    }
}

static void open_pipes(struct shim *s, int null)
{
    int ends[2];

    s->child_stdio[0] = null;
    if (s->launch->stdin_open) {
        s->child_stdio[0] = process_input_open(&s->in, s->launch->state_fd, false);
        if (s->child_stdio[0] < 0) {
            shim_fail(s, "cannot open standard input: " PROCESS_WHY, PROCESS_WHY_OF(errno));
        }
    }
    for (int k = 0; k < 2; k++) {
        make_pipe(s, ends);
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
        s->streams[k] = ends[0];
        s->child_stdio[k + 1] = ends[1];
    }
}

static void open_stdio(struct shim *s)
{
    const struct process_launch *l = s->launch;
    const int null = open_null(s);
    const int given[] = {l->in, l->out, l->err_out};

    if (l->log_fd < 0) {
        for (int k = 0; k < 3; k++) {
            s->child_stdio[k] = given[k] < 0 ? null : fcntl(given[k], F_DUPFD_CLOEXEC, 3);
        }
        /* Close last: the same descriptor may be given twice. */
        for (int k = 0; k < 3; k++) {
            if (given[k] > 2) {
                close(given[k]);
            }
        }
    } else if (l->tty) {
        open_terminal(s);
    } else {
        open_pipes(s, null);
    }
}

static bool write_proc(const char *path, const char *text)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0) {
        return false;
    }
    const bool whole = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    return whole;
}

/* Maps the agent's user, the only one of a new user namespace. */
static bool map_user(struct process_user user)
{
    char uids[32], gids[32];

    snprintf(uids, sizeof(uids), "%lld %u 1", (long long)user.inner_uid, user.uid);
    snprintf(gids, sizeof(gids), "%lld %u 1", (long long)user.inner_gid, user.gid);
    return write_proc("/proc/self/uid_map", uids) && write_proc("/proc/self/setgroups", "deny") &&
           write_proc("/proc/self/gid_map", gids);
}

/* Enters the namespaces of the container with that shim. Without root, setns to the machine's IPC
 * namespace fails even from there; a container that shares it does not need it. */
static int enter_container(const struct process_launch *l)
{
    const int user = l->isolation == PROCESS_USER ? CLONE_NEWUSER : 0;
    const int all = NAMESPACES | CLONE_NEWPID | user;

    if (l->own_ipc && setns(l->join, all | CLONE_NEWIPC) == 0) {
        return 0;
    }
    return setns(l->join, all);
}

/* Joins the IPC namespace of another shim of the pod, or makes one if that shim has just ended. */
static void join_ipc(struct shim *s)
{
    const struct process_launch *l = s->launch;

    if (l->ipc < 0) {
        return; /* clone made one, or the pod uses the machine's */
    }
    if (setns(l->ipc, CLONE_NEWIPC) < 0 && unshare(CLONE_NEWIPC) < 0) {
        shim_fail(s, "cannot make an IPC namespace: " PROCESS_WHY, PROCESS_WHY_OF(errno));
    }
    close(l->ipc);
}

static void enter_namespaces(struct shim *s)
{
    const struct process_launch *l = s->launch;

    if (l->beside) {
        flock(l->state_fd, LOCK_SH); /* wait until the container is set up */
    }
    if (l->join_state >= 0) {
        flock(l->join_state, LOCK_SH);
        close(l->join_state);
    }
    if (l->join >= 0) {
        if (enter_container(l) < 0) {
            shim_fail(s, "cannot enter the container: " PROCESS_WHY, PROCESS_WHY_OF(errno));
        }
    } else if (l->isolation != PROCESS_PLAIN) {
        join_ipc(s);
        if (unshare(NAMESPACES) < 0) {
            shim_fail(s, "cannot make namespaces: " PROCESS_WHY, PROCESS_WHY_OF(errno));
        }
        if (l->hostname && sethostname(l->hostname, strlen(l->hostname)) < 0) {
            shim_fail(s, "cannot set host name \"%s\": " PROCESS_WHY, l->hostname,
                      PROCESS_WHY_OF(errno));
        }
        if (process_mount(l, s->message) < 0) {
            s->failed = code_of(errno);
            record_end(s, 0);
            _exit(0);
        }
    }
}

/* Returns when the command runs, or has failed to start. */
static void start_command(struct shim *s)
{
    char stack[COMMAND_STACK] __attribute__((aligned(16)));
    char said[PROCESS_MESSAGE];
    int report[2];
    ssize_t n;

    make_pipe(s, report);
    struct command command = {.shim = s, .report = report[1]};
    s->command =
        clone(command_run, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, &command);
    if (s->command < 0) {
        shim_fail(s, "cannot fork: " PROCESS_WHY, PROCESS_WHY_OF(errno));
    }
    close(report[1]);
    do {
        n = read(report[0], said, sizeof(said));
    } while (n < 0 && errno == EINTR);
    if (n > 0) {
        s->failed = (unsigned char)said[0];
        snprintf(s->message, sizeof(s->message), "%.*s", (int)n - 1, said + 1);
    }
    close(report[0]);
    flock(s->launch->state_fd, LOCK_UN);
    for (int k = 0; k < 3; k++) {
        close(s->child_stdio[k]); /* closing one twice is harmless */
    }
}

/* Reads at most one buffer, so that a busy stream does not starve the other one and the signals.
 * Returns the number of bytes. */
static size_t read_stream(struct shim *s, struct process_log *log, int k)
{
    char buf[READ_MAX];
    ssize_t n;

    do {
        n = read(s->streams[k], buf, sizeof(buf));
    } while (n < 0 && errno == EINTR);
    if (n > 0) {
        process_log_add(log, k, buf, (size_t)n);
        return (size_t)n;
    }
    if (n == 0 || errno != EAGAIN) { /* EIO: all users of the terminal have closed it */
        close(s->streams[k]);
        s->streams[k] = -1;
    }
    return 0;
}

/* Reads the output written before the command ended. Does not wait for surviving processes. */
static void drain_streams(struct shim *s, struct process_log *log)
{
    for (int k = 0; k < 2; k++) {
        int left = 0;
        if (s->streams[k] < 0 || ioctl(s->streams[k], FIONREAD, &left) < 0) {
            continue;
        }
        while (left > 0 && s->streams[k] >= 0) {
            const size_t n = read_stream(s, log, k);
            left -= n > 0 ? (int)n : left;
        }
    }
}

/* Reaps children; returns true if the command was one of them. */
static bool reap(const struct shim *s, int *ret_status)
{
    bool ended = false;
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == s->command) {
            *ret_status = status;
            ended = true;
        }
    }
    return ended;
}

static void process_start_execute_word(struct shim *s, enum runtime_word word, int value)
{
    if (word == RUNTIME_IN_ENDS) {
        process_input_end(&s->in);
    } else if (s->launch->tty && s->streams[0] >= 0) {
        ioctl(s->streams[0], TIOCSWINSZ,
              &(struct winsize){.ws_row = (uint16_t)value, .ws_col = (uint16_t)(value >> 16)});
    }
}

/* Reads signals; returns true if the command has ended. */
static bool take_signals(struct shim *s, int *ret_status)
{
    struct signalfd_siginfo info;
    bool ended = false;

    while (read(s->signals, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == SIGCHLD) {
            ended |= reap(s, ret_status);
        } else if (info.ssi_signo == (uint32_t)SIGRTMIN && !ended) {
            kill(-s->command, info.ssi_int);
        } else if (info.ssi_signo > (uint32_t)SIGRTMIN) {
            process_start_execute_word(s, info.ssi_signo - (uint32_t)SIGRTMIN - 1, info.ssi_int);
        }
    }
    return ended;
}

/* Kills all current children and returns their number. Processes that the command left behind, even
 * in other sessions, became children of the shim when their parents ended. */
static int kill_children(void)
{
    char text[4096];
    const int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    int killed = 0;

    if (fd >= 0) {
        close(fd);
    }
    text[HK_MAX(n, 0)] = '\0';
    /* A number cut off by the buffer is read the next time. */
    for (const char *at = text, *end; (end = strchr(at, ' ')); at = end + 1) {
        int64_t pid;
        if (hk_str_int((struct hk_str){at, (size_t)(end - at)}, &pid) && pid > 0 &&
            kill((pid_t)pid, SIGKILL) == 0) {
            killed++;
        }
    }
    return killed;
}

static void end_rest(const struct shim *s)
{
    if (s->launch->beside) {
        return; /* what it left behind belongs to the container */
    }
    kill(-s->command, SIGKILL);
    if (s->launch->join >= 0) {
        return; /* so does what is in the namespace of another container */
    }
    if (s->launch->isolation != PROCESS_PLAIN) {
        kill(-1, SIGKILL);
        while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) {
        }
        return;
    }
    while (kill_children() > 0) {
        waitpid(-1, NULL, 0); /* its children become ours */
    }
}

static int watch_command(struct shim *s, struct process_log *log)
{
    int status = 0;

    for (;;) {
        const bool full = s->in.at < s->in.len;
        struct pollfd fds[] = {
            {.fd = s->signals, .events = POLLIN},
            {.fd = s->streams[0], .events = (short)(POLLIN | (full ? POLLOUT : 0))},
            {.fd = s->streams[1], .events = POLLIN},
            {.fd = full ? -1 : s->in.typed, .events = POLLIN},
        };
        if (poll(fds, HK_LEN(fds), -1) < 0) {
            continue;
        }
        for (int k = 0; k < 2; k++) {
            if (fds[k + 1].revents) {
                read_stream(s, log, k);
                if (s->launch->tty) {
                    process_log_show(log);
                }
                process_log_flush(log);
            }
        }
        if (fds[3].revents || fds[1].revents & POLLOUT) {
            process_input_type(&s->in, s->streams[0]);
        }
        if (fds[0].revents && take_signals(s, &status)) {
            return status;
        }
    }
}

static int open_signals(void)
{
    sigset_t wanted;

    sigemptyset(&wanted);
    sigaddset(&wanted, SIGCHLD);
    sigaddset(&wanted, SIGRTMIN);
    sigaddset(&wanted, SIGRTMIN + 1 + RUNTIME_IN_ENDS);
    sigaddset(&wanted, SIGRTMIN + 1 + RUNTIME_RESIZE);
    return signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

__attribute__((noreturn)) static void shim_run(const struct process_launch *l)
{
    struct shim s = {.launch = l, .streams = {-1, -1}, .in = {.hold = -1, .typed = -1}};
    struct process_log log;
    int status;

    s.start_ns = l->clock->wall_ns(l->clock);
    prctl(PR_SET_NAME, "hekla-shim");
    if (l->beside) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    }
    setsid();
    reset_signals();
    close_others(l);
    open_stdio(&s);
    s.signals = open_signals();
    if (s.signals < 0) {
        shim_fail(&s, "cannot wait for signals: " PROCESS_WHY, PROCESS_WHY_OF(errno));
    }
    if (!l->beside && !record_self(&s)) {
        shim_fail(&s, "cannot write its record: " PROCESS_WHY, PROCESS_WHY_OF(errno));
    }
    if (!l->beside && l->isolation == PROCESS_PLAIN) {
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    }
    if (!l->beside && l->join < 0 && l->isolation == PROCESS_USER && !map_user(l->user)) {
        shim_fail(&s, "cannot set up a user namespace: " PROCESS_WHY, PROCESS_WHY_OF(errno));
    }
    enter_namespaces(&s);
    if (l->log_fd >= 0) {
        process_log_init(&log, l->clock, l->log_fd, l->log_name, l->log_max_bytes);
    }
    start_command(&s);
    status = watch_command(&s, &log);
    end_rest(&s);
    if (l->log_fd >= 0) {
        drain_streams(&s, &log);
        process_log_fini(&log);
    }
    record_end(&s, status);
    _exit(0);
}

/* ---- forking ---- */

/* The pidfd identifies the new process from its creation on. */
static pid_t fork_with(uint64_t flags, int *ret_pidfd)
{
    struct clone_args args = {
        .flags = CLONE_PIDFD | flags,
        .pidfd = (uint64_t)(uintptr_t)ret_pidfd,
        .exit_signal = SIGCHLD,
    };

    return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static uint64_t fork_flags(enum process_isolation isolation)
{
    return isolation == PROCESS_FULL   ? CLONE_NEWPID
           : isolation == PROCESS_USER ? CLONE_NEWPID | CLONE_NEWUSER
                                       : 0;
}

int process_start_launch(const struct process_launch *l, int *ret_pidfd)
{
    /* With the clone, so that other containers of the pod always find it. */
    const uint64_t ipc = l->own_ipc && l->ipc < 0 ? CLONE_NEWIPC : 0;
    const bool joins = l->beside || l->join >= 0;
    const pid_t pid = fork_with(joins ? 0 : fork_flags(l->isolation) | ipc, ret_pidfd);

    if (pid == 0) {
        shim_run(l);
    }
    return pid < 0 ? -1 : 0;
}

static void send_to_shim(int pidfd, int signo, int value)
{
    siginfo_t info = {
        .si_signo = signo,
        .si_code = SI_QUEUE,
    };

    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_int = value;
    pidfd_send_signal(pidfd, signo, &info, 0); /* ESRCH: its end is about to be reported */
}

void process_shim_signal(int pidfd, int signo)
{
    send_to_shim(pidfd, SIGRTMIN, signo);
}

void process_shim_tell(int pidfd, enum runtime_word word, int value)
{
    send_to_shim(pidfd, SIGRTMIN + 1 + (int)word, value);
}

/* Tries each kind of mount that a container may need. */
static bool try_mounts(void)
{
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0 &&
           mount("hekla", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, NULL) == 0;
}

static bool can_isolate(enum process_isolation isolation, uint64_t more)
{
    const struct process_user user = {
        .uid = geteuid(), .gid = getegid(), .inner_uid = geteuid(), .inner_gid = getegid()};
    siginfo_t info = {0};
    int pidfd = -1;
    const pid_t pid = fork_with(fork_flags(isolation) | NAMESPACES | more, &pidfd);

    if (pid == 0) {
        _exit((isolation == PROCESS_USER && !map_user(user)) || !try_mounts());
    }
    if (pid < 0) {
        return false;
    }
    const bool waited = waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) == 0;
    close(pidfd);
    return waited && info.si_code == CLD_EXITED && info.si_status == 0;
}

enum process_isolation process_isolation(void)
{
    return can_isolate(PROCESS_FULL, 0)   ? PROCESS_FULL
           : can_isolate(PROCESS_USER, 0) ? PROCESS_USER
                                          : PROCESS_PLAIN;
}

bool process_can_have_ipc(enum process_isolation isolation)
{
    return isolation != PROCESS_PLAIN && can_isolate(isolation, CLONE_NEWIPC);
}
