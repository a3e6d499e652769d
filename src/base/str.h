// SPDX-License-Identifier: Apache-2.0
// Strings as pointer and length, growing buffers, and hashing. A hk_str borrows; it need not end
// in NUL, and may hold any byte.
#pragma once

#include "base/mem.h"

#include <stdarg.h>

struct hk_str {
    const char *s;
    size_t n;
};

#define HK_STR(lit) ((struct hk_str){"" lit, sizeof(lit) - 1})
/* For printf: printf("%.*s", HK_FMT(str)). */
#define HK_FMT(str) (int)(str).n, (str).s

static inline struct hk_str hk_str(const char *s)
{
    return (struct hk_str){s, s ? strlen(s) : 0};
}

static inline bool hk_str_eq(struct hk_str a, struct hk_str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.s, b.s, a.n) == 0);
}

static inline bool hk_str_is(struct hk_str a, const char *b)
{
    return hk_str_eq(a, hk_str(b));
}

static inline bool hk_str_starts(struct hk_str a, const char *prefix)
{
    const size_t n = strlen(prefix);

    return a.n >= n && hk_str_eq((struct hk_str){a.s, n}, (struct hk_str){prefix, n});
}

/* Byte order, shorter first when one is a prefix. */
int hk_str_cmp(struct hk_str a, struct hk_str b);
bool hk_str_ends(struct hk_str a, const char *suffix);
bool hk_str_contains(struct hk_str a, const char *needle);
/* The first max bytes at most, without splitting a UTF-8 character. */
struct hk_str hk_str_head(struct hk_str a, size_t max);
/* Removes leading and trailing blanks, tabs and line ends. */
struct hk_str hk_str_trim(struct hk_str a);
/* Moves the part before sep from *rest to *part; without sep all of it. False when *rest is used up
 * (rest->s == NULL). */
bool hk_str_cut(struct hk_str *rest, char sep, struct hk_str *part);
/* Whole string as base-10 int64, optional sign; false on anything else or overflow. */
bool hk_str_int(struct hk_str a, int64_t *ret);

/* Equal on all runs and machines. Placement order never depends on it; tests may. */
uint64_t hk_hash(const void *p, size_t n, uint64_t seed);
static inline uint64_t hk_mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93ULL;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93ULL;
    x ^= x >> 32;
    return x;
}

/* A growing byte buffer; data[len] is always NUL. Zero it to initialise. */
struct hk_buf {
    char *data;
    size_t len, cap;
};

void hk_buf_fini(struct hk_buf *b);
void hk_buf_clear(struct hk_buf *b);
void hk_buf_reserve(struct hk_buf *b, size_t more);
/* Removes the first n bytes. */
void hk_buf_drop(struct hk_buf *b, size_t n);
void hk_buf_add(struct hk_buf *b, const void *p, size_t n);
void hk_buf_addc(struct hk_buf *b, char c);
void hk_buf_adds(struct hk_buf *b, const char *s);
void hk_buf_addstr(struct hk_buf *b, struct hk_str s);
void hk_buf_addf(struct hk_buf *b, const char *fmt, ...) HK_PRINTF(2, 3);
void hk_buf_vaddf(struct hk_buf *b, const char *fmt, va_list ap);
static inline struct hk_str hk_buf_str(const struct hk_buf *b)
{
    return (struct hk_str){b->data ? b->data : "", b->len};
}
