// SPDX-License-Identifier: Apache-2.0
// The store: objects by resource, namespace and name, as JSON bytes, under one growing revision.
// Knows nothing of Kubernetes beyond metadata.resourceVersion; rest.h puts the rules on top. One
// thread owns it. A write is checked against the newest staged state and staged; a second thread
// commits many staged writes with one fsync; store_poll then publishes them in order, tells
// watchers and answers callers. Nobody sees or is told of a write before it is durable, and what
// was told survives kill -9.
//
//   submit -> staged (head) -> [poll] -> batch committed by the writer -> [poll] -> published (get,
//   scan, ring) -> done()
#pragma once

#include "base/err.h"
#include "base/vec.h"
#include "codec/json.h"

struct store;

struct store_opts {
    const char *path;     /* database file; NULL: in memory, durable at once */
    uint32_t ring_events; /* history kept for watchers, 0: 100,000 */
    size_t ring_bytes;    /* 0: 256 MiB */
};

/* Shared by the index, the ring and everyone who reads; immutable. */
struct store_obj {
    _Atomic uint32_t refs;
    uint32_t res;
    struct hk_str ns, name, uid; /* in text's block, NUL-terminated */
    uint64_t rv, created_rv;
    struct hk_str text; /* compact JSON with its resourceVersion in it */
};
struct store_obj *store_obj_ref(const struct store_obj *o);
void store_obj_unref(const struct store_obj *o);

/* Opens or makes the database; HK_EBUSY when another process has it open. Reads the log: a torn
 * tail is cut at the last whole commit, a row whose checksum differs fails the call with HK_EIO. */
int store_open(const struct store_opts *o, struct store **ret, struct hk_err *err) HK_CHECKED;
/* Commits what is staged, then ends; whose done was not called yet never hears of it. */
void store_close(struct store *s);

/* Readable when store_poll has something to do. */
int store_fd(const struct store *s);
/* Hands what was staged since the last call to the writer, publishes committed batches and answers
 * their callers; returns how many writes. */
uint32_t store_poll(struct store *s);
/* Waits until everything staged so far is published. For tests and shutdown. */
void store_flush(struct store *s);

/* A number for "plural.group", made on first use, the same after a restart. */
uint32_t store_res(struct store *s, struct hk_str group, struct hk_str plural);

/* ---- reading: published state ---- */

uint64_t store_rv(const struct store *s);
/* Commits to the disk since the store was opened: many writes share one. */
uint64_t store_commits(const struct store *s);
/* Why writes are refused; NULL while the disk works. */
const struct hk_err *store_failure(const struct store *s);
/* Borrowed until the next store_poll; NULL when there is none. */
const struct store_obj *store_get(const struct store *s, uint32_t res, struct hk_str ns,
                                  struct hk_str name);
/* In order of (namespace, name), from behind (after_ns, after_name), which need not exist (both
 * empty: from the start); ns empty: all. Stops when fn returns false. */
typedef bool store_scan_fn(void *ctx, const struct store_obj *o);
void store_scan(const struct store *s, uint32_t res, struct hk_str ns, struct hk_str after_ns,
                struct hk_str after_name, store_scan_fn *fn, void *ctx);
uint32_t store_count(const struct store *s, uint32_t res);

/* ---- writing ---- */

enum store_verb { STORE_CREATE, STORE_UPDATE, STORE_DELETE };

struct store_write {
    enum store_verb verb;
    uint32_t res;
    struct hk_str ns, name;
    struct json *root; /* create, update: its metadata.resourceVersion is set here. Delete: the last
                        * state to show watchers, NULL for the stored one */
    struct hk_arena *mem; /* for changes to root */
    uint64_t expect_rv;   /* of the head; 0: whatever is there */
};
/* rc 0: durable and published, obj its new state (for a delete the last one). -HK_EIO: the disk
 * failed and the write is undone, unless the process dies before that is so on disk as well. */
typedef void store_done_fn(void *ctx, int rc, const struct store_obj *obj,
                           const struct hk_err *err);

/* The newest state, staged writes included: what the next write is checked against. *ret_staged
 * tells whether it is not yet durable. Borrowed until the next call. NULL when there is none. */
const struct store_obj *store_head(const struct store *s, uint32_t res, struct hk_str ns,
                                   struct hk_str name, bool *ret_staged);
/* Fails at once with HK_EEXIST, HK_ENOTFOUND or HK_ECONFLICT, nothing staged; or with HK_EIO when
 * the disk failed earlier, and then makes the writer try whether it works again. done is called
 * later from store_poll, never from here. */
int store_submit(struct store *s, const struct store_write *w, store_done_fn *done, void *ctx,
                 struct hk_err *err) HK_CHECKED;

/* ---- watching ---- */

enum store_event_type { STORE_ADDED, STORE_MODIFIED, STORE_DELETED };
struct store_event {
    enum store_event_type type;
    uint64_t rv;                  /* of the change; a deletion has one of its own */
    const struct store_obj *obj;  /* DELETED: the last state, with this revision in its text */
    const struct store_obj *prev; /* before the change, NULL for ADDED */
};
/* The next published event of the resource (and namespace, when not empty) after *rv, which moves
 * on past it; to store_rv when there is none. *ret is borrowed until the next store_poll. Gone when
 * *rv is older than the history. */
enum store_next { STORE_NEXT_NONE, STORE_NEXT_EVENT, STORE_NEXT_GONE };
enum store_next store_next(const struct store *s, uint32_t res, struct hk_str ns, uint64_t *rv,
                           struct store_event *ret);
/* The oldest revision a watch can start from. */
uint64_t store_oldest_rv(const struct store *s);
/* fn is called at the end of each store_poll that published something. */
void store_on_publish(struct store *s, void (*fn)(void *ctx), void *ctx);
/* No longer, for who ends before the store; not from inside such a call. */
void store_off_publish(struct store *s, void (*fn)(void *ctx), void *ctx);
/* Called now and then by the owner: drops revisions older than the history from the file, a slice
 * at a time; further slices follow by themselves while no writes wait. After a disk failure, tries
 * whether writes work again. */
void store_compact(struct store *s);
