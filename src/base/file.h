// SPDX-License-Identifier: Apache-2.0
// Whole files in and out.
#pragma once

#include "base/err.h"
#include "base/str.h"

/* Appends the file ("-" is stdin) to b; refuses more than max bytes. The message names the path. */
int hk_read_file(const char *path, size_t max, struct hk_buf *b, struct hk_err *err) HK_CHECKED;
/* Writes through a temporary file and rename, so readers see the old or the new text. */
int hk_write_file(const char *path, struct hk_str text, struct hk_err *err) HK_CHECKED;
