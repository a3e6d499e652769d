// SPDX-License-Identifier: Apache-2.0
// A container's standard input for attach: a FIFO in the directory of its records, so that the next
// agent finds it. The command reads from it; with a terminal, the shim reads it and writes to the
// terminal. Runs in the shim, without the heap.
#include "agent/process/process_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_end(int state_fd, int flags)
{
    return openat(state_fd, PROCESS_IN_FILE, flags | O_NONBLOCK | O_CLOEXEC);
}

int process_input_open(struct process_input *i, int state_fd, bool tty)
{
    int fd;

    if (mkfifoat(state_fd, PROCESS_IN_FILE, 0600) < 0 && errno != EEXIST) {
        return -1;
    }
    if (tty) {
        return i->typed = open_end(state_fd, O_RDWR); /* read-write: never at end of file */
    }
    fd = open_end(state_fd, O_RDONLY);
    if (fd >= 0) {
        i->hold = open_end(state_fd, O_WRONLY);
        fcntl(fd, F_SETFL, 0); /* O_NONBLOCK was only for open */
    }
    return fd;
}

void process_input_end(struct process_input *i)
{
    if (i->hold >= 0) {
        close(i->hold);
    }
    i->hold = -1;
}

void process_input_type(struct process_input *i, int terminal)
{
    if (i->at == i->len) {
        const ssize_t n = read(i->typed, i->keys, sizeof(i->keys));
        i->at = 0;
        i->len = n > 0 ? (size_t)n : 0;
    }
    while (i->at < i->len) {
        const ssize_t n = write(terminal, i->keys + i->at, i->len - i->at);
        if (n < 0 && errno == EAGAIN) {
            return;
        }
        if (n < 0 && errno != EINTR) {
            i->at = i->len; /* no reader: drop it */
            return;
        }
        i->at += n > 0 ? (size_t)n : 0;
    }
}
