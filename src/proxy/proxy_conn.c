// SPDX-License-Identifier: Apache-2.0
// One connection: dial an endpoint, then copy in both directions.
//
//   DIALING target 0 --fails or takes too long--> DIALING target 1 ... --> closed with a reset
//      '--connected--> COPYING --both directions have ended, or an error--> closed
//
// A direction holds at most one buffer of bytes that its reader has not taken; until they are gone
// nothing more is read. The end of one direction is passed on alone, so a client may send everything,
// close its side, and read the answer.
#include "proxy/proxy_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define DIAL_NS ((int64_t)3 * 1000 * 1000 * 1000)

enum {
    TARGETS_MAX = 8,          /* endpoints that are tried for one client */
    BUFFER_BYTES = 64 * 1024, /* read at a time, and held when the other side is slow */
    ROUNDS = 8,               /* reads before other connections get their turn */
};

/* One end of the connection, and the bytes that were read from it. */
struct proxy_side {
    int fd;
    struct net_watch *watch; /* NULL: no event is awaited */
    struct hk_buf held;      /* read, and not yet written to the other side */
    bool ended;              /* nothing more to read */
    bool passed;             /* the end was passed on to the other side */
};

struct proxy_conn {
    struct proxy *p;
    struct proxy_side sides[2]; /* the client, the endpoint */
    struct net_timer *timer;    /* of the dial; NULL: connected */
    struct proxy_target targets[TARGETS_MAX];
    uint32_t ntarget, dialed;
};

static void proxy_conn_ready(void *ctx, uint32_t events);
static void proxy_conn_dial(struct proxy_conn *c);

/* ---- sockets ---- */

static void proxy_conn_tune(int fd)
{
    const int one = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
}

/* A client whose Service has no working endpoint must see an error, not an empty answer. */
static void proxy_conn_reset(int fd)
{
    const struct linger now = {.l_onoff = 1, .l_linger = 0};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

int proxy_connect(const struct proxy_target *t, int type)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } to = {0};
    socklen_t n = sizeof(to.v4);
    int fd;

    if (inet_pton(AF_INET, t->address, &to.v4.sin_addr) == 1) {
        to.v4.sin_family = AF_INET;
        to.v4.sin_port = htons(t->port);
    } else if (inet_pton(AF_INET6, t->address, &to.v6.sin6_addr) == 1) {
        to.v6.sin6_family = AF_INET6;
        to.v6.sin6_port = htons(t->port);
        n = sizeof(to.v6);
    } else {
        return -1;
    }
    fd = socket(to.any.sa_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, &to.any, n) < 0 && errno != EINPROGRESS) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool proxy_conn_has_failed(int fd)
{
    int why = 0;
    socklen_t n = sizeof(why);

    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &n) < 0 || why != 0;
}

/* ---- copying ---- */

static struct proxy_side *proxy_side_other(struct proxy_conn *c, struct proxy_side *s)
{
    return s == &c->sides[0] ? &c->sides[1] : &c->sides[0];
}

/* Writes what it can; false: the connection is broken. */
static bool proxy_side_flush(struct proxy_side *from, const struct proxy_side *to)
{
    while (from->held.len > 0) {
        const ssize_t n = send(to->fd, from->held.data, from->held.len, MSG_NOSIGNAL);

        if (n < 0) {
            return errno == EAGAIN || errno == EINTR;
        }
        hk_buf_drop(&from->held, (size_t)n);
    }
    hk_buf_fini(&from->held); /* an idle connection holds no memory */
    return true;
}

static bool proxy_side_read(struct proxy_side *from, const struct proxy_side *to)
{
    char bytes[BUFFER_BYTES];

    for (int i = 0; i < ROUNDS && from->held.len == 0 && !from->ended; i++) {
        const ssize_t n = recv(from->fd, bytes, sizeof(bytes), 0);

        if (n < 0) {
            return errno == EAGAIN || errno == EINTR;
        }
        from->ended = n == 0;
        hk_buf_add(&from->held, bytes, (size_t)n);
        if (!proxy_side_flush(from, to)) {
            return false;
        }
    }
    return true;
}

/* Copies one direction; false: the connection is broken. */
static bool proxy_side_copy(struct proxy_side *from, struct proxy_side *to)
{
    if (!proxy_side_flush(from, to) || !proxy_side_read(from, to)) {
        return false;
    }
    if (from->ended && from->held.len == 0 && !from->passed) {
        from->passed = true;
        shutdown(to->fd, SHUT_WR);
    }
    return true;
}

/* Without a wanted event the watch goes: epoll reports a hang-up even then, again and again. */
static void proxy_side_await(struct proxy_conn *c, struct proxy_side *s)
{
    const struct proxy_side *other = proxy_side_other(c, s);
    uint32_t events = 0;

    events |= !s->ended && s->held.len == 0 ? (uint32_t)EPOLLIN : 0;
    events |= other->held.len > 0 ? (uint32_t)EPOLLOUT : 0;
    if (events == 0) {
        net_watch_del(s->watch);
        s->watch = NULL;
    } else if (s->watch) {
        net_watch_change(s->watch, events);
    } else {
        s->watch = net_watch_add(c->p->o.loop, s->fd, events, proxy_conn_ready, c);
    }
}

static void proxy_conn_ready(void *ctx, uint32_t events)
{
    struct proxy_conn *c = ctx;
    struct proxy_side *client = &c->sides[0], *endpoint = &c->sides[1];

    if (!proxy_side_copy(client, endpoint) || !proxy_side_copy(endpoint, client)) {
        proxy_conn_reset(client->fd);
        proxy_conn_free(c);
        return;
    }
    if (client->passed && endpoint->passed) {
        proxy_conn_free(c);
        return;
    }
    proxy_side_await(c, client);
    proxy_side_await(c, endpoint);
}

/* ---- dialing ---- */

static void proxy_conn_drop_dial(struct proxy_conn *c)
{
    struct proxy_side *endpoint = &c->sides[1];

    net_watch_del(endpoint->watch);
    endpoint->watch = NULL;
    if (endpoint->fd >= 0) {
        close(endpoint->fd);
        endpoint->fd = -1;
    }
}

static void proxy_conn_on_dialed(void *ctx, uint32_t events)
{
    struct proxy_conn *c = ctx;
    struct proxy_side *endpoint = &c->sides[1];

    if (proxy_conn_has_failed(endpoint->fd)) {
        proxy_conn_dial(c);
        return;
    }
    net_timer_free(c->timer);
    c->timer = NULL;
    net_watch_del(endpoint->watch);
    endpoint->watch = NULL;
    proxy_conn_tune(endpoint->fd);
    proxy_conn_ready(c, 0);
}

static void proxy_conn_on_timeout(void *ctx)
{
    proxy_conn_dial(ctx);
}

/* Dials the next target that can be dialed; without one the connection ends. */
static void proxy_conn_dial(struct proxy_conn *c)
{
    struct proxy_side *endpoint = &c->sides[1];

    proxy_conn_drop_dial(c);
    while (endpoint->fd < 0 && c->dialed < c->ntarget) {
        endpoint->fd = proxy_connect(&c->targets[c->dialed++], SOCK_STREAM);
    }
    if (endpoint->fd < 0) {
        proxy_conn_reset(c->sides[0].fd);
        proxy_conn_free(c);
        return;
    }
    endpoint->watch = net_watch_add(c->p->o.loop, endpoint->fd, EPOLLOUT, proxy_conn_on_dialed, c);
    net_timer_at(c->timer, net_loop_now_ns(c->p->o.loop) + DIAL_NS);
}

void proxy_conn_new(struct proxy *p, int fd, const struct proxy_target *targets, uint32_t n)
{
    struct proxy_conn *c = hk_zalloc(sizeof(*c));

    c->p = p;
    c->sides[0].fd = fd;
    c->sides[1].fd = -1;
    c->ntarget = HK_MIN(n, (uint32_t)TARGETS_MAX);
    if (c->ntarget > 0) {
        memcpy(c->targets, targets, c->ntarget * sizeof(*targets));
    }
    c->timer = net_timer_new(p->o.loop, proxy_conn_on_timeout, c);
    hk_vec_push(&p->conns, c);
    proxy_conn_tune(fd);
    proxy_conn_dial(c);
}

void proxy_conn_free(struct proxy_conn *c)
{
    for (size_t i = 0; i < HK_LEN(c->sides); i++) {
        net_watch_del(c->sides[i].watch);
        if (c->sides[i].fd >= 0) {
            close(c->sides[i].fd);
        }
        hk_buf_fini(&c->sides[i].held);
    }
    net_timer_free(c->timer);
    proxy_on_conn_end(c->p, c);
    hk_free(c);
}
