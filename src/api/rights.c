// SPDX-License-Identifier: Apache-2.0
// Checks a user's rights, and writes the message of a refusal.
#include "api/rights.h"

bool rights_allow(const struct rights *r, const struct rights_ask *ask)
{
    return !r || r->allows(r->ctx, ask);
}

void rights_write_refusal(const char *user, const struct rights_ask *ask, struct hk_buf *out)
{
    hk_buf_addf(out, "User \"%s\" cannot %.*s resource \"%.*s%s%.*s\" in API group \"%.*s\" ", user,
                HK_FMT(ask->verb), HK_FMT(ask->resource), ask->sub.n > 0 ? "/" : "",
                HK_FMT(ask->sub), HK_FMT(ask->group));
    if (ask->ns.n > 0) {
        hk_buf_addf(out, "in the namespace \"%.*s\"", HK_FMT(ask->ns));
    } else {
        hk_buf_adds(out, "at the cluster scope");
    }
}
