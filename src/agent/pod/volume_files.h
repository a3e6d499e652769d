// SPDX-License-Identifier: Apache-2.0
// Files of a volume that change together.
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"

struct volume_file {
    struct hk_str path, data;
    unsigned mode;
};

struct volume_files {
    HK_VEC(struct volume_file) files;
    int64_t group; /* group that may read them; -1 none */
};

void volume_files_fini(struct volume_files *f);
/* Path and data are borrowed until the files are written; the last of equal paths counts. */
int volume_files_add(struct volume_files *f, struct hk_str path, struct hk_str data, unsigned mode,
                     struct hk_err *err) HK_CHECKED;
/* Replaces the files of the directory atomically. */
int volume_files_write(const struct volume_files *f, const char *dir, struct hk_arena *mem,
                       struct hk_err *err) HK_CHECKED;
