// SPDX-License-Identifier: Apache-2.0
// Until the child is ready it writes to the terminal, so that the user sees why a start fails. The
// parent learns the outcome from a socket, which is the child's stdin at first: one byte when the
// child is ready, one when its start is complete, or end of file when it exited.
#include "daemon/detach.h"

#include "base/log.h"
#include "base/str.h"
#include "cli/verb.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOG_MAX_BYTES ((off_t)10 << 20)

enum {
    SETTLE_MS = 10000, /* longest wait for the start to complete */
    TAIL_LINES = 10,   /* of the log, shown when the child exited */
    TAIL_BYTES = 16384,
};

/* ---- the parent ---- */

/* Returns whether a byte arrived; false at end of file or after the timeout (*ret_late is set). */
static bool await_byte(int fd, int timeout_ms, bool *ret_late)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char byte;
    ssize_t n;

    do {
        n = poll(&p, 1, timeout_ms);
    } while (n < 0 && errno == EINTR);
    *ret_late = n == 0;
    if (n <= 0) {
        return false;
    }
    do {
        n = read(fd, &byte, 1);
    } while (n < 0 && errno == EINTR);
    return n == 1;
}

/* The last lines of the file; empty if it cannot be read. */
static struct hk_str detach_last_lines(const char *path, char text[static TAIL_BYTES])
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st = {0};
    ssize_t n = -1;
    size_t at;

    if (fd >= 0 && fstat(fd, &st) == 0) {
        n = pread(fd, text, TAIL_BYTES, HK_MAX(st.st_size - TAIL_BYTES, 0));
        close(fd);
    }
    at = (size_t)HK_MAX(n, 0);
    for (unsigned lines = 0; at > 0; at--) {
        lines += text[at - 1] == '\n' && at < (size_t)n;
        if (lines == TAIL_LINES) {
            break;
        }
    }
    return (struct hk_str){text + at, (size_t)HK_MAX(n, 0) - at};
}

static int tell_early_end(pid_t child, const char *log_path)
{
    char text[TAIL_BYTES];
    const struct hk_str tail = detach_last_lines(log_path, text);
    int status = 0;

    if (waitpid(child, &status, 0) == child && WIFSIGNALED(status)) {
        return verb_complain("up: the server became ready and was ended by signal %d (%s) while it "
                             "started its work; the last lines of '%s':\n%.*s",
                             WTERMSIG(status), strsignal(WTERMSIG(status)), log_path, HK_FMT(tail));
    }
    return verb_complain(
        "up: the server became ready and ended with status %d while it started its "
        "work; the last lines of '%s':\n%.*s",
        WEXITSTATUS(status), log_path, HK_FMT(tail));
}

static int await_child(pid_t child, int fd, const char *log_path)
{
    int status;
    bool late;

    if (await_byte(fd, -1, &late)) {
        return await_byte(fd, SETTLE_MS, &late) || late ? EXIT_OK : tell_early_end(child, log_path);
    }
    if (waitpid(child, &status, 0) == child && WIFEXITED(status)) {
        return WEXITSTATUS(status) != EXIT_OK ? WEXITSTATUS(status) : EXIT_BAD;
    }
    return verb_complain("up: the server was killed before it was ready");
}

bool detach(const char *log_path, int *ret_status)
{
    int fds[2];
    pid_t pid = -1;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0) {
        pid = fork();
    }
    if (pid < 0) {
        *ret_status = verb_complain("up: cannot go to the background: %m");
        return false;
    }
    if (pid == 0) {
        setsid();
        dup2(fds[1], STDIN_FILENO);
        close(fds[0]);
        close(fds[1]);
        return true;
    }
    close(fds[1]);
    *ret_status = await_child(pid, fds[0], log_path);
    close(fds[0]);
    return false;
}

/* ---- the child ---- */

static void detach_rotate(const char *path)
{
    HK_AUTO(hk_buf_fini) struct hk_buf old = {0};
    struct stat st;

    if (stat(path, &st) == 0 && st.st_size > LOG_MAX_BYTES) {
        hk_buf_addf(&old, "%s.1", path);
        rename(path, old.data);
    }
}

/* The parent may be gone. */
static void tell_parent(int fd)
{
    (void)!send(fd, "", 1, MSG_NOSIGNAL);
}

int detach_ready(const char *path, int *ret_parent, struct hk_err *err)
{
    int nothing, rc;

    detach_rotate(path);
    rc = hk_log_open(path, err);
    if (rc < 0) {
        return rc;
    }
    *ret_parent = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0) {
        dup2(nothing, STDIN_FILENO);
        close(nothing);
    }
    tell_parent(*ret_parent);
    return 0;
}

void detach_settled(int *parent)
{
    if (*parent >= 0) {
        tell_parent(*parent);
        close(*parent);
        *parent = -1;
    }
}
