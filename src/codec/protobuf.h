// SPDX-License-Identifier: Apache-2.0
// Reads the wire format of protocol buffers field by field. The caller interprets the field
// numbers.
#pragma once

#include "base/err.h"
#include "base/str.h"

enum protobuf_wire {
    PROTOBUF_VARINT = 0,
    PROTOBUF_FIXED64 = 1,
    PROTOBUF_BYTES = 2, /* strings, messages, packed lists */
    PROTOBUF_FIXED32 = 5,
};

struct protobuf_field {
    uint32_t number;
    enum protobuf_wire wire;
    uint64_t value;      /* unless BYTES; int32 and int64 are its low bits */
    struct hk_str bytes; /* borrowed from the message */
};

/* Removes the next field from *rest: returns 1, 0 at the end, or negative when the bytes are not a
 * message. Refuses groups, which are obsolete. */
int protobuf_next(struct hk_str *rest, struct protobuf_field *ret, struct hk_err *err) HK_CHECKED;
/* Removes one integer from a packed list; returns the same values. */
int protobuf_next_varint(struct hk_str *rest, uint64_t *ret, struct hk_err *err) HK_CHECKED;
/* Whether bytes can be a JSON string: UTF-8 without NUL. */
bool protobuf_is_text(struct hk_str bytes);
