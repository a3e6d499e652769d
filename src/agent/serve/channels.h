// SPDX-License-Identifier: Apache-2.0
// Kubernetes' remote command protocol on an upgraded connection: WebSocket messages whose first
// byte names their stream (v4.channel.k8s.io, v5.channel.k8s.io), or SPDY streams whose headers do
// (v4.channel.k8s.io), as kube-apiserver uses with nodes. A sender asks for room first, and a
// receiver can pause the peer, so buffers stay bounded in both directions.
#pragma once

#include "base/str.h"
#include "net/http.h"
#include "net/loop.h"
#include "net/spdy.h"
#include "net/ws.h"

enum channel {
    CHANNEL_STDIN,
    CHANNEL_STDOUT,
    CHANNEL_STDERR,
    CHANNEL_ERROR,  /* exit status, as a Status object */
    CHANNEL_RESIZE, /* {"Width":80,"Height":24} */
    CHANNEL_COUNT,
    CHANNEL_END = 255, /* v5: the channel named by the next byte has ended */
};

struct channels_ops {
    /* The peer has opened every channel it asked for: the command may start. A peer that takes too
     * long is disconnected. */
    void (*begun)(void *ctx);
    /* Data of standard input, and its end. */
    void (*input)(void *ctx, struct hk_str bytes);
    void (*input_end)(void *ctx);
    /* The size of the peer's terminal. */
    void (*size)(void *ctx, uint16_t columns, uint16_t rows);
    /* There is room to send again. */
    void (*room)(void *ctx);
    /* The connection is closed, cleanly or not. Only this callback may call channels_fini. */
    void (*closed)(void *ctx);
};

struct channels {
    const char *protocol;            /* the agreed protocol */
    struct spdy *spdy;               /* NULL: WebSocket */
    uint32_t streams[CHANNEL_COUNT]; /* SPDY stream by channel; 0: not opened by the peer */
    unsigned awaited;                /* bit set of channels that the peer has yet to open */
    bool begun;
    struct net_timer *patience; /* NULL: not open */
    struct http_request *http;  /* NULL: not open, or closed */
    const struct channels_ops *ops;
    void *ctx;
    struct ws_reader reader;
    uint8_t channel;    /* of the current message */
    struct hk_buf text; /* of a resize message */
    bool paused;        /* by channels_pause */
    bool full;          /* the owner waits for ops->room */
    bool closing;       /* we have sent our last message */
    bool more;          /* more data may be buffered although the socket is not readable */
    struct hk_buf in;   /* received, not yet parsed: [in_at, in.len) */
    struct hk_buf out;  /* not yet sent: [out_at, out.len) */
    size_t in_at, out_at;
};

/* Chooses the best protocol that both sides know; the error message says what to use instead. wants
 * is the bit set of channels of the request. c must be zero. */
int channels_offer(struct channels *c, const struct http_request *q, unsigned wants,
                   struct hk_err *err) HK_CHECKED;
/* Answers 101 with the chosen protocol. */
void channels_accept(const struct channels *c, struct http_request *q, const struct http_tunnel *t);
/* Call these from the tunnel's opened and ready. */
void channels_open(struct channels *c, struct net_loop *loop, struct http_request *http,
                   struct hk_str early, const struct channels_ops *ops, void *ctx);
void channels_ready(struct channels *c, uint32_t events);
/* Closes the connection. May be called before channels_open. */
void channels_fini(struct channels *c);
/* Whether to send now; if false, ops->room is called later. Call both only after begun. */
bool channels_room(struct channels *c);
void channels_send(struct channels *c, enum channel to, struct hk_str bytes);
/* Stops ops->input until resumed. */
void channels_pause(struct channels *c);
void channels_resume(struct channels *c);
/* Sends a close message; ops->closed follows after the peer's answer. */
void channels_close(struct channels *c, uint16_t code, const char *why);
