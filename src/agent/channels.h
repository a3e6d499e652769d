// SPDX-License-Identifier: Apache-2.0
// Kubernetes' remote command protocol on a connection that was upgraded: WebSocket messages whose
// first byte says which stream they belong to (v4.channel.k8s.io, v5.channel.k8s.io), or streams of
// SPDY whose headers do (v4.channel.k8s.io), which is what kube-apiserver speaks to nodes. Who has
// something to send asks for room first, who cannot take more pauses the peer: neither way is
// anything kept without bound.
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
    CHANNEL_ERROR,  /* how it ended, as a Status */
    CHANNEL_RESIZE, /* {"Width":80,"Height":24} */
    CHANNEL_COUNT,
    CHANNEL_END = 255, /* v5: the channel named by the next byte has ended */
};

struct channels_ops {
    /* The peer has opened every channel it asked for: what begins, begins now. A peer that takes
     * too long for that is left. */
    void (*begun)(void *ctx);
    /* More of standard input, and its end. */
    void (*input)(void *ctx, struct hk_str bytes);
    void (*input_end)(void *ctx);
    /* The peer's terminal has that size. */
    void (*size)(void *ctx, uint16_t columns, uint16_t rows);
    /* There is room again. */
    void (*room)(void *ctx);
    /* The peer has closed, in good form or not: there is nobody to be heard or spoken to. The owner
     * may end the channels from here, and from nowhere else in these. */
    void (*closed)(void *ctx);
};

struct channels {
    const char *protocol;            /* that was agreed on */
    struct spdy *spdy;               /* NULL: it is a WebSocket */
    uint32_t streams[CHANNEL_COUNT]; /* of SPDY, by channel; 0: the peer has not opened it */
    unsigned awaited;                /* set of channels that the peer is to open */
    bool begun;
    struct net_timer *patience; /* NULL: not open */
    struct http_request *http;  /* NULL: not open, or closed */
    const struct channels_ops *ops;
    void *ctx;
    struct ws_reader reader;
    uint8_t channel;    /* of the message under way */
    struct hk_buf text; /* of a message about the size */
    bool paused;        /* the owner takes nothing */
    bool full;          /* somebody waits for room */
    bool closing;       /* we have said the last word */
    bool more;          /* the connection may have more without being ready */
    struct hk_buf in;   /* received, not yet looked at: [in_at, in.len) */
    struct hk_buf out;  /* not yet sent: [out_at, out.len) */
    size_t in_at, out_at;
};

/* Chooses the best protocol that the request offers and we know; fails with words on what to use
 * instead. wants is the set of channels, as bits, that the request asks for. c is zero before. */
int channels_offer(struct channels *c, const struct http_request *q, unsigned wants,
                   struct hk_err *err) HK_CHECKED;
/* Answers 101 with that protocol. */
void channels_accept(const struct channels *c, struct http_request *q, const struct http_tunnel *t);
/* For opened and ready of the tunnel. */
void channels_open(struct channels *c, struct net_loop *loop, struct http_request *http,
                   struct hk_str early, const struct channels_ops *ops, void *ctx);
void channels_ready(struct channels *c, uint32_t events);
/* Hangs up. Also of those that were never opened. */
void channels_fini(struct channels *c);
/* Whether to send now; false: ops->room will be called. Both after begun only. */
bool channels_room(struct channels *c);
void channels_send(struct channels *c, enum channel to, struct hk_str bytes);
/* No data is handed over until resumed. */
void channels_pause(struct channels *c);
void channels_resume(struct channels *c);
/* Says goodbye; ops->closed follows when the peer has answered. */
void channels_close(struct channels *c, uint16_t code, const char *why);
