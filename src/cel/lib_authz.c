// SPDX-License-Identifier: Apache-2.0
// Kubernetes' authorizer library. Its objects are the caller's: each method goes to the native
// object's call(), which returns the next object of the chain, or the decision.
#include "cel/cel_priv.h"

static int authz_call(struct cel_run *r, const struct cel_value *v, uint32_t n,
                      struct cel_value *ret)
{
    const struct cel_native *native = v[0].native;
    struct hk_err why = {0};
    const int rc = native->call ? native->call(native->ctx, r->name, v + 1, n - 1, r->a, ret, &why)
                                : -HK_EUNSUP;

    if (rc == -HK_EUNSUP) {
        return cel_no_overload(r);
    }
    return rc < 0 ? cel_error(r, "%s", why.text) : 0;
}

static const struct cel_func authz_funcs[] = {
    {"path", "N.s:N", authz_call, COST_ONE},
    {"group", "N.s:N", authz_call, COST_ONE},
    {"resource", "N.s:N", authz_call, COST_ONE},
    {"subresource", "N.s:N", authz_call, COST_ONE},
    {"namespace", "N.s:N", authz_call, COST_ONE},
    {"name", "N.s:N", authz_call, COST_ONE},
    {"fieldSelector", "N.s:N", authz_call, COST_ONE},
    {"labelSelector", "N.s:N", authz_call, COST_ONE},
    {"serviceAccount", "N.ss:N", authz_call, COST_ONE},
    {"check", "N.s:N", authz_call, COST_CHECK},
    {"allowed", "N.:b", authz_call, COST_ONE},
    {"reason", "N.:s", authz_call, COST_ONE},
    {"errored", "N.:b", authz_call, COST_ONE},
    {"error", "N.:s", authz_call, COST_ONE},
};

const struct cel_lib cel_lib_authz = {authz_funcs, HK_LEN(authz_funcs)};
