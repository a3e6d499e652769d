// SPDX-License-Identifier: Apache-2.0
// The one function behind the typed vectors.

#include "base/vec.h"

#define CAP_MIN 8u

void *hk_vec_grow(void *at, uint32_t *cap, uint32_t want, size_t size)
{
    hk_assert(want > *cap); /* false if len + 1 overflowed */
    const uint32_t doubled = *cap > UINT32_MAX / 2 ? UINT32_MAX : *cap * 2;

    *cap = HK_MAX(HK_MAX(doubled, want), CAP_MIN);
    return hk_realloc_array(at, *cap, size);
}
