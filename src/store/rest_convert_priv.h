// SPDX-License-Identifier: Apache-2.0
// Shared by rest_conversion.c and the rest_convert*.c files only: one object on its way through a conversion webhook, and
// the reviews that carry such objects.
#pragma once

#include "store/rest_webhook_priv.h"

enum {
    CONVERT_TIMEOUT_S = 30, /* as in kube-apiserver */
    CONVERT_MAX_OBJECTS = 100,
    CONVERT_MAX_BATCH = 1 << 20,  /* bytes of the objects of one review, unless one is larger */
    CONVERT_MAX_REPLY = 16 << 20, /* bytes of an answer */
    CONVERT_MAX_CACHE = 32 << 20, /* bytes of converted objects that nobody needs at present */
    CONVERT_MAX_RESTARTS = 5,     /* of a write whose object changed while it was converted */
};

/* How the definition of a kind wants its objects converted. */
struct rest_conversion {
    uint32_t refs;
    struct hk_arena mem;
    struct webhook hook;
    uint64_t rv; /* of the definition */
};

/* One object and one version. */
struct conversion {
    struct rest *r;
    uint32_t refs;
    struct rest_conversion *how;
    const struct rest_kind *to;
    uint64_t key;  /* in converter.at while keyed */
    uint32_t slot; /* in converter.all */
    bool keyed;    /* others may find it: it is about a stored state */
    bool alone;    /* to be asked without others: a review with it failed */
    enum { CONVERSION_WAITS, CONVERSION_DONE, CONVERSION_FAILED } state;
    struct hk_buf text; /* the object: as it was, then converted */
    char *why;          /* it failed */
    struct api_object *shown;
    uint64_t shown_rv; /* of the schema */
};

/* One review. */
struct conversion_batch {
    struct rest *r;
    struct webhook_ask *ask; /* NULL: not sent yet */
    struct rest_conversion *how;
    const struct rest_kind *to;
    HK_VEC(struct conversion *) at;
    size_t bytes;
    bool closed; /* takes no further objects */
};

struct converter {
    HK_VEC(struct conversion *) all;
    struct hk_map at; /* key to slot */
    HK_VEC(struct conversion_batch *) batches;
    HK_VEC(struct conversion *) cache; /* references, the oldest first */
    uint32_t cache_at;
    size_t cache_bytes;
    HK_VEC(struct rest_call *) waiters;
    bool finished; /* some conversion has ended since the last run */
};

/* ---- rest_convert_review.c ---- */

/* Appends the ConversionReview. */
void conversion_write_review(const struct conversion_batch *b, const char *uid, struct hk_buf *out);
/* Reads the answer. Negative with the reason when the whole review failed; else *ret is an array with
 * one item per object, in mem. */
int conversion_read_review(const struct conversion_batch *b, const char *uid, struct hk_str body,
                           struct hk_arena *mem, const struct json **ret,
                           struct hk_err *err) HK_CHECKED;
/* Checks one converted object, and restores the metadata that a webhook may not change. */
int conversion_accept(const struct conversion *v, const struct json *converted,
                      struct hk_arena *mem, struct json *ret, struct hk_err *err) HK_CHECKED;

/* ---- rest_convert_batch.c ---- */

/* Queues the object for the next review. */
void conversion_queue(struct conversion *v);
/* Sends what was queued. */
void conversion_send(struct rest *r);
void conversion_batch_free(struct conversion_batch *b);

/* ---- rest_conversion.c ---- */

/* Whether the text is an object of the kind's version. */
bool conversion_has_version(const struct api_kind *k, struct hk_str text);
struct conversion *conversion_new(struct rest *r, const struct rest_kind *to);
struct conversion *conversion_ref(struct conversion *v);
/* Takes NULL. */
void conversion_unref(struct conversion *v);
uint64_t conversion_key(const struct rest_kind *k, const struct store_obj *o);
/* Others may find it from now on. */
void conversion_publish(struct conversion *v, uint64_t key);
/* The published conversion of the state, or NULL. */
struct conversion *conversion_find(const struct rest_kind *k, const struct store_obj *o,
                                   const struct converter *t);
/* Keeps it for the next reader; the oldest ones make room. */
void conversion_cache(struct conversion *v);
/* The conversion has ended; its text or why is set. */
void conversion_end(struct conversion *v, bool done);
/* "stable.example.com/v1, Kind=CronTab", of the object before its conversion. */
void conversion_write_kind(const struct conversion *v, struct hk_buf *out);
