// SPDX-License-Identifier: Apache-2.0
// The state of an evaluation: its cost and its errors.
#include "cel/cel_priv.h"

int cel_spend(struct cel_run *r, uint64_t cost)
{
    if (cost > r->left) {
        r->left = 0;
        return hk_fail(r->err, HK_ELIMIT, "operation cancelled: actual cost limit exceeded");
    }
    r->left -= cost;
    return 0;
}

int cel_spend_text(struct cel_run *r, size_t bytes)
{
    return cel_spend(r, (bytes + 9) / 10);
}

int cel_error(struct cel_run *r, const char *fmt, ...)
{
    char text[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return hk_fail(r->err, HK_EINVAL, "%s", text);
}

int cel_no_overload(struct cel_run *r)
{
    return r->name.n > 0 ? cel_error(r, "no such overload: %.*s", HK_FMT(r->name))
                         : cel_error(r, "no such overload");
}
