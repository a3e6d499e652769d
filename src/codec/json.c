// SPDX-License-Identifier: Apache-2.0
// The JSON tree: looking around in it, comparing, building and copying. Reading and writing text
// are json_read.c and json_write.c.

#include "codec/json.h"

/* Objects up to this size are compared member by member, larger ones after sorting. */
#define EQUAL_LINEAR 32

/* ---- looking around ---- */

static struct json_member *find(const struct json *obj, struct hk_str key)
{
    if (!json_is(obj, JSON_OBJECT)) {
        return NULL;
    }
    for (uint32_t i = 0; i < obj->len; i++) {
        if (hk_str_eq(obj->members[i].key, key)) {
            return &obj->members[i];
        }
    }
    return NULL;
}

const struct json *json_get_str(const struct json *obj, struct hk_str key)
{
    const struct json_member *m = find(obj, key);

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

static bool is_number(const struct json *v)
{
    return v->type == JSON_INT || v->type == JSON_UINT || v->type == JSON_DOUBLE;
}

/* An integer as sign and magnitude; false for a double that is none or is out of range. */
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

/* Converting both to double would call 2^63 and 2^63 - 1 equal. */
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

static struct json_member *sorted(const struct json *obj)
{
    struct json_member *out = hk_zalloc_array(obj->len, sizeof(*out));

    memcpy(out, obj->members, obj->len * sizeof(*out));
    qsort(out, obj->len, sizeof(*out), by_key);
    return out;
}

static bool large_object_equal(const struct json *a, const struct json *b)
{
    HK_AUTO(hk_freep) struct json_member *sa = sorted(a);
    HK_AUTO(hk_freep) struct json_member *sb = sorted(b);

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
    if (is_number(a) && is_number(b)) {
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

    return d == 0 ? JSON_INT : hk_hash(&d, sizeof(d), JSON_INT); /* there are two zeros */
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
    case JSON_OBJECT: /* a sum, since their order means nothing */
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

/* Room for one more child, where old holds v->len of them. */
static void *grow(struct json *v, struct hk_arena *a, const void *old, size_t size)
{
    hk_assert(v->len < UINT32_MAX / 2);
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
    struct json_member *m = find(obj, key);
    if (m == NULL) {
        if (obj->len >= obj->cap) {
            obj->members = grow(obj, a, obj->members, sizeof(*obj->members));
        }
        m = &obj->members[obj->len++];
        m->key = key;
    }
    m->value = v;
    return &m->value;
}

struct json *json_push(struct json *arr, struct hk_arena *a, struct json v)
{
    hk_assert(arr->type == JSON_ARRAY);
    if (arr->len >= arr->cap) {
        arr->items = grow(arr, a, arr->items, sizeof(*arr->items));
    }
    arr->items[arr->len] = v;
    return &arr->items[arr->len++];
}

bool json_del(struct json *obj, const char *key)
{
    struct json_member *m = find(obj, hk_str(key));

    if (m == NULL) {
        return false;
    }
    const size_t after = (size_t)(obj->members + obj->len - (m + 1));
    memmove(m, m + 1, after * sizeof(*m));
    /* The freed place is at the end and may be used again, parsed objects included. */
    obj->cap = HK_MAX(obj->cap, obj->len);
    obj->len--;
    return true;
}

struct json json_shallow(const struct json *v, struct hk_arena *a)
{
    struct json copy = *v;

    if (v->type == JSON_ARRAY) {
        copy.items = grow(&copy, a, v->items, sizeof(*v->items));
    } else if (v->type == JSON_OBJECT) {
        copy.members = grow(&copy, a, v->members, sizeof(*v->members));
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
    struct json copy = *v;

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
