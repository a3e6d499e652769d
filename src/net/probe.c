// SPDX-License-Identifier: Apache-2.0
// Probes: connect, and for all but TCP write the request and read as much of the answer as is
// needed.
//
//   CONNECTING --> (tcp) good
//              --> (https) HANDSHAKE --> ASKING --> good when the answer says so
//   anything that fails, and the deadline --> not good
#include "net/probe.h"

#include "net/probe_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* A status line is short, and so are gRPC's first frames; whoever sends more than this before what
 * we want to know does not speak our language. */
#define ANSWER_MAX_BYTES 4096u

enum probe_state { CONNECTING, HANDSHAKE, ASKING };

struct net_probe {
    struct net_loop *loop;
    struct net_watch *watch;
    struct net_timer *timer;
    int fd; /* -1: could not even begin */
    void (*done)(void *ctx, struct net_probe *p, bool good);
    void *ctx;
    enum net_probe_kind kind;
    enum probe_state state;
    bool any_status;
    gnutls_session_t tls; /* NULL: none */
    gnutls_certificate_credentials_t trust;
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

/* ---- bytes, through TLS or not ---- */

static ssize_t from_tls(ssize_t n)
{
    errno = n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED ? EAGAIN : EIO;
    return n < 0 ? -1 : n;
}

static ssize_t take_bytes(struct net_probe *p, char *to, size_t max)
{
    return p->tls ? from_tls(gnutls_record_recv(p->tls, to, max)) : recv(p->fd, to, max, 0);
}

static ssize_t give_bytes(struct net_probe *p, const char *from, size_t n)
{
    return p->tls ? from_tls(gnutls_record_send(p->tls, from, n))
                  : send(p->fd, from, n, MSG_NOSIGNAL);
}

static bool is_patience(int e)
{
    return e == EAGAIN || e == EINTR;
}

/* ---- answers ---- */

/* "HTTP/1.1 204 No Content": the status, 0 when the line is no such. */
static int status_of(const struct hk_buf *line)
{
    int status = 0;

    return sscanf(line->data, "HTTP/1.%*1[01] %3d", &status) == 1 ? status : 0;
}

/* 1 good, 0 not, -1 more is needed. */
static int judge(const struct net_probe *p)
{
    int status;

    if (p->kind == NET_PROBE_GRPC) {
        return probe_grpc_answer(&p->in);
    }
    if (p->in.len == 0 || !memchr(p->in.data, '\n', p->in.len)) {
        return -1;
    }
    status = status_of(&p->in);
    return p->any_status ? status > 0 : status >= 200 && status <= 399;
}

static void read_more(struct net_probe *p)
{
    char chunk[ANSWER_MAX_BYTES];
    int verdict;

    do { /* TLS may hold more than the socket says */
        const ssize_t n = take_bytes(p, chunk, sizeof(chunk));

        if (n < 0 && is_patience(errno)) {
            return;
        }
        hk_buf_add(&p->in, chunk, (size_t)HK_MAX(n, 0));
        verdict = judge(p);
        if (verdict < 0 && (n <= 0 || p->in.len >= ANSWER_MAX_BYTES)) {
            verdict = 0;
        }
    } while (verdict < 0);
    finish(p, verdict > 0);
}

static void write_more(struct net_probe *p)
{
    const ssize_t n = give_bytes(p, p->out.data + p->sent, p->out.len - p->sent);

    if (n < 0) {
        if (!is_patience(errno)) {
            finish(p, false);
        }
        return;
    }
    p->sent += (size_t)n;
    if (p->sent == p->out.len) {
        net_watch_change(p->watch, EPOLLIN);
    }
}

/* ---- beginnings ---- */

static bool open_tls(struct net_probe *p)
{
    if (gnutls_certificate_allocate_credentials(&p->trust) < 0) {
        p->trust = NULL;
        return false;
    }
    if (gnutls_init(&p->tls, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) < 0) {
        p->tls = NULL;
        return false;
    }
    gnutls_transport_set_int(p->tls, p->fd);
    return gnutls_set_default_priority(p->tls) == 0 &&
           gnutls_credentials_set(p->tls, GNUTLS_CRD_CERTIFICATE, p->trust) == 0;
}

static void shake_hands(struct net_probe *p)
{
    const int rc = gnutls_handshake(p->tls);

    if (rc == 0) {
        p->state = ASKING;
        net_watch_change(p->watch, EPOLLOUT);
    } else if (gnutls_error_is_fatal(rc)) {
        finish(p, false);
    } else {
        net_watch_change(p->watch, gnutls_record_get_direction(p->tls) ? EPOLLOUT : EPOLLIN);
    }
}

static void connected(struct net_probe *p)
{
    int error = 0;
    socklen_t len = sizeof(error);

    if (getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error != 0) {
        finish(p, false);
    } else if (p->kind == NET_PROBE_TCP) {
        finish(p, true);
    } else if (p->kind != NET_PROBE_HTTPS) {
        p->state = ASKING;
        write_more(p);
    } else if (open_tls(p)) {
        p->state = HANDSHAKE;
        shake_hands(p);
    } else {
        finish(p, false);
    }
}

static void on_ready(void *ctx, uint32_t events)
{
    struct net_probe *p = ctx;

    if (p->state == CONNECTING) {
        connected(p);
    } else if (p->state == HANDSHAKE) {
        shake_hands(p);
    } else if (p->sent < p->out.len) {
        write_more(p);
    } else {
        read_more(p);
    }
}

static bool has_header(const struct net_probe_opts *o, const char *name)
{
    for (uint32_t i = 0; i < o->nheader; i++) {
        if (o->headers[i].name.n == strlen(name) &&
            strncasecmp(o->headers[i].name.s, name, strlen(name)) == 0) {
            return true;
        }
    }
    return false;
}

static void write_get(struct net_probe *p, const struct net_probe_opts *o)
{
    const bool v6 = memchr(o->host.s, ':', o->host.n) != NULL;

    hk_buf_addf(&p->out, "GET %s%.*s HTTP/1.1\r\n", o->path.n > 0 && o->path.s[0] == '/' ? "" : "/",
                HK_FMT(o->path));
    if (!has_header(o, "Host")) {
        hk_buf_addf(&p->out, v6 ? "Host: [%.*s]:%u\r\n" : "Host: %.*s:%u\r\n", HK_FMT(o->host),
                    o->port);
    }
    if (!has_header(o, "User-Agent")) {
        hk_buf_adds(&p->out, "User-Agent: hekla\r\n");
    }
    if (!has_header(o, "Accept")) {
        hk_buf_adds(&p->out, "Accept: */*\r\n");
    }
    for (uint32_t i = 0; i < o->nheader; i++) {
        hk_buf_addf(&p->out, "%.*s: %.*s\r\n", HK_FMT(o->headers[i].name),
                    HK_FMT(o->headers[i].value));
    }
    hk_buf_adds(&p->out, "Connection: close\r\n\r\n");
}

static void write_request(struct net_probe *p, const struct net_probe_opts *o)
{
    if (o->kind == NET_PROBE_GRPC) {
        probe_grpc_request(o, &p->out);
    } else if (o->kind != NET_PROBE_TCP) {
        write_get(p, o);
    }
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

static bool can_ask(const struct net_probe_opts *o)
{
    for (uint32_t i = 0; i < o->nheader; i++) {
        if (!is_plain(o->headers[i].name) || !is_plain(o->headers[i].value)) {
            return false;
        }
    }
    return o->host.n < INET6_ADDRSTRLEN && is_plain(o->path);
}

static int dial(const struct net_probe_opts *o)
{
    char host[INET6_ADDRSTRLEN];
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(o->port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(o->port)};
    const bool is_v6 = memchr(o->host.s, ':', o->host.n) != NULL;
    const struct sockaddr *at = is_v6 ? (void *)&v6 : (void *)&v4;
    int fd;

    if (!can_ask(o)) {
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

    *p = (struct net_probe){
        .loop = l, .done = o->done, .ctx = o->ctx, .kind = o->kind, .any_status = o->any_status};
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
    if (p->tls) {
        gnutls_deinit(p->tls);
    }
    if (p->trust) {
        gnutls_certificate_free_credentials(p->trust);
    }
    if (p->fd >= 0) {
        close(p->fd);
    }
    hk_buf_fini(&p->out);
    hk_buf_fini(&p->in);
    hk_free(p);
}
