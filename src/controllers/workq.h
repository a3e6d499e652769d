// SPDX-License-Identifier: Apache-2.0
// Keys that need work: each waits at most once, has one pass at a time, and returns after a failure
// with a pause that doubles each time. First come, first served.
//
//   idle --add--> waiting --pop--> busy --done--> idle, or waiting when added meanwhile
//
// A key whose passes take long rests after each, so that others get most of the time:
//
//   idle --add, while it has to rest--> resting --the rest is over--> waiting
#pragma once

#include "base/map.h"
#include "base/vec.h"

enum workq_state { WORKQ_IDLE, WORKQ_RESTING, WORKQ_WAITING, WORKQ_BUSY };

struct workq_key {
    uint32_t ns, name; /* string ids, held; either may be empty */
    uint8_t state;     /* enum workq_state */
    bool used;         /* not vacant */
    bool again;        /* added while busy */
    uint32_t failures; /* in a row */
    int64_t due_ns;    /* the earliest requested time; INT64_MAX none */
    int64_t rest_ns;   /* not before that; 0 at any time */
};

struct workq_timer {
    int64_t at_ns;
    uint32_t key;
};

/* Zero it and set str to initialise. Times are monotonic. */
struct workq {
    struct hk_intern *str; /* outlives the queue */
    HK_VEC(struct workq_key) keys;
    HK_VEC(uint32_t) vacant;
    HK_VEC(uint32_t) ready;
    uint32_t head;     /* of ready: the next to pop */
    uint32_t nresting; /* keys that wait for the end of their rest */
    /* A heap; an entry that equals neither due_ns nor rest_ns of its key is obsolete. */
    HK_VEC(struct workq_timer) timers;
    struct hk_map at; /* names to key */
};

void workq_fini(struct workq *q);
void workq_add(struct workq *q, struct hk_str ns, struct hk_str name);
void workq_add_at(struct workq *q, struct hk_str ns, struct hk_str name, int64_t at_ns);
/* Queues keys whose time has come; returns the time of the next one, INT64_MAX none. */
int64_t workq_tick(struct workq *q, int64_t now_ns);
/* The next key, now busy; HK_NONE when none waits. The key is valid until workq_done. */
uint32_t workq_pop(struct workq *q);
/* Allows no further pass of the key, which is busy, before that time. */
void workq_rest(struct workq *q, uint32_t key, int64_t until_ns);
/* Ends the pass over the key; forgets the key unless it was added meanwhile. */
void workq_done(struct workq *q, uint32_t key);
/* Ends a pass that needs another at once; keeps the count of failures. */
void workq_again(struct workq *q, uint32_t key);
/* Ends a failed pass: the key is queued again after 5 ms x 2^failures, a minute at most, or when it
 * is added before. */
void workq_failed(struct workq *q, uint32_t key, int64_t now_ns);
bool workq_is_idle(const struct workq *q);
