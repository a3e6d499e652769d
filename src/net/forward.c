// SPDX-License-Identifier: Apache-2.0
// The life of a forwarded request: connects, sends the request while the client sends its body,
// reads the head of the answer, and lets the client pull the body. Timers and the client's end are
// handled in every stage; objects are freed outside their own callbacks, by the sweep.
#include "net/forward_priv.h"

#include "net/http_head.h"
#include "net/ws.h"

#include <ctype.h>
#include <errno.h>
#include <sys/epoll.h>

#define MS_NS ((int64_t)1000 * 1000)

struct forwarder {
    struct net_loop *loop;
    uint32_t max;
    HK_VEC(struct forward *) all;
    struct net_timer *sweep;
};

/* ---- ending ---- */

static void forward_free(struct forward *f)
{
    net_dial_free(f->server);
    net_timer_free(f->patience);
    hk_buf_fini(&f->there.buf);
    hk_buf_fini(&f->back.buf);
    hk_free(f->authority);
    hk_free(f->prefix);
    hk_free(f->user);
    hk_free(f);
}

static void forward_on_sweep(void *ctx)
{
    struct forwarder *fw = ctx;

    for (uint32_t i = 0; i < fw->all.len;) {
        struct forward *f = fw->all.at[i];

        if (f->stage == OVER) {
            hk_vec_swap_remove(&fw->all, i);
            forward_free(f);
        } else {
            i++;
        }
    }
}

void forward_finish(struct forward *f)
{
    if (f->stage == OVER) {
        return;
    }
    f->stage = OVER;
    f->http = NULL;
    net_timer_off(f->patience);
    net_dial_free(f->server);
    f->server = NULL;
    net_timer_at(f->fw->sweep, net_loop_now_ns(f->fw->loop));
    if (f->ended) {
        f->ended(f->ctx);
    }
}

/* Before the head of the answer. */
static void forward_refuse(struct forward *f, int status, const char *why)
{
    struct http_request *q = f->http;

    f->refuse(q, status, why);
    forward_finish(f);
}

static void forward_fail(struct forward *f, const char *why)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    hk_buf_addf(&text, "%s: %s",
                f->upgrade ? "error dialing backend" : "error trying to reach service", why);
    forward_refuse(f, f->upgrade ? 500 : 503, text.data);
}

static void forward_on_timeout(void *ctx)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct forward *f = ctx;

    if (f->stage == DIALLING) {
        hk_buf_addf(&text, "dial tcp %s: i/o timeout", f->authority);
        forward_fail(f, text.data);
    } else {
        forward_refuse(f, 504, "Timeout: request did not complete within the allotted timeout");
    }
}

/* The client is gone before an answer began. */
static void forward_on_gone(void *ctx)
{
    forward_finish(ctx);
}

/* ---- bytes ---- */

void forward_used(struct forward_way *w, size_t n)
{
    w->at += n;
    if (w->at == w->buf.len) {
        hk_buf_clear(&w->buf);
        w->at = 0;
    } else if (w->at >= FORWARD_CHUNK) {
        hk_buf_drop(&w->buf, w->at);
        w->at = 0;
    }
}

bool forward_must_wait(ssize_t n)
{
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static void hang_up_server(struct forward *f)
{
    net_dial_free(f->server);
    f->server = NULL;
}

/* Whether there was something to read. */
static bool read_server(struct forward *f)
{
    hk_buf_reserve(&f->back.buf, FORWARD_CHUNK);
    const ssize_t n = net_dial_read(f->server, f->back.buf.data + f->back.buf.len, FORWARD_CHUNK);

    if (n > 0) {
        f->back.buf.len += (size_t)n;
    } else if (!forward_must_wait(n)) {
        hang_up_server(f);
    }
    return n > 0;
}

void forward_fill(struct forward *f)
{
    while (f->server && forward_left(&f->back) < FORWARD_BUFFER && read_server(f)) {
    }
}

void forward_hear_out(struct forward *f)
{
    forward_fill(f);
    if (f->server) {
        net_dial_rest(f->server);
        f->server_closed = true;
    }
}

void forward_want(struct forward *f, uint32_t events)
{
    if (!f->server_closed) {
        net_dial_want(f->server, events);
    }
}

bool forward_flush(struct forward *f)
{
    while (f->server && forward_left(&f->there) > 0) {
        const struct hk_str rest = forward_bytes(&f->there);
        const ssize_t n = net_dial_write(f->server, rest.s, rest.n);
        if (n > 0) {
            forward_used(&f->there, (size_t)n);
        } else {
            return forward_must_wait(n);
        }
    }
    return true;
}

static void forward_watch(struct forward *f)
{
    if (f->server) {
        forward_want(f, (forward_left(&f->back) < FORWARD_BUFFER ? EPOLLIN : 0) |
                            (forward_left(&f->there) > 0 ? EPOLLOUT : 0));
    }
}

/* Until the answer begins, or until the server reads on. A client that leaves while its body is
 * stopped cannot be noticed. */
static void forward_set_patience(struct forward *f)
{
    int64_t at_ns = f->answer_at_ns > 0 ? f->answer_at_ns : INT64_MAX;

    if (f->body_waits) {
        at_ns = HK_MIN(at_ns, net_loop_now_ns(f->fw->loop) + f->stall_ms * MS_NS);
    }
    if (at_ns < INT64_MAX) {
        net_timer_at(f->patience, at_ns);
    } else {
        net_timer_off(f->patience);
    }
}

/* ---- the client's body ---- */

static void add_body(struct forward *f, const char *p, size_t n)
{
    if (f->chunked && n > 0) {
        hk_buf_addf(&f->there.buf, "%zx\r\n", n);
        hk_buf_add(&f->there.buf, p, n);
        hk_buf_adds(&f->there.buf, "\r\n");
    } else if (f->chunked) {
        hk_buf_adds(&f->there.buf, "0\r\n\r\n");
    } else {
        hk_buf_add(&f->there.buf, p, n);
    }
}

/* A server that has closed or answered before the end of the body gets no more of it. */
static size_t forward_take_body(void *ctx, const char *p, size_t n)
{
    struct forward *f = ctx;

    if (f->stage > ASKING || (f->stage == ASKING && !f->server)) {
        return n;
    }
    if (n > 0 && forward_left(&f->there) + n > FORWARD_BUFFER) {
        f->body_waits = true;
        if (f->stage == ASKING) {
            forward_set_patience(f);
        }
        return 0;
    }
    add_body(f, p, n);
    if (f->stage == ASKING) {
        (void)forward_flush(f);
        forward_watch(f);
    }
    return n;
}

static void resume_body(struct forward *f)
{
    if (f->body_waits && forward_left(&f->there) <= FORWARD_BUFFER - FORWARD_CHUNK) {
        f->body_waits = false;
        forward_set_patience(f);
        http_body_resume(f->http);
    }
}

/* ---- the answer ---- */

static bool forward_pull(void *ctx, struct hk_buf *out, size_t room)
{
    struct forward *f = ctx;

    forward_fill(f);
    forward_used(&f->back, forward_body_read(&f->body, forward_bytes(&f->back), room, out));
    if (!f->server && out->len == 0) {
        forward_body_close(&f->body);
    }
    if (f->body.broken) {
        http_abort_stream(f->http);
        return true;
    }
    forward_watch(f);
    return !f->body.over;
}

static void forward_on_ended(void *ctx)
{
    forward_finish(ctx);
}

static void forward_reply(struct forward *f, int status, struct hk_str head)
{
    struct forward_headers h = {0};
    struct hk_buf none = {0};
    const struct http_stream stream = {
        .pull = forward_pull,
        .ended = forward_on_ended,
        .ctx = f,
        .finite = f->body.framing == FORWARD_LENGTH,
        .whole = true,
        .has_length =
            f->body.framing == FORWARD_LENGTH ||
            (f->body.framing == FORWARD_NO_BODY && http_head_get(head, "Content-Length").n > 0),
        .length = f->body.left,
    };

    forward_headers_read(f, head, &h);
    forward_used(&f->back, head.n);
    f->stage = ANSWERING;
    f->body_waits = false;
    net_timer_off(f->patience);
    if (f->body.over && !hk_str_is(f->http->method, "HEAD")) {
        http_reply(f->http, status, h.list.at, h.list.len, &none);
        forward_finish(f);
    } else {
        http_reply_stream(f->http, status, h.list.at, h.list.len, &stream);
    }
    forward_headers_fini(&h);
}

static void forward_on_head(struct forward *f, struct hk_str head)
{
    const int status = http_head_status(head);
    const bool redirects = status >= 300 && status <= 399 && http_head_get(head, "Location").n > 0;

    if (f->refuse_redirects && redirects) {
        forward_refuse(f, 502,
                       "the backend attempted to redirect this request, which is not permitted");
    } else if (status == 101 && f->upgrade && http_head_get(head, "Upgrade").n > 0) {
        net_timer_off(f->patience);
        forward_tunnel_begin(f, head);
    } else if (status < 200 ||
               forward_body_init(&f->body, head, status, hk_str_is(f->http->method, "HEAD")) < 0) {
        forward_fail(f, "malformed HTTP response");
    } else {
        forward_reply(f, status, head);
    }
}

/* Skips "100 Continue" and similar heads. */
static void forward_read_answer(struct forward *f)
{
    forward_fill(f);
    while (f->stage == ASKING) {
        const struct hk_str text = forward_bytes(&f->back);
        const size_t n = http_head_end(text);
        const struct hk_str head = {text.s, n};
        const int status = n > 0 ? http_head_status(head) : 0;

        if (n > FORWARD_MAX_HEAD || (n == 0 && text.n > FORWARD_MAX_HEAD)) {
            forward_fail(f, "the server's response headers are too long");
        } else if (n == 0 && !f->server) {
            forward_fail(f, "EOF");
        } else if (n == 0) {
            return;
        } else if (status >= 100 && status < 200 && status != 101) {
            forward_used(&f->back, n);
        } else {
            forward_on_head(f, head);
        }
    }
}

/* ---- the server ---- */

static void forward_on_asking(struct forward *f)
{
    if (!forward_flush(f)) {
        hk_buf_clear(&f->there.buf); /* the answer may be there nevertheless */
        f->there.at = 0;
    }
    resume_body(f);
    forward_read_answer(f);
}

static void forward_on_ready(void *ctx, uint32_t events)
{
    struct forward *f = ctx;

    if (events & (EPOLLHUP | EPOLLERR)) {
        forward_hear_out(f);
    }
    if (f->stage == ASKING) {
        forward_on_asking(f);
    } else if (f->stage == ANSWERING) {
        forward_fill(f);
        http_resume(f->http);
    } else if (f->stage == OPEN) {
        forward_tunnel_pump(f);
    }
    if (f->stage == ASKING || f->stage == ANSWERING) {
        forward_watch(f);
    }
}

/* As Go writes it: "dial tcp 10.0.0.1:80: connect: connection refused". */
static void forward_on_dial_failed(struct forward *f, const char *why)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    if (net_dial_connected(f->server)) {
        hk_buf_adds(&text, why);
    } else {
        hk_buf_addf(&text, "dial tcp %s: connect: %c%s", f->authority,
                    tolower((unsigned char)why[0]), why[0] != '\0' ? why + 1 : "");
    }
    forward_fail(f, text.data);
}

static void forward_on_opened(void *ctx, const char *why)
{
    struct forward *f = ctx;

    if (why) {
        forward_on_dial_failed(f, why);
        return;
    }
    f->stage = ASKING;
    f->answer_at_ns = f->answer_ms > 0 ? net_loop_now_ns(f->fw->loop) + f->answer_ms * MS_NS : 0;
    forward_set_patience(f);
    (void)forward_flush(f);
    resume_body(f);
    forward_watch(f);
}

/* ---- starting ---- */

static struct forward *forward_new(struct forwarder *fw, const struct forward_opts *o)
{
    struct forward *f = hk_zalloc(sizeof(*f));
    HK_AUTO(hk_buf_fini) struct hk_buf authority = {0};
    const bool v6 = memchr(o->host.s, ':', o->host.n) != NULL;

    hk_buf_addf(&authority, v6 ? "[%.*s]:%u" : "%.*s:%u", HK_FMT(o->host), o->port);
    *f = (struct forward){
        .fw = fw,
        .http = o->http,
        .refuse = o->refuse,
        .ended = o->ended,
        .ctx = o->ctx,
        .refuse_redirects = o->refuse_redirects,
        .authority = hk_strdup(authority.data),
        .user = hk_strndup(o->user.s ? o->user.s : "", o->user.n),
        .prefix = hk_strndup(o->prefix.s ? o->prefix.s : "", o->prefix.n),
        .answer_ms = o->answer_ms,
        .stall_ms = o->stall_ms > 0 ? o->stall_ms : FORWARD_STALL_S * 1000,
        .streamed = o->http->streamed,
    };
    f->upgrade = !f->streamed &&
                 ws_header_has(http_request_header(o->http, "Connection"), "upgrade") &&
                 http_request_header(o->http, "Upgrade").n > 0;
    forward_write_request(f, o);
    return f;
}

/* One user must not take the places of all others. */
static bool has_room(const struct forwarder *fw, struct hk_str user)
{
    uint32_t n = 0;

    for (uint32_t i = 0; user.n > 0 && i < fw->all.len; i++) {
        n += hk_str_is(user, fw->all.at[i]->user);
    }
    return fw->all.len < fw->max && n < HK_MAX(fw->max / 2, 1U);
}

bool forwarder_start(struct forwarder *fw, const struct forward_opts *o)
{
    if (!has_room(fw, o->user)) {
        return false;
    }
    struct forward *f = forward_new(fw, o);
    hk_vec_push(&fw->all, f);
    http_body_read(
        f->http, &(struct http_body){.take = forward_take_body, .gone = forward_on_gone, .ctx = f});
    f->patience = net_timer_new(fw->loop, forward_on_timeout, f);
    net_timer_at(f->patience, net_loop_now_ns(fw->loop) + FORWARD_CONNECT_S * 1000 * MS_NS);
    f->server = net_dial_new(fw->loop, &(struct net_dial_opts){.host = o->host,
                                                               .port = o->port,
                                                               .tls = o->tls,
                                                               .cert_pem = o->cert_pem,
                                                               .key_pem = o->key_pem,
                                                               .server_name = o->server_name,
                                                               .insecure = o->insecure,
                                                               .ca_pem = o->ca_pem,
                                                               .opened = forward_on_opened,
                                                               .ready = forward_on_ready,
                                                               .ctx = f});
    return true;
}

struct forwarder *forwarder_new(struct net_loop *loop, uint32_t max)
{
    struct forwarder *fw = hk_zalloc(sizeof(*fw));

    fw->loop = loop;
    fw->max = max;
    fw->sweep = net_timer_new(loop, forward_on_sweep, fw);
    return fw;
}

uint32_t forwarder_count(const struct forwarder *fw)
{
    return fw->all.len;
}

void forwarder_free(struct forwarder *fw)
{
    if (!fw) {
        return;
    }
    for (uint32_t i = 0; i < fw->all.len; i++) {
        forward_free(fw->all.at[i]);
    }
    hk_vec_fini(&fw->all);
    net_timer_free(fw->sweep);
    hk_free(fw);
}
