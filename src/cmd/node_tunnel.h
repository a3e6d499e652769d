// SPDX-License-Identifier: Apache-2.0
// A connection that a client wants to have upgraded, carried on to a node: what the client asks for
// is asked of the node, in the same words, and once the node has agreed bytes are handed on both
// ways as they are. What a side does not take holds the other up.
#pragma once

#include "net/http.h"
#include "net/loop.h"

struct node_tunnel;

struct node_tunnel_opts {
    struct net_loop *loop;
    struct http_request *http;
    struct hk_str host; /* of the node, with its port */
    uint16_t port;
    const char *cert_pem, *key_pem; /* who we are to it */
    const char *path;               /* with its query */
    /* One of them, once, from the loop, unless the tunnel is freed before: the request is no more,
     * or the node cannot be asked, and the request is still to be answered. */
    void (*over)(void *ctx);
    void (*failed)(void *ctx, const char *why);
    void *ctx;
};

/* Everything but the request and the callbacks is borrowed for the call. */
struct node_tunnel *node_tunnel_new(const struct node_tunnel_opts *o);
/* Not from within the callbacks. Hangs up. Takes NULL. */
void node_tunnel_free(struct node_tunnel *t);
