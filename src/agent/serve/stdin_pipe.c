// SPDX-License-Identifier: Apache-2.0
// Writes input of a channel to a descriptor of a process; pauses the channel while the process does
// not read.
#include "agent/serve/stdin_pipe.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

static void stdin_pipe_write_pending(struct stdin_pipe *i);

static void on_writable(void *ctx, uint32_t events)
{
    stdin_pipe_write_pending(ctx);
}

static void unwatch(struct stdin_pipe *i)
{
    net_watch_del(i->watch);
    i->watch = NULL;
}

static void stdin_pipe_close_fd(struct stdin_pipe *i)
{
    unwatch(i);
    if (i->fd >= 0) {
        close(i->fd);
    }
    i->fd = -1;
}

static void stdin_pipe_wait_writable(struct stdin_pipe *i)
{
    if (!i->watch) {
        i->watch = net_watch_add(i->loop, i->fd, EPOLLOUT, on_writable, i);
    }
    channels_pause(i->from);
}

static void stdin_pipe_write_pending(struct stdin_pipe *i)
{
    while (i->fd >= 0 && i->at < i->rest.len) {
        const ssize_t n = write(i->fd, i->rest.data + i->at, i->rest.len - i->at);
        if (n < 0 && errno == EAGAIN) {
            stdin_pipe_wait_writable(i);
            return;
        }
        if (n < 0 && errno != EINTR) {
            stdin_pipe_close_fd(i); /* no reader: drop further input */
        }
        i->at += n > 0 ? (size_t)n : 0;
    }
    unwatch(i);
    hk_buf_clear(&i->rest);
    i->at = 0;
    if (i->ends) {
        stdin_pipe_close_fd(i);
    }
    channels_resume(i->from);
}

void stdin_pipe_open(struct stdin_pipe *i, struct net_loop *loop, struct channels *from, int fd)
{
    *i = (struct stdin_pipe){.loop = loop, .from = from, .fd = fd};
}

void stdin_pipe_fini(struct stdin_pipe *i)
{
    stdin_pipe_close_fd(i);
    hk_buf_fini(&i->rest);
    i->at = 0;
}

void stdin_pipe_write(struct stdin_pipe *i, struct hk_str bytes)
{
    if (i->fd >= 0 && !i->ends) {
        hk_buf_addstr(&i->rest, bytes);
        stdin_pipe_write_pending(i);
    }
}

void stdin_pipe_end(struct stdin_pipe *i)
{
    i->ends = true;
    if (i->fd >= 0) {
        stdin_pipe_write_pending(i);
    }
}
