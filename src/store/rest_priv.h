// SPDX-License-Identifier: Apache-2.0
// Shared by the rest_*.c files only: the state of the port, a call on its way through, and what
// each file offers the others.
#pragma once

#include "api/selector.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/vec.h"
#include "store/rest.h"

enum {
    REST_CACHE = 4096, /* parsed objects kept for those who ask next, a power of two */
};

#define REST_SECOND ((int64_t)1000000000)
#define REST_FOREGROUND "foregroundDeletion"
#define REST_ORPHAN_FINALIZER "orphan"
#define REST_CRD_FINALIZER "customresourcecleanup.apiextensions.k8s.io"

/* A call from its submission to its PORT_DONE. */
struct rest_call {
    struct rest *r;
    struct rest_call *next; /* in the queue of outcomes */
    uint32_t slot;          /* in rest.calls */
    uint64_t id;
    struct port_sink sink;
    struct hk_arena mem;            /* trees and texts of this call */
    const struct port_request *req; /* while it is being submitted, else NULL */
    const struct rest_kind *k;
    struct hk_str ns, name;
    char *names;                           /* both, once mem has been given back; else NULL */
    HK_VEC(const struct store_obj *) held; /* states that trees in mem borrow from */
    HK_VEC(struct api_object *) lent;      /* parsed states, of rest_head_shared */
    struct admission_request adm;          /* collects field errors and warnings */
    uint32_t writes;                       /* not yet durable */
    bool submitted;                        /* rest_submit is through with it */
    bool deletes;                          /* the last of the writes removes the object */
    bool text_only;
    bool scale;                 /* answered with the Scale of the object */
    const struct json *managed; /* metadata.managedFields to be, by an apply; else NULL */

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
    struct api_field_selector fields; /* without metadata.name=, which is above */
    bool needs_tree;
};

struct rest_watch {
    struct rest *r;
    struct rest_filter filter;
    HK_VEC(const struct store_obj *) initial; /* not yet shown, held */
    uint32_t initial_at;
    uint32_t res_at;  /* in rest.resources */
    bool initial_end; /* their bookmark is still to come */
    uint64_t rv;      /* everything up to here was shown */
    uint64_t marked;  /* by a bookmark, the last one */
    bool bookmarks, text_only, dirty, gone;
    int64_t bookmark_ns;
    struct api_object *shown; /* lent to the caller */
    void (*wake)(void *ctx);  /* pulled */
    void *ctx;
    uint64_t call; /* pushed */
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

/* All that is known of a uid: the object itself when it names owners, who names it as an owner, and
 * whether somebody should have a look. */
struct gc_node {
    struct gc_item *item;
    HK_VEC(uint32_t) dependents;      /* ids */
    const struct store_obj *deleting; /* an owner that waits for or lets go of dependents, held */
    bool queued;
    uint8_t refused; /* deeds in a row */
};

/* To be looked at again. */
struct gc_later {
    uint32_t id;
    int64_t at_ns;
};

struct gc {
    struct hk_intern uids;
    HK_VEC(struct gc_node) nodes; /* by id */
    HK_VEC(uint32_t) queue;
    HK_VEC(struct gc_later) later; /* what was refused */
    struct hk_map tries;           /* calls under way, to the id they were made for */
    struct hk_arena mem;           /* of the object being looked at */
};

/* Content that must go before its namespace or CRD may. */
struct drain {
    const struct store_obj *obj; /* the namespace or CRD, held */
    bool dirty;
};

struct quota_book;

/* What the newest definition lends to a row: trees and the compiled schema. */
struct rest_lent {
    struct hk_arena mem;
    struct schema *rules;
};

struct rest {
    struct port port;
    struct store *store;
    struct hk_clock *clock;
    struct hk_rand *rand;
    bool admission;
    const struct volcano_options *volcano;
    struct admission_lookup lookup;
    struct rest_call *lookup_call; /* whose memory the answers of lookup live in */

    HK_VEC(struct rest_kind *) kinds;
    uint64_t kinds_generation;
    HK_VEC(uint32_t) resources;       /* each once */
    HK_VEC(uint64_t) seen;            /* by position in resources: published events looked at */
    HK_VEC(struct rest_lent *) spent; /* by rows that were changed; freed by the next poll */
    const struct rest_kind *namespaces, *crds, *pods, *events, *pdbs, *resource_quotas;
    const struct rest_kind *accounts, *config_maps;

    uint64_t last_call;
    struct rest_call *first, **last;  /* outcomes to deliver */
    HK_VEC(struct rest_call *) calls; /* all that exist, for cancel */
    HK_VEC(uint32_t) unborn;          /* by resource: calls whose object is not yet published */
    HK_VEC(struct rest_watch *) watches;
    struct api_object *cache[REST_CACHE];
    bool running;                        /* what the store held at the start has been read */
    HK_VEC(struct rest_expiry) expiries; /* by time */
    uint32_t expiries_at;
    struct gc gc;
    HK_VEC(struct drain) drains;
    int64_t drain_retry_ns;
    HK_VEC(const struct store_obj *) unfurnished; /* namespaces, or what they lack; held */
    char *ca_pem;                                 /* NULL: none is published */
    rest_sign_fn *sign;                           /* of tokens, NULL: nobody */
    void *sign_ctx;
    HK_VEC(struct quota_book *) quotas; /* in order of namespace and name */
    bool quotas_dirty;
    bool names_freed; /* by a definition: those without names may try again */
    int event_fd, epoll_fd;
    bool kicked;              /* event_fd is readable */
    struct hk_arena_pool mem; /* for calls */
};

/* ---- rest_object.c ---- */

/* The object of a state, its tree parsed unless the text is enough. The caller's reference; NULL
 * only when the store holds what is no object. */
struct api_object *rest_object(struct rest *r, const struct rest_kind *k, const struct store_obj *o,
                               bool tree);
/* An object, its tree parsed, in the version of the row and by its newest schema. Takes o. */
struct api_object *rest_object_show(const struct rest_kind *k, struct api_object *o);
/* The newest state, staged ones included, parsed into the call's memory, which keeps it. NULL when
 * there is none. */
const struct store_obj *rest_head(struct rest_call *c, const struct rest_kind *k, struct hk_str ns,
                                  struct hk_str name, struct json *ret, bool *ret_staged);
/* The same, with what others have parsed: nothing of the tree may be changed, not even through a
 * copy of its top. */
const struct store_obj *rest_head_shared(struct rest_call *c, const struct rest_kind *k,
                                         struct hk_str ns, struct hk_str name, struct json *ret,
                                         bool *ret_staged);
/* How many creations in the resource are under way. Of most there are none, while there may be
 * thousands of others. */
uint32_t *rest_unborn(struct rest *r, uint32_t res);
/* What admission may ask. */
struct admission_lookup rest_lookup(struct rest *r);

/* ---- rest.c ---- */

int64_t rest_now(const struct rest *r);
/* Hands a write to the store. The call ends when its last write does; the object of the last one
 * is its answer. */
int rest_store(struct rest_call *c, enum store_verb verb, const struct rest_kind *k,
               struct hk_str ns, struct hk_str name, struct json *root, uint64_t expect_rv);
/* Answers with a tree that was not written. */
int rest_answer_tree(struct rest_call *c, const struct api_kind *kind, const struct json *doc);
/* Makes port_poll worth calling. */
void rest_kick(struct rest *r);
void rest_warn(struct rest_call *c, const char *fmt, ...) HK_PRINTF(2, 3);

/* ---- rest_kinds.c ---- */

void rest_kinds_init(struct rest *r);
void rest_kinds_fini(struct rest *r);
/* A CustomResourceDefinition came, changed or went. */
void rest_kinds_feed(struct rest *r, const struct store_event *ev);
/* Frees what rows no longer point to. */
void rest_kinds_sweep(struct rest *r);
const struct rest_kind *rest_kind_of(const struct rest *r, const struct api_kind *kind);
/* The row whose version the objects are kept in. */
const struct rest_kind *rest_kind_by_res(const struct rest *r, uint32_t res);

/* ---- rest_table.c ---- */

/* Kinds outside the registry; NULL behind the last. */
const struct api_kind *rest_table_kind(size_t i);
/* Of enum rest_flag. */
uint32_t rest_table_flags(const struct api_kind *k);
/* Field paths that may be selected by, NULL-terminated. */
const char *const *rest_kind_fields(const struct rest_kind *k);

/* ---- rest_view.c ---- */

/* Kinds that are other versions of kept ones; NULL behind the last. */
const struct api_kind *rest_view_at(size_t i, const struct rest_view **ret);
/* The group and version objects are kept in. */
void rest_view_of(const struct rest_view *v, struct hk_str *ret_group, struct hk_str *ret_version);
/* From the kept form into that of the row, in place. rest_view_take goes back. */
void rest_view_show(const struct rest_kind *k, struct json *doc, struct hk_arena *a);

/* ---- rest_crd.c ---- */

/* Finalizer and status of a new or changed definition. */
void rest_crd_prepare(struct rest_call *c, struct json *doc, const struct json *old);
/* Whether all its names were accepted. */
bool rest_crd_established(const struct json *doc);
/* A definition changed: others may have waited for its names. */
void rest_crd_feed(struct rest *r, const struct store_event *ev);
void rest_crd_run(struct rest *r);

/* ---- rest_status.c: all return the negative code they set ---- */

int rest_fail(struct rest_call *c, int http, enum hk_code code, const char *reason, const char *fmt,
              ...) HK_PRINTF(5, 6);
int rest_fail_bad(struct rest_call *c, const char *fmt, ...) HK_PRINTF(2, 3);
/* The patch does not apply. Names no object: kubectl then shows the message. */
int rest_fail_patch(struct rest_call *c, const char *why);
/* There is no such kind or subresource. */
int rest_fail_unknown(struct rest_call *c);
int rest_fail_missing(struct rest_call *c, const struct rest_kind *k, struct hk_str name);
int rest_fail_exists(struct rest_call *c, struct hk_str name);
/* "Operation cannot be fulfilled on ...: " and why. */
int rest_fail_conflict(struct rest_call *c, const char *fmt, ...) HK_PRINTF(2, 3);
int rest_fail_modified(struct rest_call *c);
int rest_fail_method(struct rest_call *c, const char *verb);
int rest_fail_expired(struct rest_call *c, const char *fmt, ...) HK_PRINTF(2, 3);
/* From the collected field errors. */
int rest_fail_invalid(struct rest_call *c);
/* By the code and the words of admission, the collected field errors as causes. */
int rest_fail_admission(struct rest_call *c, int rc);
int rest_fail_store(struct rest_call *c, int rc);
void rest_cause(struct rest_call *c, const char *reason, const char *field, const char *message);
void rest_field_error(struct rest_call *c, const char *reason, const char *field, const char *fmt,
                      ...) HK_PRINTF(4, 5);
/* A Success in place of the object. */
void rest_succeed(struct rest_call *c, int http);
/* "pods" or "jobs.batch.volcano.sh". */
const char *rest_resource(struct rest_call *c, const struct api_kind *kind);

/* ---- rest_meta.c ---- */

/* The member as an object that may be edited, made when absent. */
struct json *rest_edit(struct json *obj, struct hk_arena *a, const char *key);
void rest_put_str(struct json *obj, struct hk_arena *a, const char *key, struct hk_str value);
void rest_put_time(struct json *obj, struct hk_arena *a, const char *key, int64_t ns);
struct hk_str rest_meta_str(const struct json *doc, const char *key);
bool rest_deleting(const struct json *doc);
bool rest_has_finalizer(const struct json *doc, const char *name);
/* Takes the finalizer away; false when it was not there. */
bool rest_drop_finalizer(struct json *doc, struct hk_arena *a, const char *name);
uint32_t rest_finalizers(const struct json *doc);
/* Checks kind, name and namespace of a body against the request. */
int rest_check_identity(struct rest_call *c, const struct json *doc);
/* Every object carries its kind, and is kept in one version whichever it was written through. */
void rest_put_kind(struct rest_call *c, struct json *doc);
/* Makes the metadata of a new object. generateName is left to rest_generate_name. */
int rest_meta_create(struct rest_call *c, struct json *doc);
void rest_generate_name(struct rest_call *c, struct json *doc);
/* What only the server sets stays as it was. */
int rest_meta_update(struct rest_call *c, struct json *doc, const struct json *old);
/* Counts up when a change outside metadata and status, or to none, calls for it. */
void rest_meta_generation(struct rest_call *c, struct json *doc, const struct json *old);
/* Marks the beginning or the hastening of the end. */
void rest_meta_delete(struct rest_call *c, struct json *doc, int64_t at_ns, int64_t grace_s);
/* Sets the condition, moving lastTransitionTime only with the status. */
void rest_condition_put(struct json *doc, struct hk_arena *a, int64_t now_ns, const char *type,
                        const char *status, const char *reason, const char *message);
void rest_condition(struct rest_call *c, struct json *doc, const char *type, const char *status,
                    const char *reason, const char *message);

/* ---- rest_write.c ---- */

int rest_create(struct rest_call *c);
int rest_update(struct rest_call *c);
int rest_patch(struct rest_call *c);
/* Creates from a tree that lives in the call. */
int rest_create_doc(struct rest_call *c, struct json *doc);
/* The whole way of an update from the wanted tree, which lives in the call, over the newest state.
 */
int rest_update_doc(struct rest_call *c, const char *sub, struct json *doc,
                    const struct store_obj *head, const struct json *old, bool staged);
/* Its end: removes an object that waited for this, writes nothing when nothing changed. */
int rest_commit(struct rest_call *c, struct json *doc, const struct store_obj *head,
                const struct json *old, bool staged);
/* The patch of the request, applied to doc in place. */
int rest_patch_apply(struct rest_call *c, const struct rest_kind *k, struct json *doc);

/* ---- rest_sub.c, rest_evict.c, rest_token.c ---- */

int rest_bind(struct rest_call *c);
int rest_scale_get(struct rest_call *c);
int rest_scale_write(struct rest_call *c);
/* Turns the answer, which is the scaled object, into its Scale. */
void rest_scale_answer(struct rest_call *c);
int rest_evict(struct rest_call *c);
int rest_token(struct rest_call *c);

/* ---- rest_pod.c: what comes through a door to a pod, in place of doc ---- */

void rest_pod_ephemeral(struct rest_call *c, struct json *doc, const struct json *old);
void rest_pod_resize(struct rest_call *c, struct json *doc, const struct json *old);
/* What is left to check once defaults are filled in. */
void rest_pod_check_resize(struct rest_call *c, const struct json *doc, const struct json *old);

/* ---- rest_schema.c: what a CRD's schema does to its objects, nothing to other kinds ---- */

/* Prunes, collecting the unknown, and fills in defaults. */
void rest_schema_apply(struct rest_call *c, struct json *doc);
/* Whether the state was written before the schema became what it is. */
bool rest_schema_outdated(const struct rest_kind *k, const struct store_obj *o);
/* Brings a stored tree up to the schema. */
void rest_schema_refresh(const struct rest_kind *k, struct json *doc, struct hk_arena *mem);
/* Collects field errors. */
void rest_schema_validate(struct rest_call *c, const struct json *doc);

/* ---- rest_fields.c: sets of fields, as tries in the form of FieldsV1 ---- */

/* What is known of a value's shape: how lists and maps in it merge. Zeroed: nothing. */
struct fields_topo {
    const struct api_type *type;
    const struct api_field *field;
    const struct json *schema;
};
struct fields_topo fields_root(const struct rest_kind *k);
/* All fields of the value, without those only the server sets. */
struct json fields_of(struct fields_topo t, const struct json *v, struct hk_arena *a);
/* Fields of b that a has not, or has otherwise, and of a that b has no more. */
void fields_diff(struct fields_topo t, const struct json *a, const struct json *b,
                 struct json *ret_changed, struct json *ret_gone, struct hk_arena *mem);
struct json fields_union(const struct json *x, const struct json *y, struct hk_arena *a);
struct json fields_minus(const struct json *x, const struct json *y, struct hk_arena *a);
/* Fields in both sets whose values in v and w differ. */
struct json fields_dispute(const struct json *x, const struct json *y, const struct json *v,
                           const struct json *w, struct hk_arena *a);
/* Puts the value over the target, which changes in place. */
void fields_merge(struct fields_topo t, struct json *target, const struct json *v,
                  struct hk_arena *a);
/* Takes the fields out of the target. */
void fields_remove(struct json *target, const struct json *set, struct hk_arena *a);
/* Calls fn with the path (".spec.replicas") of each field. */
void fields_each(const struct json *set, struct hk_arena *a,
                 void (*fn)(void *ctx, const char *path), void *ctx);

/* ---- rest_apply.c ---- */

/* Server-side apply of the request's body. */
int rest_apply(struct rest_call *c);
/* An ordinary write to an object that was applied before: who changed what is noted in doc. */
void rest_apply_note(struct rest_call *c, const char *sub, struct json *doc,
                     const struct json *old);

/* ---- rest_delete.c ---- */

/* How to delete, taken from a request or from inside. */
struct rest_delete_opts {
    struct hk_str if_uid;
    uint64_t if_rv;
    enum port_propagation propagation;
    bool has_grace;
    int64_t grace_s;
    bool dry_run;
};
int rest_delete(struct rest_call *c);
int rest_delete_collection(struct rest_call *c);
int rest_delete_one(struct rest_call *c, struct hk_str ns, struct hk_str name,
                    const struct rest_delete_opts *o);

/* ---- rest_list.c ---- */

int rest_get(struct rest_call *c);
int rest_list(struct rest_call *c);
int rest_filter_init(struct rest_filter *f, struct rest_call *c);
void rest_filter_fini(struct rest_filter *f);
bool rest_filter_match(struct rest *r, const struct rest_filter *f, const struct store_obj *o);

/* ---- rest_watch.c ---- */

int rest_watch_start(struct rest_call *c, struct rest_watch **ret);
/* Objects of the resource, by its place in rest.resources, have changed after the revision. */
void rest_watch_feed(struct rest *r, uint32_t res_at, uint64_t after);
uint32_t rest_watch_deliver(struct rest *r, uint32_t max, bool *ret_more);
/* Ends the pushed watch of that call without a word. */
void rest_watch_cancel(struct rest *r, uint64_t call);
void rest_watch_tick(struct rest *r);
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
/* Makes the namespaces that are missing. */
void rest_namespace_seed(struct rest *r);

/* ---- rest_quota.c ---- */

/* Whether writes of the kind in the namespace are to be charged. */
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
/* Opens the books anew, from what is published. */
void rest_quota_load(struct rest *r);
void rest_quota_fini(struct rest *r);
