// SPDX-License-Identifier: Apache-2.0
// Base64 (RFC 4648): the common form with padding, as in Secrets, and the one without for tokens
// that travel in URLs and headers.
#pragma once

#include "base/str.h"

void base64_write(struct hk_str in, struct hk_buf *out);
void base64url_write(struct hk_str in, struct hk_buf *out);
/* Append what was written; false, out then holding anything, when a character is none of the
 * alphabet's. The common form wants its padding, and line ends in it are passed over. */
bool base64_read(struct hk_str in, struct hk_buf *out);
bool base64url_read(struct hk_str in, struct hk_buf *out);
