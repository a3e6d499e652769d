// SPDX-License-Identifier: Apache-2.0
// The types of the built-in kinds: their fields by JSON name and protobuf number, their forms, and
// how strategic merge patches treat them. The protobuf decoder, the patcher, checks for unknown
// fields and OpenAPI all use this one table.
#pragma once

#include "api/registry.h"

enum api_form {
    API_STRING,
    API_INT, /* 32 or 64 bits */
    API_BOOL,
    API_BYTES, /* base64 in JSON */
    API_QUANTITY,
    API_INT_OR_STRING,
    API_TIME,
    API_MICRO_TIME,
    API_RAW,     /* any JSON */
    API_STRINGS, /* a message that is a plain list of strings in JSON */
    API_MESSAGE,
};

enum {
    API_LIST = 1 << 0,
    API_MAP = 1 << 1,         /* from strings */
    API_PTR = 1 << 2,         /* presence matters: zero differs from absent */
    API_KEEP = 1 << 3,        /* JSON shows it even when empty; true for every struct in Go */
    API_INLINE = 1 << 4,      /* its fields belong to the enclosing object; it has no name */
    API_SET = 1 << 5,         /* patch: merge a list of values instead of replacing it */
    API_REPLACE = 1 << 6,     /* patch: replace the object instead of merging */
    API_RETAIN = 1 << 7,      /* patch: "$retainKeys" names the keys to keep */
    API_LONG = 1 << 8,        /* an integer of 64 bits */
    API_REQUIRED = 1 << 9,    /* in manifests */
    API_APPLY_ONLY = 1 << 10, /* server-side apply merges the list; a strategic patch replaces it */
};

struct api_type;

struct api_field {
    uint16_t number, flags;
    uint8_t form;
    const char *name;
    const struct api_type *type; /* of a message */
    const char *merge_key;       /* list elements with equal keys merge; or NULL */
};

struct api_type {
    const char *name;
    const char *package;            /* "io.k8s.api.core.v1" */
    const char *const *about;       /* description; then field names and descriptions, NULL last */
    const struct api_field *fields; /* by rising number */
    uint32_t nfields;
};

/* The type of apiVersion and kind; NULL for custom resources and kinds without a table.
 * DeleteOptions match in every version. */
const struct api_type *api_type_find(struct hk_str api_version, struct hk_str kind);
/* The same for a row of the registry; kinds without a table, and NULL, give a type that has only
 * metadata. */
const struct api_type *api_type_of(const struct api_kind *kind);
/* Kinds that have a type, by index; NULL past the last. */
struct api_root {
    const char *version, *kind; /* version as in manifests */
    const struct api_type *type;
};
const struct api_root *api_root(size_t i);
/* The kind of the type, NULL when it is only part of other types. */
const struct api_root *api_root_of(const struct api_type *t);
enum { API_FILL_MAX = 100000 };
/* Adds the fields that Go always writes and the object lacks, to any depth: empty structs, and null
 * or zero values of fields that JSON shows even when empty. apiVersion and kind are not added.
 * Returns false, with some left out, if there are more than API_FILL_MAX. */
bool api_type_fill(const struct api_type *t, struct hk_arena *a, struct json *obj);
/* The type that has only metadata. */
const struct api_type *api_type_plain(void);
/* The types of "metadata", in objects and in lists. */
const struct api_type *api_type_object_meta(void);
const struct api_type *api_type_list_meta(void);
/* Description of a field: of the type, else of any type; t may be NULL. NULL when there is none. */
const char *api_field_about(const struct api_type *t, const char *name);
/* Description of a kind without a type. */
const char *api_kind_about(const char *kind);
/* By protobuf number; NULL when unknown. */
const struct api_field *api_type_number(const struct api_type *t, uint32_t number);
/* Whether a strategic patch merges the list instead of replacing it. */
bool api_field_patch_merges(const struct api_field *f);
/* By JSON name, inlined types included; NULL when unknown. */
const struct api_field *api_type_name(const struct api_type *t, struct hk_str name);
