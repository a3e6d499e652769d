// SPDX-License-Identifier: Apache-2.0
// The streams of a port-forward connection, in one of Kubernetes' forms:
//
//   SPDY/3.1, protocol portforward.k8s.io: the client opens two streams, one for data and one for
//   the error, for each connection to the pod
//   the same SPDY bytes as messages of a WebSocket (SPDY/3.1+portforward.k8s.io)
//   WebSocket messages whose first byte is the channel (v4.channel.k8s.io): the request names the
//   ports; port k has channel 2k for data and 2k+1 for the error. With v5.channel.k8s.io, which
//   Kubernetes does not offer here, the client can end its data with a message of channel 255 that
//   names the channel
//
// A sender asks for room first, and a receiver can pause the client, so buffers stay bounded in both
// directions.
#pragma once

#include "net/http.h"
#include "net/loop.h"
#include "net/spdy.h"
#include "net/ws.h"

struct forward_wire_ops {
    /* SPDY: the client opened a stream; read its headers with forward_wire_header. */
    void (*stream)(void *ctx, uint32_t stream);
    void (*data)(void *ctx, uint32_t stream, struct hk_str bytes);
    /* The client sends no more on the stream; cancelled: and reads no more from it. */
    void (*ended)(void *ctx, uint32_t stream, bool cancelled);
    /* There is room to send again. */
    void (*room)(void *ctx);
    /* The connection is closed, cleanly or not. Only this callback may call forward_wire_fini. */
    void (*closed)(void *ctx);
};

struct forward_wire {
    const char *protocol;      /* the agreed one; NULL: the client named none */
    bool websocket;            /* messages of a WebSocket carry the bytes */
    struct spdy *spdy;         /* NULL: channels; their streams are numbered from 1 */
    struct http_request *http; /* NULL: not open, or closed */
    const struct forward_wire_ops *ops;
    void *ctx;
    struct net_loop *loop;
    struct net_timer *patience; /* with a client that does not answer our close */
    struct ws_reader reader;
    uint8_t channel;        /* of the current message */
    bool ends;              /* the client can end a channel */
    bool paused;            /* by forward_wire_pause */
    bool full;              /* the owner waits for ops->room */
    bool closing;           /* our last message is in out */
    bool more;              /* more data may be buffered although the socket is not readable */
    struct hk_buf in;       /* received, not yet parsed: [in_at, in.len) */
    struct hk_buf frames;   /* SPDY of received messages, not yet parsed: [frames_at, frames.len) */
    struct hk_buf spdy_out; /* SPDY not yet wrapped into a message */
    struct hk_buf out;      /* not yet sent: [out_at, out.len) */
    size_t in_at, frames_at, out_at;
};

/* Chooses the form; the error message says what to use instead. w must be zero. */
int forward_wire_offer(struct forward_wire *w, const struct http_request *q,
                       struct hk_err *err) HK_CHECKED;
/* Whether the request must name the ports. */
bool forward_wire_has_channels(const struct forward_wire *w);
/* Answers 101. */
void forward_wire_accept(const struct forward_wire *w, struct http_request *q,
                         const struct http_tunnel *t);
/* Call these from the tunnel's opened and ready. */
void forward_wire_open(struct forward_wire *w, struct net_loop *loop, struct http_request *http,
                       struct hk_str early, const struct forward_wire_ops *ops, void *ctx);
void forward_wire_ready(struct forward_wire *w, uint32_t events);
/* Closes the connection. May be called before forward_wire_open. */
void forward_wire_fini(struct forward_wire *w);

/* A header, by its name in lower case, of the stream just opened; "" if missing. */
struct hk_str forward_wire_header(const struct forward_wire *w, const char *name);
/* Whether to send now; if false, ops->room is called later. */
bool forward_wire_room(struct forward_wire *w);
/* last: nothing more will be sent on the stream. */
void forward_wire_send(struct forward_wire *w, uint32_t stream, struct hk_str bytes, bool last);
/* Refuses a stream of SPDY. */
void forward_wire_cancel(struct forward_wire *w, uint32_t stream);
/* Stops ops->data until resumed. */
void forward_wire_pause(struct forward_wire *w);
void forward_wire_resume(struct forward_wire *w);
/* Closes the connection once everything is sent; ops->closed follows. */
void forward_wire_close(struct forward_wire *w, uint16_t code, const char *why);
