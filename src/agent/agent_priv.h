// SPDX-License-Identifier: Apache-2.0
// What the parts of the agent share: the node, its pods and their containers. agent.c owns the
// pods and brings the news; agent_node.c speaks for the node; pod.c and pod_container.c
// decide, pod_start.c starts, pod_status.c reports, pod_probe.c and pod_hook.c ask, pod_hosts.c
// names; env.c and volume.c prepare what containers see.
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
#define POD_GRACE_S 30 /* of pods that say nothing else */

struct pod;
struct container;

/* ---- the node: agent_node.c ---- */

enum node_step {
    NODE_CREATE, /* make the object */
    NODE_READ,   /* one that was there */
    NODE_STATUS, /* say how it is */
    NODE_SPEC,   /* labels, and taints of a node that was not ready */
    NODE_REST,   /* until the next report */
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
    struct fleet *fleet; /* NULL: it is the only one, and says regularly that it lives */
    uint32_t zone;       /* of a fleet; 0 none */
    uint8_t step;        /* enum node_step */
    bool registered;
    uint32_t failures;
    uint64_t call;  /* about the node; 0 none */
    uint64_t lease; /* about its lease */
    bool lease_missing;
    uint64_t heard_rv; /* of what others did while a call was under way; 0 nothing */
    int64_t due_ns, lease_due_ns;
    int64_t mend_ns; /* others are not contradicted before */
    struct {
        bool is;
        int64_t since_ns; /* wall */
    } conditions[NODE_NCONDITIONS];
    char *uid;
    struct api_object *seen; /* the node as of the last answer, or NULL */
};

/* How often it says that it lives, and, unasked, how it is. */
#define NODE_LEASE_NS (10 * SECOND_NS)
#define NODE_REPORT_NS (300 * SECOND_NS)

void node_init(struct node *n, struct agent *a, const char *name);
/* Hears what others make of it, for one that is alone. */
void node_watch(struct node *n);
void node_fini(struct node *n);
/* Acts when its time has come; the time of its next act. */
int64_t node_tick(struct node *n, int64_t now_ns);
/* Renews the lease of a registered node, unless that is being done. */
void node_beat(struct node *n);
/* The node has become that; false when it has to say how it is. */
bool node_hear(struct node *n, const struct api_object *o);
/* When it may do so. To be asked once for each time. */
int64_t node_mend_ns(struct node *n);
/* Makes the node the owner of an object to be sent. */
void node_own(const struct node *n, struct json *meta);

/* ---- its processors: agent_topology.c ---- */

struct topology {
    struct agent *a;
    uint64_t call;         /* under way, or 0 */
    bool exists, patching; /* what the call before this one, and this one, found and does */
    int64_t due_ns;
};

void topology_init(struct topology *t, struct agent *a);
void topology_fini(struct topology *t);
int64_t topology_tick(struct topology *t, int64_t now_ns);
/* The object says what the node would say. */
bool node_is_told(struct node *n, const struct json *root);

/* ---- many nodes that run nothing: fleet.c ---- */

struct fleet {
    struct agent *a;
    uint32_t n;
    struct node *nodes;
    struct feed feed;      /* of nodes */
    HK_VEC(uint32_t) todo; /* nodes with something to say */
    uint32_t busy;         /* calls under way */
    uint32_t registered;
    bool beats;
    uint32_t next;   /* whose lease comes next */
    int64_t beat_ns; /* and when; 0: not begun */
};

struct fleet *fleet_new(struct agent *a, const struct agent_fleet *o);
void fleet_free(struct fleet *f);
int64_t fleet_tick(struct fleet *f, int64_t now_ns);
/* One of its nodes has that name. */
bool fleet_has(const struct fleet *f, struct hk_str name);
/* A call of the node was answered. */
void fleet_answered(struct node *n);

/* ---- what containers see: env.c, volume.c ---- */

/* A ConfigMap, Secret or claim a pod speaks of. */
struct ref {
    enum api_kind_id kind; /* ServiceAccount: its token */
    struct hk_str name;
    const struct json *token; /* the source of a volume that wants one; NULL: not a token */
    bool optional;
    bool in_volume;
    uint64_t call;
    struct source *source;     /* that tells of changes, or NULL */
    struct api_object *obj;    /* NULL: there is none */
    struct api_object *volume; /* the claim's, NULL: it has none */
};

struct env_var {
    struct hk_str name, value;
};

struct env {
    HK_VEC(struct env_var) vars;
};

void env_fini(struct env *e);
/* Replaces the one of that name. Both are borrowed. */
void env_set(struct env *e, struct hk_str name, struct hk_str value);
bool env_has(const struct env *e, struct hk_str name);
/* Replaces $(NAME) by the value of the variable; $$(NAME) stands for itself, and so do names that
 * are not known. */
struct hk_str env_expand(const struct env *e, struct hk_str text, struct hk_arena *a);
/* Everything a container finds in its environment. -HK_ENOTFOUND: a ConfigMap, Secret or key that
 * is not there. */
int env_make(const struct pod *p, const struct json *container, struct hk_arena *a, struct env *ret,
             struct hk_err *err) HK_CHECKED;
/* As execve wants it. */
const char *const *env_block(const struct env *e, struct hk_arena *a);
/* command and args, expanded; NULL when there is no command. */
const char *const *env_argv(const struct env *e, const struct json *container, struct hk_arena *a);
/* The value of a fieldRef; false when the pod has no such field. */
bool env_field(const struct pod *p, struct hk_str path, struct hk_arena *a, struct hk_str *ret);
/* The value of a resourceFieldRef; container is that of the reference unless it names another. */
int env_resource(const struct pod *p, const struct json *container, const struct json *ref,
                 struct hk_arena *a, struct hk_str *ret, struct hk_err *err) HK_CHECKED;
/* The bytes a ConfigMap or Secret has under key; false when it has none, or no valid base64. */
bool ref_data(const struct ref *r, struct hk_str key, struct hk_arena *a, struct hk_str *ret);
/* The ConfigMaps, Secrets and claims of the pod's containers and volumes, each once, into p->refs.
 */
void ref_collect(struct pod *p);
const struct ref *ref_find(const struct pod *p, enum api_kind_id kind, struct hk_str name);

/* Fills the pod's volumes; may be called again. -HK_ENOTFOUND: something they need is not there. */
int volume_prepare(struct pod *p, struct hk_err *err) HK_CHECKED;
/* Writes files anew that come from objects which have changed; the others stay as they are. */
int volume_refresh(struct pod *p, struct hk_err *err) HK_CHECKED;
/* Where they appear in a container. */
int volume_mounts(const struct pod *p, const struct container *c, const struct env *e,
                  struct hk_arena *a, struct runtime_mount **ret, uint32_t *ret_n,
                  struct hk_err *err) HK_CHECKED;
/* Like mkdir -p for the last part only; fine when it is there. */
int volume_mkdir(const char *path, unsigned mode, struct hk_err *err) HK_CHECKED;
/* Makes the directories of path below dir, but not its last part. */
int volume_make_parents(const char *dir, struct hk_str path, unsigned mode, struct hk_arena *a,
                        struct hk_err *err) HK_CHECKED;
/* Paths given by people stay below the place they are meant for. */
bool volume_path_stays(struct hk_str path);
/* Removes the tree, without following links or crossing into other file systems; false when some of
 * it is left. */
bool volume_remove(const char *path);

/* ---- files of a volume: volume_files.c ---- */

struct volume_file {
    struct hk_str path, data;
    unsigned mode;
};

struct volume_files {
    HK_VEC(struct volume_file) files;
    int64_t group; /* that may read them; -1 none */
};

void volume_files_fini(struct volume_files *f);
/* Path and data are borrowed until the files are written; the last of equal paths counts. */
int volume_files_add(struct volume_files *f, struct hk_str path, struct hk_str data, unsigned mode,
                     struct hk_err *err) HK_CHECKED;
/* Makes them the files of the directory, all at once. */
int volume_files_write(const struct volume_files *f, const char *dir, struct hk_arena *mem,
                       struct hk_err *err) HK_CHECKED;

/* ---- volumes this node makes: volume_local.c ---- */

struct volume_local;

/* Of an agent with a directory. */
struct volume_local *volume_local_new(struct agent *a);
void volume_local_free(struct volume_local *l);
int64_t volume_local_tick(struct volume_local *l, int64_t now_ns);
/* Sees that the directory of a local volume is there. */
int volume_local_make(const struct pod *p, const struct api_object *pv, int64_t fs_group,
                      struct hk_err *err) HK_CHECKED;

/* ---- where they come from: source.c ---- */

struct source;

/* The pod hears of changes of an object that a volume shows. */
void source_take(struct pod *p, struct ref *r);
void source_drop(struct pod *p, struct ref *r);
int64_t source_tick(struct agent *a, int64_t now_ns);

/* ---- what they refer to: ref.c ---- */

/* Asks the API for it; the call. */
uint64_t ref_ask(const struct pod *p, const struct ref *r, struct port_sink sink);
/* The token for a source of a volume; "" when there is none. */
struct hk_str ref_token(const struct pod *p, const struct json *source);
/* When the first of the pod's tokens wants to be renewed, on the monotonic clock; INT64_MAX: it has
 * none. */
int64_t ref_renew_ns(const struct pod *p);

/* ---- probes: pod_probe.c ---- */

enum probe_kind { PROBE_STARTUP, PROBE_LIVENESS, PROBE_READINESS, PROBE_NKINDS };

struct probe {
    const struct json *spec; /* NULL: none */
    struct container *c;
    uint64_t exec;         /* under way, 0 none */
    struct net_probe *net; /* under way, or NULL */
    int64_t due_ns;        /* of the next question, or of giving up on this one */
    uint32_t good, bad;    /* in a row */
};

/* When the container has started. */
void probe_begin(struct container *c, int64_t now_ns);
/* When it has ended. */
void probe_end(struct container *c);
/* Asks what is due; the time of the next question. */
int64_t probe_tick(struct container *c, int64_t now_ns);
/* The end of a command; false when it is none of the container's probes. */
bool probe_on_end(struct container *c, uint64_t id, bool good);
/* Starts a command beside the container; 0 when it could not be. */
uint64_t probe_exec(struct container *c, const struct json *command);
/* Asks the address and port of an action as the options say; NULL when there is none to ask. */
struct net_probe *probe_connect(const struct container *c, const struct json *action,
                                const struct net_probe_opts *o);
/* HTTP or HTTPS. */
enum net_probe_kind probe_http_kind(const struct json *action);

/* ---- hooks: pod_hook.c ---- */

struct hook {
    uint64_t exec;         /* under way, 0 none */
    struct net_probe *net; /* or that, or NULL */
    int64_t due_ns;        /* or nothing until then, INT64_MAX none */
};

/* Begins lifecycle.NAME, if there is one. */
void hook_begin(struct container *c, const char *name, int64_t now_ns);
bool hook_runs(const struct container *c);
/* The time of its next act. */
int64_t hook_tick(struct container *c, int64_t now_ns);
/* The end of a command; false when it is not the hook's. */
bool hook_on_end(struct container *c, uint64_t id, bool good);
/* Nobody wants to know any more. */
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
    bool begun;   /* this attempt has been started */
    bool delayed; /* has been told how long to wait before the first */
    bool ready, started;
    uint8_t state, stop;
    uint32_t attempt;  /* of the one that runs or ran last */
    uint64_t id;       /* the runtime's, while it runs */
    struct hook hook;  /* preStop or postStart */
    int64_t start_ns;  /* wall */
    int64_t due_ns;    /* not started before */
    int64_t kill_ns;   /* SIGKILL then, while it stops */
    int64_t killed_ns; /* when it was sent last */
    int64_t backoff_ns;
    uint64_t gpus;   /* set of those it has, by index in the agent's list */
    const char *why; /* literal: what it waits for */
    char *why_text;  /* or NULL */
    struct container_end end, last;
    struct probe probes[PROBE_NKINDS];
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

struct pod {
    struct agent *a;
    struct api_object *obj; /* as it was admitted: the spec does not change */
    struct api_object *now; /* of which labels and annotations are as they are now */
    struct hk_str ns, name, uid;
    struct hk_str hostname, subdomain, job; /* job: name of the Volcano job, "" none */
    char *dir;                              /* NULL: the node keeps none */
    char address[16];                       /* "" the host's */
    uint8_t stage, prep;
    uint32_t slot;
    uint32_t at;      /* its place in the agent's pods, unless it rests */
    bool resting;     /* over, and nothing to do until the API changes it */
    bool queued;      /* to be looked at */
    int64_t alarm_ns; /* its earliest alarm, INT64_MAX none */
    bool settled;     /* has directory and address */
    bool final;       /* the API knows its last status from an earlier agent */
    bool gone;        /* from the API */
    bool deleting;    /* the API wants it gone */
    bool dirty;       /* has news to act on; set by agent_touch */
    bool started;     /* pod_start was called */
    bool stopped;     /* and pod_stop */
    bool image_told, caveats_told;
    bool known;       /* not seen for the first time by this agent */
    bool deleted;     /* our DELETE was answered */
    bool hosts_stale; /* its group has changed */
    bool files_stale; /* files of its volumes come from something that has changed */
    HK_VEC(struct ref) refs;
    struct container *containers; /* init containers first */
    uint32_t ncontainer, ninit;
    int64_t due_ns;      /* when it wants to be looked at */
    int64_t start_ns;    /* wall: admitted */
    int64_t since_ns;    /* monotonic: the same */
    int64_t deadline_ns; /* monotonic, INT64_MAX none */
    int64_t stop_ns;     /* monotonic: SIGKILL then */
    int64_t held_ns, held_until_ns;
    int64_t renew_ns;   /* monotonic: its tokens grow old, INT64_MAX: it has none */
    const char *reason; /* of a pod that was ended; literal, NULL none */
    const char *message;
    /* What was reported. */
    struct {
        bool is;
        int64_t since_ns; /* wall */
    } conditions[POD_NCONDITIONS];
    char *sent; /* the status as last acknowledged, or NULL */
    char *sending;
    uint64_t patch, removal; /* calls under way */
    bool report_again;       /* looked at while its patch was under way */
    uint32_t failures;
    int64_t report_ns; /* no report before */
};

/* A newer state of the object. */
void pod_changed(struct pod *p, struct api_object *o);
/* It is gone from the API. */
void pod_vanished(struct pod *p);
/* So does an object its volumes show. */
void pod_ref_changed(struct pod *p, struct ref *r, struct api_object *o);
/* Does what can be done now and sets due_ns; false when nothing is left of the pod. */
bool pod_step(struct pod *p, int64_t now_ns);
/* It is over, and nobody waits for anything. */
bool pod_rests(const struct pod *p);
/* An end the runtime told; false when it is none of the pod's. */
bool pod_on_end(struct pod *p, uint64_t id, const struct runtime_end *end);
void pod_hook_ended(struct container *c, bool good, int64_t now_ns);
void pod_note(const struct pod *p, bool warning, const char *reason, const char *message);
bool pod_initialized(const struct pod *p);
/* It is to be looked at by then. */
void pod_wake_at(struct pod *p, int64_t at_ns);

/* ---- the life of a container: pod_container.c ---- */

/* Starts it if its time has come. */
void container_try(struct container *c, int64_t now_ns);
void container_ended(struct container *c, const struct runtime_end *end, int64_t now_ns);
/* It has ended, as its end says: it is done, or waits to be started again. */
void container_settle(struct container *c, int64_t now_ns);
/* Ends one that shall not go on; a grace period below 0 is the pod's. */
void container_stop(struct container *c, int64_t now_ns, int64_t grace_s);
/* preStop, SIGTERM, SIGKILL: whichever is next. */
void container_stop_on(struct container *c, int64_t now_ns);
int64_t pod_grace_ns(const struct pod *p);
/* The pod cannot go on; it is prepared anew after a pause. */
void pod_hold(struct pod *p, const char *why, const struct hk_err *err, int64_t now_ns);

/* ---- their beginning and end: pod_admit.c ---- */

/* Finds what an earlier agent left of the pod, if there was one. */
struct pod *pod_new(struct agent *a, struct api_object *o);
/* What runs goes on. */
void pod_free(struct pod *p);
/* Gives the pod a directory and an address, once. */
int pod_settle_in(struct pod *p, struct hk_err *err) HK_CHECKED;

/* ---- what is started: pod_start.c ---- */

/* The field of the spec, NULL: none. */
const struct json *pod_spec(const struct pod *p, const char *path);
/* Where its output goes; NULL when the pod has no directory. */
const char *pod_log_path(const struct container *c, uint32_t attempt, struct hk_arena *a);
/* Tells the runtime of the pod, once. */
int pod_start_pod(struct pod *p, struct hk_err *err) HK_CHECKED;
/* What the container is, for the runtime; in the scratch arena. argv is NULL when there is nothing
 * to run. Fails when its configuration is not good, or not yet. */
int pod_start_describe(struct container *c, const struct env *e, struct runtime_container *ret,
                       struct hk_err *err) HK_CHECKED;
/* How long it has to wait before, with runtimes that want that. The pod has been started. */
int64_t pod_start_delay(const struct container *c);
/* With a runtime that runs nothing; started_ns as in a runtime_container. */
int pod_start_nominal(struct container *c, int64_t started_ns, struct hk_err *err) HK_CHECKED;
/* Makes its files and starts it. */
int pod_start_launch(struct container *c, const struct runtime_container *rc,
                     struct hk_err *err) HK_CHECKED;

/* Adds one more. */
void pod_start_mount(struct runtime_container *rc, struct runtime_mount m, struct hk_arena *a);

/* ---- who it runs as, and its resolver: pod_security.c, pod_dns.c ---- */

/* Fails when what is asked for contradicts itself, or is not known. */
int pod_security(const struct container *c, struct runtime_container *rc,
                 struct hk_err *err) HK_CHECKED;
/* Makes the file and adds it to the mounts, of pods that ask for it. */
int pod_dns_mount(const struct pod *p, struct runtime_container *rc, struct hk_err *err) HK_CHECKED;

/* ---- its GPUs: pod_gpu.c ---- */

/* Gives it as many as it asks for, unless it has them. */
int pod_gpu_assign(struct container *c, struct hk_err *err) HK_CHECKED;
/* Those an earlier agent gave it. */
void pod_gpu_recall(struct container *c);
void pod_gpu_env(const struct container *c, struct env *e, struct hk_arena *mem);
/* Covers those it has not. */
void pod_gpu_hide(const struct container *c, struct runtime_container *rc);

/* ---- its last words: pod_message.c ---- */

/* Makes the file for them and adds it to the mounts. */
int pod_message_mount(const struct container *c, struct runtime_container *rc,
                      struct hk_err *err) HK_CHECKED;
/* Takes them as the message of its end. */
void pod_message_collect(struct container *c);
/* Its file, when nobody will read it. */
void pod_message_remove(const struct container *c);
void pod_message_set(struct container_end *e, struct hk_str text);

/* ---- its status: pod_status.c ---- */

/* Conditions and times of an earlier agent. */
void pod_status_recall(struct pod *p);
/* Sends the status when it differs from the one sent last; the time of the next try. */
int64_t pod_status_report(struct pod *p, int64_t now_ns);
/* What the runtime does not hold a pod to, of pods that ask for it; "" nothing. */
const char *pod_status_caveats(const struct pod *p);
/* The API knows the pod as it is. */
bool pod_status_told(const struct pod *p);

/* ---- names and addresses: pod_hosts.c ---- */

/* Gives the pod its address: the one in its directory, or one nobody on the node has. */
int pod_hosts_address(struct pod *p, struct hk_err *err) HK_CHECKED;
void pod_hosts_release(struct pod *p);
/* Nothing of it runs any more. */
void pod_hosts_remove(const struct pod *p);
/* A file of the pod that is worth nothing once the machine has stopped. */
const char *pod_hosts_file(const struct pod *p, const char *what, struct hk_arena *a);
const char *pod_hosts_path(const struct pod *p, struct hk_arena *a);
/* Says that the pod came or goes: its group has stale files. */
void pod_hosts_changed(struct pod *p);
/* Writes its own hosts file. */
void pod_hosts_write_own(struct pod *p);
/* Writes the hosts files of the pod and its group. */
void pod_hosts_write(struct pod *p);

/* ---- logs: pod_log.c ---- */

struct pod_log;
/* The end of a file, up to max bytes and from the beginning of a character; "" none. */
void pod_log_last_words(const char *path, size_t max, struct hk_buf *out);
/* The end of a log, for the message of a failed container; "" none. */
void pod_log_tail(const char *path, struct hk_buf *out);
/* Wakes readers that follow; when to look again, INT64_MAX: nobody follows. */
int64_t pod_log_tick(struct agent *a, int64_t now_ns);
/* Cuts those readers off. */
void pod_log_fini(struct agent *a);
/* What a container says from now on; wake is called when there may be more. */
struct pod_log *pod_log_attach(struct container *c, void (*wake)(void *ctx), void *ctx);
/* Appends about room bytes; false when the container has ended and all was read. */
bool pod_log_read(struct pod_log *l, struct hk_buf *out, struct hk_buf *err, size_t room);
void pod_log_detach(struct pod_log *l);

/* ---- what is asked of the node: serve.c, pod_log.c, pod_exec.c, pod_attach.c ---- */

struct node_call;
struct pod_exec;
struct pod_attach;
struct query;
/* The container that call or query name, or the only one, in the pod of the call. */
int serve_find(struct agent *a, const struct node_call *call, const struct query *q,
               struct container **ret, struct hk_err *err) HK_CHECKED;
/* The same, and it must run. */
int serve_find_running(struct agent *a, const struct node_call *call, const struct query *q,
                       struct container **ret, struct hk_err *err) HK_CHECKED;
/* The set of channels, as bits, that the caller wants to have. */
unsigned serve_wants(const struct node_call *call, const struct query *q);
/* A Status that says what failed. */
void serve_status(int code, const char *reason, const char *message, struct hk_buf *out);
/* These answer the call, now or later; it is the caller's to answer when they fail. */
int pod_log_serve(struct agent *a, const struct node_call *call, struct hk_err *err) HK_CHECKED;
int pod_exec_serve(struct agent *a, const struct node_call *call, struct hk_err *err) HK_CHECKED;
int pod_attach_serve(struct agent *a, const struct node_call *call, struct hk_err *err) HK_CHECKED;
/* The end of a command; false when it is none of these. */
bool pod_exec_on_end(struct agent *a, uint64_t id, const struct runtime_end *end);
/* Hangs up on everybody. */
void pod_exec_fini(struct agent *a);
void pod_attach_fini(struct agent *a);

/* ---- all of it: agent.c ---- */

struct agent_end {
    uint64_t id;
    struct runtime_end end; /* its message is ours */
};

/* When a pod wants to be looked at. What it is worth is seen when it rings: pods may have gone, or
 * want it later. */
struct agent_alarm {
    int64_t at_ns;
    uint32_t slot;
};

struct agent {
    struct agent_opts o; /* strings are ours */
    struct json capacity, allocatable, labels;
    const char *volumes_dir; /* of volumes that outlive their pods; NULL: none */
    struct volume_local *local;
    struct machine machine; /* what the options point to */
    struct machine_gpu gpus[MACHINE_GPUS_MAX];
    uint32_t ngpu;
    struct hk_arena own; /* of the options */
    struct hk_arena mem; /* scratch of one step */
    struct hk_intern str;
    const char *os_image; /* NULL: not looked up yet */
    struct recorder *recorder;
    struct node node;     /* unless there is a fleet */
    struct feed own_feed; /* of that node */
    struct fleet *fleet;  /* or NULL */
    struct topology topology;
    struct feed feed;
    HK_VEC(struct pod *) pods;  /* those that are not over */
    HK_VEC(struct pod *) slots; /* all of them, NULL: free */
    HK_VEC(uint32_t) vacant;    /* free slots */
    /* Slots by hashes of uid, and of namespace and name. */
    struct hk_map by_uid, by_name;
    struct hk_map by_container; /* slots by what the runtime calls containers and commands */
    struct hk_map by_address;   /* slots by number of the address */
    HK_VEC(uint32_t) touched;   /* slots of pods with news */
    HK_VEC(struct agent_alarm) alarms;
    HK_VEC(uint32_t) vacant_alarms;
    struct hk_heap alarm_queue; /* of rows in alarms, the earliest first */
    int64_t hosts_due_ns;       /* no hosts files are written before */
    HK_VEC(struct agent_end) ends;
    HK_VEC(struct pod_log *) logs; /* being followed */
    HK_VEC(struct source *) sources;
    HK_VEC(struct pod_exec *) execs;
    HK_VEC(struct pod_attach *) attached;
    bool swept;        /* what nobody wants any more was removed */
    struct json sweep; /* uids the runtime has and nobody wants, while sweeping */
    bool closed;       /* takes no more pods */
};

int64_t agent_mono(const struct agent *a);
/* A new pod has a place with its agent, and news. */
void agent_enlist(struct pod *p);
/* The pod has news: it is looked at by the next run. */
void agent_touch(struct pod *p);
/* The end of that container or command is news of the pod. */
void agent_claim(struct pod *p, uint64_t container);
/* NULL: there is none. Of several of that name the newest. */
struct pod *agent_pod(const struct agent *a, struct hk_str uid);
struct pod *agent_pod_named(const struct agent *a, struct hk_str ns, struct hk_str name);
int64_t agent_wall(const struct agent *a);
/* Members of objects to be sent; values are copied. */
void agent_put_str(struct json *obj, struct hk_arena *a, const char *key, struct hk_str value);
struct json *agent_put_object(struct json *obj, struct hk_arena *a, const char *key);
void agent_put_time(struct json *obj, struct hk_arena *a, const char *key, int64_t wall_ns);
