// SPDX-License-Identifier: Apache-2.0
// Connections that forward ports, from arbitrary bytes in each form: what the owner hears does not
// depend on how the bytes arrive, nor on pauses. The first byte chooses the form.
#include "agent/serve/forward_wire.c"

#include "base/map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- a tunnel without a socket ---- */

struct socket {
    const uint8_t *data;
    size_t size, at, part;
    bool pauses;
    uint32_t events;
    struct forward_wire wire;
    bool closed;
    uint64_t hash; /* over events and bytes, not over where pieces of data were cut */
};

static struct socket *the_socket; /* a request has no place for it */

void http_tunnel_want(struct http_request *q, uint32_t events)
{
    the_socket->events = events;
}

ssize_t http_tunnel_read(struct http_request *q, char *p, size_t n)
{
    struct socket *s = the_socket;
    const size_t part = HK_MIN(HK_MIN(n, s->part), s->size - s->at);

    if (part == 0) {
        errno = EAGAIN;
        return -1;
    }
    memcpy(p, s->data + s->at, part);
    s->at += part;
    return (ssize_t)part;
}

ssize_t http_tunnel_write(struct http_request *q, const char *p, size_t n)
{
    return (ssize_t)n;
}

void http_tunnel_close(struct http_request *q)
{
    the_socket->events = 0;
}

struct hk_str http_request_header(const struct http_request *q, const char *name)
{
    return HK_STR("");
}

void http_request_headers(const struct http_request *q,
                          void (*fn)(void *ctx, struct hk_str name, struct hk_str value), void *ctx)
{
}

void http_reply_tunnel(struct http_request *q, const struct http_header *headers, uint32_t n,
                       const struct http_tunnel *t)
{
}

/* ---- the owner ---- */

static void mix(struct socket *s, uint64_t what)
{
    s->hash = hk_mix(s->hash ^ what);
}

static void on_stream(void *ctx, uint32_t stream)
{
    struct socket *s = ctx;
    const struct hk_str port = forward_wire_header(&s->wire, "port");

    mix(s, (uint64_t)1 << 32 | stream);
    mix(s, hk_hash(port.s, port.n, 3));
    forward_wire_send(&s->wire, stream, HK_STR("hello"), stream & 2);
}

static void on_data(void *ctx, uint32_t stream, struct hk_str bytes)
{
    struct socket *s = ctx;

    for (size_t k = 0; k < bytes.n; k++) {
        s->hash = hk_mix(s->hash + (unsigned char)bytes.s[k] + stream);
    }
    if (s->pauses) {
        forward_wire_pause(&s->wire);
    }
}

static void on_stream_ended(void *ctx, uint32_t stream, bool cancelled)
{
    mix(ctx, (uint64_t)(cancelled ? 2 : 3) << 32 | stream);
}

static void on_wire_room(void *ctx)
{
}

static void on_wire_closed(void *ctx)
{
    struct socket *s = ctx;

    s->closed = true;
    forward_wire_fini(&s->wire);
}

static void run(struct socket *s, uint8_t form)
{
    static const struct forward_wire_ops ops = {.stream = on_stream,
                                                .data = on_data,
                                                .ended = on_stream_ended,
                                                .room = on_wire_room,
                                                .closed = on_wire_closed};
    struct http_request request = {0};
    struct net_loop *loop = net_loop_new(hk_clock_system());

    the_socket = s;
    s->wire = (struct forward_wire){.websocket = form % 3 != 0,
                                    .spdy = form % 3 != 2 ? spdy_new() : NULL};
    forward_wire_open(&s->wire, loop, &request, HK_STR(""), &ops, s);
    while (!s->closed && (s->at < s->size || s->events & EPOLLOUT || s->wire.paused)) {
        if (s->wire.paused) {
            forward_wire_resume(&s->wire);
        }
        forward_wire_ready(&s->wire, EPOLLIN | EPOLLOUT);
    }
    forward_wire_fini(&s->wire);
    net_loop_free(loop);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct socket whole = {.data = data + 1, .size = size - 1, .part = SIZE_MAX}, pieces = whole;

    if (size == 0) {
        return 0;
    }
    pieces.part = 1 + data[0] / 3 % 7;
    pieces.pauses = true;
    run(&whole, data[0]);
    run(&pieces, data[0]);
    hk_assert(whole.closed == pieces.closed && whole.hash == pieces.hash);
    return 0;
}
