// SPDX-License-Identifier: Apache-2.0
// The JSON reader: one pass from bytes to an arena tree. Children of open containers wait on two
// stacks and move to the arena, exactly sized, when their container closes. Strings without escapes
// point into the input.
//
// Functions take and return the position in the text, so that it stays in a register. NULL means
// failure, with the message in r->err and the code in r->rc.

#include "codec/json.h"
#include "codec/json_priv.h"

#include "base/map.h"
#include "base/vec.h"

#include <math.h>

/* Up to this number keys are compared one by one, beyond through a hash table. */
#define KEYS_LINEAR 32

enum { STACK_FIRST = 64 };

/* Children of incomplete containers. For most texts the space on the caller's stack is enough; two
 * allocations per text were visible in the store's profile. */
struct first {
    struct json items[STACK_FIRST];
    struct json_member members[STACK_FIRST];
};

struct reader {
    const char *end;
    const char *line_at; /* start of the current line; strings never contain a line end */
    uint32_t line;
    uint32_t depth;
    unsigned flags;
    int rc;
    struct hk_arena *arena;
    struct hk_err *err;
    struct first *first; /* initial memory of items and members */
    HK_VEC(struct json) items;
    HK_VEC(struct json_member) members;
    struct hk_buf text; /* the string being unescaped */
};

static const char *read_value(struct reader *r, const char *p, struct json *ret);

static void reader_fini(struct reader *r)
{
    if (r->items.at != r->first->items) {
        hk_vec_fini(&r->items);
    }
    if (r->members.at != r->first->members) {
        hk_vec_fini(&r->members);
    }
    hk_buf_fini(&r->text);
}

static void push_item(struct reader *r, struct json v)
{
    if (r->items.len == STACK_FIRST && r->items.at == r->first->items) {
        r->items.at = hk_alloc(2 * sizeof(r->first->items));
        r->items.cap = 2 * STACK_FIRST;
        memcpy(r->items.at, r->first->items, sizeof(r->first->items));
    }
    hk_vec_push(&r->items, v);
}

static void push_member(struct reader *r, struct json_member m)
{
    if (r->members.len == STACK_FIRST && r->members.at == r->first->members) {
        r->members.at = hk_alloc(2 * sizeof(r->first->members));
        r->members.cap = 2 * STACK_FIRST;
        memcpy(r->members.at, r->first->members, sizeof(r->first->members));
    }
    hk_vec_push(&r->members, m);
}

/* ---- errors ---- */

static const char *json_read_fail(struct reader *r, const char *at, enum hk_code code,
                                  const char *what)
{
    r->rc = hk_fail(r->err, code, "line %u, column %zu: %s", r->line, (size_t)(at - r->line_at) + 1,
                    what);
    return NULL;
}

static const char *fail_want(struct reader *r, const char *at, const char *want)
{
    char what[96];

    if (at == r->end) {
        snprintf(what, sizeof(what), "want %s, have the end of the input", want);
    } else if ((uint8_t)*at > 0x20 && (uint8_t)*at < 0x7f) {
        snprintf(what, sizeof(what), "want %s, have '%c'", want, *at);
    } else {
        snprintf(what, sizeof(what), "want %s, have byte 0x%02x", want, (uint8_t)*at);
    }
    return json_read_fail(r, at, HK_EINVAL, what);
}

static inline const char *json_read_skip_blanks(struct reader *r, const char *p)
{
    for (; p < r->end && (uint8_t)*p <= ' '; p++) {
        if (*p == '\n') {
            r->line++;
            r->line_at = p + 1;
        } else if (*p != ' ' && *p != '\t' && *p != '\r') {
            break;
        }
    }
    return p;
}

/* ---- strings ---- */

size_t json_utf8_len(const char *p, const char *end)
{
    const uint8_t *u = (const uint8_t *)p;
    const size_t n = (size_t)(end - p);
    uint8_t low = 0x80, high = 0xbf; /* bounds of the second byte */

    if (u[0] < 0x80) {
        return 1;
    }
    if (u[0] < 0xc2 || u[0] > 0xf4) {
        return 0; /* a stray continuation byte, an overlong pair, or past U+10FFFF */
    }
    const size_t want = u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
    switch (u[0]) {
    case 0xe0:
        low = 0xa0; /* less is overlong */
        break;
    case 0xed:
        high = 0x9f; /* more is a surrogate */
        break;
    case 0xf0:
        low = 0x90; /* less is overlong */
        break;
    case 0xf4:
        high = 0x8f; /* more is past U+10FFFF */
        break;
    default:
        break;
    }
    if (n < want || u[1] < low || u[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < want; i++) {
        if ((u[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return want;
}

static void add_utf8(struct hk_buf *b, uint32_t c)
{
    char out[4];
    size_t n = 0;

    if (c < 0x80) {
        out[n++] = (char)c;
    } else {
        if (c < 0x800) {
            out[n++] = (char)(0xc0 | c >> 6);
        } else {
            if (c < 0x10000) {
                out[n++] = (char)(0xe0 | c >> 12);
            } else {
                out[n++] = (char)(0xf0 | c >> 18);
                out[n++] = (char)(0x80 | (c >> 12 & 0x3f));
            }
            out[n++] = (char)(0x80 | (c >> 6 & 0x3f));
        }
        out[n++] = (char)(0x80 | (c & 0x3f));
    }
    hk_buf_add(b, out, n);
}

/* The four hex digits at p, or -1. */
static int32_t hex4(const struct reader *r, const char *p)
{
    int32_t v = 0;

    if (r->end - p < 4) {
        return -1;
    }
    for (int i = 0; i < 4; i++) {
        const char c = p[i];
        if (c >= '0' && c <= '9') {
            v = v << 4 | (c - '0');
        } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
            v = v << 4 | ((c | 0x20) - 'a' + 10);
        } else {
            return -1;
        }
    }
    return v;
}

/* "\uXXXX", or two of them for a surrogate pair; p is at the backslash. */
static const char *read_unicode_escape(struct reader *r, const char *p)
{
    const int32_t first = hex4(r, p + 2);

    if (first < 0) {
        return json_read_fail(r, p, HK_EINVAL, "want four hex digits after \\u");
    }
    if (first == 0) {
        return json_read_fail(r, p, HK_EINVAL, "NUL in a string");
    }
    if (first < 0xd800 || first > 0xdfff) {
        add_utf8(&r->text, (uint32_t)first);
        return p + 6;
    }
    if (first < 0xdc00 && r->end - p >= 12 && p[6] == '\\' && p[7] == 'u') {
        const int32_t second = hex4(r, p + 8);
        if (second >= 0xdc00 && second <= 0xdfff) {
            add_utf8(&r->text,
                     0x10000 + ((uint32_t)(first - 0xd800) << 10) + (uint32_t)(second - 0xdc00));
            return p + 12;
        }
    }
    return json_read_fail(r, p, HK_EINVAL, "half of a surrogate pair");
}

/* p is at the backslash. */
static const char *read_escape(struct reader *r, const char *p)
{
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";

    if (p + 1 == r->end) {
        return fail_want(r, p + 1, "a character after the backslash");
    }
    if (p[1] == 'u') {
        return read_unicode_escape(r, p);
    }
    const char *found = memchr(from, p[1], sizeof(from) - 1);
    if (found == NULL) {
        return fail_want(r, p + 1, "one of \"\\/bfnrtu after the backslash");
    }
    hk_buf_addc(&r->text, to[found - from]);
    return p + 2;
}

/* p is after the opening quote. */
static const char *read_string(struct reader *r, const char *p, struct hk_str *ret)
{
    const char *piece = p; /* start of the text that is not yet in r->text */
    bool escaped = false;

    for (;;) {
        p = json_skip_plain(p, r->end);
        if (p == r->end) {
            return fail_want(r, p, "'\"' to end the string");
        }
        if (*p == '"') {
            break;
        }
        if (*p == '\\') {
            if (!escaped) {
                escaped = true;
                hk_buf_clear(&r->text);
            }
            hk_buf_add(&r->text, piece, (size_t)(p - piece));
            p = piece = read_escape(r, p);
            if (p == NULL) {
                return NULL;
            }
        } else if ((uint8_t)*p < 0x20) {
            return fail_want(r, p, "control characters escaped in a string");
        } else {
            const size_t n = json_utf8_len(p, r->end);
            if (n == 0) {
                return fail_want(r, p, "well-formed UTF-8");
            }
            p += n;
        }
    }

    if (escaped) {
        hk_buf_add(&r->text, piece, (size_t)(p - piece));
        *ret = hk_arena_str(r->arena, hk_buf_str(&r->text));
    } else {
        *ret = (struct hk_str){piece, (size_t)(p - piece)};
    }
    return p + 1;
}

/* ---- numbers ---- */

static inline bool at_digit(const struct reader *r, const char *p)
{
    return p < r->end && *p >= '0' && *p <= '9';
}

static const char *skip_digits(struct reader *r, const char *p)
{
    if (!at_digit(r, p)) {
        return fail_want(r, p, "a digit");
    }
    while (at_digit(r, p)) {
        p++;
    }
    return p;
}

/* strtod needs a NUL at the end, which the input may lack. */
static double to_double(const char *p, size_t n)
{
    char small[64];

    if (n < sizeof(small)) {
        memcpy(small, p, n);
        small[n] = '\0';
        return strtod(small, NULL);
    }
    HK_AUTO(hk_freep) char *big = hk_strndup(p, n);
    return strtod(big, NULL);
}

/* The rest of a number that is not a 64-bit integer; p is after the integer digits. */
static const char *read_double(struct reader *r, const char *begin, const char *p, struct json *ret)
{
    if (p < r->end && *p == '.') {
        p = skip_digits(r, p + 1);
        if (p == NULL) {
            return NULL;
        }
    }
    if (p < r->end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < r->end && (*p == '+' || *p == '-')) {
            p++;
        }
        p = skip_digits(r, p);
        if (p == NULL) {
            return NULL;
        }
    }
    ret->type = JSON_DOUBLE;
    ret->d = to_double(begin, (size_t)(p - begin));
    if (isinf(ret->d)) {
        return json_read_fail(r, begin, HK_EINVAL, "number too large");
    }
    return p;
}

static const char *json_read_number(struct reader *r, const char *p, struct json *ret)
{
    const char *begin = p;
    const bool negative = *p == '-';
    uint64_t u = 0;
    bool fits = true;

    p += negative;
    if (!at_digit(r, p)) {
        return fail_want(r, p, "a digit");
    }
    if (*p == '0') {
        p++; /* the caller refuses a digit after it */
    } else {
        for (; at_digit(r, p); p++) {
            fits &= !__builtin_mul_overflow(u, 10u, &u);
            fits &= !__builtin_add_overflow(u, (unsigned)(*p - '0'), &u);
        }
    }
    fits &= !negative || u <= (uint64_t)INT64_MAX + 1;
    if (!fits || (p < r->end && (*p == '.' || *p == 'e' || *p == 'E'))) {
        return read_double(r, begin, p, ret);
    }
    if (negative || u <= INT64_MAX) {
        ret->type = JSON_INT;
        ret->i = (int64_t)(negative ? -u : u);
    } else {
        ret->type = JSON_UINT;
        ret->u = u;
    }
    return p;
}

/* ---- keys of the object being read ---- */

/* Most objects are small and have no duplicate keys: one bit per key shows that a key is new
 * without comparing. Large objects get an open-addressing table of member indices plus one. */
struct keys {
    uint64_t seen;
    uint32_t *slots;
    uint32_t nslots; /* a power of two */
};

static inline void keys_fini(struct keys *k)
{
    if (HK_UNLIKELY(k->slots != NULL)) {
        hk_free(k->slots);
    }
}

static inline uint64_t key_bit(struct hk_str key)
{
    if (key.n == 0) {
        return 1;
    }
    const unsigned mix = (uint8_t)key.s[0] + 5u * (uint8_t)key.s[key.n / 2] +
                         11u * (uint8_t)key.s[key.n - 1] + (unsigned)key.n;
    return 1ull << (mix & 63);
}

/* The slot of the key, or the free slot for it. */
static uint32_t keys_slot(const struct keys *k, const struct json_member *m, struct hk_str key)
{
    /* Seeded with an address, so that attackers cannot prepare colliding keys. */
    uint32_t at = (uint32_t)hk_hash(key.s, key.n, (uintptr_t)k->slots) & (k->nslots - 1);

    while (k->slots[at] != 0 && !hk_str_eq(m[k->slots[at] - 1].key, key)) {
        at = (at + 1) & (k->nslots - 1);
    }
    return at;
}

/* The index of the member with that key, or HK_NONE. */
static inline uint32_t keys_find(const struct keys *k, const struct json_member *m, uint32_t n,
                                 struct hk_str key)
{
    if (HK_LIKELY((k->seen & key_bit(key)) == 0)) {
        return HK_NONE;
    }
    if (k->slots != NULL) {
        return k->slots[keys_slot(k, m, key)] - 1; /* a free slot results in HK_NONE */
    }
    for (uint32_t i = 0; i < n; i++) {
        if (hk_str_eq(m[i].key, key)) {
            return i;
        }
    }
    return HK_NONE;
}

static void keys_grow(struct keys *k, const struct json_member *m, uint32_t n)
{
    hk_free(k->slots);
    k->nslots = k->nslots ? k->nslots * 2 : KEYS_LINEAR * 4;
    k->slots = hk_zalloc_array(k->nslots, sizeof(*k->slots));
    for (uint32_t i = 0; i < n; i++) {
        k->slots[keys_slot(k, m, m[i].key)] = i + 1;
    }
}

/* Adds the new member n of m. */
static inline void keys_add(struct keys *k, const struct json_member *m, uint32_t n)
{
    k->seen |= key_bit(m[n].key);
    if (HK_LIKELY(n < KEYS_LINEAR)) {
        return;
    }
    if (k->nslots / 2 <= n) {
        keys_grow(k, m, n);
    }
    k->slots[keys_slot(k, m, m[n].key)] = n + 1;
}

/* ---- containers ---- */

static const char *json_read_enter_container(struct reader *r, const char *p)
{
    if (++r->depth > JSON_MAX_DEPTH) {
        return json_read_fail(r, p, HK_ELIMIT, "nested too deeply");
    }
    return json_read_skip_blanks(r, p + 1);
}

static const char *read_array_items(struct reader *r, const char *p)
{
    for (;;) {
        struct json v;
        p = read_value(r, p, &v);
        if (p == NULL) {
            return NULL;
        }
        push_item(r, v);
        p = json_read_skip_blanks(r, p);
        if (p < r->end && *p == ']') {
            return p;
        }
        if (p == r->end || *p != ',') {
            return fail_want(r, p, "',' or ']' after an element");
        }
        p = json_read_skip_blanks(r, p + 1);
    }
}

/* p is at the bracket. */
static const char *read_array(struct reader *r, const char *p, struct json *ret)
{
    const uint32_t base = r->items.len;

    p = json_read_enter_container(r, p);
    if (p == NULL) {
        return NULL;
    }
    if (p == r->end || *p != ']') {
        p = read_array_items(r, p);
        if (p == NULL) {
            return NULL;
        }
    }

    const uint32_t n = r->items.len - base;
    ret->type = JSON_ARRAY;
    ret->len = n;
    ret->items = NULL;
    if (n > 0) {
        ret->items = hk_arena_alloc(r->arena, n * sizeof(struct json));
        memcpy(ret->items, r->items.at + base, n * sizeof(struct json));
        r->items.len = base;
    }
    r->depth--;
    return p + 1;
}

static const char *read_key(struct reader *r, const char *p, struct hk_str *ret)
{
    if (p == r->end || *p != '"') {
        return fail_want(r, p, "a key in double quotes");
    }
    return read_string(r, p + 1, ret);
}

static const char *fail_twin(struct reader *r, const char *at, struct hk_str key)
{
    r->rc = hk_fail(r->err, HK_EINVAL, "line %u, column %zu: duplicate key \"%.*s\"", r->line,
                    (size_t)(at - r->line_at) + 1, (int)HK_MIN(key.n, (size_t)128), key.s);
    return NULL;
}

/* One "key": value. A duplicate key replaces the earlier member. */
static const char *read_member(struct reader *r, const char *p, struct keys *keys, uint32_t base)
{
    const char *key_at = p;
    struct json_member m;

    p = read_key(r, p, &m.key);
    if (p == NULL) {
        return NULL;
    }
    const uint32_t twin = keys_find(keys, r->members.at + base, r->members.len - base, m.key);
    if (twin != HK_NONE && (r->flags & JSON_DUP_REJECT) != 0) {
        return fail_twin(r, key_at, m.key);
    }

    p = json_read_skip_blanks(r, p);
    if (p == r->end || *p != ':') {
        return fail_want(r, p, "':' after a key");
    }
    p = read_value(r, json_read_skip_blanks(r, p + 1), &m.value);
    if (p == NULL) {
        return NULL;
    }

    if (HK_UNLIKELY(twin != HK_NONE)) {
        if (r->flags & JSON_DUP_KEEP) {
            push_member(r, m);
        } else {
            r->members.at[base + twin].value = m.value;
        }
    } else {
        push_member(r, m);
        keys_add(keys, r->members.at + base, r->members.len - base - 1);
    }
    return p;
}

static const char *read_members(struct reader *r, const char *p, uint32_t base)
{
    HK_AUTO(keys_fini) struct keys keys = {0};

    for (;;) {
        p = read_member(r, p, &keys, base);
        if (p == NULL) {
            return NULL;
        }
        p = json_read_skip_blanks(r, p);
        if (p < r->end && *p == '}') {
            return p;
        }
        if (p == r->end || *p != ',') {
            return fail_want(r, p, "',' or '}' after a member");
        }
        p = json_read_skip_blanks(r, p + 1);
    }
}

/* p is at the brace. */
static const char *json_read_object(struct reader *r, const char *p, struct json *ret)
{
    const uint32_t base = r->members.len;

    p = json_read_enter_container(r, p);
    if (p == NULL) {
        return NULL;
    }
    if (p == r->end || *p != '}') {
        p = read_members(r, p, base);
        if (p == NULL) {
            return NULL;
        }
    }

    const uint32_t n = r->members.len - base;
    ret->type = JSON_OBJECT;
    ret->len = n;
    ret->members = NULL;
    if (n > 0) {
        ret->members = hk_arena_alloc(r->arena, n * sizeof(struct json_member));
        memcpy(ret->members, r->members.at + base, n * sizeof(struct json_member));
        r->members.len = base;
    }
    r->depth--;
    return p + 1;
}

/* ---- any value ---- */

static const char *json_read_literal(struct reader *r, const char *p, const char *word, size_t n)
{
    if ((size_t)(r->end - p) < n || memcmp(p, word, n) != 0) {
        return fail_want(r, p, "a value");
    }
    return p + n;
}

static const char *read_value(struct reader *r, const char *p, struct json *ret)
{
    *ret = (struct json){.line = r->line};
    if (p == r->end) {
        return fail_want(r, p, "a value");
    }
    switch (*p) {
    case '"': {
        struct hk_str s;
        p = read_string(r, p + 1, &s);
        if (p != NULL) {
            ret->type = JSON_STRING;
            ret->len = (uint32_t)s.n;
            ret->s = s.s;
        }
        return p;
    }
    case '{':
        return json_read_object(r, p, ret);
    case '[':
        return read_array(r, p, ret);
    case 't':
    case 'f':
        ret->type = JSON_BOOL;
        ret->b = *p == 't';
        return ret->b ? json_read_literal(r, p, "true", 4) : json_read_literal(r, p, "false", 5);
    case 'n':
        return json_read_literal(r, p, "null", 4);
    case '-':
    case '0' ... '9':
        return json_read_number(r, p, ret);
    default:
        return fail_want(r, p, "a value");
    }
}

int json_parse(struct hk_str text, unsigned flags, struct hk_arena *a, struct json *ret,
               struct hk_err *err)
{
    const char *begin = text.n > 0 ? text.s : "";
    struct first first;
    HK_AUTO(reader_fini)
    struct reader r = {
        .end = begin + text.n,
        .line_at = begin,
        .line = 1,
        .flags = flags,
        .arena = a,
        .err = err,
        .first = &first,
        .items = {.at = first.items, .cap = STACK_FIRST},
        .members = {.at = first.members, .cap = STACK_FIRST},
    };
    struct json v;

    if (text.n > UINT32_MAX) {
        return hk_fail(err, HK_ELIMIT, "JSON text of %zu bytes, want at most %u", text.n,
                       UINT32_MAX);
    }
    const char *p = read_value(&r, json_read_skip_blanks(&r, begin), &v);
    if (p == NULL) {
        return r.rc;
    }
    p = json_read_skip_blanks(&r, p);
    if (p != r.end) {
        fail_want(&r, p, "the end of the input after the value");
        return r.rc;
    }
    *ret = v;
    return 0;
}
