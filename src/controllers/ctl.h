// SPDX-License-Identifier: Apache-2.0
// The frame of every controller: mirrors of the API below, keys of work above, and between them one
// idempotent reconcile(key).
//
//   change of an object -> changed(): which keys does this concern? -> reconcile(key): compare the
//   world with what is wanted, ask for some writes, return -> their answers go into the mirrors ->
//   reconcile(key) again, until it finds nothing to do
//
// A pass reads only the mirrors (and small memories of its own that may be lost), and asks for
// writes that do not depend on one another; what must happen in order happens in successive passes,
// each of which sees the effect of the one before. So whatever dies between two writes, the next
// pass, in this process or another, finds the place from the objects alone. A key has no second
// pass while its writes are under way.
//
// One thread, no locks. Nothing here blocks.
#pragma once

#include "api/recorder.h"
#include "controllers/mirror.h"
#include "controllers/workq.h"

struct ctl;
struct prober;
struct turn;

struct ctl_watch {
    const struct mirror_type *type; /* NULL ends the list */
    /* Adds the keys the change concerns (ctl_add). NULL: the mirror is only read. */
    void (*changed)(struct ctl *c, const struct mirror_change *ch);
};

/* A controller's whole face. */
struct ctl_type {
    const char *name; /* as in --controllers */
    const char *about;
    const struct ctl_watch *watches;
    size_t state_size;            /* of ctl.state, zeroed before open */
    void (*open)(struct ctl *c);  /* may be NULL */
    void (*close)(struct ctl *c); /* may be NULL */
    void (*reconcile)(struct ctl *c, struct turn *t);
};

/* Upstream's flags, and what the embedded mode adds. Zero means the default. */
struct ctl_conf {
    const struct hk_str *scheduler_names; /* none: "volcano" */
    uint32_t nscheduler_name;
    int32_t max_requeue; /* 0: 15; negative: unlimited */
    bool no_inherit_owner_annotations;
    bool no_queue_command_sync; /* the feature gates, where they are on by default */
    bool no_workload_support;
    const char *local_zone; /* of CronJobs that name none, as tzfile_load has it; NULL: UTC */
    struct prober *prober;  /* asks pods for JobFlows; NULL: targets have to complete */
    bool gc_aborted;        /* ttlSecondsAfterFinished is for Aborted jobs too */
    /* The ConfigMap with the controllers' configuration; "": as Volcano's installer has it. */
    struct hk_str config_ns, config_name;
};

struct ctl_metrics {
    uint64_t writes[PORT_NVERBS]; /* asked of the port, events not counted */
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

/* A key is looked at as soon as may be. */
void ctl_add(struct ctl *c, struct hk_str ns, struct hk_str name);
/* Or when the wall clock shows at_ns. An earlier time for the same key wins. */
void ctl_add_at(struct ctl *c, struct hk_str ns, struct hk_str name, int64_t at_ns);
/* The mirror of one of the controller's own watches. */
struct mirror *ctl_mirror(struct ctl *c, enum api_kind_id kind);
const struct ctl_conf *ctl_conf(const struct ctl *c);
struct hk_str ctl_config_ns(const struct ctl_conf *conf);
struct hk_str ctl_config_name(const struct ctl_conf *conf);
struct hk_rand *ctl_rand(struct ctl *c);
struct hk_intern *ctl_strings(struct ctl *c);
int64_t ctl_now(const struct ctl *c); /* wall */

/* ---- one pass over one key ---- */

/* A call that failed. */
struct turn_error {
    enum port_verb verb;
    const struct api_kind *kind;
    char *name;
    int rc;
    char *text;
    char *reason; /* of the Status: "Forbidden", ...; NULL unknown */
};

struct turn {
    struct ctl *c;
    struct hk_str ns, name; /* the key */
    struct hk_arena *mem;   /* until reconcile returns */
    int64_t now_ns;         /* wall */
    /* Of the pass before, when it failed. */
    uint32_t failures; /* in a row */
    const struct turn_error *errors;
    uint32_t nerror;
    /* The frame's. */
    uint32_t key;
    uint32_t ncall;
    bool failed, full;
    int64_t again_ns;
};

/* How many writes one pass may ask for; what is beyond waits for the next, which follows by itself.
 */
enum { TURN_CALLS_MAX = 512 };

/* Each asks for a write, and says false when the pass is full (go on or return, as is easier).
 * Bodies are copied. A failure shows as an error of the next pass, after a pause; these are none:
 * creating what exists (the one that is there is read into the mirror), deleting what is not there.
 */
bool turn_create(struct turn *t, const struct api_kind *kind, const struct json *body);
bool turn_update(struct turn *t, const struct api_kind *kind, const struct json *body);
/* Replaces the status; body is the object with its resourceVersion. */
bool turn_update_status(struct turn *t, const struct api_kind *kind, const struct json *body);
struct turn_patch {
    const struct api_kind *kind;
    struct hk_str ns, name;
    const char *subresource; /* or NULL */
    enum port_patch type;
    const struct json *body;
    struct hk_str field_manager; /* apply */
    bool force;                  /* apply */
};
bool turn_patch(struct turn *t, const struct turn_patch *p);
/* uid "": whichever is there. */
bool turn_delete(struct turn *t, const struct api_kind *kind, struct hk_str ns, struct hk_str name,
                 struct hk_str uid, enum port_propagation propagation);

/* The pass found something that only time or others can mend: it is repeated after a pause, as
 * after a failed call, and the text is one of the next pass's errors. */
void turn_fail(struct turn *t, enum hk_code code, const char *fmt, ...) HK_PRINTF(3, 4);
/* How many failures in a row --max-requeue-num bears; UINT32_MAX without end. */
uint32_t turn_patience(const struct turn *t);
/* Look at the key again when the wall clock shows at_ns. */
void turn_again_at(struct turn *t, int64_t at_ns);

/* An event about obj, which is an object of the API. Equal ones are counted, not repeated. */
void turn_event(struct turn *t, const struct json *obj, bool warning, const char *reason,
                const char *fmt, ...) HK_PRINTF(5, 6);

/* ---- objects that are not mirrored ---- */

/* Memory of one such object; lives with the key's own memory, zeroed at first. It may only be freed
 * in a pass over the key, or when the controller closes. */
struct ensured {
    uint8_t state;            /* enum ensured_state, the frame's */
    uint64_t want;            /* what was ensured last, or is being written */
    struct api_object *found; /* while it is compared */
};
void ensured_fini(struct ensured *e);
bool ensured_is_removed(const struct ensured *e);

struct ensure {
    const struct api_kind *kind;
    struct hk_str ns, name;
    uint64_t want; /* a hash of all that make and mend go by, never 0 */
    /* There is no such object: fills body, which has apiVersion, kind, name and namespace. */
    void (*make)(void *ctx, struct hk_arena *a, struct json *body);
    /* There is one: puts the copy right; false when it needs nothing. NULL: any will do. */
    bool (*mend)(void *ctx, struct hk_arena *a, struct json *obj);
    void *ctx;
};

/* True once the object is as wanted. Else the next step towards it has been asked for, and the
 * answer comes in a later pass. The object is read once per process and want. */
bool turn_ensure(struct turn *t, struct ensured *memo, const struct ensure *e);
/* True once the object has been deleted (or was not there); turn_ensure begins anew. */
bool turn_remove(struct turn *t, struct ensured *memo, const struct api_kind *kind,
                 struct hk_str ns, struct hk_str name);
/* True once an object that others make has been read: *ret is it, with a reference for the caller,
 * or NULL when there is none. memo forgets it, so that the next question is asked anew. */
bool turn_read(struct turn *t, struct ensured *memo, const struct api_kind *kind, struct hk_str ns,
               struct hk_str name, struct api_object **ret);

/* ---- all controllers of a process ---- */

struct manager_opts {
    struct port *port; /* polled by the manager alone */
    struct hk_clock *clock;
    struct hk_rand *rand;
    struct ctl_conf conf;
    const struct ctl_type *const *types;
    uint32_t ntype;
    struct hk_str component; /* in events; "": vc-controller-manager */
    bool shared_port;        /* somebody else polls the port */
};

struct manager *manager_new(const struct manager_opts *o);
/* Calls under way are dropped: their effect is found out by whoever comes next. Takes NULL. */
void manager_free(struct manager *m);
/* Does what can be done now; the monotonic time when it wants to be called again at the latest (0:
 * at once), INT64_MAX when only the port can bring news. */
int64_t manager_run(struct manager *m);
/* From here on no pass begins; what is under way is heard out by manager_run. */
void manager_drain(struct manager *m);
/* That has been heard. */
bool manager_drained(const struct manager *m);
/* NULL when no controller watches the kind. */
struct mirror *manager_mirror(const struct manager *m, enum api_kind_id kind);
/* Every mirror has been filled. */
bool manager_synced(const struct manager *m);
/* Nothing waits, nothing is under way; timers do not count. */
bool manager_idle(const struct manager *m);
const struct ctl_metrics *manager_metrics(const struct manager *m);
/* All types there are; NULL when unknown. */
const struct ctl_type *const *manager_types(uint32_t *ret_n);
/* Those of Kubernetes' own workloads, for clusters that have nobody else for them. */
const struct ctl_type *const *manager_workload_types(uint32_t *ret_n);
const struct ctl_type *manager_type(struct hk_str name);
