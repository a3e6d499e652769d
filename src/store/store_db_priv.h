// SPDX-License-Identifier: Apache-2.0
// The store's SQLite tables, for all code that opens the file: the log of a running store, and the
// offline check, salvage, backup and restore.
//
//   log        a row per revision that is still needed, with a checksum
//   resources  numbers of "plural.group"
//   marks      numbers about the whole store; the mark 'check' is their checksum
#pragma once

#include "store/store_priv.h"

#include <sqlite3.h>

/* The marks. History up to `compacted` is incomplete. No revision up to `revision` is used again.
 * `identity` is random and equals the witness's. `removed` and `nremoved` are digest and number of
 * the rows that compaction deleted; together with the present rows they must equal the witness's
 * counts. `resources` is the digest of that table. */
struct store_marks {
    uint64_t compacted, revision, identity, removed, nremoved, resources;
};

/* Opens and locks the file; creates it when missing. Changes no existing content, not even on
 * close: see store_db_settle. vfs names SQLite's file system; NULL: the real one. */
int store_db_open(const char *path, const char *vfs, sqlite3 **ret, struct hk_err *err) HK_CHECKED;
/* Creates tables and marks in a new file. */
int store_db_create(sqlite3 *db, struct store_marks *marks, struct hk_err *err) HK_CHECKED;
/* *ret is the format of the tables; 0: no tables. */
enum { STORE_DB_OLD = 1, STORE_DB_FORMAT = 2 };
int store_db_format(sqlite3 *db, int64_t *ret, struct hk_err *err) HK_CHECKED;
/* The marks of the older format, which had no checksum. */
int store_db_old_marks(sqlite3 *db, struct store_marks *ret, struct hk_err *err) HK_CHECKED;
/* Upgrades tables of the older format. */
int store_db_upgrade(sqlite3 *db, struct store_marks *marks, struct hk_err *err) HK_CHECKED;
/* Moves the WAL's content into the file and syncs; from now on closing does the same. */
int store_db_settle(sqlite3 *db, struct hk_err *err) HK_CHECKED;

/* Bytes of free pages in the file. */
uint64_t store_db_spare(sqlite3 *db);
/* The highest revision in rows and marks. */
int store_db_revision(sqlite3 *db, uint64_t *ret, struct hk_err *err) HK_CHECKED;
/* Fails with HK_EIO when their checksum is wrong. */
int store_db_read_marks(sqlite3 *db, struct store_marks *ret, struct hk_err *err) HK_CHECKED;
/* Call inside a transaction. Returns SQLite's code. */
int store_db_write_marks(sqlite3_stmt *mark, const struct store_marks *m);
#define STORE_DB_MARK "INSERT OR REPLACE INTO marks (name, rev) VALUES (?, ?)"

/* The digest of the resources after adding one. */
uint64_t store_db_sum_res(uint64_t sum, uint32_t res, struct hk_str name);
#define STORE_DB_INSERT_RES "INSERT INTO resources (id, name) VALUES (?, ?)"
/* Returns SQLite's code. */
int store_db_insert_res(sqlite3_stmt *st, uint32_t res, struct hk_str name);

uint64_t store_db_sum_row(enum store_event_type type, const struct store_obj *o);
#define STORE_DB_INSERT                                                                            \
    "INSERT INTO log (rev, res, ns, name, uid, op, created, sum, text)"                            \
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
/* Returns SQLite's code; *ret_sum is the row's checksum. */
int store_db_insert(sqlite3_stmt *st, enum store_event_type type, const struct store_obj *o,
                    uint64_t *ret_sum);

/* Resources in the order of their numbers; fails with HK_EIO when they contradict the marks. */
int store_db_each_res(sqlite3 *db, const struct store_marks *marks,
                      const struct store_log_reader *r, struct hk_err *err) HK_CHECKED;
/* Rows starting at the revision, in order. *ret_last is the last one read, even when reading fails
 * (HK_EIO): the caller may retry after it. */
int store_db_each_row(sqlite3 *db, uint64_t from, const struct store_log_reader *r,
                      uint64_t *ret_last, struct hk_err *err) HK_CHECKED;

/* ---- statements ---- */

int store_db_fail(sqlite3 *db, int rc, const char *what, struct hk_err *err);
int store_db_exec(sqlite3 *db, const char *sql, const char *what, struct hk_err *err) HK_CHECKED;
int store_db_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret,
                     struct hk_err *err) HK_CHECKED;
/* Runs a statement without result rows; returns SQLite's code. */
int store_db_run(sqlite3_stmt *st);
