// SPDX-License-Identifier: Apache-2.0
// Tokens of service accounts: JSON web tokens that this server signs (HS256) and alone can verify.
// Nothing of them is stored. Whether the account still exists is for the caller to find out.
#pragma once

#include "store/rest.h"

/* Who a token is for unless its request says otherwise; only such tokens open this API. */
#define TOKEN_AUDIENCE "https://kubernetes.default.svc.cluster.local"

void token_sign(struct hk_str key, const struct rest_token *t, struct hk_buf *out);
/* False when it is none of ours, was tampered with, has ended, or is for somebody else's ears.
 * Strings live in mem. */
bool token_verify(struct hk_str key, struct hk_str text, int64_t now_s, struct hk_arena *mem,
                  struct rest_token *ret);
