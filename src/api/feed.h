// SPDX-License-Identifier: Apache-2.0
// One kind of objects as it is and as it changes: listed page by page, then watched from the list's
// revision on, listed again when the watch fell out of the history, with growing pauses after
// failures. The owner hears each object at least once and each removal, also those that happened
// while nobody watched.
//
//   LISTING --all pages--> WATCHING --ended--> WAITING --> WATCHING
//      ^ '--failed--> WAITING     '--gone--.      (or LISTING: see feed.c)
//      '---------------------------------- '
#pragma once

#include "api/port.h"
#include "base/clock.h"
#include "base/map.h"

struct feed_ops {
    /* A new or changed object; also one that was not changed, after a new list. */
    void (*put)(void *ctx, struct api_object *o);
    /* last is the object's last state, NULL when its absence was found by a list. */
    void (*del)(void *ctx, struct hk_str ns, struct hk_str name, const struct api_object *last);
    /* A list is complete, removals included. May be NULL. */
    void (*listed)(void *ctx);
};

struct feed_opts {
    struct port *port;
    struct hk_clock *clock;
    struct hk_intern *str; /* holds the names of the objects; outlives the feed */
    const struct api_kind *kind;
    bool required;    /* the server must have the kind; others count as empty when it has not */
    uint32_t page;    /* objects per list request, 0: 2,000 */
    bool text_only;   /* as in a request: the objects' text is enough */
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
    uint32_t failures; /* in a row; a watch that lasts or speaks ends the row */
    uint32_t absences; /* lists in a row that found the kind not served */
    struct hk_rand rand;
    uint64_t call, rv; /* rv: everything up to it has been told */
    int64_t since_ns, due_ns;
    uint32_t round;     /* of lists */
    struct hk_map seen; /* namespace and name to the round they were last listed in */
};

/* Starts listing. */
void feed_init(struct feed *f, const struct feed_opts *o);
/* Acts when its time has come; the monotonic time of its next act, INT64_MAX none. */
int64_t feed_tick(struct feed *f, int64_t now_ns);
void feed_fini(struct feed *f);
