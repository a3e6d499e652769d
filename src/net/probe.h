// SPDX-License-Identifier: Apache-2.0
// One question to an address: does the port take a connection, or is a GET answered with 200 to
// 399. Many may be under way; none of them blocks the loop.
#pragma once

#include "base/str.h"
#include "net/loop.h"

struct net_probe;

struct net_probe_opts {
    struct hk_str host; /* a numeric address */
    uint16_t port;
    bool http; /* else a connection is enough */
    /* Of a GET; a header without name is none. */
    struct hk_str path, header, value;
    int64_t timeout_ns;
    void (*done)(void *ctx, struct net_probe *p, bool good);
    void *ctx;
};

/* Everything but the callback is borrowed for the call. done is called exactly once, from the loop,
 * unless the probe is freed before; it must free the probe. */
struct net_probe *net_probe_new(struct net_loop *l, const struct net_probe_opts *o);
/* Takes NULL. */
void net_probe_free(struct net_probe *p);
