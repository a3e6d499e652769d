// SPDX-License-Identifier: Apache-2.0
// Probes: connects and, except for TCP, writes the request and reads the needed part of the answer.
//
//   connecting --> (tcp) good
//              --> request sent --> good if the answer says so
//   any failure, and the deadline --> not good
#include "net/probe.h"

#include "net/dial.h"
#include "net/probe_priv.h"

#include <errno.h>
#include <sys/epoll.h>

/* A status line is short, and so are gRPC's first frames. A server that sends more before them does
 * not speak the protocol. */
#define ANSWER_MAX_BYTES 4096u

struct net_probe {
    struct net_dial *dial; /* NULL: there is nothing to send */
    struct net_timer *timer;
    void (*done)(void *ctx, struct net_probe *p, bool good);
    void *ctx;
    enum net_probe_kind kind;
    bool any_status;
    struct hk_buf out, in;
    size_t sent;
};

static void net_probe_finish(struct net_probe *p, bool good)
{
    p->done(p->ctx, p, good);
}

static void net_probe_on_timeout(void *ctx)
{
    net_probe_finish(ctx, false);
}

static bool is_patience(int e)
{
    return e == EAGAIN || e == EINTR;
}

/* ---- answers ---- */

/* The status in "HTTP/1.1 204 No Content"; 0 if the line has another form. */
static int net_probe_http_status(const struct hk_buf *line)
{
    int status = 0;

    return sscanf(line->data, "HTTP/1.%*1[01] %3d", &status) == 1 ? status : 0;
}

/* 1: good, 0: not good, -1: more bytes are needed. */
static int net_probe_evaluate_reply(const struct net_probe *p)
{
    int status;

    if (p->kind == NET_PROBE_GRPC) {
        return probe_grpc_answer(&p->in);
    }
    if (p->in.len == 0 || !memchr(p->in.data, '\n', p->in.len)) {
        return -1;
    }
    status = net_probe_http_status(&p->in);
    return p->any_status ? status > 0 : status >= 200 && status <= 399;
}

static void read_more(struct net_probe *p)
{
    char chunk[ANSWER_MAX_BYTES];
    int verdict;

    do { /* TLS may have buffered more than the socket shows */
        const ssize_t n = net_dial_read(p->dial, chunk, sizeof(chunk));

        if (n < 0 && is_patience(errno)) {
            return;
        }
        hk_buf_add(&p->in, chunk, (size_t)HK_MAX(n, 0));
        verdict = net_probe_evaluate_reply(p);
        if (verdict < 0 && (n <= 0 || p->in.len >= ANSWER_MAX_BYTES)) {
            verdict = 0;
        }
    } while (verdict < 0);
    net_probe_finish(p, verdict > 0);
}

static void write_more(struct net_probe *p)
{
    const ssize_t n = net_dial_write(p->dial, p->out.data + p->sent, p->out.len - p->sent);

    if (n < 0) {
        if (!is_patience(errno)) {
            net_probe_finish(p, false);
        }
        return;
    }
    p->sent += (size_t)n;
    net_dial_want(p->dial, p->sent < p->out.len ? EPOLLOUT : EPOLLIN);
}

/* ---- starting ---- */

static void net_probe_on_opened(void *ctx, const char *why)
{
    struct net_probe *p = ctx;

    if (why || p->kind == NET_PROBE_TCP) {
        net_probe_finish(p, !why);
    } else {
        net_dial_want(p->dial, EPOLLOUT);
    }
}

static void net_probe_on_ready(void *ctx, uint32_t events)
{
    struct net_probe *p = ctx;

    if (p->sent < p->out.len) {
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

static void net_probe_write_request(struct net_probe *p, const struct net_probe_opts *o)
{
    if (o->kind == NET_PROBE_GRPC) {
        probe_grpc_request(o, &p->out);
    } else if (o->kind != NET_PROBE_TCP) {
        write_get(p, o);
    }
}

/* Whether the text can be part of a request line or header unchanged. */
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
    return is_plain(o->path);
}

struct net_probe *net_probe_new(struct net_loop *l, const struct net_probe_opts *o)
{
    struct net_probe *p = hk_zalloc(sizeof(*p));
    const bool can = can_ask(o);

    *p = (struct net_probe){
        .done = o->done, .ctx = o->ctx, .kind = o->kind, .any_status = o->any_status};
    p->timer = net_timer_new(l, net_probe_on_timeout, p);
    net_timer_at(p->timer, net_loop_now_ns(l) + (can ? o->timeout_ns : 0));
    if (can) {
        net_probe_write_request(p, o);
        p->dial = net_dial_new(l, &(struct net_dial_opts){.host = o->host,
                                                          .port = o->port,
                                                          .tls = o->kind == NET_PROBE_HTTPS,
                                                          .opened = net_probe_on_opened,
                                                          .ready = net_probe_on_ready,
                                                          .ctx = p});
    }
    return p;
}

void net_probe_free(struct net_probe *p)
{
    if (!p) {
        return;
    }
    net_dial_free(p->dial);
    net_timer_free(p->timer);
    hk_buf_fini(&p->out);
    hk_buf_fini(&p->in);
    hk_free(p);
}
