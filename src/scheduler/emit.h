// SPDX-License-Identifier: Apache-2.0
// Turns decisions into API writes: the only way out of the model. A closed session becomes binds,
// evictions, statuses, conditions and events, each written only when it has changed, many requests
// at a time. A bind that needs volumes waits for them here. What the API shows already is in `known`,
// which ingest fills from events. Runs on the scheduler's loop between sessions; answers arrive
// through the port, and the loop reads their outcomes as data.
#pragma once

#include "api/port.h"
#include "scheduler/known.h"
#include "scheduler/session.h"

enum emit_outcome {
    EMIT_BOUND,        /* the API accepted the bind; the watch will show it */
    EMIT_BIND_FAILED,  /* failed, or the answer was lost: read the pod */
    EMIT_BIND_REFUSED, /* refused; a retry will not help soon */
    EMIT_EVICT_FAILED, /* the same for an eviction */
    EMIT_GATE_OPEN,    /* the scheduling gate was removed */
    EMIT_GATE_FAILED,  /* its removal failed */
};

struct emit_opts {
    struct port *port;
    struct model *m;
    struct known *known; /* borrowed, shared with ingest */
    struct hk_clock *clock;
    struct meter *meter;     /* or NULL */
    struct hk_str component; /* the scheduler's name in events */
    struct hk_str shard;     /* name of its NodeShard, empty without */
    uint32_t in_flight;      /* requests at a time, 0: 64 */
    int64_t reason_wait_ns;  /* as in loop_opts */
    uint64_t run;            /* distinguishes this run from others in transitionIDs */
};

struct emit;

struct emit *emit_new(const struct emit_opts *o);
/* Does not wait for requests in flight. */
void emit_free(struct emit *e);

/* Queues the decisions and notes of a closed session; sends as many as allowed at a time. */
void emit_session(struct emit *e, const struct session *ssn);
/* Writes to our NodeShard which nodes it uses, and for which it still waits. Both are names. */
void emit_shard(struct emit *e, const uint32_t *in_use, uint32_t nin_use, const uint32_t *to_add,
                uint32_t nto_add);
/* The oldest outcome not yet read; false when there is none. The task may be gone meanwhile. */
struct emit_result {
    task_ref task;
    enum emit_outcome what;
};
bool emit_next_result(struct emit *e, struct emit_result *ret);
bool emit_has_result(const struct emit *e);

/* Sends what waits; returns the time (monotonic) of the next retry, INT64_MAX when none waits. */
int64_t emit_pump(struct emit *e);
/* Sends all delayed writes without waiting; for shutdown. */
void emit_hurry(struct emit *e);
/* Requests waiting or in flight. */
uint32_t emit_backlog(const struct emit *e);
