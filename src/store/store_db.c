// SPDX-License-Identifier: Apache-2.0
// The tables of the store, and functions that read them. SQLite does not check the pages of its
// file, so every row has a checksum, the marks have one together, and the marks contain one of the
// resource names.
#include "store/store_db_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/random.h>
#include <unistd.h>

enum { ROW_SEED = 1 }; /* for the checksums of rows, in both formats */

/* ---- statements ---- */

int store_db_fail(sqlite3 *db, int rc, const char *what, struct hk_err *err)
{
    const int kind = rc & 0xff;
    const int sys = sqlite3_system_errno(db); /* of the last failure that had an errno */

    if (kind == SQLITE_BUSY || kind == SQLITE_LOCKED) {
        return hk_fail(err, HK_EBUSY, "%s: in use by another process", what);
    }
    if (rc == SQLITE_IOERR_FSYNC) {
        return hk_fail(err, HK_EIO, "cannot sync: %s", sqlite3_errstr(rc));
    }
    if (kind == SQLITE_FULL) {
        return hk_fail(err, HK_EFULL, "%s: %s", what, sqlite3_errstr(rc));
    }
    if (sys != 0 && (kind == SQLITE_IOERR || kind == SQLITE_CANTOPEN)) {
        return hk_fail(err, HK_EIO, "%s: %s: %s", what, sqlite3_errstr(rc), strerror(sys));
    }
    return hk_fail(err, HK_EIO, "%s: %s", what, sqlite3_errmsg(db));
}

int store_db_exec(sqlite3 *db, const char *sql, const char *what, struct hk_err *err)
{
    const int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK ? 0 : store_db_fail(db, rc, what, err);
}

int store_db_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret, struct hk_err *err)
{
    const int rc = sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL);

    return rc == SQLITE_OK ? 0 : store_db_fail(db, rc, "cannot prepare", err);
}

int store_db_run(sqlite3_stmt *st)
{
    const int rc = sqlite3_step(st);

    sqlite3_reset(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static void bind_str(sqlite3_stmt *st, int i, struct hk_str s)
{
    sqlite3_bind_text64(st, i, s.n > 0 ? s.s : "", s.n, SQLITE_STATIC, SQLITE_UTF8);
}

static struct hk_str column_str(sqlite3_stmt *st, int i)
{
    const char *s = (const char *)sqlite3_column_text(st, i);

    return (struct hk_str){s ? s : "", (size_t)sqlite3_column_bytes(st, i)};
}

static int store_db_read_int(sqlite3 *db, const char *sql, int64_t *ret, struct hk_err *err)
{
    sqlite3_stmt *st = NULL;
    int rc = store_db_prepare(db, sql, &st, err);

    if (rc < 0) {
        return rc;
    }
    rc = sqlite3_step(st);
    *ret = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
    sqlite3_finalize(st);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : store_db_fail(db, rc, "cannot read", err);
}

/* ---- opening ---- */

/* Objects contain secrets: only the owner may read the file, and the WAL gets the same mode. Only
 * for a new file: closing any descriptor of a file drops this process's locks on it. */
static int create_file(const char *path, struct hk_err *err)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0) {
        return errno == EEXIST ? 0 : hk_fail(err, HK_EIO, "cannot create: %s", strerror(errno));
    }
    close(fd);
    return 0;
}

/* The page size must be set before the WAL mode, and the lock before everything. 16 KiB pages wrote
 * rows of 4 KiB fastest. Freed pages are reused, so the file need not shrink. */
static int configure(sqlite3 *db, struct hk_err *err)
{
    sqlite3_extended_result_codes(db, 1);
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return store_db_exec(db,
                         "PRAGMA locking_mode = EXCLUSIVE;"
                         "PRAGMA page_size = 16384;"
                         "PRAGMA journal_mode = WAL;"
                         "PRAGMA synchronous = FULL;"
                         "PRAGMA cache_size = -16384;"
                         "BEGIN EXCLUSIVE;"
                         "COMMIT;",
                         "cannot open", err);
}

int store_db_open(const char *path, const char *vfs, sqlite3 **ret, struct hk_err *err)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    sqlite3 *db = NULL;
    int rc = vfs ? 0 : create_file(path, err);

    if (rc < 0) {
        return rc;
    }
    rc = sqlite3_open_v2(path, &db, vfs ? flags | SQLITE_OPEN_CREATE : flags, vfs);
    rc = rc != SQLITE_OK ? store_db_fail(db, rc, "cannot open", err) : configure(db, err);
    if (rc < 0) {
        sqlite3_close(db);
        return rc;
    }
    *ret = db;
    return 0;
}

int store_db_format(sqlite3 *db, int64_t *ret, struct hk_err *err)
{
    return store_db_read_int(db, "PRAGMA user_version", ret, err);
}

int store_db_settle(sqlite3 *db, struct hk_err *err)
{
    const int rc = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);

    if (rc != SQLITE_OK) {
        return store_db_fail(db, rc, "cannot settle the log", err);
    }
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    return 0;
}

uint64_t store_db_spare(sqlite3 *db)
{
    int64_t pages, size;

    if (store_db_read_int(db, "PRAGMA freelist_count", &pages, NULL) < 0 ||
        store_db_read_int(db, "PRAGMA page_size", &size, NULL) < 0) {
        return 0;
    }
    return (uint64_t)(pages * size);
}

int store_db_revision(sqlite3 *db, uint64_t *ret, struct hk_err *err)
{
    int64_t rows, marks;
    int rc = store_db_read_int(db, "SELECT max(rev) FROM log", &rows, err);

    if (rc < 0) {
        return rc;
    }
    rc = store_db_read_int(db, "SELECT max(rev) FROM marks WHERE name IN ('compacted', 'revision')",
                           &marks, err);
    if (rc == 0) {
        *ret = (uint64_t)HK_MAX(rows, marks);
    }
    return rc;
}

/* ---- marks ---- */

static const struct {
    struct hk_str name;
    size_t at;
} mark_names[] = {
    {HK_STR("compacted"), offsetof(struct store_marks, compacted)},
    {HK_STR("revision"), offsetof(struct store_marks, revision)},
    {HK_STR("identity"), offsetof(struct store_marks, identity)},
    {HK_STR("removed"), offsetof(struct store_marks, removed)},
    {HK_STR("nremoved"), offsetof(struct store_marks, nremoved)},
    {HK_STR("resources"), offsetof(struct store_marks, resources)},
};

#define CHECK HK_STR("check")

static uint64_t sum_marks(const struct store_marks *m)
{
    return hk_hash(m, sizeof(*m), STORE_DB_FORMAT);
}

static int write_mark(sqlite3_stmt *st, struct hk_str name, uint64_t n)
{
    bind_str(st, 1, name);
    sqlite3_bind_int64(st, 2, (int64_t)n);
    return store_db_run(st);
}

int store_db_write_marks(sqlite3_stmt *st, const struct store_marks *m)
{
    int rc = write_mark(st, CHECK, sum_marks(m));

    for (size_t i = 0; rc == SQLITE_OK && i < HK_LEN(mark_names); i++) {
        uint64_t n;

        memcpy(&n, (const char *)m + mark_names[i].at, sizeof(n));
        rc = write_mark(st, mark_names[i].name, n);
    }
    return rc;
}

static void take_mark(struct store_marks *m, uint64_t *check, struct hk_str name, uint64_t n)
{
    for (size_t i = 0; i < HK_LEN(mark_names); i++) {
        if (hk_str_eq(mark_names[i].name, name)) {
            memcpy((char *)m + mark_names[i].at, &n, sizeof(n));
        }
    }
    if (hk_str_eq(name, CHECK)) {
        *check = n;
    }
}

static int read_marks(sqlite3 *db, struct store_marks *m, uint64_t *ret_check, struct hk_err *err)
{
    sqlite3_stmt *st = NULL;
    int rc = store_db_prepare(db, "SELECT name, rev FROM marks", &st, err);

    if (rc < 0) {
        return rc;
    }
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        take_mark(m, ret_check, column_str(st, 0), (uint64_t)sqlite3_column_int64(st, 1));
    }
    sqlite3_finalize(st);
    return rc == SQLITE_DONE ? 0 : store_db_fail(db, rc, "cannot read", err);
}

int store_db_read_marks(sqlite3 *db, struct store_marks *ret, struct hk_err *err)
{
    struct store_marks m = {0};
    uint64_t check = 0;
    const int rc = read_marks(db, &m, &check, err);

    if (rc < 0) {
        return rc;
    }
    if (check != sum_marks(&m)) {
        return hk_fail(err, HK_EIO, "its marks are damaged: their checksum differs");
    }
    *ret = m;
    return 0;
}

/* ---- creating ---- */

static int draw_identity(uint64_t *ret, struct hk_err *err)
{
    do {
        if (getrandom(ret, sizeof(*ret), 0) != (ssize_t)sizeof(*ret)) {
            return hk_fail(err, HK_EIO, "cannot get random bytes: %m");
        }
    } while (*ret == 0);
    return 0;
}

/* Ends an open transaction, with the marks in it. */
static int finish_tables(sqlite3 *db, struct store_marks *m, struct hk_err *err)
{
    sqlite3_stmt *mark = NULL;
    int rc = draw_identity(&m->identity, err);

    if (rc < 0) {
        return rc;
    }
    rc = store_db_prepare(db, STORE_DB_MARK, &mark, err);
    if (rc == 0 && store_db_write_marks(mark, m) != SQLITE_OK) {
        rc = store_db_fail(db, sqlite3_extended_errcode(db), "cannot write", err);
    }
    sqlite3_finalize(mark);
    if (rc < 0) {
        return rc;
    }
    return store_db_exec(db, "PRAGMA user_version = 2; COMMIT", "cannot create tables", err);
}

int store_db_create(sqlite3 *db, struct store_marks *marks, struct hk_err *err)
{
    const int rc =
        store_db_exec(db,
                      "BEGIN;"
                      "CREATE TABLE log (rev INTEGER PRIMARY KEY, res INTEGER NOT NULL,"
                      " ns TEXT NOT NULL, name TEXT NOT NULL, uid TEXT NOT NULL, op INTEGER NOT "
                      "NULL, created INTEGER NOT NULL, sum INTEGER NOT NULL, text TEXT NOT NULL);"
                      "CREATE TABLE resources (id INTEGER PRIMARY KEY,"
                      " name TEXT NOT NULL UNIQUE);"
                      "CREATE TABLE marks (name TEXT PRIMARY KEY,"
                      " rev INTEGER NOT NULL) WITHOUT ROWID;",
                      "cannot create tables", err);

    if (rc < 0) {
        return rc;
    }
    return finish_tables(db, marks, err);
}

static int sum_resources(sqlite3 *db, uint64_t *ret, struct hk_err *err)
{
    sqlite3_stmt *st = NULL;
    int rc = store_db_prepare(db, "SELECT id, name FROM resources ORDER BY id", &st, err);

    *ret = 0;
    if (rc < 0) {
        return rc;
    }
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        *ret = store_db_sum_res(*ret, (uint32_t)sqlite3_column_int64(st, 0), column_str(st, 1));
    }
    sqlite3_finalize(st);
    return rc == SQLITE_DONE ? 0 : store_db_fail(db, rc, "cannot read", err);
}

int store_db_old_marks(sqlite3 *db, struct store_marks *ret, struct hk_err *err)
{
    struct store_marks m = {0};
    uint64_t check;
    int rc = read_marks(db, &m, &check, err);

    if (rc < 0) {
        return rc;
    }
    rc = sum_resources(db, &m.resources, err);
    if (rc == 0) {
        *ret = m;
    }
    return rc;
}

int store_db_upgrade(sqlite3 *db, struct store_marks *marks, struct hk_err *err)
{
    int rc = store_db_old_marks(db, marks, err);

    if (rc < 0) {
        return rc;
    }
    rc = store_db_exec(db, "BEGIN", "cannot write", err);
    if (rc < 0) {
        return rc;
    }
    return finish_tables(db, marks, err);
}

/* ---- resources ---- */

uint64_t store_db_sum_res(uint64_t sum, uint32_t res, struct hk_str name)
{
    return hk_hash(name.s, name.n, sum ^ res);
}

int store_db_insert_res(sqlite3_stmt *st, uint32_t res, struct hk_str name)
{
    sqlite3_bind_int64(st, 1, res);
    bind_str(st, 2, name);
    return store_db_run(st);
}

int store_db_each_res(sqlite3 *db, const struct store_marks *marks,
                      const struct store_log_reader *r, struct hk_err *err)
{
    sqlite3_stmt *st = NULL;
    uint64_t sum = 0;
    int step;
    int rc = store_db_prepare(db, "SELECT id, name FROM resources ORDER BY id", &st, err);

    if (rc < 0) {
        return rc;
    }
    while (rc == 0 && (step = sqlite3_step(st)) == SQLITE_ROW) {
        const uint32_t res = (uint32_t)sqlite3_column_int64(st, 0);
        const struct hk_str name = column_str(st, 1);

        sum = store_db_sum_res(sum, res, name);
        rc = r->res(r->ctx, res, name, err);
    }
    sqlite3_finalize(st);
    if (rc == 0 && step != SQLITE_DONE) {
        return store_db_fail(db, step, "cannot read", err);
    }
    if (rc == 0 && sum != marks->resources) {
        return hk_fail(err, HK_EIO, "its list of resources is damaged: the checksum differs");
    }
    return rc;
}

/* ---- rows ---- */

uint64_t store_db_sum_row(enum store_event_type type, const struct store_obj *o)
{
    const uint64_t numbers[] = {o->rv, o->created_rv, o->res, type};
    uint64_t sum = hk_hash(numbers, sizeof(numbers), ROW_SEED);

    sum = hk_hash(o->ns.s, o->ns.n, sum);
    sum = hk_hash(o->name.s, o->name.n, sum);
    sum = hk_hash(o->uid.s, o->uid.n, sum);
    return hk_hash(o->text.s, o->text.n, sum);
}

int store_db_insert(sqlite3_stmt *st, enum store_event_type type, const struct store_obj *o,
                    uint64_t *ret_sum)
{
    *ret_sum = store_db_sum_row(type, o);
    sqlite3_bind_int64(st, 1, (int64_t)o->rv);
    sqlite3_bind_int64(st, 2, o->res);
    bind_str(st, 3, o->ns);
    bind_str(st, 4, o->name);
    bind_str(st, 5, o->uid);
    sqlite3_bind_int(st, 6, (int)type);
    sqlite3_bind_int64(st, 7, (int64_t)o->created_rv);
    sqlite3_bind_int64(st, 8, (int64_t)*ret_sum);
    bind_str(st, 9, o->text);
    return store_db_run(st);
}

static int read_row(sqlite3_stmt *st, const struct store_log_reader *r, uint64_t *ret_rv,
                    struct hk_err *err)
{
    const struct store_obj o = {
        .rv = (uint64_t)sqlite3_column_int64(st, 0),
        .res = (uint32_t)sqlite3_column_int64(st, 1),
        .ns = column_str(st, 2),
        .name = column_str(st, 3),
        .uid = column_str(st, 4),
        .created_rv = (uint64_t)sqlite3_column_int64(st, 6),
        .text = column_str(st, 8),
    };
    const int type = sqlite3_column_int(st, 5);
    const uint64_t sum = (uint64_t)sqlite3_column_int64(st, 7);

    *ret_rv = o.rv;
    if (type < STORE_ADDED || type > STORE_DELETED ||
        store_db_sum_row((enum store_event_type)type, &o) != sum) {
        return r->damaged(r->ctx, &o, err);
    }
    return r->row(r->ctx, (enum store_event_type)type, &o, sum, err);
}

int store_db_each_row(sqlite3 *db, uint64_t from, const struct store_log_reader *r,
                      uint64_t *ret_last, struct hk_err *err)
{
    sqlite3_stmt *st = NULL;
    int step = SQLITE_DONE;
    int rc = store_db_prepare(db,
                              "SELECT rev, res, ns, name, uid, op, created, sum, text FROM log"
                              " WHERE rev >= ? ORDER BY rev",
                              &st, err);

    if (rc < 0) {
        return rc;
    }
    sqlite3_bind_int64(st, 1, (int64_t)from);
    while (rc == 0 && (step = sqlite3_step(st)) == SQLITE_ROW) {
        rc = read_row(st, r, ret_last, err);
    }
    sqlite3_finalize(st);
    if (rc == 0 && step != SQLITE_DONE) {
        rc = store_db_fail(db, step, "cannot read", err);
    }
    return rc;
}
