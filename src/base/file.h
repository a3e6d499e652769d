// SPDX-License-Identifier: Apache-2.0
// Reads and writes whole files.
#pragma once

#include "base/err.h"
#include "base/str.h"

/* Appends the file ("-" is stdin) to b; refuses more than max bytes. The message names the path. */
int hk_read_file(const char *path, size_t max, struct hk_buf *b, struct hk_err *err) HK_CHECKED;
/* Writes through a temporary file and rename, so readers see the old or the new text. */
int hk_write_file(const char *path, struct hk_str text, struct hk_err *err) HK_CHECKED;
/* Opens a path below the directory with flags of open(2) and close-on-exec. Neither ".." nor a link
 * can leave the directory, even if it changes meanwhile: then -1 with EXDEV; other failures set
 * errno, too. Uses no heap. */
int hk_open_beneath(int dir, const char *path, int flags);
