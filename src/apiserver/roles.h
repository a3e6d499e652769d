// SPDX-License-Identifier: Apache-2.0
// The ClusterRoles and ClusterRoleBindings of a new cluster.
#pragma once

/* Each string is a blank-separated list; NULL: the rule has no such list. */
struct role_rule {
    const char *roles; /* roles with this rule; NULL after the last row */
    const char *verbs, *groups, *resources, *paths;
};

/* A rule about one named resource. */
struct role_name_rule {
    const char *role; /* NULL after the last row */
    const char *verbs, *groups, *resources, *names;
};

/* The binding has the same name as its role. */
struct role_grant {
    const char *role; /* NULL after the last row */
    const char *groups;
};

extern const char *const role_names[]; /* NULL after the last */
extern const struct role_rule role_rules[];
extern const struct role_name_rule role_name_rules[];
extern const struct role_grant role_grants[];
