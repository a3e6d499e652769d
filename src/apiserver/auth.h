// SPDX-License-Identifier: Apache-2.0
// Who is asking: bearer tokens from a file, and verified client certificates. Tokens of service
// accounts are read in account.c; what everybody may do is decided in rbac.c.
#pragma once

#include "base/err.h"
#include "net/http.h"

struct auth;

struct auth_user {
    const char *name; /* NULL: nobody */
    const char *uid;  /* NULL: none */
    const char *const *groups;
    uint32_t ngroups;
};

/* Lines of "token,user,uid" with an optional fourth part "group" or "\"group,group\"", as
 * kube-apiserver reads with --token-auth-file; blank lines and those behind '#' are skipped. */
int auth_parse(struct hk_str text, struct auth **ret, struct hk_err *err) HK_CHECKED;
/* Takes NULL. */
void auth_free(struct auth *a);
/* Takes the time of all rows, whichever matches. */
struct auth_user auth_by_token(const struct auth *a, struct hk_str token);
/* The token a request carries; false when it carries none. */
bool auth_bearer(const struct http_request *q, struct hk_str *ret_token);
/* By a verified client certificate, unless other credentials were given. */
bool auth_by_certificate(const struct http_request *q, struct auth_user *ret);
/* Member of system:masters: may do everything. */
bool auth_is_admin(const struct auth_user *u);
