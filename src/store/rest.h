// SPDX-License-Identifier: Apache-2.0
// Kubernetes on top of the store, as a port (api/port.h): object metadata, generation, status
// isolation, finalizers, graceful deletion, preconditions, patches, dry run, selectors, chunked
// lists, watches with bookmarks and initial events; deletion of namespaces with their content and
// of owners with their dependents; expiry of events. The HTTP server and in-process callers use the
// same port, so both see the same rules.
//
// Kinds are rows: built-in ones, and those of CustomResourceDefinitions. Everything runs on the
// thread of the store's owner, which watches one descriptor (port_fd), calls port_poll when it is
// readable (this also polls the store) and rest_tick at rest_next_ns.
#pragma once

#include "admission/admission.h"
#include "api/port.h"
#include "store/store.h"

struct hk_clock;
struct hk_rand;
struct rest;
struct webhook_caller;

/* The addresses for Services: a network of IPv4, in host order. The first address is that of the
 * Service default/kubernetes. */
struct rest_service_range {
    uint32_t net;
    uint8_t prefix; /* 8 to 28; 0: Services get no addresses and no node ports */
};

/* Reads "127.128.0.0/16". */
int rest_service_range_parse(const char *text, struct rest_service_range *ret,
                             struct hk_err *err) HK_CHECKED;

struct rest_opts {
    struct store *store;
    struct hk_clock *clock;
    struct hk_rand *rand; /* uids, generated names */
    bool no_admission;    /* accept objects as they are: no defaults, no validation */
    const struct volcano_options *volcano; /* NULL: their defaults; borrowed until rest_free */
    const struct admission_tolerations *tolerations; /* the same */
    struct hk_budget *budget;                        /* the store's; borrowed until rest_free */
    uint32_t max_per_namespace; /* objects of a kind that a namespace may hold; 0: any number */
    struct rest_service_range services;
};

/* Reads kinds and owners from the store, and creates the standard namespaces. */
struct rest *rest_new(const struct rest_opts *o);
/* Waits for the writes in flight. First close the watches of rest_watch_open; close the store
 * afterwards. */
void rest_free(struct rest *r);
/* Delivers only answers that are ready; port_poll does the rest. For callers whose request is
 * answered at once. */
uint32_t rest_deliver(struct rest *r, uint32_t max);
struct port *rest_port(struct rest *r);
/* From now on, writes ask the admission webhooks that are configured in the store. Without a caller
 * (NULL) none is asked. The caller must outlive the port. */
void rest_call_webhooks(struct rest *r, const struct webhook_caller *caller);
/* Keeps the certificate in the ConfigMap kube-root-ca.crt of every namespace. */
void rest_publish_ca(struct rest *r, const char *pem);

/* The claims of a service account token. Unset strings are "". */
struct rest_token {
    struct hk_str ns, account, account_uid;
    struct hk_str bound_kind, bound_name, bound_uid; /* "pod" or "secret" that limits its life */
    int64_t issued_s, expires_s;
    const struct json *audiences; /* array of strings; NULL: the server's own */
    struct hk_str id;
};

/* Appends the token's text. */
typedef void rest_sign_fn(void *ctx, const struct rest_token *t, struct hk_buf *out);
/* Sets the signer for serviceaccounts/NAME/token. Without it there is no such subresource. */
void rest_sign_tokens(struct rest *r, rest_sign_fn *sign, void *ctx);

/* Reads a certificate request (PEM): the organizations of its subject, in mem. */
typedef int rest_read_request_fn(struct hk_str pem, struct hk_arena *mem,
                                 const char *const **ret_orgs, uint32_t *ret_n, struct hk_err *err);
/* From now on, CertificateSigningRequests whose request cannot be read are refused. NULL: they are
 * not read. */
void rest_read_requests(struct rest *r, rest_read_request_fn *read);
struct admit_check;
struct port_user;

/* Whether the user passes the check of an expression. */
typedef bool rest_authorize_fn(void *ctx, const struct port_user *user,
                               const struct admit_check *check);
/* Sets what the authorizer of admission policies asks. Without it every check is refused. */
void rest_authorize_by(struct rest *r, rest_authorize_fn *authorize, void *ctx);

/* While policies are suspended no write meets them: the server's own first writes must succeed,
 * whatever policies are stored. */
void rest_suspend_policies(struct rest *r, bool suspended);

/* The kind of the options of a stream to a pod ("exec", "attach", "portforward", "proxy"), or NULL.
 * A PORT_CREATE of this subresource, with the options as body, asks admission about the stream; it is
 * answered with the options if admission has changed them, else with a status. */
const struct api_kind *rest_connect_kind(const char *subresource);
/* Whether there is a policy or webhook that may have to be asked about a stream. */
bool rest_connect_asks(struct rest *r);

/* Measures memory; while it is short, drops what is kept only for speed. Call it about once a
 * second. */
void rest_watch_memory(struct rest *r);

/* Timers: events that expire, bookmarks, retries of the collector. */
void rest_tick(struct rest *r);
/* Monotonic time of the next timer, INT64_MAX when there is none. */
int64_t rest_next_ns(const struct rest *r);

/* ---- kinds, CRDs included ---- */

enum rest_flag {
    REST_GENERATION = 1 << 0,       /* metadata.generation counts changes of the spec */
    REST_NEED_RV = 1 << 1,          /* an update must carry a resourceVersion */
    REST_CREATE_ON_UPDATE = 1 << 2, /* an update of a missing object creates it */
    REST_DELETE_STATUS = 1 << 3,    /* a completed delete is answered with a Status */
    REST_SCALE = 1 << 4,            /* has the scale subresource */
    REST_ORPHAN = 1 << 5,           /* deletion orphans dependents by default */
    REST_NO_GC = 1 << 6,            /* has no dependents */
    REST_KEEP_STATUS = 1 << 7,      /* a create keeps .status */
    REST_STATUS_ONLY = 1 << 8,      /* a status write changes no metadata */
    REST_CUSTOM = 1 << 9,           /* behaves as a custom resource */
    REST_NO_COLLECTION = 1 << 10,   /* no deletecollection */
};

struct schema;
struct rest_conversion;
struct rest_view;

struct rest_kind {
    const struct api_kind *kind; /* stable address; id API_NKINDS when not in the registry */
    uint32_t res;
    uint32_t flags;               /* of enum rest_flag */
    const struct json *schema;    /* structural schema of a CRD version, else NULL */
    const struct schema *rules;   /* the same, compiled (api/schema.h) */
    const struct json *columns;   /* additionalPrinterColumns of a CRD version, else NULL */
    const struct json *scale;     /* subresources.scale of a CRD version, else NULL */
    const struct json *names;     /* spec.names of the CRD: categories, list kind; else NULL */
    const struct rest_view *view; /* converts to this version; NULL: stored as is */
    const struct rest_kind *kept; /* with a view, the row of the stored version; else NULL */
    bool crd;                     /* made by a CustomResourceDefinition */
    bool storage;                 /* the storage version of the CRD */
    bool served;
    bool ending;        /* its definition is being deleted: creates are refused */
    bool many_versions; /* objects may be stored in another version than the row's */
    struct rest_conversion *conversion; /* by a webhook; NULL: only apiVersion differs */
    uint64_t schema_rv; /* of the definition: older objects need rest_schema_refresh */
};

/* NULL when missing or not served. A row keeps its address until rest_free; schema, rules, columns,
 * scale and names are valid until the next port_poll. */
const struct rest_kind *rest_kind_find(const struct rest *r, struct hk_str group,
                                       struct hk_str version, struct hk_str plural);
/* By apiVersion and kind of a manifest. */
const struct rest_kind *rest_kind_by_name(const struct rest *r, struct hk_str api_version,
                                          struct hk_str kind);
/* All rows, including those no longer served. */
const struct rest_kind *rest_kind_at(const struct rest *r, uint32_t i);
uint32_t rest_kinds(const struct rest *r);
/* Grows whenever rows change: rebuild what was derived from them (discovery, OpenAPI). */
uint64_t rest_kinds_generation(const struct rest *r);
/* Converts an object from the row's version to the stored one; apiVersion stays. No effect without
 * a view. */
void rest_view_take(const struct rest_kind *k, struct json *doc, struct hk_arena *a);
/* Whether the kind serves the subresource. */
bool rest_kind_has(const struct rest_kind *k, const char *subresource);

/* ---- pulled watches ---- */

/* A watch for clients that read at their own pace: it stores only a position in the history. It
 * filters the store's events and returns the messages that the port would push. */
struct rest_watch;

enum rest_next {
    REST_NEXT_NONE,  /* wait for wake */
    REST_NEXT_EVENT, /* *ret is filled, its object borrowed until the next call */
    REST_NEXT_GONE,  /* older than the history: ret->status is the 410; the watch is over */
};

/* req has verb PORT_WATCH. port_poll or rest_tick calls wake when there may be an event. On failure
 * *ret_status is filled in from mem. */
int rest_watch_open(struct rest *r, const struct port_request *req, void (*wake)(void *ctx),
                    void *ctx, struct hk_arena *mem, struct rest_watch **ret,
                    struct port_status *ret_status) HK_CHECKED;
enum rest_next rest_watch_next(struct rest_watch *w, struct port_msg *ret);
/* Everything up to this revision was delivered. */
uint64_t rest_watch_rv(const struct rest_watch *w);
/* Takes NULL. */
void rest_watch_close(struct rest_watch *w);
