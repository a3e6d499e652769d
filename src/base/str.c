// SPDX-License-Identifier: Apache-2.0
// Strings, buffers and the hash.

#include "base/str.h"

#include <endian.h>

int hk_str_cmp(struct hk_str a, struct hk_str b)
{
    const size_t n = HK_MIN(a.n, b.n);
    const int c = n > 0 ? memcmp(a.s, b.s, n) : 0;

    return c != 0 ? c : (a.n > b.n) - (a.n < b.n);
}

bool hk_str_ends(struct hk_str a, const char *suffix)
{
    const size_t n = strlen(suffix);

    return n == 0 || (a.n >= n && memcmp(a.s + a.n - n, suffix, n) == 0);
}

bool hk_str_contains(struct hk_str a, const char *needle)
{
    const size_t n = strlen(needle);

    return n == 0 || (a.n >= n && memmem(a.s, a.n, needle, n) != NULL);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

struct hk_str hk_str_head(struct hk_str a, size_t max)
{
    size_t n = HK_MIN(a.n, max);

    while (n > 0 && n < a.n && ((unsigned char)a.s[n] & 0xc0) == 0x80) {
        n--;
    }
    return (struct hk_str){a.s, n};
}

struct hk_str hk_str_trim(struct hk_str a)
{
    while (a.n > 0 && is_space(a.s[0])) {
        a.s++;
        a.n--;
    }
    while (a.n > 0 && is_space(a.s[a.n - 1])) {
        a.n--;
    }
    return a;
}

bool hk_str_cut(struct hk_str *rest, char sep, struct hk_str *part)
{
    if (!rest->s) {
        return false;
    }
    const char *at = rest->n > 0 ? memchr(rest->s, sep, rest->n) : NULL;
    if (!at) {
        *part = *rest;
        *rest = (struct hk_str){0};
        return true;
    }
    const size_t n = (size_t)(at - rest->s);
    *part = (struct hk_str){rest->s, n};
    *rest = (struct hk_str){at + 1, rest->n - n - 1};
    return true;
}

/* Counts downwards, because -INT64_MIN does not exist. */
bool hk_str_int(struct hk_str a, int64_t *ret)
{
    const bool sign = a.n > 0 && (a.s[0] == '-' || a.s[0] == '+');
    const bool negative = sign && a.s[0] == '-';
    int64_t value = 0;

    if (a.n == sign) {
        return false;
    }
    for (size_t i = sign; i < a.n; i++) {
        if (a.s[i] < '0' || a.s[i] > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, a.s[i] - '0', &value)) {
            return false;
        }
    }
    if (!negative && value == INT64_MIN) {
        return false;
    }
    *ret = negative ? value : -value;
    return true;
}

static uint64_t load64(const unsigned char *p)
{
    uint64_t x;

    memcpy(&x, p, sizeof(x));
    return le64toh(x);
}

static uint64_t load32(const unsigned char *p)
{
    uint32_t x;

    memcpy(&x, p, sizeof(x));
    return le32toh(x);
}

/* Both halves of the 128-bit product: every bit of a and b reaches the result. */
static uint64_t fold(uint64_t a, uint64_t b)
{
    const unsigned __int128 r = (unsigned __int128)a * b;

    return (uint64_t)r ^ (uint64_t)(r >> 64);
}

/* Multiply-and-fold over 16 bytes at a time, after wyhash. The last step reads the tail with
 * overlapping loads instead of byte by byte: most strings are shorter than 40 bytes. */
uint64_t hk_hash(const void *data, size_t n, uint64_t seed)
{
    const uint64_t c0 = 0x9e3779b97f4a7c15u, c1 = 0xbf58476d1ce4e5b9u, c2 = 0x94d049bb133111ebu;
    const unsigned char *p = data;
    uint64_t h = seed ^ fold(seed ^ c0, c1), a = 0, b = 0;
    size_t left = n;

    for (; left > 16; left -= 16, p += 16) {
        h = fold(load64(p) ^ c1, load64(p + 8) ^ h);
    }
    if (left >= 8) {
        a = load64(p);
        b = load64(p + left - 8);
    } else if (left >= 4) {
        a = load32(p);
        b = load32(p + left - 4);
    } else if (left > 0) {
        a = (uint64_t)p[0] << 16 | (uint64_t)p[left >> 1] << 8 | p[left - 1];
    }
    return fold(c2 ^ n, fold(a ^ c1, b ^ h));
}

void hk_buf_fini(struct hk_buf *b)
{
    hk_free(b->data);
    *b = (struct hk_buf){0};
}

void hk_buf_clear(struct hk_buf *b)
{
    b->len = 0;
    if (b->data) {
        b->data[0] = '\0';
    }
}

void hk_buf_reserve(struct hk_buf *b, size_t more)
{
    if (more < b->cap - b->len) { /* never true for an empty buffer; keeps a byte for the NUL */
        return;
    }
    hk_assert(more < PTRDIFF_MAX - b->len);
    b->cap = HK_MAX(HK_MAX(b->cap * 2, b->len + more + 1), (size_t)64);
    b->data = hk_realloc_array(b->data, b->cap, 1);
    b->data[b->len] = '\0';
}

void hk_buf_drop(struct hk_buf *b, size_t n)
{
    hk_assert(n <= b->len);
    if (n > 0) {
        b->len -= n;
        memmove(b->data, b->data + n, b->len);
        b->data[b->len] = '\0';
    }
}

void hk_buf_add(struct hk_buf *b, const void *p, size_t n)
{
    hk_buf_reserve(b, n);
    if (n > 0) {
        memcpy(b->data + b->len, p, n);
    }
    b->len += n;
    b->data[b->len] = '\0';
}

void hk_buf_addc(struct hk_buf *b, char c)
{
    hk_buf_reserve(b, 1);
    b->data[b->len++] = c;
    b->data[b->len] = '\0';
}

void hk_buf_adds(struct hk_buf *b, const char *s)
{
    hk_buf_add(b, s, strlen(s));
}

void hk_buf_addstr(struct hk_buf *b, struct hk_str s)
{
    hk_buf_add(b, s.s, s.n);
}

void hk_buf_addf(struct hk_buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    hk_buf_vaddf(b, fmt, ap);
    va_end(ap);
}

void hk_buf_vaddf(struct hk_buf *b, const char *fmt, va_list ap)
{
    va_list again;

    va_copy(again, ap);
    hk_buf_reserve(b, 1);
    const int n = vsnprintf(b->data + b->len, b->cap - b->len, fmt, ap);
    hk_assert(n >= 0);
    if ((size_t)n >= b->cap - b->len) {
        hk_buf_reserve(b, (size_t)n);
        vsnprintf(b->data + b->len, b->cap - b->len, fmt, again);
    }
    va_end(again);
    b->len += (size_t)n;
}
