// SPDX-License-Identifier: Apache-2.0
// The wire format of protocol buffers, read field by field. What the numbers mean is the caller's
// business.
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
    uint64_t value;      /* of all but bytes; int32 and int64 alike are its low bits */
    struct hk_str bytes; /* borrowed from the message */
};

/* Cuts the next field off *rest: 1, 0 at the end, or negative when the bytes are no message. Groups
 * are refused: nobody has written them for a decade. */
int protobuf_next(struct hk_str *rest, struct protobuf_field *ret, struct hk_err *err) HK_CHECKED;
/* Cuts one integer off a packed list: same answers. */
int protobuf_next_varint(struct hk_str *rest, uint64_t *ret, struct hk_err *err) HK_CHECKED;
/* Whether bytes can be a string of JSON: UTF-8 without NUL. */
bool protobuf_is_text(struct hk_str bytes);
