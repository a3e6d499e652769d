// SPDX-License-Identifier: Apache-2.0
// All verbs of the program, as listed in meson.build.
#pragma once

#include "cli/verb.h"

/* In the order of 'hekla help'. */
extern const struct verb *const verb_table[];
extern const uint32_t verb_table_len;
/* NULL: there is no verb of that name. */
const struct verb *verb_find(const char *name);
