// SPDX-License-Identifier: Apache-2.0
// The shapes of the built-in kinds: what fields each type has, by JSON name and by protobuf number,
// of which form, and how strategic merge patches treat them. The decoder of protobuf bodies, the
// patcher and checks for unknown fields all walk this one table.
#pragma once

#include "api/registry.h"

enum api_form {
    API_STRING,
    API_INT, /* 32 or 64 bits alike */
    API_BOOL,
    API_BYTES, /* base64 in JSON */
    API_QUANTITY,
    API_INT_OR_STRING,
    API_TIME,
    API_MICRO_TIME,
    API_RAW,     /* any JSON */
    API_STRINGS, /* a message that is a plain list of strings in JSON */
    API_OPAQUE,  /* an object whose fields we do not know */
    API_MESSAGE,
};

enum {
    API_LIST = 1 << 0,
    API_MAP = 1 << 1,     /* from strings */
    API_PTR = 1 << 2,     /* presence matters: a zero is not the same as nothing */
    API_KEEP = 1 << 3,    /* JSON shows it even when empty */
    API_INLINE = 1 << 4,  /* its fields belong to the enclosing object; it has no name */
    API_SET = 1 << 5,     /* patch: a list of plain values that unites instead of being replaced */
    API_REPLACE = 1 << 6, /* patch: an object that is replaced instead of merged */
};

struct api_type;

struct api_field {
    uint16_t number;
    uint8_t form, flags;
    const char *name;
    const struct api_type *type; /* of a message */
    const char *merge_key;       /* patch: elements of the list with equal keys merge; else NULL */
};

struct api_type {
    const char *name;
    const struct api_field *fields; /* by rising number */
    uint32_t nfields;
};

/* The type behind apiVersion and kind; NULL for custom resources and kinds without a table.
 * DeleteOptions are found under every version. */
const struct api_type *api_type_find(struct hk_str api_version, struct hk_str kind);
/* The same for a row of the registry; kinds without a table answer with a type that knows their
 * metadata alone, and so does NULL. */
const struct api_type *api_type_of(const struct api_kind *kind);
/* By protobuf number; NULL when unknown. */
const struct api_field *api_type_number(const struct api_type *t, uint32_t number);
/* By JSON name, inlined types included; NULL when unknown. */
const struct api_field *api_type_name(const struct api_type *t, struct hk_str name);
