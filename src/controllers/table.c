// SPDX-License-Identifier: Apache-2.0
// Every controller, once.
#include "controllers/table.h"

static const struct ctl_type *const types[] = {
    &ctl_job,
};

const struct ctl_type *const *manager_types(uint32_t *ret_n)
{
    *ret_n = HK_LEN(types);
    return types;
}

const struct ctl_type *manager_type(struct hk_str name)
{
    for (uint32_t i = 0; i < HK_LEN(types); i++) {
        if (hk_str_is(name, types[i]->name)) {
            return types[i];
        }
    }
    return NULL;
}
