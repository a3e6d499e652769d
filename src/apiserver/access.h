// SPDX-License-Identifier: Apache-2.0
// Authentication, impersonation and authorization: runs between routing a request and answering it.
#pragma once

#include "apiserver/rbac.h"

struct admit_check;
struct exchange;
struct port_user;
struct server;

/* Finds the user by the credentials of the request; false when they are missing or wrong. Names
 * live in mem or in the request. */
bool access_identify(const struct server *s, const struct http_request *q, struct hk_arena *mem,
                     struct auth_user *ret);
/* The user of a token; false when it is unknown. */
bool access_by_token(const struct server *s, struct hk_str token, struct hk_arena *mem,
                     struct auth_user *ret);
/* Identifies, impersonates, authorizes; negative after exchange_refuse(). */
int access_check(struct exchange *x) HK_CHECKED;
/* Whether the user may do what ask describes. */
bool access_allows(struct exchange *x, const struct auth_user *u, const struct rbac_ask *ask);
/* Whether the user passes a check of the authorizer in admission policies; ctx is the server. */
bool access_on_check(void *ctx, const struct port_user *user, const struct admit_check *check);
/* Sets x->req.rights to the user's rights, for rules that check the result of a write. */
void access_lend_rights(struct exchange *x);
