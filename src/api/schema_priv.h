// SPDX-License-Identifier: Apache-2.0
// Compiled schemas.
#pragma once

#include "api/schema.h"
#include "base/vec.h"

enum schema_type {
    SCHEMA_ANY,
    SCHEMA_OBJECT,
    SCHEMA_ARRAY,
    SCHEMA_STRING,
    SCHEMA_INTEGER,
    SCHEMA_NUMBER,
    SCHEMA_BOOLEAN,
    SCHEMA_INT_OR_STRING,
};

enum schema_list { SCHEMA_ATOMIC, SCHEMA_SET, SCHEMA_MAP };

struct schema_prop {
    struct hk_str key;
    struct schema_node *node;
};

struct schema_nodes {
    struct schema_node **at;
    uint32_t len;
};

struct schema_node {
    enum schema_type type;
    bool nullable;
    bool preserve; /* keep unknown fields */
    bool embedded; /* has its own apiVersion, kind and metadata */
    bool exclusive_min, exclusive_max;
    bool free_form; /* additionalProperties: true */
    enum schema_list list;

    struct schema_prop *props;
    uint32_t nprops;
    struct schema_node *additional, *items; /* may be NULL */
    struct schema_nodes all_of, any_of, one_of;
    struct schema_nodes not_of; /* one at most */

    /* The keywords' values, NULL when not given. */
    const struct json *required, *enumeration, *preset;
    const struct json *min, *max, *multiple_of;
    const struct json *min_length, *max_length, *min_items, *max_items, *min_props, *max_props;
    const struct json *keys;      /* of a SCHEMA_MAP list */
    const struct json *rule_docs; /* x-kubernetes-validations */
    struct hk_str format, pattern;
    struct re2 *re; /* of pattern */

    /* Of schema_rule.c; not for nodes inside of allOf and the like. */
    const struct cel_type *cel; /* NULL: expressions do not see the value */
    struct schema_rule *rules;
    uint32_t nrules;
    bool has_rules; /* here or below */
};

struct schema {
    struct hk_arena arena;
    struct schema_node *root;
    HK_VEC(struct re2 *) patterns;
};

/* A place in the object, as a chain up the call stack. */
struct schema_path {
    const struct schema_path *up; /* NULL: the root, which has no key */
    struct hk_str key;            /* .s NULL: an array element */
    uint32_t index;
};

/* "spec.tasks[0].name" */
char *schema_path_text(const struct schema_path *p, struct hk_arena *a);
const struct schema_node *schema_prop_find(const struct schema_node *n, struct hk_str key);

enum { SCHEMA_MAX_FINDINGS = 100 };
