// SPDX-License-Identifier: Apache-2.0
// Sorting of values by their order, for sort() and sortBy().
#include "cel/cel_priv.h"

/* Merge sort, stable; an error of a comparison ends it. */
static int sort_merge(struct cel_run *r, const struct cel_value *keys, uint32_t *at,
                      uint32_t *spare, uint32_t len)
{
    const uint32_t half = len / 2;
    uint32_t a = 0, b = half;
    int rc, order;

    if (len < 2) {
        return 0;
    }
    rc = sort_merge(r, keys, at, spare, half);
    if (rc == 0) {
        rc = sort_merge(r, keys, at + half, spare, len - half);
    }
    for (uint32_t i = 0; i < len && rc == 0; i++) {
        order = a < half ? -1 : 1;
        if (a < half && b < len) {
            rc = cel_compare(r, keys[at[a]], keys[at[b]], &order);
        }
        spare[i] = rc == 0 && order <= 0 ? at[a++] : at[b++];
    }
    if (rc == 0) {
        memcpy(at, spare, len * sizeof(*at));
    }
    return rc;
}

int cel_sort(struct cel_run *r, const struct cel_list *l, const struct cel_value *keys,
             struct cel_value *ret)
{
    uint32_t *at = hk_arena_array(r->a, l->len, sizeof(*at));
    uint32_t *spare = hk_arena_array(r->a, l->len, sizeof(*spare));
    struct cel_value *sorted = hk_arena_array(r->a, l->len, sizeof(*sorted));

    for (uint32_t i = 0; i < l->len; i++) {
        at[i] = i;
    }
    const int rc = sort_merge(r, keys, at, spare, l->len);
    for (uint32_t i = 0; i < l->len && rc == 0; i++) {
        sorted[i] = cel_list_at(l, at[i], r->a);
    }
    *ret = cel_of_list(sorted, l->len, r->a);
    return rc;
}
