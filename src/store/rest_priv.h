// SPDX-License-Identifier: Apache-2.0
// Shared by the rest_*.c files only: the state of the port, a call in progress, and the functions
// of each file.
#pragma once

#include "api/selector.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/vec.h"
#include "store/rest.h"

enum {
    REST_CACHE = 4096, /* cached parsed objects, a power of two */
    /* Work that a list or watch may do before it yields: some milliseconds. One unit is about a
     * nanosecond: one skimmed byte. */
    REST_SLICE = 2 << 20,
    REST_WORK_OBJECT = 256, /* for looking at an object at all */
    REST_WORK_PARSED = 4,   /* for each byte that is parsed */
    REST_WORK_DELETED = 8,  /* for each byte of an object that is deleted */
    REST_MAX_TERMS = 256,   /* requirements of a selector */
    REST_SHOWN_MAX = 4096,  /* bytes of an object in a refusal */
};

#define REST_SECOND ((int64_t)1000000000)
#define REST_FOREGROUND "foregroundDeletion"
#define REST_ORPHAN_FINALIZER "orphan"
#define REST_CRD_FINALIZER "customresourcecleanup.apiextensions.k8s.io"

struct rest_asking;
struct conversion;
struct converter;

/* A call from its submission to its PORT_DONE. */
struct rest_call {
    struct rest *r;
    struct rest_call *next; /* in the queue of outcomes */
    uint32_t slot;          /* in rest.calls */
    uint64_t id;
    struct port_sink sink;
    struct hk_arena mem;            /* trees and texts of this call */
    const struct port_request *req; /* during rest_submit, else NULL */
    const struct rest_kind *k;
    struct hk_str ns, name;
    char *names;                           /* copy of both after mem is released; else NULL */
    HK_VEC(const struct store_obj *) held; /* states that trees in mem point into */
    HK_VEC(struct api_object *) borrowed;  /* references held for rest_head_shared */
    struct admission_request adm;          /* collects field errors and warnings */
    uint32_t writes;                       /* not yet durable */
    bool submitted;                        /* rest_submit has returned */
    bool deletes;                          /* the last write removes the object */
    bool text_only;
    bool vital;                          /* as of store_write */
    void (*finish)(struct rest_call *c); /* changes the stored object into the answer; or NULL */
    struct rest_lister *lister;          /* a list that is not complete, else NULL */
    struct rest_deleter *deleter; /* what is listed will be deleted, or is not all deleted yet */
    const struct json *managed;   /* metadata.managedFields to be, by an apply; else NULL */
    struct rest_asking *asking;   /* webhooks were asked or may be; else NULL */
    HK_VEC(struct conversion *) conversions; /* of states that the call reads; references */
    struct conversion *to_store, *to_answer; /* of the object that it writes; NULL: none */
    uint64_t to_store_rv;                    /* of the state that it writes over */
    uint32_t convert_restarts;

    /* the outcome */
    int rc;
    struct hk_err err;
    bool has_status;
    struct port_status status;
    HK_VEC(struct port_cause) causes;
    struct api_object *obj;
    HK_VEC(struct api_object *) items;
    const char *cont;
    int64_t remaining;
    uint64_t rv;
    bool created;
};

/* What a list or a watch selects. */
struct rest_filter {
    struct hk_arena mem;
    const struct rest_kind *k;
    struct hk_str ns;
    struct hk_str name; /* metadata.name=...: "" any */
    struct api_selector labels;
    struct hk_intern label_keys; /* of the requirements */
    struct hk_str *label_values; /* by key: values of the current object, .s NULL when absent */
    struct api_field_selector fields; /* without metadata.name=, which is above */
    bool needs_tree;
};

struct rest_watch {
    struct rest *r;
    struct rest_filter filter;
    HK_VEC(const struct store_obj *) initial; /* not yet delivered, held */
    uint32_t initial_at;
    uint32_t res_at;  /* in rest.resources */
    bool initial_end; /* the bookmark after them is still to send */
    uint64_t rv;      /* everything up to here was delivered */
    uint64_t marked;  /* revision of the last bookmark */
    bool bookmarks, text_only, dirty, gone;
    bool yielded;                            /* stopped after a slice, has more to examine */
    bool converting;                         /* stopped until its conversions have ended */
    HK_VEC(struct conversion *) conversions; /* of the next states; references */
    int64_t bookmark_ns;
    struct api_object *shown; /* borrowed by the caller */
    void (*wake)(void *ctx);  /* pulled watches */
    void *ctx;
    uint64_t call; /* pushed watches */
    struct port_sink sink;
};

/* An event that will expire. */
struct rest_expiry {
    int64_t at_ns;
    const struct store_obj *obj; /* held; expires only if still the newest state */
};

struct gc_owner {
    uint32_t uid; /* id in gc.uids */
    bool block;
};

/* An object that names owners. */
struct gc_item {
    const struct store_obj *obj; /* newest published state, held */
    HK_VEC(struct gc_owner) owners;
};

/* A uid: the object itself if it names owners, the objects that name it as owner, and whether a
 * check is due. */
struct gc_node {
    struct gc_item *item;
    HK_VEC(uint32_t) dependents;      /* ids */
    const struct store_obj *deleting; /* an owner in foreground or orphan deletion, held */
    bool queued;
    uint8_t refused; /* refused writes in a row */
};

/* A check to repeat later. */
struct gc_later {
    uint32_t id;
    int64_t at_ns;
};

struct gc {
    struct hk_intern uids;
    HK_VEC(struct gc_node) nodes; /* by id */
    HK_VEC(uint32_t) queue;
    HK_VEC(struct gc_later) later; /* checks whose write was refused */
    struct hk_map tries;           /* calls in flight, to the id they concern */
    struct hk_arena mem;           /* scratch for one object */
};

/* A namespace or CRD that is deleted after its content. */
struct drain {
    const struct store_obj *obj; /* the namespace or CRD, held */
    bool dirty;
};

struct quota_book;
struct policy_table;
struct webhook_ask;
struct webhook_table;
struct service_book;

/* Trees and compiled schema of a CRD's newest definition, to which a row points. */
struct rest_row_data {
    struct hk_arena mem;
    struct schema *rules;
    struct rest_conversion *conversion; /* a reference */
};

struct rest {
    struct port port;
    struct store *store;
    struct hk_clock *clock;
    struct hk_rand *rand;
    bool admission;
    const struct volcano_options *volcano;
    const struct admission_tolerations *tolerations;
    struct hk_budget *budget;
    bool memory_tried; /* tried to free memory since rest_watch_memory */
    uint32_t max_per_namespace;
    struct admission_lookup lookup;
    struct rest_call *lookup_call; /* whose memory holds the answers of lookup */

    HK_VEC(struct rest_kind *) kinds;
    uint64_t kinds_generation;
    HK_VEC(uint32_t) resources; /* each resource once */
    HK_VEC(uint64_t) seen;      /* by position in resources: published events processed */
    HK_VEC(struct rest_row_data *) replaced; /* replaced data of rows; freed by the next poll */
    const struct rest_kind *namespaces, *crds, *pods, *events, *pdbs, *resource_quotas;
    const struct rest_kind *accounts, *config_maps, *services, *signing_requests;

    uint64_t last_call;
    struct rest_call *first, **last;  /* outcomes to deliver */
    HK_VEC(struct rest_call *) calls; /* all that exist, for cancel */
    /* Calls with a lister or a deleter, the next one to run first; without those that wait for
     * their own writes. */
    HK_VEC(struct rest_call *) lists;
    uint64_t work;                /* done so far, see rest_filter_match */
    HK_VEC(uint32_t) unpublished; /* by resource: calls whose object is not yet published */
    HK_VEC(struct rest_watch *) watches;
    struct hk_err watch_err; /* these two of the watch that failed last */
    struct port_status watch_status;
    struct api_object *cache[REST_CACHE];
    bool running;                        /* the store's initial content was read */
    HK_VEC(struct rest_expiry) expiries; /* by time */
    uint32_t expiries_at;
    struct gc gc;
    HK_VEC(struct drain) drains;
    int64_t drain_retry_ns;
    HK_VEC(const struct store_obj *) without_defaults; /* namespaces or missing defaults; held */
    char *ca_pem;                                      /* NULL: none is published */
    rest_sign_fn *sign; /* signs tokens, NULL: no token subresource */
    void *sign_ctx;
    HK_VEC(struct quota_book *) quotas; /* in order of namespace and name */
    bool quotas_dirty;
    struct service_book *service_book; /* NULL: Services get no addresses */
    bool names_freed;                  /* a CRD freed names: others may claim them */

    const struct webhook_caller *webhook_caller;                     /* NULL: no webhook is asked */
    const struct rest_kind *webhooks_mutating, *webhooks_validating; /* their configurations */
    /* Kinds of policies: mutating ones, their bindings, validating ones, their bindings. */
    const struct rest_kind *policy_kinds[4];
    struct policy_table *policies; /* NULL: not yet read */
    bool policies_changed;         /* read the table again */
    bool policies_suspended;
    rest_authorize_fn *authorize; /* answers the authorizer of expressions; NULL: refuses */
    void *authorize_ctx;
    struct webhook_table *webhooks;            /* NULL: there are none */
    bool webhooks_changed;                     /* read the table again */
    HK_VEC(struct webhook_ask *) webhook_asks; /* not answered, in order of asking */
    uint32_t webhook_posts;                    /* of these, in flight */
    size_t webhook_bytes;                      /* of all questions */
    uint32_t webhook_waiting;                  /* calls that wait for answers */
    HK_VEC(struct rest_call *) webhook_ready;  /* of these, those that can go on */
    struct converter *converter;

    int event_fd, epoll_fd;
    bool poll_requested;              /* event_fd is readable */
    bool poll_requested_for_outcomes; /* only because outcomes wait */
    struct hk_arena_pool mem;         /* for calls */
};

/* ---- rest_object.c ---- */

/* The object of a state, parsed if tree. The caller owns the reference; NULL only when the stored
 * text is not an object. */
struct api_object *rest_object(struct rest *r, const struct rest_kind *k, const struct store_obj *o,
                               bool tree);
/* Converts a parsed object to the row's version and newest schema. Takes o. */
struct api_object *rest_object_show(const struct rest_kind *k, struct api_object *o);
/* The newest state, staged or published, parsed into the call's memory. NULL when there is none. */
const struct store_obj *rest_head(struct rest_call *c, const struct rest_kind *k, struct hk_str ns,
                                  struct hk_str name, struct json *ret, bool *ret_staged);
/* The same from the shared cache: do not change the tree, not even through a copy of its top. */
const struct store_obj *rest_head_shared(struct rest_call *c, const struct rest_kind *k,
                                         struct hk_str ns, struct hk_str name, struct json *ret,
                                         bool *ret_staged);
/* Number of creations in flight in the resource. Usually 0, though thousands of other calls may be
 * in flight. */
uint32_t *rest_unborn(struct rest *r, uint32_t res);
/* The lookup functions for admission. */
struct admission_lookup rest_lookup(struct rest *r);

/* ---- rest_base.c ---- */

int64_t rest_now(const struct rest *r);
/* Monotonic time, for everything that waits. */
int64_t rest_mono(const struct rest *r);
/* Makes the port's descriptor readable, so that the owner calls port_poll. */
void rest_request_poll(struct rest *r);
/* The same for outcomes only, and its reverse: rest.c undoes it after delivering all of them at
 * once. */
void rest_wake(struct rest *r);
void rest_unwake(struct rest *r);
void rest_warn(struct rest_call *c, const char *fmt, ...) HK_PRINTF(2, 3);

/* ---- rest_call.c ---- */

struct rest_call *rest_call_new(struct rest *r, const struct port_request *req,
                                struct port_sink sink);
/* Forgets the first turns of the call: it starts again from its request. */
void rest_call_reset(struct rest_call *c, const struct port_request *req);
/* Frees memory that a call no longer needs while it waits for the disk. */
void rest_call_wait(struct rest_call *c);
/* Frees the call's arena and what it borrows. */
void rest_call_release(struct rest_call *c);
/* The outcome is known: queues it for port_poll. */
void rest_call_end(struct rest_call *c);
/* Hands a write to the store. The call ends when its last write does; the object of the last one
 * is its answer. */
int rest_store(struct rest_call *c, enum store_verb verb, const struct rest_kind *k,
               struct hk_str ns, struct hk_str name, struct json *root, uint64_t expect_rv);
/* Answers with a tree without writing it. */
int rest_answer_tree(struct rest_call *c, const struct api_kind *kind, const struct json *doc);
/* Forgets the parsed objects that are kept for the next reader. */
void rest_drop_cache(struct rest *r);
/* Fails when memory is too short for something new. */
int rest_check_memory(struct rest_call *c);

/* ---- rest_kinds.c ---- */

void rest_kinds_init(struct rest *r);
void rest_kinds_fini(struct rest *r);
/* A CustomResourceDefinition was created, changed or deleted. */
void rest_kinds_feed(struct rest *r, const struct store_event *ev);
/* Frees data that rows no longer point to. */
void rest_kinds_free_replaced(struct rest *r);
const struct rest_kind *rest_kind_of(const struct rest *r, const struct api_kind *kind);
/* The row of the stored version. */
const struct rest_kind *rest_kind_by_res(const struct rest *r, uint32_t res);

/* ---- rest_table.c ---- */

/* Kinds outside the registry; NULL after the last. */
const struct api_kind *rest_table_kind(size_t i);
/* Bits of enum rest_flag. */
uint32_t rest_table_flags(const struct api_kind *k);
/* Field paths allowed in field selectors, NULL-terminated. */
const char *const *rest_kind_fields(const struct rest_kind *k);

/* ---- rest_view.c ---- */

/* Kinds that are other versions of stored ones; NULL after the last. */
const struct api_kind *rest_view_at(size_t i, const struct rest_view **ret);
/* The stored group and version. */
void rest_view_of(const struct rest_view *v, struct hk_str *ret_group, struct hk_str *ret_version);
/* Converts from the stored version to the row's, in place. rest_view_take does the reverse. */
void rest_view_show(const struct rest_kind *k, struct json *doc, struct hk_arena *a);

/* ---- rest_csr.c: no effect on other kinds than CertificateSigningRequests ---- */

/* Writes down who made the request. */
void rest_csr_create(struct rest_call *c, struct json *doc);
/* Restores what the write may not change. */
void rest_csr_isolate(struct rest_call *c, const char *sub, struct json *doc,
                      const struct json *old);

/* ---- rest_crd.c ---- */

/* Sets finalizer and status of a new or changed definition. */
void rest_crd_prepare(struct rest_call *c, struct json *doc, const struct json *old);
/* Whether all its names were accepted. */
bool rest_crd_established(const struct json *doc);
/* A definition changed: others may wait for its names. */
void rest_crd_feed(struct rest *r, const struct store_event *ev);
void rest_crd_run(struct rest *r);

/* ---- rest_guard.c ---- */

/* Called before a call runs. REFUSED: the server died of this object twice; the answer is set.
 * ENTERED: it is recorded until hk_crumb_leave(). NONE: it needs no record. */
enum rest_guard { REST_GUARD_NONE, REST_GUARD_ENTERED, REST_GUARD_REFUSED };
enum rest_guard rest_guard_enter(struct rest_call *c);

/* ---- rest_status.c: all return the negative code they set ---- */

int rest_fail(struct rest_call *c, int http, enum hk_code code, const char *reason, const char *fmt,
              ...) HK_PRINTF(5, 6);
int rest_fail_bad(struct rest_call *c, const char *fmt, ...) HK_PRINTF(2, 3);
/* The patch does not apply. Names no object: kubectl then shows the message. */
int rest_fail_patch(struct rest_call *c, const char *why);
/* The patch applies, and what it makes is no object of the kind. */
int rest_fail_patched(struct rest_call *c, const struct json *doc, const char *why);
/* The kind or subresource does not exist. */
int rest_fail_unknown(struct rest_call *c);
int rest_fail_missing(struct rest_call *c, const struct rest_kind *k, struct hk_str name);
int rest_fail_exists(struct rest_call *c, struct hk_str name);
/* "Operation cannot be fulfilled on ...: " and why. */
int rest_fail_conflict(struct rest_call *c, const char *fmt, ...) HK_PRINTF(2, 3);
int rest_fail_modified(struct rest_call *c);
int rest_fail_method(struct rest_call *c);
/* What is invalid in a body, or in options, that are no object of the call's kind. */
struct rest_body_fault {
    const char *group, *kind;
    struct hk_str name;
    const char *reason, *field, *message;
};
int rest_fail_invalid_body(struct rest_call *c, const struct rest_body_fault *f);
int rest_fail_expired(struct rest_call *c, const char *fmt, ...) HK_PRINTF(2, 3);
/* From the collected field errors. */
int rest_fail_invalid(struct rest_call *c);
/* With admission's code and message; the collected field errors become causes. */
int rest_fail_admission(struct rest_call *c, int rc);
int rest_fail_store(struct rest_call *c, int rc);
/* An admission webhook refuses; reason may be NULL. */
int rest_fail_webhook(struct rest_call *c, int http, const char *reason, const char *message);
void rest_cause(struct rest_call *c, const char *reason, const char *field, const char *message);
void rest_field_error(struct rest_call *c, const char *reason, const char *field, const char *fmt,
                      ...) HK_PRINTF(4, 5);
/* Answers with a Status Success instead of the object. */
void rest_succeed(struct rest_call *c, int http);
/* The Status of a deletion, for kinds that answer with one. */
void rest_succeed_deletion(struct rest_call *c, struct hk_str name, struct hk_str uid);
/* "pods" or "jobs.batch.volcano.sh". */
const char *rest_resource(struct rest_call *c, const struct api_kind *kind);

/* ---- rest_doc.c ---- */

/* The member as a changeable object, created when absent. */
struct json *rest_edit(struct json *obj, struct hk_arena *a, const char *key);
struct hk_str rest_meta_str(const struct json *doc, const char *key);
bool rest_deleting(const struct json *doc);
bool rest_has_finalizer(const struct json *doc, const char *name);
/* Removes the finalizer; false when it was absent. */
bool rest_drop_finalizer(struct json *doc, struct hk_arena *a, const char *name);
uint32_t rest_finalizers(const struct json *doc);
/* Sets the condition; lastTransitionTime changes only with the status. */
void rest_condition_put(struct json *doc, struct hk_arena *a, int64_t now_ns, const char *type,
                        const char *status, const char *reason, const char *message);

/* ---- rest_meta.c ---- */

/* Checks kind, name and namespace of a body against the request. */
int rest_check_identity(struct rest_call *c, const struct json *doc);
/* Sets apiVersion and kind to those of the stored version; to those of the row where a webhook will
 * convert the object. */
void rest_set_kind(struct rest_call *c, struct json *doc);
/* Sets the metadata of a new object, except for generateName (rest_generate_name). */
int rest_meta_create(struct rest_call *c, struct json *doc);
void rest_generate_name(struct rest_call *c, struct json *doc);
/* A new random uid, in the call's memory. */
const char *rest_new_uid(struct rest_call *c);
enum { REST_UID = 37 };
void rest_write_uid(struct rest *r, char out[REST_UID]);
/* Restores the metadata that only the server may set. */
int rest_meta_update(struct rest_call *c, struct json *doc, const struct json *old);
/* Increments metadata.generation when the change requires it: outside metadata and status. */
void rest_meta_generation(struct rest_call *c, struct json *doc, const struct json *old);
/* Sets or shortens deletionTimestamp and grace period. */
void rest_meta_delete(struct rest_call *c, struct json *doc, int64_t at_ns, int64_t grace_s);
/* rest_condition_put at the present time. */
void rest_condition(struct rest_call *c, struct json *doc, const char *type, const char *status,
                    const char *reason, const char *message);

/* ---- rest_write.c ---- */

int rest_create(struct rest_call *c);
int rest_update(struct rest_call *c);
int rest_patch(struct rest_call *c);
/* Creates from a tree in the call's memory. */
int rest_create_doc(struct rest_call *c, struct json *doc);
/* Performs a whole update: the wanted tree, in the call's memory, over the newest state. */
int rest_update_doc(struct rest_call *c, const char *sub, struct json *doc,
                    const struct store_obj *head, const struct json *old, bool staged);
/* The last step of an update: writes if something changed, or removes an object whose deletion
 * waited for this. */
int rest_commit(struct rest_call *c, struct json *doc, const struct store_obj *head,
                const struct json *old, bool staged);
/* Applies the patch of the request to doc in place. */
int rest_patch_apply(struct rest_call *c, const struct rest_kind *k, struct json *doc);

/* ---- rest_webhook.c ---- */

/* What webhooks are asked about. */
struct webhook_subject {
    enum admission_verb verb;
    const struct rest_kind *row; /* as requested */
    const struct api_kind *kind; /* of the object, where it is not the row's: Scale, Binding, ... */
    const char *sub;
    struct hk_str ns, name;
    struct json *obj;       /* in the storage version, to be changed; NULL on delete */
    const struct json *old; /* NULL on create */
    bool dry_run;
    bool unnamed; /* the name in obj was generated: it is not shown */
    struct hk_str field_manager;
    uint64_t rv; /* of the stored state that the write starts from; 0: none */
    /* After a patch: restores what no webhook may change, from the object before it, and sets
     * defaults. NULL: nothing to do. */
    int (*settle)(struct rest_call *c, const struct webhook_subject *s, const struct json *before);
    /* Runs the built-in mutations again. NULL: there are none. */
    int (*again)(struct rest_call *c, const struct webhook_subject *s);
};

/* Each returns 0 when all webhooks have answered and none refuses; negative when one refuses, or
 * when the call must wait for answers: then rest_webhook_waits() is true, the caller returns at
 * once, and the call starts again later. */
int rest_webhook_mutate(struct rest_call *c, struct webhook_subject *s);
int rest_webhook_validate(struct rest_call *c, struct webhook_subject *s);
bool rest_webhook_waits(const struct rest_call *c);
/* The request to start again with. */
const struct port_request *rest_webhook_request(const struct rest_call *c);
/* Before the request ends, for a call that may ask after that. */
void rest_webhook_prepare(struct rest_call *c);
/* One object of several is done: the next questions are about another one. */
void rest_webhook_settled(struct rest_call *c);
/* The call is decided: adds the warnings of webhooks to its own. */
void rest_webhook_finish(struct rest_call *c);
/* Stops the call; returns negative. Continue it with rest_webhook_wake. */
int rest_webhook_wait(struct rest_call *c);
void rest_webhook_wake(struct rest_call *c);
/* Drops what is asked and everything else. */
void rest_webhook_free(struct rest_call *c);
void rest_webhook_feed(struct rest *r, const struct store_event *ev);
/* Sends the questions for which there is room. */
void rest_webhook_send(struct rest *r);
/* The next call whose questions are answered, no longer waiting; NULL: there is none. */
struct rest_call *rest_webhook_next(struct rest *r);
void rest_webhook_tick(struct rest *r);
int64_t rest_webhook_next_ns(const struct rest *r);
void rest_webhook_fini(struct rest *r);

/* ---- rest_conversion.c, rest_convert.c: conversion webhooks of CustomResourceDefinitions ---- */

void rest_convert_init(struct rest *r);
void rest_convert_fini(struct rest *r);
/* NULL: the definition has no conversion webhook. */
struct rest_conversion *rest_conversion_new(const struct json *crd, uint64_t rv);
struct rest_conversion *rest_conversion_ref(struct rest_conversion *how);
/* Takes NULL. */
void rest_conversion_unref(struct rest_conversion *how);
/* Whether the state is stored in another version than the row's. */
bool rest_stored_otherwise(const struct rest_kind *k, const struct store_obj *o);
/* The same, and only a webhook can convert it. */
bool rest_convert_needed(const struct rest_kind *k, const struct store_obj *o);
/* The converted object; NULL unless somebody holds its conversion, and it has succeeded. */
struct api_object *rest_converted_object(struct rest *r, const struct rest_kind *k,
                                         const struct store_obj *o);
/* Has the state, or the newest one of that name, converted to the call's version. Negative when that
 * failed, or when the call must wait: then rest_webhook_waits() is true, the caller returns at once,
 * and the call starts again later. */
int rest_convert_state(struct rest_call *c, const struct store_obj *o);
int rest_convert_head(struct rest_call *c, struct hk_str ns, struct hk_str name);
/* The same for an object to be written over the state of that revision: root becomes the object in the
 * storage version. */
int rest_convert_write(struct rest_call *c, struct json *root, uint64_t expect_rv);
/* The stored object, in the call's version. */
struct api_object *rest_convert_answer(struct rest_call *c, const struct store_obj *o);
/* Drops the conversions of states. */
void rest_convert_forget(struct rest_call *c);
void rest_convert_free(struct rest_call *c);
/* One conversion of a state, for lists and watches: a reference. */
struct conversion *rest_conversion_begin(struct rest *r, const struct rest_kind *k,
                                         const struct store_obj *o);
bool rest_conversion_waits(const struct conversion *v);
/* Why it failed, or NULL. */
const char *rest_conversion_failure(const struct conversion *v);
void rest_conversion_release(struct conversion *v);
/* The call needs the conversion: takes the reference. */
void rest_convert_hold(struct rest_call *c, struct conversion *v);
/* Whether all that the call holds have succeeded; as rest_convert_state. */
int rest_convert_check(struct rest_call *c);
/* Sends what is wanted, and continues calls and watches whose conversions have ended. */
void rest_convert_run(struct rest *r);

/* ---- rest_policy*.c ---- */

/* A policy or a binding was created, changed or deleted. */
void rest_policy_feed(struct rest *r, const struct store_event *ev);
/* Sets the status of a new or changed ValidatingAdmissionPolicy; no effect on other kinds. */
void rest_policy_set_status(struct rest_call *c, struct json *doc);
void rest_policy_fini(struct rest *r);

/* ---- rest_sub.c, rest_evict.c, rest_token.c, rest_connect.c ---- */

/* Asks policies and webhooks whether the user may open a stream to a pod. */
int rest_connect(struct rest_call *c);

/* Asks the webhooks about the object of a subresource, which has its own kind: all of them. */
int rest_ask_sub(struct rest_call *c, const struct api_kind *kind, struct json *obj,
                 const struct json *old, uint64_t rv);
/* Decodes the body of a subresource, an object of its own kind. A value of the wrong type is a 400;
 * unknown fields are dropped. */
int rest_decode_body(struct rest_call *c, const struct api_kind *kind, struct json *body);
/* The name in the body of a subresource must be that of the path. */
int rest_check_body_name(struct rest_call *c, const struct api_kind *kind, const struct json *body);
int rest_bind(struct rest_call *c);
int rest_scale_get(struct rest_call *c);
int rest_scale_write(struct rest_call *c);
int rest_evict(struct rest_call *c);
int rest_token(struct rest_call *c);

/* ---- rest_pod.c: subresources of pods; doc becomes old with only their fields changed ---- */

void rest_pod_ephemeral(struct rest_call *c, struct json *doc, const struct json *old);
void rest_pod_resize(struct rest_call *c, struct json *doc, const struct json *old);
/* Checks that need defaults. */
void rest_pod_check_resize(struct rest_call *c, const struct json *doc, const struct json *old);

/* ---- rest_schema.c: applies a CRD's schema; no effect on other kinds ---- */

/* Prunes unknown fields, collects their names, and sets defaults. */
void rest_schema_apply(struct rest_call *c, struct json *doc);
/* Whether the state was written before the schema's last change. */
bool rest_schema_outdated(const struct rest_kind *k, const struct store_obj *o);
/* Prunes and defaults a stored tree by the current schema. */
void rest_schema_refresh(const struct rest_kind *k, struct json *doc, struct hk_arena *mem);
/* Only prunes it. */
void rest_schema_drop_unknown(const struct rest_kind *k, struct json *doc, struct hk_arena *mem);
/* Collects field errors. */
void rest_schema_validate(struct rest_call *c, const struct json *doc, const struct json *old);

/* ---- rest_fields.c: sets of fields, as tries in the form of FieldsV1 ---- */

/* The type of a value: how its lists and maps merge. Zeroed: unknown. */
struct fields_topo {
    const struct api_type *type;
    const struct api_field *field;
    const struct json *schema;
};
struct fields_topo fields_root(const struct rest_kind *k);
/* All fields of the value, except those that only the server sets. */
struct json fields_of(struct fields_topo t, const struct json *v, struct hk_arena *a);
/* Fields of b that are missing or different in a, and fields of a that are missing in b. */
void fields_diff(struct fields_topo t, const struct json *a, const struct json *b,
                 struct json *ret_changed, struct json *ret_gone, struct hk_arena *mem);
struct json fields_union(const struct json *x, const struct json *y, struct hk_arena *a);
struct json fields_minus(const struct json *x, const struct json *y, struct hk_arena *a);
/* Fields in both sets whose values in v and w differ. */
struct json fields_dispute(const struct json *x, const struct json *y, const struct json *v,
                           const struct json *w, struct hk_arena *a);
/* The same for an object that is no resource. */
struct fields_topo fields_of_kind(const struct api_kind *kind);
/* Why an ApplyConfiguration cannot be merged: a field that the type lacks, or atomic values. NULL:
 * it can. */
const char *fields_check_config(struct fields_topo t, const struct json *v, struct hk_arena *a);
/* Merges the value into the target. */
void fields_merge(struct fields_topo t, struct json *target, const struct json *v,
                  struct hk_arena *a);
/* Removes the fields from the target. */
void fields_remove(struct json *target, const struct json *set, struct hk_arena *a);
/* Calls fn with the path (".spec.replicas") of each field. */
void fields_each(const struct json *set, struct hk_arena *a,
                 void (*fn)(void *ctx, const char *path), void *ctx);

/* ---- rest_apply.c ---- */

/* Server-side apply of the request's body. */
int rest_apply(struct rest_call *c);
/* An ordinary write to an object that was applied before: updates managedFields in doc. */
void rest_apply_note(struct rest_call *c, const char *sub, struct json *doc,
                     const struct json *old);

/* ---- rest_delete.c ---- */

/* How to delete, from a request or an internal caller. */
struct rest_delete_opts {
    struct hk_str if_uid;
    uint64_t if_rv;
    enum port_propagation propagation;
    bool has_grace;
    int64_t grace_s;
    bool dry_run;
    bool unasked; /* webhooks are not asked */
};
struct rest_delete_opts rest_delete_opts_of(const struct port_request *req);
int rest_delete(struct rest_call *c);
/* The warning that a request without a policy leaves the pods of a Job. */
void rest_delete_warn(struct rest_call *c);
int rest_delete_one(struct rest_call *c, struct hk_str ns, struct hk_str name,
                    const struct rest_delete_opts *o);

/* ---- rest_collection.c ---- */

/* May leave the call incomplete, with a deleter, and perhaps with a lister before that: then
 * rest_delete_go_on is called until it has none, each time when no writes of the call are left. */
int rest_delete_collection(struct rest_call *c);
/* One slice of it. */
void rest_delete_go_on(struct rest_call *c);
/* Takes NULL. */
void rest_deleter_free(struct rest_deleter *d);

/* ---- rest_list.c ---- */

int rest_get(struct rest_call *c);
/* May leave the call unfinished with a lister: call rest_list_go_on until it has none. */
int rest_list(struct rest_call *c);
/* One slice of it. */
void rest_list_go_on(struct rest_call *c);
/* Takes NULL. */
void rest_lister_free(struct rest_lister *l);

/* ---- rest_filter.c ---- */

int rest_filter_init(struct rest_filter *f, struct rest_call *c);
void rest_filter_fini(struct rest_filter *f);
/* Adds its work to r->work. */
bool rest_filter_match(struct rest *r, const struct rest_filter *f, const struct store_obj *o);
/* Only namespace and name, which no conversion changes. */
bool rest_filter_match_name(const struct rest_filter *f, const struct store_obj *o);
/* Whether it looks at anything else. */
bool rest_filter_selects(const struct rest_filter *f);

/* ---- rest_watch.c ---- */

int rest_watch_start(struct rest_call *c, struct rest_watch **ret);
/* Objects of the resource (index in rest.resources) changed after the revision. */
void rest_watch_feed(struct rest *r, uint32_t res_at, uint64_t after);
uint32_t rest_watch_deliver(struct rest *r, uint32_t max, bool *ret_more);
/* Ends the pushed watch of that call without a message. */
void rest_watch_cancel(struct rest *r, uint64_t call);
void rest_watch_tick(struct rest *r);
/* Continues watches whose conversions have ended. */
void rest_watch_converted(struct rest *r);
/* Continues watches that stopped after a slice. */
void rest_watch_go_on(struct rest *r);
int64_t rest_watch_next_ns(const struct rest *r);

/* ---- rest_gc.c ---- */

void rest_gc_feed(struct rest *r, const struct store_event *ev);
void rest_gc_run(struct rest *r);
void rest_gc_tick(struct rest *r);
int64_t rest_gc_next_ns(const struct rest *r);
void rest_gc_fini(struct rest *r);

/* ---- rest_namespace.c ---- */

void rest_drain_feed(struct rest *r, const struct store_event *ev);
void rest_drain_run(struct rest *r);
void rest_drain_tick(struct rest *r);
void rest_drain_fini(struct rest *r);
/* Creates missing standard namespaces. */
void rest_namespace_seed(struct rest *r);

/* ---- rest_service.c: addresses and node ports of Services ---- */

/* Reads those in use from the stored Services, and has addresses given to those without. */
void rest_service_open(struct rest *r, struct rest_service_range range);
/* Forgets the writes that were staged and not stored. */
void rest_service_reload(struct rest *r);
void rest_service_fini(struct rest *r);
/* Whether writes of the kind are to be reported to rest_service_charge. */
bool rest_service_watches(const struct rest *r, const struct rest_kind *k);
/* A write was staged: the states before and after it, NULL when there is none. */
void rest_service_charge(struct rest *r, const struct json *old, const struct json *new);
/* Gives a new or changed Service what it lacks; collects field errors. No effect on other kinds. */
int rest_service_allocate(struct rest_call *c, const char *sub, struct json *doc,
                          const struct json *old);

/* ---- rest_quota.c ---- */

/* Whether a quota counts writes of the kind in the namespace. */
bool rest_quota_watches(const struct rest *r, const struct rest_kind *k, struct hk_str ns);
/* A write was staged: the states before and after it, NULL when there is none. */
void rest_quota_charge(struct rest *r, const struct rest_kind *k, struct hk_str ns,
                       struct hk_str name, const struct json *old, const struct json *new);
/* For admission_lookup. */
bool rest_quota_used(void *ctx, struct hk_str ns, struct hk_str quota, struct hk_str resource,
                     struct quantity *ret);
void rest_quota_run(struct rest *r);
void rest_quota_tick(struct rest *r);
int64_t rest_quota_next_ns(const struct rest *r);
/* Recomputes all usage from the published objects. */
void rest_quota_load(struct rest *r);
void rest_quota_fini(struct rest *r);
