// SPDX-License-Identifier: Apache-2.0
// The shim and the command below it. The agent forks the shim, as process 1 of a new pid namespace
// where that is permitted; the shim makes what the container sees, forks the command, copies its
// output to the log, passes signals on, and when the command ends kills what is left and writes the
// record of the end. A command beside a container has a shim too, outside, that enters its
// namespaces.
//
// A fork of a process with threads must not touch the heap, nor libc calls that consult the thread
// list (setuid and its kin): only system calls and stack from here to exec.
//
//     agent --SIGRTMIN(signo)--> shim --kill(-group)--> command
//     agent <--pidfd, record---- shim <--pipes, wait--- command

#include "agent/process_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
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
#define NEVER_RAN_CODE 128
#define GROUPS_MAX 256
#define KEPT_FDS (PROCESS_HIERARCHIES + 7)
#define COMMAND_STACK (64 << 10)
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED 0
#endif
/* What a sanitizer remembers of the stack cannot be shared. */
#define COMMAND_CLONE ((SANITIZED ? 0 : CLONE_VM | CLONE_VFORK) | SIGCHLD)

struct shim {
    const struct process_launch *launch;
    pid_t command;
    int signals;        /* signalfd */
    int streams[2];     /* read ends of stdout and stderr, -1 */
    int child_stdio[3]; /* what the command gets */
    int procs;          /* by which it joins the group it was not born in, -1 */
    int64_t start_ns;
    char message[PROCESS_MESSAGE];
};

/* ---- the command ---- */

/* The command's last words before it became one. */
__attribute__((noreturn, format(printf, 2, 3))) static void give_up(int report, const char *fmt,
                                                                    ...)
{
    char text[PROCESS_MESSAGE];
    va_list ap;

    va_start(ap, fmt);
    const int n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    /* That there was a message counts, not the status. */
    _exit(write(report, text, (size_t)HK_MIN(n, (int)sizeof(text) - 1)) < 0);
}

static void become_user(const struct process_launch *l, int report)
{
    gid_t groups[GROUPS_MAX];

    if (l->uid < 0 && l->gid < 0 && l->ngroup == 0) {
        return;
    }
    if (l->ngroup > HK_LEN(groups)) {
        give_up(report, "%u supplementary groups, at most %zu are taken", l->ngroup,
                HK_LEN(groups));
    }
    for (uint32_t k = 0; k < l->ngroup; k++) {
        groups[k] = (gid_t)l->groups[k];
    }
    /* Who may not drop groups keeps those of the agent. */
    if (syscall(SYS_setgroups, (size_t)l->ngroup, groups) < 0 &&
        (errno != EPERM || l->ngroup > 0)) {
        give_up(report, "cannot set supplementary groups: " PROCESS_WHY, PROCESS_WHY_OF(errno));
    }
    if (l->gid >= 0 && syscall(SYS_setresgid, (gid_t)l->gid, (gid_t)l->gid, (gid_t)l->gid) < 0) {
        give_up(report, "cannot become group %lld: " PROCESS_WHY, (long long)l->gid,
                PROCESS_WHY_OF(errno));
    }
    if (l->uid >= 0 && syscall(SYS_setresuid, (uid_t)l->uid, (uid_t)l->uid, (uid_t)l->uid) < 0) {
        give_up(report, "cannot become user %lld: " PROCESS_WHY, (long long)l->uid,
                PROCESS_WHY_OF(errno));
    }
}

static const char *path_of(const char *const *env)
{
    for (; *env; env++) {
        if (strncmp(*env, "PATH=", 5) == 0) {
            return *env + 5;
        }
    }
    return "";
}

__attribute__((noreturn)) static void exec_in_path(const struct process_launch *l, int report)
{
    const char *name = l->argv[0];
    int why = ENOENT;

    for (const char *dir = path_of(l->env), *next; *dir; dir = next) {
        const size_t n = strcspn(dir, ":");
        char path[PATH_MAX];
        next = dir + n + (dir[n] == ':');
        /* An empty part means the working directory to execvp; nobody wants that. */
        if (n == 0 || snprintf(path, sizeof(path), "%.*s/%s", (int)n, dir, name) >= PATH_MAX) {
            continue;
        }
        execve(path, (char *const *)l->argv, (char *const *)l->env);
        if (errno == EACCES) {
            why = EACCES;
        } else if (errno != ENOENT && errno != ENOTDIR) {
            give_up(report, "exec: \"%s\": " PROCESS_WHY, path, PROCESS_WHY_OF(errno));
        }
    }
    if (why == ENOENT) {
        give_up(report, "exec: \"%s\": executable file not found in $PATH", name);
    }
    give_up(report, "exec: \"%s\": " PROCESS_WHY, name, PROCESS_WHY_OF(why));
}

static void limit_memory(int64_t bytes)
{
    const struct rlimit limit = {(rlim_t)bytes, (rlim_t)bytes};

    if (bytes > 0) {
        setrlimit(RLIMIT_DATA, &limit); /* lowering is always permitted */
    }
}

__attribute__((noreturn)) static void command_run(const struct shim *s, int report)
{
    const struct process_launch *l = s->launch;
    const char *cwd = l->cwd ? l->cwd : "/";
    sigset_t none;

    setsid();
    for (int fd = 0; fd < 3; fd++) {
        if (dup2(s->child_stdio[fd], fd) < 0) {
            give_up(report, "cannot connect descriptor %d: " PROCESS_WHY, fd,
                    PROCESS_WHY_OF(errno));
        }
    }
    if (l->tty) {
        ioctl(0, TIOCSCTTY, 0);
    }
    for (uint32_t k = 0; k < l->ngroup_fd; k++) {
        if (write(l->group_fds[k], "0", 1) < 0) {
            give_up(report, "cannot join the cgroup: " PROCESS_WHY, PROCESS_WHY_OF(errno));
        }
    }
    if (s->procs >= 0 && write(s->procs, "0", 1) < 0) {
        give_up(report, "cannot join the cgroup: " PROCESS_WHY, PROCESS_WHY_OF(errno));
    }
    limit_memory(l->data_bytes);
    become_user(l, report);
    if (chdir(cwd) < 0) {
        give_up(report, "cannot change to working directory \"%s\": " PROCESS_WHY, cwd,
                PROCESS_WHY_OF(errno));
    }
    if (l->beside) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (!strchr(l->argv[0], '/')) {
        exec_in_path(l, report);
    }
    execve(l->argv[0], (char *const *)l->argv, (char *const *)l->env);
    give_up(report, "exec: \"%s\": " PROCESS_WHY, l->argv[0], PROCESS_WHY_OF(errno));
}

/* ---- records ---- */

static void write_record(const struct shim *s, const char *name, const char *text, size_t n)
{
    char temp[NAME_MAX];
    int fd;

    snprintf(temp, sizeof(temp), "%s.tmp", name);
    fd = openat(s->launch->state_fd, temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        return; /* the agent will know that the shim ended without a word */
    }
    const bool whole = write(fd, text, n) == (ssize_t)n;
    close(fd);
    if (whole) {
        renameat(s->launch->state_fd, temp, s->launch->state_fd, name);
    }
}

static void record_end(const struct shim *s, int status, bool never_ran)
{
    char text[PROCESS_MESSAGE + 128];
    const int signo = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    const int code = never_ran ? NEVER_RAN_CODE : signo ? 128 + signo : WEXITSTATUS(status);
    const int64_t now = s->launch->clock->wall_ns(s->launch->clock);
    const int n = snprintf(text, sizeof(text), "%d %d %d %lld %lld\n%s", code, signo, never_ran,
                           (long long)s->start_ns, (long long)now, s->message);

    write_record(s, s->launch->end_name, text, (size_t)n);
}

/* Who the shim is, as those outside see it: /proc is still the machine's. */
static void record_self(const struct shim *s)
{
    char stat[1024], text[1200];
    int64_t pid, ticks;
    const int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd < 0 ? -1 : read(fd, stat, sizeof(stat));

    if (fd >= 0) {
        close(fd);
    }
    if (got > 0 && process_state_stat((struct hk_str){stat, (size_t)got}, &pid, &ticks)) {
        const int n = snprintf(text, sizeof(text), "%lld %lld %lld\n", (long long)pid,
                               (long long)ticks, (long long)s->start_ns);
        write_record(s, PROCESS_SHIM_FILE, text, (size_t)n);
    }
}

__attribute__((noreturn, format(printf, 2, 3))) static void shim_fail(struct shim *s,
                                                                      const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(s->message, sizeof(s->message), fmt, ap);
    va_end(ap);
    record_end(s, 0, true);
    _exit(0);
}

/* ---- the shim ---- */

/* Sockets and files of the agent are none of ours: a client that waits for one to close would wait
 * for the container. */
static void close_others(const struct process_launch *l)
{
    int kept[KEPT_FDS];
    uint32_t n = 0;
    unsigned from = 0;

    const int single[] = {l->state_fd, l->log_fd, l->join, l->in, l->out, l->err_out, l->born};
    for (size_t k = 0; k < HK_LEN(single); k++) {
        if (single[k] >= 0) {
            kept[n++] = single[k];
        }
    }
    for (uint32_t k = 0; k < l->ngroup_fd; k++) {
        kept[n++] = l->group_fds[k];
    }
    for (uint32_t i = 1; i < n; i++) { /* qsort may use the heap */
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
        signal(signo, SIG_DFL); /* what cannot be changed is as it should be */
    }
}

/* Descriptors 0 to 2 are taken, so that no pipe becomes one of them; returns one more /dev/null. */
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
        make_pipe(s, ends); /* the shim keeps the other end, so that reading waits */
        s->child_stdio[0] = ends[0];
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
        /* Only now: one descriptor may have been given twice. */
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

/* In a new user namespace: the one user there is, under its own number. */
static bool map_user(struct process_user user)
{
    char uids[32], gids[32];

    snprintf(uids, sizeof(uids), "%u %u 1", user.uid, user.uid);
    snprintf(gids, sizeof(gids), "%u %u 1", user.gid, user.gid);
    return write_proc("/proc/self/uid_map", uids) && write_proc("/proc/self/setgroups", "deny") &&
           write_proc("/proc/self/gid_map", gids);
}

static void enter_namespaces(struct shim *s)
{
    const struct process_launch *l = s->launch;

    if (l->beside) {
        flock(l->state_fd, LOCK_SH); /* until the container is complete */
    }
    if (l->join >= 0) {
        const int user = l->isolation == PROCESS_USER ? CLONE_NEWUSER : 0;
        if (setns(l->join, NAMESPACES | CLONE_NEWPID | user) < 0) {
            shim_fail(s, "cannot enter the container: " PROCESS_WHY, PROCESS_WHY_OF(errno));
        }
    } else if (l->isolation != PROCESS_PLAIN) {
        if (unshare(NAMESPACES) < 0) {
            shim_fail(s, "cannot make namespaces: " PROCESS_WHY, PROCESS_WHY_OF(errno));
        }
        if (l->hostname && sethostname(l->hostname, strlen(l->hostname)) < 0) {
            shim_fail(s, "cannot set host name \"%s\": " PROCESS_WHY, l->hostname,
                      PROCESS_WHY_OF(errno));
        }
        if (process_mount(l, s->message) < 0) {
            record_end(s, 0, true);
            _exit(0);
        }
    }
}

struct command {
    const struct shim *s;
    int report;
};

static int command_main(void *arg)
{
    const struct command *c = arg;

    command_run(c->s, c->report);
}

/* In its group from the first moment on. Such a clone has a copy of the shim's memory, which is
 * little; -1 when it cannot be. */
static pid_t be_born(const struct shim *s, int report)
{
    const struct clone_args args = {
        .flags = CLONE_INTO_CGROUP,
        .exit_signal = SIGCHLD,
        .cgroup = (uint64_t)s->launch->born,
    };
    const pid_t pid = s->launch->born < 0 ? -1 : (pid_t)syscall(SYS_clone3, &args, sizeof(args));

    if (pid == 0) {
        command_run(s, report);
    }
    return pid;
}

/* Returns when the command runs, or is known never to. Until then it uses the shim's memory, on a
 * stack of its own, and the shim waits: nothing is copied that exec would throw away. */
static bool start_command(struct shim *s)
{
    alignas(64) char stack[COMMAND_STACK];
    int report[2];
    ssize_t n;

    make_pipe(s, report);
    s->command = be_born(s, report[1]);
    if (s->command < 0) {
        s->procs = s->launch->born < 0
                       ? -1
                       : openat(s->launch->born, "cgroup.procs", O_WRONLY | O_CLOEXEC);
        s->command = clone(command_main, stack + sizeof(stack), COMMAND_CLONE,
                           &(struct command){s, report[1]});
    }
    if (s->command < 0) {
        shim_fail(s, "cannot fork: " PROCESS_WHY, PROCESS_WHY_OF(errno));
    }
    close(report[1]);
    do {
        n = read(report[0], s->message, sizeof(s->message) - 1);
    } while (n < 0 && errno == EINTR);
    s->message[HK_MAX(n, 0)] = '\0';
    close(report[0]);
    flock(s->launch->state_fd, LOCK_UN);
    for (int k = 0; k < 3; k++) {
        close(s->child_stdio[k]); /* the same one twice does no harm */
    }
    return n <= 0;
}

/* False at the end of the stream. */
static bool read_stream(struct shim *s, struct process_log *log, int k)
{
    char buf[16 << 10];

    for (;;) {
        const ssize_t n = read(s->streams[k], buf, sizeof(buf));
        if (n > 0) {
            process_log_add(log, k, buf, (size_t)n);
        } else if (n < 0 && errno == EAGAIN) {
            return true;
        } else if (n == 0 || errno != EINTR) {
            return false; /* EIO: nobody holds the terminal any more */
        }
    }
}

static void read_streams(struct shim *s, struct process_log *log)
{
    for (int k = 0; k < 2; k++) {
        if (s->streams[k] >= 0 && !read_stream(s, log, k)) {
            close(s->streams[k]);
            s->streams[k] = -1;
        }
    }
    process_log_flush(log);
}

/* Reaps; true when the command was among the dead. */
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

/* Reads signals; true when the command has ended. */
static bool take_signals(const struct shim *s, int *ret_status)
{
    struct signalfd_siginfo info;
    bool ended = false;

    while (read(s->signals, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == SIGCHLD) {
            ended |= reap(s, ret_status);
        } else if (info.ssi_signo == (uint32_t)SIGRTMIN && !ended) {
            kill(-s->command, info.ssi_int);
        }
    }
    return ended;
}

static void end_rest(const struct shim *s)
{
    if (s->launch->beside) {
        return; /* what it left behind is the container's */
    }
    kill(-s->command, SIGKILL);
    if (s->launch->isolation != PROCESS_PLAIN) {
        kill(-1, SIGKILL);
        while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) {
        }
    }
}

static int watch_command(struct shim *s, struct process_log *log)
{
    int status = 0;

    for (;;) {
        struct pollfd fds[] = {
            {.fd = s->signals, .events = POLLIN},
            {.fd = s->streams[0], .events = POLLIN},
            {.fd = s->streams[1], .events = POLLIN},
        };
        if (poll(fds, HK_LEN(fds), -1) < 0) {
            continue;
        }
        if (fds[1].revents || fds[2].revents) {
            read_streams(s, log);
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
    return signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

__attribute__((noreturn)) static void shim_run(const struct process_launch *l)
{
    struct shim s = {.launch = l, .streams = {-1, -1}, .procs = -1};
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
    if (!l->beside) {
        record_self(&s);
    }
    if (!l->beside && l->isolation == PROCESS_USER && !map_user(l->user)) {
        shim_fail(&s, "cannot set up a user namespace: " PROCESS_WHY, PROCESS_WHY_OF(errno));
    }
    enter_namespaces(&s);
    if (l->log_fd >= 0) {
        process_log_init(&log, l->clock, l->log_fd, l->log_name, l->log_max_bytes);
    }
    const bool ran = start_command(&s);
    status = watch_command(&s, &log);
    end_rest(&s);
    if (l->log_fd >= 0) {
        read_streams(&s, &log);
        process_log_fini(&log);
    }
    record_end(&s, status, !ran);
    _exit(0);
}

/* ---- the agent's side ---- */

/* The new process is told apart by a pidfd from its first moment on. Signals are held back until it
 * can deal with them. */
static pid_t fork_with(uint64_t flags, int *ret_pidfd)
{
    struct clone_args args = {
        .flags = CLONE_PIDFD | flags,
        .pidfd = (uint64_t)(uintptr_t)ret_pidfd,
        .exit_signal = flags & CLONE_PARENT ? 0 : SIGCHLD, /* then it is that of who forks */
    };

    return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static uint64_t fork_flags(enum process_isolation isolation)
{
    return isolation == PROCESS_FULL   ? CLONE_NEWPID
           : isolation == PROCESS_USER ? CLONE_NEWPID | CLONE_NEWUSER
                                       : 0;
}

pid_t process_fork(const struct process_launch *l, uint64_t flags, int *ret_pidfd)
{
    const pid_t pid = fork_with(flags | (l->beside ? 0 : fork_flags(l->isolation)), ret_pidfd);

    if (pid == 0) {
        shim_run(l);
    }
    return pid;
}

static int launch_here(const struct process_launch *l, int *ret_pidfd)
{
    sigset_t all, before;
    int why;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    why = process_fork(l, 0, ret_pidfd) < 0 ? errno : 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return why;
}

int process_launch(const struct process_launch *l, int *ret_pidfd, struct hk_err *err)
{
    int pidfd = -1, why = 0;

    if (!l->nursery || !process_nursery_launch(l->nursery, l, &pidfd, &why)) {
        why = launch_here(l, &pidfd);
    }
    if (why != 0) {
        return hk_fail(err, HK_EIO, "cannot fork: %s", strerror(why));
    }
    *ret_pidfd = pidfd;
    return 0;
}

void process_shim_signal(int pidfd, int signo)
{
    siginfo_t info = {
        .si_signo = SIGRTMIN,
        .si_code = SI_QUEUE,
    };

    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_int = signo;
    pidfd_send_signal(pidfd, SIGRTMIN, &info, 0); /* ESRCH: its end is on the way */
}

/* Tries the kinds of mounts that a container may need. */
static bool try_mounts(void)
{
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0 &&
           mount("hekla", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, NULL) == 0;
}

static bool can_isolate(enum process_isolation isolation)
{
    const struct process_user user = {.uid = geteuid(), .gid = getegid()};
    siginfo_t info = {0};
    int pidfd = -1;
    const pid_t pid = fork_with(fork_flags(isolation) | NAMESPACES, &pidfd);

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
    return can_isolate(PROCESS_FULL)   ? PROCESS_FULL
           : can_isolate(PROCESS_USER) ? PROCESS_USER
                                       : PROCESS_PLAIN;
}
