// SPDX-License-Identifier: Apache-2.0
// A watch over a WebSocket, as kube-apiserver offers it: one text frame per event. Events are pulled
// from the source only while the socket takes them, so a slow client costs one buffer; one that
// takes nothing for the idle timeout is cut off. What the client sends is ignored, except for pings
// and the close frame.
#include "apiserver/watch_socket.h"

#include "net/ws.h"

#include <errno.h>
#include <strings.h>
#include <sys/epoll.h>

enum { OUT_BYTES = 64 * 1024, FRAME_MAX = 64 * 1024, READ_BYTES = 4096, READS_MAX = 16 };

struct watch_socket {
    struct exchange *x;
    struct watch_source source;
    struct ws_reader reader;
    struct hk_buf out; /* unsent: [out_at, out.len) */
    size_t out_at;
    struct net_timer *patience; /* runs while the client takes nothing */
    bool stalled;               /* patience runs */
    bool closing;               /* the close frame was written */
};

/* ---- the handshake ---- */

bool watch_socket_is_asked(const struct exchange *x)
{
    const struct hk_str upgrade = http_request_header(x->http, "Upgrade");

    return ws_header_has(http_request_header(x->http, "Connection"), "upgrade") &&
           ws_header_has(upgrade, "websocket");
}

int watch_socket_check(struct exchange *x)
{
    const struct hk_str version = http_request_header(x->http, "Sec-WebSocket-Version");
    const struct hk_str key = http_request_header(x->http, "Sec-WebSocket-Key");

    if (!hk_str_is(version, "13")) {
        return exchange_refuse(x, 400, "BadRequest",
                               "Sec-WebSocket-Version is \"%.*s\", this server speaks 13",
                               HK_FMT(version));
    }
    if (key.n != WS_KEY_BYTES) {
        return exchange_refuse(x, 400, "BadRequest",
                               "Sec-WebSocket-Key has %zu characters, want %d", key.n,
                               WS_KEY_BYTES);
    }
    return 0;
}

/* ---- the end ---- */

static void watch_socket_free(struct watch_socket *s)
{
    net_timer_free(s->patience);
    s->source.ended(s->source.ctx);
    hk_buf_fini(&s->out);
    hk_free(s);
}

static void watch_socket_end(struct watch_socket *s)
{
    http_tunnel_close(s->x->http);
    watch_socket_free(s);
}

static void watch_socket_on_cut(void *ctx)
{
    watch_socket_free(ctx);
}

static void watch_socket_on_patience(void *ctx)
{
    watch_socket_end(ctx);
}

static void write_close_once(struct watch_socket *s, uint16_t code)
{
    if (!s->closing) {
        s->closing = true;
        ws_write_close(code, HK_STR(""), NULL, &s->out);
    }
}

/* ---- to the client ---- */

static size_t unsent_bytes(const struct watch_socket *s)
{
    return s->out.len - s->out_at;
}

static void watch_socket_pull(struct watch_socket *s)
{
    HK_AUTO(hk_buf_fini) struct hk_buf event = {0};
    enum watch_step step = WATCH_STEP_EVENT;

    while (!s->closing && step == WATCH_STEP_EVENT && unsent_bytes(s) < OUT_BYTES) {
        hk_buf_clear(&event);
        step = s->source.next(s->source.ctx, &event);
        if (event.len > 0) {
            ws_write(WS_TEXT, hk_buf_str(&event), NULL, &s->out);
        }
        if (step == WATCH_STEP_END) {
            write_close_once(s, WS_CLOSE_NORMAL);
        }
    }
}

/* Sends what the socket takes. Returns false when the connection is lost. */
static bool watch_socket_flush(struct watch_socket *s)
{
    while (unsent_bytes(s) > 0) {
        const ssize_t n = http_tunnel_write(s->x->http, s->out.data + s->out_at, unsent_bytes(s));
        if (n >= 0) {
            s->out_at += (size_t)n;
            s->stalled = false;
        } else if (errno == EAGAIN) {
            return true;
        } else if (errno != EINTR) {
            return false;
        }
    }
    hk_buf_clear(&s->out);
    s->out_at = 0;
    s->stalled = false;
    return true;
}

static void watch_socket_wait_for_room(struct watch_socket *s)
{
    const struct server *server = s->x->server;

    if (!s->stalled) {
        s->stalled = true;
        net_timer_at(s->patience,
                     net_loop_now_ns(server->opts.loop) + server->opts.idle_timeout_ms * 1000000);
    }
    http_tunnel_want(s->x->http, EPOLLIN | EPOLLOUT);
}

/* May free s. */
static void watch_socket_write(struct watch_socket *s)
{
    do {
        watch_socket_pull(s);
        if (unsent_bytes(s) == 0) {
            net_timer_off(s->patience);
            http_tunnel_want(s->x->http, EPOLLIN);
            return;
        }
        if (!watch_socket_flush(s)) {
            watch_socket_end(s);
            return;
        }
    } while (unsent_bytes(s) == 0 && !s->closing);
    if (unsent_bytes(s) == 0) {
        watch_socket_end(s);
    } else {
        watch_socket_wait_for_room(s);
    }
}

/* ---- from the client ---- */

/* Returns false after the client's close frame, or after invalid bytes. */
static bool watch_socket_accept(struct watch_socket *s, char *bytes, size_t n)
{
    struct hk_err err = {0};
    struct ws_piece piece;
    int rc;

    while ((rc = ws_read(&s->reader, &bytes, &n, &piece, &err)) > 0) {
        if (piece.op == WS_CLOSE) {
            write_close_once(s, ws_close_code(piece.bytes));
            return false;
        }
        if (piece.op == WS_PING && !s->closing && unsent_bytes(s) < OUT_BYTES) {
            ws_write(WS_PONG, piece.bytes, NULL, &s->out);
        }
    }
    if (rc < 0) {
        write_close_once(s, s->reader.close_code);
    }
    return rc == 0;
}

/* Returns false when the connection is lost. */
static bool watch_socket_read(struct watch_socket *s)
{
    char bytes[READ_BYTES];

    for (int k = 0; k < READS_MAX; k++) {
        const ssize_t n = http_tunnel_read(s->x->http, bytes, sizeof(bytes));
        if (n == 0) {
            return false;
        }
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return errno == EAGAIN;
        }
        if (!watch_socket_accept(s, bytes, (size_t)n) || (size_t)n < sizeof(bytes)) {
            return true;
        }
    }
    watch_socket_resume(s); /* the rest, after others had their turn */
    return true;
}

static void watch_socket_on_ready(void *ctx, uint32_t events)
{
    struct watch_socket *s = ctx;

    if (!s->closing && !watch_socket_read(s)) {
        watch_socket_end(s);
        return;
    }
    watch_socket_write(s);
}

/* ---- the beginning ---- */

static void watch_socket_on_opened(void *ctx, struct hk_str early)
{
    struct watch_socket *s = ctx;
    HK_AUTO(hk_buf_fini) struct hk_buf bytes = {0};

    hk_buf_addstr(&bytes, early); /* the reader unmasks in place */
    (void)watch_socket_accept(s, bytes.data, bytes.len);
    watch_socket_resume(s);
}

void watch_socket_resume(struct watch_socket *s)
{
    http_tunnel_want(s->x->http, EPOLLIN | EPOLLOUT);
}

struct watch_socket *watch_socket_begin(struct exchange *x, const struct watch_source *source)
{
    struct watch_socket *s = hk_zalloc(sizeof(*s));
    char accept[WS_ACCEPT_BYTES + 1];

    s->x = x;
    s->source = *source;
    s->reader = (struct ws_reader){.server = true, .max_frame = FRAME_MAX};
    s->patience = net_timer_new(x->server->opts.loop, watch_socket_on_patience, s);
    ws_accept(http_request_header(x->http, "Sec-WebSocket-Key"), accept);
    const struct http_header headers[] = {
        {HK_STR("Upgrade"), HK_STR("websocket")},
        {HK_STR("Sec-WebSocket-Accept"), hk_str(accept)},
    };
    http_reply_tunnel(x->http, headers, HK_LEN(headers),
                      &(struct http_tunnel){.opened = watch_socket_on_opened,
                                            .ready = watch_socket_on_ready,
                                            .cut = watch_socket_on_cut,
                                            .ctx = s});
    return s;
}
