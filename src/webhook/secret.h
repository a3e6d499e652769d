// SPDX-License-Identifier: Apache-2.0
// Automatic certificates in the Secret volcano-admission-secret: created when missing, renewed some
// time before they expire. All replicas use the Secret's content, so the first to write decides.
// The key of an authority is dropped after signing: each renewal has a new authority, and ca.crt
// also names the previous one until all clients have changed.
#pragma once

#include "api/port.h"
#include "base/clock.h"
#include "net/loop.h"

struct webhook_secret;

struct webhook_secret_opts {
    struct net_loop *loop;
    struct hk_clock *clock;
    struct port *port;
    const char *ns, *service; /* names of the certificate, borrowed, as is host */
    const char *host;         /* one more name of the certificate, or NULL */
    /* Called with the Secret's content whenever it was read and is usable. */
    void (*found)(void *ctx, const char *cert_pem, const char *key_pem, const char *ca_pem);
    void *ctx;
};

struct webhook_secret *webhook_secret_new(const struct webhook_secret_opts *o);
/* Takes NULL. */
void webhook_secret_free(struct webhook_secret *s);
