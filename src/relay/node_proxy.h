// SPDX-License-Identifier: Apache-2.0
// Logs of and commands in pods on other machines, for the embedded server: asks their nodes
// (kubelet API, at the address in the node's status), with a client certificate of the server's CA.
// Does not verify the nodes' certificates, like kube-apiserver without a kubelet CA.
#pragma once

#include "base/clock.h"
#include "net/cert.h"
#include "net/loop.h"
#include "net/node_api.h"

struct node_proxy;
struct port;

struct node_proxy_opts {
    struct net_loop *loop;
    struct hk_clock *clock;
    struct hk_rand *rand;
    struct port *port;            /* of the server; the caller polls it */
    const struct cert_pair *ca;   /* borrowed for node_proxy_new */
    const struct node_api *local; /* serves the pods of this process; or NULL */
};

int node_proxy_new(const struct node_proxy_opts *o, struct node_proxy **ret,
                   struct hk_err *err) HK_CHECKED;
/* Call after the server is gone: pending calls get no answer. Takes NULL. */
void node_proxy_free(struct node_proxy *p);
/* Serves all pods: with `local` for those it has, by asking their nodes for the others. */
const struct node_api *node_proxy_api(const struct node_proxy *p);
/* The client certificate that it shows to nodes. */
const struct cert_pair *node_proxy_cert(const struct node_proxy *p);
