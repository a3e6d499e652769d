// SPDX-License-Identifier: Apache-2.0
// The serving certificate: from files (net/cert_files.h), or from the Secret of webhook/secret.h.
#pragma once

#include "net/cert.h"
#include "webhook/secret.h"

struct webhook_certs;

struct webhook_certs_opts {
    struct net_loop *loop;
    struct hk_clock *clock;
    /* cert_file NULL: use the Secret. ca_file may be NULL. All are borrowed. */
    const char *cert_file, *key_file, *ca_file;
    struct port *port;
    const char *ns, *service, *host;
    /* The certificate or authority has changed. Not called for files read by webhook_certs_new. */
    void (*changed)(void *ctx);
    void *ctx;
};

/* Fails when given files are unusable; later such changes are only logged. */
int webhook_certs_new(const struct webhook_certs_opts *o, struct webhook_certs **ret,
                      struct hk_err *err) HK_CHECKED;
/* The current certificate; empty while there is none. */
const struct cert_set *webhook_certs_now(const struct webhook_certs *c);
/* Takes NULL. */
void webhook_certs_free(struct webhook_certs *c);
