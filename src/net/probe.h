// SPDX-License-Identifier: Apache-2.0
// One probe of an address: does the port accept a connection, is a GET answered with 200 to 399, or
// does a gRPC service report that it serves. Many may run at once; none blocks the loop.
#pragma once

#include "base/str.h"
#include "net/loop.h"

struct net_probe;

enum net_probe_kind {
    NET_PROBE_TCP, /* a connection is enough */
    NET_PROBE_HTTP,
    NET_PROBE_HTTPS, /* accepts any certificate, like kubelet */
    NET_PROBE_GRPC,  /* grpc.health.v1, without TLS */
};

struct net_probe_header {
    struct hk_str name, value;
};

struct net_probe_opts {
    struct hk_str host; /* a numeric address */
    uint16_t port;
    enum net_probe_kind kind;
    struct hk_str path;                     /* of a GET; gRPC: the service, "": the whole server */
    const struct net_probe_header *headers; /* of a GET */
    uint32_t nheader;
    bool any_status; /* accept any status */
    int64_t timeout_ns;
    void (*done)(void *ctx, struct net_probe *p, bool good);
    void *ctx;
};

/* Borrows everything but the callback during the call. done is called exactly once, from the loop,
 * unless the probe is freed before; done must free the probe. */
struct net_probe *net_probe_new(struct net_loop *l, const struct net_probe_opts *o);
/* Takes NULL. */
void net_probe_free(struct net_probe *p);
