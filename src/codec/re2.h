// SPDX-License-Identifier: Apache-2.0
// Regular expressions of the API are RE2; libc has POSIX extended ones. Only whether a text matches
// is ever asked, so greed does not matter.
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <regex.h>

/* Patterns of up to 4096 bytes. What POSIX cannot say is refused rather than understood otherwise.
 * The caller ends the result with regfree. */
int re2_compile(struct hk_str pattern, regex_t *ret, struct hk_err *err) HK_CHECKED;
/* Whether some part of the text matches. */
bool re2_matches(const regex_t *re, struct hk_str text);
