// SPDX-License-Identifier: Apache-2.0
// Encodes JSON trees as application/vnd.kubernetes.protobuf, as Go does: every field that is not a
// pointer, a list or a map is written, zero or not, in the order of numbers. What the table of types
// does not know is left out.
#pragma once

#include "api/type.h"
#include "base/str.h"
#include "codec/json.h"

/* The type of Status. */
extern const struct api_type api_type_status;

/* Appends the object alone, without envelope, apiVersion and kind. */
void api_proto_write(const struct api_type *t, const struct json *obj, struct hk_buf *out);
/* Appends the envelope around an object of that many bytes: what comes before them, and after. */
void api_proto_write_head(struct hk_str api_version, struct hk_str kind, size_t bytes,
                          struct hk_buf *out);
void api_proto_write_tail(struct hk_buf *out);
/* Appends the envelope with the object in it. */
void api_proto_encode(const struct api_type *t, struct hk_str api_version, struct hk_str kind,
                      const struct json *obj, struct hk_buf *out);

/* A list: its metadata, then per item what comes before its bytes. */
void api_proto_write_list_meta(const struct json *meta, struct hk_buf *out);
void api_proto_write_item_head(size_t bytes, struct hk_buf *out);

/* One event of a watch, with its length in front. object is an envelope. */
void api_proto_write_event(const char *type, struct hk_str object, struct hk_buf *out);
