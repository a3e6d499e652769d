// SPDX-License-Identifier: Apache-2.0
// Manual pages from the tables behind --help: "hekla", one "hekla-VERB" for every verb, and one for
// each of Volcano's programs.
#pragma once

#include "base/err.h"
#include "base/str.h"

/* Appends the page in roff; false if there is no such page. */
bool man_write(struct hk_str page, struct hk_buf *out);
/* Writes all pages as DIR/PAGE.1; creates the directory if missing. */
int man_write_all(const char *dir, struct hk_err *err) HK_CHECKED;
