// SPDX-License-Identifier: Apache-2.0
// The head of an HTTP answer, for those who speak to servers by themselves.
#pragma once

#include "base/str.h"

/* Where the head ends, the empty line included; 0: not yet. */
size_t http_head_end(struct hk_str text);
/* The status of its first line, 0 when it has none. */
int http_head_status(struct hk_str head);
/* The value of a header, "" when there is none. */
struct hk_str http_head_get(struct hk_str head, const char *name);
