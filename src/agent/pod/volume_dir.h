// SPDX-License-Identifier: Apache-2.0
// Directories and paths of volumes.
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct host;

/* Creates one directory; succeeds when it exists. */
int volume_mkdir(const char *path, unsigned mode, struct hk_err *err) HK_CHECKED;
/* Creates the parent directories of path below dir. */
int volume_make_parents(const char *dir, struct hk_str path, unsigned mode, struct hk_arena *a,
                        struct hk_err *err) HK_CHECKED;
/* Writes a file that everybody may read, unless it has that text already: another container of the
 * pod may be about to mount it, and a file that was replaced cannot be mounted. */
int volume_write_file(const char *path, struct hk_str text, struct hk_err *err) HK_CHECKED;
/* Fails with errno's text: "cannot VERB 'PATH': ...". */
int volume_fail_errno(struct hk_err *err, const char *verb, const char *path) HK_CHECKED;
/* A user's path does not leave the directory it is relative to. */
bool volume_path_stays(struct hk_str path);
/* Path is dir or below it; both are resolved. */
bool volume_path_is_below(const char *path, const char *dir);
/* Message for a refused path. */
#define VOLUME_COVERED                                                                             \
    "'%s' is in the data directory of the server, which containers cannot see: use another path"
/* The existing part of the path leads into a directory hidden from containers. */
bool volume_is_covered(const struct host *h, const char *path);
/* Something is mounted there. */
bool volume_is_mounted(const char *path);
/* Removes a tree without following links or entering other file systems; false when a part is
 * left. */
bool volume_remove(const char *path);
