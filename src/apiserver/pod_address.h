// SPDX-License-Identifier: Apache-2.0
// Addresses of pods as this server sees them: hekla's nodes give pods loopback addresses of their
// own machine, which lead elsewhere, or nowhere, on another one.
#pragma once

#include "net/node_api.h"
#include "store/rest.h"

struct pod_address {
    const struct rest *rest;
    const struct store *store;
    const struct node_api *nodes; /* the nodes of this process; NULL: none */
};

/* Whether connections to the address of a pod on the node arrive there. node "": unknown, taken for
 * this machine. */
bool pod_address_reachable(const struct pod_address *a, struct hk_str host, struct hk_str node);
/* The InternalIP of a node, "" without one. */
struct hk_str pod_address_of_node(const struct json *node);
