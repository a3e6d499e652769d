// SPDX-License-Identifier: Apache-2.0
// What only the node of a pod can answer: logs, terminals, forwarded ports. The agent's side
// implements it; the server routes to it after authentication.
#pragma once

#include "net/http.h"

struct node_call {
    struct hk_str ns, pod;
    struct hk_str sub;   /* "log", "exec", "attach", "portforward", "proxy" */
    struct hk_str query; /* raw */
    struct http_request *http;
    struct hk_str container; /* "": the query says which, or there is one */
    bool kubelet;            /* asked as kubelets are: with other words in the query */
};

struct node_api {
    /* Answers the call, now or later. */
    void (*serve)(void *ctx, const struct node_call *call);
    /* It has that pod. NULL: it answers for all of them. */
    bool (*has)(void *ctx, struct hk_str ns, struct hk_str pod);
    void *ctx;
};
