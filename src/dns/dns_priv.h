// SPDX-License-Identifier: Apache-2.0
// Shared by dns.c, which answers, and dns_tcp.c, which has the connections.
#pragma once

#include "dns/dns.h"
#include "dns/dns_forward.h"

#include "base/vec.h"

#include <netinet/in.h>
#include <sys/socket.h>

struct dns {
    struct dns_opts o;
    char address[INET_ADDRSTRLEN];
    struct dns_zone *zone;
    struct dns_forward *forward;
    int udp, tcp; /* -1: not open */
    uint16_t port;
    struct net_watch *udp_watch, *tcp_watch;
    struct net_timer *again; /* accepts again after accept() failed */
    HK_VEC(struct dns_pending *) pending;
    HK_VEC(struct dns_conn *) conns;
    uint32_t turn; /* counts queries */
};

/* Who waits for a reply. */
struct dns_client {
    struct dns_conn *conn; /* NULL: UDP */
    struct sockaddr_storage from;
    socklen_t nfrom;
};

/* Answers the message, now or later; false: it must not be answered. */
bool dns_handle(struct dns *d, struct hk_str message, const struct dns_client *client);
/* Forgets the questions of a connection that ends. */
void dns_drop_pending(struct dns *d, const struct dns_conn *conn);

int dns_tcp_open(struct dns *d, struct hk_err *err);
void dns_tcp_close(struct dns *d);
/* The reply that the connection waits for. May free it. */
void dns_conn_reply(struct dns_conn *c, struct hk_str reply, bool now);
