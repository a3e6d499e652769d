// SPDX-License-Identifier: Apache-2.0
// Manual pages for man(1), from the tables that --help is made of: "hekla", one "hekla-VERB" for
// every verb, and one for each of Volcano's programs.
#pragma once

#include "base/err.h"
#include "base/str.h"

/* Appends the page in roff; false when there is no page of that name. */
bool man_write(struct hk_str page, struct hk_buf *out);
/* Writes all pages as DIR/PAGE.1; makes the directory when it is missing. */
int man_write_all(const char *dir, struct hk_err *err) HK_CHECKED;
