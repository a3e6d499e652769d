// SPDX-License-Identifier: Apache-2.0
// What the controllers know of one kind: a row per object with its names, revision, a small digest
// made for the kind, and the whole text where some controller wants to read it again. Rows follow
// the API's events and, ahead of them, the answers to our own writes: a controller never sees the
// world as it was before its last act, so it cannot do the same thing twice.
//
// A row keeps its number until the object is gone. Listeners are told after the row has changed.
#pragma once

#include "api/feed.h"
#include "base/vec.h"

struct mirror;

enum { MIRROR_NINDEX = 3 };

/* What to keep of a kind. */
struct mirror_type {
    enum api_kind_id kind;
    bool required;
    bool own_config; /* only the object that ctl_conf names as the programs' own configuration */
    size_t digest_size;
    /* Fills in the zeroed digest; whether the text is to be kept. NULL: no digest, keep the text.
     */
    bool (*digest)(const struct json *root, void *digest);
    /* Lets go of what the digest owns. May be NULL. */
    void (*drop)(void *digest);
    /* Under which word the object can be found; "" under none. Later ones may be NULL. */
    struct hk_str (*index[MIRROR_NINDEX])(const struct json *root);
};

struct mirror_change {
    struct mirror *mirror;
    uint32_t row;
    const void *old, *now;   /* digests; NULL when the object is new, gone */
    const struct json *root; /* the object as it is, as it last was */
    bool initial;            /* it was there when the mirror was first filled */
};

typedef void mirror_listener(void *ctx, const struct mirror_change *ch);

struct mirror_opts {
    struct port *port;
    struct hk_clock *clock;
    struct hk_intern *str; /* outlives the mirror */
    const struct mirror_type *type;
    struct hk_str ns, name; /* of the one object to mirror; "" all of the kind */
};

struct mirror *mirror_new(const struct mirror_opts *o);
void mirror_free(struct mirror *m);
/* Before the first poll of the port. */
void mirror_listen(struct mirror *m, mirror_listener *fn, void *ctx);
int64_t mirror_tick(struct mirror *m, int64_t now_ns);
/* The API has been listed once. */
bool mirror_synced(const struct mirror *m);

/* The answer to a write of ours. Older news than the row has, or than the watch has passed, are
 * ignored. */
void mirror_wrote(struct mirror *m, struct api_object *o);
/* The API told us that the object with that uid is gone. It is hidden until the watch says so too;
 * an empty uid means whichever is there. */
void mirror_gone(struct mirror *m, struct hk_str ns, struct hk_str name, struct hk_str uid);

/* ---- looking ---- */

/* HK_NONE when there is none. */
uint32_t mirror_find(const struct mirror *m, struct hk_str ns, struct hk_str name);
/* Rows filed under the word, in no particular order: for (r = mirror_first(...); r != HK_NONE;
 * r = mirror_next(...)). */
uint32_t mirror_first(const struct mirror *m, unsigned index, struct hk_str word);
uint32_t mirror_next(const struct mirror *m, unsigned index, uint32_t row);
/* Every row: r = mirror_scan(m, HK_NONE), then with the row before. */
uint32_t mirror_scan(const struct mirror *m, uint32_t row);

struct hk_str mirror_ns(const struct mirror *m, uint32_t row);
struct hk_str mirror_name(const struct mirror *m, uint32_t row);
struct hk_str mirror_uid(const struct mirror *m, uint32_t row);
/* The word the row is filed under; of an object that is just told to be gone, the last one. */
struct hk_str mirror_word(const struct mirror *m, unsigned index, uint32_t row);
uint64_t mirror_rv(const struct mirror *m, uint32_t row);
const void *mirror_digest(const struct mirror *m, uint32_t row);
/* Reads the kept text into a tree of a's; a row without text is a mistake of the caller. */
struct json mirror_read(const struct mirror *m, uint32_t row, struct hk_arena *a);
bool mirror_has_text(const struct mirror *m, uint32_t row);
uint32_t mirror_len(const struct mirror *m);
const struct api_kind *mirror_kind(const struct mirror *m);
