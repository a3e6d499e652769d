// SPDX-License-Identifier: Apache-2.0
// The store on disk: one append-only table in SQLite, a row per revision, and the thread that
// writes it. The owner opens and reads the file, then hands the connection to the thread and talks
// to it through two queues; an eventfd tells the owner that items came back.
//
//   push, send -> queued -> [thread: BEGIN, all that waits, COMMIT = one fsync] -> finished -> take
//
// The file is locked for one process by SQLite's exclusive mode, which also spares the
// shared-memory index of the WAL. A commit cut short by a crash is dropped by SQLite, which checks
// the frames of the WAL; it does not check the pages of the file, so every row has a checksum of
// its own.
//
// After a failed write or sync the kernel may call pages clean that never reached the disk. None of
// them counts: a failed commit was not acknowledged and its frames are written over by the next
// one, a failed checkpoint moves all its frames again. So a commit that works proves recovery, and
// no restart is needed.
#include "store/store_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum {
    FORMAT = 1,                /* of the tables; in user_version */
    BATCH_ITEMS = 1024,        /* most writes in one commit, */
    BATCH_BYTES = 8 << 20,     /* and about how much text: bounds how long the first one waits */
    WAL_FRAMES = 1024,         /* 16 MiB: checkpoint after the commit that gets here, */
    WAL_FRAMES_IDLE = 64,      /* or here when nothing happened for a while, */
    WAL_FRAMES_MAX = 8 * 1024, /* and if that keeps failing, refuse writes from here on */
    IDLE_MS = 200,
    EARLY_ITEMS = 16, /* so many need not wait for the end of the owner's turn */
};

struct queue {
    struct store_log_item *head, **tail;
};

struct new_res {
    uint32_t res;
    struct hk_str name;
};

struct store_log {
    /* Of the thread, once it runs. */
    sqlite3 *db; /* NULL: in memory */
    sqlite3_stmt *begin, *commit, *insert, *insert_res, *del, *mark;
    int wal_frames;
    bool failed;
    uint32_t saved_res; /* rows of new_res on disk */

    /* Of the owner. */
    pthread_t thread;
    bool running;
    int fd;
    struct queue pushed;
    uint32_t npushed;
    _Atomic bool idle; /* the thread waits for items */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    struct queue queued, finished;
    HK_VEC(struct new_res) new_res;
    struct hk_err err; /* the last failure */
    uint64_t commits;
    bool stop;
};

static void queue_init(struct queue *q)
{
    q->head = NULL;
    q->tail = &q->head;
}

static void queue_add(struct queue *q, struct store_log_item *item)
{
    item->next = NULL;
    *q->tail = item;
    q->tail = &item->next;
}

/* Appends what is in from, which is empty then. */
static void queue_join(struct queue *q, struct queue *from)
{
    if (from->head) {
        *q->tail = from->head;
        q->tail = from->tail;
        queue_init(from);
    }
}

static struct store_log_item *queue_take(struct queue *q)
{
    struct store_log_item *head = q->head;

    queue_init(q);
    return head;
}

/* ---- SQLite ---- */

static int log_fail(struct store_log *log, int rc, const char *what, struct hk_err *err)
{
    const int kind = rc & 0xff;
    const int sys = sqlite3_system_errno(log->db); /* of the last failure that had one */

    if (kind == SQLITE_BUSY || kind == SQLITE_LOCKED) {
        return hk_fail(err, HK_EBUSY, "%s: in use by another process", what);
    }
    if (rc == SQLITE_IOERR_FSYNC) {
        return hk_fail(err, HK_EIO, "cannot sync: %s", sqlite3_errstr(rc));
    }
    if (sys != 0 && (kind == SQLITE_IOERR || kind == SQLITE_CANTOPEN || kind == SQLITE_FULL)) {
        return hk_fail(err, HK_EIO, "%s: %s: %s", what, sqlite3_errstr(rc), strerror(sys));
    }
    return hk_fail(err, HK_EIO, "%s: %s", what, sqlite3_errmsg(log->db));
}

static int log_exec(struct store_log *log, const char *sql, const char *what, struct hk_err *err)
{
    const int rc = sqlite3_exec(log->db, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK ? 0 : log_fail(log, rc, what, err);
}

static int log_prepare(struct store_log *log, const char *sql, sqlite3_stmt **ret,
                       struct hk_err *err)
{
    const int rc = sqlite3_prepare_v3(log->db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL);

    return rc == SQLITE_OK ? 0 : log_fail(log, rc, "cannot prepare", err);
}

/* Runs a statement that gives no rows; SQLite's code. */
static int log_run(sqlite3_stmt *st)
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

static uint64_t row_sum(enum store_event_type type, const struct store_obj *o)
{
    const uint64_t numbers[] = {o->rv, o->created_rv, o->res, type};
    uint64_t sum = hk_hash(numbers, sizeof(numbers), FORMAT);

    sum = hk_hash(o->ns.s, o->ns.n, sum);
    sum = hk_hash(o->name.s, o->name.n, sum);
    sum = hk_hash(o->uid.s, o->uid.n, sum);
    return hk_hash(o->text.s, o->text.n, sum);
}

/* ---- opening ---- */

/* Objects hold secrets: the file is the owner's alone, and the WAL gets the mode of the file. Only
 * when it is new, since closing any descriptor of a file drops this process's locks on it. */
static int create_file(const char *path, struct hk_err *err)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0) {
        return errno == EEXIST ? 0 : hk_fail(err, HK_EIO, "cannot create: %s", strerror(errno));
    }
    close(fd);
    return 0;
}

static int read_number(struct store_log *log, const char *sql, int64_t *ret, struct hk_err *err)
{
    sqlite3_stmt *st = NULL;
    int rc = log_prepare(log, sql, &st, err);

    if (rc < 0) {
        return rc;
    }
    rc = sqlite3_step(st);
    *ret = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
    sqlite3_finalize(st);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : log_fail(log, rc, "cannot read", err);
}

/* The page size has to come before the WAL, and the lock before everything. 16 KiB pages wrote rows
 * of 4 KiB fastest. Freed pages are used again, so the file need not shrink. */
static int log_configure(struct store_log *log, struct hk_err *err)
{
    int64_t format = 0;
    int rc = log_exec(log,
                      "PRAGMA locking_mode = EXCLUSIVE;"
                      "PRAGMA page_size = 16384;"
                      "PRAGMA journal_mode = WAL;"
                      "PRAGMA synchronous = FULL;"
                      "PRAGMA cache_size = -16384;"
                      "BEGIN EXCLUSIVE;"
                      "COMMIT;",
                      "cannot open", err);

    rc = rc < 0 ? rc : read_number(log, "PRAGMA user_version", &format, err);
    if (rc < 0) {
        return rc;
    }
    if (format == FORMAT) {
        return 0;
    }
    if (format != 0) {
        return hk_fail(err, HK_EUNSUP, "format %" PRId64 ", want %d", format, FORMAT);
    }
    return log_exec(log,
                    "BEGIN;"
                    "CREATE TABLE log (rev INTEGER PRIMARY KEY, res INTEGER NOT NULL,"
                    " ns TEXT NOT NULL, name TEXT NOT NULL, uid TEXT NOT NULL, op INTEGER NOT NULL,"
                    " created INTEGER NOT NULL, sum INTEGER NOT NULL, text TEXT NOT NULL);"
                    "CREATE TABLE resources (id INTEGER PRIMARY KEY,"
                    " name TEXT NOT NULL UNIQUE);"
                    "CREATE TABLE marks (name TEXT PRIMARY KEY,"
                    " rev INTEGER NOT NULL) WITHOUT ROWID;"
                    "PRAGMA user_version = 1;"
                    "COMMIT;",
                    "cannot create tables", err);
}

static int log_prepare_all(struct store_log *log, struct hk_err *err)
{
    const struct {
        const char *sql;
        sqlite3_stmt **ret;
    } all[] = {
        {"BEGIN IMMEDIATE", &log->begin},
        {"COMMIT", &log->commit},
        {"INSERT INTO log (rev, res, ns, name, uid, op, created, sum, text)"
         " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
         &log->insert},
        {"INSERT INTO resources (id, name) VALUES (?, ?)", &log->insert_res},
        {"DELETE FROM log WHERE rev = ?", &log->del},
        {"INSERT OR REPLACE INTO marks (name, rev) VALUES (?, ?)", &log->mark},
    };

    for (size_t i = 0; i < HK_LEN(all); i++) {
        const int rc = log_prepare(log, all[i].sql, all[i].ret, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* What the last process wrote but could not sync may stand in the page cache alone: a crash of the
 * machine would take it, and every later commit in the WAL behind it. So the file gets it, and a
 * sync, before anything is built on it. */
static int settle(struct store_log *log, struct hk_err *err)
{
    const int rc = sqlite3_wal_checkpoint_v2(log->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);

    return rc == SQLITE_OK ? 0 : log_fail(log, rc, "cannot settle the log", err);
}

static int on_wal_commit(void *ctx, sqlite3 *db, const char *name, int frames)
{
    struct store_log *log = ctx;

    log->wal_frames = frames;
    return SQLITE_OK;
}

static int log_open_file(struct store_log *log, const char *path, struct hk_err *err)
{
    int rc = create_file(path, err);

    if (rc < 0) {
        return rc;
    }
    rc = sqlite3_open_v2(path, &log->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc != SQLITE_OK) {
        return log_fail(log, rc, "cannot open", err);
    }
    sqlite3_extended_result_codes(log->db, 1);
    rc = log_configure(log, err);
    rc = rc < 0 ? rc : settle(log, err);
    rc = rc < 0 ? rc : log_prepare_all(log, err);
    if (rc == 0) {
        sqlite3_wal_hook(log->db, on_wal_commit, log);
    }
    return rc;
}

int store_log_open(const char *path, struct store_log **ret, struct hk_err *err)
{
    struct store_log *log = hk_zalloc(sizeof(*log));
    pthread_condattr_t attr;
    int rc = 0;

    queue_init(&log->pushed);
    queue_init(&log->queued);
    queue_init(&log->finished);
    pthread_mutex_init(&log->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&log->wake, &attr);
    pthread_condattr_destroy(&attr);

    log->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (log->fd < 0) {
        rc = hk_fail(err, HK_EIO, "eventfd: %s", strerror(errno));
    } else if (path) {
        rc = log_open_file(log, path, err);
        rc = rc < 0 ? hk_wrap(err, rc, "store '%s'", path) : 0;
    }
    if (rc < 0) {
        store_log_free(log);
        return rc;
    }
    *ret = log;
    return 0;
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
    if (log->fd >= 0) {
        close(log->fd);
    }
    pthread_cond_destroy(&log->wake);
    pthread_mutex_destroy(&log->lock);
    hk_vec_fini(&log->new_res);
    hk_free(log);
}

/* ---- reading ---- */

/* Calls one for each row of the query. */
static int log_each(struct store_log *log, const char *sql, const struct store_log_reader *r,
                    int (*one)(sqlite3_stmt *st, const struct store_log_reader *r,
                               struct hk_err *err),
                    struct hk_err *err)
{
    sqlite3_stmt *st = NULL;
    int step;
    int rc = log_prepare(log, sql, &st, err);

    if (rc < 0) {
        return rc;
    }
    while ((step = sqlite3_step(st)) == SQLITE_ROW) {
        rc = one(st, r, err);
        if (rc < 0) {
            break;
        }
    }
    sqlite3_finalize(st);
    if (rc == 0 && step != SQLITE_DONE) {
        rc = log_fail(log, step, "cannot read", err);
    }
    return rc;
}

static int read_res(sqlite3_stmt *st, const struct store_log_reader *r, struct hk_err *err)
{
    return r->res(r->ctx, (uint32_t)sqlite3_column_int64(st, 0), column_str(st, 1), err);
}

static int read_row(sqlite3_stmt *st, const struct store_log_reader *r, struct hk_err *err)
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

    if (type < STORE_ADDED || type > STORE_DELETED ||
        row_sum((enum store_event_type)type, &o) != (uint64_t)sqlite3_column_int64(st, 7)) {
        return hk_fail(err, HK_EIO, "revision %" PRIu64 " is damaged: its checksum differs", o.rv);
    }
    return r->row(r->ctx, (enum store_event_type)type, &o, err);
}

int store_log_read(struct store_log *log, const struct store_log_reader *r, struct hk_err *err)
{
    int64_t compacted, revision;
    int rc;

    if (!log->db) {
        return 0;
    }
    rc = read_number(log, "SELECT rev FROM marks WHERE name = 'compacted'", &compacted, err);
    if (rc < 0) {
        return rc;
    }
    rc = read_number(log, "SELECT rev FROM marks WHERE name = 'revision'", &revision, err);
    if (rc < 0) {
        return rc;
    }
    r->marks(r->ctx, &(struct store_log_marks){(uint64_t)compacted, (uint64_t)revision});
    rc = log_each(log, "SELECT id, name FROM resources ORDER BY id", r, read_res, err);
    if (rc < 0) {
        return rc;
    }
    return log_each(log,
                    "SELECT rev, res, ns, name, uid, op, created, sum, text FROM log ORDER BY rev",
                    r, read_row, err);
}

/* ---- the thread: transactions ---- */

static int insert_row(struct store_log *log, const struct store_log_item *item)
{
    const struct store_obj *o = item->obj;
    sqlite3_stmt *st = log->insert;

    sqlite3_bind_int64(st, 1, (int64_t)o->rv);
    sqlite3_bind_int64(st, 2, o->res);
    bind_str(st, 3, o->ns);
    bind_str(st, 4, o->name);
    bind_str(st, 5, o->uid);
    sqlite3_bind_int(st, 6, (int)item->type);
    sqlite3_bind_int64(st, 7, (int64_t)o->created_rv);
    sqlite3_bind_int64(st, 8, (int64_t)row_sum(item->type, o));
    bind_str(st, 9, o->text);
    return log_run(st);
}

/* Everything that was named before the batch was taken; a failed commit leaves them for the next.
 */
static int insert_new_res(struct store_log *log, uint32_t *ret_saved)
{
    int rc = SQLITE_OK;

    pthread_mutex_lock(&log->lock);
    *ret_saved = log->new_res.len;
    for (uint32_t i = log->saved_res; rc == SQLITE_OK && i < log->new_res.len; i++) {
        sqlite3_bind_int64(log->insert_res, 1, log->new_res.at[i].res);
        bind_str(log->insert_res, 2, log->new_res.at[i].name);
        rc = log_run(log->insert_res);
    }
    pthread_mutex_unlock(&log->lock);
    return rc;
}

static int set_mark(struct store_log *log, struct hk_str name, uint64_t rev)
{
    bind_str(log->mark, 1, name);
    sqlite3_bind_int64(log->mark, 2, (int64_t)rev);
    return log_run(log->mark);
}

static int delete_rows(struct store_log *log, const struct store_log_item *item)
{
    int rc = set_mark(log, HK_STR("compacted"), item->mark);

    for (uint32_t i = 0; rc == SQLITE_OK && i < item->nrevs; i++) {
        sqlite3_bind_int64(log->del, 1, (int64_t)item->revs[i]);
        rc = log_run(log->del);
    }
    return rc;
}

static int apply_item(struct store_log *log, const struct store_log_item *item)
{
    switch (item->kind) {
    case STORE_LOG_WRITE:
        return insert_row(log, item);
    case STORE_LOG_COMPACT:
        return delete_rows(log, item);
    case STORE_LOG_PROBE:
        return set_mark(log, HK_STR("revision"), item->mark);
    }
    return SQLITE_MISUSE;
}

/* In exclusive mode no reader can be in the way: one that succeeds has moved all frames, and the
 * next commit begins the WAL anew. */
static int checkpoint(struct store_log *log)
{
    const int rc = sqlite3_wal_checkpoint_v2(log->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);

    if (rc == SQLITE_OK) {
        log->wal_frames = 0;
    }
    return rc;
}

/* One transaction over the list; all or nothing. */
static int commit_items(struct store_log *log, const struct store_log_item *items,
                        struct hk_err *err)
{
    uint32_t saved = log->saved_res;
    int rc = SQLITE_OK;

    if (log->wal_frames >= WAL_FRAMES_MAX) {
        rc = checkpoint(log);
    }
    rc = rc != SQLITE_OK ? rc : log_run(log->begin);
    rc = rc != SQLITE_OK ? rc : insert_new_res(log, &saved);
    for (; rc == SQLITE_OK && items; items = items->next) {
        rc = apply_item(log, items);
    }
    rc = rc != SQLITE_OK ? rc : log_run(log->commit);
    if (rc == SQLITE_OK) {
        log->saved_res = saved;
        return 0;
    }
    (void)log_fail(log, rc, "cannot write", err);
    if (!sqlite3_get_autocommit(log->db)) {
        (void)sqlite3_exec(log->db, "ROLLBACK", NULL, NULL, NULL);
    }
    return -HK_EIO;
}

/* ---- the thread: queues ---- */

/* Cuts off *rest what goes into one transaction: writes together, anything else by itself. */
static struct store_log_item *cut_batch(struct store_log_item **rest)
{
    struct store_log_item *head = *rest, *last = head;
    size_t bytes = 0;
    uint32_t n = 1;

    while (head->kind == STORE_LOG_WRITE && last->next && last->next->kind == STORE_LOG_WRITE &&
           n < BATCH_ITEMS && bytes < BATCH_BYTES) {
        last = last->next;
        bytes += last->obj->text.n;
        n++;
    }
    *rest = last->next;
    last->next = NULL;
    return head;
}

static void signal_owner(struct store_log *log)
{
    const uint64_t one = 1;

    /* Fails only when the counter is full, and then the owner wakes up as well. */
    (void)!write(log->fd, &one, sizeof(one));
}

static void finish_items(struct store_log *log, struct store_log_item *items, int rc,
                         const struct hk_err *err)
{
    struct store_log_item *next;

    pthread_mutex_lock(&log->lock);
    log->commits += rc == 0;
    if (err->code != 0) {
        log->err = *err;
    }
    for (; items; items = next) {
        next = items->next;
        items->rc = rc;
        queue_add(&log->finished, items);
    }
    pthread_mutex_unlock(&log->lock);
    signal_owner(log);
}

static void do_items(struct store_log *log, struct store_log_item *items)
{
    struct hk_err err = {0};
    int rc = -HK_EIO;

    if (!log->failed || items->kind == STORE_LOG_PROBE) {
        rc = commit_items(log, items, &err);
        log->failed = rc < 0;
    }
    finish_items(log, items, rc, &err);
    if (!log->failed && log->wal_frames >= WAL_FRAMES) {
        (void)checkpoint(log); /* when it fails the WAL grows, up to WAL_FRAMES_MAX */
    }
}

/* False when time is up first. */
static bool wait_idle(struct store_log *log)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += IDLE_MS * 1000000L;
    t.tv_sec += t.tv_nsec / 1000000000L;
    t.tv_nsec %= 1000000000L;
    return pthread_cond_timedwait(&log->wake, &log->lock, &t) != ETIMEDOUT;
}

/* What waits in the queue; NULL: nothing, and it is time to stop. */
static struct store_log_item *next_items(struct store_log *log)
{
    struct store_log_item *items;

    pthread_mutex_lock(&log->lock);
    log->idle = true;
    while (!log->queued.head && !log->stop) {
        if (log->failed || log->wal_frames < WAL_FRAMES_IDLE) {
            pthread_cond_wait(&log->wake, &log->lock);
        } else if (!wait_idle(log)) {
            pthread_mutex_unlock(&log->lock);
            (void)checkpoint(log); /* tried again after the next pause */
            pthread_mutex_lock(&log->lock);
        }
    }
    log->idle = false;
    items = queue_take(&log->queued);
    pthread_mutex_unlock(&log->lock);
    return items;
}

static void *log_main(void *arg)
{
    struct store_log *log = arg;
    struct store_log_item *items;

    while ((items = next_items(log)) != NULL) {
        while (items) {
            do_items(log, cut_batch(&items));
        }
    }
    return NULL;
}

/* ---- the owner's side ---- */

int store_log_start(struct store_log *log, struct hk_err *err)
{
    sigset_t all, old;
    int rc;

    if (!log->db) {
        return 0;
    }
    /* Signals are the business of the program's own threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&log->thread, NULL, log_main, log);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0) {
        return hk_fail(err, HK_EIO, "cannot start the store's writer: %s", strerror(rc));
    }
    log->running = true;
    return 0;
}

void store_log_stop(struct store_log *log)
{
    store_log_send(log);
    if (!log->running) {
        return;
    }
    pthread_mutex_lock(&log->lock);
    log->stop = true;
    pthread_cond_signal(&log->wake);
    pthread_mutex_unlock(&log->lock);
    pthread_join(log->thread, NULL);
    log->running = false;
}

int store_log_fd(const struct store_log *log)
{
    return log->fd;
}

void store_log_add_res(struct store_log *log, uint32_t res, struct hk_str name)
{
    if (!log->db) {
        return;
    }
    pthread_mutex_lock(&log->lock);
    hk_vec_push(&log->new_res, (struct new_res){res, name});
    pthread_mutex_unlock(&log->lock);
}

void store_log_push(struct store_log *log, struct store_log_item *item)
{
    if (!log->pushed.head) {
        signal_owner(log);
    }
    item->rc = 0;
    queue_add(&log->pushed, item);
    if (++log->npushed >= EARLY_ITEMS && log->idle) {
        store_log_send(log);
    }
}

void store_log_send(struct store_log *log)
{
    if (!log->pushed.head) {
        return;
    }
    pthread_mutex_lock(&log->lock);
    queue_join(log->db ? &log->queued : &log->finished, &log->pushed);
    log->npushed = 0;
    pthread_cond_signal(&log->wake);
    pthread_mutex_unlock(&log->lock);
}

uint64_t store_log_commits(struct store_log *log)
{
    pthread_mutex_lock(&log->lock);
    const uint64_t n = log->commits;
    pthread_mutex_unlock(&log->lock);
    return n;
}

struct store_log_item *store_log_take(struct store_log *log, struct hk_err *ret_err)
{
    struct store_log_item *items;
    uint64_t count;

    /* Before the queue is emptied: what finishes from here on signals again. */
    (void)!read(log->fd, &count, sizeof(count));
    store_log_send(log);
    pthread_mutex_lock(&log->lock);
    items = queue_take(&log->finished);
    *ret_err = log->err;
    pthread_mutex_unlock(&log->lock);
    return items;
}
