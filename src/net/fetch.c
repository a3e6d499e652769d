// SPDX-License-Identifier: Apache-2.0
// One request on a connection of its own: connects, sends the head, reads until the end of the body,
// the limit or the timeout.
#include "net/fetch.h"

#include "net/forward_priv.h"
#include "net/http_head.h"

#include <ctype.h>
#include <sys/epoll.h>

struct fetch {
    struct net_dial *server;
    struct net_timer *timeout;
    void (*done)(void *ctx, int status, struct hk_str body, const char *why);
    void *ctx;
    char *authority;
    size_t max_bytes;
    bool opened, over;
    struct forward_way there;
    struct hk_buf back, body;
    size_t at;  /* bytes of back that are used */
    int status; /* 0: the head is not complete */
    struct forward_body framing;
};

static void fetch_finish(struct fetch *f, int status, const char *why)
{
    if (!f->over) {
        f->over = true;
        net_timer_off(f->timeout);
        net_dial_free(f->server);
        f->server = NULL;
        f->done(f->ctx, status, hk_buf_str(&f->body), why);
    }
}

static void fetch_on_timeout(void *ctx)
{
    struct fetch *f = ctx;

    fetch_finish(f, 0,
                 f->opened ? "context deadline exceeded (Client.Timeout exceeded while awaiting "
                             "headers)"
                           : "dial tcp: i/o timeout");
}

static bool fetch_read_head(struct fetch *f)
{
    const size_t n = http_head_end(hk_buf_str(&f->back));
    const struct hk_str head = {f->back.data, n};

    if (n == 0) {
        return false;
    }
    f->at = n;
    f->status = http_head_status(head);
    if (f->status < 200 || forward_body_init(&f->framing, head, f->status, false) < 0) {
        fetch_finish(f, 0, "malformed HTTP response");
        return false;
    }
    return true;
}

static void fetch_digest(struct fetch *f, bool closed)
{
    if (f->status == 0 && !fetch_read_head(f)) {
        if (closed) {
            fetch_finish(f, 0, "EOF");
        }
        return;
    }
    const struct hk_str rest = {f->back.data + f->at, f->back.len - f->at};
    f->at += forward_body_read(&f->framing, rest, f->max_bytes, &f->body);
    if (closed) {
        forward_body_close(&f->framing);
    }
    if (f->framing.broken) {
        fetch_finish(f, 0, "unexpected EOF");
    } else if (f->framing.over) {
        fetch_finish(f, f->status, NULL);
    }
}

static void fetch_read(struct fetch *f)
{
    ssize_t n;

    do {
        if (f->back.len > f->max_bytes) {
            fetch_finish(f, 0, "the answer is too long");
            return;
        }
        hk_buf_reserve(&f->back, FORWARD_CHUNK);
        n = net_dial_read(f->server, f->back.data + f->back.len, FORWARD_CHUNK);
        f->back.len += n > 0 ? (size_t)n : 0;
    } while (n > 0);
    fetch_digest(f, !forward_must_wait(n));
}

static void fetch_on_ready(void *ctx, uint32_t events)
{
    struct fetch *f = ctx;

    while (forward_left(&f->there) > 0) {
        const struct hk_str rest = forward_bytes(&f->there);
        const ssize_t n = net_dial_write(f->server, rest.s, rest.n);
        if (n <= 0) {
            if (!forward_must_wait(n)) {
                fetch_finish(f, 0, "EOF");
            }
            return;
        }
        forward_used(&f->there, (size_t)n);
    }
    net_dial_want(f->server, EPOLLIN);
    fetch_read(f);
}

static void fetch_on_opened(void *ctx, const char *why)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct fetch *f = ctx;

    if (!why) {
        f->opened = true;
        net_dial_want(f->server, EPOLLOUT);
        return;
    }
    if (net_dial_connected(f->server)) {
        hk_buf_adds(&text, why);
    } else {
        hk_buf_addf(&text, "dial tcp %s: connect: %c%s", f->authority,
                    tolower((unsigned char)why[0]), why[0] != '\0' ? why + 1 : "");
    }
    fetch_finish(f, 0, text.data);
}

static void fetch_write_request(struct fetch *f, const struct fetch_opts *o)
{
    struct hk_buf *out = &f->there.buf;

    hk_buf_addf(out,
                "GET %s HTTP/1.1\r\nHost: %s\r\nAccept: application/json\r\nUser-Agent: "
                "hekla/" HEKLA_VERSION "\r\nConnection: close\r\n",
                o->path, f->authority);
    for (uint32_t k = 0; k < o->nheaders; k++) {
        hk_buf_addf(out, "%s: %s\r\n", o->headers[k].name.s, o->headers[k].value.s);
    }
    hk_buf_adds(out, "\r\n");
}

struct fetch *fetch_new(struct net_loop *loop, const struct fetch_opts *o)
{
    struct fetch *f = hk_zalloc(sizeof(*f));
    HK_AUTO(hk_buf_fini) struct hk_buf authority = {0};
    const bool v6 = memchr(o->host.s, ':', o->host.n) != NULL;

    hk_buf_addf(&authority, v6 ? "[%.*s]:%u" : "%.*s:%u", HK_FMT(o->host), o->port);
    f->authority = hk_strdup(authority.data);
    f->done = o->done;
    f->ctx = o->ctx;
    f->max_bytes = o->max_bytes;
    fetch_write_request(f, o);
    f->timeout = net_timer_new(loop, fetch_on_timeout, f);
    net_timer_at(f->timeout, net_loop_now_ns(loop) + o->timeout_ms * 1000000);
    f->server = net_dial_new(loop, &(struct net_dial_opts){.host = o->host,
                                                           .port = o->port,
                                                           .tls = true,
                                                           .cert_pem = o->cert_pem,
                                                           .key_pem = o->key_pem,
                                                           .server_name = o->server_name,
                                                           .insecure = o->insecure,
                                                           .ca_pem = o->ca_pem,
                                                           .opened = fetch_on_opened,
                                                           .ready = fetch_on_ready,
                                                           .ctx = f});
    return f;
}

void fetch_free(struct fetch *f)
{
    if (!f) {
        return;
    }
    net_dial_free(f->server);
    net_timer_free(f->timeout);
    hk_buf_fini(&f->there.buf);
    hk_buf_fini(&f->back);
    hk_buf_fini(&f->body);
    hk_free(f->authority);
    hk_free(f);
}
