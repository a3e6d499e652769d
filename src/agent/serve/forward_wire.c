// SPDX-License-Identifier: Apache-2.0
// Bytes of a tunnel to events of streams, and back:
//
//   socket -> in -> (WebSocket messages -> frames) -> SPDY  -> ops
//                   (WebSocket messages             channel -> ops)
#include "agent/serve/forward_wire.h"

#include <errno.h>
#include <strings.h>
#include <sys/epoll.h>

#define PROTOCOL "portforward.k8s.io"
#define TUNNEL "SPDY/3.1+" PROTOCOL
#define CHANNELS "v4.channel.k8s.io"
#define CHANNELS_WITH_ENDS "v5.channel.k8s.io"
#define SPDY_NAME "SPDY/3.1"
#define SPDY_HEADER "X-Stream-Protocol-Version"
/* Time for the client to answer our close. */
#define PATIENCE_NS ((int64_t)10 * 1000 * 1000 * 1000)

enum {
    READ_BYTES = 64 << 10,
    OUT_BYTES = 256 << 10,  /* limit of buffered output for a slow client */
    REPLY_BYTES = 64 << 10, /* and of replies beyond it, while its input is still read */
    CHANNEL_ENDED = 255,    /* the next byte names the channel that has ended */
    MAX_FRAME = 16 << 20,   /* limit against nonsense only: frames are processed in pieces */
};

/* ---- the handshake ---- */

static bool forward_wire_upgrades_to(const struct http_request *q, const char *protocol)
{
    return ws_header_has(http_request_header(q, "Connection"), "upgrade") &&
           ws_header_has(http_request_header(q, "Upgrade"), protocol);
}

static void forward_wire_look_for_protocol(void *ctx, struct hk_str name, struct hk_str value)
{
    bool *found = ctx;

    if (name.n == strlen(SPDY_HEADER) && strncasecmp(name.s, SPDY_HEADER, name.n) == 0 &&
        ws_header_has(value, PROTOCOL)) {
        *found = true;
    }
}

static int forward_wire_offer_spdy(struct forward_wire *w, const struct http_request *q,
                                   struct hk_err *err)
{
    bool found = false;

    http_request_headers(q, forward_wire_look_for_protocol, &found);
    if (!found) {
        return hk_fail(err, HK_EINVAL,
                       "unable to negotiate protocol: this server speaks " PROTOCOL " over SPDY");
    }
    w->protocol = PROTOCOL;
    w->spdy = spdy_new();
    return 0;
}

static int forward_wire_offer_websocket(struct forward_wire *w, const struct http_request *q,
                                        struct hk_err *err)
{
    const struct hk_str wanted = http_request_header(q, "Sec-WebSocket-Protocol");

    w->websocket = true;
    if (!hk_str_is(http_request_header(q, "Sec-WebSocket-Version"), "13") ||
        http_request_header(q, "Sec-WebSocket-Key").n == 0) {
        return hk_fail(err, HK_EINVAL, "the WebSocket needs version 13 and a key");
    }
    if (ws_header_has(wanted, TUNNEL)) {
        w->protocol = TUNNEL;
        w->spdy = spdy_new();
        return 0;
    }
    if (ws_header_has(wanted, CHANNELS_WITH_ENDS)) {
        w->protocol = CHANNELS_WITH_ENDS;
        w->ends = true;
        return 0;
    }
    if (ws_header_has(wanted, CHANNELS)) {
        w->protocol = CHANNELS;
        return 0;
    }
    return wanted.n == 0 ? 0
                         : hk_fail(err, HK_EINVAL,
                                   "unable to negotiate protocol: this server speaks " TUNNEL
                                   " and " CHANNELS " over WebSockets");
}

int forward_wire_offer(struct forward_wire *w, const struct http_request *q, struct hk_err *err)
{
    if (forward_wire_upgrades_to(q, SPDY_NAME)) {
        return forward_wire_offer_spdy(w, q, err);
    }
    if (forward_wire_upgrades_to(q, "websocket")) {
        return forward_wire_offer_websocket(w, q, err);
    }
    return hk_fail(err, HK_EINVAL,
                   "Upgrade request required: ports are forwarded over WebSockets or SPDY");
}

bool forward_wire_has_channels(const struct forward_wire *w)
{
    return w->websocket && !w->spdy;
}

static void forward_wire_accept_websocket(const struct forward_wire *w, struct http_request *q,
                                          const struct http_tunnel *t)
{
    char accept[WS_ACCEPT_BYTES + 1];

    ws_accept(http_request_header(q, "Sec-WebSocket-Key"), accept);
    const struct http_header headers[] = {
        {HK_STR("Upgrade"), HK_STR("websocket")},
        {HK_STR("Sec-WebSocket-Accept"), hk_str(accept)},
        {HK_STR("Sec-WebSocket-Protocol"), hk_str(w->protocol ? w->protocol : "")},
    };
    http_reply_tunnel(q, headers, w->protocol ? 3 : 2, t);
}

void forward_wire_accept(const struct forward_wire *w, struct http_request *q,
                         const struct http_tunnel *t)
{
    const struct http_header headers[] = {
        {HK_STR("Upgrade"), HK_STR(SPDY_NAME)},
        {HK_STR(SPDY_HEADER), HK_STR(PROTOCOL)},
    };

    if (w->websocket) {
        forward_wire_accept_websocket(w, q, t);
    } else {
        http_reply_tunnel(q, headers, HK_LEN(headers), t);
    }
}

/* ---- the socket ---- */

static size_t forward_wire_unsent(const struct forward_wire *w)
{
    return w->out.len - w->out_at + w->spdy_out.len;
}

/* A client that does not read cannot make us collect replies without end. */
static bool forward_wire_reads(const struct forward_wire *w)
{
    return (!w->paused || w->closing) && forward_wire_unsent(w) < OUT_BYTES + REPLY_BYTES;
}

static bool forward_wire_has_unread(const struct forward_wire *w)
{
    return forward_wire_reads(w) &&
           (w->more || w->in_at < w->in.len || w->frames_at < w->frames.len);
}

static void forward_wire_update_events(struct forward_wire *w)
{
    const bool writes =
        forward_wire_unsent(w) > 0 || forward_wire_has_unread(w) || (w->closing && !w->websocket);

    http_tunnel_want(w->http, (forward_wire_reads(w) ? EPOLLIN : 0) | (writes ? EPOLLOUT : 0));
}

static void forward_wire_wrap(struct forward_wire *w)
{
    if (w->spdy_out.len > 0) {
        ws_write(WS_BINARY, hk_buf_str(&w->spdy_out), NULL, &w->out);
        hk_buf_clear(&w->spdy_out);
    }
}

/* Returns false when the client is gone. */
static bool forward_wire_flush(struct forward_wire *w)
{
    bool there = true;

    forward_wire_wrap(w);
    while (there && w->out_at < w->out.len) {
        const ssize_t n =
            http_tunnel_write(w->http, w->out.data + w->out_at, w->out.len - w->out_at);
        if (n < 0 && errno == EAGAIN) {
            break;
        }
        there = n >= 0 || errno == EINTR;
        w->out_at += n > 0 ? (size_t)n : 0;
    }
    if (w->out_at >= w->out.len - w->out_at) { /* each byte moves at most once */
        hk_buf_drop(&w->out, w->out_at);
        w->out_at = 0;
    }
    return there;
}

static void forward_wire_on_patience(void *ctx)
{
    struct forward_wire *w = ctx;

    w->ops->closed(w->ctx);
}

/* ---- received bytes ---- */

static void forward_wire_report(struct forward_wire *w, const struct spdy_event *e)
{
    if (w->closing || e->type == SPDY_AWAY) {
        return;
    }
    if (e->type == SPDY_OPENED) {
        w->ops->stream(w->ctx, e->stream);
    } else if (e->type == SPDY_DATA) {
        w->ops->data(w->ctx, e->stream, e->bytes);
    } else {
        w->ops->ended(w->ctx, e->stream, e->type == SPDY_RESET);
    }
}

/* Parses SPDY until paused; false: it is invalid. */
static bool forward_wire_parse_spdy(struct forward_wire *w, struct hk_buf *from, size_t *at)
{
    struct hk_buf *out = w->websocket ? &w->spdy_out : &w->out;
    struct spdy_event e;
    struct hk_err err = {0};
    int rc = 1;

    while (rc == 1 && forward_wire_reads(w)) {
        char *in = from->data + *at;
        size_t n = from->len - *at;

        rc = spdy_read(w->spdy, &in, &n, &e, out, &err);
        *at = from->len - n;
        if (rc == 1) {
            forward_wire_report(w, &e);
        }
    }
    w->more = w->more || rc == 1; /* paused: events may be left */
    return rc >= 0;
}

static void forward_wire_accept_message(struct forward_wire *w, const struct ws_piece *p)
{
    struct hk_str bytes = p->bytes;

    if (w->spdy) {
        hk_buf_addstr(&w->frames, bytes);
        return;
    }
    if (p->first) {
        w->channel = bytes.n > 0 ? (uint8_t)bytes.s[0] : UINT8_MAX;
        bytes = bytes.n > 0 ? (struct hk_str){bytes.s + 1, bytes.n - 1} : bytes;
    }
    if (w->closing || bytes.n == 0) {
        return;
    }
    if (w->ends && w->channel == CHANNEL_ENDED) {
        w->ops->ended(w->ctx, (uint32_t)(uint8_t)bytes.s[0] + 1, false);
    } else {
        w->ops->data(w->ctx, (uint32_t)w->channel + 1, bytes);
    }
}

/* Returns false after the client's close frame. */
static bool forward_wire_accept_piece(struct forward_wire *w, const struct ws_piece *p)
{
    if (p->op == WS_CLOSE) {
        if (!w->closing) {
            w->closing = true;
            ws_write_close(ws_close_code(p->bytes), HK_STR(""), NULL, &w->out);
            (void)forward_wire_flush(w);
        }
        return false;
    }
    if (p->op == WS_PING && !w->closing) {
        forward_wire_wrap(w);
        ws_write(WS_PONG, p->bytes, NULL, &w->out);
    } else if (p->op == WS_TEXT || p->op == WS_BINARY) {
        forward_wire_accept_message(w, p);
    }
    return true;
}

/* Parses the SPDY of the last message; false: it is invalid. */
static bool forward_wire_parse_frames(struct forward_wire *w)
{
    const bool good = forward_wire_parse_spdy(w, &w->frames, &w->frames_at);

    if (w->frames_at == w->frames.len) {
        hk_buf_clear(&w->frames);
        w->frames_at = 0;
    }
    return good;
}

/* Returns false at the end of the input, or when it is invalid. */
static bool forward_wire_parse_messages(struct forward_wire *w)
{
    struct ws_piece p;
    struct hk_err err = {0};

    while (forward_wire_reads(w)) {
        if (w->spdy && !forward_wire_parse_frames(w)) {
            return false;
        }
        if (!forward_wire_reads(w)) {
            break;
        }
        char *in = w->in.data + w->in_at;
        size_t n = w->in.len - w->in_at;
        const int rc = n > 0 ? ws_read(&w->reader, &in, &n, &p, &err) : 0;
        w->in_at = w->in.len - n;
        if (rc < 0) {
            forward_wire_close(w, w->reader.close_code, err.text);
            (void)forward_wire_flush(w);
            return false;
        }
        if (rc == 0) {
            return true;
        }
        if (!forward_wire_accept_piece(w, &p)) {
            return false;
        }
    }
    return true;
}

static bool forward_wire_parse(struct forward_wire *w)
{
    return w->websocket ? forward_wire_parse_messages(w)
                        : forward_wire_parse_spdy(w, &w->in, &w->in_at);
}

/* Returns false when the client is gone or has sent its close. */
static bool forward_wire_on_readable(struct forward_wire *w)
{
    hk_buf_clear(&w->in);
    w->in_at = 0;
    hk_buf_reserve(&w->in, READ_BYTES);
    const ssize_t n = http_tunnel_read(w->http, w->in.data, READ_BYTES);
    w->more = n == READ_BYTES;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        return false;
    }
    w->in.len = n > 0 ? (size_t)n : 0;
    return forward_wire_parse(w);
}

static bool forward_wire_read_input(struct forward_wire *w, uint32_t events)
{
    if (!forward_wire_reads(w)) {
        return true;
    }
    if (w->in_at < w->in.len || w->frames_at < w->frames.len) {
        return forward_wire_parse(w);
    }
    return !(w->more || events & EPOLLIN) || forward_wire_on_readable(w);
}

/* ---- public functions ---- */

void forward_wire_open(struct forward_wire *w, struct net_loop *loop, struct http_request *http,
                       struct hk_str early, const struct forward_wire_ops *ops, void *ctx)
{
    w->http = http;
    w->loop = loop;
    w->ops = ops;
    w->ctx = ctx;
    w->reader = (struct ws_reader){.server = true, .max_frame = MAX_FRAME};
    w->more = true; /* TLS may hold decrypted bytes */
    w->patience = net_timer_new(loop, forward_wire_on_patience, w);
    hk_buf_addstr(&w->in, early);
    hk_buf_reserve(&w->frames, 1); /* it is read before anything is in it */
    forward_wire_update_events(w);
}

void forward_wire_ready(struct forward_wire *w, uint32_t events)
{
    if (!forward_wire_read_input(w, events) || !forward_wire_flush(w) ||
        (w->closing && !w->websocket && forward_wire_unsent(w) == 0)) {
        w->ops->closed(w->ctx);
        return;
    }
    if (w->full && forward_wire_unsent(w) < OUT_BYTES / 2) {
        w->full = false;
        w->ops->room(w->ctx);
    }
    forward_wire_update_events(w);
}

void forward_wire_fini(struct forward_wire *w)
{
    if (w->http) {
        http_tunnel_close(w->http);
    }
    hk_buf_fini(&w->in);
    hk_buf_fini(&w->frames);
    hk_buf_fini(&w->spdy_out);
    hk_buf_fini(&w->out);
    net_timer_free(w->patience);
    spdy_free(w->spdy);
    *w = (struct forward_wire){0};
}

struct hk_str forward_wire_header(const struct forward_wire *w, const char *name)
{
    return spdy_header(w->spdy, name);
}

bool forward_wire_room(struct forward_wire *w)
{
    w->full = forward_wire_unsent(w) >= OUT_BYTES;
    return !w->full && !w->closing;
}

void forward_wire_send(struct forward_wire *w, uint32_t stream, struct hk_str bytes, bool last)
{
    if (w->closing || (bytes.n == 0 && !(last && w->spdy))) {
        return;
    }
    if (w->spdy) {
        spdy_write(stream, bytes, last, w->websocket ? &w->spdy_out : &w->out);
    } else {
        ws_write_channel((uint8_t)(stream - 1), bytes, NULL, &w->out);
    }
    forward_wire_update_events(w);
}

void forward_wire_cancel(struct forward_wire *w, uint32_t stream)
{
    spdy_write_reset(stream, w->websocket ? &w->spdy_out : &w->out);
    forward_wire_update_events(w);
}

void forward_wire_pause(struct forward_wire *w)
{
    w->paused = true;
    forward_wire_update_events(w);
}

void forward_wire_resume(struct forward_wire *w)
{
    w->paused = false;
    forward_wire_update_events(w);
}

void forward_wire_close(struct forward_wire *w, uint16_t code, const char *why)
{
    if (w->closing) {
        return;
    }
    forward_wire_wrap(w);
    w->closing = true;
    if (w->websocket) {
        ws_write_close(code, hk_str(why), NULL, &w->out);
    }
    net_timer_at(w->patience, net_loop_now_ns(w->loop) + PATIENCE_NS);
    forward_wire_update_events(w);
}
