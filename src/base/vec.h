// SPDX-License-Identifier: Apache-2.0
// Typed vectors: HK_VEC(uint32_t) ids = {0}; hk_vec_push(&ids, 7); ids.at[0]; ids.len.
#pragma once

#include "base/mem.h"

#define HK_VEC(type)                                                                               \
    struct {                                                                                       \
        type *at;                                                                                  \
        uint32_t len, cap;                                                                         \
    }

/* Grows at to hold at least want elements of the given size, by doubling. */
void *hk_vec_grow(void *at, uint32_t *cap, uint32_t want, size_t size);

#define hk_vec_reserve(v, want)                                                                    \
    do {                                                                                           \
        if ((want) > (v)->cap) {                                                                   \
            (v)->at = hk_vec_grow((v)->at, &(v)->cap, (want), sizeof(*(v)->at));                   \
        }                                                                                          \
    } while (0)

#define hk_vec_push(v, ...)                                                                        \
    do {                                                                                           \
        hk_vec_reserve(v, (v)->len + 1);                                                           \
        (v)->at[(v)->len++] = (__VA_ARGS__);                                                       \
    } while (0)

#define hk_vec_pop(v) ((v)->at[--(v)->len])
#define hk_vec_clear(v) ((void)((v)->len = 0))

/* Moves the last element into the gap; does not keep the order. */
#define hk_vec_swap_remove(v, i) ((v)->at[i] = (v)->at[--(v)->len])

#define hk_vec_fini(v)                                                                             \
    do {                                                                                           \
        hk_free((v)->at);                                                                          \
        (v)->at = NULL;                                                                            \
        (v)->len = (v)->cap = 0;                                                                   \
    } while (0)
