// SPDX-License-Identifier: Apache-2.0
// Lists: Kubernetes' isSorted, sum, min, max, indexOf, and the lists extension.
#include "cel/cel_priv.h"

/* ---- order ---- */

static int lists_is_sorted(struct cel_run *r, const struct cel_value *v, uint32_t n,
                           struct cel_value *ret)
{
    const struct cel_list *l = v[0].list;
    int rc = 0, order = 0;

    for (uint32_t i = 1; i < l->len && rc == 0 && order <= 0; i++) {
        rc = cel_compare(r, cel_list_at(l, i - 1, r->a), cel_list_at(l, i, r->a), &order);
    }
    *ret = cel_of_bool(order <= 0);
    return rc;
}

/* The smallest element if sign is 1, the largest if it is -1. */
static int lists_extreme(struct cel_run *r, const struct cel_list *l, int sign, const char *name,
                         struct cel_value *ret)
{
    int rc = 0;

    if (l->len == 0) {
        return cel_error(r, "%s called on empty list", name);
    }
    *ret = cel_list_at(l, 0, r->a);
    for (uint32_t i = 1; i < l->len && rc == 0; i++) {
        const struct cel_value item = cel_list_at(l, i, r->a);
        int order = 0;
        rc = cel_compare(r, item, *ret, &order);
        if (order * sign < 0 && order != 2) {
            *ret = item;
        }
    }
    return rc;
}

static int lists_min(struct cel_run *r, const struct cel_value *v, uint32_t n,
                     struct cel_value *ret)
{
    return lists_extreme(r, v[0].list, 1, "min", ret);
}

static int lists_max(struct cel_run *r, const struct cel_value *v, uint32_t n,
                     struct cel_value *ret)
{
    return lists_extreme(r, v[0].list, -1, "max", ret);
}

static struct cel_value *lists_copy(struct cel_run *r, const struct cel_list *l)
{
    struct cel_value *items = hk_arena_array(r->a, l->len, sizeof(*items));

    for (uint32_t i = 0; i < l->len; i++) {
        items[i] = cel_list_at(l, i, r->a);
    }
    return items;
}

static int lists_sort(struct cel_run *r, const struct cel_value *v, uint32_t n,
                      struct cel_value *ret)
{
    return cel_sort(r, v[0].list, lists_copy(r, v[0].list), ret);
}

/* ---- sums ---- */

static int lists_sum(struct cel_run *r, const struct cel_value *v, uint32_t n,
                     struct cel_value *ret)
{
    const struct cel_list *l = v[0].list;
    int rc = 0;

    *ret = cel_of_int(0);
    for (uint32_t i = 0; i < l->len && rc == 0; i++) {
        const struct cel_value item = cel_list_at(l, i, r->a);
        if (!cel_is_number(item) && item.kind != CEL_DURATION) {
            return cel_no_overload(r);
        }
        if (i == 0) {
            *ret = item;
        } else {
            rc = cel_operate(r, OP_ADD, *ret, item, ret);
        }
    }
    return rc;
}

/* ---- search ---- */

static int lists_find(struct cel_run *r, const struct cel_list *l, struct cel_value wanted,
                      bool last, struct cel_value *ret)
{
    bool same = false;
    int rc = 0;

    *ret = cel_of_int(-1);
    for (uint32_t i = 0; i < l->len && rc == 0 && !same; i++) {
        const uint32_t at = last ? l->len - 1 - i : i;
        rc = cel_equal(r, cel_list_at(l, at, r->a), wanted, &same);
        if (rc == 0 && same) {
            *ret = cel_of_int(at);
        }
    }
    return rc;
}

static int lists_index_of(struct cel_run *r, const struct cel_value *v, uint32_t n,
                          struct cel_value *ret)
{
    return lists_find(r, v[0].list, v[1], false, ret);
}

static int lists_last_index_of(struct cel_run *r, const struct cel_value *v, uint32_t n,
                               struct cel_value *ret)
{
    return lists_find(r, v[0].list, v[1], true, ret);
}

static int lists_distinct(struct cel_run *r, const struct cel_value *v, uint32_t n,
                          struct cel_value *ret)
{
    const struct cel_list *l = v[0].list;
    struct cel_value *items = hk_arena_array(r->a, l->len, sizeof(*items));
    uint32_t kept = 0;
    int rc = 0;

    for (uint32_t i = 0; i < l->len && rc == 0; i++) {
        bool same = false;
        items[kept] = cel_list_at(l, i, r->a);
        for (uint32_t k = 0; k < kept && rc == 0 && !same; k++) {
            rc = cel_equal(r, items[k], items[kept], &same);
        }
        kept += !same;
    }
    *ret = cel_of_list(items, kept, r->a);
    return rc;
}

/* ---- parts ---- */

static int lists_slice(struct cel_run *r, const struct cel_value *v, uint32_t n,
                       struct cel_value *ret)
{
    const int64_t from = v[1].i, end = v[2].i;

    if (from < 0 || end < from || end > v[0].list->len) {
        return cel_error(r, "cannot slice(%lld, %lld), list is length %u", (long long)from,
                         (long long)end, v[0].list->len);
    }
    *ret = cel_of_list(lists_copy(r, v[0].list) + from, (uint32_t)(end - from), r->a);
    return 0;
}

static int lists_reverse(struct cel_run *r, const struct cel_value *v, uint32_t n,
                         struct cel_value *ret)
{
    const uint32_t len = v[0].list->len;
    struct cel_value *items = hk_arena_array(r->a, len, sizeof(*items));

    for (uint32_t i = 0; i < len; i++) {
        items[i] = cel_list_at(v[0].list, len - 1 - i, r->a);
    }
    *ret = cel_of_list(items, len, r->a);
    return 0;
}

static int lists_first(struct cel_run *r, const struct cel_value *v, uint32_t n,
                       struct cel_value *ret)
{
    const struct cel_list *l = v[0].list;

    *ret = l->len == 0 ? cel_none() : cel_some(cel_list_at(l, 0, r->a), r->a);
    return 0;
}

static int lists_last(struct cel_run *r, const struct cel_value *v, uint32_t n,
                      struct cel_value *ret)
{
    const struct cel_list *l = v[0].list;

    *ret = l->len == 0 ? cel_none() : cel_some(cel_list_at(l, l->len - 1, r->a), r->a);
    return 0;
}

static int lists_range(struct cel_run *r, const struct cel_value *v, uint32_t n,
                       struct cel_value *ret)
{
    const int64_t len = HK_MAX(v[0].i, 0);
    const int rc = cel_spend(r, (uint64_t)len);

    if (rc < 0) {
        return rc;
    }
    struct cel_value *items = hk_arena_array(r->a, (size_t)len, sizeof(*items));
    for (int64_t i = 0; i < len; i++) {
        items[i] = cel_of_int(i);
    }
    *ret = cel_of_list(items, (uint32_t)len, r->a);
    return 0;
}

typedef HK_VEC(struct cel_value) value_vec;

/* Appends the elements; lists among them are opened up to that depth. */
static int lists_flatten_into(struct cel_run *r, const struct cel_list *l, int64_t depth,
                              value_vec *out)
{
    int rc = 0;

    for (uint32_t i = 0; i < l->len && rc == 0; i++) {
        const struct cel_value item = cel_list_at(l, i, r->a);
        rc = cel_spend(r, 1);
        if (rc == 0 && item.kind == CEL_LIST && depth > 0) {
            rc = lists_flatten_into(r, item.list, depth - 1, out);
        } else if (rc == 0) {
            hk_vec_push(out, item);
        }
    }
    return rc;
}

static int lists_flatten(struct cel_run *r, const struct cel_value *v, uint32_t n,
                         struct cel_value *ret)
{
    const int64_t depth = n > 1 ? v[1].i : 1;
    value_vec all = {0};

    if (depth < 0) {
        return cel_error(r, "level must be non-negative");
    }
    const int rc = lists_flatten_into(r, v[0].list, depth, &all);
    struct cel_value *items = hk_arena_array(r->a, all.len, sizeof(*items));
    if (all.len > 0) {
        memcpy(items, all.at, all.len * sizeof(*items));
    }
    *ret = cel_of_list(items, all.len, r->a);
    hk_vec_fini(&all);
    return rc;
}

static const struct cel_func lists_funcs[] = {
    {"isSorted", "L.:b", lists_is_sorted, COST_ITEMS},
    {"sum", "L.:e", lists_sum, COST_ITEMS},
    {"min", "L.:e", lists_min, COST_ITEMS},
    {"max", "L.:e", lists_max, COST_ITEMS},
    {"indexOf", "L.*:i", lists_index_of, COST_ONE},
    {"lastIndexOf", "L.*:i", lists_last_index_of, COST_ONE},
    {"sort", "L.:=", lists_sort, COST_ITEMS},
    {"distinct", "L.:=", lists_distinct, COST_ITEMS},
    {"slice", "L.ii:=", lists_slice, COST_ITEMS},
    {"reverse", "L.:=", lists_reverse, COST_ITEMS},
    {"first", "L.:o", lists_first, COST_ONE},
    {"last", "L.:o", lists_last, COST_ONE},
    {"flatten", "L.:L", lists_flatten, COST_ONE},
    {"flatten", "L.i:L", lists_flatten, COST_ONE},
    {"lists.range", "i:Y", lists_range, COST_ONE},
};

const struct cel_lib cel_lib_lists = {lists_funcs, HK_LEN(lists_funcs)};
