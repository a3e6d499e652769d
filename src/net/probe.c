// SPDX-License-Identifier: Apache-2.0
// Probes: connect, and for HTTP write the request and read the first line of the answer.
//
//   CONNECTING --> (tcp) good
//              --> WRITING --> READING --> good when the status says so
//   anything that fails, and the deadline --> not good
#include "net/probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* A status line is short; whoever sends more than this before its end is no HTTP server. */
#define LINE_MAX_BYTES 512u

struct net_probe {
    struct net_loop *loop;
    struct net_watch *watch;
    struct net_timer *timer;
    int fd; /* -1: could not even begin */
    void (*done)(void *ctx, struct net_probe *p, bool good);
    void *ctx;
    bool http;
    struct hk_buf out, in;
    size_t sent;
};

static void finish(struct net_probe *p, bool good)
{
    p->done(p->ctx, p, good);
}

static void on_timer(void *ctx)
{
    finish(ctx, false);
}

/* "HTTP/1.1 204 No Content": the status, 0 when the line is no such. */
static int status_of(const struct hk_buf *line)
{
    int status = 0;

    return sscanf(line->data, "HTTP/1.%*1[01] %3d", &status) == 1 ? status : 0;
}

static void read_more(struct net_probe *p)
{
    char chunk[LINE_MAX_BYTES];
    const ssize_t n = recv(p->fd, chunk, sizeof(chunk), 0);
    int status;

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n > 0) {
        hk_buf_add(&p->in, chunk, (size_t)n);
    }
    if (n > 0 && !memchr(p->in.data, '\n', p->in.len) && p->in.len < LINE_MAX_BYTES) {
        return;
    }
    status = p->in.len > 0 ? status_of(&p->in) : 0;
    finish(p, status >= 200 && status <= 399);
}

static void write_more(struct net_probe *p)
{
    const ssize_t n = send(p->fd, p->out.data + p->sent, p->out.len - p->sent, MSG_NOSIGNAL);

    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            finish(p, false);
        }
        return;
    }
    p->sent += (size_t)n;
    if (p->sent == p->out.len) {
        net_watch_change(p->watch, EPOLLIN);
    }
}

static void on_ready(void *ctx, uint32_t events)
{
    struct net_probe *p = ctx;
    int error = 0;
    socklen_t len = sizeof(error);

    if (p->sent == 0 && (getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error != 0)) {
        finish(p, false);
    } else if (!p->http) {
        finish(p, true);
    } else if (p->sent < p->out.len) {
        write_more(p);
    } else {
        read_more(p);
    }
}

static void write_request(struct net_probe *p, const struct net_probe_opts *o)
{
    const bool v6 = memchr(o->host.s, ':', o->host.n) != NULL;

    hk_buf_addf(&p->out, "GET %s%.*s HTTP/1.1\r\n", o->path.n > 0 && o->path.s[0] == '/' ? "" : "/",
                HK_FMT(o->path));
    hk_buf_addf(&p->out, v6 ? "Host: [%.*s]:%u\r\n" : "Host: %.*s:%u\r\n", HK_FMT(o->host),
                o->port);
    hk_buf_adds(&p->out, "User-Agent: hekla\r\nAccept: */*\r\nConnection: close\r\n");
    if (o->header.n > 0) {
        hk_buf_addf(&p->out, "%.*s: %.*s\r\n", HK_FMT(o->header), HK_FMT(o->value));
    }
    hk_buf_adds(&p->out, "\r\n");
}

/* Whether the words can stand in a request without becoming something else. */
static bool is_plain(struct hk_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if ((unsigned char)s.s[i] < 0x20 || s.s[i] == 0x7f) {
            return false;
        }
    }
    return true;
}

static int dial(const struct net_probe_opts *o)
{
    char host[INET6_ADDRSTRLEN];
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(o->port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(o->port)};
    const bool is_v6 = memchr(o->host.s, ':', o->host.n) != NULL;
    const struct sockaddr *at = is_v6 ? (void *)&v6 : (void *)&v4;
    int fd;

    if (o->host.n >= sizeof(host) || !is_plain(o->path) || !is_plain(o->header) ||
        !is_plain(o->value)) {
        return -1;
    }
    snprintf(host, sizeof(host), "%.*s", HK_FMT(o->host));
    if (inet_pton(is_v6 ? AF_INET6 : AF_INET, host,
                  is_v6 ? (void *)&v6.sin6_addr : (void *)&v4.sin_addr) != 1) {
        return -1;
    }
    fd = socket(at->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, at, is_v6 ? sizeof(v6) : sizeof(v4)) < 0 && errno != EINPROGRESS) {
        close(fd);
        fd = -1;
    }
    return fd;
}

struct net_probe *net_probe_new(struct net_loop *l, const struct net_probe_opts *o)
{
    struct net_probe *p = hk_zalloc(sizeof(*p));
    const int64_t now_ns = net_loop_now_ns(l);

    *p = (struct net_probe){.loop = l, .done = o->done, .ctx = o->ctx, .http = o->http};
    p->fd = dial(o);
    p->timer = net_timer_new(l, on_timer, p);
    net_timer_at(p->timer, p->fd < 0 ? now_ns : now_ns + o->timeout_ns);
    if (p->fd >= 0) {
        write_request(p, o);
        p->watch = net_watch_add(l, p->fd, EPOLLOUT, on_ready, p);
    }
    return p;
}

void net_probe_free(struct net_probe *p)
{
    if (!p) {
        return;
    }
    net_watch_del(p->watch);
    net_timer_free(p->timer);
    if (p->fd >= 0) {
        close(p->fd);
    }
    hk_buf_fini(&p->out);
    hk_buf_fini(&p->in);
    hk_free(p);
}
