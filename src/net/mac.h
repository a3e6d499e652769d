// SPDX-License-Identifier: Apache-2.0
// HMAC-SHA256: proof that a text was written by who holds the key.
#pragma once

#include "base/str.h"

enum { MAC_BYTES = 32 };

void mac_sha256(struct hk_str key, struct hk_str text, unsigned char ret[MAC_BYTES]);
/* Takes the same time wherever the two differ. */
bool mac_equal(const unsigned char a[MAC_BYTES], const unsigned char b[MAC_BYTES]);
