// SPDX-License-Identifier: Apache-2.0
// The connection of one component to the API: a port in front of the server's port that decides
// from the seed what happens to each call and when each message arrives. Messages of one call stay
// in order, those of different calls do not. A call may be refused without effect, lose its answer,
// race with a change by another client, or be answered late; a watch may end.
#pragma once

#include "api/port.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/vec.h"

struct link;

enum link_fault {
    LINK_PASSES,
    LINK_REFUSED, /* no effect; the answer is a temporary failure */
    LINK_LOST,    /* takes effect; the answer is a timeout */
    LINK_RACED,   /* another client changes the object just before */
    LINK_LATE,    /* takes effect; the answer is late */
    LINK_NFAULTS,
};

const char *link_fault_name(enum link_fault f);

struct link_call {
    struct link *link;
    uint64_t id, under; /* under 0: not passed on, or ended */
    struct port_sink sink;
    enum port_verb verb;
    const struct api_kind *kind;
    enum link_fault fault;
    int64_t not_before_ns; /* no message of it arrives earlier */
};

/* A message on its way. */
struct link_msg {
    uint64_t call;
    int64_t due_ns;
    struct port_msg msg; /* obj and items with references; the rest in mem */
    struct hk_err err;
    struct port_status status;
    struct hk_arena mem;
};

struct link_opts {
    struct port *under; /* NULL: not connected */
    struct hk_clock *clock;
    struct hk_rand *rand;
    uint32_t faults; /* calls in a thousand that get a fault */
    uint32_t cut;    /* messages in a thousand after which their watch ends */
    uint32_t slow;   /* messages in a thousand that are late */
    bool shuffle;    /* calls overtake one another */
    /* A call is about to be passed on, or refused. */
    void (*on_call)(void *ctx, const struct port_request *req, enum link_fault fault);
    /* True: the server has crashed, so its message is dropped. */
    bool (*is_dead)(void *ctx);
    /* The server sent a message, which may be lost on its way. */
    void (*on_answer)(void *ctx, const struct link_call *c, const struct port_msg *m);
    void (*on_deliver)(void *ctx, const struct link_call *c, const struct port_msg *m);
    /* True: the component does not get the message. May be NULL. */
    bool (*drop)(void *ctx, const struct link_call *c, const struct port_msg *m);
    /* Changes the object that the request is about, as another client would. */
    void (*race)(void *ctx, const struct port_request *req);
    void *ctx;
};

struct link {
    struct port port; /* first */
    struct link_opts o;
    uint64_t last_id;
    HK_VEC(struct link_call *) calls;
    HK_VEC(struct link_msg *) inbox;
    uint32_t allowance; /* messages that polls may still deliver in this turn */
    uint32_t silent_ms; /* without a server: calls fail only after up to so long */
    bool dead;          /* its component has crashed: calls go nowhere */
};

void link_init(struct link *l, const struct link_opts *o);
/* Calls in progress continue, and their answers are dropped. */
void link_fini(struct link *l);
/* When the next message can be delivered; INT64_MAX: none is on its way. */
int64_t link_next_ns(const struct link *l);
uint32_t link_calls(const struct link *l, enum port_verb verb);
/* The server cannot be reached: calls in progress and later ones fail, at once or after up to
 * silent_ms. */
void link_disconnect(struct link *l, uint32_t silent_ms);
void link_connect(struct link *l, struct port *under);
bool link_is_connected(const struct link *l);
/* No more faults; late messages arrive. */
void link_calm(struct link *l);
