// SPDX-License-Identifier: Apache-2.0
// Runs a function in a forked copy of the process and reads its output through a pipe.
#include "sim/aside.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static bool aside_write_all(int fd, struct hk_str s)
{
    while (s.n > 0) {
        const ssize_t n = write(fd, s.s, s.n);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        if (n > 0) {
            s = (struct hk_str){s.s + n, s.n - (size_t)n};
        }
    }
    return true;
}

/* Ends with _exit: exit handlers, stdio buffers and leak checks belong to the original. */
_Noreturn static void run_copy(aside_fn *fn, void *ctx, int fd)
{
    struct hk_buf out = {0};

    fn(ctx, &out);
    _exit(aside_write_all(fd, hk_buf_str(&out)) ? 0 : 1);
}

static int aside_read_all(int fd, struct hk_buf *ret)
{
    enum { STEP = 1 << 16 };
    ssize_t n;

    do {
        hk_buf_reserve(ret, STEP);
        n = read(fd, ret->data + ret->len, STEP);
        if (n > 0) {
            ret->len += (size_t)n;
        }
    } while (n > 0 || (n < 0 && errno == EINTR));
    ret->data[ret->len] = '\0';
    return n < 0 ? -1 : 0;
}

static int wait_for(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return -1;
        }
    }
    return status;
}

int aside_run(aside_fn *fn, void *ctx, struct hk_buf *ret, struct hk_err *err)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0) {
        return hk_fail(err, HK_EIO, "cannot make a pipe: %m");
    }
    const pid_t pid = fork();
    if (pid < 0) {
        const int saved = errno;
        close(fds[0]);
        close(fds[1]);
        return hk_fail(err, HK_EIO, "cannot make a copy of the process: %s", strerror(saved));
    }
    if (pid == 0) {
        run_copy(fn, ctx, fds[1]);
    }
    close(fds[1]);
    hk_buf_clear(ret);
    const int read_rc = aside_read_all(fds[0], ret);
    close(fds[0]);
    const int status = wait_for(pid);
    if (read_rc < 0 || status != 0) {
        return hk_fail(err, HK_EIO, "a try ended before its time (status %d)", status);
    }
    return 0;
}
