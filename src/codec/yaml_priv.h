// SPDX-License-Identifier: Apache-2.0
// Shared by the YAML reader and writer only: types of scalars, and UTF-8 decoding.
#pragma once

#include "codec/yaml.h"

/* Types an untagged plain scalar as go-yaml v2 does. A string value is s itself; .inf and .nan are
 * doubles. */
struct json yaml_scalar_plain(struct hk_str s);

/* Types a scalar that carries a tag in its long form ("tag:yaml.org,2002:int"). The string of a
 * !!binary lives in a, any other is s itself. Errors do not name a position. */
int yaml_scalar_tagged(const char *tag, struct hk_str s, struct hk_arena *a, struct json *ret,
                       struct hk_err *err) HK_CHECKED;

/* Converts a typed scalar to a tree value: whole doubles become integers, as in kubectl's
 * conversion to JSON; refuses infinities and NaN. */
int yaml_scalar_settle(struct json *v, struct hk_err *err) HK_CHECKED;

/* A typed node as the key of a map. New text lives in a. */
int yaml_scalar_key(const struct json *v, struct hk_arena *a, struct hk_str *ret,
                    struct hk_err *err) HK_CHECKED;

/* A date or time: a string for us, but written quoted because other readers would convert it. */
bool yaml_scalar_is_time(struct hk_str s);

/* The start of s for use in a message, in whole characters. */
struct hk_str yaml_scalar_shown(struct hk_str s);

/* Bytes of the UTF-8 character s begins with, and its code point; 0 when malformed or s is empty.
 * Surrogates and overlong forms are malformed. */
unsigned yaml_utf8_next(struct hk_str s, uint32_t *ret);
/* Writes at most 4 bytes, returns how many. */
unsigned yaml_utf8_put(uint32_t c, char *out);
