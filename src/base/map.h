// SPDX-License-Identifier: Apache-2.0
// Hash map from 64-bit keys to 32-bit values (ids), open addressing, and a set of interned strings.
// Never depend on iteration order: use id order.
#pragma once

#include "base/mem.h"
#include "base/str.h"

#define HK_NONE UINT32_MAX

/* Zero it to initialise. The key UINT64_MAX is reserved. */
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

/* Strings to small dense ids. A string lives while it has references, or for ever after hk_intern;
 * the id of a freed string is reused. Id 0 is always the empty string. Zero it to initialise. */
struct hk_intern_row {
    const char *s; /* NUL-terminated, allocated separately, so stable; NULL: free row */
    uint32_t n;    /* length; in a free row the next free row */
    uint32_t refs;
};

struct hk_intern {
    struct hk_intern_row *at; /* by id */
    uint32_t len, cap;
    uint32_t live;   /* rows in use */
    uint32_t vacant; /* first free row, 0 none */
    uint32_t *slots;
    uint32_t nslots;
};

void hk_intern_fini(struct hk_intern *t);
/* For fixed vocabulary: the string is never freed. */
uint32_t hk_intern(struct hk_intern *t, struct hk_str s);
/* Adds one reference; release it with hk_intern_drop. */
uint32_t hk_intern_hold(struct hk_intern *t, struct hk_str s);
/* Adds a reference to a string that has at least one. */
void hk_intern_keep(struct hk_intern *t, uint32_t id);
/* Releases a reference; the last one frees the string and its id. */
void hk_intern_drop(struct hk_intern *t, uint32_t id);
/* The id, or HK_NONE; adds nothing. */
uint32_t hk_intern_find(const struct hk_intern *t, struct hk_str s);
/* References to the string; UINT32_MAX when it is never freed. */
static inline uint32_t hk_intern_refs(const struct hk_intern *t, uint32_t id)
{
    return id == 0 ? UINT32_MAX : t->at[id].refs;
}
static inline struct hk_str hk_intern_str(const struct hk_intern *t, uint32_t id)
{
    if (id == 0) {
        return HK_STR("");
    }
    hk_assert(t->at[id].s);
    return (struct hk_str){t->at[id].s, t->at[id].n};
}
