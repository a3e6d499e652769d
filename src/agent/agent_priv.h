// SPDX-License-Identifier: Apache-2.0
// Shared by the files of the agent: the node, its pods and their containers. agent.c owns the pods
// and receives events; agent_node.c reports the node; pod.c and pod_container.c decide, pod_start.c
// starts, pod_status.c reports, pod_probe.c and pod_hook.c probe, pod_hosts.c assigns addresses;
// env.c and volume.c prepare what containers see.
#pragma once

#include "agent/agent.h"
#include "agent/machine.h"
#include "api/feed.h"
#include "api/recorder.h"
#include "base/arena.h"
#include "base/heap.h"
#include "base/vec.h"
#include "net/probe.h"

#define SECOND_NS ((int64_t)1000 * 1000 * 1000)
#define POD_GRACE_S 30 /* default grace period */

struct pod;
struct container;

/* ---- the node: agent_node.c ---- */

enum node_step {
    NODE_CREATE, /* create the object */
    NODE_READ,   /* read an existing one */
    NODE_STATUS, /* report the status */
    NODE_SPEC,   /* set labels, and remove taints of a node that was not ready */
    NODE_REST,   /* wait for the next report */
};

enum node_condition {
    NODE_MEMORY_PRESSURE,
    NODE_DISK_PRESSURE,
    NODE_PID_PRESSURE,
    NODE_READY,
    NODE_NCONDITIONS
};

struct node {
    struct agent *a;
    const char *name;
    struct fleet *fleet; /* NULL: a single node, which sends heartbeats */
    uint32_t zone;       /* in a fleet; 0 none */
    uint8_t step;        /* enum node_step */
    bool registered;
    uint32_t failures;
    uint64_t call;  /* in flight about the node; 0 none */
    uint64_t lease; /* in flight about its lease; 0 none */
    bool lease_missing;
    uint64_t heard_rv; /* of a foreign change during a call; 0 none */
    int64_t due_ns, lease_due_ns;
    int64_t mend_ns; /* do not overwrite foreign changes before this time */
    struct {
        bool is;
        int64_t since_ns; /* wall */
    } conditions[NODE_NCONDITIONS];
    char *uid;
    struct api_object *seen;  /* the node in the last answer, or NULL */
    struct api_object *known; /* the node in the last answer or event, or NULL; not in a fleet */
    int64_t *used;            /* amounts its pods have booked, by fit_rows; NULL: nothing yet */
    /* Not in a fleet: before the node reports Ready, the agent compares what runs with the pods
     * that the server has now. */
    bool unchecked;     /* the comparison is still to do */
    bool doubted;       /* the server has marked the node as unreachable */
    bool check_told;    /* it takes long: a line was logged */
    int64_t check_ns;   /* when it started */
    int64_t contact_ns; /* when the server last accepted a write of the node; 0: never */
};

/* Interval of unchanged status reports. */
#define NODE_REPORT_NS (300 * SECOND_NS)

void node_init(struct node *n, struct agent *a, const char *name);
/* Watches the Node object; for a single node. */
void node_watch(struct node *n);
void node_fini(struct node *n);
/* Does what is due; returns the time of the next action. */
int64_t node_tick(struct node *n, int64_t now_ns);
/* Renews the lease of a registered node, unless a renewal is in flight. */
void node_beat(struct node *n);
/* Handles a new state of the Node object; false when the node must report its status again. */
bool node_hear(struct node *n, struct api_object *o);
/* When it may do so; limits the rate, so call it once per report. */
int64_t node_mend_ns(struct node *n);
/* Adds the node as owner to an object's metadata. */
void node_own(const struct node *n, struct json *meta);

/* ---- Numatopology: agent_topology.c ---- */

struct topology {
    struct agent *a;
    uint64_t call;         /* in flight, or 0 */
    bool exists, patching; /* the last call found the object; this call patches it */
    int64_t due_ns;
};

void topology_init(struct topology *t, struct agent *a);
void topology_fini(struct topology *t);
int64_t topology_tick(struct topology *t, int64_t now_ns);
/* The Node object already says what the node would report. */
bool node_is_told(struct node *n, const struct json *root);

/* ---- the newest API revision seen: agent_past.c ---- */

/* The newest revision of the API that this agent or an earlier one saw. */
struct past {
    const char *dir; /* NULL: not stored */
    int fd;
    uint64_t rv; /* 0 none */
};

void past_init(struct past *p, const char *dir);
void past_fini(struct past *p);
/* An API that is now at rv has lost revisions that the agent saw. */
bool past_is_ahead(const struct past *p, uint64_t rv);
void past_note(struct past *p, uint64_t rv);
/* Writes the uids of kept pods to AGENT_KEPT_FILE; removes the file when there are none. */
void past_tell_kept(const struct past *p, const struct json *uids);

/* ---- simulated nodes: fleet.c ---- */

struct fleet {
    struct agent *a;
    uint32_t n;
    struct node *nodes;
    struct feed feed;      /* of Node objects */
    HK_VEC(uint32_t) todo; /* nodes with a report to send */
    uint32_t busy;         /* calls in flight */
    uint32_t registered;
    bool beats;
    uint32_t next;   /* next node to renew the lease of */
    int64_t beat_ns; /* time of that; 0: not started */
};

struct fleet *fleet_new(struct agent *a, const struct agent_fleet *o);
void fleet_free(struct fleet *f);
int64_t fleet_tick(struct fleet *f, int64_t now_ns);
/* NULL when the fleet has no node of that name. */
struct node *fleet_node(const struct fleet *f, struct hk_str name);
bool fleet_has(const struct fleet *f, struct hk_str name);
/* A call of the node was answered. */
void fleet_answered(struct node *n);

/* ---- what containers see: env.c, volume.c ---- */

/* A ConfigMap, Secret or claim that a pod refers to. */
struct ref {
    enum api_kind_id kind; /* ServiceAccount: its token */
    struct hk_str name;
    const struct json *token; /* the volume source that needs a token; NULL: not a token */
    bool optional;
    bool in_volume;
    uint64_t call;
    struct source *source;     /* watches it, or NULL */
    struct api_object *obj;    /* NULL: does not exist */
    struct api_object *volume; /* the claim's volume, NULL: none */
};

struct env_var {
    struct hk_str name, value;
};

struct env {
    HK_VEC(struct env_var) vars;
};

void env_fini(struct env *e);
/* Adds or replaces the variable; name and value are borrowed. */
void env_set(struct env *e, struct hk_str name, struct hk_str value);
bool env_has(const struct env *e, struct hk_str name);
/* Replaces $(NAME) by the value of the variable; $$(NAME) and unknown names stay. */
struct hk_str env_expand(const struct env *e, struct hk_str text, struct hk_arena *a);
/* The complete environment of a container. -HK_ENOTFOUND: a ConfigMap, Secret or key does not
 * exist. */
int env_make(const struct pod *p, const struct json *container, struct hk_arena *a, struct env *ret,
             struct hk_err *err) HK_CHECKED;
/* In the form that execve needs. */
const char *const *env_block(const struct env *e, struct hk_arena *a);
/* command and args, expanded; NULL when there is no command. */
const char *const *env_argv(const struct env *e, const struct json *container, struct hk_arena *a);
/* The value of a fieldRef; false when the pod has no such field. */
bool env_field(const struct pod *p, struct hk_str path, struct hk_arena *a, struct hk_str *ret);
/* The value of a resourceFieldRef of this container; ref may name another one. */
int env_resource(const struct pod *p, const struct json *container, const struct json *ref,
                 struct hk_arena *a, struct hk_str *ret, struct hk_err *err) HK_CHECKED;
/* The bytes under key in a ConfigMap or Secret; false when absent or invalid base64. */
bool ref_data(const struct ref *r, struct hk_str key, struct hk_arena *a, struct hk_str *ret);
/* Collects the ConfigMaps, Secrets and claims that the pod refers to, each once, into p->refs. */
void ref_collect(struct pod *p);
const struct ref *ref_find(const struct pod *p, enum api_kind_id kind, struct hk_str name);

/* Fills the pod's volumes; may be repeated. -HK_ENOTFOUND: a needed object does not exist. */
int volume_prepare(struct pod *p, struct hk_err *err) HK_CHECKED;
/* Rewrites only files whose objects have changed. */
int volume_refresh(struct pod *p, struct hk_err *err) HK_CHECKED;
/* The volume mounts of a container. */
int volume_mounts(const struct pod *p, const struct container *c, const struct env *e,
                  struct hk_arena *a, struct runtime_mount **ret, uint32_t *ret_n,
                  struct hk_err *err) HK_CHECKED;
/* Creates one directory; succeeds when it exists. */
int volume_mkdir(const char *path, unsigned mode, struct hk_err *err) HK_CHECKED;
/* Creates the parent directories of path below dir. */
int volume_make_parents(const char *dir, struct hk_str path, unsigned mode, struct hk_arena *a,
                        struct hk_err *err) HK_CHECKED;
/* A user's path does not leave the directory it is relative to. */
bool volume_path_stays(struct hk_str path);
/* Message for a refused path. */
#define VOLUME_COVERED                                                                             \
    "'%s' is in the data directory of the server, which containers cannot see: use another path"
/* The existing part of the path leads into a directory hidden from containers. */
bool volume_is_covered(const struct agent *a, const char *path);
/* The directory of a volume inside the pod's directory. */
const char *volume_path(const struct pod *p, const struct json *volume, struct hk_arena *a);
/* Something is mounted there. */
bool volume_is_mounted(const char *path);
/* Unmounts everything in a pod's directory. */
void volume_unmount(const char *pod_dir);
/* Removes a tree without following links or entering other file systems; false when a part is
 * left. */
bool volume_remove(const char *path);

/* ---- files of a volume: volume_files.c ---- */

struct volume_file {
    struct hk_str path, data;
    unsigned mode;
};

struct volume_files {
    HK_VEC(struct volume_file) files;
    int64_t group; /* group that may read them; -1 none */
};

void volume_files_fini(struct volume_files *f);
/* Path and data are borrowed until the files are written; the last of equal paths counts. */
int volume_files_add(struct volume_files *f, struct hk_str path, struct hk_str data, unsigned mode,
                     struct hk_err *err) HK_CHECKED;
/* Replaces the files of the directory atomically. */
int volume_files_write(const struct volume_files *f, const char *dir, struct hk_arena *mem,
                       struct hk_err *err) HK_CHECKED;

/* ---- local volumes: volume_local.c ---- */

struct volume_local;

/* For an agent with a directory. */
struct volume_local *volume_local_new(struct agent *a);
void volume_local_free(struct volume_local *l);
int64_t volume_local_tick(struct volume_local *l, int64_t now_ns);
/* The volume is a local directory of this node. */
bool volume_local_is_own(const struct agent *a, const struct api_object *pv);
/* Creates the directory of a local volume if it is missing. */
int volume_local_make(const struct pod *p, const struct api_object *pv, int64_t fs_group,
                      struct hk_err *err) HK_CHECKED;

/* ---- watching objects shown in volumes: source.c ---- */

struct source;

/* Starts watching an object that one of the pod's volumes shows. */
void source_take(struct pod *p, struct ref *r);
void source_drop(struct pod *p, struct ref *r);
int64_t source_tick(struct agent *a, int64_t now_ns);

/* ---- reading referenced objects: ref.c ---- */

/* Requests the object from the API; returns the call's id. */
uint64_t ref_ask(const struct pod *p, const struct ref *r, struct port_sink sink);
/* The token for a volume source; "" when there is none. */
struct hk_str ref_token(const struct pod *p, const struct json *source);
/* When to renew the first of the pod's tokens, monotonic; INT64_MAX: it has none. */
int64_t ref_renew_ns(const struct pod *p);

/* ---- probes: pod_probe.c ---- */

enum probe_kind { PROBE_STARTUP, PROBE_LIVENESS, PROBE_READINESS, PROBE_NKINDS };

struct probe {
    const struct json *spec; /* NULL: none */
    struct container *c;
    uint64_t exec;         /* in flight, 0 none */
    struct net_probe *net; /* in flight, or NULL */
    int64_t due_ns;        /* time of the next probe, or timeout of this one */
    uint32_t good, bad;    /* in a row */
};

/* Call when the container has started. */
void probe_begin(struct container *c, int64_t now_ns);
/* Call when the container has ended. */
void probe_end(struct container *c);
/* Starts probes that are due; returns the time of the next one. */
int64_t probe_tick(struct container *c, int64_t now_ns);
/* Handles the end of a command; false when it is not a probe of the container. */
bool probe_on_end(struct container *c, uint64_t id, bool good);
/* Starts a command inside the container; 0 on failure. */
uint64_t probe_exec(struct container *c, const struct json *command);
/* Probes the address and port of an action; NULL when it has none. */
struct net_probe *probe_connect(const struct container *c, const struct json *action,
                                const struct net_probe_opts *o);
/* HTTP or HTTPS. */
enum net_probe_kind probe_http_kind(const struct json *action);

/* ---- hooks: pod_hook.c ---- */

struct hook {
    uint64_t exec;         /* in flight, 0 none */
    struct net_probe *net; /* network request in flight, or NULL */
    int64_t due_ns;        /* end of a sleep action, INT64_MAX none */
};

/* Starts lifecycle.NAME if the container has it. */
void hook_begin(struct container *c, const char *name, int64_t now_ns);
bool hook_runs(const struct container *c);
/* Does what is due; returns the time of the next action. */
int64_t hook_tick(struct container *c, int64_t now_ns);
/* Handles the end of a command; false when it is not the hook. */
bool hook_on_end(struct container *c, uint64_t id, bool good);
/* Cancels the hook. */
void hook_end(struct container *c);

/* ---- pods: pod.c ---- */

struct container_end {
    bool is;
    int code, signo;
    const char *reason; /* literal */
    char *message;      /* or NULL */
    int64_t start_ns, end_ns;
};

enum container_state { CONTAINER_WAITING, CONTAINER_RUNNING, CONTAINER_ENDED };
enum container_stop { STOP_NOT, STOP_HOOK, STOP_TERM, STOP_KILL };

struct container {
    struct pod *pod;
    const struct json *spec; /* in the pod's object */
    struct hk_str name;
    bool init, sidecar;
    bool begun;   /* this attempt was started */
    bool delayed; /* its start delay was determined */
    bool ready, started;
    uint8_t state, stop;
    uint32_t attempt;  /* of the current or last run */
    uint64_t id;       /* the runtime's id while it runs */
    struct hook hook;  /* preStop or postStart */
    int64_t start_ns;  /* wall */
    int64_t due_ns;    /* do not start it before */
    int64_t kill_ns;   /* when to send SIGKILL, while it stops */
    int64_t killed_ns; /* when SIGKILL was last sent */
    int64_t backoff_ns;
    uint64_t gpus;   /* bit set of its GPUs, by index in agent.gpus */
    const char *why; /* literal: reason for waiting */
    char *why_text;  /* or NULL */
    struct container_end end, last;
    struct probe probes[PROBE_NKINDS];
};

/* See pod_fit.c. */
enum pod_fit_state {
    POD_FIT_NOT_JUDGED,
    POD_FIT_WAITING,
    POD_FIT_BOOKED,
    POD_FIT_REFUSED,
    POD_FIT_RELEASED
};

enum pod_stage { POD_LIVE, POD_STOPPING, POD_ENDED };
enum pod_prep { PREP_NOT, PREP_ASKED, PREP_HELD, PREP_DONE };
enum pod_condition {
    POD_READY_TO_START,
    POD_INITIALIZED,
    POD_CONTAINERS_READY,
    POD_READY,
    POD_NCONDITIONS
};

/* Disk usage of a pod. */
struct pod_disk {
    bool limited;        /* has limits to enforce */
    int64_t measured_ns; /* monotonic time of the last measurement, 0: never */
    int64_t used_before; /* used on the file system at that time */
    int64_t room;        /* bytes below the limit at that time */
    char *message;       /* why it was evicted, or NULL */
};

struct pod {
    struct agent *a;
    struct api_object *obj; /* as admitted: the spec does not change */
    struct api_object *now; /* newest state, for labels and annotations */
    struct hk_str ns, name, uid;
    struct hk_str hostname, subdomain, job; /* job: name of the Volcano job, "" none */
    char *dir;                              /* NULL: the node keeps none */
    char address[16];                       /* "": the host's */
    uint8_t stage, prep;
    uint8_t fit;                    /* enum pod_fit_state */
    int64_t *needs;                 /* amounts it books, by fit_rows; NULL: not computed yet */
    char *fit_reason, *fit_message; /* why it was refused, or NULL */
    uint32_t slot;
    uint32_t at;      /* index in agent.pods, unless resting */
    bool resting;     /* finished, with nothing to do until the API changes it */
    bool queued;      /* queued for pod_step */
    int64_t alarm_ns; /* its earliest alarm, INT64_MAX none */
    bool settled;     /* has its directory and address */
    bool final;       /* an earlier agent reported its final status */
    bool gone;        /* deleted from the API */
    bool deleting;    /* has a deletionTimestamp */
    bool dirty;       /* needs pod_step; set by agent_touch */
    bool started;     /* pod_start was called */
    bool stopped;     /* pod_stop was called */
    bool image_told, caveats_told;
    bool known;       /* an earlier agent had it already */
    bool deleted;     /* our DELETE was answered */
    bool hosts_stale; /* its hosts file is outdated */
    bool files_stale; /* its volumes show objects that have changed */
    HK_VEC(struct ref) refs;
    struct container *containers; /* init containers first */
    uint32_t ncontainer, ninit;
    int64_t due_ns;      /* time of the next pod_step */
    int64_t start_ns;    /* wall time of admission */
    int64_t since_ns;    /* monotonic time of admission */
    int64_t deadline_ns; /* monotonic, INT64_MAX none */
    int64_t stop_ns;     /* monotonic time of SIGKILL */
    int64_t held_ns, held_until_ns;
    int64_t renew_ns;   /* monotonic time to renew tokens, INT64_MAX: it has none */
    const char *reason; /* why the agent ended it; literal or fit_reason, NULL none */
    const char *message;
    struct pod_disk disk;
    /* What was reported. */
    struct {
        bool is;
        int64_t since_ns; /* wall */
    } conditions[POD_NCONDITIONS];
    char *sent; /* the status as last acknowledged, or NULL */
    char *sending;
    uint64_t sent_rv;        /* of the pod in the answer to that; 0 unknown */
    uint64_t unready_rv;     /* of the newest pod that somebody else made not ready; else 0 */
    uint64_t patch, removal; /* calls in flight */
    bool report_again;       /* report once more after the patch in flight */
    uint32_t failures;
    int64_t report_ns; /* no report before this time */
};

/* A newer state of the object. */
void pod_changed(struct pod *p, struct api_object *o);
/* The pod was deleted from the API. */
void pod_vanished(struct pod *p);
/* A newer state of an object that its volumes show. */
void pod_ref_changed(struct pod *p, struct ref *r, struct api_object *o);
/* Does what is due and sets due_ns; false when nothing is left of the pod. */
bool pod_step(struct pod *p, int64_t now_ns);
/* The pod is finished, and nothing about it is pending. */
bool pod_rests(const struct pod *p);
/* Handles an end from the runtime; false when it does not belong to the pod. */
bool pod_on_end(struct pod *p, uint64_t id, const struct runtime_end *end);
void pod_hook_ended(struct container *c, bool good, int64_t now_ns);
void pod_note(const struct pod *p, bool warning, const char *reason, const char *message);
bool pod_initialized(const struct pod *p);
/* Evicts the pod like a kubelet: Failed at once, without a restart. */
void pod_evict(struct pod *p, const char *message, int64_t now_ns);
/* Schedules pod_step for that time. */
void pod_wake_at(struct pod *p, int64_t at_ns);

/* ---- the life of a container: pod_container.c ---- */

/* Starts the container if it is due. */
void container_try(struct container *c, int64_t now_ns);
void container_ended(struct container *c, const struct runtime_end *end, int64_t now_ns);
/* Decides after an end: the container is done, or waits for a restart. */
void container_settle(struct container *c, int64_t now_ns);
/* Stops the container; a negative grace period means the pod's. */
void container_stop(struct container *c, int64_t now_ns, int64_t grace_s);
/* Continues stopping: preStop, SIGTERM, SIGKILL. */
void container_stop_on(struct container *c, int64_t now_ns);
int64_t pod_grace_ns(const struct pod *p);
/* The pod cannot continue; preparation is repeated after a pause. */
void pod_hold(struct pod *p, const char *why, const struct hk_err *err, int64_t now_ns);

/* ---- creating and freeing pods: pod_admit.c ---- */

/* The worker in the record of what the process died of (base/crumb.h). */
#define AGENT_CRUMB "agent"
/* Whether the process died of this pod twice. It is not run until it changes. */
bool pod_is_skipped(const struct api_object *o);
/* Finds what an earlier agent left of the pod, if there was one. */
struct pod *pod_new(struct agent *a, struct api_object *o);
/* Containers keep running. */
void pod_free(struct pod *p);
/* Gives the pod a directory and an address, once. */
int pod_settle_in(struct pod *p, struct hk_err *err) HK_CHECKED;

/* ---- whether the node has room: pod_fit.c ---- */

/* Computes what the node has. */
void pod_fit_open(struct agent *a);
/* All pods of the node are known: judges the waiting ones, oldest first. */
void pod_fit_begin(struct agent *a);
/* True when the pod may start. Otherwise it waits, or was refused with fit_reason. */
bool pod_fit_judge(struct pod *p);
/* Books its amounts without a check: it runs already. */
void pod_fit_book(struct pod *p);
/* Releases the amounts of a pod that no longer runs. May be repeated. */
void pod_fit_release(struct pod *p);

/* ---- starting containers: pod_start.c ---- */

/* The quantity under that name in a ResourceList or other object; false when absent. */
struct quantity;
bool pod_amount(const struct json *list, const char *name, struct quantity *ret);
/* The field of the spec, NULL: none. */
const struct json *pod_spec(const struct pod *p, const char *path);
/* The log file; NULL when the pod has no directory. */
const char *pod_log_path(const struct container *c, uint32_t attempt, struct hk_arena *a);
/* The pod's memory limit, INT64_MAX: none. */
int64_t pod_start_memory(const struct pod *p);
/* Calls the runtime's pod_start, once. */
int pod_start_pod(struct pod *p, struct hk_err *err) HK_CHECKED;
/* Describes the container for the runtime, in the scratch arena. argv is NULL when there is nothing
 * to run. Fails when its configuration is invalid or not yet complete. */
int pod_start_describe(struct container *c, const struct env *e, struct runtime_container *ret,
                       struct hk_err *err) HK_CHECKED;
/* The start delay that the runtime wants. The pod must be started. */
int64_t pod_start_delay(const struct container *c);
/* Starts it in a hollow runtime; started_ns as in a runtime_container. */
int pod_start_nominal(struct container *c, int64_t started_ns, struct hk_err *err) HK_CHECKED;
/* Creates the container's files and starts it. */
int pod_start_launch(struct container *c, const struct runtime_container *rc,
                     struct hk_err *err) HK_CHECKED;

/* Adds one mount. */
void pod_start_mount(struct runtime_container *rc, struct runtime_mount m, struct hk_arena *a);

/* ---- user and resolver: pod_security.c, pod_dns.c ---- */

/* Fails when the securityContext is contradictory or not supported. */
int pod_security(const struct container *c, struct runtime_container *rc,
                 struct hk_err *err) HK_CHECKED;
/* For pods with DNS settings: writes resolv.conf and mounts it. */
int pod_dns_mount(const struct pod *p, struct runtime_container *rc, struct hk_err *err) HK_CHECKED;

/* ---- GPUs: pod_gpu.c ---- */

/* Assigns the requested number of GPUs, unless it has them. */
int pod_gpu_assign(struct container *c, struct hk_err *err) HK_CHECKED;
/* Restores the GPUs that an earlier agent assigned. */
void pod_gpu_recall(struct container *c);
void pod_gpu_env(const struct container *c, struct env *e, struct hk_arena *mem);
/* Hides the GPUs it does not have. */
void pod_gpu_hide(const struct container *c, struct runtime_container *rc);

/* ---- termination message: pod_message.c ---- */

/* Creates the message file and mounts it. */
int pod_message_mount(const struct container *c, struct runtime_container *rc,
                      struct hk_err *err) HK_CHECKED;
/* Copies the file's text into the container's end. */
void pod_message_collect(struct container *c);
/* Removes the file. */
void pod_message_remove(const struct container *c);
void pod_message_set(struct container_end *e, struct hk_str text);

/* ---- disk limits: pod_disk.c ---- */

bool pod_disk_is_limited(const struct pod *p);

struct disk;
/* For an agent with a directory. */
struct disk *disk_new(struct agent *a);
void disk_free(struct disk *d);
/* Measures pods with limits and evicts those above one; returns when to do so again. */
int64_t disk_tick(struct disk *d, int64_t now_ns);

/* ---- pod status: pod_status.c ---- */

/* Restores conditions and times that an earlier agent reported. */
void pod_status_recall(struct pod *p);
/* Sends the status when it differs from the last one; returns the time of the next try. */
int64_t pod_status_report(struct pod *p, int64_t now_ns);
/* What the runtime cannot enforce of this pod's requests; "" nothing. */
const char *pod_status_caveats(const struct pod *p);
/* Reports a ready pod again when a foreign write marked it as not ready. */
void pod_status_compare(struct pod *p, const struct api_object *o);
/* The API has the pod's current status. */
bool pod_status_told(const struct pod *p);

/* ---- names and addresses: pod_hosts.c ---- */

/* Gives the pod the address stored in its directory, or one unused on this node. */
int pod_hosts_address(struct pod *p, struct hk_err *err) HK_CHECKED;
void pod_hosts_release(struct pod *p);
/* Removes the address and hosts files of a pod that no longer runs. */
void pod_hosts_remove(const struct pod *p);
/* Path of a file of the pod that need not survive a reboot. */
const char *pod_hosts_file(const struct pod *p, const char *what, struct hk_arena *a);
const char *pod_hosts_path(const struct pod *p, struct hk_arena *a);
/* The pod was added or removed: marks the hosts files of its group as outdated. */
void pod_hosts_changed(struct pod *p);
/* Writes only this pod's hosts file. */
void pod_hosts_write_own(struct pod *p);
/* Writes the hosts files of the pod and its group. */
void pod_hosts_write(struct pod *p);

/* ---- logs: pod_log.c ---- */

struct pod_log;
/* The last max bytes of a file at most, from the start of a character; "" none. */
void pod_log_last_words(const char *path, size_t max, struct hk_buf *out);
/* The end of a log, for the message of a failed container; "" none. */
void pod_log_tail(const char *path, struct hk_buf *out);
/* Wakes following readers; returns when to do so again, INT64_MAX: no reader follows. */
int64_t pod_log_tick(struct agent *a, int64_t now_ns);
/* Disconnects the following readers. */
void pod_log_fini(struct agent *a);
/* Follows a container's output from now on; wake is called when there may be more. */
struct pod_log *pod_log_attach(struct container *c, void (*wake)(void *ctx), void *ctx);
/* Appends about room bytes; false when the container has ended and all was read. */
bool pod_log_read(struct pod_log *l, struct hk_buf *out, struct hk_buf *err, size_t room);
void pod_log_detach(struct pod_log *l);

/* ---- requests to the node: serve.c, pod_log.c, pod_exec.c, pod_attach.c ---- */

struct node_call;
struct pod_exec;
struct pod_attach;
struct query;
/* The container that the call or query names, else the only one of the pod. */
int serve_find(struct agent *a, const struct node_call *call, const struct query *q,
               struct container **ret, struct hk_err *err) HK_CHECKED;
/* The same; fails when the container does not run. */
int serve_find_running(struct agent *a, const struct node_call *call, const struct query *q,
                       struct container **ret, struct hk_err *err) HK_CHECKED;
/* The bit set of channels that the caller requests. */
unsigned serve_wants(const struct node_call *call, const struct query *q);
/* Writes a Status object for a failure. */
void serve_status(int code, const char *reason, const char *message, struct hk_buf *out);
/* These answer the call, now or later. On failure the caller must answer it. */
int pod_log_serve(struct agent *a, const struct node_call *call, struct hk_err *err) HK_CHECKED;
int pod_exec_serve(struct agent *a, const struct node_call *call, struct hk_err *err) HK_CHECKED;
int pod_attach_serve(struct agent *a, const struct node_call *call, struct hk_err *err) HK_CHECKED;
/* Handles the end of a command; false when no exec request started it. */
bool pod_exec_on_end(struct agent *a, uint64_t id, const struct runtime_end *end);
/* Close all connections. */
void pod_exec_fini(struct agent *a);
void pod_attach_fini(struct agent *a);

/* ---- the agent: agent.c ---- */

struct agent_end {
    uint64_t id;
    struct runtime_end end; /* owns its message */
};

/* A time for pod_step of a pod. Checked when due: the pod may be gone, or due later. */
struct agent_alarm {
    int64_t at_ns;
    uint32_t slot;
};

/* A resource of the node and the amount for pods: milli-units of cpu, else units. */
struct fit_row {
    struct hk_str resource;
    int64_t room;
};

struct agent {
    struct agent_opts o; /* owns its strings */
    struct json capacity, allocatable, labels;
    const char *volumes_dir; /* for volumes that outlive their pods; NULL: none */
    struct volume_local *local;
    struct disk *disk;
    struct machine machine; /* copy of the one in the options */
    struct machine_gpu gpus[MACHINE_GPUS_MAX];
    uint32_t ngpu;
    struct hk_arena own; /* memory of the options */
    struct hk_arena mem; /* scratch of one step */
    struct hk_intern str;
    const char *os_image; /* NULL: not looked up yet */
    struct recorder *recorder;
    struct node node;     /* unused with a fleet */
    struct feed own_feed; /* watches that node */
    struct fleet *fleet;  /* or NULL */
    struct topology topology;
    struct feed feed;
    HK_VEC(struct pod *) pods;  /* without resting ones */
    HK_VEC(struct pod *) slots; /* all pods, NULL: free */
    HK_VEC(uint32_t) vacant;    /* free slots */
    /* Slots by hashes of uid, and of namespace and name. */
    struct hk_map by_uid, by_name;
    struct hk_map by_container; /* slots by the runtime's id of container or command */
    struct hk_map by_address;   /* slots by number of the address */
    HK_VEC(uint32_t) touched;   /* slots of pods that need pod_step */
    HK_VEC(struct agent_alarm) alarms;
    HK_VEC(uint32_t) vacant_alarms;
    struct hk_heap alarm_queue; /* rows of alarms, earliest first */
    int64_t hosts_due_ns;       /* write no hosts files before */
    HK_VEC(struct agent_end) ends;
    HK_VEC(struct pod_log *) logs; /* being followed */
    HK_VEC(struct source *) sources;
    HK_VEC(struct pod_exec *) execs;
    HK_VEC(struct pod_attach *) attached;
    HK_VEC(struct fit_row) fit_rows;
    uint32_t nfit_waiting; /* pods that wait for others to end */
    bool fit_open;         /* judge new pods as they arrive */
    bool listed;           /* the list requested last has arrived */
    bool swept;            /* leftovers of unknown pods were removed */
    struct json sweep;     /* uids only the runtime has, during the sweep */
    struct past past;
    struct json kept; /* uids of pods that the API lost and the agent keeps */
    uint32_t ntold;   /* how many of them were logged */
    bool keeps_files; /* files of such pods exist */
    bool closed;      /* accepts no more pods */
};

int64_t agent_mono(const struct agent *a);
/* Adds a new pod to its agent and queues it. */
void agent_enlist(struct pod *p);
/* Queues the pod for pod_step in the next run. */
void agent_touch(struct pod *p);
/* Routes the end of that container or command to the pod. */
void agent_claim(struct pod *p, uint64_t container);
/* NULL when there is none; the newest of several. */
struct pod *agent_pod(const struct agent *a, struct hk_str uid);
struct pod *agent_pod_named(const struct agent *a, struct hk_str ns, struct hk_str name);
int64_t agent_wall(const struct agent *a);
/* Interval of heartbeats. */
int64_t agent_beat_ns(const struct agent *a);
/* Lists all pods of the node again. */
void agent_relist(struct agent *a);
/* Everything that runs here belongs to pods of the server; with deletions, pods being deleted have
 * ended, too. */
bool agent_is_settled(const struct agent *a, bool deletions);
/* Set a member of an object; values are copied. */
void agent_put_str(struct json *obj, struct hk_arena *a, const char *key, struct hk_str value);
struct json *agent_put_object(struct json *obj, struct hk_arena *a, const char *key);
void agent_put_time(struct json *obj, struct hk_arena *a, const char *key, int64_t wall_ns);
