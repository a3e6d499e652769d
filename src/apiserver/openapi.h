// SPDX-License-Identifier: Apache-2.0
// OpenAPI documents of all kinds, for kubectl explain, client-side validation and code generators.
// Version 2 is one document, as JSON or protobuf; version 3 has one per group version, and an index
// of their hashes.
#pragma once

#include "store/rest.h"

struct openapi;

struct openapi *openapi_new(struct rest *r);
/* Takes NULL. */
void openapi_free(struct openapi *o);

struct openapi_query {
    struct hk_str path;
    struct hk_str accept;
    struct hk_str hash; /* from the query; "" without */
    struct hk_str if_none_match;
};

enum { OPENAPI_TAG_SIZE = 33 };

struct openapi_reply {
    int code; /* 200, 301 or 304 */
    const char *type;
    struct hk_str body;         /* valid until the next call */
    char tag[OPENAPI_TAG_SIZE]; /* hash of the content, without quotes */
    bool immutable;             /* requested by its hash: never changes */
};

/* Answers /openapi/v2, /openapi/v3 and the documents the latter lists; false for other paths. 301
 * redirects a client with an old hash to the same path with the hash in tag. */
bool openapi_answer(struct openapi *o, const struct openapi_query *q, struct openapi_reply *ret);
