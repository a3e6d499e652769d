// SPDX-License-Identifier: Apache-2.0
// The credentials of a data directory: an authority, a serving certificate, tokens, and a
// kubeconfig for the administrator. Made on the first start, kept afterwards.
//
//   DIR/ca.crt  DIR/ca.key  DIR/server.crt  DIR/server.key  DIR/sa.key  DIR/tokens.csv
//   DIR/kubeconfig
#pragma once

#include "apiserver/auth.h"
#include "base/clock.h"
#include "net/cert.h"

struct setup {
    struct cert_pair ca, serving;
    struct auth *auth;
    char *admin_token;
    char *account_key; /* signs the tokens of service accounts */
};

/* addr is what the server listens on; the serving certificate is made anew when it does not stand
 * for that address or this host, or ends soon. The caller's umask guards the files. */
int setup_load(const char *dir, const char *addr, struct hk_clock *clock, struct setup *ret,
               struct hk_err *err) HK_CHECKED;
void setup_fini(struct setup *s);
/* Writes DIR/kubeconfig for the server at that URL. */
int setup_write_kubeconfig(const struct setup *s, const char *dir, const char *url,
                           struct hk_err *err) HK_CHECKED;
