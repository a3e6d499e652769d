// SPDX-License-Identifier: Apache-2.0
// Keys that need work: each waits at most once, is worked on by one pass at a time, and comes back
// after a pause that doubles with each failure. First come, first served.
//
//   idle --add--> waiting --pop--> busy --done--> idle, or waiting when added meanwhile
#pragma once

#include "base/map.h"
#include "base/vec.h"

enum workq_state { WORKQ_IDLE, WORKQ_WAITING, WORKQ_BUSY };

struct workq_key {
    uint32_t ns, name; /* string ids, held; name 0: free */
    uint8_t state;     /* enum workq_state */
    bool again;        /* added while busy */
    uint32_t failures; /* in a row */
    int64_t due_ns;    /* the earliest wish to be looked at; INT64_MAX none */
};

struct workq_timer {
    int64_t at_ns;
    uint32_t key;
};

/* Ready when zeroed but for str. Times are monotonic. */
struct workq {
    struct hk_intern *str; /* outlives the queue */
    HK_VEC(struct workq_key) keys;
    HK_VEC(uint32_t) vacant;
    HK_VEC(uint32_t) ready;
    uint32_t head;                     /* of ready: the next to go */
    HK_VEC(struct workq_timer) timers; /* a heap; those that are not their key's due_ns are dead */
    struct hk_map at;                  /* names to key */
};

void workq_fini(struct workq *q);
void workq_add(struct workq *q, struct hk_str ns, struct hk_str name);
void workq_add_at(struct workq *q, struct hk_str ns, struct hk_str name, int64_t at_ns);
/* Makes keys whose time has come wait; the time of the next, INT64_MAX none. */
int64_t workq_tick(struct workq *q, int64_t now_ns);
/* The next key, now busy; HK_NONE when none waits. Its row is good until workq_done. */
uint32_t workq_pop(struct workq *q);
/* The pass over the key is over; it is forgotten when nothing more is wanted of it. */
void workq_done(struct workq *q, uint32_t key);
/* It was a step on the way: the next follows at once, and failures are not forgotten yet. */
void workq_again(struct workq *q, uint32_t key);
/* The same after a failure: it will wait again after a pause of 5 ms x 2^failures, a minute at
 * most, unless it is added before. */
void workq_failed(struct workq *q, uint32_t key, int64_t now_ns);
bool workq_is_idle(const struct workq *q);
