// SPDX-License-Identifier: Apache-2.0
// Who a TLS server is: a certificate chain with its key, ready to be shown in handshakes. Counted,
// so that a server may become somebody else while older connections still hold what they were
// shown.
#pragma once

#include "base/err.h"

#include <gnutls/abstract.h>

struct identity;

/* One reference. Fails when the texts are none, or do not belong together. */
int identity_new(const char *cert_pem, const char *key_pem, struct identity **ret,
                 struct hk_err *err) HK_CHECKED;
struct identity *identity_ref(struct identity *id);
/* Takes NULL. */
void identity_unref(struct identity *id);
/* What GnuTLS asks for; good as long as the reference. */
void identity_show(struct identity *id, gnutls_pcert_st **chain, unsigned *n,
                   gnutls_privkey_t *key);
