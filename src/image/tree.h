// SPDX-License-Identifier: Apache-2.0
// Trees of files from strangers: every path is resolved inside a directory that is given as a
// descriptor, whatever links the tree contains.
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <sys/types.h>

enum { IMAGE_TREE_DEPTH = 128 }; /* directories within directories */

/* For HK_AUTO(image_close) int fd. */
void image_close(int *fd);
/* Opens the path as if dir were the root directory: neither ".." nor a link leaves it. -1 with
 * errno. */
int image_tree_open(int dir, const char *path, int flags);
/* Opens a regular file and nothing else: -1 with errno. */
int image_tree_open_file(int dir, const char *path);
/* Removes the file or the tree; succeeds if there is none. Changes the modes of directories that
 * forbid it. -1 with errno if a part is left. */
int image_tree_remove(int dir, const char *name);
/* Calls fn for each entry of the directory except "." and ".."; a negative result ends the loop and
 * is returned, as is -HK_EIO for a directory that cannot be read. */
int image_tree_each(int dir, int (*fn)(void *ctx, const char *name, struct hk_err *err), void *ctx,
                    struct hk_err *err) HK_CHECKED;
/* The path of an entry in an archive, without "." and empty parts; "" for the root. "/etc" is
 * taken as "etc". Fails for "..", names that are too long, and trees that are too deep. */
int image_tree_clean(const char *path, char *ret, size_t room, struct hk_err *err) HK_CHECKED;
