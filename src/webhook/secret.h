// SPDX-License-Identifier: Apache-2.0
// Certificates that nobody has to bring: kept in the Secret volcano-admission-secret, made when it
// does not exist, and made anew some time before they end. All replicas look there and use what is
// there, so the first to write decides. The key of an authority is forgotten once it has signed:
// each renewal has an authority of its own, and ca.crt names the one before as well, until
// everybody has moved.
#pragma once

#include "api/port.h"
#include "base/clock.h"
#include "net/loop.h"

struct webhook_secret;

struct webhook_secret_opts {
    struct net_loop *loop;
    struct hk_clock *clock;
    struct port *port;
    const char *ns, *service; /* borrowed, as all of these: names the certificate stands for */
    const char *host;         /* one more, or NULL */
    /* What the Secret holds, whenever it was read and can be used. */
    void (*found)(void *ctx, const char *cert_pem, const char *key_pem, const char *ca_pem);
    void *ctx;
};

struct webhook_secret *webhook_secret_new(const struct webhook_secret_opts *o);
/* Takes NULL. */
void webhook_secret_free(struct webhook_secret *s);
