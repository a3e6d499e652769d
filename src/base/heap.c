// SPDX-License-Identifier: Apache-2.0
// The binary heap. Volcano's orders are not always consistent (shares change while jobs are in the
// heap), and then the result depends on which pairs are compared. So the sift rules are those of
// Go's container/heap, comparison for comparison.

#include "base/heap.h"

void hk_heap_fini(struct hk_heap *h)
{
    if (!h->fixed) {
        hk_free(h->at);
    }
    *h = (struct hk_heap){0};
}

static bool less(struct hk_heap *h, uint32_t i, uint32_t j)
{
    return h->less(h->ctx, h->at[i], h->at[j]);
}

static void swap(struct hk_heap *h, uint32_t i, uint32_t j)
{
    const uint32_t x = h->at[i];

    h->at[i] = h->at[j];
    h->at[j] = x;
}

static void hk_heap_sift_up(struct hk_heap *h, uint32_t i)
{
    while (i > 0 && less(h, i, (i - 1) / 2)) {
        swap(h, i, (i - 1) / 2);
        i = (i - 1) / 2;
    }
}

static void hk_heap_sift_down(struct hk_heap *h, uint32_t i, uint32_t n)
{
    for (;;) {
        const uint64_t left = (uint64_t)i * 2 + 1;
        if (left >= n) {
            return;
        }
        uint32_t child = (uint32_t)left;
        if (left + 1 < n && less(h, child + 1, child)) {
            child++;
        }
        if (!less(h, child, i)) {
            return;
        }
        swap(h, i, child);
        i = child;
    }
}

void hk_heap_push(struct hk_heap *h, uint32_t x)
{
    hk_assert(!h->fixed || h->len < h->cap);
    hk_vec_push(h, x);
    hk_heap_sift_up(h, h->len - 1);
}

uint32_t hk_heap_pop(struct hk_heap *h)
{
    hk_assert(h->len > 0);
    swap(h, 0, h->len - 1);
    hk_heap_sift_down(h, 0, h->len - 1);
    return hk_vec_pop(h);
}

void hk_heap_make(struct hk_heap *h)
{
    for (uint32_t i = h->len / 2; i > 0; i--) {
        hk_heap_sift_down(h, i - 1, h->len);
    }
}
