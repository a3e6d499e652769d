// SPDX-License-Identifier: Apache-2.0
// One question to an address: does the port take a connection, is a GET answered with 200 to 399,
// or does a gRPC service say that it serves. Many may be under way; none of them blocks the loop.
#pragma once

#include "base/str.h"
#include "net/loop.h"

struct net_probe;

enum net_probe_kind {
    NET_PROBE_TCP, /* a connection is enough */
    NET_PROBE_HTTP,
    NET_PROBE_HTTPS, /* whatever the certificate, as kubelet has it */
    NET_PROBE_GRPC,  /* grpc.health.v1, without TLS */
};

struct net_probe_header {
    struct hk_str name, value;
};

struct net_probe_opts {
    struct hk_str host; /* a numeric address */
    uint16_t port;
    enum net_probe_kind kind;
    struct hk_str path; /* of a GET; gRPC: the service, "" the server as a whole */
    const struct net_probe_header *headers; /* of a GET */
    uint32_t nheader;
    bool any_status; /* any answer to a GET will do */
    int64_t timeout_ns;
    void (*done)(void *ctx, struct net_probe *p, bool good);
    void *ctx;
};

/* Everything but the callback is borrowed for the call. done is called exactly once, from the loop,
 * unless the probe is freed before; it must free the probe. */
struct net_probe *net_probe_new(struct net_loop *l, const struct net_probe_opts *o);
/* Takes NULL. */
void net_probe_free(struct net_probe *p);
