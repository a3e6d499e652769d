// SPDX-License-Identifier: Apache-2.0
// Arenas. Chunks form one list: those before cur are full, those after it are free for reuse. So a
// rewind frees exactly what is after the mark.

#include "base/arena.h"

#include <stdarg.h>

#define CHUNK_MIN ((size_t)4 << 10)
#define CHUNK_MAX ((size_t)4 << 20)

struct hk_arena_chunk {
    struct hk_arena_chunk *next;
    size_t size; /* of data */
    _Alignas(16) char data[];
};

static void hk_arena_use_chunk(struct hk_arena *a, struct hk_arena_chunk *c, char *at)
{
    a->cur = c;
    a->at = at;
    a->end = c->data + c->size;
}

/* Goes back to a position in c: everything after it is free again. */
static void reenter(struct hk_arena *a, struct hk_arena_chunk *c, char *at)
{
    hk_arena_use_chunk(a, c, at);
    ASAN_POISON_MEMORY_REGION(a->at, a->end - a->at);
#if HK_ARENA_GAP
    for (c = c->next; c; c = c->next) {
        ASAN_POISON_MEMORY_REGION(c->data, c->size);
    }
#endif
}

void hk_arena_fini(struct hk_arena *a)
{
    struct hk_arena_chunk *next;

    for (struct hk_arena_chunk *c = a->head; c; c = next) {
        next = c->next;
        ASAN_UNPOISON_MEMORY_REGION(c->data, c->size);
        hk_free(c);
    }
    *a = (struct hk_arena){0};
}

void hk_arena_clear(struct hk_arena *a)
{
    if (a->head) {
        reenter(a, a->head, a->head->data);
    }
}

struct hk_arena_mark hk_arena_mark(const struct hk_arena *a)
{
    return (struct hk_arena_mark){a->cur, a->at};
}

void hk_arena_rewind(struct hk_arena *a, struct hk_arena_mark m)
{
    if (!m.chunk) {
        hk_arena_clear(a); /* the mark is from before the first chunk */
        return;
    }
    reenter(a, m.chunk, m.at);
}

/* Removes the first free chunk with more than room bytes from the list. */
static struct hk_arena_chunk *take_free(struct hk_arena *a, size_t room)
{
    if (!a->cur) {
        return NULL;
    }
    for (struct hk_arena_chunk **link = &a->cur->next; *link; link = &(*link)->next) {
        struct hk_arena_chunk *c = *link;
        if (c->size > room) {
            *link = c->next;
            return c;
        }
    }
    return NULL;
}

/* Allocates at least that many bytes, header included, and enough for an allocation of room bytes.
 * A chunk is never completely full: see hk_arena_alloc. */
static struct hk_arena_chunk *new_chunk(struct hk_arena *a, size_t bytes, size_t room)
{
    const size_t header = sizeof(struct hk_arena_chunk);

    hk_assert(room < PTRDIFF_MAX - header - 16);
    bytes = HK_MAX(bytes, header + room + 16);
    struct hk_arena_chunk *c = hk_alloc(bytes);
    c->size = bytes - header;
    ASAN_POISON_MEMORY_REGION(c->data, c->size);
    a->total += bytes;
    return c;
}

void hk_arena_reserve(struct hk_arena *a, size_t room)
{
    hk_assert(!a->head);
    a->head = new_chunk(a, 0, room);
    a->head->next = NULL;
    hk_arena_use_chunk(a, a->head, a->head->data);
}

void *hk_arena_grow(struct hk_arena *a, size_t room)
{
    struct hk_arena_chunk *c = take_free(a, room);

    if (!c) {
        /* Doubles the arena, within limits: large documents need few calls, small stay small. */
        c = new_chunk(a, HK_MIN(HK_MAX(a->total, CHUNK_MIN), CHUNK_MAX), room);
    }
    if (a->cur) {
        c->next = a->cur->next;
        a->cur->next = c;
    } else {
        c->next = NULL;
        a->head = c;
    }
    hk_arena_use_chunk(a, c, c->data + room);
    return c->data;
}

void *hk_arena_array(struct hk_arena *a, size_t n, size_t size)
{
    size_t bytes;

    hk_assert(!__builtin_mul_overflow(n, size, &bytes) && bytes <= PTRDIFF_MAX);
    return hk_arena_alloc(a, bytes);
}

char *hk_arena_strndup(struct hk_arena *a, const char *s, size_t n)
{
    char *copy = hk_arena_alloc(a, n + 1);

    if (n > 0) {
        memcpy(copy, s, n);
    }
    copy[n] = '\0';
    return copy;
}

struct hk_str hk_arena_str(struct hk_arena *a, struct hk_str s)
{
    return (struct hk_str){hk_arena_strndup(a, s.s, s.n), s.n};
}

char *hk_arena_printf(struct hk_arena *a, const char *fmt, ...)
{
    char brief[128]; /* enough for most texts, which then need no second pass */
    va_list ap;

    va_start(ap, fmt);
    const int n = vsnprintf(brief, sizeof(brief), fmt, ap);
    va_end(ap);
    hk_assert(n >= 0);
    if ((size_t)n < sizeof(brief)) {
        return hk_arena_strndup(a, brief, (size_t)n);
    }

    char *out = hk_arena_alloc(a, (size_t)n + 1);
    va_start(ap, fmt);
    vsnprintf(out, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return out;
}

void hk_arena_pool_fini(struct hk_arena_pool *p)
{
    while (p->len > 0) {
        hk_arena_fini(&p->at[--p->len]);
    }
}

struct hk_arena hk_arena_pool_take(struct hk_arena_pool *p)
{
    return p->len > 0 ? p->at[--p->len] : (struct hk_arena){0};
}

void hk_arena_pool_give(struct hk_arena_pool *p, struct hk_arena *a)
{
    if (p->len == HK_ARENA_POOL || a->total == 0 || a->total > HK_ARENA_POOL_EACH) {
        hk_arena_fini(a);
        return;
    }
    hk_arena_clear(a);
    p->at[p->len++] = *a;
    *a = (struct hk_arena){0};
}
