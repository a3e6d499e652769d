// SPDX-License-Identifier: Apache-2.0
// The live model of the cluster: dense tables of nodes, tasks, jobs, sub-jobs and queues. Ingest
// updates it between cycles, the journal inside one; sessions use it without a copy. Layouts are
// open on purpose: policy reads columns, only the functions here and in stmt.c write them.
//
//   node row:  idle + used = alloc;  future = idle + releasing - pipelined   (every dimension)
//   job row:   alloc = sum of requests of its tasks in an allocated state;
//              n[] counts tasks by state
//   queue row: allocated, leaving, request = sums over its jobs
//
// model_check() verifies these sums. Rows are reused after deletion; an id is valid while its
// object exists.
#pragma once

#include "base/err.h"
#include "base/vec.h"
#include "scheduler/model/rvec.h"
#include "scheduler/model/spec.h"

/* Columns that are declared once are lists: X(type, name). This makes fields of them. */
#define ROW_FIELD(type, name) __typeof__(type) name;

/* Volcano's task states, in its order. */
enum task_status {
    TASK_PENDING,
    TASK_ALLOCATED, /* placed in this session, not yet committed */
    TASK_PIPELINED, /* waits for room that is being released */
    TASK_BINDING,   /* sent to the API, answer outstanding */
    TASK_BOUND,
    TASK_RUNNING,
    TASK_RELEASING,
    TASK_SUCCEEDED,
    TASK_FAILED,
    TASK_UNKNOWN,
    TASK_NSTATUS,
};

#define STATUS_BIT(s) (1u << (s))
#define STATUS_ALLOCATED                                                                           \
    (STATUS_BIT(TASK_ALLOCATED) | STATUS_BIT(TASK_BINDING) | STATUS_BIT(TASK_BOUND) |              \
     STATUS_BIT(TASK_RUNNING))
#define STATUS_READY (STATUS_ALLOCATED | STATUS_BIT(TASK_SUCCEEDED))
#define STATUS_VALID (STATUS_READY | STATUS_BIT(TASK_PIPELINED) | STATUS_BIT(TASK_PENDING))
#define status_in(s, set) ((STATUS_BIT(s) & (set)) != 0)
const char *task_status_name(enum task_status s);

/* ---- tasks ---- */

enum {
    TASK_PREEMPTABLE = 1 << 0,
    TASK_BEST_EFFORT = 1 << 1,
    TASK_GATED = 1 << 2,          /* has scheduling gates */
    TASK_GATE_OURS_ONLY = 1 << 3, /* the queue-allocation gate is its only gate */
    TASK_GATE_OPT_IN = 1 << 4,    /* annotation scheduling.volcano.sh/queue-allocation-gate */
    TASK_NEVER_PREEMPTS = 1 << 5, /* preemptionPolicy: Never */
    TASK_CRITICAL = 1 << 6,       /* conformance: system-*-critical class or kube-system */
    TASK_TERMINATING = 1 << 7,    /* deletionTimestamp set */
    TASK_REVOCABLE = 1 << 8,
    TASK_NO_LABELS = 1 << 9,
    TASK_IN_VIEW = 1 << 10,        /* counted in the node's view (see node table) */
    TASK_EVICTED = 1 << 11,        /* evicted in this session */
    TASK_PREEMPT_VICTIM = 1 << 12, /* DisruptionTarget, reason PreemptionByScheduler */
    TASK_OURS = 1 << 13,           /* schedulerName is ours */
    TASK_NOMINATED = 1 << 14,      /* listed in model.nominated */
    TASK_HELD = 1 << 15,           /* do not place it now: its last bind failed */
};

/* Facts of a pod: plain values in the row and in the task_desc, copied by model_task_put. */
#define TASK_FACTS(X)                                                                              \
    X(int64_t, creation_ns)                                                                        \
    X(int64_t, start_ns)

struct task {
    job_id job; /* NO_JOB: occupies its node, is never scheduled */
    sub_id sub;
    node_id node; /* where it runs or is tentatively placed */
    shape_id shape;
    ident_id ident;
    uint32_t role;
    int32_t priority;     /* spec.priority, 1 when unset, annotation wins */
    int32_t pod_priority; /* spec.priority, 0 when unset */
    uint16_t flags;
    uint8_t status;
    bool used;    /* row in use */
    bool leaving; /* we requested its deletion; ignore older events */
    uint32_t ns, name, uid;
    uint32_t index; /* number after the last dash of the name; ID_NONE without */
    TASK_FACTS(ROW_FIELD)
    node_ref nominated;
    task_id job_next, job_prev;   /* in the job's list of pending or of other tasks */
    task_id node_next, node_prev; /* tasks on a node */
};

/* ---- shapes ---- */

/* One amount of one resource, in stored units. */
struct amount {
    uint32_t dim;
    int64_t v;
};

struct shape {
    uint32_t refs;
    cons_id cons; /* NO_CONS when unconstrained */
    uint32_t nreq;
    struct amount *req;     /* ascending by dimension, zero amounts left out, heap */
    int64_t nz_cpu, nz_mem; /* Kubernetes' non-zero request, for scores */
    bool best_effort;       /* requests nothing but pods */
    uint64_t slot;          /* key in shape_by_hash */
};

static inline uint64_t shape_dims(const struct shape *s)
{
    uint64_t mask = 0;

    for (uint32_t k = 0; k < s->nreq; k++) {
        mask |= 1ULL << s->req[k].dim;
    }
    return mask;
}

static inline int64_t shape_req(const struct shape *s, uint32_t dim)
{
    for (uint32_t k = 0; k < s->nreq; k++) {
        if (s->req[k].dim == dim) {
            return s->req[k].v;
        }
    }
    return 0;
}

/* ---- nodes ---- */

/* One column per dimension, nodes.cap long, allocated when the dimension is first seen. */
struct matrix {
    int64_t *col[DIM_MAX];
};

enum {
    NODE_KNOWN = 1 << 0, /* a Node object exists; otherwise a placeholder for bound pods */
    NODE_UNSCHEDULABLE = 1 << 1,
    NODE_OVERSUBSCRIBED = 1 << 2,
    NODE_OFFLINE_EVICTING = 1 << 3,
    NODE_IN_SHARD = 1 << 4, /* model_node_shard */
};

struct port_use {
    struct host_port port;
    uint32_t count;
};

struct image_have {
    uint32_t image;
    int64_t size;
};

struct port_vec {
    struct port_use *at;
    uint32_t len, cap;
};

struct image_vec {
    struct image_have *at;
    uint32_t len, cap;
};

/* The columns of the node table, each declared here alone: the struct, the growing and the freeing
 * of the table are made from these lists. Rows start as zero.
 *
 * Facts are plain values that a Node object states and model_node_put copies from the node_desc, so
 * a fact for a new plugin is one row here and one assignment in ingest_node.c. A changed fact wakes
 * jobs, as changed labels do. */
#define NODE_FACTS(X) X(int64_t, creation_ns)

#define NODE_COLUMNS(X)                                                                            \
    NODE_FACTS(X)                                                                                  \
    X(int64_t, nz_cpu) /* non-zero requests in the view */                                         \
    X(int64_t, nz_mem)                                                                             \
    X(uint32_t, npods) /* pods in the view */                                                      \
    X(uint32_t, name)                                                                              \
    X(uint8_t, flags)                                                                              \
    X(class_id, class_)                                                                            \
    X(struct labels, labels) /* whole label set; this and the next: heap owned by the row */       \
    X(struct taint *, taints)                                                                      \
    X(uint32_t, ntaint)                                                                            \
    X(task_id, first) /* tasks on the node, newest first */                                        \
    X(struct port_vec, ports)                                                                      \
    X(struct image_vec, images)                                                                    \
    X(uint64_t, version) /* changes with the row's amounts */                                      \
    X(uint32_t, gen)     /* counts the nodes that have used the row */

/* kalloc and kused are the Kubernetes view used by filters and scores: every pod on the node except
 * those evicted in this session, plus pipelined ones; allocatable without oversubscription. */
#define NODE_MATRICES(X)                                                                           \
    X(alloc)                                                                                       \
    X(idle)                                                                                        \
    X(used)                                                                                        \
    X(releasing)                                                                                   \
    X(pipelined)                                                                                   \
    X(future)                                                                                      \
    X(kalloc)                                                                                      \
    X(kused)

#define NODE_MATRIX(name) struct matrix name;
#define NODE_COLUMN(type, name) __typeof__(type) *name;

struct node_table {
    uint32_t len, cap; /* rows, including free ones */
    HK_VEC(uint32_t) free;
    uint32_t live; /* rows with NODE_KNOWN */
    NODE_MATRICES(NODE_MATRIX)
    NODE_COLUMNS(NODE_COLUMN)
};

/* ---- jobs ---- */

enum pg_phase { PG_NONE, PG_PENDING, PG_RUNNING, PG_UNKNOWN, PG_INQUEUE, PG_COMPLETED };
const char *pg_phase_name(enum pg_phase p);

/* Tasks counted by state; enough to decide ready, pipelined and starving. */
struct tally {
    uint32_t n[TASK_NSTATUS];
    uint32_t pending_be; /* Pending best-effort, gated ones included */
    uint32_t total;
};

static inline uint32_t tally_ready(const struct tally *t)
{
    return t->n[TASK_BOUND] + t->n[TASK_BINDING] + t->n[TASK_RUNNING] + t->n[TASK_ALLOCATED] +
           t->n[TASK_SUCCEEDED];
}

static inline uint32_t tally_allocated(const struct tally *t)
{
    return tally_ready(t) - t->n[TASK_SUCCEEDED];
}

static inline uint32_t tally_valid(const struct tally *t)
{
    return tally_ready(t) + t->n[TASK_PIPELINED] + t->n[TASK_PENDING];
}

struct role {
    uint32_t name;
    int32_t min; /* 0 when minTaskMember does not list it */
    struct tally tally;
};

enum topo_mode { TOPO_NONE, TOPO_SOFT, TOPO_HARD };

/* spec.networkTopology as written, and what it means in this session (eff_*): names of tiers become
 * numbers, soft becomes hard (docs/reference/scheduler.md section 2.7). */
struct topo_spec {
    uint8_t mode; /* enum topo_mode */
    bool has_tier;
    int32_t tier;
    uint32_t tier_name;
    uint8_t eff_mode;
    int32_t eff_tier;
};

struct policy { /* spec.subGroupPolicy[] */
    uint32_t name;
    int32_t size, min_groups;
    struct label_sel sel; /* "nothing" means no selector: every pod qualifies */
    bool has_sel;
    uint32_t nkey;
    const uint32_t *key;
    struct topo_spec topo;
};

struct sub_job {
    job_id job;
    uint32_t policy; /* index, ID_NONE for the default sub-job */
    uint32_t id;     /* interned "{jobID}/{policy}-{values}" */
    int32_t min;
    int64_t match_index;
    int32_t priority; /* highest task priority seen, never below 0 */
    struct tally tally;
    struct topo_spec topo;
    hyper_id mark;      /* allocated hyperNode */
    hyper_id nominated; /* by gangpreempt and gangreclaim */
    sub_id next;        /* of the same job */
};

/* Events that may help a job that could not be placed; it stays parked until one of them
 * happens. */
enum {
    WAKE_NODE = 1 << 0,   /* a node was added, or its labels, taints or cordon changed */
    WAKE_PODS = 1 << 1,   /* a pod was added, deleted or bound: affinity, spread, ports */
    WAKE_QUEUE = 1 << 2,  /* a queue or quota changed or gained room */
    WAKE_VICTIM = 1 << 3, /* a pod on a node became evictable */
    WAKE_VOLUME = 1 << 4, /* a claim, volume, class or CSI object changed */
};
struct park {
    uint64_t at;    /* model.version when parked, 0: not parked */
    uint64_t dims;  /* more room in one of these dimensions helps */
    uint8_t why;    /* WAKE_* */
    int64_t due_ns; /* time to try again (sla), INT64_MAX never */
};
/* model.version at the last event of each kind. Tentative changes of a session do not count. */
struct wake {
    uint64_t gain[DIM_MAX];
    uint64_t node, pods, queue, victim, volume;
};

enum tri { TRI_UNSET, TRI_FALSE, TRI_TRUE };

struct min_item { /* spec.minResources as written, for resourcequota */
    uint32_t name;
    int64_t milli;
};

/* Facts of a PodGroup: plain values in the row and in the job_desc, copied by model_job_put, which
 * notices when one differs. */
#define JOB_FACTS(X)                                                                               \
    X(int64_t, creation_ns)                                                                        \
    X(int64_t, waiting_ns) /* sla, 0 none */                                                       \
    X(int32_t, min)                                                                                \
    X(uint8_t, preemptable) /* enum tri, annotation or label on the PodGroup */

struct job {
    uint32_t ns, name, uid;
    queue_id queue; /* NO_QUEUE: that queue does not exist, the job waits outside of sessions */
    /* Without a PodGroup: the queue whose books show what the job's pods hold until they end. */
    queue_id held_in;
    uint32_t queue_name;
    bool used;
    bool has_pg; /* a PodGroup object exists */
    bool has_minres;
    uint8_t phase; /* enum pg_phase, in-session value */
    int32_t priority;
    uint32_t prio_class;
    JOB_FACTS(ROW_FIELD)
    uint32_t budget_min, budget_max_unavailable; /* jdb annotations as text, 0 none */
    struct tally tally;
    HK_VEC(struct role) roles;
    int64_t role_min_total;
    sub_id first_sub, default_sub;
    HK_VEC(struct policy) policies;
    struct topo_spec topo;
    hyper_id mark;
    task_id pending, others; /* list heads */
    HK_VEC(struct min_item) min_items;
    uint64_t minres_has;
    /* Dense vectors of model.stride amounts each, one block. */
    int64_t *vec;
    uint32_t ngated; /* gated tasks that count in gated[] */
    bool dirty;      /* listed in model.dirty_jobs */
    struct park park;
    uint32_t active_pos; /* index in model.active, ID_NONE when absent */
    uint64_t changed;    /* model.version at its last non-tentative change */
    struct {
        int64_t placed_ns; /* when a task last got its place, 0 never */
        uint32_t retries, missing;
        bool looked; /* `missing` is valid */
    } meter;         /* for metrics (meter.h) */
    uint64_t said;   /* hash of the PodGroup's description without phase */
};

enum job_vec {
    JV_ALLOC,
    JV_LEAVING, /* Releasing tasks that still hold a node */
    JV_TOTAL,
    JV_PENDING,
    JV_MINRES,
    JV_GATED,
    JV_INQ,
    JV_ELASTIC,
    JV_OVER,
    JV_N
};

/* ---- queues ---- */

enum { QUEUE_NEVICTING = 5 }; /* number of actions that evict */
enum queue_state { QUEUE_OPEN, QUEUE_CLOSED, QUEUE_CLOSING, QUEUE_UNKNOWN, QUEUE_STATELESS };

/* Facts of a Queue: plain values in the row and in the queue_desc, copied and compared by
 * model_queue_put. */
#define QUEUE_FACTS(X)                                                                             \
    X(uint8_t, state) /* enum queue_state; STATELESS when the object has none yet */               \
    X(bool, reclaimable)                                                                           \
    X(int32_t, weight)                                                                             \
    X(int32_t, priority)                                                                           \
    X(int64_t, creation_ns)
/* Amounts that a Queue may state, each with a has_ flag. */
#define QUEUE_LIMITS(X)                                                                            \
    X(capability)                                                                                  \
    X(deserved)                                                                                    \
    X(guarantee)
#define QUEUE_LIMIT_FIELD(name)                                                                    \
    bool has_##name;                                                                               \
    struct rvec name;

struct queue {
    uint32_t name;
    bool used;
    QUEUE_FACTS(ROW_FIELD)
    uint32_t parent_name;                  /* 0: root */
    uint32_t hierarchy, hierarchy_weights; /* hdrf annotations, 0 none */
    QUEUE_LIMITS(QUEUE_LIMIT_FIELD)
    uint32_t njobs;
    /* Sums over the queue's jobs, and over pods bound in it whose PodGroup is gone. */
    int64_t allocated[DIM_MAX], request[DIM_MAX]; /* request = allocated + Pending */
    int64_t leaving[DIM_MAX];                     /* held by Releasing tasks until they are gone */
    int64_t inqueue[DIM_MAX], elastic[DIM_MAX];
    uint64_t metered; /* dimensions that metrics have shown (meter.h) */
    /* Pods evicted from the queue, and pods evicted for its jobs, by action (meter.h). */
    uint64_t evicted[QUEUE_NEVICTING], evictions[QUEUE_NEVICTING];
};

/* ---- hyperNodes ---- */

struct hyper {
    uint32_t name;
    bool used, placeholder;
    int32_t tier;
    uint32_t tier_name;
    hyper_id parent;
    HK_VEC(hyper_id) children;
    HK_VEC(node_id) nodes; /* all below, by id; empty for the virtual root: every live node */
    uint64_t *bits;        /* the same as a bit set over node rows, NULL for the virtual root */
    uint32_t nbit;         /* rows the bit set covers */
};

/* ---- namespaces, quotas, budgets ---- */

struct quota_item {
    uint32_t name;
    int64_t hard_milli, used_milli;
    bool has_hard, has_used;
};
struct quota {
    uint32_t ns, name;
    bool used;
    HK_VEC(struct quota_item) items;
};
struct pdb {
    uint32_t ns, name;
    bool used;
    struct label_sel sel;
    int32_t allowed;
    HK_VEC(uint32_t) disrupted; /* pod names */
    struct hk_arena mem;
};
struct ns_row {
    uint32_t name;
    struct labels labels;
};

/* ---- idents: namespace and labels of pods ---- */

struct ident {
    uint32_t refs; /* tasks */
    uint32_t ns;
    struct labels labels;
    uint64_t slot; /* key in ident_by_hash */
};

struct class_row {
    uint32_t refs;
    struct labels labels; /* only keys that selectors use */
    const struct taint *taints;
    uint32_t ntaint;
    bool unschedulable;
    uint32_t node_name; /* set when some term asks for metadata.name */
    uint8_t plain;      /* verdict for tasks without constraints, as cons.verdict */
    uint64_t slot;      /* key in class_by_hash */
};

#define TABLE(type)                                                                                \
    struct {                                                                                       \
        struct type *at;                                                                           \
        uint32_t len, cap;                                                                         \
        HK_VEC(uint32_t) free;                                                                     \
    }

struct topo;    /* topo.h: pods counted by topology domain */
struct volumes; /* volumes.h: claims, volumes, classes */

struct model {
    struct hk_intern str;
    struct dims dims;
    uint32_t stride; /* amounts per job vector, >= dims.n */
    struct node_table nodes;
    TABLE(task) tasks;
    HK_VEC(uint32_t) task_gen; /* by task row: counts the pods that have used the row */
    TABLE(shape) shapes;
    TABLE(job) jobs;
    TABLE(sub_job) subs;
    TABLE(queue) queues;
    TABLE(hyper) hypers; /* row 0 is the virtual root */
    TABLE(quota) quotas;
    TABLE(pdb) pdbs;
    TABLE(ident) idents;
    TABLE(class_row) classes;
    HK_VEC(struct cons *) cons;
    HK_VEC(uint32_t) cons_free;
    HK_VEC(struct ns_row) namespaces;
    struct hk_map node_by_name, task_by_key, job_by_key, queue_by_name, hyper_by_name, sub_by_key,
        shape_by_hash, cons_by_hash, ident_by_hash, class_by_hash, asked_keys, ns_by_name;
    bool hyper_ready;           /* the hyperNode tree is consistent */
    bool asked_node_name;       /* some term uses metadata.name */
    uint32_t key_unschedulable; /* string id of the cordon taint's key */
    struct topo *topo;
    struct volumes *volumes;
    int64_t total[DIM_MAX];        /* sum of alloc over known nodes */
    int64_t used_total[DIM_MAX];   /* sum of used over known nodes */
    int64_t requested[DIM_MAX];    /* sum over all tasks: the overflow guard */
    int64_t minres_total[DIM_MAX]; /* sum of minResources over all jobs: the overflow guard */
    int64_t over_inqueue[DIM_MAX]; /* admitted work, as overcommit counts it */
    HK_VEC(job_id) active;         /* jobs with Pending tasks or not yet admitted */
    HK_VEC(task_ref) nominated;    /* tasks with a nominated node, some no longer waiting */
    HK_VEC(job_id) dirty_jobs;     /* jobs whose sums model_settle must update */
    uint32_t gate_opt_in;   /* tasks with TASK_GATE_OPT_IN; at 0 capacity skips reservations */
    uint32_t unsettled;     /* Releasing or Pipelined tasks on nodes; at 0 idle equals future */
    uint32_t prefer_taints; /* nodes carrying a PreferNoSchedule taint */
    uint32_t nimages;       /* known node-image pairs; at 0 ImageLocality is skipped */
    HK_VEC(uint32_t) image_nodes; /* by image string id: number of nodes with it */
    uint64_t version;             /* counts every change */
    HK_VEC(uint32_t) words;       /* model_word */
    struct hk_map word_age;       /* word -> sessions opened since its last use, 0 or 1 */
    struct wake wake;
    bool in_session; /* changes are tentative and wake no job */
};

void model_init(struct model *m);
void model_fini(struct model *m);

/* An id is valid while its object exists. To remember an object longer, keep a reference
 * (ids.h). */
static inline struct task *model_task(const struct model *m, task_id t)
{
    hk_debug_assert(t.i < m->tasks.len && m->tasks.at[t.i].used);
    return &m->tasks.at[t.i];
}
static inline struct job *model_job(const struct model *m, job_id j)
{
    hk_debug_assert(j.i < m->jobs.len && m->jobs.at[j.i].used);
    return &m->jobs.at[j.i];
}
static inline struct sub_job *model_sub(const struct model *m, sub_id s)
{
    hk_debug_assert(s.i < m->subs.len);
    return &m->subs.at[s.i];
}
static inline struct queue *model_queue(const struct model *m, queue_id q)
{
    hk_debug_assert(q.i < m->queues.len && m->queues.at[q.i].used);
    return &m->queues.at[q.i];
}
static inline task_ref model_task_ref(const struct model *m, task_id t)
{
    return (task_ref){t.i, m->task_gen.at[t.i]};
}
/* NO_TASK when the pod is gone. */
static inline task_id model_task_of(const struct model *m, task_ref r)
{
    return r.gen != 0 && m->task_gen.at[r.row] == r.gen ? (task_id){r.row} : NO_TASK;
}
static inline node_ref model_node_ref(const struct model *m, node_id n)
{
    return id_none(n) ? (node_ref){0} : (node_ref){n.i, m->nodes.gen[n.i]};
}
/* NO_NODE when the node's row is gone. */
static inline node_id model_node_of(const struct model *m, node_ref r)
{
    return r.gen != 0 && m->nodes.gen[r.row] == r.gen ? (node_id){r.row} : NO_NODE;
}
/* The node whose room the task waits for, NO_NODE when none. */
static inline node_id task_nominated(const struct model *m, task_id t)
{
    return model_node_of(m, model_task(m, t)->nominated);
}
static inline struct shape *model_shape(const struct model *m, shape_id s)
{
    return &m->shapes.at[s.i];
}
static inline struct shape *task_shape(const struct model *m, task_id t)
{
    return &m->shapes.at[m->tasks.at[t.i].shape.i];
}
static inline struct cons *task_cons(const struct model *m, task_id t)
{
    const cons_id c = task_shape(m, t)->cons;
    return id_none(c) ? NULL : m->cons.at[c.i];
}
static inline int64_t *job_vec(const struct model *m, job_id j, enum job_vec v)
{
    return m->jobs.at[j.i].vec + (size_t)v * m->stride;
}
static inline struct hk_str model_str(const struct model *m, uint32_t id)
{
    return hk_intern_str(&m->str, id);
}
static inline struct labels ident_labels(const struct model *m, ident_id i)
{
    return m->idents.at[i.i].labels;
}

/* ---- writing: ingest, tests and the benchmark generator ----
 * Callers hold the string ids they pass until the call returns; rows take their own references. */

/* Returns the dimension of a resource, and adds its columns when new. *ret is HK_NONE for resources
 * that are not accounted for. Fails with HK_ELIMIT when DIM_MAX names are in use. */
int model_dim(struct model *m, struct hk_str name, uint32_t *ret, struct hk_err *err) HK_CHECKED;

struct node_desc {
    struct hk_str name;
    NODE_FACTS(ROW_FIELD)
    const struct amount *alloc; /* with oversubscription */
    uint32_t nalloc;
    const struct amount *kalloc; /* as the Node object says */
    uint32_t nkalloc;
    const struct label *labels; /* sorted by key id */
    uint32_t nlabel;
    const struct taint *taints;
    uint32_t ntaint;
    const struct image_have *images;
    uint32_t nimage;
    unsigned flags; /* NODE_UNSCHEDULABLE and on; NODE_KNOWN is implied, NODE_IN_SHARD kept */
};
/* Adds or replaces; pods already bound there stay counted. Wakes jobs only if a refused pod might
 * fit now: more room, other labels, taints, flags or facts. */
int model_node_put(struct model *m, const struct node_desc *d, node_id *ret,
                   struct hk_err *err) HK_CHECKED;
/* Removes the Node object; the row stays as a placeholder while tasks are on it. */
void model_node_del(struct model *m, node_id n);
/* Sets whether the known node belongs to the scheduler's shard. */
void model_node_shard(struct model *m, node_id n, bool in);
node_id model_node_find(const struct model *m, struct hk_str name);
/* Finds the node, or adds a placeholder row. */
node_id model_node_need(struct model *m, struct hk_str name);

struct shape_desc {
    const struct amount *req; /* including pods: 1; in any order, each dimension once */
    uint32_t nreq;
    int64_t nz_cpu, nz_mem;
    cons_id cons;
};
/* Takes one reference on the shape (and the shape one on the cons). */
shape_id model_shape_intern(struct model *m, const struct shape_desc *d);
void model_shape_unref(struct model *m, shape_id s);
/* Takes c with its arena. If an equal one exists, returns that and frees c. c->key must hold the
 * canonical bytes. Marks the label keys that its terms use. Returns NO_CONS for NULL. */
cons_id model_cons_intern(struct model *m, struct cons *c);
/* Lives while some task uses it. An unused one is freed by the next model_task_put that names
 * it. */
ident_id model_ident_intern(struct model *m, uint32_t ns, const struct label *labels, uint32_t n);

struct task_desc {
    struct hk_str ns, name, uid, group; /* group: PodGroup name, empty when none */
    struct hk_str node;                 /* spec.nodeName */
    struct hk_str nominated;
    struct hk_str queue; /* as the pod names it: counts only when there is no PodGroup to ask */
    uint32_t role;
    int32_t priority, pod_priority;
    unsigned flags;
    enum task_status status;
    TASK_FACTS(ROW_FIELD)
    shape_id shape; /* model_task_put takes over this reference */
    ident_id ident;
    struct labels labels; /* for sub-group policies: the ident's labels */
};
/* Adds or replaces (by namespace/name). An unchanged description wakes no job. A task in an
 * allocated state whose new description still has no node keeps its place, since the event is older
 * than our bind; one we asked to leave stays Releasing. Fails with HK_ELIMIT past the overflow
 * guard; then nothing changes and the shape reference is dropped. */
int model_task_put(struct model *m, const struct task_desc *d, task_id *ret,
                   struct hk_err *err) HK_CHECKED;
void model_task_del(struct model *m, task_id t);
task_id model_task_find(const struct model *m, struct hk_str ns, struct hk_str name);

struct policy_desc {
    struct hk_str name;
    int32_t size, min_groups;
    bool has_sel;
    struct label_sel sel; /* copied */
    const uint32_t *keys;
    uint32_t nkey;
    struct topo_spec topo;
};
struct role_min {
    uint32_t name;
    int32_t min;
};
struct job_desc {
    struct hk_str ns, name, uid, queue, prio_class;
    int32_t priority;
    enum pg_phase phase;
    JOB_FACTS(ROW_FIELD)
    bool has_minres;
    const struct amount *minres;
    uint32_t nminres;
    const struct min_item *min_items;
    uint32_t nmin_items;
    const struct role_min *roles;
    uint32_t nrole;
    const struct policy_desc *policies;
    uint32_t npolicy;
    struct topo_spec topo;
    struct hk_str budget_min, budget_max_unavailable;
};
/* Fails when the sum of all minimums would exceed DIM_TOTAL_LIMIT. Call before model_job_put. */
int model_job_check(const struct model *m, const struct job_desc *d, struct hk_err *err) HK_CHECKED;
/* An unchanged description wakes no job. */
job_id model_job_put(struct model *m, const struct job_desc *d);
/* Removes the PodGroup; the row stays while tasks name it. */
void model_job_del(struct model *m, job_id j);
job_id model_job_find(const struct model *m, struct hk_str ns, struct hk_str name);
void model_job_set_phase(struct model *m, job_id j, enum pg_phase p);
void model_job_set_priority(struct model *m, job_id j, int32_t priority);

struct queue_desc {
    struct hk_str name, parent, hierarchy, hierarchy_weights;
    QUEUE_FACTS(ROW_FIELD)
    QUEUE_LIMITS(QUEUE_LIMIT_FIELD)
};
/* An unchanged description wakes no job. */
queue_id model_queue_put(struct model *m, const struct queue_desc *d);
void model_queue_del(struct model *m, queue_id q);
queue_id model_queue_find(const struct model *m, struct hk_str name);

/* Replaces the labels; n = 0 removes the namespace (a live one always has a label). */
void model_namespace_put(struct model *m, uint32_t name, const struct label *labels, uint32_t n);
struct labels model_namespace_labels(const struct model *m, uint32_t name);

struct quota_desc {
    struct hk_str ns, name;
    const struct quota_item *items;
    uint32_t nitem;
};
void model_quota_put(struct model *m, const struct quota_desc *d);
void model_quota_del(struct model *m, struct hk_str ns, struct hk_str name);

struct pdb_desc {
    struct hk_str ns, name;
    struct label_sel sel; /* copied */
    int32_t allowed;
    const uint32_t *disrupted;
    uint32_t ndisrupted;
};
void model_pdb_put(struct model *m, const struct pdb_desc *d);
void model_pdb_del(struct model *m, struct hk_str ns, struct hk_str name);

/* One member of a hyperNode, resolved by ingest: a node name or a hyperNode name. */
struct hyper_member {
    bool is_hyper;
    uint32_t name;
};
struct hyper_desc {
    struct hk_str name, tier_name;
    int32_t tier;
    const struct hyper_member *members;
    uint32_t nmember;
};
/* Replaces the whole tree except the virtual root, and computes node sets; unknown node names are
 * left out. False, with a message in err and model.hyper_ready = false, when the tree is
 * inconsistent: two parents, a cycle, or a parent not above its child. */
bool model_hyper_rebuild(struct model *m, const struct hyper_desc *d, uint32_t n,
                         struct hk_err *err);
hyper_id model_hyper_find(const struct model *m, struct hk_str name);
/* Lowest common ancestor; an empty side gives the other; NO_HYPER when there is none. */
hyper_id model_hyper_lca(const struct model *m, hyper_id a, hyper_id b);
#define HYPER_ROOT ((hyper_id){0})
/* Updates the virtual root: all live nodes, parent of every top hyperNode. Called at open. */
void model_hyper_root(struct model *m);

/* Interns a text for a reason. It lives until the session after the next one opens, so a text
 * repeated in every session is stored once. */
uint32_t model_word(struct model *m, struct hk_str s);
/* Called when a session opens. */
void model_words_age(struct model *m);

/* Updates queue sums of admitted but not running work; called before a session opens. */
void model_settle(struct model *m);

/* ---- moving tasks: the journal and ingest ---- */

/* Sets the task's state and node (NO_NODE: none) and updates every sum. */
void model_task_move(struct model *m, task_id t, enum task_status status, node_id node);
/* Remembers the node a task waits for (nominatedNodeName). */
void model_task_nominate(struct model *m, task_id t, node_id n);
/* A bind failed: makes the task Pending and frees its room. */
void model_task_unbind(struct model *m, task_id t);
/* The eviction failed: events decide the task's state again. */
void model_task_stay(struct model *m, task_id t);
/* Sets whether a Pending task is kept from being placed. */
void model_task_hold(struct model *m, task_id t, bool held);
/* Removes a task from its node's view, or adds it again. */
void model_task_view(struct model *m, task_id t, bool in_view);

/* ---- reading ---- */

/* Whether an event since parking could help the job (the clock aside). True for jobs not parked. */
bool model_job_awake(const struct model *m, job_id j);
/* model.version of the newest event that could help a parked job. */
uint64_t model_wake(const struct model *m);
/* Wakes jobs that wait for one of these kinds of events: WAKE_NODE and on. */
void model_wake_up(struct model *m, unsigned why);
void model_job_park(struct model *m, job_id j, uint64_t dims, uint8_t why, int64_t due_ns);

enum { STATIC_UNSCHEDULABLE = 1, STATIC_AFFINITY = 2, STATIC_TAINT = 4, STATIC_KNOWN = 128 };
/* Which static filters the constraints fail on nodes of that class; memoised. c may be NULL. */
uint8_t model_static_eval(struct model *m, cons_id c, class_id k);
static inline uint8_t model_static(struct model *m, cons_id c, node_id n)
{
    const class_id k = m->nodes.class_[n.i];
    if (!id_none(c)) {
        const struct cons *cons = m->cons.at[c.i];
        if (k.i < cons->nverdict && cons->verdict[k.i]) {
            return cons->verdict[k.i] & (uint8_t)~STATIC_KNOWN;
        }
    }
    return model_static_eval(m, c, k);
}

/* Whether the shape fits the idle amounts now, or after all releases. */
bool model_fits_idle(const struct model *m, const struct shape *s, node_id n);
bool model_fits_future(const struct model *m, const struct shape *s, node_id n);

/* Recomputes every sum from the rows. On a mismatch names it in err and returns -HK_EINVAL. */
int model_check(const struct model *m, struct hk_err *err) HK_CHECKED;
