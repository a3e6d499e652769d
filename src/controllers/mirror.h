// SPDX-License-Identifier: Apache-2.0
// The controllers' copy of one kind: per object a row with names, revision, a small digest made for
// the kind, and the whole text where a controller needs it again. Rows follow the API's events and,
// ahead of them, the answers to our own writes, so a controller always sees its own last write and
// does not repeat it.
//
// A row keeps its number until the object is gone. Listeners run after the row has changed.
#pragma once

#include "api/feed.h"
#include "base/vec.h"

struct mirror;

enum { MIRROR_NINDEX = 4 };

/* What to keep of a kind. */
struct mirror_type {
    enum api_kind_id kind;
    bool required;
    bool own_config; /* only the configuration object that ctl_conf names */
    /* Replaces this type where default-scheduler is one of the scheduler names. NULL: nothing does.
     */
    const struct mirror_type *as_default_scheduler;
    size_t digest_size;
    /* Fills the zeroed digest; returns whether to keep the text. NULL: no digest, keep the text. */
    bool (*digest)(const struct json *root, void *digest);
    /* Frees what the digest owns. May be NULL. */
    void (*drop)(void *digest);
    /* The word that each index lists the object under; "" none. Unused entries are NULL. */
    struct hk_str (*index[MIRROR_NINDEX])(const struct json *root);
};

struct mirror_change {
    struct mirror *mirror;
    uint32_t row;
    const void *old, *now;   /* digests; old is NULL for a new object, now for a deleted one */
    const struct json *root; /* the object, or its last state when deleted */
    bool initial;            /* the object was in the mirror's first list */
};

typedef void mirror_listener(void *ctx, const struct mirror_change *ch);

struct mirror_opts {
    struct port *port;
    struct hk_clock *clock;
    struct hk_intern *str; /* outlives the mirror */
    const struct mirror_type *type;
    struct hk_str ns, name; /* of the one object to mirror; "": all of the kind */
};

struct mirror *mirror_new(const struct mirror_opts *o);
void mirror_free(struct mirror *m);
/* Call before the first poll of the port. */
void mirror_listen(struct mirror *m, mirror_listener *fn, void *ctx);
int64_t mirror_tick(struct mirror *m, int64_t now_ns);
/* The first list is complete. */
bool mirror_synced(const struct mirror *m);

/* Applies the answer to one of our writes; ignores it when the row or the watch is newer. */
void mirror_wrote(struct mirror *m, struct api_object *o);
/* A call found that the object with that uid is gone. Hides the row until the watch confirms it;
 * uid "" means any. */
void mirror_gone(struct mirror *m, struct hk_str ns, struct hk_str name, struct hk_str uid);

/* ---- reading ---- */

/* HK_NONE when there is none. */
uint32_t mirror_find(const struct mirror *m, struct hk_str ns, struct hk_str name);
/* Rows that the index lists under the word, unordered. Loop: r = mirror_first(...), while r !=
 * HK_NONE, r = mirror_next(...). */
uint32_t mirror_first(const struct mirror *m, unsigned index, struct hk_str word);
uint32_t mirror_next(const struct mirror *m, unsigned index, uint32_t row);
/* Every row: start with row = HK_NONE, then pass the previous row. */
uint32_t mirror_scan(const struct mirror *m, uint32_t row);

struct hk_str mirror_ns(const struct mirror *m, uint32_t row);
struct hk_str mirror_name(const struct mirror *m, uint32_t row);
struct hk_str mirror_uid(const struct mirror *m, uint32_t row);
/* The row's word in the index; inside a deletion callback, its last one. */
struct hk_str mirror_word(const struct mirror *m, unsigned index, uint32_t row);
uint64_t mirror_rv(const struct mirror *m, uint32_t row);
const void *mirror_digest(const struct mirror *m, uint32_t row);
/* Parses the kept text into arena a. The row must have text. */
struct json mirror_read(const struct mirror *m, uint32_t row, struct hk_arena *a);
bool mirror_has_text(const struct mirror *m, uint32_t row);
uint32_t mirror_len(const struct mirror *m);
const struct api_kind *mirror_kind(const struct mirror *m);
