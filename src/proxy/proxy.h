// SPDX-License-Identifier: Apache-2.0
// The way to the pods of a Service: listens on the cluster IP and the node port of every port that
// has an endpoint, and relays each connection, or each client's datagrams, to one of them. A port
// without endpoints refuses connections, as in a cluster. SCTP is not relayed. Runs in the owner's
// loop, in user space; needs no privileges but for ports below 1024.
#pragma once

#include "api/services.h"
#include "net/loop.h"

struct proxy;

struct proxy_opts {
    struct net_loop *loop;
    struct services *services; /* outlives the proxy; create the proxy before its first tick */
    uint32_t max_connections;  /* relayed at a time; 0: 2048, or an eighth of the descriptors */
    uint32_t max_listeners;    /* 0: 4096 */
};

struct proxy *proxy_new(const struct proxy_opts *o);
/* Ends all connections. Takes NULL. */
void proxy_free(struct proxy *p);
/* Connections that are relayed now. */
uint32_t proxy_connections(const struct proxy *p);
