// SPDX-License-Identifier: Apache-2.0
// Service accounts: their tokens, asked for at serviceaccounts/NAME/token, and who holds one.
#pragma once

#include "apiserver/auth.h"
#include "base/arena.h"

struct exchange;
struct server;

/* The account a token was made for, while it and what the token is bound to exist. */
bool account_by_token(const struct server *s, struct hk_str token, struct hk_arena *mem,
                      struct auth_user *ret);
/* The groups of every account of the namespace, in place of u's. */
void account_groups(struct hk_str ns, struct hk_arena *mem, struct auth_user *u);
/* TokenRequests: true when answered. */
bool account_answer(struct exchange *x);
