// SPDX-License-Identifier: Apache-2.0
// The load generator's other half: puts keys into etcd over gRPC, many streams on a few HTTP/2
// connections over TLS. A client has one put under way, as in load.h.
#pragma once

#include "base/str.h"
#include "net/loop.h"

struct load_grpc;

struct load_grpc_ops {
    /* Appends key and value of a client's next put; false: it rests. */
    bool (*next)(void *ctx, uint32_t client, struct hk_buf *key, struct hk_buf *value);
    /* etcd says the put is durable. */
    void (*answer)(void *ctx, uint32_t client);
};

/* Clients take the connections in turns. */
struct load_grpc *load_grpc_new(struct net_loop *loop, uint16_t port, uint32_t connections,
                                uint32_t clients, const struct load_grpc_ops *ops, void *ctx);
void load_grpc_free(struct load_grpc *l);
void load_grpc_kick_all(struct load_grpc *l);
