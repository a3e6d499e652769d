// SPDX-License-Identifier: Apache-2.0
// The ClusterRoles and ClusterRoleBindings of a new cluster.
#pragma once

/* Words are separated by blanks; NULL: the rule has no such list. */
struct role_rule {
    const char *roles; /* that have the rule; NULL behind the last row */
    const char *verbs, *groups, *resources, *paths;
};

/* A binding has the name of its role. */
struct role_grant {
    const char *role; /* NULL behind the last row */
    const char *groups;
};

extern const char *const role_names[]; /* NULL behind the last */
extern const struct role_rule role_rules[];
extern const struct role_grant role_grants[];
