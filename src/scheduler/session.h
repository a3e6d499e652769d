// SPDX-License-Identifier: Apache-2.0
// One scheduling cycle: borrows the model and a configuration, lets actions run, and leaves behind
// decisions (binds, evictions) and the new state of every PodGroup it looked at. Tentative changes
// go through the journal and are rewound before the session ends.
#pragma once

#include "base/clock.h"
#include "base/heap.h"
#include "scheduler/conf.h"
#include "scheduler/meter.h"

/* ---- journal ---- */

enum op_kind { OP_ALLOCATE, OP_PIPELINE, OP_EVICT };
enum op_state {
    OP_OPEN,      /* tentative */
    OP_COMMITTED, /* handed to emit */
    OP_UNDONE,    /* taken back out of order (backfill's UnPipeline) */
};

struct op {
    task_id task;
    node_id node, prev_node;
    uint8_t kind, state;
    uint8_t prev_status;
    bool evicted_for;   /* a pipeline that evictions paid for */
    const char *reason; /* eviction: action name */
    job_id for_job;     /* eviction: on whose behalf */
    uint64_t serial;    /* unique, growing */
};

struct op_vec {
    struct op *at;
    uint32_t len, cap;
};

typedef uint32_t stmt_mark_t;

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

/* What the last discarded attempt had in mind for a task (1.10). */
struct last_tx {
    uint8_t status; /* TASK_PENDING: none */
    bool evicted_for;
    node_id node;
};

/* What nodes outside the scheduler's own shard are good for (7.8). */
enum shard_mode {
    SHARD_NONE, /* there are no shards */
    SHARD_HARD, /* nothing */
    SHARD_SOFT, /* second choice */
};

struct session_opts {
    int64_t now_ns;
    uint64_t seed;
    uint32_t min_feasible;   /* --minimum-feasible-nodes, 100 */
    uint32_t min_percentage; /* --minimum-percentage-nodes-to-find, 5 */
    uint32_t percentage;     /* --percentage-nodes-to-find, 0 adaptive */
    enum shard_mode shard_mode;
    bool open_gates; /* tasks with room in their queue lose its gate (SchedulingGatesQueueAdmission)
                      */
    bool plain;      /* every search is a full pass: the oracle of the shortcuts */
    int64_t budget_ns;      /* stop starting new work after this long by clock, 0 none */
    struct hk_clock *clock; /* may be NULL without budget */
    struct meter *meter;    /* who counts, or NULL */
    uint64_t stop_after;    /* replay: stop at this call of session_over_budget instead, 0 never */
    bool all_jobs;          /* look at parked jobs too */
    bool texts;             /* close works out messages; without, phases and conditions only */
};
#define SESSION_OPTS_DEFAULT                                                                       \
    ((struct session_opts){.min_feasible = 100, .min_percentage = 5, .seed = 1})

struct job_note; /* close.h: what close worked out for a PodGroup and for its pods */
struct pod_note;
struct select;  /* select.c: candidate heaps and failure memory */
struct reserve; /* reserve.h: room held for tasks others were evicted for */

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

    job_id *jobs; /* jobs worth a look, in id order: has PodGroup and queue, active */
    uint32_t njob;
    struct rvec total; /* sum of alloc over known nodes */

    struct op_vec ops; /* the journal */
    uint64_t serial;   /* of the newest op ever */
    uint64_t gains;    /* counts operations that freed room */
    struct decision_vec decisions;
    struct task_vec gates; /* tasks whose queue-allocation gate is to be removed */
    uint64_t *is_ungated;  /* bit per task row of gates, NULL while there are none */

    /* Columns by task row that are all zero between sessions. */
    struct last_tx *last;
    struct fit_log **fit; /* node fit errors recorded in this session */
    uint32_t *op_of;      /* 1 + index of the task's newest op */
    const char **job_msg; /* [jobs] enqueue refusal text, NULL none */
    struct select *select;
    struct reserve *reserve;
    struct scheduler_mem *sm;
    bool over_budget;
    bool again; /* a job waits for nothing but the next session */
    struct {
        int64_t since_ns;
        uint64_t calls, read_call, read_serial; /* asked so often; the clock was read then */
    } budget;
    uint64_t *was_pending; /* bit per job row of ssn->jobs that was not admitted at open */

    int64_t volume_wait_ns; /* how long binds may wait for volumes, set by who reserves them */
    uint8_t parks_on;       /* WAKE_* that concern every job under this configuration */
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

/* Memory that outlives cycles so that a steady cycle allocates nothing: arena, journal, columns,
 * search slots. It also carries the rotating start of node searches and the seeded randomness from
 * cycle to cycle. */
struct scheduler_mem;
struct scheduler_mem *scheduler_mem_new(uint64_t seed);
void scheduler_mem_free(struct scheduler_mem *sm);

/* Settles the model, opens plugins. */
void session_open(struct session *ssn, struct model *m, const struct conf *conf,
                  const struct session_opts *opts, struct scheduler_mem *sm);
/* Runs the configured actions in order. */
void session_run(struct session *ssn);
/* Whether the time for this session is used up; then actions start nothing new. What was not
 * reached is not parked, so the next session begins with it. Reads the clock once per some calls or
 * changes. */
bool session_over_budget(struct session *ssn);
/* Closes plugins, works out PodGroup phases and messages (close.h), rewinds what was not committed.
 * The decisions stay readable until the next session_open on the same memory. */
void session_close(struct session *ssn);

/* ---- statement: tentative changes, newest undone first ---- */

stmt_mark_t stmt_mark(const struct session *ssn);
/* False (and nothing changed) when a plugin refuses or the task's job is gone. */
bool stmt_allocate(struct session *ssn, task_id t, node_id n);
bool stmt_pipeline(struct session *ssn, task_id t, node_id n, bool evicted_for);
void stmt_evict(struct session *ssn, task_id t, const char *reason, job_id for_job);
/* Undoes everything since the mark and remembers what each task nearly got. */
void stmt_rewind(struct session *ssn, stmt_mark_t mark);
/* Sends what happened since the mark: allocations become Binding, evictions are final, pipelines
 * stay held until the session ends. */
void stmt_commit(struct session *ssn, stmt_mark_t mark);
/* Commits every Allocated task of the job, whenever it was placed (backfill's dispatch). */
void stmt_commit_job(struct session *ssn, job_id j);
/* Takes back one pipelined task wherever it stands in the journal. */
void stmt_unpipeline(struct session *ssn, task_id t);

/* A detached copy of the operations since the mark, in the session's arena, and its replay. */
struct saved_ops {
    struct op *at;
    uint32_t n;
};
struct saved_ops stmt_save(struct session *ssn, stmt_mark_t mark);
/* False when an operation fails; those before it stay applied. */
bool stmt_replay(struct session *ssn, const struct saved_ops *s);

/* Asks for the removal of the task's queue-allocation gate; asking twice does no harm. */
void session_ungate(struct session *ssn, task_id t);

/* ---- choosing a node (select*.c, section 5) ---- */

/* The nodes of a hyperNode; the virtual root stands for the whole cluster. */
enum placement { PLACE_NONE, PLACE_IDLE, PLACE_FUTURE };
/* One run of the task loop: candidate windows are shared by tasks of one shape within it. */
void select_begin(struct session *ssn, hyper_id domain);
/* Best node for the task by resource check, filters and scores; nodes where it fits now go before
 * those where it fits later, and among either those of the own shard first. PLACE_NONE leaves the
 * reasons in *ret_log (in the arena; may be shared with other tasks of the shape), or NULL there
 * when scoring failed. */
enum placement select_node(struct session *ssn, task_id t, node_id *ret, struct fit_log **ret_log);
/* All nodes (sampled) that pass the filters in the given mode, best score first when scored, those
 * of other shards last. With check_future the resource check stands in front. *ret in the arena.
 * Empty when scoring failed. */
uint32_t select_nodes(struct session *ssn, task_id t, hyper_id domain, enum filter_mode mode,
                      bool check_future, bool scored, node_id **ret, struct fit_log **ret_log);
/* How many feasible nodes to look for among n (5.1). */
uint32_t select_want(const struct session_opts *o, uint32_t n);

/* Made and ended with scheduler_mem; told when a session opens and when the journal is rewound. */
struct select *select_new(void);
void select_free(struct select *s);
void select_open(struct session *ssn);
void select_rewound(struct session *ssn);

/* ---- questions asked by several plugins and actions (2.4) ---- */

static inline bool session_in_shard(const struct session *ssn, node_id n)
{
    return ssn->opts.shard_mode == SHARD_NONE || (ssn->m->nodes.flags[n.i] & NODE_IN_SHARD);
}
/* False where the node is none of this scheduler's business. */
static inline bool session_may_use(const struct session *ssn, node_id n)
{
    return ssn->opts.shard_mode != SHARD_HARD || session_in_shard(ssn, n);
}

/* Whether a look at the active job is due: asked for, or something happened, or its time came. */
static inline bool session_is_awake(const struct session *ssn, job_id j)
{
    return ssn->opts.all_jobs || model_job_awake(ssn->m, j) ||
           model_job(ssn->m, j)->park.due_ns <= ssn->now_ns;
}

bool job_is_pending(const struct job *j);
bool job_counts_ready(const struct job *j); /* "Ready" of 2.4 */
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
