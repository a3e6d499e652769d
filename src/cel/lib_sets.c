// SPDX-License-Identifier: Apache-2.0
// Lists as sets: sets.contains, sets.equivalent, sets.intersects.
#include "cel/cel_priv.h"

static int sets_has(struct cel_run *r, const struct cel_list *l, struct cel_value v, bool *ret)
{
    int rc = 0;

    *ret = false;
    for (uint32_t i = 0; i < l->len && rc == 0 && !*ret; i++) {
        rc = cel_equal(r, cel_list_at(l, i, r->a), v, ret);
    }
    return rc;
}

/* Whether all, or some, elements of `part` are in l. */
static int sets_covers(struct cel_run *r, const struct cel_list *l, const struct cel_list *part,
                       bool some, bool *ret)
{
    int rc = 0;

    *ret = !some;
    for (uint32_t i = 0; i < part->len && rc == 0 && *ret == !some; i++) {
        rc = sets_has(r, l, cel_list_at(part, i, r->a), ret);
    }
    return rc;
}

static int sets_contains(struct cel_run *r, const struct cel_value *v, uint32_t n,
                         struct cel_value *ret)
{
    *ret = cel_of_bool(false);
    return sets_covers(r, v[0].list, v[1].list, false, &ret->b);
}

static int sets_intersects(struct cel_run *r, const struct cel_value *v, uint32_t n,
                           struct cel_value *ret)
{
    *ret = cel_of_bool(false);
    return sets_covers(r, v[0].list, v[1].list, true, &ret->b);
}

static int sets_equivalent(struct cel_run *r, const struct cel_value *v, uint32_t n,
                           struct cel_value *ret)
{
    int rc;

    *ret = cel_of_bool(false);
    rc = sets_covers(r, v[0].list, v[1].list, false, &ret->b);
    return rc < 0 || !ret->b ? rc : sets_covers(r, v[1].list, v[0].list, false, &ret->b);
}

static const struct cel_func sets_funcs[] = {
    {"sets.contains", "LL:b", sets_contains, COST_ITEMS},
    {"sets.intersects", "LL:b", sets_intersects, COST_ITEMS},
    {"sets.equivalent", "LL:b", sets_equivalent, COST_ITEMS},
};

const struct cel_lib cel_lib_sets = {sets_funcs, HK_LEN(sets_funcs)};
