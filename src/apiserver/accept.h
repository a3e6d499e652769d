// SPDX-License-Identifier: Apache-2.0
// Content negotiation: the form of answer that an Accept header asks for.
#pragma once

#include "base/err.h"
#include "base/str.h"

enum form {
    FORM_OBJECT,
    FORM_TABLE,
    FORM_METADATA, /* PartialObjectMetadata */
};

/* The requested form of answer. */
struct accept {
    enum form form;
    bool yaml;
    bool protobuf;
    bool pretty;
    bool list;           /* FORM_METADATA: asked for as PartialObjectMetadataList */
    const char *include; /* FORM_TABLE: includeObject */
    const char *version; /* of meta.k8s.io, "v1" or "v1beta1"; NULL for FORM_OBJECT */
};

/* Which forms exist in protobuf; tables never do. */
enum accept_proto {
    ACCEPT_NO_PROTO,
    ACCEPT_PROTO_METADATA, /* only the metadata of objects */
    ACCEPT_PROTO,
};

/* Fails when the requested media type cannot be produced: 406. */
int accept_parse(struct hk_str header, enum accept_proto proto, struct accept *ret) HK_CHECKED;
