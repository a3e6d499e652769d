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
    /* Where this process serves the API, for the Service default/kubernetes; NULL: unknown. */
    const char *api_address;
    uint16_t api_port;
    const char *dns; /* address of the DNS server; NULL: none */
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
/* Controllers of Services, for the same clusters. */
const struct ctl_type *const *manager_service_types(uint32_t *ret_n);
/* NULL when unknown. */
const struct ctl_type *manager_type(struct hk_str name);
