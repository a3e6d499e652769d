// SPDX-License-Identifier: Apache-2.0
// The job controller's files:
//
//   job.c         what concerns a job, and one pass over it
//   job_check.c   what is wrong with a job that no admission has seen
//   job_event.c   changes of pods become requests; policies turn requests into actions
//   job_state.c   the table of phases and actions
//   job_sync.c    towards running: objects, PodGroup, pods
//   job_kill.c    towards rest: which pods go, in which order
//   job_status.c  counting pods, writing the status
//   job_record.c  the attempts that stay readable when pods are gone
//   job_pod.c     a pod from a template
//   job_group.c   the job's PodGroup
//
// What survives a crash is in the job's status: the phase, the action under way with its target,
// version and retryCount. Pods carry version and retryCount of their making, so which of them an
// action means can be told at any time.
#pragma once

#include "controllers/ctl.h"
#include "controllers/jobplugin.h"
#include "controllers/kinds.h"

struct job_mem;
struct job_pass;

/* ---- job_event.c ---- */

/* Something happened to a pod, to the PodGroup or by command. Strings are never NULL, and owned by
 * requests that are kept. */
struct job_request {
    enum api_job_event event;
    enum api_job_action action; /* if forced: what to do, whatever the policies say */
    bool forced;
    bool preempted; /* the pod gave way to others: no retry is used up */
    int32_t version, exit_code;
    int64_t at_ns; /* when it happened */
    const char *task, *pod, *pod_uid, *partition, *owner;
};
/* For those that name no pod. */
#define JOB_REQUEST_NO_POD .task = "", .pod = "", .pod_uid = "", .partition = "", .owner = ""
void job_request_fini(struct job_request *r);
struct job_request job_request_copy(const struct job_request *r);

/* What the policies of the job say to a request. */
struct job_verdict {
    enum api_job_action action;
    bool delayed;
    int64_t delay_ns;
};
struct job_verdict job_judge(const struct api_job *job, const struct job_request *r);

/* An action that waits for its time. */
struct job_delay {
    struct job_request r; /* forced */
    int64_t due_ns;       /* wall */
};
/* Arms it unless the same is armed for the pod; whether it was. */
bool job_delay_arm(struct job_mem *mem, const struct job_request *r, struct job_verdict v);
/* The pod moved on: what waited for it to do so is off. */
void job_delay_pod_moved(struct job_mem *mem, enum api_job_event event, struct hk_str pod,
                         struct hk_str uid);
/* The action was carried out: others of its scope are off. */
void job_delay_done(struct job_mem *mem, enum api_job_action action, const struct job_request *r);

/* The change of a pod of the job as a request for mem, if some policy may care. jd: of the job. */
void job_event_pod(struct job_mem *mem, const struct job_digest *jd, const struct mirror_change *ch,
                   int64_t now_ns);
/* Whether the request still means anything: TaskCompleted and TaskFailed are only guesses until the
 * whole task is looked at, and a pod that was replaced or is being stopped has been seen to. */
bool job_event_holds(const struct job_pass *p, const struct job_request *r);
/* The requests that the pods as they are amount to, for a controller that saw none of it happen. */
void job_event_derive(struct job_pass *p);

/* ---- job.c ---- */

/* What the controller remembers of a job; all of it can be lost. */
struct job_mem {
    uint32_t ns, name; /* string ids, held */
    char *uid;         /* of the job it is about */
    bool met;          /* requests have been derived from the pods as they are */
    uint64_t checked;  /* hash of the spec that was found in order, 0 none */
    HK_VEC(struct job_request) requests;
    HK_VEC(struct job_delay) delays;
    HK_VEC(struct job_attempt) ended; /* not yet in the status */
    struct ensured *objects;          /* [plugin][JOB_OBJECTS_MAX] */
    struct ensured *claims;           /* by volume */
    uint32_t nclaim;
};

/* One pass. */
struct job_pass {
    struct turn *t;
    struct job_mem *mem;
    struct mirror *pods, *groups;
    const struct json *root; /* the job */
    struct api_job job;
    uint32_t group; /* row of its PodGroup, HK_NONE */
    API_LIST(struct job_plugin_use) uses;
    bool forwarding; /* the queue has extendClusters */
    bool unrecorded; /* a pod is to be deleted and waits until the status tells of it */
    /* The action under way, from the status. */
    enum api_job_action action;
    struct hk_str target_task, target_pod, target_partition;
};

/* The row of the job's first or next pod. */
uint32_t job_first_pod(const struct job_pass *p);
uint32_t job_next_pod(const struct job_pass *p, uint32_t row);
const struct pod_digest *job_pod(const struct job_pass *p, uint32_t row);
int32_t job_priority(void *pass, struct hk_str name);
/* An event that tells why the PodGroup waits. */
void job_note_pending_group(struct job_pass *p, const struct json *group);

/* ---- job_check.c ---- */

/* state.reason, and the event, of a job that admission would not have taken. */
#define JOB_REFUSED "InvalidJob"

/* Whether admission would take the job; the same spec is judged once. */
int job_check(struct job_pass *p, struct hk_err *err) HK_CHECKED;

/* ---- job_state.c ---- */

enum job_op {
    JOB_SYNC,        /* go on towards running */
    JOB_KILL_ALL,    /* every pod goes */
    JOB_KILL_ACTIVE, /* those that ended stay */
    JOB_KILL_TARGET, /* a task, pod or partition */
};
struct job_cell {
    enum job_op op;
    enum api_job_phase next; /* API_JOB_NO_PHASE: as the counts say */
    bool retry;              /* uses up a retry */
};
const struct job_cell *job_cell(enum api_job_phase phase, enum api_job_action action);

/* Pods of the job by phase. */
struct job_counts {
    int32_t pending, running, succeeded, failed, unknown, terminating;
    int32_t (*tasks)[POD_NPHASES]; /* by task of the spec, those that are not ending */
};
/* The phase that follows from the counts (P1, R1, X1, A1...); the same when nothing follows. */
enum api_job_phase job_next_phase(const struct api_job *job, const struct job_counts *n);

/* ---- job_kill.c ---- */

/* Whether the pod has to go, by phase and action under way. */
bool job_pod_must_go(const struct job_pass *p, uint32_t row);
/* Marks and deletes pods that have to go; whether anything was asked for. What the status does not
 * tell of yet stays until it does. */
bool job_kill(struct job_pass *p);
/* Some pod has to go that is not marked yet: only the record in the status tells of it. */
bool job_kill_rests_on_record(const struct job_pass *p);
/* Marks the pods of a target. */
void job_mark(struct job_pass *p, enum api_job_action action, const struct job_request *r);
/* Whether the pod belongs to what the action means. */
bool job_is_target(enum api_job_action action, struct hk_str task, struct hk_str pod,
                   struct hk_str partition, const struct pod_digest *d, struct hk_str name);

/* ---- job_sync.c ---- */

/* One step towards running; false when something is still under way that the counts must wait for.
 */
bool job_sync(struct job_pass *p);
/* One step of taking down the PodGroup and, when the job is at rest, what its plugins made. */
void job_teardown(struct job_pass *p);
/* All objects of the plugin have been removed. */
bool job_is_torn_down(const struct job_pass *p, uint32_t use);
/* The memories of a plugin's objects. */
struct ensured *job_memos(const struct job_pass *p, const struct job_plugin *plugin);

/* ---- job_status.c ---- */

void job_count(const struct job_pass *p, struct job_counts *ret);
/* Why the status is written, for people and for whoever takes over. */
struct job_change {
    enum api_job_phase phase;
    bool new_generation; /* version + 1 */
    bool retry;          /* retryCount + 1 */
    /* Record of the action, or API_ACTION_SYNC_JOB: keep what is there while the phase stays. */
    enum api_job_action action;
    const struct job_request *request; /* what led to it, or NULL */
    const char *command;               /* uid of a Command that is to be deleted, or NULL */
    bool done;                         /* the record has served its turn */
};
/* Says in the status of the job why it is not worked on. */
void job_write_refusal(struct turn *t, const struct json *root, const char *why);
/* Asks for the write if the status differs from what it should be; whether it did. */
bool job_write_status(struct job_pass *p, const struct job_change *ch);

/* ---- job_record.c ---- */

/* How one pod of a task ended. */
struct job_attempt {
    char *task, *pod, *uid, *node, *reason, *message;
    int32_t index, retry, exit_code;
    int64_t start_ns, end_ns;
    bool succeeded;
};
void job_attempt_fini(struct job_attempt *at);
/* Remembers that the pod of the change ended, if it did. */
void job_record_pod(struct job_mem *mem, const struct mirror_change *ch, int64_t now_ns);
/* Forgets what the status tells by now. */
void job_record_trim(struct job_pass *p);
/* The status tells of the pod, or need not. */
bool job_record_has(const struct job_pass *p, uint32_t row);
/* The pod of an attempt was being ended when last seen, and is no more. */
bool job_record_is_lost(const struct job_pass *p, const struct json *attempt);
/* status.attempts as it was, with what ended since and what the mirror shows. */
struct json job_record_merge(const struct job_pass *p, const struct json *attempts);

/* ---- job_pod.c ---- */

/* Builds pod `index` of the task (controllers.md 1.10), plugins included. The failure is that of a
 * plugin. */
int job_pod_build(const struct job_pass *p, const struct api_job_task *task, int32_t index,
                  struct json *ret, struct hk_err *err) HK_CHECKED;
struct hk_str job_pod_name(const struct api_job *job, const struct api_job_task *task,
                           int32_t index, struct hk_arena *a);

/* ---- job_group.c ---- */

struct hk_str job_group_name(const struct api_job *job, struct hk_arena *a);
/* The row of the job's PodGroup, by its name or the old one, HK_NONE; only one it controls. */
uint32_t job_group_find(const struct mirror *groups, const struct api_job *job, struct hk_arena *a);
/* Priority of a PriorityClass by name, 0 when there is none. */
typedef int32_t job_priority_fn(void *ctx, struct hk_str name);
/* The PodGroup as it is first created (1.12). Its annotations also carry job-version. */
struct json job_group_build(const struct api_job *job, job_priority_fn *priority, void *ctx,
                            struct hk_arena *a);
/* A merge patch of what of an existing one must change; false when nothing. */
bool job_group_mend(const struct api_job *job, const struct json *group, job_priority_fn *priority,
                    void *ctx, struct hk_arena *a, struct json *ret_patch);
/* minResources of 1.12, as a ResourceList. */
struct json job_min_resources(const struct api_job *job, job_priority_fn *priority, void *ctx,
                              struct hk_arena *a);
/* The same for one pod, times n: the usage a ResourceQuota would count (2.2). */
struct json job_pod_resources(const struct json *pod, int64_t n, struct hk_arena *a);
