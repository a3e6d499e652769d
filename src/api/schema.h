// SPDX-License-Identifier: Apache-2.0
// Structural schemas of custom resources: prune unknown fields, set defaults, validate values. A
// schema is compiled once per version of a definition and is then read-only.
#pragma once

#include "codec/json.h"

struct schema;

/* Compiles a copy of an openAPIV3Schema. Refuses non-structural schemas: missing types, references,
 * patterns we cannot compile, nesting beyond 100 levels. Accepts rules that do not compile; see
 * schema_check_rules. */
int schema_new(const struct json *doc, struct schema **ret, struct hk_err *err) HK_CHECKED;
/* Takes NULL. */
void schema_free(struct schema *s);

/* Receives findings, 100 at most. Strings live in the arena of the call. */
struct schema_sink {
    void *ctx;
    /* reason "FieldValueInvalid" and the like, field "spec.tasks[0].name", message without it. */
    void (*error)(void *ctx, const char *reason, const char *field, const char *message);
    /* A field that was removed. */
    void (*unknown)(void *ctx, const char *path);
};

/* Removes fields unknown to the schema. At the root and in embedded resources apiVersion, kind and
 * the fields of metadata stay. sink may be NULL. */
void schema_prune(const struct schema *s, struct json *obj, struct hk_arena *a,
                  const struct schema_sink *sink);
/* Sets defaults, and removes nulls where they are not allowed. */
void schema_default(const struct schema *s, struct json *obj, struct hk_arena *a);
/* Checks types, bounds, patterns, list types and, unless a value has no sensible type, the rules of
 * x-kubernetes-validations. old is the object before an update, else NULL. Returns whether obj is
 * valid. A rule that does not compile holds for no object. */
bool schema_validate(const struct schema *s, const struct json *obj, const struct json *old,
                     struct hk_arena *a, const struct schema_sink *sink);
/* Reports what Kubernetes refuses in the rules of a definition: above all rules that do not compile.
 * Fields are relative to the schema: "properties[spec].x-kubernetes-validations[0].rule". */
void schema_check_rules(const struct schema *s, struct hk_arena *a, const struct schema_sink *sink);
/* Reports defaults that the schema itself refuses: "properties[spec].default". */
void schema_check_defaults(const struct schema *s, struct hk_arena *a,
                           const struct schema_sink *sink);
