// SPDX-License-Identifier: Apache-2.0
// A simulated cluster: objects from manifests, the real ingest and scheduler, and the simplest
// environment: a bound pod runs, an evicted pod disappears, time passes. Decisions of each cycle
// are kept as names, since rows are reused. Used by `hekla schedule`, `hekla explain` and the
// scenario runner.
#pragma once

#include "scheduler/close.h"
#include "scheduler/conf.h"
#include "scheduler/ingest.h"

struct cluster_opts {
    int64_t now_ns;
    int64_t step_ns; /* between cycles */
    uint64_t seed;
    enum shard_mode shard_mode;
    struct hk_str shard_name; /* our NodeShard, empty without shards */
    bool plain;               /* session_opts.plain */
    bool default_scheduler;   /* grouped pods of default-scheduler are ours, too */
    bool hold; /* decisions take effect at cluster_settle, not at the end of a cycle */
};

struct cluster_bind {
    struct hk_str pod, node; /* "ns/name" */
    uint32_t cycle;
};

struct cluster_eviction {
    struct hk_str pod;
    struct hk_str group; /* evicted for this group, "ns/name"; empty when for none */
    struct hk_str action;
    uint32_t cycle;
};

/* A pod that waits, and why, at the last cycle. */
struct cluster_wait {
    struct hk_str pod, reason, message;
};

/* The last result of session_close for a PodGroup. */
struct cluster_group {
    uint8_t condition; /* enum note_condition */
    char *message;     /* of the condition */
    char *event;       /* why it waits; NULL when it does not wait */
};

/* A queue's share, as a fairness plugin computed it in the last cycle. */
struct cluster_share {
    bool known;
    struct rvec deserved;
    double share;
};

/* An object of an unused kind. */
struct cluster_ignored {
    struct hk_str object; /* "Job ns/name" */
    struct hk_str file;   /* empty when it came from no file */
    uint32_t line;
    const char *why;
};

/* A document that is not an object, like ingest_problem. */
struct cluster_problem {
    struct hk_str object, file, text;
    uint32_t line;
};

struct cluster_effect {
    uint32_t ns, name; /* string ids, held */
    node_id node;
    uint8_t kind; /* OP_ALLOCATE or OP_EVICT */
};

/* Callbacks that inspect a session; either may be NULL. */
struct cluster_watch {
    void (*opened)(void *ctx, struct session *ssn);
    void (*ran)(void *ctx, struct session *ssn);
    void *ctx;
};

struct cluster {
    struct cluster_opts opts;
    struct cluster_watch watch;
    struct model m;
    struct ingest *in;
    struct scheduler_mem *sm;
    const struct conf *conf;
    int64_t now_ns;
    uint32_t cycles;

    struct hk_arena kept; /* names below that live as long as the cluster */
    struct hk_arena last; /* results of the last cycle */
    HK_VEC(struct cluster_bind) binds;
    HK_VEC(struct cluster_eviction) evictions;
    uint32_t first_bind, first_eviction;   /* of the last cycle */
    HK_VEC(struct cluster_bind) pipelined; /* last cycle */
    HK_VEC(struct cluster_wait) waits;     /* last cycle */
    HK_VEC(struct cluster_share) shares;   /* last cycle, by queue row */
    HK_VEC(struct cluster_group) groups;
    struct hk_map group_at;                /* namespace and name, held -> index in groups */
    HK_VEC(struct cluster_effect) effects; /* decided, not yet applied */
    HK_VEC(struct cluster_ignored) ignored;
    HK_VEC(struct cluster_problem) problems;
    struct hk_buf trace; /* one line per decision, all cycles */
    uint32_t last_trace; /* start of the last cycle */
};

/* conf is borrowed. The queue `default` exists from the start. */
void cluster_init(struct cluster *c, const struct conf *conf, const struct cluster_opts *o);
void cluster_fini(struct cluster *c);

/* Reads every object of a YAML or JSON text. Invalid objects become problems; the others are
 * loaded. Fails only when the text itself cannot be read. Our pods without a PodGroup get one, as
 * the PodGroup controller would create it. */
int cluster_load(struct cluster *c, struct hk_str text, const char *file,
                 struct hk_err *err) HK_CHECKED;

/* Runs one session and, unless held, applies its decisions. Fails when model_check fails or the
 * engine breaks a promise: a bug of ours, never an input error. */
int cluster_cycle(struct cluster *c, struct hk_err *err) HK_CHECKED;
/* Applies pending decisions. */
void cluster_settle(struct cluster *c);

/* NULL before the first cycle that examined it. */
const struct cluster_group *cluster_group(const struct cluster *c, job_id j);
/* "ns/name" in an arena. */
struct hk_str cluster_task_name(const struct model *m, task_id t, struct hk_arena *a);
struct hk_str cluster_job_name(const struct model *m, job_id j, struct hk_arena *a);
