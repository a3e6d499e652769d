// SPDX-License-Identifier: Apache-2.0
// Connections from accept to close. This file accepts them and gives them to the library, because
// the library itself would stop listening when descriptors run out, and wait for an event that may
// never come. When accept() fails for lack of descriptors or memory, idle connections are closed;
// if there are none, accepting pauses until a connection has ended or some time has passed.
#include "net/http_priv.h"

#include "base/log.h"
#include "net/identity.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    ACCEPT_BATCH = 64, /* connections accepted before other events get their turn */
    SHUT_BATCH = 4,
    ACCEPT_RETRY_MS = 200,
    DRAIN_READS = 64,
    QUIET_MS = 1000, /* time without too many connections before that is logged */
};

/* ---- bytes over TLS ---- */

/* Over TLS the library sends the head and the body of an answer separately. MSG_MORE makes the
 * kernel send both in one packet, so the peer wakes up once. */
static ssize_t tls_push(gnutls_transport_ptr_t ptr, const giovec_t *parts, int n)
{
    struct connection *c = ptr;
    const struct msghdr m = {.msg_iov = (struct iovec *)parts, .msg_iovlen = (size_t)n};
    const int more = c->head_next ? MSG_MORE : 0;

    c->head_next = false;
    c->server->moved = true;
    return sendmsg(c->fd, &m, MSG_NOSIGNAL | more);
}

/* Records whether a run of the library moved any data. */
static ssize_t tls_pull(gnutls_transport_ptr_t ptr, void *data, size_t n)
{
    struct connection *c = ptr;
    const ssize_t got = recv(c->fd, data, n, 0);

    c->server->moved |= got >= 0 || errno != EAGAIN;
    return got;
}

static gnutls_session_t tls_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);

    return info ? info->tls_session : NULL;
}

static void take_over_transport(struct connection *c)
{
    gnutls_session_t tls = tls_of(c->mhd);

    if (tls) {
        gnutls_transport_set_ptr(tls, c);
        gnutls_transport_set_pull_function(tls, tls_pull);
        gnutls_transport_set_vec_push_function(tls, tls_push);
    }
}

/* take_over_transport stored the connection in the session. */
int http_show_identity(gnutls_session_t tls, const gnutls_datum_t *authorities, int nauthorities,
                       const gnutls_pk_algorithm_t *algorithms, int nalgorithms,
                       gnutls_pcert_st **chain, unsigned *n, gnutls_privkey_t *key)
{
    struct connection *c = gnutls_transport_get_ptr(tls);

    if (!c->shown) {
        c->shown = identity_ref(c->server->identity);
    }
    identity_show(c->shown, chain, n, key);
    return 0;
}

/* If unread bytes remain when the socket is closed, the kernel resets the connection, and the peer
 * may lose the answer. */
static void drain_socket(int fd)
{
    char waste[4096];

    for (uint32_t k = 0; k < DRAIN_READS && recv(fd, waste, sizeof(waste), MSG_DONTWAIT) > 0; k++) {
    }
}

/* A few hundred bytes at the start of an answer fit an empty socket buffer. Bytes that cannot be
 * sent at once are lost, and the peer sees the connection closed. */
void http_answer_raw(struct connection *c, int status)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0}, body = {0};
    gnutls_session_t tls = tls_of(c->mhd);

    c->server->opts.refusal(c->server->opts.ctx, status, &body);
    hk_buf_addf(&text,
                "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                "Connection: close\r\n\r\n",
                status, MHD_get_reason_phrase_for((unsigned)status), body.len);
    hk_buf_addstr(&text, hk_buf_str(&body));
    if (tls) {
        (void)!gnutls_record_send(tls, text.data, text.len);
        (void)!gnutls_bye(tls, GNUTLS_SHUT_WR);
    } else {
        (void)!send(c->fd, text.data, text.len, MSG_NOSIGNAL);
    }
    drain_socket(c->fd);
    shutdown(c->fd, SHUT_WR);
}

/* ---- connections ---- */

/* Shuts the socket down; the library then closes the connection. */
static void on_deadline(void *ctx)
{
    struct connection *c = ctx;

    shutdown(c->fd, SHUT_RDWR);
}

static void write_host(const struct sockaddr *addr, char host[INET6_ADDRSTRLEN], uint16_t *port)
{
    host[0] = '\0';
    *port = 0;
    if (addr->sa_family == AF_INET) {
        const struct sockaddr_in *a = (const void *)addr;
        inet_ntop(AF_INET, &a->sin_addr, host, INET6_ADDRSTRLEN);
        *port = ntohs(a->sin_port);
    } else if (addr->sa_family == AF_INET6) {
        const struct sockaddr_in6 *a = (const void *)addr;
        inet_ntop(AF_INET6, &a->sin6_addr, host, INET6_ADDRSTRLEN);
        *port = ntohs(a->sin6_port);
    }
}

static void connection_begin(struct http_server *s, struct MHD_Connection *mhd, void **ret)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    struct connection *c = hk_zalloc(sizeof(*c));
    char host[INET6_ADDRSTRLEN];
    uint16_t port;

    c->server = s;
    c->mhd = mhd;
    c->fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    c->deadline = net_timer_new(s->loop, on_deadline, c);
    http_set_deadline(c, s->opts.header_timeout_ms);
    write_host(info->client_addr, host, &port);
    snprintf(c->peer, sizeof(c->peer), "%s:%u", host, port);
    take_over_transport(c);
    http_group_join(c, http_group_get(s, false, hk_str(host)));
    http_group_list(c);
    s->moved = true;
    c->next = s->connections;
    if (c->next) {
        c->next->prev = c;
    }
    s->connections = c;
    s->nconnections++;
    *ret = c;
}

/* Waits before logging: at the limit, one connection is closed for each new one. */
static void log_room(struct http_server *s)
{
    const int64_t quiet_ns = net_loop_now_ns(s->loop) - s->full_ns;

    if (s->full && quiet_ns >= (int64_t)QUIET_MS * 1000000 &&
        s->nconnections < s->opts.max_connections / 8 * 7) {
        s->full = false;
        hk_log(HK_LOG_INFO, "no longer too many connections",
               "connections=%u closed=%llu refused=%llu", s->nconnections,
               (unsigned long long)s->nmade_room, (unsigned long long)s->nrefused);
    }
}

static void accept_resume(void *ctx)
{
    struct http_server *s = ctx;

    if (s->listen_watch) {
        net_watch_change(s->listen_watch, EPOLLIN);
    }
}

static void connection_end(struct http_server *s, struct connection *c)
{
    /* The library does not report the end of a request whose parameters did not fit in memory. */
    http_request_free(c->request);
    if (c->prev) {
        c->prev->next = c->next;
    } else {
        s->connections = c->next;
    }
    if (c->next) {
        c->next->prev = c->prev;
    }
    http_group_join(c, NULL);
    s->nconnections--;
    s->nshut -= c->closing;
    s->moved = true;
    log_room(s);
    if (s->accept_paused) {
        net_timer_at(s->accept_retry, net_loop_now_ns(s->loop));
    }
    net_timer_free(c->deadline);
    cert_subject_fini(&c->subject);
    identity_unref(c->shown);
    tunnel_fini(&c->tunnel);
    hk_free(c);
}

void http_on_connection(void *cls, struct MHD_Connection *mhd, void **ctx,
                        enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        connection_begin(cls, mhd, ctx);
    } else if (*ctx) {
        connection_end(cls, *ctx);
        *ctx = NULL;
    }
}

struct connection *http_connection_of(struct MHD_Connection *mhd)
{
    return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* ---- accepting ---- */

/* The limit that the new connection would exceed; NULL: none. */
static const char *full_of(const struct http_server *s, int fd, const struct http_group *peers)
{
    const struct http_opts *o = &s->opts;

    if (o->max_per_peer > 0 && peers && peers->n >= o->max_per_peer) {
        return "connections of one address";
    }
    if (s->nconnections - s->nshut >= o->max_connections) {
        return "connections";
    }
    return o->max_descriptor > 0 && (uint32_t)fd >= o->max_descriptor ? "descriptors" : NULL;
}

/* Logs once per period. */
static void log_full(struct http_server *s, const char *what, bool made_room)
{
    if (!s->full) {
        s->full = true;
        s->nrefused = s->nmade_room = 0;
        hk_log(HK_LOG_WARN,
               made_room ? "too many connections, closing idle ones"
                         : "too many connections, refusing new ones",
               "too_many=\"%s\" connections=%u limit=%u", what, s->nconnections - s->nshut,
               s->opts.max_connections);
    }
    s->full_ns = net_loop_now_ns(s->loop);
    s->nmade_room += made_room;
    s->nrefused += !made_room;
}

/* At a limit, closes an idle connection for the new one; false: there is none. */
static bool admit_newcomer(struct http_server *s, int fd, const struct sockaddr *addr)
{
    char host[INET6_ADDRSTRLEN];
    uint16_t port;

    write_host(addr, host, &port);
    struct http_group *peers = http_group_find(s, false, hk_str(host));
    const char *what = full_of(s, fd, peers);
    if (!what) {
        return true;
    }
    const bool of_peer = s->opts.max_per_peer > 0 && peers && peers->n >= s->opts.max_per_peer;
    const bool made_room = of_peer ? http_group_make_room(peers) : http_make_room(s);
    log_full(s, what, made_room);
    return made_room;
}

static void accept_one(struct http_server *s, int fd, const struct sockaddr *addr, socklen_t n)
{
    if (!admit_newcomer(s, fd, addr)) {
        close(fd);
    } else if (MHD_add_connection(s->mhd, fd, addr, n) != MHD_YES) { /* closes it on failure */
        hk_log(HK_LOG_WARN, "cannot serve a connection", "error=\"%s\" connections=%u",
               strerror(errno), s->nconnections);
    }
}

static void accept_pause(struct http_server *s, int error)
{
    if (!s->accept_paused) {
        s->accept_paused = true;
        hk_log(HK_LOG_WARN, "cannot accept connections, waiting until there is room",
               "error=\"%s\" connections=%u", strerror(error), s->nconnections);
    }
    net_watch_change(s->listen_watch, 0);
    net_timer_at(s->accept_retry, net_loop_now_ns(s->loop) + (int64_t)ACCEPT_RETRY_MS * 1000000);
}

static void accept_works(struct http_server *s)
{
    if (s->accept_paused) {
        s->accept_paused = false;
        hk_log(HK_LOG_INFO, "accepting connections again", "connections=%u", s->nconnections);
    }
}

/* Whether to try accept() again now. */
static bool accept_failed(struct http_server *s, int error)
{
    switch (error) {
    case EAGAIN:
        accept_works(s);
        return false;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
        http_make_room(s); /* its descriptor becomes free when the library has run */
        accept_pause(s, error);
        return false;
    default:
        return true; /* the connection was closed already */
    }
}

static void on_listen(void *ctx, uint32_t events)
{
    struct http_server *s = ctx;

    /* Connections that were shut down keep their descriptors until the library has run. */
    for (uint32_t k = 0; k == 0 || (k < ACCEPT_BATCH && s->nshut < SHUT_BATCH); k++) {
        union {
            struct sockaddr any;
            struct sockaddr_in6 v6;
        } addr = {0};
        socklen_t n = sizeof(addr);
        const int fd = accept4(s->listen_fd, &addr.any, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            accept_works(s);
            accept_one(s, fd, &addr.any, n);
        } else if (!accept_failed(s, errno)) {
            break;
        }
    }
    http_run(s);
}

void http_accept_start(struct http_server *s)
{
    s->accept_retry = net_timer_new(s->loop, accept_resume, s);
    s->listen_watch = net_watch_add(s->loop, s->listen_fd, EPOLLIN, on_listen, s);
}

void http_accept_stop(struct http_server *s)
{
    net_watch_del(s->listen_watch);
    s->listen_watch = NULL;
    if (s->listen_fd >= 0) {
        close(s->listen_fd);
    }
    s->listen_fd = -1;
}
