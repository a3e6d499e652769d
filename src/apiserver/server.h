// SPDX-License-Identifier: Apache-2.0
// The HTTP interface of the store, for kubectl, client-go and all other clients. Requests become
// calls of the rest port; its answers become bodies and streams.
#pragma once

#include "apiserver/auth.h"
#include "net/cert.h"
#include "net/http.h"
#include "net/node_api.h"
#include "store/rest.h"

struct server;

enum { SERVER_HEADER_TIMEOUT_S = 30, SERVER_IDLE_TIMEOUT_S = 90, SERVER_MAX_CONNECTIONS = 8192 };

/* Additional content of /metrics. */
struct server_metrics {
    void (*write)(void *ctx, struct hk_buf *out);
    void *ctx;
};

struct server_opts {
    struct net_loop *loop;
    struct rest *rest;
    struct store *store;
    struct hk_clock *clock;
    struct hk_rand *rand;
    struct hk_str addr;
    uint16_t port; /* 0: any */
    const char *cert_pem, *key_pem, *client_ca_pem;
    const struct cert_pair *ca; /* signs CertificateSigningRequests; NULL: nothing does */
    const struct auth *auth;
    struct hk_str token_key;         /* signs the tokens of service accounts; "": there are none */
    const struct node_api *node_api; /* NULL: pods' logs and terminals are not offered */
    const struct cert_pair *kubelet_client; /* certificate for the APIs of nodes, or NULL */
    const struct cert_pair *front_client; /* the same for other API servers; NULL: none is asked */
    const char *front_ca_pem;             /* that these verify it with */
    const struct server_metrics *metrics; /* or NULL */
    int64_t header_timeout_ms, idle_timeout_ms; /* see http_opts; 0: the usual ones */
    uint32_t max_connections;                   /* 0: as many as there are descriptors */
    struct hk_budget *budget;                   /* the store's */
};

/* The server polls rest and store on the loop from now on. */
int server_new(const struct server_opts *o, struct server **ret, struct hk_err *err) HK_CHECKED;
uint16_t server_port(const struct server *s);
/* Ends watches and runs the loop until answers are sent, for up to grace_ms. */
void server_stop(struct server *s, int64_t grace_ms);
/* Takes NULL. */
void server_free(struct server *s);
