// SPDX-License-Identifier: Apache-2.0
// The store: objects by resource, namespace and name, as JSON bytes, under one growing revision. Of
// Kubernetes it knows only metadata.resourceVersion and, on a full disk, the deletion mark; rest.h
// adds the rules. One thread owns it. A write is checked against the newest staged state and
// staged; a second thread commits many staged writes with one fsync; store_poll then publishes them
// in order, notifies watchers and answers callers. No write is visible before it is durable, and a
// published write survives kill -9.
//
//   submit -> staged (head) -> [poll] -> batch committed by the writer -> [poll] -> published (get,
//   scan, ring) -> done()
#pragma once

#include "base/budget.h"
#include "base/err.h"
#include "base/vec.h"
#include "codec/json.h"

struct store;

struct store_opts {
    const char *path;         /* database file; NULL: in memory, durable at once */
    uint32_t ring_events;     /* history kept for watchers, 0: 100,000 */
    size_t ring_bytes;        /* 0: 256 MiB, or an eighth of the machine's memory */
    struct hk_budget *budget; /* limits of memory for writes; NULL: none */
    uint64_t ballast_bytes;   /* disk space to reserve, released when the disk is full; 0: none */
    bool must_exist;          /* a store existed here: a missing file is a loss */
    int64_t now_s; /* wall time, for the number of a new generation; 0: the last number plus one */
    bool accept_loss; /* continue without missing data, in a new generation of revisions */
    /* For simulations, which must repeat byte for byte: store_poll itself commits what the previous
     * poll sent, without a second thread, and the file belongs to the named SQLite VFS. */
    bool no_thread;
    const char *vfs; /* NULL: the default one */
};

/* Shared by index, ring and readers; immutable. */
struct store_obj {
    _Atomic uint32_t refs;
    uint32_t res;
    struct hk_str ns, name, uid; /* in text's block, NUL-terminated */
    uint64_t rv, created_rv;
    struct hk_str text; /* compact JSON, including resourceVersion */
};
struct store_obj *store_obj_ref(const struct store_obj *o);
void store_obj_unref(const struct store_obj *o);

/* Opens or creates the database; HK_EBUSY when another process has it open. Reads the log and cuts
 * a torn tail at the last whole commit. Fails with HK_EIO, leaving everything as it is, when
 * acknowledged data is missing or damaged. Deletes a damaged row that a later one replaced, and
 * logs it. */
int store_open(const struct store_opts *o, struct store **ret, struct hk_err *err) HK_CHECKED;
/* Commits staged writes, then ends; their done callbacks are not called. */
void store_close(struct store *s);

/* Readable when store_poll has something to do. */
int store_fd(const struct store *s);
/* Sends newly staged writes to the writer, publishes committed batches and answers their callers;
 * returns the number of writes. */
uint32_t store_poll(struct store *s);
/* Waits until everything staged so far is published. For tests and shutdown. */
void store_flush(struct store *s);

/* The number of "plural.group", assigned on first use and kept across restarts. */
uint32_t store_res(struct store *s, struct hk_str group, struct hk_str plural);

/* ---- reading: published state ---- */

uint64_t store_rv(const struct store *s);
/* Number of disk commits since store_open; many writes share one. */
uint64_t store_commits(const struct store *s);
/* Why writes are refused; NULL while all are accepted. HK_EFULL: the disk is full, and only
 * deletions are accepted; or memory is short, and only writes that need no more of it are. */
const struct hk_err *store_failure(const struct store *s);
/* The same, but only for failures of the disk. */
const struct hk_err *store_disk_failure(const struct store *s);
/* Borrowed until the next store_poll; NULL when there is none. */
const struct store_obj *store_get(const struct store *s, uint32_t res, struct hk_str ns,
                                  struct hk_str name);
/* Ordered by (namespace, name), starting after (after_ns, after_name), which need not exist (both
 * empty: from the start); ns empty: all. Stops when fn returns false. */
typedef bool store_scan_fn(void *ctx, const struct store_obj *o);
void store_scan(const struct store *s, uint32_t res, struct hk_str ns, struct hk_str after_ns,
                struct hk_str after_name, store_scan_fn *fn, void *ctx);
uint32_t store_count(const struct store *s, uint32_t res);
/* The number of objects in one namespace, including staged creations. */
uint32_t store_count_in(const struct store *s, uint32_t res, struct hk_str ns);

/* ---- writing ---- */

enum store_verb { STORE_CREATE, STORE_UPDATE, STORE_DELETE };

struct store_write {
    enum store_verb verb;
    uint32_t res;
    struct hk_str ns, name;
    struct json *root; /* create, update: store_submit sets its resourceVersion. Delete: last state
                        * for watchers, NULL: the stored one */
    struct hk_arena *mem; /* for changes to root */
    uint64_t expect_rv;   /* of the head; 0: whatever is there */
    bool vital; /* essential for the system: may use a little memory even when it is short */
};
/* rc 0: durable and published; obj is the new state (after a delete the last one). -HK_EIO: the
 * disk failed and the write is undone, unless the process dies before the undo is on disk. */
typedef void store_done_fn(void *ctx, int rc, const struct store_obj *obj,
                           const struct hk_err *err);

/* The newest state, staged or published, against which the next write is checked. *ret_staged says
 * whether it is not yet durable. Borrowed until the next call. NULL when there is none. */
const struct store_obj *store_head(const struct store *s, uint32_t res, struct hk_str ns,
                                   struct hk_str name, bool *ret_staged);
/* May fail at once, with nothing staged: with HK_EEXIST, HK_ENOTFOUND or HK_ECONFLICT; with HK_EIO
 * after a failure of the disk, or HK_EFULL when it is full and the write is no deletion (both make
 * the writer test the disk again); with HK_EFULL when memory is short and the write needs more of
 * it. done is called later from store_poll, never from here. */
int store_submit(struct store *s, const struct store_write *w, store_done_fn *done, void *ctx,
                 struct hk_err *err) HK_CHECKED;

/* ---- watching ---- */

enum store_event_type { STORE_ADDED, STORE_MODIFIED, STORE_DELETED };
struct store_event {
    enum store_event_type type;
    uint64_t rv;                  /* of the change; a deletion has its own */
    const struct store_obj *obj;  /* DELETED: the last state, with this revision in its text */
    const struct store_obj *prev; /* before the change, NULL for ADDED */
};
/* Returns the next published event of the resource (and namespace, when not empty) after *rv, and
 * sets *rv to its revision, or to store_rv when there is none. *ret is borrowed until the next
 * store_poll. GONE when *rv is older than the history. */
enum store_next { STORE_NEXT_NONE, STORE_NEXT_EVENT, STORE_NEXT_GONE };
enum store_next store_next(const struct store *s, uint32_t res, struct hk_str ns, uint64_t *rv,
                           struct store_event *ret);
/* The oldest revision a watch can start from. */
uint64_t store_oldest_rv(const struct store *s);
/* Calls fn at the end of each store_poll that published something; all of it is still in the
 * history then, even in a short one. */
void store_on_publish(struct store *s, void (*fn)(void *ctx), void *ctx);
/* Unregisters fn. Must not be called from inside fn. */
void store_off_publish(struct store *s, void (*fn)(void *ctx), void *ctx);
/* Gives up most of the history if memory is short. */
void store_shed(struct store *s);
/* Called from time to time by the owner: drops revisions older than the history from the file, a
 * slice at a time; further slices follow by themselves while no writes wait. After a disk failure,
 * tries whether writes work again. */
void store_compact(struct store *s);
