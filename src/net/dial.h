// SPDX-License-Identifier: Apache-2.0
// A connection to a numeric address, made without blocking the loop: TCP, and TLS on it when
// wanted. Whoever answers is taken for the one that was meant.
#pragma once

#include "base/str.h"
#include "net/loop.h"

#include <sys/types.h>

struct net_dial;

struct net_dial_opts {
    struct hk_str host;
    uint16_t port;
    bool tls;
    const char *cert_pem, *key_pem; /* who we are, over TLS; NULL: nobody */
    /* The connection stands, or why it does not (else NULL). Once, from the loop. */
    void (*opened)(void *ctx, const char *why);
    /* After that: EPOLLIN, EPOLLOUT, of those asked for with net_dial_want, and EPOLLHUP. */
    void (*ready)(void *ctx, uint32_t events);
    void *ctx;
};

/* Everything but the callbacks is borrowed for the call. */
struct net_dial *net_dial_new(struct net_loop *l, const struct net_dial_opts *o);
/* From within the callbacks, too. Takes NULL. */
void net_dial_free(struct net_dial *d);

/* Nothing is asked for at first. */
void net_dial_want(struct net_dial *d, uint32_t events);
/* As recv and send on a socket that does not block: -1 with errno. What is left of a write is
 * offered again, the same bytes first; a read that fills its buffer is followed by another without
 * waiting to be ready. */
ssize_t net_dial_read(struct net_dial *d, char *p, size_t n);
ssize_t net_dial_write(struct net_dial *d, const char *p, size_t n);
