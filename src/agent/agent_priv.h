// SPDX-License-Identifier: Apache-2.0
// What the parts of the agent share: the node, its pods and their containers. agent.c owns the
// pods and brings the news; agent_node.c speaks for the node; pod.c decides, pod_start.c starts,
// pod_status.c reports, pod_probe.c asks, pod_hosts.c names; env.c and volume.c prepare what
// containers see.
#pragma once

#include "agent/agent.h"
#include "api/feed.h"
#include "api/recorder.h"
#include "base/arena.h"
#include "base/heap.h"
#include "base/vec.h"

#define SECOND_NS ((int64_t)1000 * 1000 * 1000)

struct net_probe;
struct pod;
struct container;

/* ---- the node: agent_node.c ---- */

enum node_step {
    NODE_CREATE, /* make the object */
    NODE_STATUS, /* say how it is */
    NODE_SPEC,   /* labels, and taints of a node that was not ready */
    NODE_REST,   /* until the next report */
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
    bool lease_missing, lease_made;
    int64_t due_ns, lease_due_ns;
    int64_t ready_ns; /* wall: since when it is ready */
    char *uid;
    struct api_object *seen; /* the node as of the last answer, or NULL */
};

void node_init(struct node *n, struct agent *a, const char *name);
void node_fini(struct node *n);
/* Acts when its time has come; the time of its next act. */
int64_t node_tick(struct node *n, int64_t now_ns);
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
};

struct fleet *fleet_new(struct agent *a, const struct agent_fleet *o);
void fleet_free(struct fleet *f);
int64_t fleet_tick(struct fleet *f, int64_t now_ns);
/* One of its nodes has that name. */
bool fleet_has(const struct fleet *f, struct hk_str name);
/* A call of the node was answered. */
void fleet_answered(struct node *n);

/* ---- what containers see: env.c, volume.c ---- */

/* A ConfigMap or Secret a pod speaks of. */
struct ref {
    enum api_kind_id kind;
    struct hk_str name;
    bool optional;
    uint64_t call;
    struct api_object *obj; /* NULL: there is none */
};

struct env_var {
    struct hk_str name, value;
};

struct env {
    HK_VEC(struct env_var) vars;
};

void env_fini(struct env *e);
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
/* The ConfigMaps and Secrets of the pod's containers and volumes, each once, into p->refs. */
void ref_collect(struct pod *p);
const struct ref *ref_find(const struct pod *p, enum api_kind_id kind, struct hk_str name);

/* Fills the pod's volumes; may be called again. -HK_ENOTFOUND: something they need is not there. */
int volume_prepare(struct pod *p, struct hk_err *err) HK_CHECKED;
/* Of a service account's token, which nobody here gives out. */
bool volume_left_out(const struct json *volume);
/* Where they appear in a container. */
int volume_mounts(const struct pod *p, const struct container *c, const struct env *e,
                  struct hk_arena *a, struct runtime_mount **ret, uint32_t *ret_n,
                  struct hk_err *err) HK_CHECKED;
/* Like mkdir -p for the last part only; fine when it is there. */
int volume_mkdir(const char *path, unsigned mode, struct hk_err *err) HK_CHECKED;
/* Removes the tree, without following links or crossing into other file systems. */
void volume_remove(const char *path);

/* ---- probes and hooks: pod_probe.c ---- */

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
/* Starts the command of lifecycle.NAME; 0 when there is none to wait for. */
uint64_t probe_hook(struct container *c, const char *name);

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
    bool begun;   /* some attempt has been started */
    bool delayed; /* has been told how long to wait before the first */
    bool ready, started;
    uint8_t state, stop;
    uint32_t attempt; /* of the one that runs or ran last */
    uint64_t id;      /* the runtime's, while it runs */
    uint64_t hook;    /* preStop or postStart under way */
    int64_t start_ns; /* wall */
    int64_t due_ns;   /* not started before */
    int64_t kill_ns;  /* SIGKILL then, while it stops */
    int64_t backoff_ns;
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
    bool image_told;
    bool deleted;     /* our DELETE was answered */
    bool hosts_stale; /* its group has changed */
    HK_VEC(struct ref) refs;
    struct container *containers; /* init containers first */
    uint32_t ncontainer, ninit;
    int64_t due_ns;      /* when it wants to be looked at */
    int64_t start_ns;    /* wall: admitted */
    int64_t deadline_ns; /* monotonic, INT64_MAX none */
    int64_t stop_ns;     /* monotonic: SIGKILL then */
    int64_t held_ns, held_until_ns;
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
void pod_changed(struct pod *p, const struct api_object *o);
/* It is gone from the API. */
void pod_vanished(struct pod *p);
/* Does what can be done now and sets due_ns; false when nothing is left of the pod. */
bool pod_step(struct pod *p, int64_t now_ns);
/* It is over, and nobody waits for anything. */
bool pod_rests(const struct pod *p);
/* An end the runtime told; false when it is none of the pod's. */
bool pod_on_end(struct pod *p, uint64_t id, const struct runtime_end *end);
/* Ends a container that shall not go on, with the pod's grace period. */
void pod_stop_container(struct container *c, int64_t now_ns);
void pod_note(const struct pod *p, bool warning, const char *reason, const char *message);
bool pod_initialized(const struct pod *p);
/* The container has ended, as its end says: it is done, or waits to be started again. */
void pod_settle(struct container *c, int64_t now_ns);
void pod_set_message(struct container_end *e, struct hk_str text);
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
/* Where its output goes, and its last words; the log is NULL when the pod has no directory. */
const char *pod_log_path(const struct container *c, uint32_t attempt, struct hk_arena *a);
const char *pod_message_path(const struct container *c, struct hk_arena *a);
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

/* ---- its status: pod_status.c ---- */

/* Conditions and times of an earlier agent. */
void pod_status_recall(struct pod *p);
/* Sends the status when it differs from the one sent last; the time of the next try. */
int64_t pod_status_report(struct pod *p, int64_t now_ns);
/* The API knows the pod as it is. */
bool pod_status_told(const struct pod *p);

/* ---- names and addresses: pod_hosts.c ---- */

/* Gives the pod its address: the one in its directory, or one nobody on the node has. */
int pod_hosts_address(struct pod *p, struct hk_err *err) HK_CHECKED;
void pod_hosts_release(struct pod *p);
/* Nothing of it runs any more. */
void pod_hosts_remove(const struct pod *p);
const char *pod_hosts_path(const struct pod *p, struct hk_arena *a);
/* Says that the pod came or goes: its group has stale files. */
void pod_hosts_changed(struct pod *p);
/* Writes its own hosts file. */
void pod_hosts_write_own(struct pod *p);
/* Writes the hosts files of the pod and its group. */
void pod_hosts_write(struct pod *p);

/* ---- logs: pod_log.c ---- */

struct pod_log;
/* The end of a log, for the message of a failed container; "" none. */
void pod_log_tail(const char *path, struct hk_buf *out);
/* Wakes readers that follow; when to look again, INT64_MAX: nobody follows. */
int64_t pod_log_tick(struct agent *a, int64_t now_ns);
/* Cuts those readers off. */
void pod_log_fini(struct agent *a);

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
    struct hk_arena own; /* of the options */
    struct hk_arena mem; /* scratch of one step */
    struct hk_intern str;
    const char *os_image; /* NULL: not looked up yet */
    struct recorder *recorder;
    struct node node;    /* unless there is a fleet */
    struct fleet *fleet; /* or NULL */
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
    bool swept;                    /* what nobody wants any more was removed */
    struct json sweep;             /* uids the runtime has and nobody wants, while sweeping */
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
