// SPDX-License-Identifier: Apache-2.0
// The credentials of a data directory: an authority, a serving certificate, tokens, and a
// kubeconfig for the administrator. Created on the first start, then kept.
//
//   DIR/ca.crt  DIR/ca.key  DIR/server.crt  DIR/server.key  DIR/sa.key  DIR/tokens.csv
//   DIR/front-proxy-ca.crt  DIR/front-proxy-ca.key  DIR/kubeconfig
#pragma once

#include "apiserver/auth.h"
#include "base/clock.h"
#include "net/cert.h"

struct setup {
    struct cert_pair ca, serving;
    struct cert_pair front_ca,
        front_client; /* shown to other API servers; the client is not kept */
    struct auth *auth;
    char *admin_token;
    char *account_key; /* signs tokens of service accounts */
};

/* Whether a server was ever started with this directory. */
bool setup_exists(const char *dir);
/* The Service default/kubernetes. */
struct setup_service {
    const char *addr;   /* NULL: none */
    const char *domain; /* of the cluster; NULL: cluster.local */
};

/* addr is the server's address. Replaces the serving certificate when it is not valid for that
 * address or this host, or expires soon. service may be NULL. The caller's umask
 * protects the files. */
int setup_load(const char *dir, const char *addr, const struct setup_service *service,
               struct hk_clock *clock, struct setup *ret, struct hk_err *err) HK_CHECKED;
void setup_fini(struct setup *s);
/* Writes DIR/kubeconfig for the server at that URL. */
int setup_write_kubeconfig(const struct setup *s, const char *dir, const char *url,
                           struct hk_err *err) HK_CHECKED;
