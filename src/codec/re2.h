// SPDX-License-Identifier: Apache-2.0
// Regular expressions of the API have RE2's syntax and meaning. PCRE2 matches them, with its
// algorithm that never goes back over the text, so that no pattern takes exponential time.
#pragma once

#include "base/err.h"
#include "base/str.h"

struct re2;

/* Accepts patterns of up to 4096 bytes. Patterns that Go's regexp refuses (references to groups,
 * look-around, possessive repeats ...) are errors. Of those Go accepts, octal escapes, \C and
 * repeated assertions such as "^*" are errors, too. */
int re2_compile(struct hk_str pattern, struct re2 **ret, struct hk_err *err) HK_CHECKED;
void re2_free(struct re2 *re);
void re2_freep(struct re2 **re);
/* Whether any part of the text matches. A text that is not UTF-8 matches nothing. Threads may share
 * re. */
bool re2_matches(const struct re2 *re, struct hk_str text);
/* The first match at or behind the byte `from`, with Perl's preferences, as in Go's regexp: 1 and the
 * match, 0 without one or when the text is not UTF-8. -HK_ELIMIT when there is a match, but the
 * choice between alternatives takes too many steps. */
int re2_search(const struct re2 *re, struct hk_str text, size_t from, struct hk_str *ret);
