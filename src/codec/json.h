// SPDX-License-Identifier: Apache-2.0
// JSON: bytes to an arena tree and back. Strict: RFC 8259, UTF-8 checked, depth bounded. Strings
// without escapes point into the input, which must outlive the tree. The YAML reader builds the
// same tree.
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "codec/quantity.h"

enum json_type {
    JSON_NULL,
    JSON_BOOL,
    JSON_INT,    /* fits int64 */
    JSON_UINT,   /* larger, fits uint64 */
    JSON_DOUBLE, /* fraction, exponent, or larger than uint64 */
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT,
};

struct json_member;

struct json {
    uint8_t type;
    uint32_t len;  /* bytes of a string; elements or members */
    uint32_t line; /* 1-based line in the input where the value begins; 0 when built by hand */
    uint32_t cap;  /* allocated items or members; set by json_put and json_push, else 0. The top
                    * bit says that an index stands before the members (json_index) */
    union {
        bool b;
        int64_t i;
        uint64_t u;
        double d;
        const char *s;
        struct json *items;
        struct json_member *members;
    };
};

struct json_member {
    struct hk_str key;
    struct json value;
};

enum {
    JSON_MAX_DEPTH = 200,
    JSON_DUP_REJECT = 1 << 0, /* duplicate keys are an error; otherwise the last wins */
    JSON_DUP_KEEP = 1 << 1,   /* keep all duplicate keys, for callers that report them */
};

/* Parses exactly one value, surrounded only by blanks. Errors name line and column (in bytes). On
 * failure *ret is untouched; arena memory used so far stays with the arena. Beyond RFC 8259,
 * refuses escaped NULs, lone surrogates, numbers that no double can hold, and more than
 * JSON_MAX_DEPTH nested containers. */
int json_parse(struct hk_str text, unsigned flags, struct hk_arena *a, struct json *ret,
               struct hk_err *err) HK_CHECKED;

/* Compact; keys in tree order. Doubles print as in Go: the fewest digits that give the same double,
 * with an exponent only below 1e-6 and from 1e21 on. Invalid UTF-8 becomes U+FFFD, infinities and
 * NaN become null. */
void json_write(const struct json *v, struct hk_buf *out);
/* One member or element per line, `indent` blanks per level (kubectl -o json uses four), and a
 * newline at the end. */
void json_write_pretty(const struct json *v, unsigned indent, struct hk_buf *out);
/* Writes a value nested `level` levels deep in text that the caller writes, without a newline at
 * the end. */
void json_write_pretty_at(const struct json *v, unsigned indent, unsigned level,
                          struct hk_buf *out);
/* A quoted, escaped JSON string. */
void json_write_str(struct hk_str s, struct hk_buf *out);

/* Reading. All accept NULL and wrong types and then return NULL or the fallback. */
const struct json *json_get(const struct json *obj, const char *key);
const struct json *json_get_str(const struct json *obj, struct hk_str key);
/* Dotted path: json_at(v, "spec.template.spec"). Keys holding dots need json_get. */
const struct json *json_at(const struct json *v, const char *path);
const struct json *json_item(const struct json *arr, uint32_t i);
struct hk_str json_str(const struct json *v, struct hk_str fallback);
/* Only JSON_INT: 3.0 and values beyond int64 give the fallback. */
int64_t json_int(const struct json *v, int64_t fallback);
bool json_bool(const struct json *v, bool fallback);
static inline bool json_is(const struct json *v, enum json_type type)
{
    return v && v->type == type;
}
static inline bool json_is_numeric(const struct json *v)
{
    return v && (v->type == JSON_INT || v->type == JSON_UINT || v->type == JSON_DOUBLE);
}
/* Elements of an array; 0 for every other value. */
static inline uint32_t json_len(const struct json *arr)
{
    return json_is(arr, JSON_ARRAY) ? arr->len : 0;
}
/* The string member of an object; "" when it is absent or of another type. */
static inline struct hk_str json_str_field(const struct json *obj, const char *key)
{
    return json_str(json_get_str(obj, hk_str(key)), HK_STR(""));
}
/* The same at the end of a dotted path: "", 0 or an empty array when there is none. */
struct hk_str json_str_at(const struct json *v, const char *path);
int64_t json_int_at(const struct json *v, const char *path);
const struct json *json_list_at(const struct json *v, const char *path);
/* As OpenAPI calls it: "integer", "boolean", ... */
const char *json_type_name(enum json_type type);
/* Numbers 1 and 1.0 differ in type but are equal; object order is ignored. */
bool json_equal(const struct json *a, const struct json *b);
/* Equal values have equal hashes, on every machine. */
uint64_t json_hash(const struct json *v);

/* Building. Containers grow in the arena; a value is copied shallowly: keys and strings are borrowed
 * and must live as long as the tree, except where a function copies them into the arena. */
struct json json_make_str(struct hk_str s);
struct json json_make_str_copy(struct hk_str s, struct hk_arena *a);
struct json json_make_int(int64_t i);
struct json json_make_double(double d);
struct json json_make_bool(bool b);
struct json json_make_object(void);
struct json json_make_array(void);
/* As metav1.Time and metav1.MicroTime write it: "2026-01-02T15:04:05Z", "...05.000000Z". */
struct json json_make_time(int64_t ns, struct hk_arena *a);
struct json json_make_micro_time(int64_t ns, struct hk_arena *a);
/* In canonical form, as Kubernetes prints it. */
struct json json_make_quantity(struct quantity q, struct hk_arena *a);

/* Sets or replaces; returns where the value lives until the next put. Large objects get an index
 * (see json_index). */
struct json *json_put(struct json *obj, struct hk_arena *a, struct hk_str key, struct json v);
struct json *json_push(struct json *arr, struct hk_arena *a, struct json v);
/* The member as a container of the type; replaces a missing member, null or another type by an
 * empty one. Valid until the next put into obj. */
struct json *json_need(struct json *obj, struct hk_arena *a, const char *key, enum json_type type);
/* The same at the end of a dotted path, through objects that are made where they are missing. */
struct json *json_need_at(struct json *obj, struct hk_arena *a, const char *path,
                          enum json_type type);

bool json_del(struct json *obj, const char *key);
/* json_put for keys that are C strings, and for values by their type. Inline, so that the length of
 * a literal is known to the compiler. */
static inline struct json *json_set(struct json *obj, struct hk_arena *a, const char *key,
                                    struct json v)
{
    return json_put(obj, a, hk_str(key), v);
}
static inline void json_set_str(struct json *obj, struct hk_arena *a, const char *key,
                                struct hk_str s)
{
    json_set(obj, a, key, json_make_str(s));
}
static inline void json_set_cstr(struct json *obj, struct hk_arena *a, const char *key,
                                 const char *s)
{
    json_set(obj, a, key, json_make_str(hk_str(s)));
}
static inline void json_set_str_copy(struct json *obj, struct hk_arena *a, const char *key,
                                     struct hk_str s)
{
    json_set(obj, a, key, json_make_str_copy(s, a));
}
static inline void json_set_int(struct json *obj, struct hk_arena *a, const char *key, int64_t i)
{
    json_set(obj, a, key, json_make_int(i));
}
static inline void json_set_bool(struct json *obj, struct hk_arena *a, const char *key, bool b)
{
    json_set(obj, a, key, json_make_bool(b));
}
static inline void json_set_time(struct json *obj, struct hk_arena *a, const char *key, int64_t ns)
{
    json_set(obj, a, key, json_make_time(ns, a));
}
static inline void json_set_quantity(struct json *obj, struct hk_arena *a, const char *key,
                                     struct quantity q)
{
    json_set(obj, a, key, json_make_quantity(q, a));
}
/* As omitempty in Go: 0, "" and empty containers are not written, and remove an old member. */
static inline void json_set_int_or_del(struct json *obj, struct hk_arena *a, const char *key,
                                       int64_t i)
{
    if (i != 0) {
        json_set_int(obj, a, key, i);
    } else {
        json_del(obj, key);
    }
}
static inline void json_set_str_or_del(struct json *obj, struct hk_arena *a, const char *key,
                                       struct hk_str s)
{
    if (s.n > 0) {
        json_set_str(obj, a, key, s);
    } else {
        json_del(obj, key);
    }
}
static inline void json_set_or_del(struct json *obj, struct hk_arena *a, const char *key,
                                   struct json container)
{
    if (container.len > 0) {
        json_set(obj, a, key, container);
    } else {
        json_del(obj, key);
    }
}
/* Changes nothing if v is NULL. */
static inline void json_set_if(struct json *obj, struct hk_arena *a, const char *key,
                               const struct json *v)
{
    if (v) {
        json_set(obj, a, key, *v);
    }
}
/* Sets the member to an empty container; valid until the next put into obj. */
static inline struct json *json_set_object(struct json *obj, struct hk_arena *a, const char *key)
{
    return json_set(obj, a, key, json_make_object());
}
static inline struct json *json_set_array(struct json *obj, struct hk_arena *a, const char *key)
{
    return json_set(obj, a, key, json_make_array());
}
/* At the end of a dotted path, as json_need_at finds it. */
struct json *json_set_at(struct json *obj, struct hk_arena *a, const char *path, struct json v);

/* For the removal of many members of one object: json_hide hides a member from every look-up, and
 * json_remove_hidden removes all hidden ones in one pass. Between the two the object may be read
 * and changed by key only. */
void json_hide(struct json *obj, struct hk_str key);
void json_remove_hidden(struct json *obj);
/* The same object for many look-ups by key: a large one becomes a shallow copy with an index, since
 * a look-up in it would otherwise compare with every member. NULL stays NULL. */
const struct json *json_index(const struct json *obj, struct hk_arena *a);
/* Copies the container but not its children, so that put and push do not change the original. NULL
 * gives the JSON value null. */
struct json json_shallow(const struct json *v, struct hk_arena *a);
/* Deep copy, strings included, into a. NULL gives the JSON value null. */
struct json json_clone(const struct json *v, struct hk_arena *a);
/* The same, but gives an empty value of the wanted type if v is absent, null or of another type.
 * Use it before json_put, json_push or access to members. */
struct json json_clone_as(const struct json *v, enum json_type type, struct hk_arena *a);
