// SPDX-License-Identifier: Apache-2.0
// Table-driven decoding: a record says which JSON fields fill which struct members, and how. After
// the first failure the reader ignores all further calls, so decoders are plain lists of fields.
// Paths are chains of stack frames and become text only on failure.
#pragma once

#include "api/meta.h"

struct field_reader {
    struct hk_arena *a;
    struct hk_err *err;
    int rc; /* of the first failure, or 0 */
};

/* One step of a path: a known key, an array index, or a key from the input. */
struct field_path {
    const struct field_path *up;
    const char *key;
    struct hk_str map_key; /* when key is NULL */
    int64_t index;         /* when both are unset */
};

struct field;

/* Reads v, which is present and not null, into the member f names of the struct at base. */
typedef void field_read(struct field_reader *r, const struct field_path *p, const struct json *v,
                        const struct field *f, void *base);

struct field {
    const char *key;
    field_read *read;
    size_t off;
    const void *sub; /* a record, or the names of an enum */
    int64_t min, max;
    bool required;
};

struct field_record {
    size_t size;
    const void *init;           /* defaults of a list element; NULL is all zero */
    const struct field *fields; /* ended by one without key */
    /* Checks a record after all its fields were read. */
    void (*check)(struct field_reader *r, const struct field_path *p, const struct json *v,
                  void *base);
};

field_read field_str, field_bool, field_i32, field_i64, field_time, field_duration, field_quantity;
field_read field_strs, field_map, field_resources, field_conditions;
/* Sets a bool to true when the field is present; used in addition to the field's own reader. */
field_read field_present;
/* The index of the text in the NULL-ended array sub; "" keeps the default. The lax form uses min
 * for unknown texts instead of failing. */
field_read field_enum, field_enum_lax;
/* A record in its own member; at the same base; an array of records. */
field_read field_object, field_in, field_list;

#define FIELD(name, reader, type, member, ...)                                                     \
    {                                                                                              \
        .key = (name), .read = (reader), .off = offsetof(type, member), ##__VA_ARGS__              \
    }
/* Fields of an inner object that belong to the same struct. */
#define FIELD_IN(name, record)                                                                     \
    {                                                                                              \
        .key = (name), .read = field_in, .sub = (record)                                           \
    }
/* A bounded integer. */
#define FIELD_I32(name, type, member, lo, hi)                                                      \
    FIELD(name, field_i32, type, member, .min = (lo), .max = (hi))
#define FIELD_COUNT(name, type, member) FIELD_I32(name, type, member, 0, INT32_MAX)
#define FIELD_META(type)                                                                           \
    {                                                                                              \
        .key = "metadata", .read = field_object, .off = offsetof(type, meta),                      \
        .sub = &field_meta_record                                                                  \
    }

extern const struct field_record field_meta_record;

/* Sets "line 3: spec.nodeName: " and the text; keeps only the first failure. */
void field_fail(struct field_reader *r, const struct field_path *p, const struct json *v,
                const char *fmt, ...) HK_PRINTF(4, 5);
bool field_want(struct field_reader *r, const struct field_path *p, const struct json *v,
                enum json_type type);
/* Reads the fields of one object. */
void field_record(struct field_reader *r, const struct field_path *p, const struct json *v,
                  const struct field_record *rec, void *base);
/* Reads an array into the API_LIST at list. */
void field_records(struct field_reader *r, const struct field_path *p, const struct json *v,
                   const struct field_record *rec, void *list);

/* Decodes a whole document over the defaults in tmp; copies tmp to ret on success. */
int field_decode(const struct json *doc, const struct field_record *rec, struct hk_arena *a,
                 void *tmp, void *ret, struct hk_err *err);

int field_kv_cmp(const void *a, const void *b);
int field_str_cmp(const void *a, const void *b);
