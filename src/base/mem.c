// SPDX-License-Identifier: Apache-2.0
// The only file that calls malloc. Counts the calls, so that benchmarks can prove that a steady
// cycle makes none, and aborts if there is no memory: callers cannot handle that.

#include "base/mem.h"

#include <stdatomic.h>

static _Atomic uint64_t alloc_calls;

__attribute__((noreturn)) static void out_of_memory(size_t n, size_t size)
{
    fprintf(stderr, "out of memory: %zu x %zu bytes\n", n, size);
    abort();
}

void hk_assert_failed(const char *cond, const char *file, int line)
{
    fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, cond);
    abort();
}

static void count_call(void)
{
    atomic_fetch_add_explicit(&alloc_calls, 1, memory_order_relaxed);
}

/* n * size, at least 1: libc may return NULL for size 0. */
static size_t array_bytes(size_t n, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(n, size, &bytes) || bytes > PTRDIFF_MAX) {
        out_of_memory(n, size);
    }
    return HK_MAX(bytes, (size_t)1);
}

void *hk_alloc(size_t size)
{
    void *p = malloc(array_bytes(1, size));

    if (!p) {
        out_of_memory(1, size);
    }
    count_call();
    return p;
}

void *hk_zalloc(size_t size)
{
    return hk_zalloc_array(1, size);
}

void *hk_zalloc_array(size_t n, size_t size)
{
    void *p = calloc(1, array_bytes(n, size));

    if (!p) {
        out_of_memory(n, size);
    }
    count_call();
    return p;
}

void *hk_realloc_array(void *p, size_t n, size_t size)
{
    void *q = realloc(p, array_bytes(n, size));

    if (!q) {
        out_of_memory(n, size);
    }
    count_call();
    return q;
}

char *hk_strndup(const char *s, size_t n)
{
    const size_t len = strnlen(s, n);
    char *copy = hk_alloc(len + 1);

    memcpy(copy, s, len);
    copy[len] = '\0';
    return copy;
}

char *hk_strdup(const char *s)
{
    return hk_strndup(s, strlen(s));
}

void hk_free(void *p)
{
    free(p);
}

uint64_t hk_alloc_calls(void)
{
    return atomic_load_explicit(&alloc_calls, memory_order_relaxed);
}
