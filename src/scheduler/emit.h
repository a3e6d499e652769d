// SPDX-License-Identifier: Apache-2.0
// Decisions into API writes: the only way out. A closed session becomes binds, evictions, statuses,
// conditions and events, each written only when it says something new, many requests at a time. A
// bind that needs volumes waits for them here. Of what the API knows emit remembers hashes, not
// objects. Runs on the scheduler's loop between
// sessions; answers come back through the port.
#pragma once

#include "api/port.h"
#include "scheduler/session.h"

enum emit_outcome {
    EMIT_BOUND,        /* the API took the bind; the watch will show it */
    EMIT_BIND_FAILED,  /* or it may have been lost on the way: ask for the pod */
    EMIT_EVICT_FAILED, /* likewise */
    EMIT_GATE_OPEN,    /* the scheduling gate is gone */
    EMIT_GATE_FAILED,  /* it is not */
};

struct emit_opts {
    struct port *port;
    struct model *m;
    struct hk_clock *clock;
    struct meter *meter;     /* or NULL */
    struct hk_str component; /* the scheduler's name in events */
    struct hk_str shard;     /* name of its NodeShard, empty without */
    uint32_t in_flight;      /* requests at a time, 0: 64 */
    int64_t reason_wait_ns;  /* as in loop_opts */
    uint64_t run;            /* told apart from other runs by this: part of transitionIDs */
    void (*on_outcome)(void *ctx, task_id t, enum emit_outcome what);
    void *ctx;
};

struct emit;

struct emit *emit_new(const struct emit_opts *o);
/* Requests in flight are left to themselves. */
void emit_free(struct emit *e);

/* Takes what a closed session decided and noted; sends as much as may be in flight. */
void emit_session(struct emit *e, const struct session *ssn);
/* An object the API showed us, after the model has taken it (or failed to). */
void emit_learn(struct emit *e, const struct api_object *o);
/* Some object of that kind is gone, and from the model too. */
void emit_unlearn(struct emit *e, const struct api_kind *kind);
/* Names of the nodes our shard has, and of those it is to have and waits for (7.8). */
void emit_shard(struct emit *e, const uint32_t *in_use, uint32_t nin_use, const uint32_t *to_add,
                uint32_t nto_add);
/* The status in that revision of the job's PodGroup is from before our latest write of it. */
bool emit_is_ahead(const struct emit *e, job_id j, uint64_t rv);

/* Sends what waits; returns the time (monotonic) of the next retry, INT64_MAX when none waits. */
int64_t emit_pump(struct emit *e);
/* From now on nothing waits for more to say: this is the end. */
void emit_hurry(struct emit *e);
/* Requests waiting or in flight. */
uint32_t emit_backlog(const struct emit *e);
