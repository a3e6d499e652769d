// SPDX-License-Identifier: Apache-2.0
// Values: made by hand, as a view of JSON, and turned back into JSON.
#include "cel/cel_priv.h"
#include "codec/base64.h"

#include <math.h>

enum { JSON_VALUES_MAX = 1000000, JSON_DEPTH_MAX = JSON_MAX_DEPTH / 2 };

struct cel_value cel_null(void)
{
    return (struct cel_value){.kind = CEL_NULL};
}

struct cel_value cel_of_bool(bool b)
{
    return (struct cel_value){.kind = CEL_BOOL, .b = b};
}

struct cel_value cel_of_int(int64_t i)
{
    return (struct cel_value){.kind = CEL_INT, .i = i};
}

struct cel_value cel_of_uint(uint64_t u)
{
    return (struct cel_value){.kind = CEL_UINT, .u = u};
}

struct cel_value cel_of_double(double d)
{
    return (struct cel_value){.kind = CEL_DOUBLE, .d = d};
}

struct cel_value cel_of_str(struct hk_str s)
{
    return (struct cel_value){.kind = CEL_STRING, .s = s};
}

struct cel_value cel_of_bytes(struct hk_str s)
{
    return (struct cel_value){.kind = CEL_BYTES, .s = s};
}

struct cel_value cel_of_kind(enum cel_kind kind)
{
    return (struct cel_value){.kind = CEL_TYPE, .i = kind};
}

struct cel_value cel_of_duration(int64_t ns)
{
    return (struct cel_value){.kind = CEL_DURATION, .i = ns};
}

struct cel_value cel_of_native(const struct cel_native *native)
{
    return (struct cel_value){.kind = CEL_NATIVE, .native = native};
}

struct cel_value cel_none(void)
{
    return (struct cel_value){.kind = CEL_OPTIONAL};
}

struct cel_value cel_some(struct cel_value v, struct hk_arena *a)
{
    struct cel_value *inner = hk_arena_alloc(a, sizeof(*inner));

    *inner = v;
    return (struct cel_value){.kind = CEL_OPTIONAL, .inner = inner};
}

struct cel_value cel_of_list(const struct cel_value *items, uint32_t len, struct hk_arena *a)
{
    struct cel_list *l = hk_arena_zalloc(a, sizeof(*l));

    l->items = items;
    l->len = len;
    return (struct cel_value){.kind = CEL_LIST, .list = l};
}

struct cel_value cel_of_map(const struct cel_entry *entries, uint32_t len, struct hk_arena *a)
{
    struct cel_map *m = hk_arena_zalloc(a, sizeof(*m));

    m->entries = entries;
    m->len = len;
    return (struct cel_value){.kind = CEL_MAP, .map = m};
}

struct cel_value cel_of_struct(struct hk_str name, const struct cel_entry *fields, uint32_t len,
                               struct hk_arena *a)
{
    struct cel_map *m = hk_arena_zalloc(a, sizeof(*m));

    m->entries = fields;
    m->len = len;
    m->name = name;
    return (struct cel_value){.kind = CEL_MAP, .map = m};
}

uint32_t cel_value_len(struct cel_value v)
{
    return v.kind == CEL_LIST ? v.list->len : v.kind == CEL_MAP ? v.map->len : 0;
}

/* ---- views of JSON ---- */

static struct cel_value list_of_json(const struct json *v, const struct cel_type *t,
                                     struct hk_arena *a)
{
    struct cel_list *l = hk_arena_zalloc(a, sizeof(*l));

    l->json = v;
    l->len = v->len;
    l->type = t;
    return (struct cel_value){.kind = CEL_LIST, .list = l};
}

static struct cel_value map_of_json(const struct json *v, const struct cel_type *t,
                                    struct hk_arena *a)
{
    struct cel_map *m = hk_arena_zalloc(a, sizeof(*m));

    m->json = v;
    m->len = v->len;
    m->type = t;
    return (struct cel_value){.kind = CEL_MAP, .map = m};
}

/* Strings that stand for something else: the formats of schemas. */
static bool value_of_text(struct hk_str s, const struct cel_type *t, struct hk_arena *a,
                          struct cel_value *ret)
{
    HK_AUTO(hk_buf_fini) struct hk_buf bytes = {0};

    switch (t->kind) {
    case CEL_TIMESTAMP:
        *ret = (struct cel_value){.kind = CEL_TIMESTAMP};
        return t->date ? cel_date_parse(s, &ret->t) : cel_time_parse(s, &ret->t) == 0;
    case CEL_DURATION:
        *ret = (struct cel_value){.kind = CEL_DURATION};
        return cel_duration_parse(s, &ret->i);
    case CEL_BYTES:
        if (!base64_read(s, &bytes)) {
            return false;
        }
        *ret = cel_of_bytes(hk_arena_str(a, hk_buf_str(&bytes)));
        return true;
    default:
        return false;
    }
}

static struct cel_value value_of_double(double d, enum cel_kind wanted)
{
    const bool whole = d == floor(d) && fabs(d) < 0x1p63;

    return wanted == CEL_INT && whole ? cel_of_int((int64_t)d) : cel_of_double(d);
}

struct cel_value cel_of_json(const struct json *v, const struct cel_type *type, struct hk_arena *a)
{
    const struct cel_type *t = type ? type : cel_type_of(CEL_DYN);
    struct cel_value text;

    switch (v ? v->type : JSON_NULL) {
    case JSON_BOOL:
        return cel_of_bool(v->b);
    case JSON_INT:
        return t->kind == CEL_DOUBLE ? cel_of_double((double)v->i) : cel_of_int(v->i);
    case JSON_UINT:
        return t->kind == CEL_DOUBLE ? cel_of_double((double)v->u) : cel_of_uint(v->u);
    case JSON_DOUBLE:
        return value_of_double(v->d, t->kind);
    case JSON_STRING:
        return value_of_text((struct hk_str){v->s, v->len}, t, a, &text)
                   ? text
                   : cel_of_str((struct hk_str){v->s, v->len});
    case JSON_ARRAY:
        return list_of_json(v, t->kind == CEL_LIST ? t : NULL, a);
    case JSON_OBJECT:
        return map_of_json(v, t->kind == CEL_MAP || t->kind == CEL_OBJECT ? t : NULL, a);
    default:
        return cel_null();
    }
}

struct cel_value cel_list_at(const struct cel_list *l, uint32_t i, struct hk_arena *a)
{
    return l->json ? cel_of_json(&l->json->items[i], l->type ? l->type->elem : NULL, a)
                   : l->items[i];
}

struct cel_entry cel_map_at(const struct cel_map *m, uint32_t i, struct hk_arena *a)
{
    if (!m->json) {
        return m->entries[i];
    }
    const struct json_member *member = &m->json->members[i];
    const struct cel_type *type = m->type ? m->type->elem : NULL;
    struct hk_str key = member->key;
    if (m->type && m->type->kind == CEL_OBJECT) {
        const struct cel_field *field = type_field_of_key(m->type, key);
        type = field ? field->type : NULL;
        key = field ? field->name : key;
    }
    return (struct cel_entry){cel_of_str(key), cel_of_json(&member->value, type, a)};
}

/* ---- to JSON ---- */

struct json_maker {
    struct hk_arena *a;
    struct hk_err *err;
    uint32_t left;
    uint32_t depth;
};

static int json_make(struct json_maker *m, struct cel_value v, struct json *ret);

static int json_make_list(struct json_maker *m, const struct cel_list *l, struct json *ret)
{
    *ret = json_make_array();
    for (uint32_t i = 0; i < l->len; i++) {
        struct json item = {0};
        const int rc = json_make(m, cel_list_at(l, i, m->a), &item);
        if (rc < 0) {
            return rc;
        }
        json_push(ret, m->a, item);
    }
    return 0;
}

/* Keys of JSON are strings: others are printed. */
static int json_make_key(struct json_maker *m, struct cel_value v, struct hk_str *ret)
{
    switch (v.kind) {
    case CEL_STRING:
        *ret = v.s;
        return 0;
    case CEL_BOOL:
        *ret = hk_str(v.b ? "true" : "false");
        return 0;
    case CEL_INT:
        *ret = hk_str(hk_arena_printf(m->a, "%lld", (long long)v.i));
        return 0;
    case CEL_UINT:
        *ret = hk_str(hk_arena_printf(m->a, "%llu", (unsigned long long)v.u));
        return 0;
    default:
        return hk_fail(m->err, HK_EINVAL, "no JSON key can be made of a value of type %s",
                       type_kind_name(v.kind));
    }
}

static int json_make_map(struct json_maker *m, const struct cel_map *map, struct json *ret)
{
    *ret = json_make_object();
    for (uint32_t i = 0; i < map->len; i++) {
        const struct cel_entry e = cel_map_at(map, i, m->a);
        struct hk_str key = HK_STR("");
        struct json item = {0};
        int rc = json_make_key(m, e.key, &key);
        if (rc == 0) {
            rc = json_make(m, e.value, &item);
        }
        if (rc < 0) {
            return rc;
        }
        json_put(ret, m->a, map->json ? map->json->members[i].key : key, item);
    }
    return 0;
}

/* Values that JSON has as text. */
static int json_make_text(struct json_maker *m, struct cel_value v, struct json *ret)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    switch (v.kind) {
    case CEL_BYTES:
        base64_write(v.s, &text);
        break;
    case CEL_TIMESTAMP:
        cel_time_write(v.t, &text);
        break;
    case CEL_DURATION:
        cel_duration_write(v.i, &text);
        break;
    case CEL_QUANTITY:
        quantity_write(*v.q, &text);
        break;
    case CEL_IP:
    case CEL_CIDR:
        cel_net_write(v.net, &text);
        break;
    case CEL_URL:
        url_write(v.url, &text);
        break;
    case CEL_TYPE:
        hk_buf_adds(&text, type_kind_name((enum cel_kind)v.i));
        break;
    default:
        return hk_fail(m->err, HK_EINVAL, "no JSON can be made of a value of type %s",
                       type_kind_name(v.kind));
    }
    *ret = json_make_str_copy(hk_buf_str(&text), m->a);
    return 0;
}

static int json_make_one(struct json_maker *m, struct cel_value v, struct json *ret)
{
    if (m->left-- == 0) {
        m->left = 0;
        return hk_fail(m->err, HK_ELIMIT, "more than %d values", JSON_VALUES_MAX);
    }
    switch (v.kind) {
    case CEL_NULL:
        *ret = (struct json){.type = JSON_NULL};
        return 0;
    case CEL_BOOL:
        *ret = json_make_bool(v.b);
        return 0;
    case CEL_INT:
        *ret = json_make_int(v.i);
        return 0;
    case CEL_UINT:
        *ret = v.u <= INT64_MAX ? json_make_int((int64_t)v.u)
                                : (struct json){.type = JSON_UINT, .u = v.u};
        return 0;
    case CEL_DOUBLE:
        *ret = json_make_double(v.d);
        return 0;
    case CEL_STRING:
        *ret = json_make_str(v.s);
        return 0;
    case CEL_LIST:
        return json_make_list(m, v.list, ret);
    case CEL_MAP:
        return json_make_map(m, v.map, ret);
    case CEL_OPTIONAL:
        return json_make(m, v.inner ? *v.inner : cel_null(), ret);
    default:
        return json_make_text(m, v, ret);
    }
}

static int json_make(struct json_maker *m, struct cel_value v, struct json *ret)
{
    if (++m->depth > JSON_DEPTH_MAX) {
        return hk_fail(m->err, HK_ELIMIT, "nested more than %d levels deep", JSON_DEPTH_MAX);
    }
    const int rc = json_make_one(m, v, ret);
    m->depth--;
    return rc;
}

int cel_to_json(struct cel_value v, struct hk_arena *a, struct json *ret, struct hk_err *err)
{
    struct json_maker m = {.a = a, .err = err, .left = JSON_VALUES_MAX};

    return json_make(&m, v, ret);
}
