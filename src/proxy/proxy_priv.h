// SPDX-License-Identifier: Apache-2.0
// Shared by proxy.c, which listens, proxy_conn.c, which relays one connection, and proxy_udp.c, which
// relays datagrams.
#pragma once

#include "proxy/proxy.h"

#include <sys/socket.h>

enum { PROXY_ADDRESS_MAX = 46 };

/* A copy of an endpoint: it outlives the Service's. */
struct proxy_target {
    char address[PROXY_ADDRESS_MAX];
    uint16_t port;
};

/* The endpoint that a client got, for sessionAffinity ClientIP. */
struct proxy_affinity {
    char client[PROXY_ADDRESS_MAX];
    struct proxy_target target;
    int64_t until_ns;
};

struct proxy_listener {
    struct proxy *p;
    const struct service *service; /* whose it is; only compared */
    char address[PROXY_ADDRESS_MAX];
    uint16_t port;
    bool udp;
    int fd; /* -1: cannot listen */
    struct net_watch *watch;
    bool wanted; /* while the listeners of a Service are compared with it */
    int64_t affinity_s;
    HK_VEC(struct proxy_target) targets;
    uint32_t next; /* the target of the next client */
    HK_VEC(struct proxy_affinity) clients;
    HK_VEC(struct proxy_udp *) udp_clients;
};

struct proxy {
    struct proxy_opts o;
    HK_VEC(struct proxy_listener *) listeners;
    HK_VEC(struct proxy_conn *) conns;
    struct net_timer *retry; /* of listeners that could not listen */
    struct net_timer *sweep; /* of silent clients that send datagrams */
    struct net_timer *again; /* accepts again after accept() failed */
    uint64_t nfailed;        /* calls of accept() that lacked descriptors or memory */
    bool full;               /* accepts no more connections for now */
    bool told_failed;        /* accept() fails: said, until it works again */
    bool told_full;          /* too many listeners: said once */
};

/* The index of the target that the client gets: in turn, or the one it had. */
uint32_t proxy_choose_target(struct proxy_listener *l, const struct sockaddr_storage *client);
bool proxy_has_target(const struct proxy_listener *l, const struct proxy_target *t);
/* Starts to connect a socket of that type to the target; -1: failed at once. */
int proxy_connect(const struct proxy_target *t, int type);

/* The socket of a listener for datagrams; negative: none. */
int proxy_udp_listen(const struct proxy_listener *l, struct hk_err *err);
/* It is readable. */
void proxy_udp_on_datagram(void *listener, uint32_t events);
/* Forgets clients whose target is gone. */
void proxy_udp_keep_targets(struct proxy_listener *l);
/* Forgets silent clients. */
void proxy_udp_sweep(struct proxy_listener *l, int64_t now_ns);
void proxy_udp_close(struct proxy_listener *l);

/* Relays the client's connection to the first of the targets that accepts one. Takes fd. */
void proxy_conn_new(struct proxy *p, int fd, const struct proxy_target *targets, uint32_t n);
void proxy_conn_free(struct proxy_conn *c);
/* A connection has ended: the proxy may have room again. */
void proxy_on_conn_end(struct proxy *p, struct proxy_conn *c);
