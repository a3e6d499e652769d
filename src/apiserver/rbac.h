// SPDX-License-Identifier: Apache-2.0
// Authorization: Roles and ClusterRoles, granted to users, groups and service accounts by
// RoleBindings and ClusterRoleBindings, evaluated as in Kubernetes. Members of system:masters may
// do everything without a check. Whatever is not granted is refused.
#pragma once

#include "apiserver/auth.h"
#include "store/rest.h"

struct rbac;

/* One access check. Unset parts are "". */
struct rbac_ask {
    struct hk_str verb;
    struct hk_str path; /* for non-resource requests; then nothing below is set */
    struct hk_str group, plural, sub;
    struct hk_str ns; /* "": all namespaces, or a cluster-scoped resource */
    struct hk_str name;
};

struct rbac *rbac_new(const struct rest *rest, const struct store *store);
/* Takes NULL. */
void rbac_free(struct rbac *b);

bool rbac_allows(struct rbac *b, const struct auth_user *u, const struct rbac_ask *ask);
/* Calls fn for each rule (a PolicyRule) of the user in the namespace, for self-subject reviews. The
 * rule is borrowed during the call of fn. */
void rbac_rules(struct rbac *b, const struct auth_user *u, struct hk_str ns,
                void (*fn)(void *ctx, const struct json *rule), void *ctx);
/* Whether the user may do everything that the rules allow in the namespace: users cannot grant
 * rights they do not have. */
bool rbac_covers(struct rbac *b, const struct auth_user *u, struct hk_str ns,
                 const struct json *rules);
/* The rules of the role that a binding refers to; NULL when there is none. Borrowed until the next
 * evaluation. */
const struct json *rbac_role_rules(struct rbac *b, struct hk_str ns, const struct json *role_ref);
/* Appends `User "u" cannot create resource "pods" in API group "" in the namespace "ns"`. */
void rbac_write_refusal(const struct auth_user *u, const struct rbac_ask *ask, struct hk_buf *out);
