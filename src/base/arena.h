// SPDX-License-Identifier: Apache-2.0
// Arenas: many allocations, one lifetime. Chunks are kept for reuse by hk_arena_rewind and
// hk_arena_clear, so a warm arena never calls the allocator.
#pragma once

#include "base/mem.h"
#include "base/str.h"

#include <sanitizer/asan_interface.h>

/* Under the address sanitizer free memory is poisoned and allocations have gaps, so that reads past
 * one, or after a rewind, are reported as for the heap. */
#if defined(__SANITIZE_ADDRESS__)
#define HK_ARENA_GAP 16
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HK_ARENA_GAP 16
#endif
#endif
#ifndef HK_ARENA_GAP
#define HK_ARENA_GAP 0
#endif

struct hk_arena_chunk;

struct hk_arena {
    struct hk_arena_chunk *head; /* first chunk; the list is kept until fini */
    struct hk_arena_chunk *cur;
    char *at, *end; /* free bytes in cur */
    size_t total;   /* bytes in all chunks */
};

struct hk_arena_mark {
    struct hk_arena_chunk *chunk;
    char *at;
};

/* An arena is ready when zeroed: struct hk_arena a = {0}; */
void hk_arena_fini(struct hk_arena *a);
void hk_arena_clear(struct hk_arena *a);
struct hk_arena_mark hk_arena_mark(const struct hk_arena *a);
void hk_arena_rewind(struct hk_arena *a, struct hk_arena_mark m);

/* The space that an allocation of size uses. */
#define HK_ARENA_ROOM(size) (((size) + HK_ARENA_GAP + 15) & ~(size_t)15)
/* Gives a fresh arena one chunk of exactly this size, the sum of HK_ARENA_ROOMs. */
void hk_arena_reserve(struct hk_arena *a, size_t room);

/* Slow path of hk_arena_alloc. */
void *hk_arena_grow(struct hk_arena *a, size_t room);

/* Uninitialised memory, aligned to 16. */
static inline void *hk_arena_alloc(struct hk_arena *a, size_t size)
{
    const size_t room = HK_ARENA_ROOM(size);
    void *p = a->at;

    /* "<=", so that a zero-size request on an empty arena still returns non-NULL. */
    if (HK_UNLIKELY((size_t)(a->end - a->at) <= room)) {
        p = hk_arena_grow(a, room);
    } else {
        a->at += room;
    }
    ASAN_UNPOISON_MEMORY_REGION(p, size);
    return p;
}

static inline void *hk_arena_zalloc(struct hk_arena *a, size_t size)
{
    return memset(hk_arena_alloc(a, size), 0, size);
}

/* n may come from the input: the product is checked and aborts only past PTRDIFF_MAX. */
void *hk_arena_array(struct hk_arena *a, size_t n, size_t size);

/* Copies and appends a NUL. */
char *hk_arena_strndup(struct hk_arena *a, const char *s, size_t n);
struct hk_str hk_arena_str(struct hk_arena *a, struct hk_str s);
char *hk_arena_printf(struct hk_arena *a, const char *fmt, ...) HK_PRINTF(2, 3);

/* Warm arenas for reuse, so that short-lived arenas need no allocator call. Zero it to
 * initialise. */
enum { HK_ARENA_POOL = 64, HK_ARENA_POOL_EACH = 256 << 10 };
struct hk_arena_pool {
    struct hk_arena at[HK_ARENA_POOL];
    uint32_t len;
};
void hk_arena_pool_fini(struct hk_arena_pool *p);
/* Returns an empty arena, a warm one if available. */
struct hk_arena hk_arena_pool_take(struct hk_arena_pool *p);
/* Clears a and keeps its chunks in the pool, unless they are many; a may be used again. */
void hk_arena_pool_give(struct hk_arena_pool *p, struct hk_arena *a);
