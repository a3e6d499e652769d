// SPDX-License-Identifier: Apache-2.0
// Store files for administrators: copies of all objects at one moment, check and salvage of a
// closed file, and backups.
#pragma once

#include "base/map.h"
#include "store/store.h"

/* ---- copies ---- */

/* Objects without history, ordered by revision. Zero it to initialise. */
struct store_copy {
    uint64_t identity, rev; /* of the store, and its highest revision */
    struct hk_intern names; /* "plural.group"; ids equal the objects' res */
    HK_VEC(struct store_obj *) objs;
};

void store_copy_fini(struct store_copy *c);
/* Copies the published state of an open store; takes references only. */
void store_copy_open(const struct store *s, struct store_copy *ret);
/* Creates a store at that path from the copy, with a witness. Its revisions start after known_rev,
 * in the generation of the wall time. Existing files are kept as PATH.ASIDE, PATH.ASIDE-wal and so
 * on. */
int store_copy_install(const struct store_copy *c, const char *path, uint64_t known_rev,
                       int64_t now_s, const char *aside, struct hk_err *err) HK_CHECKED;

/* ---- checking ---- */

struct store_check_opts {
    const char *path;
    bool must_exist; /* see store_opts */
    bool older;      /* for an object with a damaged last state, keep the newest intact one */
    /* Called with one line per problem. */
    void (*tell)(void *ctx, const char *line);
    void *ctx;
};

struct store_check {
    bool sound;
    uint64_t known_rev;     /* the highest revision found anywhere */
    uint64_t nrows, nlost;  /* nlost: objects with a damaged last state, and missing rows */
    struct store_copy copy; /* everything readable */
};

/* Reads everything, changes nothing. Fails when the file is in use or cannot be read at all; damage
 * is not a failure. */
int store_check(const struct store_check_opts *o, struct store_check *ret,
                struct hk_err *err) HK_CHECKED;
void store_check_fini(struct store_check *c);

/* ---- backups ---- */

/* Text: one line for the store, one per object, and a last line that proves completeness. Each
 * checksum continues that of the line before:
 *
 *   store SUM IDENTITY REVISION
 *   object SUM REVISION CREATED RESOURCE NAMESPACE NAME UID TEXT
 *   end SUM COUNT
 *
 * An empty namespace or uid is "-". */
struct store_backup {
    const struct store_copy *copy;
    uint32_t next;
    uint64_t sum;
    bool begun;
};

/* Appends about room bytes of the backup; false at its end. */
bool store_backup_write(struct store_backup *b, struct hk_buf *out, size_t room);

struct store_backup_reader {
    struct store_copy *copy; /* receives the objects */
    uint64_t sum;
    bool begun, ended;
};
/* Reads one line without its newline. -HK_EINVAL: the line is damaged. */
int store_backup_read(struct store_backup_reader *r, struct hk_str line,
                      struct hk_err *err) HK_CHECKED;
