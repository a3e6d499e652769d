// SPDX-License-Identifier: Apache-2.0
// Logs of pods on other machines, and commands in them, for a server of our own: asked of their
// nodes, as the nodes' status says where (kubelet's API), with a certificate that the server's
// authority signed. Nodes are not asked to prove who they are, as kube-apiserver does not either
// unless it is told an authority for them.
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
    struct port *port;            /* of the server; somebody else polls it */
    const struct cert_pair *ca;   /* borrowed for node_proxy_new */
    const struct node_api *local; /* who answers for pods of this process; or NULL */
};

int node_proxy_new(const struct node_proxy_opts *o, struct node_proxy **ret,
                   struct hk_err *err) HK_CHECKED;
/* After the server: whoever waits hears nothing any more. Takes NULL. */
void node_proxy_free(struct node_proxy *p);
/* Answers for all pods: with `local` for those it has, by asking their nodes for the others. */
const struct node_api *node_proxy_api(const struct node_proxy *p);
