// SPDX-License-Identifier: Apache-2.0
// base64url without padding (RFC 4648, section 5): for tokens that travel in URLs and headers.
#pragma once

#include "base/str.h"

void base64url_write(struct hk_str in, struct hk_buf *out);
/* Appends what was written; false, out then holding anything, when a character is none of the
 * alphabet's. */
bool base64url_read(struct hk_str in, struct hk_buf *out);
