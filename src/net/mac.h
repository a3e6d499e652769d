// SPDX-License-Identifier: Apache-2.0
// HMAC-SHA256: proves that a text comes from a holder of the key.
#pragma once

#include "base/str.h"

enum { MAC_BYTES = 32 };

void mac_sha256(struct hk_str key, struct hk_str text, unsigned char ret[MAC_BYTES]);
/* Constant time. */
bool mac_equal(const unsigned char a[MAC_BYTES], const unsigned char b[MAC_BYTES]);
