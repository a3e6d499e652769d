// SPDX-License-Identifier: Apache-2.0
// The current objects of a kind, kept up to date by a watch, for verbs that wait for something.
#pragma once

#include "api/feed.h"
#include "base/vec.h"
#include "user/user.h"

struct live_opts {
    enum api_kind_id kind;
    const char *ns;    /* "": all; ignored for cluster-scoped kinds */
    const char *label; /* selectors; NULL: all. They must outlive this struct */
    const char *field;
    /* New or changed; o is NULL when it is deleted. May be NULL. */
    void (*changed)(void *ctx, struct hk_str ns, struct hk_str name, struct api_object *o);
    void *ctx;
};

struct live {
    struct live_opts o;
    struct feed feed;
    struct hk_intern str;
    HK_VEC(struct api_object *) at; /* by namespace and name */
    bool dirty;                     /* something changed since the owner cleared it */
};

void live_init(struct live *l, struct user *u, const struct live_opts *o);
void live_fini(struct live *l);
/* Runs the loop once, for at most timeout_ms (negative: until something happens). Fails if the
 * server is away for too long. */
int live_turn(struct user *u, struct live *const *all, uint32_t n, int timeout_ms,
              struct hk_err *err) HK_CHECKED;
/* Runs the loop until all kinds have been listed. */
int live_sync(struct user *u, struct live *const *all, uint32_t n, struct hk_err *err) HK_CHECKED;
/* NULL when there is none. */
struct api_object *live_find(const struct live *l, struct hk_str ns, struct hk_str name);
