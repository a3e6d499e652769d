// SPDX-License-Identifier: Apache-2.0
// Tokens of service accounts: JSON web tokens that this server signs (HS256) and alone can verify.
// Nothing of them is stored. Whether the account still exists is for the caller to find out.
#pragma once

#include "codec/json.h"

/* Who a token is for unless its request says otherwise; only such tokens open this API. */
#define TOKEN_AUDIENCE "https://kubernetes.default.svc.cluster.local"

/* Unset strings are "". */
struct token {
    struct hk_str ns, account, account_uid;
    struct hk_str bound_kind, bound_name, bound_uid; /* "pod" or "secret" it lives and dies with */
    int64_t issued_s, expires_s;
    const struct json *audiences; /* array of strings; NULL: the server's own */
    struct hk_str id;
};

void token_sign(struct hk_str key, const struct token *t, struct hk_buf *out);
/* False when it is none of ours, was tampered with, has ended, or is for somebody else's ears.
 * Strings live in mem. */
bool token_verify(struct hk_str key, struct hk_str text, int64_t now_s, struct hk_arena *mem,
                  struct token *ret);
