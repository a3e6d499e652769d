// SPDX-License-Identifier: Apache-2.0
// Tokens of service accounts: JSON web tokens that this server signs (HS256) and only it can
// verify. They are not stored. The caller checks whether the account still exists.
#pragma once

#include "store/rest.h"

/* Default audience of a token; this API accepts only tokens with it. */
#define TOKEN_AUDIENCE "https://kubernetes.default.svc.cluster.local"

void token_sign(struct hk_str key, const struct rest_token *t, struct hk_buf *out);
/* False when the token is not ours, was changed, has expired, or has another audience. Strings live
 * in mem. */
bool token_verify(struct hk_str key, struct hk_str text, int64_t now_s, struct hk_arena *mem,
                  struct rest_token *ret);
