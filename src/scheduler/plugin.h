// SPDX-License-Identifier: Apache-2.0
// The interface of plugins and actions: a const struct that names hooks and options. Loading the
// configuration puts each hook into an array in tier order (hooks.h). Options are parsed into the
// start of the plugin's state. Each session gives every plugin a fresh copy, so data that must
// outlive a cycle belongs in a column of the model.
#pragma once

#include "base/vec.h"
#include "scheduler/fit.h"

struct session;

enum opt_type {
    OPT_INT,      /* int64_t */
    OPT_FLOAT,    /* double */
    OPT_BOOL,     /* bool; also Go's ParseBool strings */
    OPT_STR,      /* struct hk_str, lives as long as the configuration */
    OPT_DURATION, /* int64_t nanoseconds, from a Go duration string */
    OPT_PAIRS,    /* struct opt_pairs: every key that begins with opt.key, integer values */
    OPT_IGNORED,  /* accepted without effect; help says why */
};

struct opt_pair {
    struct hk_str name; /* what follows the prefix */
    int64_t v;
};
struct opt_pairs {
    const struct opt_pair *at;
    uint32_t n;
};

struct opt {
    const char *key;
    enum opt_type type;
    size_t offset;    /* into the state */
    const char *dflt; /* as it would be written in YAML; NULL: zero */
    const char *help;
};
#define OPT(kind, state, field, k, d, h)                                                           \
    {                                                                                              \
        .key = (k), .type = (kind), .offset = offsetof(state, field), .dflt = (d), .help = (h)     \
    }

enum vote { REJECT = -1, ABSTAIN = 0, PERMIT = 1 };

/* Victim candidates: a hook copies the ones it selects from in to out (room for n), sets nout and
 * votes. */
struct victims {
    const task_id *in;
    uint32_t n;
    task_id *out;
    uint32_t nout;
};

enum evict_kind { EVICT_GANG_PREEMPT, EVICT_GANG_RECLAIM };

enum filter_mode {
    FILTER_PLACE, /* allocate, backfill: any reason refuses the node */
    FILTER_EVICT, /* preempt, reclaim, gang*: only a NEVER reason does */
};

/* Domains that a job may be put into: gradients, each a list of hyperNodes, in the order in which
 * they are tried (docs/reference/scheduler.md section 4.4). */
struct gradient {
    hyper_id *at;
    uint32_t n;
};
struct gradients {
    struct gradient *at;
    uint32_t n;
};
enum gradient_purpose { GRADIENT_ALLOCATE, GRADIENT_EVICT };

/* A plugin's view of a queue. */
struct queue_report {
    struct rvec deserved;
    struct rvec limit; /* the most it may hold: without guarantees of others */
    double share;      /* allocated relative to deserved */
    bool overused;     /* the plugin's own definition */
    bool capacity;     /* the plugin enforces capabilities */
    queue_id parent;   /* its totals include this queue; NO_QUEUE without a hierarchy */
};

/* Every hook may be NULL. self is the plugin's state for this session, options filled in. */
struct plugin {
    const char *name;
    const char *about;
    size_t state_size;
    const struct opt *opts;
    uint32_t nopt;
    bool own_hierarchy; /* supports enableHierarchy */

    void (*open)(struct session *ssn, void *self);
    void (*close)(struct session *ssn, void *self);

    /* first non-zero wins; negative: a first */
    int (*job_order)(struct session *ssn, void *self, job_id a, job_id b);
    int (*queue_order)(struct session *ssn, void *self, queue_id a, queue_id b);
    int (*victim_queue_order)(struct session *ssn, void *self, queue_id a, queue_id b,
                              queue_id preemptor);
    int (*task_order)(struct session *ssn, void *self, task_id a, task_id b);
    int (*sub_order)(struct session *ssn, void *self, sub_id a, sub_id b);

    /* Runs before any node filter. False refuses the task on every node; *why gives the reason. */
    bool (*pre_predicate)(struct session *ssn, void *self, task_id t, struct reason *why);
    /* Moves the nodes that pass to nodes[0..ret), in order; records the others in log (may be NULL)
     * with fit_log_add and fit_log_node. */
    uint32_t (*filter)(struct session *ssn, void *self, task_id t, enum filter_mode mode,
                       node_id *nodes, uint32_t n, struct fit_log *log);
    /* True when placing other tasks can change the answer only for the nodes they were placed on.
     * NULL means never, which is safe and slower: equal tasks then share no candidates. */
    bool (*filter_local)(struct session *ssn, void *self, task_id t);
    /* Adds this plugin's weighted score to score[i] of nodes[i]. A negative return empties the
     * whole score table (BatchNodeOrder error). */
    int (*score)(struct session *ssn, void *self, task_id t, const node_id *nodes, uint32_t n,
                 double *score);
    /* True when a node's score for this task depends on that node alone: not on other candidates,
     * not on placements elsewhere. NULL means never, as above. */
    bool (*score_local)(struct session *ssn, void *self, task_id t);
    node_id (*best_node)(struct session *ssn, void *self, task_id t, const node_id *nodes,
                         uint32_t n, const double *score);

    int (*hyper_order)(struct session *ssn, void *self, sub_id s, const hyper_id *at, uint32_t n,
                       double *score);
    /* Gradients in the session's arena. False: error, no gradients. */
    bool (*gradient_job)(struct session *ssn, void *self, job_id j, hyper_id start,
                         enum gradient_purpose why, struct gradients *ret);
    bool (*gradient_sub)(struct session *ssn, void *self, sub_id s, hyper_id start,
                         enum gradient_purpose why, struct gradients *ret);

    enum vote (*preemptable)(struct session *ssn, void *self, task_id preemptor, struct victims *v);
    enum vote (*reclaimable)(struct session *ssn, void *self, task_id reclaimer, struct victims *v);
    enum vote (*evictable)(struct session *ssn, void *self, enum evict_kind kind, job_id job,
                           hyper_id domain, struct victims *v); /* UnifiedEvictable */
    void (*victim_tasks)(struct session *ssn, void *self, struct victims *v);

    bool (*overused)(struct session *ssn, void *self, queue_id q);
    bool (*preemptive)(struct session *ssn, void *self, queue_id q, const task_id *t, uint32_t n);
    bool (*allocatable)(struct session *ssn, void *self, queue_id q, task_id t);
    /* Called for an allocatable task that fits a node now. False when the queue has room for it
     * only after releasing tasks are gone. */
    bool (*bindable)(struct session *ssn, void *self, queue_id q, task_id t);
    bool (*job_ready)(struct session *ssn, void *self, job_id j);
    enum vote (*job_pipelined)(struct session *ssn, void *self, job_id j);
    bool (*sub_ready)(struct session *ssn, void *self, sub_id s);
    enum vote (*sub_pipelined)(struct session *ssn, void *self, sub_id s);
    /* NULL when valid, else the error message. */
    const char *(*job_valid)(struct session *ssn, void *self, job_id j);
    bool (*job_starving)(struct session *ssn, void *self, job_id j);
    enum vote (*job_enqueueable)(struct session *ssn, void *self, job_id j);
    void (*job_enqueued)(struct session *ssn, void *self, job_id j);
    /* When the passing of time alone changes an answer about the job; INT64_MAX never. The earliest
     * future time of all plugins counts. */
    int64_t (*job_due)(struct session *ssn, void *self, job_id j);

    /* Every plugin is called. The model already contains the change. When one allocate returns
     * false, the operation is undone and deallocate is called for every plugin, as upstream
     * does. */
    bool (*allocate)(struct session *ssn, void *self, task_id t);
    void (*deallocate)(struct session *ssn, void *self, task_id t);

    /* For reports only; also called after the session ends. False when the plugin ignores the
     * queue. */
    bool (*queue_report)(struct session *ssn, void *self, queue_id q, struct queue_report *ret);
};

struct action {
    const char *name;
    const char *about;
    bool evicts; /* may evict other tasks to make room */
    size_t args_size;
    const struct opt *opts;
    uint32_t nopt;
    void (*run)(struct session *ssn, const void *args);
};

/* Generated by the build from */
extern const struct plugin *const plugin_table[];
extern const uint32_t plugin_table_len;
extern const struct action *const action_table[];
extern const uint32_t action_table_len;
const struct plugin *plugin_find(struct hk_str name);
const struct action *action_find(struct hk_str name);
