// SPDX-License-Identifier: Apache-2.0
// The port: the only way to the API. port_submit returns at once. The outcome of a call and the
// events of a watch arrive later as messages from port_poll on the owner's loop, never from inside
// port_submit. So callers need no locks, and an HTTP client and an in-process store look the same
// to them.
//
// Every submitted call ends with exactly one PORT_DONE message, unless it was cancelled. A watch
// sends any number of events before that; its PORT_DONE says why it ended (-HK_EGONE: list again).
#pragma once

#include "api/object.h"

struct port;
struct rights;

enum port_verb {
    PORT_GET,
    PORT_LIST,
    PORT_WATCH,
    PORT_CREATE,
    PORT_UPDATE,
    PORT_PATCH,
    PORT_DELETE,
    PORT_DELETE_COLLECTION, /* every object that the selectors match */
    PORT_NVERBS,
};

const char *port_verb_name(enum port_verb verb);

enum port_patch {
    PORT_PATCH_JSON,      /* RFC 6902 */
    PORT_PATCH_MERGE,     /* RFC 7386 */
    PORT_PATCH_STRATEGIC, /* Kubernetes' list-aware merge */
    PORT_PATCH_APPLY,     /* server-side apply */
};

enum { PORT_FIELD_MANAGER_MAX = 128 }; /* bytes of port_request.field_manager */

/* Content type of a patch body. */
const char *port_patch_media(enum port_patch type);

enum port_propagation {
    PORT_PROPAGATE_DEFAULT,
    PORT_PROPAGATE_BACKGROUND,
    PORT_PROPAGATE_FOREGROUND,
    PORT_PROPAGATE_ORPHAN,
};

/* How to treat fields that the kind does not define. */
enum port_validation {
    PORT_VALIDATE_IGNORE,
    PORT_VALIDATE_WARN,
    PORT_VALIDATE_STRICT,
};

/* Which state a list with a revision returns. */
enum port_match {
    PORT_MATCH_NOT_OLDER,
    PORT_MATCH_EXACT, /* fails with -HK_EGONE when the store no longer has that state */
};

/* Whether a watch starts with an ADDED event for each existing object. */
enum port_initial {
    PORT_INITIAL_AUTO, /* send when rv is 0 */
    PORT_INITIAL_SEND, /* always send, then a bookmark even without `bookmarks` */
    PORT_INITIAL_SKIP,
};

/* Who makes a request, for admission webhooks. uid may be NULL. */
struct port_user {
    const char *name, *uid;
    const char *const *groups;
    uint32_t ngroups;
};

/* One call. port_submit borrows all pointers until it returns; the rights of a write until its
 * PORT_DONE or port_cancel. Unset fields are zero. */
struct port_request {
    enum port_verb verb;
    const struct api_kind *kind;
    struct hk_str ns; /* list and watch: "" is all namespaces */
    struct hk_str name;
    const char *subresource;      /* get, create, update, patch: "status", "binding", "eviction",
                                  * "scale", "token" */
    const struct json *body;      /* create, update, patch */
    bool text_only;               /* results need only text: their root may be JSON null */
    const struct rights *rights;  /* writes: rights of the requesting user; NULL: this program */
    const struct port_user *user; /* writes; NULL: this program */

    struct hk_str label_selector, field_selector; /* list and watch */
    uint64_t rv;               /* watch: events after this revision; list: at least this fresh */
    uint32_t limit;            /* list: objects per page, 0 is all */
    struct hk_str cont;        /* list: token from the previous page */
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

    /* Delete only if these still match; zero skips the check. */
    struct hk_str if_uid;
    uint64_t if_rv;
    enum port_propagation propagation;
    bool has_grace;
    int64_t grace_s;
    bool expired; /* delete: its time is over; admission webhooks are not asked */
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

/* The fields of a Kubernetes Status. */
struct port_status {
    int code; /* HTTP */
    bool success;
    const char *reason, *message;
    const char *name, *group, *kind, *uid; /* details */
    const struct port_cause *causes;
    uint32_t ncauses;
    int32_t retry_after_s;
    const char *cont; /* expired list: token that continues at the newest state */
};

/* Valid during the callback only; take references to keep objects. */
struct port_msg {
    enum port_msg_type type;
    uint64_t call;                   /* the value port_submit returned */
    uint64_t rv;                     /* of the object, the list or the bookmark */
    struct api_object *obj;          /* the result (not of list, watch), or the event's object */
    struct api_object *const *items; /* list */
    uint32_t nitems;
    struct hk_str cont; /* list: token of the next page, "" at the end */
    int64_t remaining;  /* list: objects after this page, 0 if none or unknown */
    bool initial_end;   /* bookmark: all initial events were sent */
    bool created;       /* the write created the object: 201 */
    int rc;             /* PORT_DONE: 0 or a negative hk_code, err says more */
    const struct hk_err *err;
    /* PORT_DONE: the refusal, or the Status sent instead of the object on success. NULL when the
     * port implementation has none. */
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

/* Implementations embed this as their first member. */
struct port {
    const struct port_ops *ops;
};

/* Never fails: PORT_DONE reports an invalid request. The returned id is never 0. A sink without
 * callback discards the outcome. */
static inline uint64_t port_submit(struct port *p, const struct port_request *req,
                                   struct port_sink sink)
{
    return p->ops->submit(p, req, sink);
}

/* Stops all messages of the call; a write may still take effect. Ignores finished and unknown
 * calls. */
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

/* Shorthands for common requests. */
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
