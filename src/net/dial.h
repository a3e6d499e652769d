// SPDX-License-Identifier: Apache-2.0
// A connection to a numeric address, made without blocking the loop: TCP, optionally with TLS. The
// server's certificate is verified on request only.
#pragma once

#include "base/str.h"
#include "net/loop.h"

#include <sys/types.h>

struct net_dial;

struct net_dial_opts {
    struct hk_str host;
    uint16_t port;
    bool tls;
    const char *cert_pem, *key_pem; /* client certificate for TLS, or NULL */
    const char *server_name;        /* sent in the handshake, and verified; NULL: neither */
    bool insecure;                  /* server_name is not verified */
    const char *ca_pem;             /* authorities to verify with; NULL: the system's */
    /* Connected (why is NULL) or failed. Called once, from the loop. */
    void (*opened)(void *ctx, const char *why);
    /* After that: EPOLLIN and EPOLLOUT as requested with net_dial_want, and EPOLLHUP. */
    void (*ready)(void *ctx, uint32_t events);
    void *ctx;
};

/* Borrows everything but the callbacks during the call. */
struct net_dial *net_dial_new(struct net_loop *l, const struct net_dial_opts *o);
/* Whether the server accepted the connection; a failure is one of TLS then. */
bool net_dial_connected(const struct net_dial *d);
/* May be called from the callbacks. Takes NULL. */
void net_dial_free(struct net_dial *d);

/* Initially no events are requested. */
void net_dial_want(struct net_dial *d, uint32_t events);
/* Reports no events, not even EPOLLHUP, until the next net_dial_want. */
void net_dial_rest(struct net_dial *d);
/* Tells the peer that nothing more will be written; for connections without TLS. */
void net_dial_end_writing(struct net_dial *d);
/* Like recv and send on a non-blocking socket: -1 with errno. Repeat an incomplete write with the
 * same remaining bytes; repeat a read that filled its buffer without waiting for readiness. */
ssize_t net_dial_read(struct net_dial *d, char *p, size_t n);
ssize_t net_dial_write(struct net_dial *d, const char *p, size_t n);
