// SPDX-License-Identifier: Apache-2.0
// Memory blocks by key (namespace and name), found through the ids of interned names.
#include "controllers/keymem.h"

void keymem_init(struct keymem *k, struct ctl *c, size_t size, void (*drop)(void *block))
{
    *k = (struct keymem){.str = ctl_strings(c), .size = size, .drop = drop};
}

static uint64_t map_key(uint32_t ns, uint32_t name)
{
    return (uint64_t)ns << 32 | name;
}

static uint32_t row_of(const struct keymem *k, struct hk_str ns, struct hk_str name)
{
    const uint32_t a = hk_intern_find(k->str, ns), b = hk_intern_find(k->str, name);

    return a == HK_NONE || b == HK_NONE ? HK_NONE : hk_map_get(&k->at, map_key(a, b));
}

void *keymem_find(const struct keymem *k, struct hk_str ns, struct hk_str name)
{
    const uint32_t row = row_of(k, ns, name);

    return row == HK_NONE ? NULL : k->rows.at[row].block;
}

void *keymem_get(struct keymem *k, struct hk_str ns, struct hk_str name)
{
    uint32_t row = row_of(k, ns, name);

    if (row != HK_NONE) {
        return k->rows.at[row].block;
    }
    if (k->vacant.len > 0) {
        row = hk_vec_pop(&k->vacant);
    } else {
        row = k->rows.len;
        hk_vec_push(&k->rows, (struct keymem_row){0});
    }
    k->rows.at[row] = (struct keymem_row){.ns = hk_intern_hold(k->str, ns),
                                          .name = hk_intern_hold(k->str, name),
                                          .block = hk_zalloc(k->size)};
    hk_map_put(&k->at, map_key(k->rows.at[row].ns, k->rows.at[row].name), row);
    return k->rows.at[row].block;
}

static void forget_row(struct keymem *k, uint32_t row)
{
    struct keymem_row *r = &k->rows.at[row];

    hk_map_del(&k->at, map_key(r->ns, r->name));
    if (k->drop) {
        k->drop(r->block);
    }
    hk_free(r->block);
    hk_intern_drop(k->str, r->ns);
    hk_intern_drop(k->str, r->name);
    *r = (struct keymem_row){0};
    hk_vec_push(&k->vacant, row);
}

void keymem_forget(struct keymem *k, struct hk_str ns, struct hk_str name)
{
    const uint32_t row = row_of(k, ns, name);

    if (row != HK_NONE) {
        forget_row(k, row);
    }
}

void keymem_fini(struct keymem *k)
{
    for (uint32_t row = 0; row < k->rows.len; row++) {
        if (k->rows.at[row].block) {
            forget_row(k, row);
        }
    }
    hk_vec_fini(&k->rows);
    hk_vec_fini(&k->vacant);
    hk_map_fini(&k->at);
}
