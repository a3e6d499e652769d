// SPDX-License-Identifier: Apache-2.0
// Follows all objects of one kind: lists page by page, then watches from the list's revision, lists
// again when that revision is no longer available, and pauses longer after each failure. The owner
// gets each object at least once and each removal, including removals between watches.
//
//   LISTING --all pages--> WATCHING --ended--> WAITING --> WATCHING
//      ^ '--failed--> WAITING     '--gone--.      (or LISTING: see feed.c)
//      '---------------------------------- '
#pragma once

#include "api/port.h"
#include "base/clock.h"
#include "base/map.h"

struct feed_ops {
    /* A new or changed object; after a new list also unchanged ones. */
    void (*put)(void *ctx, struct api_object *o);
    /* last is the object's last state, NULL when a list showed that it is gone. */
    void (*del)(void *ctx, struct hk_str ns, struct hk_str name, const struct api_object *last);
    /* A list is complete, removals included. May be NULL. */
    void (*listed)(void *ctx);
};

struct feed_opts {
    struct port *port;
    struct hk_clock *clock;
    struct hk_intern *str; /* holds the names of the objects; outlives the feed */
    const struct api_kind *kind;
    bool required;    /* the server must serve the kind; else a missing kind counts as empty */
    uint32_t page;    /* objects per list request, 0: 2,000 */
    bool text_only;   /* as in port_request */
    struct hk_str ns; /* "": all; these three outlive the feed */
    struct hk_str label_selector, field_selector;
    const struct feed_ops *ops;
    void *ctx;
};

enum feed_state { FEED_LISTING, FEED_WATCHING, FEED_WAITING };

struct feed {
    struct feed_opts o;
    bool synced; /* listed once */
    bool relist; /* what to do after waiting: list, else watch */
    uint8_t state;
    uint32_t failures; /* in a row; reset by a watch that lasts or delivers */
    uint32_t absences; /* lists in a row for which the kind was not served */
    struct hk_rand rand;
    uint64_t call, rv; /* rv: everything up to it was delivered */
    int64_t since_ns, due_ns;
    uint32_t round;     /* counts lists */
    struct hk_map seen; /* namespace and name to the last round that listed them */
};

/* Starts listing. */
void feed_init(struct feed *f, const struct feed_opts *o);
/* Does what is due; returns the monotonic time of the next action, INT64_MAX none. */
int64_t feed_tick(struct feed *f, int64_t now_ns);
/* Starts a new list at once, in any state. */
void feed_relist(struct feed *f);
void feed_fini(struct feed *f);
