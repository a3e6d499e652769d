// SPDX-License-Identifier: Apache-2.0
// Hash map from 64-bit keys to 32-bit values (ids), open addressing, and a set of interned strings.
// Iteration order is nobody's business: loops that matter run in id order.
#pragma once

#include "base/mem.h"
#include "base/str.h"

#define HK_NONE UINT32_MAX

/* Ready when zeroed. The key UINT64_MAX is reserved. */
struct hk_map {
    uint64_t *keys;
    uint32_t *vals;
    uint32_t len, cap; /* cap is 0 or a power of two */
};

void hk_map_fini(struct hk_map *m);
void hk_map_clear(struct hk_map *m);
/* HK_NONE when absent. */
uint32_t hk_map_get(const struct hk_map *m, uint64_t key);
/* Sets or replaces. */
void hk_map_put(struct hk_map *m, uint64_t key, uint32_t val);
bool hk_map_del(struct hk_map *m, uint64_t key);

/* Strings to small dense ids, for ever. Id 0 is always the empty string. Ready when zeroed. */
struct hk_intern {
    struct hk_str *at; /* id -> text, NUL-terminated, stable addresses */
    uint32_t len, cap;
    uint32_t *slots;
    uint32_t nslots;
    struct hk_arena *text;
};

void hk_intern_fini(struct hk_intern *t);
uint32_t hk_intern(struct hk_intern *t, struct hk_str s);
/* The id, or HK_NONE without adding. */
uint32_t hk_intern_find(const struct hk_intern *t, struct hk_str s);
static inline struct hk_str hk_intern_str(const struct hk_intern *t, uint32_t id)
{
    return id == 0 ? HK_STR("") : t->at[id];
}
