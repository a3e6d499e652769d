// SPDX-License-Identifier: Apache-2.0
// The rights of the user who made a request. Whether a write is allowed can depend on its result,
// not only on verb and resource. The API server fills in the table; requests of our own programs
// carry none and may do everything.
#pragma once

#include "codec/json.h"

/* One access check in RBAC's terms. Unset parts are "". */
struct rights_ask {
    struct hk_str verb, group, resource, sub;
    struct hk_str ns; /* "": all namespaces, or a cluster-scoped resource */
    struct hk_str name;
};

struct rights {
    void *ctx;
    const char *user;
    const char *const *groups;
    uint32_t ngroups;
    bool (*allows)(void *ctx, const struct rights_ask *ask);
    /* Whether the user has everything that the rules (PolicyRules) grant in the namespace. */
    bool (*covers)(void *ctx, struct hk_str ns, const struct json *rules);
    /* The same for the rules of the role that a roleRef names; false when there is no such role. */
    bool (*covers_role)(void *ctx, struct hk_str ns, const struct json *role_ref);
};

/* Whether the user may; r NULL means one of our programs, which always may. */
bool rights_allow(const struct rights *r, const struct rights_ask *ask);
/* `User "u" cannot create resource "pods/binding" in API group "" in the namespace "n"`, appended.
 */
void rights_write_refusal(const char *user, const struct rights_ask *ask, struct hk_buf *out);
