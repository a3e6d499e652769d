// SPDX-License-Identifier: Apache-2.0
// Shared by the files of OpenAPI only: a document under construction, as a tree that is written at
// the end.
//
//   openapi.c          requests and the cache of documents
//   openapi_schema.c   schemas of the built-in types
//   openapi_custom.c   schemas of custom resources
//   openapi_paths.c    paths and operations
//   openapi_gnostic.c  version 2 as protobuf
#pragma once

#include "api/type.h"
#include "apiserver/openapi.h"

struct openapi_doc {
    struct hk_arena *mem;
    bool v2;             /* swagger 2.0, else OpenAPI 3.0 */
    struct json schemas; /* by name */
    struct json paths;
};

/* A kind in a document. */
struct openapi_kind {
    const struct api_kind *kind;
    const struct rest_kind *row; /* NULL: never stored */
};

/* {"$ref": ...} */
struct json openapi_ref(struct openapi_doc *d, struct hk_str name);
/* The same with a description. */
struct json openapi_described_ref(struct openapi_doc *d, struct hk_str name, const char *text);
struct json openapi_gvk(struct openapi_doc *d, struct hk_str group, struct hk_str version,
                        const char *kind);

/* The schema name of the kind: "io.k8s.api.core.v1.Pod", "sh.volcano.batch.v1alpha1.Job". */
struct hk_str openapi_name(struct openapi_doc *d, const struct openapi_kind *k);
/* Adds the type and all types it refers to; returns its name. */
struct hk_str openapi_add_type(struct openapi_doc *d, const struct api_type *t);
/* The same for named scalar types such as quantities; NULL for other forms. */
const char *openapi_add_scalar(struct openapi_doc *d, enum api_form form);
/* Adds apiVersion, kind and metadata. */
void openapi_put_heads(struct openapi_doc *d, struct json *props);
/* Adds the schema of the kind and of its list. */
void openapi_add_kind(struct openapi_doc *d, const struct openapi_kind *k);
/* The schema of a custom resource, from its definition. */
struct json openapi_custom(struct openapi_doc *d, const struct json *schema);
void openapi_add_paths(struct openapi_doc *d, const struct openapi_kind *k);

/* Writes a swagger document as gnostic's openapi.v2.Document. */
void openapi_gnostic_write(const struct json *swagger, struct hk_buf *out);
