// SPDX-License-Identifier: Apache-2.0
// Kubernetes on top of the store, as a port (api/port.h): object metadata, generation, status
// isolation, finalizers, graceful deletion, preconditions, patches, dry run, selectors, chunked
// lists, watches with bookmarks and initial events; namespaces that end, owners that take their
// dependents along, events that expire. The HTTP server and everything in process call the same
// port, so both see the same rules.
//
// Kinds are rows: built-ins, and at run time what CustomResourceDefinitions describe. Everything
// runs on the thread of the store's owner, who watches one descriptor (port_fd), calls port_poll
// when it is readable (which polls the store as well) and rest_tick when rest_next_ns has come.
#pragma once

#include "admission/admission.h"
#include "api/port.h"
#include "store/store.h"

struct hk_clock;
struct hk_rand;
struct rest;

struct rest_opts {
    struct store *store;
    struct hk_clock *clock;
    struct hk_rand *rand; /* uids, generated names */
    bool no_admission;    /* objects are taken as they come: neither defaults nor validation */
    const struct volcano_options *volcano; /* NULL: their defaults; borrowed until rest_free */
};

/* Reads the kinds and owners the store holds, and makes the namespaces every cluster has. */
struct rest *rest_new(const struct rest_opts *o);
/* Waits for the writes under way; watches opened with rest_watch_open must be closed before, and
 * the store may only be closed afterwards. */
void rest_free(struct rest *r);
struct port *rest_port(struct rest *r);
/* Keeps the certificate in the ConfigMap kube-root-ca.crt of every namespace. */
void rest_publish_ca(struct rest *r, const char *pem);

/* What a token of a service account says. Unset strings are "". */
struct rest_token {
    struct hk_str ns, account, account_uid;
    struct hk_str bound_kind, bound_name, bound_uid; /* "pod" or "secret" it lives and dies with */
    int64_t issued_s, expires_s;
    const struct json *audiences; /* array of strings; NULL: the server's own */
    struct hk_str id;
};

/* Appends the token's text. */
typedef void rest_sign_fn(void *ctx, const struct rest_token *t, struct hk_buf *out);
/* Who signs the tokens asked for at serviceaccounts/NAME/token. Without, there is no such door. */
void rest_sign_tokens(struct rest *r, rest_sign_fn *sign, void *ctx);

/* Timers: events that expire, bookmarks, retries of the collector. */
void rest_tick(struct rest *r);
/* Wall time of the next timer, INT64_MAX when there is none. */
int64_t rest_next_ns(const struct rest *r);

/* ---- kinds, CRDs included ---- */

enum rest_flag {
    REST_GENERATION = 1 << 0,       /* metadata.generation counts changes of the spec */
    REST_NEED_RV = 1 << 1,          /* an update must say which state it is based on */
    REST_CREATE_ON_UPDATE = 1 << 2, /* an update of nothing creates */
    REST_DELETE_STATUS = 1 << 3,    /* what is gone after a delete is answered with a Status */
    REST_SCALE = 1 << 4,            /* has the scale subresource */
    REST_ORPHAN = 1 << 5,           /* dependents stay when a deletion says nothing about them */
    REST_NO_GC = 1 << 6,            /* has no dependents */
    REST_KEEP_STATUS = 1 << 7,      /* a new object may bring its status along */
    REST_STATUS_ONLY = 1 << 8,      /* the status subresource leaves all metadata alone */
    REST_CUSTOM = 1 << 9,           /* behaves as a custom resource */
    REST_NO_COLLECTION = 1 << 10,   /* no deletecollection */
};

struct schema;
struct rest_view;

struct rest_kind {
    const struct api_kind *kind; /* stable address; id API_NKINDS when the registry has no such */
    uint32_t res;
    uint32_t flags;               /* of enum rest_flag */
    const struct json *schema;    /* structural schema of a CRD version, else NULL */
    const struct schema *rules;   /* the same, compiled (api/schema.h) */
    const struct json *columns;   /* additionalPrinterColumns of a CRD version, else NULL */
    const struct json *scale;     /* subresources.scale of a CRD version, else NULL */
    const struct json *names;     /* spec.names of the CRD: categories, list kind; else NULL */
    const struct rest_view *view; /* how objects look in this version; NULL: as they are kept */
    const struct rest_kind *kept; /* with a view, the row of the kept version; else NULL */
    bool crd;                     /* made by a CustomResourceDefinition */
    bool storage;                 /* the version objects are written in */
    bool served;
    bool ending;        /* its definition is being deleted: nothing new is taken */
    uint64_t schema_rv; /* of the definition: objects older than this are brought up to it */
};

/* NULL when there is none, or it is not served. A row keeps its address for the life of the rest;
 * schema, rules, columns, scale and names are good until the next port_poll. */
const struct rest_kind *rest_kind_find(const struct rest *r, struct hk_str group,
                                       struct hk_str version, struct hk_str plural);
/* By the two fields of a manifest. */
const struct rest_kind *rest_kind_by_name(const struct rest *r, struct hk_str api_version,
                                          struct hk_str kind);
/* All rows, also those no longer served. */
const struct rest_kind *rest_kind_at(const struct rest *r, uint32_t i);
uint32_t rest_kinds(const struct rest *r);
/* Grows whenever rows change: what was derived from them (discovery, OpenAPI) is then stale. */
uint64_t rest_kinds_generation(const struct rest *r);
/* Takes an object in the form of the row into the one it is kept in; apiVersion stays. Nothing
 * happens to rows without a view. */
void rest_view_take(const struct rest_kind *k, struct json *doc, struct hk_arena *a);
/* Whether the kind serves the subresource. */
bool rest_kind_has(const struct rest_kind *k, const char *subresource);

/* ---- watches that are pulled ---- */

/* A watch for whoever streams at his own pace: nothing is buffered here but a place in the history.
 * Of the store's events only those that matter are shown, as the messages the port would push. */
struct rest_watch;

enum rest_next {
    REST_NEXT_NONE,  /* wait for wake */
    REST_NEXT_EVENT, /* *ret is filled, its object borrowed until the next call */
    REST_NEXT_GONE,  /* fell out of the history: ret->status is the 410; nothing follows */
};

/* Takes a request with verb PORT_WATCH. wake is called, from port_poll or rest_tick, when something
 * may have come. On failure *ret_status is filled in from mem. */
int rest_watch_open(struct rest *r, const struct port_request *req, void (*wake)(void *ctx),
                    void *ctx, struct hk_arena *mem, struct rest_watch **ret,
                    struct port_status *ret_status) HK_CHECKED;
enum rest_next rest_watch_next(struct rest_watch *w, struct port_msg *ret);
/* The revision up to which everything has been shown. */
uint64_t rest_watch_rv(const struct rest_watch *w);
/* Takes NULL. */
void rest_watch_close(struct rest_watch *w);
