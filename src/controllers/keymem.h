// SPDX-License-Identifier: Apache-2.0
// A controller's memory between passes: one block per namespace and name, zeroed at first. It may
// be lost at any time; nothing important lives only here.
#pragma once

#include "controllers/ctl.h"

struct keymem_row {
    uint32_t ns, name; /* string ids, held */
    void *block;       /* NULL: free row */
};

struct keymem {
    struct hk_intern *str;
    size_t size;               /* of a block */
    void (*drop)(void *block); /* frees what a block owns; NULL: it owns nothing */
    HK_VEC(struct keymem_row) rows;
    HK_VEC(uint32_t) vacant;
    struct hk_map at; /* names to row */
};

void keymem_init(struct keymem *k, struct ctl *c, size_t size, void (*drop)(void *block));
void keymem_fini(struct keymem *k);
/* NULL when there is no block. */
void *keymem_find(const struct keymem *k, struct hk_str ns, struct hk_str name);
/* Finds or adds a block; its address is stable until keymem_forget. */
void *keymem_get(struct keymem *k, struct hk_str ns, struct hk_str name);
void keymem_forget(struct keymem *k, struct hk_str ns, struct hk_str name);
