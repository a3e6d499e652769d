// SPDX-License-Identifier: Apache-2.0
// For unit tests: JSON in C strings, with single quotes for the double ones.
#pragma once

#include "codec/json.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static inline struct json json_of_text(const char *text, struct hk_arena *a)
{
    char *s = hk_arena_strndup(a, text, strlen(text));
    struct hk_err err = {0};
    struct json v;

    for (char *p = s; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    if (json_parse(hk_str(s), 0, a, &v, &err) < 0) {
        fail_msg("test JSON %s: %s", text, err.text);
    }
    return v;
}
