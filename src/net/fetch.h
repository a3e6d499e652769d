// SPDX-License-Identifier: Apache-2.0
// A GET over TLS whose bounded answer is held, on the loop.
#pragma once

#include "net/http.h"

struct fetch;

struct fetch_opts {
    struct hk_str host; /* a numeric address */
    uint16_t port;
    const char *cert_pem, *key_pem; /* these as in net_dial_opts */
    const char *server_name, *ca_pem;
    bool insecure;
    const char *path;
    const struct http_header *headers;
    uint32_t nheaders;
    size_t max_bytes; /* of the answer */
    int64_t timeout_ms;
    /* Called once, from the loop. status 0: no complete answer, and why says the reason. The fetch
     * is over then, and must be freed, but not from here. */
    void (*done)(void *ctx, int status, struct hk_str body, const char *why);
    void *ctx;
};

/* Borrows everything but the callback for the call only. */
struct fetch *fetch_new(struct net_loop *loop, const struct fetch_opts *o);
/* Takes NULL. */
void fetch_free(struct fetch *f);
