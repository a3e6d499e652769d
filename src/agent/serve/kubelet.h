// SPDX-License-Identifier: Apache-2.0
// The node's own server: the part of kubelet's HTTP API that API servers and users need. Every
// caller must authenticate, and the API server authorizes it (kubelet_access.h).
//
//   GET /healthz                              ok
//   GET /pods                                 the pods of the node, a PodList
//   GET /containerLogs/NS/POD/CONTAINER       with the parameters of a pod's log
//   GET, POST /exec/NS/POD[/UID]/CONTAINER    over WebSocket or SPDY: command, input, output,
//                                             error, tty
//   GET, POST /attach/NS/POD[/UID]/CONTAINER  the same without a command
//   GET, POST /portForward/NS/POD[/UID]       over WebSocket or SPDY: port, for WebSocket channels
#pragma once

#include "api/port.h"
#include "base/clock.h"
#include "net/node_api.h"

struct kubelet;

struct kubelet_opts {
    struct net_loop *loop;
    struct hk_clock *clock;
    struct port *port;
    struct hk_str addr; /* as in http_opts */
    uint16_t tcp_port;
    const char *cert_pem, *key_pem;
    const char *client_ca_pem;  /* NULL: tokens only */
    const char *node;           /* as in kubelet_access_opts */
    const struct node_api *api; /* borrowed; answers for the pods */
    /* Appends the pods, separated by commas. */
    void (*write_pods)(void *ctx, struct hk_buf *out);
    void *ctx;
};

/* Answers a request of a caller who was authorized elsewhere. */
void kubelet_serve(const struct kubelet_opts *o, struct http_request *q);

int kubelet_new(const struct kubelet_opts *o, struct kubelet **ret, struct hk_err *err) HK_CHECKED;
uint16_t kubelet_port(const struct kubelet *k);
/* Changes the certificate, like http_server_become. */
int kubelet_become(struct kubelet *k, const char *cert_pem, const char *key_pem,
                   struct hk_err *err) HK_CHECKED;
/* Cuts every connection; call it before freeing `api`. Takes NULL. */
void kubelet_free(struct kubelet *k);
