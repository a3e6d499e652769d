// SPDX-License-Identifier: Apache-2.0
// Base64 (RFC 4648): the common form with padding, as in Secrets, and the URL form without padding
// for tokens.
#pragma once

#include "base/str.h"

void base64_write(struct hk_str in, struct hk_buf *out);
void base64url_write(struct hk_str in, struct hk_buf *out);
/* Append the decoded bytes. False on an invalid character; the content of out is then undefined.
 * The common form requires padding and ignores line ends. */
bool base64_read(struct hk_str in, struct hk_buf *out);
bool base64url_read(struct hk_str in, struct hk_buf *out);
