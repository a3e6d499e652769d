// SPDX-License-Identifier: Apache-2.0
// Service accounts: who holds a token of one, and the signing of tokens. What they are asked for is
// the store's to judge.
#pragma once

#include "apiserver/auth.h"
#include "base/arena.h"

struct rest_token;
struct server;

/* The account a token was made for, while it and what the token is bound to exist. */
bool account_by_token(const struct server *s, struct hk_str token, struct hk_arena *mem,
                      struct auth_user *ret);
/* The groups of every account of the namespace, in place of u's. */
void account_groups(struct hk_str ns, struct hk_arena *mem, struct auth_user *u);
/* Signs with the key of the server, which is ctx (a rest_sign_fn). */
void account_sign(void *ctx, const struct rest_token *t, struct hk_buf *out);
