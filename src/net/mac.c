// SPDX-License-Identifier: Apache-2.0
// HMAC-SHA256 by GnuTLS.
#include "net/mac.h"

#include <gnutls/crypto.h>

void mac_sha256(struct hk_str key, struct hk_str text, unsigned char ret[MAC_BYTES])
{
    hk_assert(gnutls_hmac_fast(GNUTLS_MAC_SHA256, key.s, key.n, text.s, text.n, ret) == 0);
}

bool mac_equal(const unsigned char a[MAC_BYTES], const unsigned char b[MAC_BYTES])
{
    return gnutls_memcmp(a, b, MAC_BYTES) == 0;
}
