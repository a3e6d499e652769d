// SPDX-License-Identifier: Apache-2.0
// The names of the cluster domain, by Kubernetes' DNS-based service discovery 1.1.0 and, where that
// leaves a choice, as CoreDNS. S.N stands for the Service S of the namespace N:
//
//   S.N.svc                 A and AAAA: the cluster IP, or each ready endpoint of a headless Service;
//                           CNAME: what an ExternalName stands for; SRV: all named ports
//   _PORT._PROTO.S.N.svc    SRV: the port of the cluster IP, or of each ready endpoint
//   HOST.S.N.svc            an endpoint, by its hostname or its address with dashes, 10-0-0-1
//   A-B-C-D.N.pod           the address of a pod
//   ns.dns, dns-version     this server, and the version above
//   D.C.B.A.in-addr.arpa    PTR: the Service, its endpoint, or the pod that has the address
//
// It borrows the table of Services; no I/O.
#pragma once

#include "base/err.h"
#include "dns/dns_message.h"

struct dns_zone;
struct services;

struct dns_zone_opts {
    struct services *services; /* outlives the zone; create the zone before its first tick */
    const char *domain;        /* "cluster.local" */
    uint32_t address;          /* of the server, in the byte order of the host */
    /* The namespace of the pod with that IPv4 address, in the byte order of the host; NULL: no pod
     * has it. Valid until the next call. fn NULL: no pods are known. */
    struct hk_str (*pod_namespace)(void *ctx, uint32_t address);
    void *ctx;
};

enum dns_zone_verdict {
    DNS_ZONE_ANSWERED,
    DNS_ZONE_ELSEWHERE, /* not a name of the zone; nothing was added */
    DNS_ZONE_ALIAS,     /* the reply has a CNAME to a name that is not of the zone */
};

struct dns_zone *dns_zone_new(const struct dns_zone_opts *o, struct hk_err *err);
/* Takes NULL. */
void dns_zone_free(struct dns_zone *z);
/* Adds the records and sets the code. turn: with which endpoint to begin, so that clients spread.
 * *ret_alias is set with DNS_ZONE_ALIAS. */
enum dns_zone_verdict dns_zone_answer(const struct dns_zone *z, struct dns_reply *r, uint32_t turn,
                                      struct dns_name *ret_alias);
