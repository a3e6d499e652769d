// SPDX-License-Identifier: Apache-2.0
// The JSON tree: lookup, comparison, building and copying. json_read.c reads text and json_write.c
// writes it.
//
// Written here, because no C library we know of offers all that is needed at once: int64, uint64
// and double kept apart as Go does, the line of each value for messages, and trees in an arena whose
// strings stay in the input, so that 100,000 objects do not cost a malloc per field. Tests and a
// fuzzer compare the reader with jansson (json_oracle.h).

#include "codec/json.h"

#include "codec/timefmt.h"

/* Objects up to this size are compared member by member, larger ones after sorting. */
#define EQUAL_LINEAR 32

/* ---- lookup ---- */

/* An index stands right before the members of a large object: a hash table of their positions.
 * json_put makes it and keeps it up to date. Code that changes members directly (only their order,
 * their number or their values, never a key) makes it stale, which look-ups notice. */
struct json_table {
    uint64_t *slots; /* hash in the upper half, position + 1 in the lower; 0: free */
    uint32_t mask;
    uint32_t len; /* members it knows */
};

#define INDEXED (1u << 31)
enum {
    INDEX_MIN = 64, /* below this comparing with every member is as fast */
    DOOMED = UINT8_MAX,
};

/* Seeded by an address: strangers choose the keys, and must not be able to choose their places. */
static uint32_t table_hash(const struct json_table *t, struct hk_str key)
{
    return (uint32_t)hk_hash(key.s, key.n, (uintptr_t)t->slots);
}

static struct json_table *table_of(const struct json *obj)
{
    return obj->cap & INDEXED ? (struct json_table *)obj->members - 1 : NULL;
}

static bool is_member(const struct json_member *m, struct hk_str key)
{
    return hk_str_eq(m->key, key) && m->value.type != DOOMED;
}

/* Whether the table answers the question; *ret is the member or NULL. */
static bool table_find(const struct json *obj, struct hk_str key, struct json_member **ret)
{
    const struct json_table *t = table_of(obj);
    bool doubt = false;

    if (!t || t->len != obj->len) {
        return false;
    }
    const uint32_t hash = table_hash(t, key);
    *ret = NULL;
    for (uint32_t i = hash & t->mask; t->slots[i] != 0; i = (i + 1) & t->mask) {
        const uint32_t at = (uint32_t)t->slots[i] - 1;
        if ((uint32_t)(t->slots[i] >> 32) != hash) {
            continue;
        }
        if (at < obj->len && is_member(&obj->members[at], key)) {
            *ret = &obj->members[at];
            return true;
        }
        doubt = true; /* an equal hash, a hidden member, or the order has changed */
    }
    return !doubt;
}

static void table_add(struct json *obj, uint32_t at)
{
    struct json_table *t = table_of(obj);
    const uint32_t hash = table_hash(t, obj->members[at].key);
    uint32_t i = hash & t->mask;

    while (t->slots[i] != 0) {
        i = (i + 1) & t->mask;
    }
    t->slots[i] = (uint64_t)hash << 32 | (at + 1);
    t->len = at + 1;
}

/* Moves the members where there is room for as many again, with a new table in front. */
static void table_build(struct json *obj, struct hk_arena *a)
{
    const struct json_member *old = obj->members;
    const uint32_t cap = obj->len * 2;
    uint32_t n = 4;
    struct json_table *t;

    hk_assert(obj->len < INDEXED / 4);
    while (n < cap * 2) {
        n *= 2;
    }
    t = hk_arena_alloc(a, sizeof(*t) + (size_t)cap * sizeof(*old));
    *t = (struct json_table){.slots = hk_arena_zalloc(a, n * sizeof(uint64_t)), .mask = n - 1};
    obj->members = (struct json_member *)(t + 1);
    obj->cap = cap | INDEXED;
    memcpy(obj->members, old, obj->len * sizeof(*old));
    for (uint32_t i = 0; i < obj->len; i++) {
        table_add(obj, i);
    }
}

static struct json_member *json_find_member(const struct json *obj, struct hk_str key)
{
    struct json_member *m;

    if (!json_is(obj, JSON_OBJECT)) {
        return NULL;
    }
    if (table_find(obj, key, &m)) {
        return m;
    }
    for (uint32_t i = 0; i < obj->len; i++) {
        if (is_member(&obj->members[i], key)) {
            return &obj->members[i];
        }
    }
    return NULL;
}

const struct json *json_get_str(const struct json *obj, struct hk_str key)
{
    const struct json_member *m = json_find_member(obj, key);

    return m ? &m->value : NULL;
}

const struct json *json_get(const struct json *obj, const char *key)
{
    return json_get_str(obj, hk_str(key));
}

const struct json *json_at(const struct json *v, const char *path)
{
    struct hk_str rest = hk_str(path), key;

    while (v != NULL && hk_str_cut(&rest, '.', &key)) {
        v = json_get_str(v, key);
    }
    return v;
}

const struct json *json_item(const struct json *arr, uint32_t i)
{
    return json_is(arr, JSON_ARRAY) && i < arr->len ? &arr->items[i] : NULL;
}

struct hk_str json_str(const struct json *v, struct hk_str fallback)
{
    return json_is(v, JSON_STRING) ? (struct hk_str){v->s, v->len} : fallback;
}

int64_t json_int(const struct json *v, int64_t fallback)
{
    return json_is(v, JSON_INT) ? v->i : fallback;
}

bool json_bool(const struct json *v, bool fallback)
{
    return json_is(v, JSON_BOOL) ? v->b : fallback;
}

struct hk_str json_str_at(const struct json *v, const char *path)
{
    return json_str(json_at(v, path), HK_STR(""));
}

int64_t json_int_at(const struct json *v, const char *path)
{
    return json_int(json_at(v, path), 0);
}

const struct json *json_list_at(const struct json *v, const char *path)
{
    static const struct json none = {.type = JSON_ARRAY};
    const struct json *list = json_at(v, path);

    return json_is(list, JSON_ARRAY) ? list : &none;
}

const char *json_type_name(enum json_type type)
{
    switch (type) {
    case JSON_NULL:
        return "null";
    case JSON_BOOL:
        return "boolean";
    case JSON_INT:
    case JSON_UINT:
        return "integer";
    case JSON_DOUBLE:
        return "number";
    case JSON_STRING:
        return "string";
    case JSON_ARRAY:
        return "array";
    case JSON_OBJECT:
        return "object";
    }
    return "unknown";
}

/* ---- comparing ---- */

/* An integer as sign and magnitude; false for a double that is not an integer or out of range. */
static bool whole(const struct json *v, bool *negative, uint64_t *magnitude)
{
    if (v->type == JSON_INT) {
        *negative = v->i < 0;
        *magnitude = *negative ? -(uint64_t)v->i : (uint64_t)v->i;
        return true;
    }
    if (v->type == JSON_UINT) {
        *negative = false;
        *magnitude = v->u;
        return true;
    }
    const double d = __builtin_fabs(v->d);
    if (!(d < 0x1p64) || d != __builtin_trunc(d)) {
        return false;
    }
    *negative = v->d < 0;
    *magnitude = (uint64_t)d;
    return true;
}

/* Not through double, which would make 2^63 and 2^63 - 1 equal. */
static bool number_equal(const struct json *a, const struct json *b)
{
    bool a_negative, b_negative;
    uint64_t a_magnitude, b_magnitude;

    if (a->type == JSON_DOUBLE && b->type == JSON_DOUBLE) {
        return a->d == b->d;
    }
    return whole(a, &a_negative, &a_magnitude) && whole(b, &b_negative, &b_magnitude) &&
           a_negative == b_negative && a_magnitude == b_magnitude;
}

static int by_key(const void *a, const void *b)
{
    const struct json_member *ma = a, *mb = b;

    return hk_str_cmp(ma->key, mb->key);
}

static struct json_member *json_sort_members(const struct json *obj)
{
    struct json_member *out = hk_zalloc_array(obj->len, sizeof(*out));

    memcpy(out, obj->members, obj->len * sizeof(*out));
    qsort(out, obj->len, sizeof(*out), by_key);
    return out;
}

static bool large_object_equal(const struct json *a, const struct json *b)
{
    HK_AUTO(hk_freep) struct json_member *sa = json_sort_members(a);
    HK_AUTO(hk_freep) struct json_member *sb = json_sort_members(b);

    for (uint32_t i = 0; i < a->len; i++) {
        if (!hk_str_eq(sa[i].key, sb[i].key) || !json_equal(&sa[i].value, &sb[i].value)) {
            return false;
        }
    }
    return true;
}

static bool object_equal(const struct json *a, const struct json *b)
{
    if (a->len > EQUAL_LINEAR) {
        return large_object_equal(a, b);
    }
    for (uint32_t i = 0; i < a->len; i++) {
        const struct json *other = json_get_str(b, a->members[i].key);
        if (other == NULL || !json_equal(&a->members[i].value, other)) {
            return false;
        }
    }
    return true;
}

bool json_equal(const struct json *a, const struct json *b)
{
    if (a == NULL || b == NULL) {
        return a == b;
    }
    if (json_is_numeric(a) && json_is_numeric(b)) {
        return number_equal(a, b);
    }
    if (a->type != b->type || a->len != b->len) {
        return false;
    }
    switch ((enum json_type)a->type) {
    case JSON_BOOL:
        return a->b == b->b;
    case JSON_STRING:
        return a->len == 0 || memcmp(a->s, b->s, a->len) == 0;
    case JSON_ARRAY:
        for (uint32_t i = 0; i < a->len; i++) {
            if (!json_equal(&a->items[i], &b->items[i])) {
                return false;
            }
        }
        return true;
    case JSON_OBJECT:
        return object_equal(a, b);
    default:
        return true;
    }
}

static uint64_t number_hash(const struct json *v)
{
    const double d = v->type == JSON_DOUBLE ? v->d
                     : v->type == JSON_UINT ? (double)v->u
                                            : (double)v->i;

    return d == 0 ? JSON_INT : hk_hash(&d, sizeof(d), JSON_INT); /* 0 and -0 are equal */
}

uint64_t json_hash(const struct json *v)
{
    uint64_t h = v ? v->type : JSON_NULL;

    switch (h) {
    case JSON_BOOL:
        return hk_mix(h + (v->b ? 8 : 0));
    case JSON_STRING:
        return hk_hash(v->s, v->len, h);
    case JSON_ARRAY:
        for (uint32_t i = 0; i < v->len; i++) {
            h = hk_mix(h + json_hash(&v->items[i]));
        }
        return h;
    case JSON_OBJECT: /* a sum, because the order of members has no meaning */
        for (uint32_t i = 0; i < v->len; i++) {
            h += hk_mix(
                hk_hash(v->members[i].key.s, v->members[i].key.n, json_hash(&v->members[i].value)));
        }
        return hk_mix(h);
    case JSON_NULL:
        return h;
    default:
        return number_hash(v);
    }
}

/* ---- building ---- */

struct json json_make_str(struct hk_str s)
{
    hk_assert(s.n <= UINT32_MAX);
    return (struct json){.type = JSON_STRING, .len = (uint32_t)s.n, .s = s.s};
}

struct json json_make_str_copy(struct hk_str s, struct hk_arena *a)
{
    return json_make_str(hk_arena_str(a, s));
}

struct json json_make_int(int64_t i)
{
    return (struct json){.type = JSON_INT, .i = i};
}

struct json json_make_double(double d)
{
    return (struct json){.type = JSON_DOUBLE, .d = d};
}

struct json json_make_bool(bool b)
{
    return (struct json){.type = JSON_BOOL, .b = b};
}

struct json json_make_object(void)
{
    return (struct json){.type = JSON_OBJECT};
}

struct json json_make_array(void)
{
    return (struct json){.type = JSON_ARRAY};
}

struct json json_make_time(int64_t ns, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    time_write(ns, &text);
    return json_make_str_copy(hk_buf_str(&text), a);
}

struct json json_make_micro_time(int64_t ns, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    time_write_micro(ns, &text);
    return json_make_str_copy(hk_buf_str(&text), a);
}

struct json json_make_quantity(struct quantity q, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    quantity_write(q, &text);
    return json_make_str_copy(hk_buf_str(&text), a);
}

/* Makes space for one more child; old has v->len of them. */
static void *json_grow_children(struct json *v, struct hk_arena *a, const void *old, size_t size)
{
    hk_assert(v->len < UINT32_MAX / 2 && (old || v->len == 0));
    v->cap = HK_MAX(v->len * 2, 4u);
    void *at = hk_arena_array(a, v->cap, size);
    if (v->len > 0) {
        memcpy(at, old, v->len * size);
    }
    return at;
}

struct json *json_put(struct json *obj, struct hk_arena *a, struct hk_str key, struct json v)
{
    hk_assert(obj->type == JSON_OBJECT);
    if (obj->len >= INDEX_MIN && (!table_of(obj) || table_of(obj)->len != obj->len)) {
        table_build(obj, a);
    }
    struct json_member *m = json_find_member(obj, key);
    if (m == NULL) {
        if (obj->len >= (obj->cap & ~INDEXED) && table_of(obj)) {
            table_build(obj, a);
        } else if (obj->len >= (obj->cap & ~INDEXED)) {
            obj->members = json_grow_children(obj, a, obj->members, sizeof(*obj->members));
        }
        m = &obj->members[obj->len++];
        m->key = key;
        if (table_of(obj)) {
            table_add(obj, obj->len - 1);
        }
    }
    m->value = v;
    return &m->value;
}

struct json *json_push(struct json *arr, struct hk_arena *a, struct json v)
{
    hk_assert(arr->type == JSON_ARRAY);
    if (arr->len >= arr->cap) {
        arr->items = json_grow_children(arr, a, arr->items, sizeof(*arr->items));
    }
    arr->items[arr->len] = v;
    return &arr->items[arr->len++];
}

static struct json *need(struct json *obj, struct hk_arena *a, struct hk_str key,
                         enum json_type type)
{
    struct json *v = (struct json *)json_get_str(obj, key);

    return json_is(v, type) ? v : json_put(obj, a, key, (struct json){.type = (uint8_t)type});
}

struct json *json_need(struct json *obj, struct hk_arena *a, const char *key, enum json_type type)
{
    return need(obj, a, hk_str(key), type);
}

/* The object that contains the last part of *path; *path becomes that part. */
static struct json *need_parent(struct json *obj, struct hk_arena *a, struct hk_str *path)
{
    struct hk_str rest = *path, key = rest;

    while (hk_str_cut(&rest, '.', &key) && rest.s) {
        obj = need(obj, a, key, JSON_OBJECT);
    }
    *path = key;
    return obj;
}

struct json *json_need_at(struct json *obj, struct hk_arena *a, const char *path,
                          enum json_type type)
{
    struct hk_str key = hk_str(path);

    obj = need_parent(obj, a, &key);
    return need(obj, a, key, type);
}

struct json *json_set_at(struct json *obj, struct hk_arena *a, const char *path, struct json v)
{
    struct hk_str key = hk_str(path);

    obj = need_parent(obj, a, &key);
    return json_put(obj, a, key, v);
}

bool json_del(struct json *obj, const char *key)
{
    struct json_member *m = json_find_member(obj, hk_str(key));

    if (m == NULL) {
        return false;
    }
    const size_t after = (size_t)(obj->members + obj->len - (m + 1));
    memmove(m, m + 1, after * sizeof(*m));
    /* The freed slot at the end may be reused, in parsed objects too. */
    obj->cap = HK_MAX(obj->cap, obj->len);
    obj->len--;
    return true;
}

void json_hide(struct json *obj, struct hk_str key)
{
    struct json_member *m = json_find_member(obj, key);

    if (m) {
        m->value.type = DOOMED;
    }
}

void json_remove_hidden(struct json *obj)
{
    uint32_t n = 0;

    for (uint32_t i = 0; json_is(obj, JSON_OBJECT) && i < obj->len; i++) {
        if (obj->members[i].value.type != DOOMED) {
            obj->members[n++] = obj->members[i];
        }
    }
    if (json_is(obj, JSON_OBJECT)) {
        obj->cap = HK_MAX(obj->cap, obj->len);
        obj->len = n;
    }
}

const struct json *json_index(const struct json *obj, struct hk_arena *a)
{
    struct json *copy;

    if (!json_is(obj, JSON_OBJECT) || obj->len < INDEX_MIN || table_of(obj)) {
        return obj;
    }
    copy = hk_arena_alloc(a, sizeof(*copy));
    *copy = *obj;
    table_build(copy, a);
    return copy;
}

struct json json_shallow(const struct json *v, struct hk_arena *a)
{
    struct json copy = {.type = JSON_NULL};

    if (!v) {
        return copy;
    }
    copy = *v;
    if (v->type == JSON_ARRAY) {
        copy.items = json_grow_children(&copy, a, v->items, sizeof(*v->items));
    } else if (v->type == JSON_OBJECT) {
        copy.members = json_grow_children(&copy, a, v->members, sizeof(*v->members));
    }
    return copy;
}

static void clone_items(struct json *v, struct hk_arena *a)
{
    struct json *items = hk_arena_array(a, v->len, sizeof(*items));

    for (uint32_t i = 0; i < v->len; i++) {
        items[i] = json_clone(&v->items[i], a);
    }
    v->items = items;
}

static void clone_members(struct json *v, struct hk_arena *a)
{
    struct json_member *members = hk_arena_array(a, v->len, sizeof(*members));

    for (uint32_t i = 0; i < v->len; i++) {
        members[i].key = hk_arena_str(a, v->members[i].key);
        members[i].value = json_clone(&v->members[i].value, a);
    }
    v->members = members;
}

struct json json_clone(const struct json *v, struct hk_arena *a)
{
    struct json copy = {.type = JSON_NULL};

    if (!v) {
        return copy;
    }
    copy = *v;
    copy.cap = 0;
    if (v->type == JSON_STRING) {
        copy.s = hk_arena_strndup(a, v->s, v->len);
    } else if (v->type == JSON_ARRAY) {
        clone_items(&copy, a);
    } else if (v->type == JSON_OBJECT) {
        clone_members(&copy, a);
    }
    return copy;
}

struct json json_clone_as(const struct json *v, enum json_type type, struct hk_arena *a)
{
    return json_is(v, type) ? json_clone(v, a) : (struct json){.type = (uint8_t)type};
}
