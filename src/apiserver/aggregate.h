// SPDX-License-Identifier: Apache-2.0
// Aggregation: group versions that another API server answers for, as APIServices name them. Keeps
// their condition Available, the APIServices of this server's own group versions, and the ConfigMap
// from which other API servers learn whom to trust.
#pragma once

#include "apiserver/discovery.h"
#include "net/cert.h"
#include "net/loop.h"
#include "net/node_api.h"
#include "store/rest.h"

struct aggregate;
struct aggregate_service;
struct exchange;

/* The name in the certificate that this server shows to other API servers. */
#define AGGREGATE_FRONT_CN "front-proxy-client"

struct aggregate_opts {
    struct net_loop *loop;
    struct rest *rest;
    struct store *store;
    struct hk_clock *clock;
    struct hk_rand *rand;
    const struct node_api *nodes;   /* of this process; or NULL */
    const struct cert_pair *client; /* shown to other API servers; NULL: nothing is forwarded */
    const char *front_ca_pem;       /* which they verify it with */
    const char *client_ca_pem;      /* of the users' certificates */
};

struct aggregate *aggregate_new(const struct aggregate_opts *o);
/* Call it when no request is forwarded any more. Takes NULL. */
void aggregate_free(struct aggregate *a);

/* Reads the APIServices again if they have changed; aggregate_find does it, too. */
void aggregate_refresh(struct aggregate *a);

/* The other server of a group version; NULL: this one serves it. Valid until the next call. */
struct aggregate_service *aggregate_find(struct aggregate *a, struct hk_str group,
                                         struct hk_str version);
/* Answers the request, now or later; x is freed. */
void aggregate_serve(struct exchange *x, struct aggregate_service *s);

/* What discovery shows, in order of preference; false behind the last. Borrowed until the next call of aggregate_find. */
bool aggregate_view(const struct aggregate *a, uint32_t i, struct discovery_foreign *ret);
