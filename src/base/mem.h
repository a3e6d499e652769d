// SPDX-License-Identifier: Apache-2.0
// Heap memory that cannot fail, cleanup attributes, and the assertion that stays in release builds.
// Out of memory aborts here: every daemon can rebuild its state from the store, and untrusted input
// is limited where it enters.
#pragma once

#include "base/banned.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_LIKELY(x) __builtin_expect(!!(x), 1)
#define HK_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define HK_CHECKED __attribute__((warn_unused_result))
#define HK_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
/* Compiles a function for AVX2 with vectorised loops; call it only when
 * __builtin_cpu_supports("avx2"). clang vectorises at any level. */
#if defined(__x86_64__) && defined(__clang__)
#define HK_AVX2 __attribute__((target("avx2")))
#elif defined(__x86_64__)
#define HK_AVX2 __attribute__((target("avx2"), optimize("O3")))
#endif
#define HK_LEN(array) (sizeof(array) / sizeof((array)[0]))
/* An argument may be evaluated twice: pass nothing that has an effect. */
#define HK_MIN(a, b) ((a) < (b) ? (a) : (b))
#define HK_MAX(a, b) ((a) > (b) ? (a) : (b))

/* Ends a local when its scope ends: HK_AUTO(hk_buf_fini) struct hk_buf b = {0}; */
#define HK_AUTO(fini) __attribute__((cleanup(fini)))

/* Moves a pointer out of an HK_AUTO local, which becomes NULL. */
#define hk_take(p)                                                                                 \
    ({                                                                                             \
        __typeof__(p) taken_ = (p);                                                                \
        (p) = NULL;                                                                                \
        taken_;                                                                                    \
    })

/* For our own invariants, never for bad input. */
#define hk_assert(cond)                                                                            \
    do {                                                                                           \
        if (HK_UNLIKELY(!(cond))) {                                                                \
            hk_assert_failed(#cond, __FILE__, __LINE__);                                           \
        }                                                                                          \
    } while (0)
/* The same for checks too costly for release builds: active only in sanitized builds. */
#ifdef HK_DEBUG
#define hk_debug_assert(cond) hk_assert(cond)
#else
#define hk_debug_assert(cond) ((void)0)
#endif
__attribute__((noreturn)) void hk_assert_failed(const char *cond, const char *file, int line);

void *hk_alloc(size_t size) __attribute__((malloc, returns_nonnull));
void *hk_zalloc(size_t size) __attribute__((malloc, returns_nonnull));
/* Array forms check the multiplication. */
void *hk_realloc_array(void *p, size_t n, size_t size) __attribute__((returns_nonnull));
void *hk_zalloc_array(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
char *hk_strdup(const char *s) __attribute__((malloc, returns_nonnull));
char *hk_strndup(const char *s, size_t n) __attribute__((malloc, returns_nonnull));
void hk_free(void *p);

/* For HK_AUTO(hk_freep) char *s. */
static inline void hk_freep(void *pp)
{
    hk_free(*(void **)pp);
}

/* Allocator calls since the process started; benchmarks assert that a steady cycle adds none. */
uint64_t hk_alloc_calls(void);
