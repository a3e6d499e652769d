// SPDX-License-Identifier: Apache-2.0
// Maps resource names to dimensions, and decides which names count (docs/reference/scheduler.md
// section 1).
#include "scheduler/model/dims.h"

static bool is_extended(struct hk_str name)
{
    return memchr(name.s, '/', name.n) && !hk_str_contains(name, "kubernetes.io/") &&
           !hk_str_starts(name, "requests.");
}

bool dims_counts(struct hk_str name)
{
    if (name.n == 0 || hk_str_starts(name, "count/")) {
        return false;
    }
    return hk_str_is(name, "cpu") || hk_str_is(name, "memory") || hk_str_is(name, "pods") ||
           hk_str_is(name, "ephemeral-storage") || hk_str_starts(name, "hugepages-") ||
           hk_str_starts(name, "attachable-volumes-") || hk_str_contains(name, "kubernetes.io/") ||
           is_extended(name);
}

static uint32_t dims_add_dim(struct dims *d, struct hk_intern *str, struct hk_str name)
{
    const uint32_t k = d->n++;
    const bool bytes = hk_str_is(name, "ephemeral-storage") || hk_str_starts(name, "hugepages-");
    const bool whole = bytes || hk_str_is(name, "memory") || hk_str_is(name, "pods") ||
                       hk_str_starts(name, "attachable-volumes-");

    d->name[k] = hk_intern(str, name);
    d->text[k] = hk_intern_str(str, d->name[k]);
    d->unit[k] = whole ? DIM_WHOLE : DIM_MILLI;
    d->shown_scale[k] = bytes ? 1000 : 1;
    return k;
}

void dims_init(struct dims *d, struct hk_intern *str)
{
    *d = (struct dims){0};
    dims_add_dim(d, str, HK_STR("cpu"));
    dims_add_dim(d, str, HK_STR("memory"));
    dims_add_dim(d, str, HK_STR("pods"));
}

uint32_t dims_find(const struct dims *d, struct hk_str name)
{
    for (uint32_t k = 0; k < d->n; k++) {
        if (hk_str_eq(d->text[k], name)) {
            return k;
        }
    }
    return HK_NONE;
}

uint32_t dims_intern(struct dims *d, struct hk_intern *str, struct hk_str name)
{
    const uint32_t k = dims_find(d, name);

    if (k != HK_NONE) {
        return k;
    }
    if (!dims_counts(name)) {
        return HK_NONE;
    }
    return d->n == DIM_MAX ? DIM_MAX : dims_add_dim(d, str, name);
}
