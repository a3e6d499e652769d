// SPDX-License-Identifier: Apache-2.0
// The scheduler's life: hears of the cluster through a port, keeps the model, runs a session when
// something happened that could matter, sends off what it decided. One thread, no locks, no clock
// of its own: the owner calls loop_step whenever the port has messages or the time it named has
// come. While nothing changes, nothing runs and nothing is written.
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
    const struct loop_label *node_labels; /* nodes with any of these; none: every node. Borrowed */
    uint32_t nnode_label;
    struct hk_str default_queue; /* "default" when empty */
    struct hk_str shard_name;    /* NodeShard of this scheduler; empty without shards */
    struct session_opts session; /* seed, sampling, shards, gates, budget; times are the loop's */
    int64_t quiet_ns;            /* a session waits until events pause this long, 0: 1 ms ... */
    int64_t patience_ns;         /* ... but no longer than this, 0: 10 ms */
    uint32_t in_flight;          /* requests at a time, 0: 64 */
    /* A pod that cannot be placed has to wait this long before its status says why: gangs whose
     * pods are still being made, and pods that fit a moment later, need no such words. */
    int64_t reason_wait_ns;
    uint32_t page;           /* objects per page of a list, 0: 2000 */
    const char *record_path; /* append all input and decisions here, NULL: do not */
};

/* The configuration file may be bad: that is logged, and the built-in one is in force. Fails when
 * the record cannot be written. */
int loop_new(const struct loop_opts *o, struct loop **ret, struct hk_err *err) HK_CHECKED;
void loop_free(struct loop *l);

/* Takes messages, runs a session if one is due, sends. *ret_wait_ns is how long nothing will happen
 * unless the port gets messages: 0 means call again at once, INT64_MAX until then. */
void loop_step(struct loop *l, int64_t *ret_wait_ns);

/* Reads the configuration file again, as after a hint that it changed. A bad file is logged and
 * leaves the old configuration in force. */
void loop_reload_conf(struct loop *l);

/* Decides nothing more; what was decided is still sent. */
void loop_drain(struct loop *l);
/* The text of the configuration in force; "" while it is the built-in one. Until the next step. */
struct hk_str loop_conf_text(const struct loop *l);

/* What the scheduler reads of a cluster. The first ones are its trade; without the others it can
 * live. */
const enum api_kind_id *loop_kinds(uint32_t *ret_n, uint32_t *ret_required);

struct loop_stats {
    bool synced; /* every kind has been listed */
    uint64_t sessions, binds, evictions;
    uint64_t over_budget; /* sessions that ran out of time */
    uint32_t backlog;     /* writes waiting or in flight */
};
struct loop_stats loop_stats(const struct loop *l);
/* Appends the model as one JSON object. */
void loop_dump(const struct loop *l, struct hk_buf *out);
/* One line on the log: how many of what. */
void loop_log_summary(const struct loop *l);
/* Appends all there is to count, in Prometheus' format. */
void loop_write_metrics(struct loop *l, struct hk_buf *out);
const struct model *loop_model(const struct loop *l);

/* Feeds a record to a fresh engine without a port and appends a line per session to out, in the
 * form the record has them. Fails with HK_ECONFLICT, naming the line, when a decision differs. */
int loop_replay(const char *path, struct hk_buf *out, struct hk_err *err) HK_CHECKED;
/* The same for an open file; name is what messages call it. */
int loop_replay_from(FILE *f, const char *name, struct hk_buf *out, struct hk_err *err) HK_CHECKED;
