// SPDX-License-Identifier: Apache-2.0
// Forwards a client's upgrade request to a node: sends the same request to the node, and once the
// node agrees, copies bytes both ways. A slow side slows the other one down.
#pragma once

#include "net/http.h"
#include "net/loop.h"

struct node_tunnel;

struct node_tunnel_opts {
    struct net_loop *loop;
    struct http_request *http;
    struct hk_str host; /* address of the node, and its port */
    uint16_t port;
    const char *cert_pem, *key_pem; /* client certificate */
    const char *path;               /* including the query */
    /* One of them is called once, from the loop, unless the tunnel is freed before. over: the
     * request is finished. failed: the node is unreachable, and the request still needs an
     * answer. */
    void (*over)(void *ctx);
    void (*failed)(void *ctx, const char *why);
    void *ctx;
};

/* Borrows everything but the request and the callbacks for the call only. */
struct node_tunnel *node_tunnel_new(const struct node_tunnel_opts *o);
/* Hangs up. Do not call it from the callbacks. Takes NULL. */
void node_tunnel_free(struct node_tunnel *t);
