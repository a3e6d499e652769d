// SPDX-License-Identifier: Apache-2.0
// Backup files: the credentials of a data directory, followed by its store in the format of
// store_files.h.
//
//   hekla-backup 1 VERSION TIME
//   file SUM NAME TEXT          TEXT is a JSON string
//   store ...
#pragma once

#include "base/vec.h"
#include "store/store_files.h"

struct backup_part {
    char *name, *text;
};

/* Ready when zeroed. */
struct backup_file {
    char *version, *time; /* of the program, and of the backup */
    HK_VEC(struct backup_part) parts;
    struct store_copy copy;
};

void backup_file_fini(struct backup_file *b);
/* Appends the part before the store: the first line and the credentials in the directory. */
int backup_file_begin(const char *dir, struct hk_buf *out, struct hk_err *err) HK_CHECKED;
/* Fails with HK_EINVAL if anything in it is changed or missing. */
int backup_file_read(const char *path, struct backup_file *ret, struct hk_err *err) HK_CHECKED;
/* Writes the credentials that the directory lacks. */
int backup_file_unpack(const struct backup_file *b, const char *dir, struct hk_err *err) HK_CHECKED;
/* "20260102T030405Z", for names of files moved aside. */
void backup_file_stamp(struct hk_buf *out);
