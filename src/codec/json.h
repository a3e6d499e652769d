// SPDX-License-Identifier: Apache-2.0
// JSON: bytes to an arena tree and back. Strict: RFC 8259, UTF-8 checked, depth bounded. Strings
// without escapes point into the input, which must outlive the tree. The YAML reader builds the
// same tree, so everything above knows one form.
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

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
    uint32_t cap;  /* room in items or members; kept by json_put and json_push, else 0 */
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
    JSON_DUP_KEEP = 1 << 1,   /* duplicate keys stay side by side, for who wants to name them */
};

/* Parses exactly one value with nothing but blanks around it. Errors name line and column (in
 * bytes). On failure *ret is untouched; arena memory used so far stays with the arena. Beyond
 * RFC 8259, refused are escaped NULs, lone surrogates, numbers no double can hold, and more than
 * JSON_MAX_DEPTH containers inside one another. */
int json_parse(struct hk_str text, unsigned flags, struct hk_arena *a, struct json *ret,
               struct hk_err *err) HK_CHECKED;

/* Compact; keys in tree order. Doubles print as Go does it: the fewest digits that give the same
 * double, with an exponent only below 1e-6 and from 1e21 on. What JSON cannot say is mended: broken
 * UTF-8 becomes U+FFFD, infinities and NaN null. */
void json_write(const struct json *v, struct hk_buf *out);
/* One member or element per line, indented by so many blanks per level (kubectl -o json uses
 * four), and a newline at the end. */
void json_write_pretty(const struct json *v, unsigned indent, struct hk_buf *out);
/* A quoted, escaped JSON string. */
void json_write_str(struct hk_str s, struct hk_buf *out);

/* Looking around; all accept NULL and wrong types and answer NULL or the fallback. */
const struct json *json_get(const struct json *obj, const char *key);
const struct json *json_get_str(const struct json *obj, struct hk_str key);
/* Dotted path: json_at(v, "spec.template.spec"). Keys holding dots need json_get. */
const struct json *json_at(const struct json *v, const char *path);
const struct json *json_item(const struct json *arr, uint32_t i);
struct hk_str json_str(const struct json *v, struct hk_str fallback);
/* JSON_INT alone: 3.0 and what int64 cannot hold answer the fallback. */
int64_t json_int(const struct json *v, int64_t fallback);
bool json_bool(const struct json *v, bool fallback);
static inline bool json_is(const struct json *v, enum json_type type)
{
    return v && v->type == type;
}
/* As OpenAPI calls it: "integer", "boolean", ... */
const char *json_type_name(enum json_type type);
/* Numbers 1 and 1.0 differ in type but are equal; object order is ignored. */
bool json_equal(const struct json *a, const struct json *b);
/* The same for values that are equal, on every machine. */
uint64_t json_hash(const struct json *v);

/* Building. Containers grow in the arena; a value is copied shallowly. */
struct json json_make_str(struct hk_str s);
struct json json_make_int(int64_t i);
struct json json_make_double(double d);
struct json json_make_bool(bool b);
struct json json_make_object(void);
struct json json_make_array(void);
/* Sets or replaces; returns where the value lives until the next put. */
struct json *json_put(struct json *obj, struct hk_arena *a, struct hk_str key, struct json v);
struct json *json_push(struct json *arr, struct hk_arena *a, struct json v);
bool json_del(struct json *obj, const char *key);
/* A container of the same children: to put and push without changing the original. */
struct json json_shallow(const struct json *v, struct hk_arena *a);
/* Deep copy, strings included, into a. */
struct json json_clone(const struct json *v, struct hk_arena *a);
