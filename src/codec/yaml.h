// SPDX-License-Identifier: Apache-2.0
// YAML as kubectl reads it: libyaml's scanner, go-yaml v2 typing (YAML 1.1), many documents in a
// stream, into the JSON tree. Aliases, depth and size are limited.
#pragma once

#include "codec/json.h"

enum {
    YAML_MAX_DEPTH = 100,
    YAML_DUP_REJECT = 1 << 0, /* duplicate keys are an error naming both lines; else last wins */
};

struct yaml_docs {
    struct json *at;
    uint32_t len, cap;
};

/* Reads every document of the stream; empty documents are left out. Text whose first byte after
 * blanks is '{' or '[' is tried as a stream of JSON values first. Errors say
 * "line L, column C: ...". Everything lives in a, and text must outlive it. */
int yaml_parse(struct hk_str text, unsigned flags, struct hk_arena *a, struct yaml_docs *ret,
               struct hk_err *err) HK_CHECKED;

/* Block style, two-space indent, keys sorted, strings quoted exactly when kubectl would have to. */
void yaml_write(const struct json *v, struct hk_buf *out);
