// SPDX-License-Identifier: Apache-2.0
// Connections. Each has one query at a time: while it waits for a reply, or its client does not read
// one, nothing more is read from it.
#include "dns/dns_priv.h"
#include "net/listen.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#define SECOND_NS ((int64_t)1000 * 1000 * 1000)
#define IDLE_NS (20 * SECOND_NS)
#define AGAIN_NS (SECOND_NS / 5)

enum {
    QUERY_MAX = 4096, /* bytes; with every option that is known a query is much smaller */
    LENGTH_SIZE = 2,
    ACCEPTS = 64, /* before others get their turn */
};

struct dns_conn {
    struct dns *d;
    int fd;
    struct net_watch *watch;
    struct net_timer *timer; /* of silence */
    int64_t used_ns;
    bool waits;            /* for a reply */
    struct hk_buf in, out; /* with the length in front of each message */
};

static void conn_free(struct dns_conn *c)
{
    struct dns *d = c->d;

    for (uint32_t i = 0; i < d->conns.len; i++) {
        if (d->conns.at[i] == c) {
            hk_vec_swap_remove(&d->conns, i);
            break;
        }
    }
    if (c->waits) {
        dns_drop_pending(d, c);
    }
    net_watch_del(c->watch);
    net_timer_free(c->timer);
    close(c->fd);
    hk_buf_fini(&c->in);
    hk_buf_fini(&c->out);
    hk_free(c);
}

static void conn_on_idle(void *conn)
{
    conn_free(conn);
}

static void conn_touch(struct dns_conn *c)
{
    c->used_ns = net_loop_now_ns(c->d->o.loop);
    net_timer_at(c->timer, c->used_ns + IDLE_NS);
}

/* ---- one connection ---- */

/* The next whole query; "": none has arrived. False: it is too long. */
static bool conn_next_query(const struct dns_conn *c, struct hk_str *ret)
{
    const struct hk_str in = hk_buf_str(&c->in);
    size_t n;

    *ret = HK_STR("");
    if (in.n < LENGTH_SIZE) {
        return true;
    }
    n = dns_message_id(in);
    if (n == 0 || n > QUERY_MAX) {
        return false;
    }
    if (in.n - LENGTH_SIZE >= n) {
        *ret = (struct hk_str){in.s + LENGTH_SIZE, n};
    }
    return true;
}

/* False: the connection has to end. */
static bool conn_handle_next(struct dns_conn *c)
{
    const struct dns_client client = {.conn = c};
    struct hk_str query;

    while (!c->waits && c->out.len == 0) {
        if (!conn_next_query(c, &query)) {
            return false;
        }
        if (query.n == 0) {
            return true;
        }
        c->waits = true;
        if (!dns_handle(c->d, query, &client)) {
            return false;
        }
        hk_buf_drop(&c->in, LENGTH_SIZE + query.n);
    }
    return true;
}

static bool conn_write(struct dns_conn *c)
{
    ssize_t n;

    if (c->out.len == 0) {
        return true;
    }
    n = send(c->fd, c->out.data, c->out.len, MSG_NOSIGNAL);
    if (n < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    hk_buf_drop(&c->out, (size_t)n);
    conn_touch(c);
    return true;
}

/* Writes what is due and handles queries that have arrived; false: the connection has to end. */
static bool conn_advance(struct dns_conn *c)
{
    bool more = true;

    while (more) {
        if (!conn_write(c)) {
            return false;
        }
        more = c->out.len == 0 && !c->waits;
        if (more && !conn_handle_next(c)) {
            return false;
        }
        more = more && c->out.len > 0;
    }
    net_watch_change(c->watch, c->out.len > 0 ? EPOLLOUT : c->waits ? 0 : EPOLLIN);
    return true;
}

void dns_conn_reply(struct dns_conn *c, struct hk_str reply, bool now)
{
    const char length[LENGTH_SIZE] = {(char)(reply.n >> 8), (char)reply.n};

    c->waits = false;
    hk_buf_add(&c->out, length, sizeof(length));
    hk_buf_addstr(&c->out, reply);
    if (!now && !conn_advance(c)) { /* now: below conn_advance already */
        conn_free(c);
    }
}

static bool conn_read(struct dns_conn *c)
{
    char bytes[QUERY_MAX];
    const ssize_t n = recv(c->fd, bytes, sizeof(bytes), 0);

    if (n <= 0) {
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    }
    hk_buf_add(&c->in, bytes, (size_t)n);
    conn_touch(c);
    return true;
}

static void conn_on_event(void *conn, uint32_t events)
{
    struct dns_conn *c = conn;

    if ((events & (EPOLLERR | EPOLLHUP)) || ((events & EPOLLIN) && !conn_read(c)) ||
        !conn_advance(c)) {
        conn_free(c);
    }
}

/* ---- clients ---- */

/* The one that has been silent for the longest time makes room for a new one. */
static void dns_tcp_make_room(struct dns *d)
{
    struct dns_conn *oldest = d->conns.len > 0 ? d->conns.at[0] : NULL;

    if (d->conns.len < d->o.max_connections) {
        return;
    }
    for (uint32_t i = 1; i < d->conns.len; i++) {
        oldest = d->conns.at[i]->used_ns < oldest->used_ns ? d->conns.at[i] : oldest;
    }
    conn_free(oldest);
}

static void dns_tcp_add(struct dns *d, int fd)
{
    struct dns_conn *c = hk_zalloc(sizeof(*c));

    dns_tcp_make_room(d);
    c->d = d;
    c->fd = fd;
    c->watch = net_watch_add(d->o.loop, fd, EPOLLIN, conn_on_event, c);
    c->timer = net_timer_new(d->o.loop, conn_on_idle, c);
    conn_touch(c);
    hk_vec_push(&d->conns, c);
}

/* Without descriptors the listener stays readable: watching it would only turn the loop in
 * circles. */
static void dns_tcp_pause(struct dns *d)
{
    net_watch_change(d->tcp_watch, 0);
    net_timer_at(d->again, net_loop_now_ns(d->o.loop) + AGAIN_NS);
}

static void dns_tcp_on_again(void *dns)
{
    struct dns *d = dns;

    net_watch_change(d->tcp_watch, EPOLLIN);
}

static void dns_tcp_on_client(void *dns, uint32_t events)
{
    struct dns *d = dns;

    for (int i = 0; i < ACCEPTS; i++) {
        const int fd = accept4(d->tcp, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                dns_tcp_pause(d);
            }
            return;
        }
        dns_tcp_add(d, fd);
    }
}

int dns_tcp_open(struct dns *d, struct hk_err *err)
{
    const int rc = listen_on(hk_str(d->o.address), d->o.port, &d->tcp, &d->port, err);

    if (rc < 0) {
        d->tcp = -1;
        return rc;
    }
    d->tcp_watch = net_watch_add(d->o.loop, d->tcp, EPOLLIN, dns_tcp_on_client, d);
    d->again = net_timer_new(d->o.loop, dns_tcp_on_again, d);
    return 0;
}

void dns_tcp_close(struct dns *d)
{
    while (d->conns.len > 0) {
        conn_free(d->conns.at[0]);
    }
    net_watch_del(d->tcp_watch);
    net_timer_free(d->again);
    if (d->tcp >= 0) {
        close(d->tcp);
    }
}
