// SPDX-License-Identifier: Apache-2.0
// Shared by the files of the store.
#pragma once

#include "store/store.h"

/* A copy of o's strings and numbers in one block, with one reference. */
struct store_obj *store_obj_new(const struct store_obj *o);

/* ---- index: the objects of one resource by (namespace, name); holds no references ---- */

struct index_node;

/* Zero it to initialise. */
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
/* Adds o; returns the object it replaced, or NULL. */
const struct store_obj *store_index_put(struct store_index *ix, const struct store_obj *o);
/* Returns the removed object, or NULL. */
const struct store_obj *store_index_del(struct store_index *ix, struct store_key key);
/* In order, starting after the key `after`. */
void store_index_scan(const struct store_index *ix, struct store_key after, store_scan_fn *fn,
                      void *ctx);

/* ---- ring: recent events ---- */

/* Event i is at[(first + i) & (cap - 1)]. Zero it and set the limits to initialise. */
struct store_ring {
    struct store_event *at;
    uint32_t first, len, cap; /* cap is 0 or a power of two */
    size_t bytes;             /* of the referenced objects */
    uint64_t oldest_rv;       /* the ring has all events after this */
    uint32_t max_events;
    size_t max_bytes;
};

void store_ring_fini(struct store_ring *r);
const struct store_event *store_ring_at(const struct store_ring *r, uint32_t i);
/* The position of the first event after rv. */
uint32_t store_ring_find(const struct store_ring *r, uint64_t rv);
/* Takes the references of e. The ring may then exceed its limits. */
void store_ring_push(struct store_ring *r, const struct store_event *e);
bool store_ring_over(const struct store_ring *r);
/* Drops the oldest event. replaced: a later event has its object as prev. */
void store_ring_shift(struct store_ring *r, bool replaced);

/* ---- witness: a separate file that records the newest durable revision ---- */

enum store_told_found {
    STORE_TOLD_NOTHING, /* no witness file */
    STORE_TOLD_DAMAGED, /* no slot is intact */
    STORE_TOLD,
};

/* The content of a witness. */
struct store_told {
    enum store_told_found found;
    uint64_t identity;            /* of the store */
    uint64_t rev;                 /* the highest durable revision */
    uint64_t inserted, ninserted; /* digest and number of all rows up to rev, even deleted ones */
    bool clean;                   /* the store was closed cleanly after that */
};

struct store_witness;

/* Appends the path of the witness file. */
void store_witness_path(const char *db_path, struct hk_buf *out);
int store_witness_read(const char *db_path, struct store_told *ret, struct hk_err *err) HK_CHECKED;
/* Opens or creates the file, writes told and syncs. */
int store_witness_open(const char *db_path, const struct store_told *told,
                       struct store_witness **ret, struct hk_err *err) HK_CHECKED;
/* The last written content. */
const struct store_told *store_witness_told(const struct store_witness *w);
/* A failure keeps the previous content. */
int store_witness_write(struct store_witness *w, const struct store_told *told) HK_CHECKED;
int store_witness_sync(struct store_witness *w) HK_CHECKED;
/* Takes NULL. */
void store_witness_free(struct store_witness *w);

/* ---- WAL: SQLite's write-ahead log, read directly ---- */

struct store_wal {
    uint32_t good, len; /* frames before the first bad one, and in total */
    bool cut;           /* synced commits follow a bad frame */
};
/* A missing file counts as empty. */
int store_wal_scan(const char *db_path, struct store_wal *ret, struct hk_err *err) HK_CHECKED;
/* Writes a WAL for copy_path that includes the bad frame and those after it; rows have their own
 * checksums. */
int store_wal_write_repaired(const char *db_path, const char *copy_path,
                             struct hk_err *err) HK_CHECKED;

/* ---- damaged rows ---- */

/* Columns and text of a damaged row may name two objects. superseded has bit 0 when a later row of
 * by_columns was read, bit 1 for by_text. */
struct store_damaged_row {
    uint64_t rv;
    struct store_obj *by_columns, *by_text; /* without text */
    unsigned superseded;
};

/* Zero it to initialise. */
struct store_damaged {
    HK_VEC(struct store_damaged_row) rows;
};

void store_damaged_fini(struct store_damaged *d);
void store_damaged_add(struct store_damaged *d, const struct store_obj *row);
/* An intact row was read. */
void store_damaged_pass(struct store_damaged *d, const struct store_obj *row);
/* Later rows have replaced every object it may name. */
bool store_damaged_is_old(const struct store_damaged_row *row);
/* Appends "resource namespace/name". */
void store_damaged_name(const struct store_damaged_row *row, const char *resource,
                        struct hk_buf *out);
/* Fails with HK_EIO, naming the object, when a damaged row was the last one of its object. Logs the
 * others. */
int store_damaged_check(const struct store_damaged *d, const char *(*res_name)(void *, uint32_t),
                        void *ctx, struct hk_err *err) HK_CHECKED;

/* ---- verdict: comparing file and witness ---- */

struct store_evidence {
    bool exists;     /* the file has tables */
    bool must_exist; /* store_opts.must_exist */
    struct store_told told;
    struct store_wal wal;
    uint64_t identity, rev;     /* of the file; identity 0: an old file without witness */
    uint64_t removed, nremoved; /* from the marks */
    bool read;                  /* the fields below are filled in */
    /* Rows up to told.rev: digest of the intact ones, number of all, number of damaged ones. */
    uint64_t present, npresent, ndamaged;
};
/* 0, or -HK_EIO when acknowledged data is missing, or may be. */
int store_evidence_check(const struct store_evidence *e, struct hk_err *err) HK_CHECKED;
/* Counts one more row. */
void store_evidence_count(struct store_evidence *e, const struct store_obj *o, uint64_t sum,
                          bool damaged);

/* ---- ballast: reserved disk space, released when the disk is full ---- */

struct store_ballast;

/* Reserves `bytes` if the disk has enough; 0: never reserves anything. */
struct store_ballast *store_ballast_open(const char *db_path, uint64_t bytes);
/* Releases all of it, or all but what the next start needs; false when there was none. */
bool store_ballast_drop(struct store_ballast *b, bool all);
/* Reserves it again; true when it is complete or not wanted. Free pages of the database count: its
 * file never shrinks, so deletions need not return space to the disk. */
bool store_ballast_take(struct store_ballast *b, uint64_t spare_bytes);
bool store_ballast_held(const struct store_ballast *b);
/* Keeps the space reserved. Takes NULL. */
void store_ballast_free(struct store_ballast *b);

/* ---- log: rows on disk, written by a separate thread ---- */

struct store_log;

enum store_log_kind {
    STORE_LOG_WRITE,   /* append obj */
    STORE_LOG_COMPACT, /* delete revs, and record that history starts after mark */
    STORE_LOG_PROBE,   /* after a failure: test the disk. mark: highest revision used */
};

/* The log owns it from push to take. */
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

struct store_log_reader {
    void *ctx;
    /* compacted: history up to there is incomplete; revision: none up to there is used again. */
    void (*marks)(void *ctx, uint64_t compacted, uint64_t revision);
    /* In the order of their numbers. */
    int (*res)(void *ctx, uint32_t res, struct hk_str name, struct hk_err *err);
    /* In the order of revisions; o's strings are borrowed. */
    int (*row)(void *ctx, enum store_event_type type, const struct store_obj *o, uint64_t sum,
               struct hk_err *err);
    /* A row with a wrong checksum: any field may be wrong. */
    int (*damaged)(void *ctx, const struct store_obj *o, struct hk_err *err);
};

/* Opens and locks the file, and compares it with its witness. Without a path nothing is stored and
 * every item succeeds at once. */
int store_log_open(const struct store_opts *o, struct store_log **ret,
                   struct hk_err *err) HK_CHECKED;
/* Reads everything. Call before store_log_start. */
int store_log_read(struct store_log *log, const struct store_log_reader *r,
                   struct hk_err *err) HK_CHECKED;
/* Compares what was read with the witness. Deletes the damaged rows; starts a new generation if
 * data is missing and accept_loss is set; prepares file and witness for writing. *ret is the first
 * revision of the new generation, 0 if there is none. */
int store_log_settle(struct store_log *log, const uint64_t *damaged, uint32_t ndamaged,
                     uint64_t *ret, struct hk_err *err) HK_CHECKED;
int store_log_start(struct store_log *log, struct hk_err *err) HK_CHECKED;
/* Ends the thread after all pushed items. Their outcomes can still be taken. */
void store_log_stop(struct store_log *log);
void store_log_free(struct store_log *log);

/* Readable when there are items to send or to take. */
int store_log_fd(const struct store_log *log);
/* Adds a resource number; written to disk before its first row. name must outlive the log. */
void store_log_add_res(struct store_log *log, uint32_t res, struct hk_str name);
/* Takes the item until store_log_take. After a failed write all later ones fail, too, until a probe
 * succeeds: they were checked against a state that was never stored. */
void store_log_push(struct store_log *log, struct store_log_item *item);
/* Sends pushed items to the thread. Separate from push, so that all writes of one loop iteration
 * share a commit; in a long iteration, those that arrive while the thread is busy. */
void store_log_send(struct store_log *log);
/* Sends, then returns the finished items in push order; *ret_err describes the last failure, if
 * any. */
struct store_log_item *store_log_take(struct store_log *log, struct hk_err *ret_err);
/* The number of committed transactions. */
uint64_t store_log_commits(struct store_log *log);
/* The disk is full and writes use the released ballast. A probe finds out when this ends. */
bool store_log_is_short(const struct store_log *log);
/* Random number from the file's creation; 0 without a file. */
uint64_t store_log_identity(const struct store_log *log);

/* ---- heads: the newest staged write of each key ---- */

/* A staged write. */
struct store_stage {
    struct store_log_item item; /* must be first; its obj holds a reference */
    struct store_stage *chain;  /* next in the table of heads, or in the free list */
    uint64_t hash;
    bool in_heads; /* false once a newer write of the key replaced it */
    store_done_fn *done;
    void *ctx;
};

/* Zero it to initialise. */
struct store_heads {
    struct store_stage **slots; /* chains */
    uint32_t len, nslots;       /* nslots is 0 or a power of two */
};

uint64_t store_key_hash(uint32_t res, struct store_key key);
struct store_stage *store_heads_find(const struct store_heads *h, uint64_t hash, uint32_t res,
                                     struct store_key key);
void store_heads_add(struct store_heads *h, struct store_stage *st);
void store_heads_del(struct store_heads *h, struct store_stage *st);
