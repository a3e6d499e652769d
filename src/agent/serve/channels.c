// SPDX-License-Identifier: Apache-2.0
// The channels of exec and attach, over a WebSocket or SPDY connection on a tunnel.
#include "agent/serve/channels.h"

#include "codec/json.h"

#include <errno.h>
#include <strings.h>
#include <sys/epoll.h>

#define V5 "v5.channel.k8s.io"
#define V4 "v4.channel.k8s.io"
#define SPDY_NAME "SPDY/3.1"
#define SPDY_HEADER "X-Stream-Protocol-Version"
/* Time for the peer to open its channels. */
#define PATIENCE_NS ((int64_t)30 * 1000 * 1000 * 1000)

enum {
    READ_BYTES = 64 << 10,
    SIZE_BYTES = 256,       /* longest accepted resize message */
    OUT_BYTES = 256 << 10,  /* limit of buffered output for a slow peer */
    REPLY_BYTES = 64 << 10, /* and of replies beyond it, while its input is still read */
    MAX_FRAME = 16 << 20,   /* limit against nonsense only: frames are processed in pieces */
};

/* ---- the handshake ---- */

static bool asks_for_websocket(const struct http_request *q)
{
    return ws_header_has(http_request_header(q, "Connection"), "upgrade") &&
           ws_header_has(http_request_header(q, "Upgrade"), "websocket") &&
           hk_str_is(http_request_header(q, "Sec-WebSocket-Version"), "13") &&
           http_request_header(q, "Sec-WebSocket-Key").n > 0;
}

static bool asks_for_spdy(const struct http_request *q)
{
    return ws_header_has(http_request_header(q, "Connection"), "upgrade") &&
           ws_header_has(http_request_header(q, "Upgrade"), SPDY_NAME);
}

static void look_for_v4(void *ctx, struct hk_str name, struct hk_str value)
{
    bool *found = ctx;

    if (name.n == strlen(SPDY_HEADER) && strncasecmp(name.s, SPDY_HEADER, name.n) == 0 &&
        ws_header_has(value, V4)) {
        *found = true;
    }
}

static int offer_spdy(struct channels *c, const struct http_request *q, struct hk_err *err)
{
    bool found = false;

    http_request_headers(q, look_for_v4, &found); /* one line for each protocol */
    if (!found) {
        return hk_fail(err, HK_EINVAL, "no common protocol: this server speaks " V4 " over SPDY");
    }
    c->protocol = V4;
    c->spdy = spdy_new();
    return 0;
}

int channels_offer(struct channels *c, const struct http_request *q, unsigned wants,
                   struct hk_err *err)
{
    static const char *const known[] = {V5, V4};

    c->awaited = wants | 1u << CHANNEL_ERROR;
    if (asks_for_spdy(q)) {
        return offer_spdy(c, q, err);
    }
    if (!asks_for_websocket(q)) {
        return hk_fail(err, HK_EINVAL,
                       "commands are run over WebSockets or SPDY: the request asks for neither");
    }
    for (size_t k = 0; k < HK_LEN(known); k++) {
        if (ws_header_has(http_request_header(q, "Sec-WebSocket-Protocol"), known[k])) {
            c->protocol = known[k];
            return 0;
        }
    }
    return hk_fail(err, HK_EINVAL, "no common protocol: this server speaks " V5 " and " V4);
}

static void accept_spdy(const struct channels *c, struct http_request *q,
                        const struct http_tunnel *t)
{
    const struct http_header headers[] = {
        {HK_STR("Upgrade"), HK_STR(SPDY_NAME)},
        {HK_STR(SPDY_HEADER), hk_str(c->protocol)},
    };

    http_reply_tunnel(q, headers, HK_LEN(headers), t);
}

void channels_accept(const struct channels *c, struct http_request *q, const struct http_tunnel *t)
{
    char accept[WS_ACCEPT_BYTES + 1];

    if (c->spdy) {
        accept_spdy(c, q, t);
        return;
    }
    ws_accept(http_request_header(q, "Sec-WebSocket-Key"), accept);
    const struct http_header headers[] = {
        {HK_STR("Upgrade"), HK_STR("websocket")},
        {HK_STR("Sec-WebSocket-Accept"), hk_str(accept)},
        {HK_STR("Sec-WebSocket-Protocol"), hk_str(c->protocol)},
    };
    http_reply_tunnel(q, headers, HK_LEN(headers), t);
}

/* ---- the socket ---- */

static size_t channels_unsent_bytes(const struct channels *c)
{
    return c->out.len - c->out_at;
}

/* A client that does not read cannot make us collect replies to its pings without end. */
static bool reads(const struct channels *c)
{
    return (!c->paused || c->closing) && channels_unsent_bytes(c) < OUT_BYTES + REPLY_BYTES;
}

/* True if buffered input may be parsed now. */
static bool has_unread(const struct channels *c)
{
    return reads(c) && (c->more || c->in_at < c->in.len);
}

/* Updates the events to watch. Input received before makes the channel ready at once. */
static void channels_update_events(struct channels *c)
{
    const bool writes = channels_unsent_bytes(c) > 0 || has_unread(c);

    http_tunnel_want(c->http, (reads(c) ? EPOLLIN : 0) | (writes ? EPOLLOUT : 0));
}

/* Drops sent bytes once they are the larger part, so that each byte moves at most once. */
static void compact(struct channels *c)
{
    if (c->out_at >= channels_unsent_bytes(c)) {
        hk_buf_drop(&c->out, c->out_at);
        c->out_at = 0;
    }
}

/* Returns false when the peer is gone. */
static bool channels_flush(struct channels *c)
{
    bool there = true;

    while (there && channels_unsent_bytes(c) > 0) {
        const ssize_t n =
            http_tunnel_write(c->http, c->out.data + c->out_at, channels_unsent_bytes(c));
        if (n < 0 && errno == EAGAIN) {
            break;
        }
        there = n >= 0 || errno == EINTR;
        c->out_at += n > 0 ? (size_t)n : 0;
    }
    compact(c);
    return there;
}

static void tell_room(struct channels *c)
{
    if (c->full && channels_unsent_bytes(c) < OUT_BYTES / 2) {
        c->full = false;
        c->ops->room(c->ctx);
    }
}

/* ---- messages ---- */

static void tell_size(struct channels *c)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json size;

    if (json_parse(hk_buf_str(&c->text), 0, &mem, &size, NULL) < 0) {
        return;
    }
    const int64_t columns = json_int(json_get(&size, "Width"), 0);
    const int64_t rows = json_int(json_get(&size, "Height"), 0);
    if (columns > 0 && columns <= UINT16_MAX && rows > 0 && rows <= UINT16_MAX) {
        c->ops->size(c->ctx, (uint16_t)columns, (uint16_t)rows);
    }
}

static void take_size(struct channels *c, bool first, bool last, struct hk_str bytes)
{
    if (first) {
        hk_buf_clear(&c->text);
    }
    if (c->text.len + bytes.n <= SIZE_BYTES) {
        hk_buf_addstr(&c->text, bytes);
    }
    if (last) {
        tell_size(c);
    }
}

static void channels_accept_data(struct channels *c, const struct ws_piece *p)
{
    struct hk_str bytes = p->bytes;
    bool first = p->first;

    if (c->closing) {
        return;
    }
    if (first && bytes.n == 0) {
        return; /* a message without a channel */
    }
    if (first) {
        c->channel = (uint8_t)bytes.s[0];
        bytes.s++;
        bytes.n--;
    }
    if (c->channel == CHANNEL_STDIN) {
        c->ops->input(c->ctx, bytes);
    } else if (c->channel == CHANNEL_RESIZE) {
        take_size(c, first, p->last, bytes);
    } else if (c->channel == CHANNEL_END && bytes.n > 0 && bytes.s[0] == CHANNEL_STDIN) {
        c->ops->input_end(c->ctx);
    }
}

/* Returns false after the peer's close frame. */
static bool channels_accept_frame(struct channels *c, const struct ws_piece *p)
{
    switch (p->op) {
    case WS_CLOSE:
        if (!c->closing) {
            c->closing = true;
            ws_write_close(ws_close_code(p->bytes), HK_STR(""), NULL, &c->out);
            (void)channels_flush(c);
        }
        return false;
    case WS_PING:
        if (!c->closing && channels_unsent_bytes(c) < OUT_BYTES) {
            ws_write(WS_PONG, p->bytes, NULL, &c->out);
        }
        return true;
    case WS_PONG:
        return true;
    default:
        channels_accept_data(c, p);
        return true;
    }
}

/* ---- opening ---- */

/* Kubernetes clients open one stream after the other and read none before all are open. Data sent
 * too early hides the reply that opens the next stream. */
static bool is_open(const struct channels *c)
{
    for (size_t k = 0; c->spdy && k < CHANNEL_COUNT; k++) {
        if (c->awaited & 1u << k && c->streams[k] == 0) {
            return false;
        }
    }
    return true;
}

static void begin_if_open(struct channels *c)
{
    if (!c->begun && is_open(c)) {
        c->begun = true;
        net_timer_off(c->patience);
        c->ops->begun(c->ctx);
    }
}

static void on_patience(void *ctx)
{
    struct channels *c = ctx;

    c->ops->closed(c->ctx);
}

/* ---- streams ---- */

/* CHANNEL_COUNT: no known channel. */
static enum channel channel_of(const struct channels *c, uint32_t stream)
{
    enum channel k = 0;

    while (k < CHANNEL_COUNT && c->streams[k] != stream) {
        k++;
    }
    return k;
}

static void end_streams(struct channels *c)
{
    for (size_t k = 0; k < CHANNEL_COUNT; k++) {
        if (c->streams[k] != 0) {
            spdy_write(c->streams[k], HK_STR(""), true, &c->out);
        }
    }
}

static void open_stream(struct channels *c, const struct spdy_event *e)
{
    static const char *const names[CHANNEL_COUNT] = {[CHANNEL_STDIN] = "stdin",
                                                     [CHANNEL_STDOUT] = "stdout",
                                                     [CHANNEL_STDERR] = "stderr",
                                                     [CHANNEL_ERROR] = "error",
                                                     [CHANNEL_RESIZE] = "resize"};

    for (size_t k = 0; k < CHANNEL_COUNT; k++) {
        if (c->streams[k] == 0 && hk_str_is(e->bytes, names[k])) {
            c->streams[k] = e->stream;
            break;
        }
    }
    begin_if_open(c);
}

static void take_event(struct channels *c, const struct spdy_event *e)
{
    const enum channel at = e->type == SPDY_OPENED ? CHANNEL_COUNT : channel_of(c, e->stream);

    if (e->type == SPDY_OPENED) {
        open_stream(c, e);
    } else if (c->closing) {
        return;
    } else if (at == CHANNEL_STDIN && e->type == SPDY_DATA) {
        c->ops->input(c->ctx, e->bytes);
    } else if (at == CHANNEL_STDIN && (e->type == SPDY_ENDED || e->type == SPDY_RESET)) {
        c->ops->input_end(c->ctx);
    } else if (at == CHANNEL_RESIZE && e->type == SPDY_DATA) {
        take_size(c, true, true, e->bytes);
    }
}

static bool parse_spdy(struct channels *c)
{
    struct spdy_event e;
    struct hk_err err = {0};
    int rc = 1;

    while (rc == 1 && reads(c)) {
        char *in = c->in.data + c->in_at;
        size_t n = c->in.len - c->in_at;

        rc = spdy_read(c->spdy, &in, &n, &e, &c->out, &err);
        c->in_at = c->in.len - n;
        if (rc == 1) {
            take_event(c, &e);
        }
    }
    c->more = c->more || rc == 1; /* paused: events may be left */
    return rc >= 0;
}

/* ---- input ---- */

/* Parses received input until paused; returns false at its end. */
static bool channels_parse_input(struct channels *c)
{
    struct ws_piece p;
    struct hk_err err = {0};

    if (c->spdy) {
        return parse_spdy(c);
    }
    while (reads(c)) {
        char *in = c->in.data + c->in_at;
        size_t n = c->in.len - c->in_at;
        const int rc = n > 0 ? ws_read(&c->reader, &in, &n, &p, &err) : 0;
        c->in_at = c->in.len - n;
        if (rc < 0) {
            channels_close(c, c->reader.close_code, err.text);
            (void)channels_flush(c);
            return false;
        }
        if (rc == 0) {
            return true;
        }
        if (!channels_accept_frame(c, &p)) {
            return false;
        }
    }
    return true;
}

/* Returns false when the peer is gone or has sent its close. */
static bool channels_on_readable(struct channels *c)
{
    hk_buf_clear(&c->in);
    c->in_at = 0;
    hk_buf_reserve(&c->in, READ_BYTES);
    const ssize_t n = http_tunnel_read(c->http, c->in.data, READ_BYTES);
    c->more = n == READ_BYTES;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        return false;
    }
    c->in.len = n > 0 ? (size_t)n : 0;
    return channels_parse_input(c);
}

/* ---- public functions ---- */

void channels_open(struct channels *c, struct net_loop *loop, struct http_request *http,
                   struct hk_str early, const struct channels_ops *ops, void *ctx)
{
    *c = (struct channels){
        .protocol = c->protocol,
        .spdy = c->spdy,
        .awaited = c->awaited,
        .http = http,
        .ops = ops,
        .ctx = ctx,
        .reader = {.server = true, .max_frame = MAX_FRAME},
        .more = true, /* TLS may hold decrypted bytes */
    };
    hk_buf_addstr(&c->in, early);
    c->patience = net_timer_new(loop, on_patience, c);
    net_timer_at(c->patience, net_loop_now_ns(loop) + PATIENCE_NS);
    channels_update_events(c);
    begin_if_open(c);
}

static bool channels_read_input(struct channels *c, uint32_t events)
{
    if (reads(c) && c->in_at < c->in.len) {
        return channels_parse_input(c);
    }
    return !(reads(c) && (c->more || events & EPOLLIN)) || channels_on_readable(c);
}

void channels_ready(struct channels *c, uint32_t events)
{
    if (!channels_read_input(c, events) || !channels_flush(c)) {
        c->ops->closed(c->ctx);
        return;
    }
    tell_room(c);
    channels_update_events(c);
}

void channels_fini(struct channels *c)
{
    if (c->http) {
        http_tunnel_close(c->http);
    }
    hk_buf_fini(&c->in);
    hk_buf_fini(&c->out);
    hk_buf_fini(&c->text);
    net_timer_free(c->patience);
    spdy_free(c->spdy);
    *c = (struct channels){0};
}

bool channels_room(struct channels *c)
{
    c->full = channels_unsent_bytes(c) >= OUT_BYTES;
    return !c->full && !c->closing;
}

void channels_send(struct channels *c, enum channel to, struct hk_str bytes)
{
    if (c->closing) {
        return;
    }
    if (!c->spdy) {
        ws_write_channel((uint8_t)to, bytes, NULL, &c->out);
    } else if (c->streams[to] != 0 && bytes.n > 0) {
        spdy_write(c->streams[to], bytes, false, &c->out);
    }
    channels_update_events(c);
}

void channels_pause(struct channels *c)
{
    c->paused = true;
    channels_update_events(c);
}

void channels_resume(struct channels *c)
{
    c->paused = false;
    channels_update_events(c);
}

void channels_close(struct channels *c, uint16_t code, const char *why)
{
    if (!c->closing) {
        c->closing = true;
        if (c->spdy) {
            end_streams(c);
        } else {
            ws_write_close(code, hk_str(why), NULL, &c->out);
        }
        channels_update_events(c);
    }
}
