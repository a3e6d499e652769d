// SPDX-License-Identifier: Apache-2.0
// Service accounts: finds the account of a token, and signs tokens. The store decides what a token
// may contain.
#pragma once

#include "apiserver/auth.h"
#include "base/arena.h"

struct rest_token;
struct server;

/* The account of a token; false unless the account and the object the token is bound to exist. */
bool account_by_token(const struct server *s, struct hk_str token, struct hk_arena *mem,
                      struct auth_user *ret);
/* Replaces u's groups by those of service accounts in the namespace. */
void account_groups(struct hk_str ns, struct hk_arena *mem, struct auth_user *u);
/* Signs with the server's key; ctx is the server (a rest_sign_fn). */
void account_sign(void *ctx, const struct rest_token *t, struct hk_buf *out);
