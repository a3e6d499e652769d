// SPDX-License-Identifier: Apache-2.0
// Structural schemas of custom resources: unknown fields fall out, defaults come in, values are
// checked. A schema is compiled once per version of a definition and then only read.
#pragma once

#include "codec/json.h"

struct schema;

/* Compiles an openAPIV3Schema, which is copied. Refuses what is not structural: missing types,
 * references, patterns we cannot compile, nesting beyond 100 levels. Of x-kubernetes-validations
 * only the rules in schema_check.c are known; others are accepted and hold always. */
int schema_new(const struct json *doc, struct schema **ret, struct hk_err *err) HK_CHECKED;
/* Whether a rule of x-kubernetes-validations is enforced. */
bool schema_knows_rule(struct hk_str text);
/* Takes NULL. */
void schema_free(struct schema *s);

/* Where findings go. Strings live in the arena of the call; after 100 findings the rest is left
 * unsaid. */
struct schema_sink {
    void *ctx;
    /* reason "FieldValueInvalid" and the like, field "spec.tasks[0].name", message without it. */
    void (*error)(void *ctx, const char *reason, const char *field, const char *message);
    /* A field that was removed. */
    void (*unknown)(void *ctx, const char *path);
};

/* Removes what the schema does not know. At the root and in embedded resources apiVersion, kind and
 * the fields of metadata stay. sink may be NULL. */
void schema_prune(const struct schema *s, struct json *obj, struct hk_arena *a,
                  const struct schema_sink *sink);
/* Fills in defaults, and drops nulls where none are allowed. */
void schema_default(const struct schema *s, struct json *obj, struct hk_arena *a);
/* Types, bounds, patterns, list types and rules. Returns whether all is well. */
bool schema_validate(const struct schema *s, const struct json *obj, struct hk_arena *a,
                     const struct schema_sink *sink);
