// SPDX-License-Identifier: Apache-2.0
// Volcano's Job (batch.volcano.sh/v1alpha1): several tasks, each a template and a number of pods.
#pragma once

#include "api/podgroup.h"

enum api_job_phase {
    API_JOB_NO_PHASE, /* unset: treated as Pending */
    API_JOB_PENDING,
    API_JOB_ABORTING,
    API_JOB_ABORTED,
    API_JOB_RUNNING,
    API_JOB_RESTARTING,
    API_JOB_COMPLETING,
    API_JOB_COMPLETED,
    API_JOB_TERMINATING,
    API_JOB_TERMINATED,
    API_JOB_FAILED,
    API_JOB_NPHASES,
};

/* "" for the first. */
/* The attempt of status.attempts that failed first in the newest run of the job: the cause, where
 * the others were ended because of it. NULL without failures. */
const struct json *api_job_first_failure(const struct json *job);
/* Appends how an attempt ended: "OOMKilled (exit code 137)", "exit code 3". */
void api_job_write_end(const struct json *attempt, struct hk_buf *out);
const char *api_job_phase_name(enum api_job_phase phase);
/* Completed, Failed or Terminated. */
bool api_job_is_finished(enum api_job_phase phase);

enum api_job_action {
    API_ACTION_SYNC_JOB,
    API_ACTION_ENQUEUE_JOB,
    API_ACTION_ABORT_JOB,
    API_ACTION_RESTART_JOB,
    API_ACTION_RESTART_TASK,
    API_ACTION_RESTART_POD,
    API_ACTION_RESTART_PARTITION,
    API_ACTION_TERMINATE_JOB,
    API_ACTION_COMPLETE_JOB,
    API_ACTION_RESUME_JOB,
    API_ACTION_OTHER, /* any other text: the default branch of each phase */
    API_NACTIONS,
};

const char *api_job_action_name(enum api_job_action action);
enum api_job_action api_job_action_find(struct hk_str name);

enum api_job_event {
    API_EVENT_NONE, /* an unnamed change */
    API_EVENT_ANY,  /* "*", in policies only */
    API_EVENT_POD_PENDING,
    API_EVENT_POD_RUNNING,
    API_EVENT_POD_FAILED,
    API_EVENT_POD_EVICTED,
    API_EVENT_UNKNOWN, /* "Unknown": the PodGroup's phase */
    API_EVENT_TASK_COMPLETED,
    API_EVENT_TASK_FAILED,
    API_EVENT_OUT_OF_SYNC,
    API_EVENT_COMMAND_ISSUED,
    API_EVENT_JOB_UPDATED,
    API_NEVENTS,
};

const char *api_job_event_name(enum api_job_event event);
/* 1 << the event of that name; 0 when unknown. */
uint32_t api_job_event_bit(struct hk_str name);

struct api_job_policy {
    struct hk_str action; /* as written */
    uint32_t events;      /* bits 1 << enum api_job_event, event and events together */
    bool has_exit_code, has_timeout;
    int32_t exit_code;
    int64_t timeout_ns;
};

struct api_job_partition {
    bool present;
    int32_t total, size, min; /* totalPartitions, partitionSize, minPartitions */
    struct api_network_topology topology;
};

struct api_job_task {
    struct hk_str name;
    int32_t replicas;
    bool has_min;
    int32_t min_available;
    const struct json *template; /* PodTemplateSpec, NULL when absent */
    API_LIST(struct api_job_policy) policies;
    struct hk_str topology_policy;
    int32_t max_retry; /* 0 when unset */
    struct api_strs depends_on;
    struct hk_str iteration;
    struct api_job_partition partition;
};

struct api_job_volume {
    struct hk_str mount_path, claim_name;
    const struct json *claim; /* PersistentVolumeClaimSpec, or NULL */
};

struct api_job_plugin {
    struct hk_str name;
    struct api_strs args;
};

struct api_job {
    const struct json *raw;
    struct api_meta meta;

    struct hk_str scheduler_name, queue, priority_class_name;
    int32_t min_available;
    API_LIST(struct api_job_task) tasks;
    API_LIST(struct api_job_volume) volumes;
    API_LIST(struct api_job_policy) policies;
    API_LIST(struct api_job_plugin) plugins; /* sorted by name */
    int32_t max_retry;                       /* 3 when unset */
    bool has_ttl, has_min_success;
    int32_t ttl_s, min_success;
    struct api_network_topology topology;
    int64_t running_estimate_ns; /* 0 when unset */

    /* status */
    enum api_job_phase phase;
    struct hk_str reason, message; /* of the state */
    int64_t last_transition_ns;
    int32_t status_min_available;
    int32_t pending, running, succeeded, failed, terminating, unknown;
    int32_t version, retry_count;
    struct api_map controlled; /* controlledResources */
};

int api_job_decode(const struct json *doc, struct hk_arena *a, struct api_job *ret,
                   struct hk_err *err) HK_CHECKED;
/* Sum over tasks: of replicas, and of minAvailable (replicas where unset). */
int64_t api_job_replicas(const struct api_job *job);
int64_t api_job_task_min(const struct api_job_task *task);
const struct api_job_task *api_job_task_find(const struct api_job *job, struct hk_str name);
