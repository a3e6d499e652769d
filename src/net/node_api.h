// SPDX-License-Identifier: Apache-2.0
// Requests that only the node of a pod can answer: logs, terminals, forwarded ports. The agent
// implements this; the server routes to it after authentication.
#pragma once

#include "net/http.h"

/* Log line in place of removed lines, with the numbers of lines and bytes. */
#define NODE_LOG_REMOVED "hekla: %lld lines (%lld bytes) before this were removed by rotation"

struct node_call {
    struct hk_str ns, pod;
    struct hk_str sub;   /* "log", "exec", "attach", "portforward" */
    struct hk_str query; /* raw */
    struct http_request *http;
    struct hk_str container; /* "": named in the query, or the only one */
    bool kubelet;            /* uses kubelet's names of query parameters */
};

struct node_api {
    /* Answers the call, now or later. */
    void (*serve)(void *ctx, const struct node_call *call);
    /* Whether the node has that pod. NULL: it serves all pods. */
    bool (*has)(void *ctx, struct hk_str ns, struct hk_str pod);
    /* Whether the node is one of this process, whose own HTTP API serve_node answers for: q->path is
     * a path of that API, and valid for the call only. NULL: no such node. */
    bool (*has_node)(void *ctx, struct hk_str name);
    void (*serve_node)(void *ctx, struct hk_str name, struct http_request *q);
    void *ctx;
};
