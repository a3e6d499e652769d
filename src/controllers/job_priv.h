// SPDX-License-Identifier: Apache-2.0
// The job controller's files:
//
//   job.c         which changes concern a job, and one pass over it
//   job_check.c   validates jobs that bypassed admission
//   job_event.c   turns pod changes into requests, and requests into actions by policy
//   job_state.c   the table of phases and actions
//   job_sync.c    towards running: creates objects, PodGroup, pods
//   job_window.c  how many pods of a large job exist at a time
//   job_kill.c    towards rest: which pods to delete, in which order
//   job_status.c  counts pods, writes the status
//   job_record.c  attempts, recorded in the status after their pods are gone
//   job_pod.c     makes a pod from a template
//   job_group.c   the job's PodGroup
//
// A crash loses nothing that matters: the job's status holds the phase and the action in progress
// with its target, version and retryCount. Pods carry the version and retryCount they were made
// with, so it is always clear which pods an action concerns.
#pragma once

#include "controllers/jobplugin.h"
#include "controllers/kinds.h"
#include "controllers/pass.h"

struct job_mem;
struct job_pass;

/* ---- job_event.c ---- */

/* An event of a pod, of the PodGroup or of a Command. Strings are never NULL; a stored request owns
 * them. */
struct job_request {
    enum api_job_event event;
    enum api_job_action action; /* if forced: what to do, regardless of policies */
    bool forced;
    bool preempted; /* the pod was preempted: this uses up no retry */
    int32_t version, exit_code;
    int64_t at_ns; /* when it happened */
    const char *task, *pod, *pod_uid, *partition, *owner;
};
/* For requests without a pod. */
#define JOB_REQUEST_NO_POD .task = "", .pod = "", .pod_uid = "", .partition = "", .owner = ""
void job_request_fini(struct job_request *r);
struct job_request job_request_copy(const struct job_request *r);

/* The action that the job's policies choose for a request. */
struct job_verdict {
    enum api_job_action action;
    bool delayed;
    int64_t delay_ns;
};
struct job_verdict job_choose_action(const struct api_job *job, const struct job_request *r);

/* A delayed action. */
struct job_delay {
    struct job_request r; /* forced */
    int64_t due_ns;       /* monotonic */
};
/* Schedules the action, unless the same one is scheduled for the pod; returns whether it did so. */
bool job_delay_arm(struct job_mem *mem, const struct job_request *r, struct job_verdict v,
                   int64_t due_ns);
/* The pod had an event: cancels delayed actions that it makes unnecessary. */
void job_delay_pod_moved(struct job_mem *mem, enum api_job_event event, struct hk_str pod,
                         struct hk_str uid);
/* The action was carried out: drops other delayed actions in its scope. */
void job_delay_done(struct job_mem *mem, enum api_job_action action, const struct job_request *r);

/* Adds a request for a change of one of the job's pods if a policy may apply. jd: of the job. */
void job_event_pod(struct job_mem *mem, const struct job_digest *jd, const struct mirror_change *ch,
                   int64_t now_ns);
/* Whether the request still applies: TaskCompleted and TaskFailed are only guesses until the whole
 * task was checked, and a pod that was replaced or is being stopped was handled already. */
bool job_event_holds(const struct job_pass *p, const struct job_request *r);
/* Derives requests from the current pods, for a controller that did not see their changes. */
void job_event_derive(struct job_pass *p);

/* ---- job.c ---- */

/* The controller's memory of a job; all of it may be lost. */
struct job_mem {
    uint32_t ns, name; /* string ids, held */
    char *uid;         /* of the job */
    bool met;          /* requests were derived from the current pods */
    uint64_t checked;  /* hash of the last valid spec, 0 none */
    HK_VEC(struct job_request) requests;
    HK_VEC(struct job_delay) delays;
    HK_VEC(struct job_attempt) ended; /* not yet in the status */
    struct ensured *objects;          /* [plugin][JOB_OBJECTS_MAX] */
    struct ensured *claims;           /* by volume */
    uint32_t nclaim;
};

/* One pass. */
struct job_pass {
    struct pass *t;
    struct job_mem *mem;
    struct mirror *pods, *groups;
    const struct json *root; /* the job */
    struct api_job job;
    uint32_t group; /* row of its PodGroup, HK_NONE */
    API_LIST(struct job_plugin_use) uses;
    bool forwarding; /* the queue has extendClusters */
    bool unrecorded; /* a deletion waits until the status records the pod */
    /* The action in progress, from the status. */
    enum api_job_action action;
    struct hk_str target_task, target_pod, target_partition;
};

/* The row of the job's first or next pod. */
uint32_t job_first_pod(const struct job_pass *p);
uint32_t job_next_pod(const struct job_pass *p, uint32_t row);
const struct pod_digest *job_pod(const struct job_pass *p, uint32_t row);
int32_t job_priority(void *pass, struct hk_str name);
/* Records an Event that says why the PodGroup waits. */
void job_note_pending_group(struct job_pass *p, const struct json *group);

/* ---- job_check.c ---- */

/* state.reason and Event reason of a job that admission would have refused. */
#define JOB_REFUSED "InvalidJob"

/* Whether admission would accept the job; checks the same spec only once. */
int job_check(struct job_pass *p, struct hk_err *err) HK_CHECKED;

/* ---- job_state.c ---- */

/* The job runs or is about to. */
static inline bool job_is_live(enum api_job_phase phase)
{
    return phase == API_JOB_PENDING || phase == API_JOB_RUNNING || phase == API_JOB_RESTARTING;
}

enum job_op {
    JOB_SYNC,        /* continue towards running */
    JOB_KILL_ALL,    /* delete every pod */
    JOB_KILL_ACTIVE, /* keep pods that ended */
    JOB_KILL_TARGET, /* delete a task, pod or partition */
};
struct job_cell {
    enum job_op op;
    enum api_job_phase next; /* API_JOB_NO_PHASE: depends on the counts */
    bool retry;              /* uses up a retry */
};
const struct job_cell *job_cell(enum api_job_phase phase, enum api_job_action action);

/* Pods of the job by phase. */
struct job_counts {
    /* pending includes replicas without a pod yet because the job is large (job_window.c) */
    int32_t pending, running, succeeded, failed, unknown, terminating;
    int32_t (*tasks)[POD_NPHASES]; /* by task of the spec, without terminating pods */
};
/* The phase that follows from the counts (docs/reference/controllers.md section 3); the same when
 * nothing follows. */
enum api_job_phase job_next_phase(const struct api_job *job, const struct job_counts *n);

/* ---- job_kill.c ---- */

/* Whether to delete the pod, by the job's phase and the action in progress. */
bool job_pod_must_go(const struct job_pass *p, uint32_t row);
/* Marks and deletes the pods that must go; returns whether it requested any write. A pod that the
 * status does not record yet stays until it does. */
bool job_kill(struct job_pass *p);
/* Whether a pod that must be deleted is not marked yet: only the record in the status shows it. */
bool job_kill_rests_on_record(const struct job_pass *p);
/* Marks the pods that the action concerns. */
void job_mark(struct job_pass *p, enum api_job_action action, const struct job_request *r);
/* Whether the action concerns the pod. */
bool job_is_target(enum api_job_action action, struct hk_str task, struct hk_str pod,
                   struct hk_str partition, const struct pod_digest *d, struct hk_str name);

/* ---- job_sync.c ---- */

/* One step towards running; false when writes are in flight that the counts must wait for. */
bool job_sync(struct job_pass *p);
/* Deletes the PodGroup and, when the job is at rest, the objects of its plugins; one step per
 * pass. */
void job_teardown(struct job_pass *p);
/* All objects of the plugin are removed. */
bool job_is_torn_down(const struct job_pass *p, uint32_t use);
/* The memory of a plugin's objects. */
struct ensured *job_memos(const struct job_pass *p, const struct job_plugin *plugin);

/* All tasks that this one depends on have reached the required state. */
bool job_task_may_start(const struct job_pass *p, const struct api_job_task *task);

/* ---- job_window.c ---- */

struct job_window_task {
    int32_t have;    /* pods that occupy an index, ending and ended ones too */
    int32_t waiting; /* those without a node */
};
struct job_window {
    bool limited;  /* the job has more replicas than may exist at once */
    bool by_task;  /* the gang has a minimum for each task, not only in sum */
    int32_t share; /* part of the window for each task */
    int64_t have;
    struct job_window_task *tasks; /* by task of the spec */
};
void job_window_read(const struct job_pass *p, struct job_window *ret);
/* How many pods of the task may be created now. */
int32_t job_window_room(const struct job_pass *p, const struct job_window *w, uint32_t task);
/* Counts one created pod. */
void job_window_made(struct job_window *w, uint32_t task);
/* Replicas without a pod because of the window; 0 until the job has pods. */
int32_t job_window_held_back(const struct job_pass *p);

/* ---- job_status.c ---- */

void job_count(const struct job_pass *p, struct job_counts *ret);
/* What changes in the status, for users and for the next controller process. */
struct job_change {
    enum api_job_phase phase;
    bool new_generation; /* version + 1 */
    bool retry;          /* retryCount + 1 */
    /* Action to record; API_ACTION_SYNC_JOB keeps the old record while the phase stays. */
    enum api_job_action action;
    const struct job_request *request; /* its cause, or NULL */
    const char *command;               /* uid of a Command to delete, or NULL */
    bool done;                         /* remove the record */
};
/* Writes into the job's status why the controller refuses it. */
void job_write_refusal(struct pass *t, const struct json *root, const char *why);
/* Requests a write if the status differs; returns whether it did. */
bool job_write_status(struct job_pass *p, const struct job_change *ch);

/* ---- job_record.c ---- */

/* How one pod of a task ended. */
struct job_attempt {
    char *task, *pod, *uid, *node, *reason, *message;
    int32_t index, retry, version, exit_code;
    int64_t start_ns, end_ns;
    bool succeeded;
};
void job_attempt_fini(struct job_attempt *at);
/* Remembers the end of the changed pod, if it ended. */
void job_record_pod(struct job_mem *mem, const struct mirror_change *ch, int64_t now_ns);
/* Forgets the attempts that the status records by now. */
void job_record_trim(struct job_pass *p);
/* The status records the pod, or need not. */
bool job_record_has(const struct job_pass *p, uint32_t row);
/* The attempt has no end in the status, and its pod is gone. */
bool job_record_is_lost(const struct job_pass *p, const struct json *attempt);
/* status.attempts updated with pods that ended since and with the mirror's current state. */
struct json job_record_merge(const struct job_pass *p, const struct json *attempts);

/* ---- job_pod.c ---- */

/* Builds pod `index` of the task (docs/reference/controllers.md section 4), plugins included. Fails
 * when a plugin fails. */
int job_pod_build(const struct job_pass *p, const struct api_job_task *task, int32_t index,
                  struct json *ret, struct hk_err *err) HK_CHECKED;
struct hk_str job_pod_name(const struct api_job *job, const struct api_job_task *task,
                           int32_t index, struct hk_arena *a);

/* ---- job_group.c ---- */

struct hk_str job_group_name(const struct api_job *job, struct hk_arena *a);
/* The row of the PodGroup that the job controls, by its new or old name; HK_NONE when none. */
uint32_t job_group_find(const struct mirror *groups, const struct api_job *job, struct hk_arena *a);
/* Priority of a PriorityClass by name, 0 when there is none. */
typedef int32_t job_priority_fn(void *ctx, struct hk_str name);
/* The PodGroup as it is first created. Its annotations also carry job-version. */
struct json job_group_build(const struct api_job *job, job_priority_fn *priority, void *ctx,
                            struct hk_arena *a);
/* A merge patch that corrects an existing PodGroup; false when nothing differs. */
bool job_group_correct(const struct api_job *job, const struct json *group,
                       job_priority_fn *priority, void *ctx, struct hk_arena *a,
                       struct json *ret_patch);
/* spec.minResources of the job's PodGroup, as a ResourceList (docs/reference/controllers.md section
 * 5.2). */
struct json job_min_resources(const struct api_job *job, job_priority_fn *priority, void *ctx,
                              struct hk_arena *a);
/* The same for n pods like this one: what a ResourceQuota would count. */
struct json job_pod_resources(const struct json *pod, int64_t n, struct hk_arena *a);
