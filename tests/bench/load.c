// SPDX-License-Identifier: Apache-2.0
// Connections of the load generator. It must be cheap, for it shares the machine with the server
// it measures: reads are buffered below TLS, so that one system call takes many records, bodies of
// streams are handed on without a copy, and certificates are not checked.
#include "bench/load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_AHEAD = 64 * 1024, RECORD = 16 * 1024 };

enum parse { HEAD, BODY, CHUNK_SIZE, CHUNK, CHUNK_END };

struct conn {
    struct load *load;
    uint32_t i;
    int fd;
    gnutls_session_t tls;
    struct net_watch *watch;
    bool ready, resting, stalled, want_write;

    struct hk_buf out;
    size_t out_at;

    enum parse state;
    struct hk_buf in; /* not yet parsed: [in_at, in.len) */
    size_t in_at;
    int status;
    size_t left;        /* of the body or chunk */
    struct hk_buf body; /* in chunks, when nobody takes the pieces */
};

struct load {
    struct net_loop *loop;
    struct load_ops ops;
    void *ctx;
    gnutls_certificate_credentials_t cred;
    gnutls_priority_t prio;
    struct conn *conns;
    uint32_t n, nready;
    bool all_ready;
    /* What one system call brought and TLS has not taken yet. Empty between connections: reading
     * goes on until the session has nothing more. */
    char ahead[READ_AHEAD];
    size_t ahead_at, ahead_len;
    bool ahead_dry; /* the last read got less than it asked for */
};

__attribute__((noreturn))
HK_PRINTF(2, 3) static void broken(const struct conn *c, const char *fmt, ...)
{
    va_list ap;

    fprintf(stderr, "hekla-bench-server: client %u: ", c->i);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\n");
    _exit(1);
}

/* ---- parsing answers ---- */

static struct hk_str unparsed(const struct conn *c)
{
    return (struct hk_str){c->in.data + c->in_at, c->in.len - c->in_at};
}

static void on_body_end(struct conn *c, struct hk_str body)
{
    struct load *l = c->load;

    c->state = HEAD;
    c->resting = true;
    l->ops.answer(l->ctx, c->i, c->status, body);
    load_kick(l, c->i);
}

/* The server writes header names one way only. */
static bool parse_head(struct conn *c)
{
    const struct hk_str all = unparsed(c);
    const char *end = all.n > 0 ? memmem(all.s, all.n, "\r\n\r\n", 4) : NULL;

    if (!end) {
        return false;
    }
    const size_t n = (size_t)(end - all.s) + 4;
    const char *length = memmem(all.s, n, "Content-Length: ", 16);
    if (all.n < 12 || memcmp(all.s, "HTTP/1.1 ", 9) != 0) {
        broken(c, "no status line");
    }
    c->status = (int)strtol(all.s + 9, NULL, 10);
    c->left = length ? strtoul(length + 16, NULL, 10) : 0;
    c->state = length ? BODY : CHUNK_SIZE;
    c->in_at += n;
    return true;
}

static bool parse_body(struct conn *c)
{
    const struct hk_str all = unparsed(c);

    if (all.n < c->left) {
        hk_buf_reserve(&c->in, c->left - all.n);
        return false;
    }
    c->in_at += c->left;
    on_body_end(c, (struct hk_str){all.s, c->left});
    return true;
}

static bool parse_chunk_size(struct conn *c)
{
    const struct hk_str all = unparsed(c);
    const char *end = all.n > 0 ? memmem(all.s, all.n, "\r\n", 2) : NULL;

    if (!end) {
        return false;
    }
    c->left = strtoul(all.s, NULL, 16);
    c->in_at += (size_t)(end - all.s) + 2;
    c->state = c->left > 0 ? CHUNK : CHUNK_END;
    return true;
}

static bool parse_chunk(struct conn *c)
{
    struct hk_str data = unparsed(c);

    data.n = HK_MIN(data.n, c->left);
    if (c->load->ops.piece && data.n > 0) {
        c->load->ops.piece(c->load->ctx, c->i, data);
    } else {
        hk_buf_addstr(&c->body, data);
    }
    c->in_at += data.n;
    c->left -= data.n;
    if (c->left > 0 || unparsed(c).n < 2) {
        return false;
    }
    c->in_at += 2;
    c->state = CHUNK_SIZE;
    return true;
}

static bool parse_chunk_end(struct conn *c)
{
    if (unparsed(c).n < 2) {
        return false;
    }
    c->in_at += 2;
    on_body_end(c, hk_buf_str(&c->body));
    hk_buf_clear(&c->body);
    return true;
}

static void parse_all(struct conn *c)
{
    static bool (*const steps[])(struct conn * c) = {
        [HEAD] = parse_head,   [BODY] = parse_body,           [CHUNK_SIZE] = parse_chunk_size,
        [CHUNK] = parse_chunk, [CHUNK_END] = parse_chunk_end,
    };

    while (steps[c->state](c)) {
    }
    if (c->in_at > 0) {
        c->in.len -= c->in_at;
        memmove(c->in.data, c->in.data + c->in_at, c->in.len);
        c->in_at = 0;
    }
}

/* ---- reading and writing ---- */

static ssize_t pull(gnutls_transport_ptr_t ptr, void *buf, size_t n)
{
    struct conn *c = ptr;
    struct load *l = c->load;

    if (l->ahead_at == l->ahead_len) {
        if (l->ahead_dry) {
            gnutls_transport_set_errno(c->tls, EAGAIN);
            return -1;
        }
        const ssize_t got = recv(c->fd, l->ahead, sizeof(l->ahead), 0);
        if (got <= 0) {
            gnutls_transport_set_errno(c->tls, got == 0 ? ECONNRESET : errno);
            return got;
        }
        l->ahead_at = 0;
        l->ahead_len = (size_t)got;
        l->ahead_dry = (size_t)got < sizeof(l->ahead);
    }
    n = HK_MIN(n, l->ahead_len - l->ahead_at);
    memcpy(buf, l->ahead + l->ahead_at, n);
    l->ahead_at += n;
    return (ssize_t)n;
}

static ssize_t push(gnutls_transport_ptr_t ptr, const void *buf, size_t n)
{
    struct conn *c = ptr;
    const ssize_t sent = send(c->fd, buf, n, MSG_NOSIGNAL);

    if (sent < 0) {
        gnutls_transport_set_errno(c->tls, errno);
    }
    return sent;
}

static void want(struct conn *c, bool write)
{
    if (c->want_write != write) {
        c->want_write = write;
        net_watch_change(c->watch, EPOLLIN | (write ? EPOLLOUT : 0U));
    }
}

static void flush(struct conn *c)
{
    while (c->out_at < c->out.len) {
        const size_t n = HK_MIN(c->out.len - c->out_at, (size_t)RECORD);
        const ssize_t sent = gnutls_record_send(c->tls, c->out.data + c->out_at, n);
        if (sent == GNUTLS_E_AGAIN) {
            want(c, true);
            return;
        }
        if (sent < 0 && sent != GNUTLS_E_INTERRUPTED) {
            broken(c, "cannot send: %s", gnutls_strerror((int)sent));
        }
        c->out_at += sent > 0 ? (size_t)sent : 0;
    }
    hk_buf_clear(&c->out);
    c->out_at = 0;
    want(c, false);
}

/* Until the session has no more: see struct load. */
static void drain(struct conn *c)
{
    c->load->ahead_dry = false;
    for (;;) {
        hk_buf_reserve(&c->in, RECORD + 1);
        const ssize_t got =
            gnutls_record_recv(c->tls, c->in.data + c->in.len, c->in.cap - c->in.len - 1);
        if (got == GNUTLS_E_AGAIN) {
            break;
        }
        if (got == 0 || (got < 0 && gnutls_error_is_fatal((int)got))) {
            broken(c, "the server closed the connection: %s", gnutls_strerror((int)got));
        }
        if (got > 0) {
            c->in.len += (size_t)got;
            parse_all(c);
        }
    }
}

static void shake_hands(struct conn *c)
{
    struct load *l = c->load;

    l->ahead_dry = false;
    const int rc = gnutls_handshake(c->tls);
    if (rc == GNUTLS_E_SUCCESS) {
        c->ready = true;
        l->all_ready = ++l->nready == l->n;
        want(c, false);
        drain(c); /* session tickets may have come along */
    } else if (gnutls_error_is_fatal(rc)) {
        broken(c, "handshake: %s", gnutls_strerror(rc));
    } else {
        want(c, gnutls_record_get_direction(c->tls) == 1);
    }
}

static void on_socket(void *ctx, uint32_t events)
{
    struct conn *c = ctx;

    if (c->stalled) {
        net_watch_del(c->watch); /* the server may well be tired of it */
        c->watch = NULL;
        return;
    }
    if (!c->ready) {
        shake_hands(c);
        return;
    }
    if (events & EPOLLOUT) {
        flush(c);
    }
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        drain(c);
    }
}

/* ---- the generator ---- */

int load_connect(uint16_t port)
{
    const struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int one = 1;

    if (fd < 0 || connect(fd, (const void *)&at, sizeof(at)) < 0) {
        fprintf(stderr, "hekla-bench-server: cannot connect to port %u: %s\n", port,
                strerror(errno));
        _exit(1);
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    const int flags = fcntl(fd, F_GETFL);
    hk_assert(fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0);
    return fd;
}

static void open_conn(struct load *l, uint32_t i, uint16_t port)
{
    struct conn *c = &l->conns[i];

    c->load = l;
    c->i = i;
    c->resting = true;
    c->fd = load_connect(port);
    hk_assert(gnutls_init(&c->tls, GNUTLS_CLIENT | GNUTLS_NONBLOCK) == 0);
    gnutls_priority_set(c->tls, l->prio);
    gnutls_credentials_set(c->tls, GNUTLS_CRD_CERTIFICATE, l->cred);
    gnutls_transport_set_ptr(c->tls, c);
    gnutls_transport_set_pull_function(c->tls, pull);
    gnutls_transport_set_push_function(c->tls, push);
    c->watch = net_watch_add(l->loop, c->fd, EPOLLIN, on_socket, c);
    shake_hands(c);
}

struct load *load_new(struct net_loop *loop, uint16_t port, uint32_t n, const struct load_ops *ops,
                      void *ctx)
{
    struct load *l = hk_zalloc(sizeof(*l));

    l->loop = loop;
    l->ops = *ops;
    l->ctx = ctx;
    l->n = n;
    l->conns = hk_zalloc_array(n, sizeof(*l->conns));
    hk_assert(gnutls_certificate_allocate_credentials(&l->cred) == 0);
    hk_assert(gnutls_priority_init(&l->prio, "NORMAL", NULL) == 0);
    for (uint32_t i = 0; i < n; i++) {
        struct hk_err err;
        open_conn(l, i, port);
        hk_assert(net_loop_turn(loop, 0, &err) == 0);
    }
    hk_assert(load_wait(loop, &l->all_ready, 60));
    return l;
}

void load_free(struct load *l)
{
    if (!l) {
        return;
    }
    for (uint32_t i = 0; i < l->n; i++) {
        struct conn *c = &l->conns[i];
        net_watch_del(c->watch);
        gnutls_deinit(c->tls);
        close(c->fd);
        hk_buf_fini(&c->in);
        hk_buf_fini(&c->body);
        hk_buf_fini(&c->out);
    }
    gnutls_priority_deinit(l->prio);
    gnutls_certificate_free_credentials(l->cred);
    hk_free(l->conns);
    hk_free(l);
}

void load_kick(struct load *l, uint32_t i)
{
    struct conn *c = &l->conns[i];

    if (c->resting && l->ops.next(l->ctx, i, &c->out)) {
        c->resting = false;
        flush(c);
    }
}

void load_kick_all(struct load *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        load_kick(l, i);
    }
}

void load_stall(struct load *l, uint32_t i)
{
    struct conn *c = &l->conns[i];

    c->stalled = true;
    net_watch_change(c->watch, 0);
}

bool load_wait(struct net_loop *loop, const bool *done, double seconds)
{
    struct hk_err err = {0};
    const int64_t end = net_loop_now_ns(loop) + (int64_t)(seconds * 1e9);

    while (!*done) {
        if (net_loop_turn(loop, 100, &err) < 0) {
            fprintf(stderr, "hekla-bench-server: %s\n", err.text);
            return false;
        }
        if (net_loop_now_ns(loop) >= end) {
            return *done;
        }
    }
    return true;
}
