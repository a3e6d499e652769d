// SPDX-License-Identifier: Apache-2.0
// A load generator: many kept-alive HTTP/1.1 connections over TLS on one thread. Each connection
// asks for its next request as soon as the last answer is whole, so a "client" is one connection
// with one request under way. Errors of the peer end the program: a benchmark that lost an answer
// has nothing to report.
#pragma once

#include "base/str.h"
#include "net/loop.h"

struct load;

struct load_ops {
    /* Appends the next request of a connection; false: it rests until load_kick. */
    bool (*next)(void *ctx, uint32_t conn, struct hk_buf *out);
    /* A whole answer. */
    void (*answer)(void *ctx, uint32_t conn, int status, struct hk_str body);
    /* A piece of a body of unknown length, as it comes; answer then gets none of it. NULL: answer
     * gets it all. */
    void (*piece)(void *ctx, uint32_t conn, struct hk_str data);
};

/* Connects n clients to the loopback port and shakes hands, all resting. */
struct load *load_new(struct net_loop *loop, uint16_t port, uint32_t n, const struct load_ops *ops,
                      void *ctx);
void load_free(struct load *l);
/* Has a resting connection ask for its next request. */
void load_kick(struct load *l, uint32_t conn);
void load_kick_all(struct load *l);
/* Stops reading from a connection, for good. */
void load_stall(struct load *l, uint32_t conn);
/* Turns the loop until *done, which an op sets; false when seconds have passed without. */
bool load_wait(struct net_loop *loop, const bool *done, double seconds);

/* A connected, non-blocking socket. */
int load_connect(uint16_t port);
