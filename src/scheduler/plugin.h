// SPDX-License-Identifier: Apache-2.0
// The face of a plugin and of an action: a const struct naming its hooks and options. Reading the
// configuration flattens each hook into an array in tier order (hooks.h). Options are parsed from
// the table into the head of the plugin's state; a session gives every plugin a fresh copy, so what
// must outlive a cycle is a column of the model.
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
    OPT_IGNORED,  /* accepted, without effect here; help says why */
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

/* A victim list: hooks fill out (room for n) from in, return how many, and vote. */
struct victims {
    const task_id *in;
    uint32_t n;
    task_id *out;
    uint32_t nout;
};

enum evict_kind { EVICT_GANG_PREEMPT, EVICT_GANG_RECLAIM };

enum filter_mode {
    FILTER_PLACE, /* allocate, backfill: any reason refuses the node */
    FILTER_EVICT, /* preempt, reclaim, gang*: only NEVER does */
};

/* Lists of hyperNode lists, outer list = gradients (4.2.4). */
struct gradient {
    hyper_id *at;
    uint32_t n;
};
struct gradients {
    struct gradient *at;
    uint32_t n;
};
enum gradient_purpose { GRADIENT_ALLOCATE, GRADIENT_EVICT };

/* What a plugin makes of a queue. */
struct queue_report {
    struct rvec deserved;
    struct rvec limit; /* what it may hold, the guarantees of others left out */
    double share;      /* how much of what it deserves it holds */
    bool overused;     /* too much, as the plugin sees it */
    bool capacity;     /* the plugin is about capabilities */
    queue_id parent;   /* counts what this one holds as its own, too; NO_QUEUE without a tree */
};

/* Every hook may be NULL. self is the plugin's state for this session, options filled in. */
struct plugin {
    const char *name;
    const char *about;
    size_t state_size;
    const struct opt *opts;
    uint32_t nopt;
    bool own_hierarchy; /* understands enableHierarchy */

    void (*open)(struct session *ssn, void *self);
    void (*close)(struct session *ssn, void *self);

    /* first non-zero wins; negative: a first */
    int (*job_order)(struct session *ssn, void *self, job_id a, job_id b);
    int (*queue_order)(struct session *ssn, void *self, queue_id a, queue_id b);
    int (*victim_queue_order)(struct session *ssn, void *self, queue_id a, queue_id b,
                              queue_id preemptor);
    int (*task_order)(struct session *ssn, void *self, task_id a, task_id b);
    int (*sub_order)(struct session *ssn, void *self, sub_id a, sub_id b);

    /* Before nodes are looked at; false refuses the task everywhere, *why says so. */
    bool (*pre_predicate)(struct session *ssn, void *self, task_id t, struct reason *why);
    /* Keeps the nodes that pass in nodes[0..ret), order kept; the others are recorded in log (may
     * be NULL) with fit_log_add and fit_log_node. */
    uint32_t (*filter)(struct session *ssn, void *self, task_id t, enum filter_mode mode,
                       node_id *nodes, uint32_t n, struct fit_log *log);
    /* True when placing other tasks can change the answer only for the nodes they were placed on.
     * NULL means always. */
    bool (*filter_local)(struct session *ssn, void *self, task_id t);
    /* Adds this plugin's weighted score to score[i] of nodes[i]. A negative return empties the
     * whole score table (BatchNodeOrder error). */
    int (*score)(struct session *ssn, void *self, task_id t, const node_id *nodes, uint32_t n,
                 double *score);
    /* True when a node's score depends on that node alone for this task: not on the other
     * candidates and not on placements elsewhere. NULL means always. */
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
    bool (*job_ready)(struct session *ssn, void *self, job_id j);
    enum vote (*job_pipelined)(struct session *ssn, void *self, job_id j);
    bool (*sub_ready)(struct session *ssn, void *self, sub_id s);
    enum vote (*sub_pipelined)(struct session *ssn, void *self, sub_id s);
    /* NULL when valid; else the message. */
    const char *(*job_valid)(struct session *ssn, void *self, job_id j);
    bool (*job_starving)(struct session *ssn, void *self, job_id j);
    enum vote (*job_enqueueable)(struct session *ssn, void *self, job_id j);
    void (*job_enqueued)(struct session *ssn, void *self, job_id j);
    /* When the clock alone changes an answer about the job; INT64_MAX never. Everyone is asked. */
    int64_t (*job_due)(struct session *ssn, void *self, job_id j);

    /* Everyone hears. The model already shows the change; a failing allocate undoes the operation
     * (then deallocate is told to all, as upstream does). */
    bool (*allocate)(struct session *ssn, void *self, task_id t);
    void (*deallocate)(struct session *ssn, void *self, task_id t);

    /* For reports alone, also after the session. False when the plugin has no opinion on the queue.
     */
    bool (*queue_report)(struct session *ssn, void *self, queue_id q, struct queue_report *ret);
};

struct action {
    const char *name;
    const char *about;
    bool evicts; /* may make room at others' cost */
    size_t args_size;
    const struct opt *opts;
    uint32_t nopt;
    void (*run)(struct session *ssn, const void *args);
};

/* Tables made by the build from plugins/meson.build and actions/meson.build. */
extern const struct plugin *const plugin_table[];
extern const uint32_t plugin_table_len;
extern const struct action *const action_table[];
extern const uint32_t action_table_len;
const struct plugin *plugin_find(struct hk_str name);
const struct action *action_find(struct hk_str name);
