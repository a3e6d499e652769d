// SPDX-License-Identifier: Apache-2.0
// Functions of optional values; the macros optMap and optFlatMap are in loop.c.
#include "cel/cel_priv.h"

static int optional_of(struct cel_run *r, const struct cel_value *v, uint32_t n,
                       struct cel_value *ret)
{
    *ret = cel_some(v[0], r->a);
    return 0;
}

static int optional_none(struct cel_run *r, const struct cel_value *v, uint32_t n,
                         struct cel_value *ret)
{
    *ret = cel_none();
    return 0;
}

static bool optional_is_zero(struct cel_value v)
{
    switch (v.kind) {
    case CEL_NULL:
        return true;
    case CEL_BOOL:
        return !v.b;
    case CEL_INT:
    case CEL_UINT:
    case CEL_DURATION:
        return v.i == 0;
    case CEL_DOUBLE:
        return v.d == 0;
    case CEL_STRING:
    case CEL_BYTES:
        return v.s.n == 0;
    case CEL_LIST:
    case CEL_MAP:
        return cel_value_len(v) == 0;
    case CEL_OPTIONAL:
        return !v.inner;
    default:
        return false;
    }
}

static int optional_of_non_zero(struct cel_run *r, const struct cel_value *v, uint32_t n,
                                struct cel_value *ret)
{
    *ret = optional_is_zero(v[0]) ? cel_none() : cel_some(v[0], r->a);
    return 0;
}

static int optional_has_value(struct cel_run *r, const struct cel_value *v, uint32_t n,
                              struct cel_value *ret)
{
    *ret = cel_of_bool(v[0].inner != NULL);
    return 0;
}

static int optional_value(struct cel_run *r, const struct cel_value *v, uint32_t n,
                          struct cel_value *ret)
{
    if (!v[0].inner) {
        return cel_error(r, "optional.none() dereference");
    }
    *ret = *v[0].inner;
    return 0;
}

static int optional_or(struct cel_run *r, const struct cel_value *v, uint32_t n,
                       struct cel_value *ret)
{
    *ret = v[0].inner ? v[0] : v[1];
    return 0;
}

static int optional_or_value(struct cel_run *r, const struct cel_value *v, uint32_t n,
                             struct cel_value *ret)
{
    *ret = v[0].inner ? *v[0].inner : v[1];
    return 0;
}

/* The contents of those elements that have one. */
static int optional_unwrap(struct cel_run *r, const struct cel_value *v, uint32_t n,
                           struct cel_value *ret)
{
    const uint32_t len = cel_value_len(v[0]);
    struct cel_value *items = hk_arena_array(r->a, len, sizeof(*items));
    uint32_t kept = 0;

    for (uint32_t i = 0; i < len; i++) {
        const struct cel_value item = cel_list_at(v[0].list, i, r->a);
        if (item.kind != CEL_OPTIONAL) {
            return cel_no_overload(r);
        }
        if (item.inner) {
            items[kept++] = *item.inner;
        }
    }
    *ret = cel_of_list(items, kept, r->a);
    return 0;
}

static const struct cel_func optional_funcs[] = {
    {"optional.of", "*:O", optional_of, COST_ONE},
    {"optional.ofNonZeroValue", "*:O", optional_of_non_zero, COST_ONE},
    {"optional.none", ":o", optional_none, COST_ONE},
    {"hasValue", "o.:b", optional_has_value, COST_ONE},
    {"value", "o.:e", optional_value, COST_ONE},
    {"or", "o.o:=", optional_or, COST_ONE},
    {"orValue", "o.*:e", optional_or_value, COST_ONE},
    {"optional.unwrap", "L:L", optional_unwrap, COST_ITEMS},
    {"unwrapOpt", "L.:L", optional_unwrap, COST_ITEMS},
};

const struct cel_lib cel_lib_optional = {optional_funcs, HK_LEN(optional_funcs)};
