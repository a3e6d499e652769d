// SPDX-License-Identifier: Apache-2.0
// Request bodies in application/vnd.kubernetes.protobuf, as typed clients send them, read into the
// JSON tree that everything else works on. Answers are always JSON, so there is no encoder.
#pragma once

#include "codec/json.h"

/* Whether the body begins as such bodies do. */
bool api_proto_is(struct hk_str body);
/* Reads the envelope and the object in it; apiVersion and kind are those of the envelope. Numbers
 * we do not know are skipped; kinds we do not know are HK_EUNSUP. Strings without need of change
 * point into body. */
int api_proto_decode(struct hk_str body, struct hk_arena *a, struct json *ret,
                     struct hk_err *err) HK_CHECKED;
