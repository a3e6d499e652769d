// SPDX-License-Identifier: Apache-2.0
// A cluster that exists on paper: objects from manifests, the real ingest and scheduler, and the
// simplest world around them - a bound pod runs, an evicted pod goes away, time passes. What each
// cycle decided is kept as names, since rows are reused. `hekla schedule` and the scenario runner
// are its users.
#pragma once

#include "scheduler/close.h"
#include "scheduler/conf.h"
#include "scheduler/ingest.h"

struct cluster_opts {
    int64_t now_ns;
    int64_t step_ns; /* between cycles */
    uint64_t seed;
    enum shard_mode shard_mode;
    struct hk_str shard_name; /* of the NodeShard that is ours, empty without shards */
    bool plain;               /* session_opts.plain */
    bool hold; /* decisions take effect at cluster_settle, not at the end of a cycle */
};

struct cluster_bind {
    struct hk_str pod, node; /* "ns/name" */
    uint32_t cycle;
};

struct cluster_eviction {
    struct hk_str pod;
    struct hk_str group; /* on whose behalf, "ns/name"; empty when nobody's */
    struct hk_str action;
    uint32_t cycle;
};

/* A pod that waits, and why, as of the last cycle. */
struct cluster_wait {
    struct hk_str pod, reason, message;
};

/* What close last said about a PodGroup. */
struct cluster_group {
    uint8_t condition; /* enum note_condition */
    char *message;     /* of the condition */
    char *event;       /* why it waits; NULL when it does not */
};

/* A queue's part of the cluster, as a fairness plugin saw it in the last cycle. */
struct cluster_share {
    bool known;
    struct rvec deserved;
    double share;
};

/* An object nobody here acts on. */
struct cluster_ignored {
    struct hk_str object; /* "Job ns/name" */
    struct hk_str file;   /* empty when it came from no file */
    uint32_t line;
    const char *why;
};

/* A document that is no object at all, in the same shape as ingest's problems. */
struct cluster_problem {
    struct hk_str object, file, text;
    uint32_t line;
};

struct cluster_effect {
    uint32_t ns, name; /* string ids, held */
    node_id node;
    uint8_t kind; /* OP_ALLOCATE or OP_EVICT */
};

/* Who wants to look at sessions from inside; either may be NULL. */
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

    struct hk_arena kept; /* names below that last as long as the cluster */
    struct hk_arena last; /* what the last cycle said */
    HK_VEC(struct cluster_bind) binds;
    HK_VEC(struct cluster_eviction) evictions;
    uint32_t first_bind, first_eviction;   /* of the last cycle */
    HK_VEC(struct cluster_bind) pipelined; /* last cycle */
    HK_VEC(struct cluster_wait) waits;     /* last cycle */
    HK_VEC(struct cluster_share) shares;   /* last cycle, by queue row */
    HK_VEC(struct cluster_group) groups;
    struct hk_map group_at;                /* namespace and name, held -> place in groups */
    HK_VEC(struct cluster_effect) effects; /* decided, not yet come true */
    HK_VEC(struct cluster_ignored) ignored;
    HK_VEC(struct cluster_problem) problems;
    struct hk_buf trace; /* one line per decision, all cycles */
    uint32_t last_trace; /* where the last cycle begins */
};

/* conf is borrowed. The queue `default` exists from the start. */
void cluster_init(struct cluster *c, const struct conf *conf, const struct cluster_opts *o);
void cluster_fini(struct cluster *c);

/* Reads every object of a YAML or JSON text. Objects that cannot be taken become problems and the
 * others go on; fails only when the text itself cannot be read. Pods of ours without a PodGroup get
 * one, as the PodGroup controller would make it. */
int cluster_load(struct cluster *c, struct hk_str text, const char *file,
                 struct hk_err *err) HK_CHECKED;

/* One session and, unless held, its effects. Fails when the books do not balance afterwards or a
 * promise of the engine is broken: our own mistake, never the input's. */
int cluster_cycle(struct cluster *c, struct hk_err *err) HK_CHECKED;
/* Makes decisions come true. */
void cluster_settle(struct cluster *c);

/* NULL before the first cycle that looked at it. */
const struct cluster_group *cluster_group(const struct cluster *c, job_id j);
/* "ns/name" in an arena. */
struct hk_str cluster_task_name(const struct model *m, task_id t, struct hk_arena *a);
struct hk_str cluster_job_name(const struct model *m, job_id j, struct hk_arena *a);
