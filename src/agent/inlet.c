// SPDX-License-Identifier: Apache-2.0
#include "agent/inlet.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

static void push(struct inlet *i);

static void on_writable(void *ctx, uint32_t events)
{
    push(ctx);
}

static void unwatch(struct inlet *i)
{
    net_watch_del(i->watch);
    i->watch = NULL;
}

static void close_fd(struct inlet *i)
{
    unwatch(i);
    if (i->fd >= 0) {
        close(i->fd);
    }
    i->fd = -1;
}

static void wait(struct inlet *i)
{
    if (!i->watch) {
        i->watch = net_watch_add(i->loop, i->fd, EPOLLOUT, on_writable, i);
    }
    channels_pause(i->from);
}

static void push(struct inlet *i)
{
    while (i->fd >= 0 && i->at < i->rest.len) {
        const ssize_t n = write(i->fd, i->rest.data + i->at, i->rest.len - i->at);
        if (n < 0 && errno == EAGAIN) {
            wait(i);
            return;
        }
        if (n < 0 && errno != EINTR) {
            close_fd(i); /* nobody reads: what comes is thrown away */
        }
        i->at += n > 0 ? (size_t)n : 0;
    }
    unwatch(i);
    hk_buf_clear(&i->rest);
    i->at = 0;
    if (i->ends) {
        close_fd(i);
    }
    channels_resume(i->from);
}

void inlet_open(struct inlet *i, struct net_loop *loop, struct channels *from, int fd)
{
    *i = (struct inlet){.loop = loop, .from = from, .fd = fd};
}

void inlet_fini(struct inlet *i)
{
    close_fd(i);
    hk_buf_fini(&i->rest);
    i->at = 0;
}

void inlet_take(struct inlet *i, struct hk_str bytes)
{
    if (i->fd >= 0 && !i->ends) {
        hk_buf_addstr(&i->rest, bytes);
        push(i);
    }
}

void inlet_end(struct inlet *i)
{
    i->ends = true;
    if (i->fd >= 0) {
        push(i);
    }
}
