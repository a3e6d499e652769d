// SPDX-License-Identifier: Apache-2.0
// What the parts of the store share: the ordered index of one resource, and the log with its writer
// thread.
#pragma once

#include "store/store.h"

/* A copy of o's strings and numbers in one block, with one reference. */
struct store_obj *store_obj_new(const struct store_obj *o);

/* ---- index: the objects of one resource by (namespace, name); holds no references ---- */

struct index_node;

/* Ready when zeroed. */
struct store_index {
    struct index_node *root;
    uint32_t len;
};

struct store_key {
    struct hk_str ns, name;
};

typedef void store_index_end_fn(const struct store_obj *o);
/* Calls end for every object. */
void store_index_fini(struct store_index *ix, store_index_end_fn *end);
const struct store_obj *store_index_get(const struct store_index *ix, struct store_key key);
/* Adds o or puts it in the place of the one with its key, which is returned. */
const struct store_obj *store_index_put(struct store_index *ix, const struct store_obj *o);
/* Returns what was removed, or NULL. */
const struct store_obj *store_index_del(struct store_index *ix, struct store_key key);
/* In order, from the first key behind `after` on. */
void store_index_scan(const struct store_index *ix, struct store_key after, store_scan_fn *fn,
                      void *ctx);

/* ---- ring: recent events ---- */

/* at[(first + i) & (cap - 1)]; ready when zeroed but for the limits. */
struct store_ring {
    struct store_event *at;
    uint32_t first, len, cap; /* cap is 0 or a power of two */
    size_t bytes;             /* of the objects it refers to */
    uint64_t oldest_rv;       /* events behind this one are here */
    uint32_t max_events;
    size_t max_bytes;
};

void store_ring_fini(struct store_ring *r);
const struct store_event *store_ring_at(const struct store_ring *r, uint32_t i);
/* The position of the first event behind rv. */
uint32_t store_ring_find(const struct store_ring *r, uint64_t rv);
/* Takes the references of e, and may be over its limits then. */
void store_ring_push(struct store_ring *r, const struct store_event *e);
bool store_ring_over(const struct store_ring *r);
/* Drops the oldest event. replaced: a later event has its object as prev. */
void store_ring_shift(struct store_ring *r, bool replaced);

/* ---- log: rows on disk, written by a thread of its own ---- */

struct store_log;

enum store_log_kind {
    STORE_LOG_WRITE,   /* append obj */
    STORE_LOG_COMPACT, /* delete revs, and note that history begins behind mark */
    STORE_LOG_PROBE, /* after a failure: does the disk work again? mark: highest revision given out
                      */
};

/* Belongs to the log from push to take. */
struct store_log_item {
    struct store_log_item *next;
    enum store_log_kind kind;
    int rc; /* the outcome: 0 or -HK_EIO */
    enum store_event_type type;
    const struct store_obj *obj;
    const uint64_t *revs;
    uint32_t nrevs;
    uint64_t mark;
};

struct store_log_marks {
    uint64_t compacted; /* what happened up to here is incomplete: no history */
    uint64_t revision;  /* none up to here is given out again */
};

struct store_log_reader {
    void *ctx;
    void (*marks)(void *ctx, const struct store_log_marks *m);
    /* Resources come in the order of their numbers. */
    int (*res)(void *ctx, uint32_t res, struct hk_str name, struct hk_err *err);
    /* Rows come in the order of revisions; o's strings are borrowed. */
    int (*row)(void *ctx, enum store_event_type type, const struct store_obj *o,
               struct hk_err *err);
};

/* Opens and locks the file. Without a path nothing is kept and every item succeeds at once. */
int store_log_open(const char *path, struct store_log **ret, struct hk_err *err) HK_CHECKED;
/* Reads everything, before start. */
int store_log_read(struct store_log *log, const struct store_log_reader *r,
                   struct hk_err *err) HK_CHECKED;
int store_log_start(struct store_log *log, struct hk_err *err) HK_CHECKED;
/* Ends the thread when it has done all that was pushed. The outcomes can still be taken. */
void store_log_stop(struct store_log *log);
void store_log_free(struct store_log *log);

/* Readable when there is something to send or to take. */
int store_log_fd(const struct store_log *log);
/* A number for rows to refer to; on disk before the first of them. name must outlive the log. */
void store_log_add_res(struct store_log *log, uint32_t res, struct hk_str name);
/* Takes the item until it comes back. After a write has failed, all behind it fail as well, until a
 * probe succeeds: they were checked against a state that never came to be. */
void store_log_push(struct store_log *log, struct store_log_item *item);
/* Hands what was pushed to the thread. Apart from push, so that the writes of one turn of the
 * owner's loop share a commit; of a long turn, those that pile up while the thread is busy. */
void store_log_send(struct store_log *log);
/* Sends, then takes: the finished items in the order of the pushes; *ret_err tells of the last
 * failure, if any. */
struct store_log_item *store_log_take(struct store_log *log, struct hk_err *ret_err);
/* How many transactions are on disk. */
uint64_t store_log_commits(struct store_log *log);

/* ---- heads: the newest staged write of each key ---- */

/* A write on its way to the disk. */
struct store_stage {
    struct store_log_item item; /* must be first; its obj holds a reference */
    struct store_stage *chain;  /* in the table of heads, or in the list of spare ones */
    uint64_t hash;
    bool in_heads; /* false once a newer write of the key has taken its place */
    store_done_fn *done;
    void *ctx;
};

/* Ready when zeroed. */
struct store_heads {
    struct store_stage **slots; /* chains */
    uint32_t len, nslots;       /* nslots is 0 or a power of two */
};

uint64_t store_key_hash(uint32_t res, struct store_key key);
struct store_stage *store_heads_find(const struct store_heads *h, uint64_t hash, uint32_t res,
                                     struct store_key key);
void store_heads_add(struct store_heads *h, struct store_stage *st);
void store_heads_del(struct store_heads *h, struct store_stage *st);
