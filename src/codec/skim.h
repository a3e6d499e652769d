// SPDX-License-Identifier: Apache-2.0
// Finds JSON members by counting brackets, without building a tree, when only a few of many are
// needed. It does not validate the skipped parts: parse untrusted text with json_parse.
#pragma once

#include "base/str.h"

struct skim {
    const char *p, *end;
};

/* Skips blanks and consumes c; false when another character follows. */
bool skim_take(struct skim *s, char c);
/* Returns the text of a whole value. */
bool skim_value(struct skim *s, struct hk_str *ret);
/* The key of the next member, after the opening bracket; set *first before the first call. 1:
 * found, its value follows. 0: the object ended. Negative: not JSON. */
int skim_key(struct skim *s, bool *first, struct hk_str *ret);
/* The values of the named members of an object, "" where absent. Stops after the last of them.
 * Negative: not a JSON object. */
int skim_members(struct hk_str text, const char *const *names, struct hk_str *values, size_t n);
