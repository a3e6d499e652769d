// SPDX-License-Identifier: Apache-2.0
// Decodes request bodies in application/vnd.kubernetes.protobuf, as typed clients send them, into a
// JSON tree. proto_write.h is the way back.
#pragma once

#include "codec/json.h"

/* Whether the body starts like such a body. */
bool api_proto_is(struct hk_str body);
/* Decodes the envelope and its object; apiVersion and kind come from the envelope. Skips unknown
 * field numbers; an unknown kind is HK_EUNSUP. Unchanged strings point into body. */
int api_proto_decode(struct hk_str body, struct hk_arena *a, struct json *ret,
                     struct hk_err *err) HK_CHECKED;
