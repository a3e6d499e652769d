// SPDX-License-Identifier: Apache-2.0
// Forwards requests of clients to other servers, and their answers back, as the proxies of
// kube-apiserver do: over a connection of its own each, with bounded buffers in both directions. A
// slow side slows the other one down. An upgrade becomes a tunnel whose bytes are not looked at.
//
// Of the client's headers those of the connection, of its authentication and of a front proxy
// (X-Remote-*) are removed; X-Forwarded-For and X-Forwarded-Uri are added. Of the server's headers
// those of the connection and of CORS are removed, and a Location on the same server is rewritten.
#pragma once

#include "net/http.h"
#include "net/loop.h"

struct forwarder;

enum {
    FORWARD_CONNECT_S = 30, /* for the connection, TLS handshake included */
    FORWARD_STALL_S = 60,   /* while the server does not read the client's body */
};

struct forward_opts {
    struct http_request *http;
    struct hk_str user; /* "": none; else it may have half of the forwarder's requests */
    struct hk_str host; /* a numeric address */
    uint16_t port;
    bool tls;
    const char *cert_pem, *key_pem; /* these as in net_dial_opts */
    const char *server_name, *ca_pem;
    bool insecure;
    struct hk_str path;                /* with its query */
    struct hk_str host_header;         /* "": that of the client */
    struct hk_str prefix;              /* put before the path of a Location */
    const struct http_header *headers; /* additional ones */
    uint32_t nheaders;
    bool refuse_redirects;
    int64_t answer_ms; /* until the answer begins; 0: any time */
    int64_t stall_ms;  /* 0: FORWARD_STALL_S */
    /* The server is unreachable, or its answer is invalid: answers with that status. */
    void (*refuse)(struct http_request *q, int status, const char *why);
    /* The request is over. Called once; NULL: not wanted. */
    void (*ended)(void *ctx);
    void *ctx;
};

/* max: forwarded requests at a time. */
struct forwarder *forwarder_new(struct net_loop *loop, uint32_t max);
/* Call it when the server of the clients is gone. Takes NULL. */
void forwarder_free(struct forwarder *fw);
/* Call it from the handler of the request. Borrows everything but the request and the callbacks for
 * the call only. False: there are too many, of all or of the user, and the request still needs an answer. */
bool forwarder_start(struct forwarder *fw, const struct forward_opts *o) HK_CHECKED;
uint32_t forwarder_count(const struct forwarder *fw);
