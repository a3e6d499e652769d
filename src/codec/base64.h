// SPDX-License-Identifier: Apache-2.0
// Base64 with the standard alphabet and padding (RFC 4648), as in Secrets.
#pragma once

#include "base/err.h"
#include "base/str.h"

void base64_write(struct hk_str bytes, struct hk_buf *out);
