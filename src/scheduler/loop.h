// SPDX-License-Identifier: Apache-2.0
// The scheduler's main loop: follows the cluster through a port, keeps the model, runs a session
// after relevant changes, and sends its decisions. One thread, no locks, no own clock: the owner
// calls loop_step when the port has messages or the returned time has come. While nothing changes,
// nothing runs and nothing is written.
#pragma once

#include "api/port.h"
#include "scheduler/session.h"

#include <stdio.h>

struct loop;

struct loop_label {
    struct hk_str key, value;
};

struct loop_opts {
    struct port *port; /* borrowed */
    struct hk_clock *clock;
    const char *conf_path;                /* NULL: the built-in configuration */
    const struct hk_str *scheduler_names; /* none: "volcano" */
    uint32_t nscheduler_name;
    const struct loop_label *node_labels; /* use nodes with any of these; none: all. Borrowed */
    uint32_t nnode_label;
    struct hk_str default_queue; /* "default" when empty */
    struct hk_str shard_name;    /* NodeShard of this scheduler; empty without shards */
    struct session_opts session; /* seed, sampling, shards, gates, budget; the loop sets times */
    int64_t quiet_ns;            /* a session waits until events pause this long, 0: 1 ms ... */
    int64_t patience_ns;         /* ... but no longer than this, 0: 10 ms */
    uint32_t in_flight;          /* requests at a time, 0: 64 */
    /* Delay before the status of an unplaced pod says why: gangs whose pods are still being
     * created, and pods that fit a moment later, get no such message. */
    int64_t reason_wait_ns;
    uint32_t page;           /* objects per page of a list, 0: 2000 */
    const char *record_path; /* file to append all input and decisions to, or NULL */
};

/* Logs an invalid configuration file and uses the built-in one. Fails when the record cannot be
 * written. */
int loop_new(const struct loop_opts *o, struct loop **ret, struct hk_err *err) HK_CHECKED;
void loop_free(struct loop *l);

/* Receives messages, runs a session if one is due, sends writes. *ret_wait_ns is the time until the
 * next call, unless the port gets messages before: 0 at once, INT64_MAX none. */
void loop_step(struct loop *l, int64_t *ret_wait_ns);

/* Reads the configuration file again. Logs an invalid file and keeps the old configuration. */
void loop_reload_conf(struct loop *l);

/* Starts no more sessions; earlier decisions are still sent. */
void loop_drain(struct loop *l);
/* The text of the current configuration; "" for the built-in one. Valid until the next step. */
struct hk_str loop_conf_text(const struct loop *l);

struct loop_stats {
    bool synced; /* every kind was listed */
    uint64_t sessions, binds, evictions;
    uint64_t over_budget; /* sessions that ran out of time */
    uint32_t backlog;     /* writes waiting or in flight */
};
struct loop_stats loop_stats(const struct loop *l);
/* Appends the model as one JSON object. */
void loop_dump(const struct loop *l, struct hk_buf *out);
/* Logs one line with the numbers of objects. */
void loop_log_summary(const struct loop *l);
/* Appends all metrics in Prometheus' format. */
void loop_write_metrics(struct loop *l, struct hk_buf *out);
const struct model *loop_model(const struct loop *l);

/* Replays a record in a fresh engine without a port, and appends one line per session to out, in
 * the record's format. Fails with HK_ECONFLICT, naming the line, when a decision differs. */
int loop_replay(const char *path, struct hk_buf *out, struct hk_err *err) HK_CHECKED;
/* The same for an open file; messages call it name. */
int loop_replay_from(FILE *f, const char *name, struct hk_buf *out, struct hk_err *err) HK_CHECKED;
