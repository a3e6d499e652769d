// SPDX-License-Identifier: Apache-2.0
// A stable merge sort that is fast on sorted input. qsort_r is neither stable nor free of malloc.

#include "scheduler/actions/idsort.h"

struct sorter {
    hk_heap_less *less;
    void *ctx;
    uint32_t *spare;
};

enum { SHORT_RUN = 8 };

static void insertion(const struct sorter *s, uint32_t *at, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        const uint32_t x = at[i];
        uint32_t k = i;
        for (; k > 0 && s->less(s->ctx, x, at[k - 1]); k--) {
            at[k] = at[k - 1];
        }
        at[k] = x;
    }
}

static void idsort_merge(const struct sorter *s, uint32_t *at, uint32_t half, uint32_t n)
{
    uint32_t i = 0, k = half, out = 0;

    memcpy(s->spare, at, half * sizeof(at[0]));
    while (i < half && k < n) {
        at[out++] = s->less(s->ctx, at[k], s->spare[i]) ? at[k++] : s->spare[i++];
    }
    memcpy(at + out, s->spare + i, (half - i) * sizeof(at[0]));
}

static void sort(const struct sorter *s, uint32_t *at, uint32_t n)
{
    if (n <= SHORT_RUN) {
        insertion(s, at, n);
        return;
    }
    const uint32_t half = n / 2;

    sort(s, at, half);
    sort(s, at + half, n - half);
    if (s->less(s->ctx, at[half], at[half - 1])) {
        idsort_merge(s, at, half, n);
    }
}

static bool in_order(const struct sorter *s, const uint32_t *at, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        if (s->less(s->ctx, at[i], at[i - 1])) {
            return false;
        }
    }
    return true;
}

static bool in_reverse(const struct sorter *s, const uint32_t *at, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        if (!s->less(s->ctx, at[i], at[i - 1])) {
            return false;
        }
    }
    return true;
}

static void reverse(uint32_t *at, uint32_t n)
{
    for (uint32_t i = 0; i < n / 2; i++) {
        const uint32_t x = at[i];
        at[i] = at[n - 1 - i];
        at[n - 1 - i] = x;
    }
}

void idsort(uint32_t *at, uint32_t n, hk_heap_less *less, void *ctx, struct hk_arena *mem)
{
    struct sorter s = {.less = less, .ctx = ctx};

    if (in_order(&s, at, n)) {
        return;
    }
    if (in_reverse(&s, at, n)) {
        reverse(at, n);
        return;
    }
    s.spare = hk_arena_array(mem, n / 2 + 1, sizeof(at[0]));
    sort(&s, at, n);
}
