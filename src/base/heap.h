// SPDX-License-Identifier: Apache-2.0
// Binary heap of 32-bit ids with the caller's comparison. As in Volcano, keys may change while
// elements are in the heap; the order results from the comparisons at push and pop time.
#pragma once

#include "base/vec.h"

/* True when a leaves the heap before b. */
typedef bool hk_heap_less(void *ctx, uint32_t a, uint32_t b);

struct hk_heap {
    uint32_t *at; /* with fixed, the caller's memory; must not grow past cap */
    uint32_t len, cap;
    bool fixed; /* at is borrowed */
    hk_heap_less *less;
    void *ctx;
};

void hk_heap_fini(struct hk_heap *h);
void hk_heap_push(struct hk_heap *h, uint32_t x);
/* The heap must not be empty. */
uint32_t hk_heap_pop(struct hk_heap *h);
/* Makes a heap of at[0..len) that the caller filled. */
void hk_heap_make(struct hk_heap *h);
