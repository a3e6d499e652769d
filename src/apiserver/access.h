// SPDX-License-Identifier: Apache-2.0
// The door: who is asking, as whom, and whether they may. Between the route of a request and
// whoever answers it.
#pragma once

#include "apiserver/rbac.h"

struct exchange;
struct server;

/* By the credentials of the request; false when they are none or wrong. Names live in mem or in the
 * request. */
bool access_identify(const struct server *s, const struct http_request *q, struct hk_arena *mem,
                     struct auth_user *ret);
/* Whose token it is; false when it is nobody's. */
bool access_by_token(const struct server *s, struct hk_str token, struct hk_arena *mem,
                     struct auth_user *ret);
/* Identifies, impersonates, authorizes; negative after refuse(). */
int access_check(struct exchange *x) HK_CHECKED;
/* Whether the user may do it. */
bool access_allows(struct exchange *x, const struct auth_user *u, const struct rbac_ask *ask);
/* Of x->req, a write of an RBAC object: nobody may give away more than he has. Negative after
 * refuse(). */
int access_check_grant(struct exchange *x) HK_CHECKED;
