// SPDX-License-Identifier: Apache-2.0
// The standard functions of CEL that are not conversions: size, tests of text, dyn and type.
#include "cel/cel_priv.h"

static int core_size(struct cel_run *r, const struct cel_value *v, uint32_t n,
                     struct cel_value *ret)
{
    switch (v[0].kind) {
    case CEL_STRING:
        *ret = cel_of_int((int64_t)text_count(v[0].s));
        return cel_spend_text(r, v[0].s.n);
    case CEL_BYTES:
        *ret = cel_of_int((int64_t)v[0].s.n);
        return 0;
    default:
        *ret = cel_of_int(cel_value_len(v[0]));
        return 0;
    }
}

static int core_starts(struct cel_run *r, const struct cel_value *v, uint32_t n,
                       struct cel_value *ret)
{
    const struct hk_str s = v[0].s, prefix = v[1].s;

    *ret = cel_of_bool(s.n >= prefix.n && hk_str_eq((struct hk_str){s.s, prefix.n}, prefix));
    return 0;
}

static int core_ends(struct cel_run *r, const struct cel_value *v, uint32_t n,
                     struct cel_value *ret)
{
    const struct hk_str s = v[0].s, end = v[1].s;

    *ret = cel_of_bool(s.n >= end.n && hk_str_eq((struct hk_str){s.s + (s.n - end.n), end.n}, end));
    return 0;
}

static int core_contains(struct cel_run *r, const struct cel_value *v, uint32_t n,
                         struct cel_value *ret)
{
    *ret = cel_of_bool(v[1].s.n == 0 || memmem(v[0].s.s, v[0].s.n, v[1].s.s, v[1].s.n) != NULL);
    return 0;
}

static int core_dyn(struct cel_run *r, const struct cel_value *v, uint32_t n, struct cel_value *ret)
{
    *ret = v[0];
    return 0;
}

static int core_type(struct cel_run *r, const struct cel_value *v, uint32_t n,
                     struct cel_value *ret)
{
    *ret = cel_of_kind(v[0].kind);
    return 0;
}

static const struct cel_func core_funcs[] = {
    {"size", "s:i", core_size, COST_ONE},
    {"size", "y:i", core_size, COST_ONE},
    {"size", "L:i", core_size, COST_ONE},
    {"size", "M:i", core_size, COST_ONE},
    {"size", "s.:i", core_size, COST_ONE},
    {"size", "y.:i", core_size, COST_ONE},
    {"size", "L.:i", core_size, COST_ONE},
    {"size", "M.:i", core_size, COST_ONE},
    {"startsWith", "s.s:b", core_starts, COST_SECOND},
    {"endsWith", "s.s:b", core_ends, COST_SECOND},
    {"contains", "s.s:b", core_contains, COST_PRODUCT},
    {"dyn", "*:*", core_dyn, COST_ONE},
    {"type", "*:T", core_type, COST_ONE},
};

const struct cel_lib cel_lib_core = {core_funcs, HK_LEN(core_funcs)};
