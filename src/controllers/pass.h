// SPDX-License-Identifier: Apache-2.0
// One pass of a controller over one key: what reconcile gets, and the writes it may request. A pass
// reads only mirrors, and requests writes that do not depend on one another; ordered writes go into
// successive passes (ctl.h). The next pass over the key starts when all answers are here.
#pragma once

#include "controllers/ctl.h"

/* A call that failed. */
struct pass_error {
    enum port_verb verb;
    const struct api_kind *kind;
    char *name;
    int rc;
    char *text;
    char *reason; /* of the Status: "Forbidden", ...; NULL unknown */
};

struct pass {
    struct ctl *c;
    struct hk_str ns, name; /* the key */
    struct hk_arena *mem;   /* valid until reconcile returns */
    int64_t now_ns;         /* wall */
    /* From the previous pass, when it failed. */
    uint32_t failures; /* in a row */
    const struct pass_error *errors;
    uint32_t nerror;
    /* Private to the framework. */
    uint32_t key;
    uint32_t ncall;
    bool failed, full;
    int64_t again_ns;
};

/* Most writes of one pass; the next pass follows at once and requests the rest. */
enum { TURN_CALLS_MAX = 512 };

/* Each requests a write and copies the body. False when the pass is full; reconcile may
 * continue or return. A failure shows up in the errors of the next pass, after a pause. These
 * are not failures: creating an object that exists (the mirror then reads it), deleting one
 * that does not. When a namespace refuses a creation because it is being deleted, nothing is
 * created there for a while. */
bool pass_create(struct pass *t, const struct api_kind *kind, const struct json *body);
bool pass_update(struct pass *t, const struct api_kind *kind, const struct json *body);
/* Replaces .status; body is the whole object with its resourceVersion. */
bool pass_update_status(struct pass *t, const struct api_kind *kind, const struct json *body);
struct pass_patch {
    const struct api_kind *kind;
    struct hk_str ns, name;
    const char *subresource; /* or NULL */
    enum port_patch type;
    const struct json *body;
    struct hk_str field_manager; /* apply */
    bool force;                  /* apply */
};
bool pass_patch(struct pass *t, const struct pass_patch *p);
/* uid "": any object of that name. */
bool pass_delete(struct pass *t, const struct api_kind *kind, struct hk_str ns, struct hk_str name,
                 struct hk_str uid, enum port_propagation propagation);

/* Deletes without a grace period. */
bool pass_delete_now(struct pass *t, const struct api_kind *kind, struct hk_str ns,
                     struct hk_str name, struct hk_str uid);

/* Marks the pass as failed: it is repeated after a pause, and the text is one of its errors
 * then. */
void pass_fail(struct pass *t, enum hk_code code, const char *fmt, ...) HK_PRINTF(3, 4);
/* How many failures in a row --max-requeue-num allows; UINT32_MAX: unlimited. */
uint32_t pass_patience(const struct pass *t);
/* Queues the key again for wall-clock time at_ns. */
void pass_again_at(struct pass *t, int64_t at_ns);

/* Records an Event about obj, an API object. Equal events are counted, not repeated. */
void pass_event(struct pass *t, const struct json *obj, bool warning, const char *reason,
                const char *fmt, ...) HK_PRINTF(5, 6);

/* ---- objects that are not mirrored ---- */

/* State of one such object, zeroed at first; part of the key's memory. Free it only in a pass over
 * the key, or when the controller closes. */
struct ensured {
    uint8_t state;            /* enum ensured_state, private to the framework */
    bool ours;                /* known to belong to owner_uid */
    bool foreign;             /* found, and known not to belong to it */
    uint64_t want;            /* ensure.want of the last or current write */
    struct api_object *found; /* set until it is compared */
};
void ensured_fini(struct ensured *e);
bool ensured_is_removed(const struct ensured *e);
/* An object of that name exists and has another owner. */
bool ensured_is_foreign(const struct ensured *e);

struct ensure {
    const struct api_kind *kind;
    struct hk_str ns, name;
    /* uid of the required owner: an object of another owner is left alone, and the pass fails. "":
     * any owner. */
    struct hk_str owner_uid;
    uint64_t want; /* a hash of all inputs of make and correct, never 0 */
    /* The object does not exist: fills body, which has apiVersion, kind, name and namespace. */
    void (*make)(void *ctx, struct hk_arena *a, struct json *body);
    /* The object exists: corrects the copy; false when nothing differs. NULL: accept any. */
    bool (*correct)(void *ctx, struct hk_arena *a, struct json *obj);
    void *ctx;
};

/* True once the object is as wanted. Otherwise the next step was requested, and a later pass sees
 * its result. The object is read once per process and value of want. */
bool pass_ensure(struct pass *t, struct ensured *memo, const struct ensure *e);
/* True once the object is deleted, did not exist, or belongs to another owner (it stays). A later
 * pass_ensure starts from the beginning. */
bool pass_remove(struct pass *t, struct ensured *memo, const struct api_kind *kind,
                 struct hk_str ns, struct hk_str name, struct hk_str owner_uid);
/* True once the object was read: *ret is a reference for the caller, or NULL when there is none.
 * The next call reads it again. */
bool pass_read(struct pass *t, struct ensured *memo, const struct api_kind *kind, struct hk_str ns,
               struct hk_str name, struct api_object **ret);
