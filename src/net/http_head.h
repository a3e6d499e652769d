// SPDX-License-Identifier: Apache-2.0
// Parses the head of an HTTP answer, for code that talks to servers without a library.
#pragma once

#include "base/str.h"

/* Length of the head with its empty line; 0: incomplete. */
size_t http_head_end(struct hk_str text);
/* The status of its first line, 0 when it has none. */
int http_head_status(struct hk_str head);
/* The value of a header, "" when there is none. */
struct hk_str http_head_get(struct hk_str head, const char *name);
