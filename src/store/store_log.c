// SPDX-License-Identifier: Apache-2.0
// The store on disk: one append-only table in SQLite, a row per revision, and the thread that
// writes it. The owner opens and reads the file, then gives the connection to the thread and
// exchanges items with it through two queues; an eventfd signals the owner that items came back.
//
//   push, send -> queued -> [thread: BEGIN, all that waits, COMMIT = one fsync] -> finished -> take
//
// SQLite's exclusive mode locks the file for one process and needs no shared-memory index of the
// WAL. SQLite drops a commit that a crash interrupted, because it checks the frames of the WAL. The
// witness shows whether anything else is missing: opening and reading compare the file with it
// (store_evidence.c), and each commit updates it.
//
// After a failed write or sync the kernel may mark pages clean that never reached the disk. None of
// them counts: a failed commit was not acknowledged and the next one overwrites its frames, and a
// failed checkpoint moves all its frames again. So a successful commit proves recovery, and no
// restart is needed.
#include "store/store_log_priv.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

/* How far the witness on disk may be behind under load. */
#define WITNESS_LAG_NS ((int64_t)2 * 1000 * 1000 * 1000)

enum {
    BATCH_ITEMS = 1024,        /* most writes in one commit, */
    BATCH_BYTES = 8 << 20,     /* and about how much text: limits how long the first one waits */
    WAL_FRAMES = 1024,         /* 16 MiB: checkpoint after the commit that reaches this, */
    WAL_FRAMES_IDLE = 64,      /* or this after an idle time, */
    WAL_FRAMES_MAX = 8 * 1024, /* and if that keeps failing, refuse writes from this size on */
    IDLE_MS = 200,
    EARLY_ITEMS = 16, /* this many are sent before the end of the owner's turn */
};

static void queue_add(struct store_queue *q, struct store_log_item *item)
{
    item->next = NULL;
    *q->tail = item;
    q->tail = &item->next;
}

/* Appends the items of from and empties it. */
static void queue_join(struct store_queue *q, struct store_queue *from)
{
    if (from->head) {
        *q->tail = from->head;
        q->tail = from->tail;
        store_queue_init(from);
    }
}

static struct store_log_item *queue_take(struct store_queue *q)
{
    struct store_log_item *head = q->head;

    store_queue_init(q);
    return head;
}

/* ---- the thread: transactions ---- */

/* The marks and the witness after a successful commit. */
struct outcome {
    struct store_marks marks;
    struct store_told told;
    uint32_t saved_res;
    bool marked;
};

static int insert_row(struct store_log *log, const struct store_log_item *item, struct outcome *out)
{
    uint64_t sum;
    const int rc = store_db_insert(log->insert, item->type, item->obj, &sum);

    out->told.inserted ^= sum;
    out->told.ninserted++;
    out->told.rev = HK_MAX(out->told.rev, item->obj->rv);
    return rc;
}

/* Inserts the resources that were named before the batch was cut. After a failed commit the next
 * one inserts them. */
static int insert_new_res(struct store_log *log, struct outcome *out)
{
    int rc = SQLITE_OK;

    pthread_mutex_lock(&log->lock);
    for (; rc == SQLITE_OK && out->saved_res < log->new_res.len; out->saved_res++) {
        const struct store_new_res *r = &log->new_res.at[out->saved_res];

        rc = store_db_insert_res(log->insert_res, r->res, r->name);
        out->marks.resources = store_db_sum_res(out->marks.resources, r->res, r->name);
        out->marked = true;
    }
    pthread_mutex_unlock(&log->lock);
    return rc;
}

/* A missing row does not change the count of removed rows. */
static int delete_row(struct store_log *log, uint64_t rev, struct outcome *out)
{
    int rc;

    sqlite3_bind_int64(log->del, 1, (int64_t)rev);
    rc = sqlite3_step(log->del);
    if (rc == SQLITE_ROW) {
        out->marks.removed ^= (uint64_t)sqlite3_column_int64(log->del, 0);
        out->marks.nremoved++;
        rc = sqlite3_step(log->del);
    }
    sqlite3_reset(log->del);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int delete_rows(struct store_log *log, const struct store_log_item *item,
                       struct outcome *out)
{
    int rc = SQLITE_OK;

    for (uint32_t i = 0; rc == SQLITE_OK && i < item->nrevs; i++) {
        rc = delete_row(log, item->revs[i], out);
    }
    out->marks.compacted = item->mark;
    out->marked = true;
    return rc;
}

static int apply_item(struct store_log *log, const struct store_log_item *item, struct outcome *out)
{
    switch (item->kind) {
    case STORE_LOG_WRITE:
        return insert_row(log, item, out);
    case STORE_LOG_COMPACT:
        return delete_rows(log, item, out);
    case STORE_LOG_PROBE:
        out->marks.revision = HK_MAX(out->marks.revision, item->mark);
        out->marked = true;
        return SQLITE_OK;
    }
    return SQLITE_MISUSE;
}

static int64_t mono_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void sync_witness(struct store_log *log)
{
    log->synced_ns = mono_ns();
    log->unsynced = store_witness_sync(log->witness) < 0; /* retried after the next commit */
}

/* In exclusive mode there are no other readers: a successful checkpoint has moved all frames, and
 * the next commit starts the WAL from its beginning. The witness is synced only with some
 * checkpoints, because each sync costs writers one more disk flush. */
static int checkpoint(struct store_log *log)
{
    const int rc = sqlite3_wal_checkpoint_v2(log->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);

    if (rc == SQLITE_OK) {
        log->wal_frames = 0;
        if (log->witness && mono_ns() - log->synced_ns > WITNESS_LAG_NS) {
            sync_witness(log);
        }
    }
    return rc;
}

static int write_items(struct store_log *log, const struct store_log_item *items,
                       struct outcome *out)
{
    int rc = SQLITE_OK;

    if (log->wal_frames >= WAL_FRAMES_MAX) {
        rc = checkpoint(log);
    }
    rc = rc != SQLITE_OK ? rc : store_db_run(log->begin);
    rc = rc != SQLITE_OK ? rc : insert_new_res(log, out);
    for (; rc == SQLITE_OK && items; items = items->next) {
        rc = apply_item(log, items, out);
    }
    if (rc == SQLITE_OK && out->marked) {
        rc = store_db_write_marks(log->mark, &out->marks);
    }
    return rc != SQLITE_OK ? rc : store_db_run(log->commit);
}

/* One transaction over the list; all or nothing. If the witness cannot be written, it stays one
 * commit behind until the next commit. */
static int commit_items(struct store_log *log, const struct store_log_item *items,
                        struct hk_err *err)
{
    struct outcome out = {.marks = log->marks, .told = log->told, .saved_res = log->saved_res};
    int rc = write_items(log, items, &out);

    if (rc == SQLITE_OK) {
        log->saved_res = out.saved_res;
        log->marks = out.marks;
        log->told = out.told;
        log->unsynced = log->witness != NULL;
        if (log->witness) {
            (void)!store_witness_write(log->witness, &log->told);
        }
        return 0;
    }
    rc = store_db_fail(log->db, rc, "cannot write", err);
    if (!sqlite3_get_autocommit(log->db)) {
        (void)sqlite3_exec(log->db, "ROLLBACK", NULL, NULL, NULL);
    }
    return rc;
}

/* On a full disk, frees the ballast and tries once more. */
static int commit_with_ballast(struct store_log *log, const struct store_log_item *items,
                               struct hk_err *err)
{
    int rc = commit_items(log, items, err);

    if (rc == -HK_EFULL && store_ballast_drop(log->ballast, false)) {
        rc = commit_items(log, items, err);
    }
    if (rc == 0 && items->kind == STORE_LOG_PROBE) {
        (void)store_ballast_take(log->ballast, store_db_spare(log->db));
    }
    if (rc < 0) {
        return -HK_EIO; /* the disk refuses writes even with the freed space */
    }
    log->is_short = !store_ballast_held(log->ballast);
    return 0;
}

/* ---- the thread: queues ---- */

/* Cuts one transaction off *rest: writes together, any other item alone. */
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

    /* Fails only when the counter is full; the owner wakes up then, too. */
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
        log->err.code = HK_EIO; /* a full disk that refuses everything counts as failed */
    }
    for (; items; items = next) {
        next = items->next;
        items->rc = rc;
        queue_add(&log->finished, items);
    }
    pthread_mutex_unlock(&log->lock);
    signal_owner(log);
}

/* Rows must not be deleted before the witness on disk knows them: after a power loss it would
 * report them as missing. */
static int prepare_items(struct store_log *log, const struct store_log_item *items,
                         struct hk_err *err)
{
    if (items->kind == STORE_LOG_COMPACT && log->unsynced) {
        sync_witness(log);
        return log->unsynced ? hk_fail(err, HK_EIO, "cannot sync the witness: %m") : 0;
    }
    return 0;
}

static void do_items(struct store_log *log, struct store_log_item *items)
{
    struct hk_err err = {0};
    int rc = -HK_EIO;

    if (!log->failed || items->kind == STORE_LOG_PROBE) {
        rc = prepare_items(log, items, &err);
        if (rc == 0) {
            rc = commit_with_ballast(log, items, &err);
        }
        log->failed = rc < 0;
    }
    finish_items(log, items, rc, &err);
    if (!log->failed && log->wal_frames >= (log->is_short ? WAL_FRAMES_IDLE : WAL_FRAMES)) {
        (void)checkpoint(log); /* on failure the WAL grows, up to WAL_FRAMES_MAX */
    }
}

/* False: the time is up. */
static bool wait_idle(struct store_log *log)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += IDLE_MS * 1000000L;
    t.tv_sec += t.tv_nsec / 1000000000L;
    t.tv_nsec %= 1000000000L;
    return pthread_cond_timedwait(&log->wake, &log->lock, &t) != ETIMEDOUT;
}

static bool has_upkeep(const struct store_log *log)
{
    return log->wal_frames >= WAL_FRAMES_IDLE || log->unsynced;
}

static void do_upkeep(struct store_log *log)
{
    if (log->wal_frames >= WAL_FRAMES_IDLE) {
        (void)checkpoint(log); /* retried after the next pause */
    }
    if (log->unsynced) {
        (void)!store_witness_sync(log->witness);
        log->unsynced = false; /* a failed sync is retried after the next commit */
    }
}

/* The items in the queue; NULL: none, and the thread must stop. */
static struct store_log_item *next_items(struct store_log *log)
{
    struct store_log_item *items;

    pthread_mutex_lock(&log->lock);
    log->idle = true;
    while (!log->queued.head && !log->stop) {
        if (log->failed || !has_upkeep(log)) {
            pthread_cond_wait(&log->wake, &log->lock);
        } else if (!wait_idle(log)) {
            pthread_mutex_unlock(&log->lock);
            do_upkeep(log);
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

/* Does the thread's work on the owner's thread: commits the sent items, or does maintenance if
 * there are none. */
static void commit_queued(struct store_log *log)
{
    struct store_log_item *items = queue_take(&log->queued);

    if (!items && has_upkeep(log)) {
        do_upkeep(log);
    }
    while (items) {
        do_items(log, cut_batch(&items));
    }
}

int store_log_start(struct store_log *log, struct hk_err *err)
{
    sigset_t all, old;
    int rc;

    if (!log->db || log->no_thread) {
        return 0;
    }
    /* Only the program's own threads handle signals. */
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
    if (log->no_thread && log->db) {
        commit_queued(log);
    }
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
    hk_vec_push(&log->new_res, (struct store_new_res){res, name});
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
    if (log->no_thread) {
        signal_owner(log); /* store_log_take commits */
    }
}

bool store_log_is_short(const struct store_log *log)
{
    return log->is_short;
}

uint64_t store_log_identity(const struct store_log *log)
{
    return log->identity;
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

    if (log->no_thread && log->db) {
        commit_queued(log);
    }
    /* Before the queue is emptied: an item that finishes later signals again. */
    (void)!read(log->fd, &count, sizeof(count));
    store_log_send(log);
    pthread_mutex_lock(&log->lock);
    items = queue_take(&log->finished);
    *ret_err = log->err;
    pthread_mutex_unlock(&log->lock);
    return items;
}
