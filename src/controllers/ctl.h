// SPDX-License-Identifier: Apache-2.0
// The framework of every controller: mirrors hold a copy of the API, work queues hold keys, and one
// idempotent reconcile(key) connects them.
//
//   an object changes -> changed() queues the keys concerned -> reconcile(key) compares the current
//   state with the wanted one, requests some writes and returns -> their answers go into the
//   mirrors -> reconcile(key) again, until there is nothing to do
//
// A pass reads only the mirrors (and small caches that may be lost) and requests writes that do not
// depend on one another. Ordered writes go into successive passes, each of which sees the effect of
// the one before. So after a crash between two writes the next pass, in this process or another,
// continues from the objects alone. A key has at most one pass at a time, and no new pass while its
// writes are in flight.
//
// One thread, no locks. Nothing here blocks.
#pragma once

#include "api/recorder.h"
#include "controllers/mirror.h"
#include "controllers/workq.h"

struct ctl;
struct prober;
struct pass;

struct ctl_watch {
    const struct mirror_type *type; /* NULL ends the list */
    /* Adds the keys the change concerns (ctl_add). NULL: the mirror is only read. */
    void (*changed)(struct ctl *c, const struct mirror_change *ch);
};

/* What defines a controller. */
struct ctl_type {
    const char *name; /* as in --controllers */
    const char *about;
    const struct ctl_watch *watches;
    size_t state_size;            /* of ctl.state, zeroed before open */
    void (*open)(struct ctl *c);  /* may be NULL */
    void (*close)(struct ctl *c); /* may be NULL */
    void (*reconcile)(struct ctl *c, struct pass *t);
};

/* Upstream's flags and those of the embedded mode. Zero means the default. */
struct ctl_conf {
    const struct hk_str *scheduler_names; /* none: "volcano" */
    uint32_t nscheduler_name;
    int32_t max_requeue; /* 0: 15; negative: unlimited */
    bool no_inherit_owner_annotations;
    bool no_queue_command_sync; /* this and the next: feature gates that are on by default */
    bool no_workload_support;
    const char *local_zone; /* for CronJobs without a zone, a tzfile_load name; NULL: UTC */
    struct prober *prober;  /* probes pods for JobFlows; NULL: wait for completion instead */
    bool gc_aborted;        /* apply ttlSecondsAfterFinished to Aborted jobs, too */
    /* A node without a heartbeat for this long is unreachable; 0: 40 s. */
    int64_t node_grace_ns;
    /* Pods bound to a missing node are deleted after this time; 0: 40 s. */
    int64_t pod_gc_quarantine_ns;
    /* Number of finished pods to keep; 0: 12,500; negative: all. */
    int64_t finished_pods_max;
    /* Whether this process runs the node itself: such a node needs no heartbeat. NULL: none. */
    bool (*is_own_node)(void *ctx, struct hk_str name);
    void *own_nodes;
    /* The ConfigMap with the controllers' configuration; "": the names of Volcano's installer. */
    struct hk_str config_ns, config_name;
};

struct ctl_metrics {
    uint64_t writes[PORT_NVERBS]; /* requests to the port without events */
    uint64_t events;
    uint64_t passes;
    uint64_t failures;
};

struct manager;

struct ctl {
    const struct ctl_type *type;
    struct manager *mgr;
    void *state;
    struct workq q;
};

/* Queues the key now, ... */
void ctl_add(struct ctl *c, struct hk_str ns, struct hk_str name);
/* ... or at wall-clock time at_ns. An earlier time for the same key wins. */
void ctl_add_at(struct ctl *c, struct hk_str ns, struct hk_str name, int64_t at_ns);
/* The mirror of one of the controller's own watches. */
struct mirror *ctl_mirror(struct ctl *c, enum api_kind_id kind);
const struct ctl_conf *ctl_conf(const struct ctl *c);
/* Whether the scheduler of that name is one of --scheduler-name. */
bool ctl_is_own_scheduler(const struct ctl_conf *conf, struct hk_str name);
struct hk_str ctl_config_ns(const struct ctl_conf *conf);
struct hk_str ctl_config_name(const struct ctl_conf *conf);
struct hk_rand *ctl_rand(struct ctl *c);
struct hk_intern *ctl_strings(struct ctl *c);
int64_t ctl_now(const struct ctl *c);  /* wall */
int64_t ctl_mono(const struct ctl *c); /* monotonic */

/* ---- one pass over one key ---- */

/* A call that failed. */
struct pass_error {
    enum port_verb verb;
    const struct api_kind *kind;
    char *name;
    int rc;
    char *text;
    char *reason; /* of the Status: "Forbidden", ...; NULL unknown */
};

struct pass {
    struct ctl *c;
    struct hk_str ns, name; /* the key */
    struct hk_arena *mem;   /* valid until reconcile returns */
    int64_t now_ns;         /* wall */
    /* From the previous pass, when it failed. */
    uint32_t failures; /* in a row */
    const struct pass_error *errors;
    uint32_t nerror;
    /* Private to the framework. */
    uint32_t key;
    uint32_t ncall;
    bool failed, full;
    int64_t again_ns;
};

/* Most writes of one pass; the next pass follows at once and requests the rest. */
enum { TURN_CALLS_MAX = 512 };

/* Each requests a write and copies the body. False when the pass is full; reconcile may
 * continue or return. A failure shows up in the errors of the next pass, after a pause. These
 * are not failures: creating an object that exists (the mirror then reads it), deleting one
 * that does not. When a namespace refuses a creation because it is being deleted, nothing is
 * created there for a while. */
bool pass_create(struct pass *t, const struct api_kind *kind, const struct json *body);
bool pass_update(struct pass *t, const struct api_kind *kind, const struct json *body);
/* Replaces .status; body is the whole object with its resourceVersion. */
bool pass_update_status(struct pass *t, const struct api_kind *kind, const struct json *body);
struct pass_patch {
    const struct api_kind *kind;
    struct hk_str ns, name;
    const char *subresource; /* or NULL */
    enum port_patch type;
    const struct json *body;
    struct hk_str field_manager; /* apply */
    bool force;                  /* apply */
};
bool pass_patch(struct pass *t, const struct pass_patch *p);
/* uid "": any object of that name. */
bool pass_delete(struct pass *t, const struct api_kind *kind, struct hk_str ns, struct hk_str name,
                 struct hk_str uid, enum port_propagation propagation);

/* Deletes without a grace period. */
bool pass_delete_now(struct pass *t, const struct api_kind *kind, struct hk_str ns,
                     struct hk_str name, struct hk_str uid);

/* Marks the pass as failed: it is repeated after a pause, and the text is one of its errors
 * then. */
void pass_fail(struct pass *t, enum hk_code code, const char *fmt, ...) HK_PRINTF(3, 4);
/* How many failures in a row --max-requeue-num allows; UINT32_MAX: unlimited. */
uint32_t pass_patience(const struct pass *t);
/* Queues the key again for wall-clock time at_ns. */
void pass_again_at(struct pass *t, int64_t at_ns);

/* Records an Event about obj, an API object. Equal events are counted, not repeated. */
void pass_event(struct pass *t, const struct json *obj, bool warning, const char *reason,
                const char *fmt, ...) HK_PRINTF(5, 6);

/* ---- objects that are not mirrored ---- */

/* State of one such object, zeroed at first; part of the key's memory. Free it only in a pass over
 * the key, or when the controller closes. */
struct ensured {
    uint8_t state;            /* enum ensured_state, private to the framework */
    bool ours;                /* known to belong to owner_uid */
    bool foreign;             /* found, and known not to belong to it */
    uint64_t want;            /* ensure.want of the last or current write */
    struct api_object *found; /* set until it is compared */
};
void ensured_fini(struct ensured *e);
bool ensured_is_removed(const struct ensured *e);
/* An object of that name exists and has another owner. */
bool ensured_is_foreign(const struct ensured *e);

struct ensure {
    const struct api_kind *kind;
    struct hk_str ns, name;
    /* uid of the required owner: an object of another owner is left alone, and the pass fails. "":
     * any owner. */
    struct hk_str owner_uid;
    uint64_t want; /* a hash of all inputs of make and correct, never 0 */
    /* The object does not exist: fills body, which has apiVersion, kind, name and namespace. */
    void (*make)(void *ctx, struct hk_arena *a, struct json *body);
    /* The object exists: corrects the copy; false when nothing differs. NULL: accept any. */
    bool (*correct)(void *ctx, struct hk_arena *a, struct json *obj);
    void *ctx;
};

/* True once the object is as wanted. Otherwise the next step was requested, and a later pass sees
 * its result. The object is read once per process and value of want. */
bool pass_ensure(struct pass *t, struct ensured *memo, const struct ensure *e);
/* True once the object is deleted, did not exist, or belongs to another owner (it stays). A later
 * pass_ensure starts from the beginning. */
bool pass_remove(struct pass *t, struct ensured *memo, const struct api_kind *kind,
                 struct hk_str ns, struct hk_str name, struct hk_str owner_uid);
/* True once the object was read: *ret is a reference for the caller, or NULL when there is none.
 * The next call reads it again. */
bool pass_read(struct pass *t, struct ensured *memo, const struct api_kind *kind, struct hk_str ns,
               struct hk_str name, struct api_object **ret);

/* ---- all controllers of a process ---- */

struct manager_opts {
    struct port *port; /* polled by the manager only */
    struct hk_clock *clock;
    struct hk_rand *rand;
    struct ctl_conf conf;
    const struct ctl_type *const *types;
    uint32_t ntype;
    struct hk_str component; /* in events; "": vc-controller-manager */
    bool shared_port;        /* the caller polls the port */
};

struct manager *manager_new(const struct manager_opts *o);
/* Drops calls in flight; the next manager finds their effects in the API. Takes NULL. */
void manager_free(struct manager *m);
/* Does all work that is due. Returns the monotonic time by which to call it again (0: at once), or
 * INT64_MAX when only a message of the port can bring work. */
int64_t manager_run(struct manager *m);
/* Starts no new pass; manager_run still handles the answers to calls in flight. */
void manager_drain(struct manager *m);
/* All those answers have arrived. */
bool manager_drained(const struct manager *m);
/* NULL when no controller watches the kind. */
struct mirror *manager_mirror(const struct manager *m, enum api_kind_id kind);
/* Every mirror has its first list. */
bool manager_synced(const struct manager *m);
/* No key waits and no call is in flight; timers do not count. */
bool manager_idle(const struct manager *m);
/* Whether a key waits only because its last pass took long. */
bool manager_rests(const struct manager *m);
const struct ctl_metrics *manager_metrics(const struct manager *m);
/* All controllers of Volcano. */
const struct ctl_type *const *manager_types(uint32_t *ret_n);
/* Controllers of Kubernetes' own workloads, for clusters without kube-controller-manager. */
const struct ctl_type *const *manager_workload_types(uint32_t *ret_n);
/* Node controllers, for the same clusters. */
const struct ctl_type *const *manager_node_types(uint32_t *ret_n);
/* NULL when unknown. */
const struct ctl_type *manager_type(struct hk_str name);
