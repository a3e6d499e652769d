// SPDX-License-Identifier: Apache-2.0
// Shared by JSON reader and writer: finds the bytes of a string that need special treatment.
#pragma once

#include "base/str.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* A byte that a JSON string may contain unescaped: not a control character, quote, backslash or
 * part of a longer UTF-8 sequence. */
static inline bool json_plain(uint8_t c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* The first byte from p on that is not plain, or end. */
static inline const char *json_skip_plain(const char *p, const char *end)
{
#ifdef __SSE2__
    while (end - p >= 16) {
        const __m128i v = _mm_loadu_si128((const __m128i *)p);
        /* Compared as signed bytes, controls and everything from 0x80 on are below a blank. */
        const __m128i low = _mm_cmplt_epi8(v, _mm_set1_epi8(0x20));
        const __m128i quote = _mm_cmpeq_epi8(v, _mm_set1_epi8('"'));
        const __m128i slash = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));
        const int hits = _mm_movemask_epi8(_mm_or_si128(low, _mm_or_si128(quote, slash)));
        if (hits != 0) {
            return p + __builtin_ctz((unsigned)hits);
        }
        p += 16;
    }
#endif
    while (p < end && json_plain((uint8_t)*p)) {
        p++;
    }
    return p;
}

/* Bytes of the well-formed UTF-8 sequence at p < end; 0 when there is none. */
size_t json_utf8_len(const char *p, const char *end);
