// SPDX-License-Identifier: Apache-2.0
// A TLS server's certificate chain and key, ready for handshakes. Reference-counted, so that a
// server can change it while older connections still use the old one.
#pragma once

#include "base/err.h"

#include <gnutls/abstract.h>

struct identity;

/* Returns one reference. Fails when the texts are invalid or do not match. */
int identity_new(const char *cert_pem, const char *key_pem, struct identity **ret,
                 struct hk_err *err) HK_CHECKED;
struct identity *identity_ref(struct identity *id);
/* Takes NULL. */
void identity_unref(struct identity *id);
/* The values for GnuTLS; valid as long as the reference. */
void identity_show(struct identity *id, gnutls_pcert_st **chain, unsigned *n,
                   gnutls_privkey_t *key);
