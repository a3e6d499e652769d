// SPDX-License-Identifier: Apache-2.0
// Shared by the rest_webhook*.c files only: configured webhooks, what one of them is asked, and the
// calls that wait for them.
#pragma once

#include "api/admit_expr.h"
#include "api/webhook_caller.h"
#include "store/rest_priv.h"

enum {
    WEBHOOK_MAX_POSTS = 256,      /* calls of all webhooks in flight */
    WEBHOOK_MAX_POSTS_EACH = 64,  /* calls of one webhook in flight */
    WEBHOOK_MAX_BYTES = 64 << 20, /* of the questions of writes that wait */
    WEBHOOK_MAX_WAITING = 4096,   /* writes that wait for webhooks */
    WEBHOOK_MAX_RESTARTS = 5,     /* of a write whose object changed while it waited, as in
                                  * kube-apiserver */
    WEBHOOK_UID = 37,
};

/* What a webhook, a policy or a binding matches. */
struct webhook_terms {
    const struct json *rules;    /* a binding without rules matches what its policy does */
    const struct json *excluded; /* excludeResourceRules, NULL: none */
    bool equivalent;             /* matchPolicy */
    bool any;                    /* absent rules match everything */
    struct api_selector namespaces, objects;
    const char *bad; /* why they cannot be used, or NULL */
};

struct webhook_condition {
    struct admit_expr *expr; /* NULL: it does not compile */
    const char *why;         /* then: the reason */
};

/* matchConditions */
struct webhook_conditions {
    struct webhook_condition *at;
    uint32_t len, cap;
};

/* One entry of a configuration. */
struct webhook {
    const char *name;
    bool mutating;
    bool ignore;         /* failurePolicy Ignore */
    bool if_needed;      /* reinvocationPolicy */
    bool dry_runs;       /* has no side effects when asked for a dry run */
    const char *version; /* of AdmissionReview, NULL: none that this server speaks */
    int64_t timeout_s;
    struct webhook_terms terms;
    struct admit_exprs exprs;
    struct webhook_conditions conditions;
    const struct json *client; /* clientConfig */
    const char *ca_pem;        /* NULL: none given */
    const char *bad;           /* why the configuration cannot be used, or NULL */
    uint32_t posts;            /* in flight */
};

/* All webhooks at one time: the mutating ones first, by configuration name, then list order. */
struct webhook_table {
    uint32_t refs;
    struct hk_arena mem;
    HK_VEC(struct webhook) at;
    uint32_t nmutating;
};

/* Marks of one webhook or mutating policy during a write. */
enum webhook_mark {
    WEBHOOK_INVOKED = 1 << 0, /* asked in the first round, reinvocationPolicy IfNeeded */
    WEBHOOK_AGAIN = 1 << 1,   /* the object changed after that */
};

/* ---- rest_webhook_asking.c ---- */

struct policy_table;
struct webhook_ask;

/* What a write has asked so far. */
struct rest_asking {
    struct hk_arena mem; /* of the next four */
    struct port_request req;
    const char *user; /* JSON of userInfo */
    HK_VEC(char *) warnings;
    struct port_user person; /* req.user, if there is one */
    bool waiting;
    uint32_t restarts;

    /* What was learned about one state of the object. */
    struct webhook_table *table; /* NULL: nothing yet */
    uint64_t rv;                 /* of the state */
    bool validating;             /* all mutating webhooks have answered */
    bool second_round, changed;
    struct policy_table *policies; /* NULL: none has run */
    uint8_t *policy_marks;         /* of its mutating bindings */
    bool policies_ran;             /* in this round */
    struct hk_buf policy_output;   /* the object when they ended in the first round */
    uint32_t at;                   /* the mutating webhook whose turn it is */
    uint8_t *marks;
    struct hk_buf mutated; /* the object after the mutating webhooks so far; empty: none */
    struct hk_buf shown;   /* the object that the validating webhooks see */
    HK_VEC(struct webhook_ask *) asks;
    uint32_t unanswered;
};

/* Forgets everything about the object, but not the warnings. */
void asking_forget(struct rest_asking *k);
/* Cancels the questions. */
void asking_clear_asks(struct rest_asking *k);
/* Keeps a warning for the answer, once: a header has no room for control characters. */
void asking_keep_warning(struct rest_asking *k, struct hk_str text);

/* Adds a warning to the answer, once, whatever other turns the call takes. */
void rest_webhook_warn(struct rest_call *c, const char *text);

/* ---- rest_webhook_table.c ---- */

/* The present table; NULL while there is no webhook or nothing to call it with. */
struct webhook_table *webhook_table(struct rest *r);
struct webhook_table *webhook_table_ref(struct webhook_table *t);
/* Takes NULL. */
void webhook_table_unref(struct webhook_table *t);
/* Reads matchConstraints or the like. */
void webhook_terms_read(struct webhook_terms *t, const struct json *doc, struct hk_arena *a);
/* The row of the version in which the object is shown, or NULL: the terms do not match. */
const struct rest_kind *webhook_terms_match(struct rest_call *c, const struct webhook_terms *t,
                                            const struct webhook_subject *s);
/* Compiles matchConditions into x. */
void webhook_conditions_read(struct webhook_conditions *w, const struct json *list,
                             struct admit_exprs *x);
/* Whether the request is never shown to webhooks: they cannot guard themselves. */
bool webhook_exempt(const struct webhook_subject *s);
/* "CREATE", "UPDATE", "DELETE" or "CONNECT". */
const char *webhook_operation(const struct webhook_subject *s);

/* ---- rest_webhook_target.c ---- */

/* Where to call the webhook. Negative with the reason; what is returned lives in mem. */
int webhook_target(struct rest *r, const struct webhook *h, struct hk_arena *mem,
                   struct webhook_post *ret, struct hk_err *err) HK_CHECKED;

/* ---- rest_webhook_review.c ---- */

/* Appends the AdmissionReview. user is the JSON of userInfo. */
void webhook_write_review(struct rest_call *c, const struct webhook *h,
                          const struct webhook_subject *s, const struct rest_kind *row,
                          const char *uid, const char *user, struct hk_buf *out);
/* The JSON of the request's options. */
void webhook_write_options(const struct webhook_subject *s, struct hk_buf *out);
/* The JSON of userInfo. */
void webhook_write_user(const struct port_user *u, struct hk_buf *out);

struct webhook_verdict {
    bool allowed;
    int code;                     /* of a refusal */
    const char *reason, *message; /* the same; NULL: none given */
    struct hk_str patch;          /* text of a JSON patch; empty: none */
    const struct json *warnings;
};

/* Reads the answer into mem. Negative with the reason when it is no valid answer. */
int webhook_read_review(const struct webhook *h, const char *uid, struct hk_str body,
                        struct hk_arena *mem, struct webhook_verdict *ret,
                        struct hk_err *err) HK_CHECKED;

/* ---- rest_webhook_post.c ---- */

/* One question to one webhook, and its answer. */
struct webhook_ask {
    struct rest *r;
    struct webhook *hook;
    const struct rest_kind *row;
    char uid[WEBHOOK_UID];
    enum { WEBHOOK_QUEUED, WEBHOOK_SENT, WEBHOOK_ANSWERED } state;
    uint64_t post;
    int64_t deadline_ns;
    struct hk_arena mem;
    struct webhook_post target;
    struct hk_buf review; /* until it is sent */
    size_t bytes;         /* of it */
    /* the answer */
    int http;
    struct hk_buf body;
    struct hk_buf why;
    void (*answered)(struct webhook_ask *a); /* called once, never from inside webhook_post_queue */
    struct rest_call *c;
    void *ctx; /* of those who ask without a call */
};

/* Queues the question; its review and target are set. It is sent when fewer than the limits are in
 * flight, and is answered by its deadline at the latest. */
void webhook_post_queue(struct webhook_ask *a);
/* Sends what may be sent. */
void webhook_post_send(struct rest *r);
void webhook_post_tick(struct rest *r);
int64_t webhook_post_next_ns(const struct rest *r);
/* Cancels the question if it is not answered. Takes NULL. */
void webhook_ask_free(struct webhook_ask *a);
