// SPDX-License-Identifier: Apache-2.0
// The port: the one way to the API. A call is submitted and returns at once; its outcome, and the
// events of a watch, come later as messages from port_poll on the owner's loop, never from inside
// port_submit. So callers need no locks, and cannot tell an HTTP client from a store in process.
//
// Every submitted call ends with exactly one PORT_DONE message, unless it was cancelled. A watch
// sends any number of events before that; its PORT_DONE says why it ended (-HK_EGONE: list again).
#pragma once

#include "api/object.h"

struct port;

enum port_verb {
    PORT_GET,
    PORT_LIST,
    PORT_WATCH,
    PORT_CREATE,
    PORT_UPDATE,
    PORT_PATCH,
    PORT_DELETE,
    PORT_DELETE_COLLECTION, /* what a list with the same selectors would show */
    PORT_NVERBS,
};

const char *port_verb_name(enum port_verb verb);

enum port_patch {
    PORT_PATCH_JSON,      /* RFC 6902 */
    PORT_PATCH_MERGE,     /* RFC 7386 */
    PORT_PATCH_STRATEGIC, /* Kubernetes' list-aware merge */
    PORT_PATCH_APPLY,     /* server-side apply */
};

/* Content type of a patch body. */
const char *port_patch_media(enum port_patch type);

enum port_propagation {
    PORT_PROPAGATE_DEFAULT,
    PORT_PROPAGATE_BACKGROUND,
    PORT_PROPAGATE_FOREGROUND,
    PORT_PROPAGATE_ORPHAN,
};

/* What becomes of fields the kind does not have. */
enum port_validation {
    PORT_VALIDATE_IGNORE,
    PORT_VALIDATE_WARN,
    PORT_VALIDATE_STRICT,
};

/* Which state a list with a revision shows. */
enum port_match {
    PORT_MATCH_NOT_OLDER,
    PORT_MATCH_EXACT, /* -HK_EGONE when that state is no longer known */
};

/* Whether a watch begins with an ADDED event for each object there is. */
enum port_initial {
    PORT_INITIAL_AUTO, /* when rv is 0 */
    PORT_INITIAL_SEND, /* always, and a bookmark at their end, whatever `bookmarks` says */
    PORT_INITIAL_SKIP,
};

/* What to do. Everything is borrowed for the call of port_submit only. Unset fields are zero. */
struct port_request {
    enum port_verb verb;
    const struct api_kind *kind;
    struct hk_str ns; /* list and watch: "" is all namespaces */
    struct hk_str name;
    const char *subresource; /* get, create, update, patch: "status", "binding", "eviction",
                              * "scale", "token" */
    const struct json *body; /* create, update, patch */
    bool text_only;          /* the objects' text is enough: their root may be null */

    struct hk_str label_selector, field_selector; /* list and watch */
    uint64_t rv;               /* watch: events after this revision; list: at least this fresh */
    uint32_t limit;            /* list: objects per page, 0 is all */
    struct hk_str cont;        /* list: token of the page before */
    enum port_match match;     /* list */
    bool bookmarks;            /* watch */
    enum port_initial initial; /* watch */

    enum port_validation validate; /* writes */
    const char *const *duplicates; /* writes: paths of fields the body had more than once */
    uint32_t nduplicates;
    enum port_patch patch;
    struct hk_str field_manager; /* writes */
    bool force;                  /* apply: take over fields others own */
    bool dry_run;

    /* Delete only if these still hold; zero does not ask. */
    struct hk_str if_uid;
    uint64_t if_rv;
    enum port_propagation propagation;
    bool has_grace;
    int64_t grace_s;
};

enum port_msg_type {
    PORT_DONE,
    PORT_ADDED,
    PORT_MODIFIED,
    PORT_DELETED,  /* obj is the last state */
    PORT_BOOKMARK, /* rv is the revision reached; no obj */
};

/* One cause of a refusal. Unset members are NULL. */
struct port_cause {
    const char *reason, *field, *message;
};

/* An outcome in the words of a Kubernetes Status. Unset members are NULL or zero. */
struct port_status {
    int code; /* HTTP */
    bool success;
    const char *reason, *message;
    const char *name, *group, *kind, *uid; /* details */
    const struct port_cause *causes;
    uint32_t ncauses;
    int32_t retry_after_s;
    const char *cont; /* an expired list: the token that goes on at the newest state */
};

/* Borrowed by the callback: take references to keep objects. */
struct port_msg {
    enum port_msg_type type;
    uint64_t call;                   /* what port_submit returned */
    uint64_t rv;                     /* of the object, the list or the bookmark */
    struct api_object *obj;          /* the outcome of all but list and watch; the event's object */
    struct api_object *const *items; /* list */
    uint32_t nitems;
    struct hk_str cont; /* list: token of the next page, "" at the end */
    int64_t remaining;  /* list: objects behind this page, 0 unknown or none */
    bool initial_end;   /* bookmark: the initial events end here */
    bool created;       /* the write made the object: 201 */
    int rc;             /* PORT_DONE: 0 or a negative hk_code, err says more */
    const struct hk_err *err;
    /* PORT_DONE, from makers that know: the refusal, or the success that is answered with a Status
     * instead of the object. Else NULL. */
    const struct port_status *status;
    const char *const *warnings;
    uint32_t nwarnings;
};

/* Where a call's messages go. The callback may submit and cancel, but not poll or free. */
struct port_sink {
    void (*on_msg)(void *ctx, const struct port_msg *m);
    void *ctx;
};

struct port_ops {
    const char *name;
    uint64_t (*submit)(struct port *p, const struct port_request *req, struct port_sink sink);
    void (*cancel)(struct port *p, uint64_t call);
    uint32_t (*poll)(struct port *p, uint32_t max);
    int (*fd)(struct port *p);
    void (*free)(struct port *p);
};

/* Makers embed this first. */
struct port {
    const struct port_ops *ops;
};

/* Never fails: what is wrong with a request is told by its PORT_DONE. The answer is never 0. A
 * sink without callback ignores the outcome. */
static inline uint64_t port_submit(struct port *p, const struct port_request *req,
                                   struct port_sink sink)
{
    return p->ops->submit(p, req, sink);
}

/* No message of that call is delivered any more; a write may still take effect. Finished and
 * unknown calls are ignored. */
static inline void port_cancel(struct port *p, uint64_t call)
{
    p->ops->cancel(p, call);
}

/* Delivers up to max waiting messages, in order, and returns how many. Does not block. */
static inline uint32_t port_poll(struct port *p, uint32_t max)
{
    return p->ops->poll(p, max);
}

/* Becomes readable when messages wait; -1 when the owner must poll by other means. */
static inline int port_fd(struct port *p)
{
    return p->ops->fd(p);
}

/* Drops calls in flight without a message. Takes NULL. */
void port_free(struct port *p);

/* The requests everybody makes, spelled once. */
uint64_t port_get(struct port *p, const struct api_kind *kind, struct hk_str ns, struct hk_str name,
                  struct port_sink sink);
uint64_t port_list(struct port *p, const struct api_kind *kind, struct hk_str ns,
                   struct port_sink sink);
uint64_t port_watch(struct port *p, const struct api_kind *kind, struct hk_str ns, uint64_t rv,
                    struct port_sink sink);
uint64_t port_create(struct port *p, const struct api_kind *kind, struct hk_str ns,
                     const struct json *body, struct port_sink sink);
/* subresource may be NULL. Names and namespace come from the body's metadata. */
uint64_t port_update(struct port *p, const struct api_kind *kind, const char *subresource,
                     const struct json *body, struct port_sink sink);
uint64_t port_delete(struct port *p, const struct api_kind *kind, struct hk_str ns,
                     struct hk_str name, struct port_sink sink);
