// SPDX-License-Identifier: Apache-2.0
// Opens the log: compares the file with its witness before any change, reads it, and prepares it
// for writing. A refused store stays unchanged, including its WAL, so that it can be inspected and
// salvaged.
#include "store/store_log_priv.h"

#include "api/revision.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- opening ---- */

static int log_prepare_all(struct store_log *log, struct hk_err *err)
{
    const struct {
        const char *sql;
        sqlite3_stmt **ret;
    } all[] = {
        {"BEGIN IMMEDIATE", &log->begin},
        {"COMMIT", &log->commit},
        {STORE_DB_INSERT, &log->insert},
        {STORE_DB_INSERT_RES, &log->insert_res},
        {"DELETE FROM log WHERE rev = ? RETURNING sum", &log->del},
        {STORE_DB_MARK, &log->mark},
    };

    for (size_t i = 0; i < HK_LEN(all); i++) {
        const int rc = store_db_prepare(log->db, all[i].sql, all[i].ret, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int on_wal_commit(void *ctx, sqlite3 *db, const char *name, int frames)
{
    struct store_log *log = ctx;

    log->wal_frames = frames;
    return SQLITE_OK;
}

#define WAYS_ON                                                                                    \
    "'hekla check' shows details, 'hekla restore FILE' and 'hekla check --salvage' recover what "  \
    "they can, --accept-data-loss continues without it"

/* Missing data is an error, unless the owner chooses to continue without it. */
static int log_check_evidence(struct store_log *log, struct hk_err *err)
{
    struct hk_err reason = {0};
    const int rc = log->vfs ? 0 : store_evidence_check(&log->evidence, &reason);

    if (rc < 0 && log->accept_loss) {
        log->loss = true;
        return 0;
    }
    return rc < 0 ? hk_fail(err, -rc, "%s; " WAYS_ON, reason.text) : 0;
}

static bool has_content(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && st.st_size > 0;
}

/* Requires a file with tables. */
static int read_evidence(struct store_log *log, struct hk_err *err)
{
    struct store_evidence *e = &log->evidence;
    int rc = log->old ? 0 : store_db_read_marks(log->db, &log->marks, err);

    if (rc < 0) {
        return rc;
    }
    rc = store_db_revision(log->db, &e->rev, err);
    e->identity = log->marks.identity;
    e->removed = log->marks.removed;
    e->nremoved = log->marks.nremoved;
    return rc;
}

/* Changes no existing data before settling: a refused store can still be inspected and salvaged. */
static int open_tables(struct store_log *log, struct hk_err *err)
{
    int64_t format = 0;
    int rc = store_db_open(log->path, log->vfs, &log->db, err);

    if (rc < 0) {
        return rc;
    }
    rc = store_db_format(log->db, &format, err);
    if (rc < 0) {
        return rc;
    }
    if (format != 0 && format != STORE_DB_OLD && format != STORE_DB_FORMAT) {
        return hk_fail(err, HK_EUNSUP, "format %" PRId64 ", want %d", format, STORE_DB_FORMAT);
    }
    log->old = format == STORE_DB_OLD;
    log->evidence.exists = format != 0;
    rc = log->evidence.exists ? read_evidence(log, err) : 0;
    if (rc < 0) {
        return rc;
    }
    rc = log_check_evidence(log, err);
    if (rc == 0 && !log->evidence.exists) {
        rc = store_db_create(log->db, &log->marks, err);
    }
    return rc;
}

static int log_open_file(struct store_log *log, const struct store_opts *o, struct hk_err *err)
{
    struct store_evidence *e = &log->evidence;
    int rc;

    if (log->vfs) {
        log->ballast = store_ballast_open(log->path, 0);
        return open_tables(log, err);
    }
    rc = store_witness_read(log->path, &e->told, err);
    if (rc < 0) {
        return rc;
    }
    rc = store_wal_scan(log->path, &e->wal, err);
    e->exists = has_content(log->path);
    e->must_exist = o->must_exist;
    if (rc == 0 && !e->exists) {
        rc = log_check_evidence(log, err); /* before an empty file is created */
    }
    if (rc < 0) {
        return rc;
    }
    log->ballast = store_ballast_open(log->path, o->ballast_bytes);
    log->is_short = !store_ballast_held(log->ballast);
    rc = open_tables(log, err);
    if (rc == -HK_EFULL && store_ballast_drop(log->ballast, true)) {
        log->is_short = true;
        sqlite3_close(hk_take(log->db));
        rc = open_tables(log, err);
    }
    return rc;
}

int store_log_open(const struct store_opts *o, struct store_log **ret, struct hk_err *err)
{
    struct store_log *log = hk_zalloc(sizeof(*log));
    pthread_condattr_t attr;
    int rc = 0;

    store_queue_init(&log->pushed);
    store_queue_init(&log->queued);
    store_queue_init(&log->finished);
    pthread_mutex_init(&log->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&log->wake, &attr);
    pthread_condattr_destroy(&attr);
    log->no_thread = o->no_thread;
    log->vfs = o->vfs;
    log->accept_loss = o->accept_loss;
    log->now_s = o->now_s;
    log->path = o->path ? hk_strdup(o->path) : NULL;

    log->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (log->fd < 0) {
        rc = hk_fail(err, HK_EIO, "eventfd: %s", strerror(errno));
    } else if (o->path) {
        rc = log_open_file(log, o, err);
    }
    if (rc < 0) {
        store_log_free(log);
        return rc;
    }
    *ret = log;
    return 0;
}

/* Marks the store as closed cleanly, after everything else is on disk. */
static void close_witness(struct store_log *log)
{
    if (!log->witness) {
        return;
    }
    log->told.clean = !log->failed;
    if (store_witness_write(log->witness, &log->told) == 0) {
        (void)!store_witness_sync(log->witness); /* on failure the witness on disk is older */
    }
    store_witness_free(log->witness);
}

void store_log_free(struct store_log *log)
{
    if (!log) {
        return;
    }
    hk_assert(!log->running);
    sqlite3_finalize(log->begin);
    sqlite3_finalize(log->commit);
    sqlite3_finalize(log->insert);
    sqlite3_finalize(log->insert_res);
    sqlite3_finalize(log->del);
    sqlite3_finalize(log->mark);
    sqlite3_close(log->db);
    close_witness(log);
    store_ballast_free(log->ballast);
    if (log->fd >= 0) {
        close(log->fd);
    }
    pthread_cond_destroy(&log->wake);
    pthread_mutex_destroy(&log->lock);
    hk_vec_fini(&log->new_res);
    hk_free(log->path);
    hk_free(log);
}

/* ---- reading ---- */

/* Counts the rows on their way to the reader. */
struct counted {
    struct store_log *log;
    const struct store_log_reader *to;
};

static int count_res(void *ctx, uint32_t res, struct hk_str name, struct hk_err *err)
{
    const struct counted *c = ctx;

    return c->to->res(c->to->ctx, res, name, err);
}

static int count_row(void *ctx, enum store_event_type type, const struct store_obj *o, uint64_t sum,
                     struct hk_err *err)
{
    const struct counted *c = ctx;

    c->log->all ^= sum;
    c->log->nall++;
    store_evidence_count(&c->log->evidence, o, sum, false);
    return c->to->row(c->to->ctx, type, o, sum, err);
}

static int count_damaged(void *ctx, const struct store_obj *o, struct hk_err *err)
{
    const struct counted *c = ctx;

    store_evidence_count(&c->log->evidence, o, 0, true);
    return c->to->damaged(c->to->ctx, o, err);
}

int store_log_read(struct store_log *log, const struct store_log_reader *r, struct hk_err *err)
{
    struct counted c = {log, r};
    const struct store_log_reader counting = {
        .ctx = &c, .res = count_res, .row = count_row, .damaged = count_damaged};
    uint64_t last;
    int rc;

    if (!log->db) {
        return 0;
    }
    rc = log->old ? store_db_old_marks(log->db, &log->marks, err) : 0;
    if (rc < 0) {
        return rc;
    }
    r->marks(r->ctx, log->marks.compacted, log->marks.revision);
    rc = store_db_each_res(log->db, &log->marks, &counting, err);
    if (rc < 0) {
        return rc;
    }
    rc = store_db_each_row(log->db, 0, &counting, &last, err);
    log->evidence.read = rc == 0;
    return rc;
}

/* ---- settling ---- */

static int delete_damaged(struct store_log *log, const uint64_t *revs, uint32_t n)
{
    int rc = SQLITE_OK;

    for (uint32_t i = 0; rc == SQLITE_OK && i < n; i++) {
        sqlite3_bind_int64(log->del, 1, (int64_t)revs[i]);
        rc = sqlite3_step(log->del);
        sqlite3_reset(log->del);
        rc = rc == SQLITE_ROW ? SQLITE_OK : rc;
    }
    return rc;
}

/* Sets the marks to match the remaining rows. */
static void repair_marks(struct store_log *log, uint64_t generation)
{
    const struct store_evidence *e = &log->evidence;
    struct store_marks *m = &log->marks;

    m->compacted = HK_MAX(e->rev, generation); /* history is incomplete up to here */
    if (generation != 0) {
        m->revision = generation;
    }
    if (generation != 0 || e->told.found != STORE_TOLD) {
        m->removed = m->nremoved = 0;
    } else {
        m->removed = e->told.inserted ^ e->present;
        m->nremoved = e->told.ninserted - (e->npresent - e->ndamaged);
    }
}

static int repair_file(struct store_log *log, const uint64_t *damaged, uint32_t ndamaged,
                       uint64_t generation, struct hk_err *err)
{
    int rc = store_db_run(log->begin);

    rc = rc != SQLITE_OK ? rc : delete_damaged(log, damaged, ndamaged);
    if (rc == SQLITE_OK) {
        repair_marks(log, generation);
        rc = store_db_write_marks(log->mark, &log->marks);
    }
    rc = rc != SQLITE_OK ? rc : store_db_run(log->commit);
    return rc == SQLITE_OK ? 0 : store_db_fail(log->db, rc, "cannot write", err);
}

/* Data that the last process wrote but could not sync may be in the page cache only. A crash of the
 * machine would lose it, and with it every later commit in the WAL. So it is moved to the file and
 * synced before any new commit. */
static int settle_file(struct store_log *log, struct hk_err *err)
{
    int rc = store_db_settle(log->db, err);

    if (rc == -HK_EFULL && store_ballast_drop(log->ballast, true)) {
        log->is_short = true;
        rc = store_db_settle(log->db, err);
    }
    return rc;
}

int store_log_settle(struct store_log *log, const uint64_t *damaged, uint32_t ndamaged,
                     uint64_t *ret, struct hk_err *err)
{
    const struct store_evidence *e = &log->evidence;
    int rc;

    *ret = 0;
    if (!log->db) {
        return 0;
    }
    rc = log_check_evidence(log, err);
    if (rc == 0 && log->old) {
        rc = store_db_upgrade(log->db, &log->marks, err);
    }
    if (rc < 0) {
        return rc;
    }
    rc = log_prepare_all(log, err);
    if (rc < 0) {
        return rc;
    }
    if (log->loss) {
        *ret = revision_next_generation(HK_MAX(e->told.rev, e->rev), log->now_s);
    }
    if (log->loss || ndamaged > 0) {
        rc = repair_file(log, damaged, ndamaged, *ret, err);
    }
    if (rc < 0) {
        return rc;
    }
    rc = settle_file(log, err);
    if (rc < 0) {
        return rc;
    }
    sqlite3_wal_hook(log->db, on_wal_commit, log);
    log->identity = log->marks.identity;
    log->told = (struct store_told){
        .identity = log->marks.identity,
        .rev = HK_MAX(HK_MAX(e->rev, *ret), log->loss ? 0 : e->told.rev),
        .inserted = log->all ^ log->marks.removed,
        .ninserted = log->nall + log->marks.nremoved,
    };
    return log->vfs ? 0 : store_witness_open(log->path, &log->told, &log->witness, err);
}
