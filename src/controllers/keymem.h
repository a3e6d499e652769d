// SPDX-License-Identifier: Apache-2.0
// What a controller remembers of its keys between passes: a block of memory for each namespace and
// name, zeroed at first. All of it may be lost at any time; nothing that matters lives only here.
#pragma once

#include "controllers/ctl.h"

struct keymem_row {
    uint32_t ns, name; /* string ids, held */
    void *block;       /* NULL: free row */
};

struct keymem {
    struct hk_intern *str;
    size_t size;               /* of a block */
    void (*drop)(void *block); /* lets go of what a block owns; NULL: it owns nothing */
    HK_VEC(struct keymem_row) rows;
    HK_VEC(uint32_t) vacant;
    struct hk_map at; /* names to row */
};

void keymem_init(struct keymem *k, struct ctl *c, size_t size, void (*drop)(void *block));
void keymem_fini(struct keymem *k);
/* NULL when nothing is remembered. */
void *keymem_find(const struct keymem *k, struct hk_str ns, struct hk_str name);
/* Blocks stay where they are until they are forgotten. */
void *keymem_get(struct keymem *k, struct hk_str ns, struct hk_str name);
void keymem_forget(struct keymem *k, struct hk_str ns, struct hk_str name);
