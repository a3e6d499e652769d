// SPDX-License-Identifier: Apache-2.0
// Until the child is ready it speaks to the terminal, so whoever typed the command sees why it
// fails. The parent learns of both outcomes from the child's stdin, which is a pipe for so long:
// one byte, or its end.
#include "cmd/detach.h"

#include "base/str.h"
#include "cmd/verb.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOG_MAX_BYTES ((off_t)10 << 20)

static int await(pid_t child, int fd)
{
    int status;
    char byte;
    ssize_t n;

    do {
        n = read(fd, &byte, 1);
    } while (n < 0 && errno == EINTR);
    if (n == 1) {
        return EXIT_OK;
    }
    if (waitpid(child, &status, 0) == child && WIFEXITED(status)) {
        return WEXITSTATUS(status) != EXIT_OK ? WEXITSTATUS(status) : EXIT_BAD;
    }
    return verb_complain("up: the server was killed before it was ready");
}

bool detach(int *ret_status)
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
    *ret_status = await(pid, fds[0]);
    close(fds[0]);
    return false;
}

static void rotate(const char *path)
{
    HK_AUTO(hk_buf_fini) struct hk_buf old = {0};
    struct stat st;

    if (stat(path, &st) == 0 && st.st_size > LOG_MAX_BYTES) {
        hk_buf_addf(&old, "%s.1", path);
        rename(path, old.data);
    }
}

int detach_ready(const char *path, struct hk_err *err)
{
    int log, nothing;

    rotate(path);
    log = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (log < 0) {
        return hk_fail(err, HK_EIO, "cannot write the log '%s': %m", path);
    }
    (void)!send(STDIN_FILENO, "", 1, MSG_NOSIGNAL); /* a parent that is gone needs no answer */
    nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0) {
        dup2(nothing, STDIN_FILENO);
        close(nothing);
    }
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    close(log);
    return 0;
}
