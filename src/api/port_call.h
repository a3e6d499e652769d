// SPDX-License-Identifier: Apache-2.0
// Waiting for a port, for callers that have nothing else to do: commands of users, and the start of
// a server. A daemon polls its port on its loop instead.
#pragma once

#include "api/port.h"
#include "base/vec.h"

/* How the caller waits for messages of its port. */
struct port_waiter {
    struct port *port;
    /* Waits for at most timeout_ms (negative: without limit) and does what became due. NULL: polls
     * the descriptor of the port. */
    int (*wait)(void *ctx, int timeout_ms, struct hk_err *err);
    void *ctx;
};

/* Delivers the messages that wait. If there are none, waits once, for at most timeout_ms (negative:
 * without limit), and delivers what arrived; that may be nothing. */
int port_turn(const struct port_waiter *w, int timeout_ms, struct hk_err *err) HK_CHECKED;

/* The objects of an answer. Ready when zeroed. */
struct port_answer {
    HK_VEC(struct api_object *) objects;
};
void port_answer_fini(struct port_answer *a);

/* How one call ended. Ready when zeroed. */
struct port_outcome {
    bool done;
    int rc;
    struct hk_err err;
    struct port_answer *answer; /* gets the object or the list; NULL: not wanted */
};

/* The sink of a call whose outcome port_await waits for. */
struct port_sink port_outcome_sink(struct port_outcome *o);
/* Returns the result of the call, with the server's message, once it is there. Other messages of
 * the port are delivered meanwhile. If waiting fails, cancels the call: its sink gets nothing. */
int port_await(const struct port_waiter *w, uint64_t call, struct port_outcome *o,
               struct hk_err *err) HK_CHECKED;
/* Sends the request and waits for its result. Appends the object or the list to *ret, which may be
 * NULL. */
int port_call(const struct port_waiter *w, const struct port_request *req, struct port_answer *ret,
              struct hk_err *err) HK_CHECKED;
