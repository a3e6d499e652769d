// SPDX-License-Identifier: Apache-2.0
// Who may do what: Roles and ClusterRoles, given to users, groups and service accounts by
// RoleBindings and ClusterRoleBindings, as Kubernetes evaluates them. Members of system:masters may
// do everything without a look at any of it. What is not granted is refused.
#pragma once

#include "apiserver/auth.h"
#include "store/rest.h"

struct rbac;

/* What somebody wants to do. Unset parts are "". */
struct rbac_ask {
    struct hk_str verb;
    struct hk_str path; /* not a resource, when not empty: nothing below is set */
    struct hk_str group, plural, sub;
    struct hk_str ns; /* "": all namespaces, or a resource outside of them */
    struct hk_str name;
};

struct rbac *rbac_new(const struct rest *rest, const struct store *store);
/* Takes NULL. */
void rbac_free(struct rbac *b);

bool rbac_allows(struct rbac *b, const struct auth_user *u, const struct rbac_ask *ask);
/* Shows each rule (a PolicyRule) that holds for the user in the namespace, for who asks what he may
 * do. The rule is borrowed for the call of fn. */
void rbac_rules(struct rbac *b, const struct auth_user *u, struct hk_str ns,
                void (*fn)(void *ctx, const struct json *rule), void *ctx);
/* Whether the user himself may do all that the rules of a role allow in the namespace: nobody gives
 * away what he does not have. */
bool rbac_covers(struct rbac *b, const struct auth_user *u, struct hk_str ns,
                 const struct json *rules);
/* The rules of the role a binding refers to; NULL when there is no such role. Borrowed until the
 * next call that evaluates. */
const struct json *rbac_role_rules(struct rbac *b, struct hk_str ns, const struct json *role_ref);
/* Appends `User "u" cannot create resource "pods" in API group "" in the namespace "ns"`. */
void rbac_write_refusal(const struct auth_user *u, const struct rbac_ask *ask, struct hk_buf *out);
