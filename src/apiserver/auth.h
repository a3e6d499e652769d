// SPDX-License-Identifier: Apache-2.0
// Authentication: bearer tokens from a file, and verified client certificates. account.c verifies
// tokens of service accounts; rbac.c decides what a user may do.
#pragma once

#include "base/err.h"
#include "net/http.h"

struct auth;

struct auth_user {
    const char *name; /* NULL: unknown */
    const char *uid;  /* NULL: none */
    const char *const *groups;
    uint32_t ngroups;
};

/* Lines of "token,user,uid" with an optional fourth part "group" or "\"group,group\"", as for
 * kube-apiserver's --token-auth-file; skips blank lines and lines that start with '#'. */
int auth_parse(struct hk_str text, struct auth **ret, struct hk_err *err) HK_CHECKED;
/* Takes NULL. */
void auth_free(struct auth *a);
/* Compares with all rows, so that the time does not depend on the match. */
struct auth_user auth_by_token(const struct auth *a, struct hk_str token);
/* The token of a request; false without one. */
bool auth_bearer(const struct http_request *q, struct hk_str *ret_token);
/* The user of a verified client certificate, unless other credentials were given. */
bool auth_by_certificate(const struct http_request *q, struct auth_user *ret);
/* Member of system:masters: may do everything. */
bool auth_is_admin(const struct auth_user *u);
