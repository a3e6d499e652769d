// SPDX-License-Identifier: Apache-2.0
// One scheduling cycle. It borrows the model and a configuration, runs the actions, and produces
// decisions (binds, evictions) and the new state of every PodGroup it examined. Tentative changes
// go through the journal and are rewound before the session ends.
#pragma once

#include "base/clock.h"
#include "base/heap.h"
#include "scheduler/conf.h"
#include "scheduler/meter.h"

/* ---- journal (stmt.h) ---- */

enum op_kind { OP_ALLOCATE, OP_PIPELINE, OP_EVICT };
enum op_state {
    OP_OPEN,      /* tentative */
    OP_COMMITTED, /* handed to emit */
    OP_UNDONE,    /* undone out of order (backfill's UnPipeline) */
};

struct op {
    task_id task;
    node_id node, prev_node;
    uint8_t kind, state;
    uint8_t prev_status;
    bool evicted_for;   /* a place that evictions paid for, promised beyond the session */
    const char *reason; /* eviction: action name */
    job_id for_job;     /* eviction: the job it makes room for */
    uint64_t serial;    /* unique, growing */
};

struct op_vec {
    struct op *at;
    uint32_t len, cap;
};

/* ---- decisions ---- */

struct decision {
    uint8_t kind; /* OP_ALLOCATE: bind; OP_EVICT: evict */
    task_id task;
    node_id node;
    job_id for_job;
    const char *reason;
};

struct decision_vec {
    struct decision *at;
    uint32_t len, cap;
};

struct task_vec {
    task_id *at;
    uint32_t len, cap;
};

/* The task's placement in the last discarded attempt; the pod's message shows it. */
struct last_tx {
    uint8_t status; /* TASK_PENDING: none */
    bool evicted_for;
    node_id node;
};

/* How the scheduler uses nodes outside its own shard. */
enum shard_mode {
    SHARD_NONE, /* no shards */
    SHARD_HARD, /* never used */
    SHARD_SOFT, /* used as second choice */
};

struct session_opts {
    int64_t now_ns;
    uint64_t seed;
    uint32_t min_feasible;   /* --minimum-feasible-nodes, 100 */
    uint32_t min_percentage; /* --minimum-percentage-nodes-to-find, 5 */
    uint32_t percentage;     /* --percentage-nodes-to-find, 0 adaptive */
    enum shard_mode shard_mode;
    bool open_gates;        /* ungate tasks whose queue has room (SchedulingGatesQueueAdmission) */
    bool plain;             /* search without shortcuts; tests compare both results */
    int64_t budget_ns;      /* start no new work after this time, 0: no limit */
    struct hk_clock *clock; /* may be NULL without budget */
    struct meter *meter;    /* receives the metrics, or NULL */
    uint64_t stop_after;    /* replay: stop at this call of session_over_budget instead, 0: never */
    bool all_jobs;          /* include parked jobs */
    bool texts;             /* session_close builds messages, too, not only phases and conditions */
};
#define SESSION_OPTS_DEFAULT                                                                       \
    ((struct session_opts){.min_feasible = 100, .min_percentage = 5, .seed = 1})

struct job_note; /* close.h: results of session_close for PodGroups and pods */
struct pod_note;
struct select;  /* select_priv.h: candidate heaps and failure memory */
struct reserve; /* reserve.h: room held for tasks that caused evictions */

struct session {
    struct model *m;
    const struct conf *conf;
    struct session_opts opts;
    int64_t now_ns;
    uint64_t uid;         /* counts sessions: transitionID */
    struct hk_arena *mem; /* cycle arena */
    struct hk_rand *rand;

    struct hook_list hooks[HOOK_N];
    struct hook *opened; /* every configured plugin instance, for close */
    uint32_t nopened;

    job_id at_job; /* the one that an action works on: what a crash is charged to */
    job_id *jobs;  /* jobs worth a look, in id order: has PodGroup and queue, active */
    uint32_t njob;
    struct rvec total; /* sum of alloc over known nodes */

    struct op_vec ops; /* the journal */
    uint64_t serial;   /* of the newest op ever */
    uint64_t gains;    /* counts operations that freed room */
    struct decision_vec decisions;
    struct task_vec gates; /* tasks whose queue-allocation gate is to be removed */
    uint64_t *is_ungated;  /* bit per task row of gates, NULL while there are none */

    /* Columns by task row, all zero between sessions. */
    struct last_tx *last;
    struct fit_log **fit; /* node fit errors recorded in this session */
    uint32_t *op_of;      /* 1 + index of the task's newest op */
    const char **job_msg; /* [jobs] enqueue refusal text, NULL none */
    struct select *select;
    struct reserve *reserve;
    struct scheduler_mem *sm;
    bool over_budget;
    bool again; /* some job only waits for the next session */
    struct {
        int64_t since_ns;
        uint64_t calls, read_call, read_serial; /* calls made; values at the last clock read */
    } budget;
    uint64_t *was_pending; /* bit per job row of ssn->jobs that was not admitted at open */

    int64_t volume_wait_ns; /* how long binds may wait for volumes; set by the plugin */
    uint8_t parks_on;       /* WAKE_* events that concern every job in this configuration */
    job_id *changed;        /* jobs that changed since the last session */
    uint32_t nchanged;
    struct {
        struct job_note *at;
        uint32_t n;
    } notes;
    struct {
        struct pod_note *at;
        uint32_t n;
    } pod_notes;
};

/* Memory kept between cycles so that a steady cycle allocates nothing: arena, journal, columns,
 * search slots. It also keeps the rotating start of node searches and the random state. */
struct scheduler_mem;
struct scheduler_mem *scheduler_mem_new(uint64_t seed);
void scheduler_mem_free(struct scheduler_mem *sm);

/* Updates the model's sums (model_settle) and opens the plugins. */
void session_open(struct session *ssn, struct model *m, const struct conf *conf,
                  const struct session_opts *opts, struct scheduler_mem *sm);
/* Runs the configured actions in order. */
void session_run(struct session *ssn);
/* Whether the session has used up its time; actions then start nothing new. Jobs not reached are
 * not parked, so the next session starts with them. Reads the clock only once every few calls or
 * changes. */
bool session_over_budget(struct session *ssn);
/* Closes plugins, computes PodGroup phases and messages (close.h), rewinds uncommitted changes.
 * Decisions stay readable until the next session_open on the same memory. */
void session_close(struct session *ssn);

/* Requests removal of the task's queue-allocation gate. Repeated requests have no effect. */
void session_ungate(struct session *ssn, task_id t);

/* ---- questions asked by several plugins and actions ---- */

static inline bool session_in_shard(const struct session *ssn, node_id n)
{
    return ssn->opts.shard_mode == SHARD_NONE || (ssn->m->nodes.flags[n.i] & NODE_IN_SHARD);
}
/* False when this scheduler must not use the node. */
static inline bool session_may_use(const struct session *ssn, node_id n)
{
    return ssn->opts.shard_mode != SHARD_HARD || session_in_shard(ssn, n);
}

/* Whether to examine the active job: all jobs are wanted, an event may help it, or its time has
 * come. */
static inline bool session_is_awake(const struct session *ssn, job_id j)
{
    return ssn->opts.all_jobs || model_job_awake(ssn->m, j) ||
           model_job(ssn->m, j)->park.due_ns <= ssn->now_ns;
}

/* docs/reference/scheduler.md section 2.4 has the formulas. */
bool job_is_pending(const struct job *j);
bool job_counts_ready(const struct job *j);
bool job_counts_pipelined(const struct job *j);
bool job_counts_starving(const struct job *j);
bool sub_counts_ready(const struct sub_job *s);
bool sub_counts_pipelined(const struct sub_job *s);
bool job_roles_valid(const struct job *j);
bool job_roles_ready(const struct job *j);
bool job_roles_pipelined(const struct job *j);
bool job_has_topology(const struct model *m, job_id j);
void session_fit_set(struct session *ssn, task_id t, struct fit_log *log);
struct fit_log *session_fit_new(struct session *ssn);
