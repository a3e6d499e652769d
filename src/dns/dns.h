// SPDX-License-Identifier: Apache-2.0
// The DNS server of a node, for pods: answers for the cluster domain from the table of Services
// (dns_zone.h), and passes all other questions on to the machine's resolvers (dns_forward.h). UDP and
// TCP on one loopback address. Runs in the owner's loop.
#pragma once

#include "dns/dns_zone.h"
#include "net/loop.h"

struct dns;

struct dns_opts {
    struct net_loop *loop;
    struct dns_zone_opts zone; /* but for its address */
    const char *address;       /* to listen on: a loopback address of IPv4 */
    uint16_t port;             /* 0: any */
    const char *resolv_conf;   /* path of the machine's */
    int64_t try_ns;            /* as in dns_forward_opts */
    uint16_t resolver_port;    /* the same */
    uint32_t max_connections;  /* TCP; 0: 256 */
};

/* Fails if the address cannot be used. */
int dns_new(const struct dns_opts *o, struct dns **ret, struct hk_err *err) HK_CHECKED;
/* Takes NULL. */
void dns_free(struct dns *d);
uint16_t dns_port(const struct dns *d);
/* The address that it listens on. */
const char *dns_address(const struct dns *d);
