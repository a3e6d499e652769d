// SPDX-License-Identifier: Apache-2.0
// What the mirror of each shared kind keeps. All controllers share one mirror per kind, so every
// watch uses the type from here.
#pragma once

#include "api/queue.h"
#include "api/vcjob.h"
#include "controllers/mirror.h"

enum pod_phase {
    POD_PENDING, /* also when unset */
    POD_RUNNING,
    POD_SUCCEEDED,
    POD_FAILED,
    POD_UNKNOWN, /* any other word */
    POD_NPHASES,
};
const char *pod_phase_name(enum pod_phase phase);

/* A pod in few bytes. The text is kept only while the pod lacks a PodGroup, or while a batch/v1 Job
 * has not yet applied its failure policy. */
struct pod_digest {
    uint8_t phase; /* enum pod_phase */
    bool terminating;
    bool ready; /* Running, and every container is ready */
    /* Controlled by a Volcano Job, with job-name, task-spec and job-version. */
    bool of_job;
    bool out_of_sync;       /* marked before its deletion */
    bool evicted;           /* failed or terminating because of an eviction */
    bool says_ready;        /* its condition Ready is True */
    bool wants_group;       /* its scheduler may be ours, and it has no PodGroup */
    int32_t version, retry; /* of_job: annotations job-version, job-retry-count */
    /* Annotation task-index or job-completion-index, else the number its name ends with; -1 none.
     */
    int32_t index;
    int32_t exit_code; /* of the first main container with a non-zero code */
    uint32_t restarts; /* of init and main containers together */
    int64_t created_ns;
    int64_t start_ns, end_ns; /* status.startTime; when the last container ended; 0 unknown */
    /* The first four are NULL unless of_job, but pods of a workload have an owner, too. The others
     * are never NULL. */
    char *job;       /* annotation job-name */
    char *owner;     /* uid of the controller */
    char *task;      /* annotation task-spec */
    char *partition; /* label partition-id, "" none */
    char *node;
    char *reason, *message; /* of the pod, else of the container that failed */
    /* Of a workload of Kubernetes: ReplicaSet, StatefulSet, DaemonSet or batch/v1 Job. */
    uint8_t workload;      /* enum api_kind_id of its controller, API_NKINDS none */
    bool serving;          /* condition Ready, else the containers' readiness */
    bool tracked;          /* has the finalizer that a batch/v1 Job tracks pods with */
    int32_t deletion_cost; /* annotation pod-deletion-cost */
    int64_t serving_ns;    /* when serving began; 0 unknown */
    char *workload_name;   /* this and the next two: NULL without workload */
    char *revision;        /* label pod-template-hash or controller-revision-hash, "" none */
    char *target;          /* the one node its required affinity names, "" none */
};
/* Succeeded or failed. */
static inline bool pod_has_ended(const struct pod_digest *d)
{
    return d->phase == POD_SUCCEEDED || d->phase == POD_FAILED;
}
/* Index 0: uid of the controller; 1: while it lacks a PodGroup, the uid that names the group: the
 * controller's, else its own; 2: while it is tracked, the name of its batch/v1 Job; 3: its node. */
enum { PODS_BY_CONTROLLER, PODS_BY_WANTED_GROUP, PODS_BY_TRACKER, PODS_BY_NODE };
extern const struct mirror_type mirror_pods;

/* Text kept. Index 0: the uid of the controller (JobFlow, CronJob); 1: the template it was made
 * from, "<ns>.<name>". */
struct job_digest {
    uint8_t phase; /* enum api_job_phase */
    bool terminating;
    bool by_exit_code; /* some policy matches exit codes */
    uint32_t events;   /* bits of enum api_job_event that some policy names */
};
enum { JOBS_BY_CONTROLLER, JOBS_BY_TEMPLATE };
extern const struct mirror_type mirror_jobs;

/* Text kept. Index 0: the uid of the controller; 1: the queue. */
struct podgroup_digest {
    uint8_t phase; /* enum api_podgroup_phase */
    bool terminating;
    int32_t min_member;
    char *queue;
};
enum { PODGROUPS_BY_CONTROLLER, PODGROUPS_BY_QUEUE };
extern const struct mirror_type mirror_podgroups;

/* Text kept. Index 0: the parent ("root" when unset). */
struct queue_digest {
    uint8_t state;   /* enum api_queue_state; any other word is Unknown */
    bool forwarding; /* spec.extendClusters names some */
};
enum { QUEUES_BY_PARENT };
extern const struct mirror_type mirror_queues;

/* Text kept, no digest. Index 0: target.name; readers must check namespace and kind. */
enum { COMMANDS_BY_TARGET };
extern const struct mirror_type mirror_commands;

struct priority_digest {
    int32_t value;
};
extern const struct mirror_type mirror_priority_classes;

/* Text kept, no digest. Index 0: the uid of the controller; 1, of kinds with a template of pods: the
 * PodGroup that the template names. */
enum { OBJECTS_BY_CONTROLLER, OBJECTS_BY_GROUP };
extern const struct mirror_type mirror_cronjobs, mirror_jobflows, mirror_jobtemplates;
extern const struct mirror_type mirror_replica_sets, mirror_replication_controllers,
    mirror_stateful_sets, mirror_deployments, mirror_daemon_sets, mirror_batch_jobs,
    mirror_batch_cronjobs, mirror_namespaces, mirror_controller_revisions;

/* Text kept. */
struct node_digest {
    uint64_t shape;      /* a hash of labels, taints and unschedulable */
    uint64_t no_execute; /* a hash of its NoExecute taints, 0 none */
    uint64_t heartbeat;  /* a hash of the lastHeartbeatTime of Ready, 0 none */
    bool ready;          /* its condition Ready is True */
    bool out_of_service; /* has the out-of-service taint: the machine is off */
};
extern const struct mirror_type mirror_nodes;

/* Text not kept. */
struct lease_digest {
    uint64_t renewal; /* a hash of holder and renewTime */
};
extern const struct mirror_type mirror_leases;

/* Text kept. */
struct hypernode_digest {
    uint64_t shape; /* a hash of spec and labels */
    int32_t tier;
};
extern const struct mirror_type mirror_hypernodes;
/* Text kept, no digest: one ConfigMap at most. */
extern const struct mirror_type mirror_own_config;

extern const struct mirror_type mirror_services, mirror_endpoints;
/* Index 0: the name of its Service. */
enum { SLICES_BY_SERVICE };
extern const struct mirror_type mirror_endpoint_slices;

/* Text kept. */
struct claim_digest {
    bool bound; /* its status says so */
};
extern const struct mirror_type mirror_claims;
/* Text kept. Index 0: the name in claimRef; readers must check the namespace. */
struct volume_digest {
    bool free; /* no claimRef */
};
enum { VOLUMES_BY_CLAIM };
extern const struct mirror_type mirror_volumes;
/* Text kept, no digest. */
extern const struct mirror_type mirror_storage_classes;

/* The controller among an object's owners, NULL none. */
const struct json *kinds_controller(const struct json *root);
/* Appends an ownerReference with controller and blockOwnerDeletion set. */
void kinds_own(struct json *body, struct hk_arena *a, const struct json *owner);
/* A status patch for the pod with that uid: sets one condition, with now_ns as its transition time.
 * reason and message may be NULL. */
struct kinds_condition {
    const char *type, *status, *reason, *message;
};
struct json kinds_pod_patch(struct hk_arena *a, struct hk_str uid, const struct kinds_condition *c,
                            int64_t now_ns);
/* The condition of that type, NULL none. */
const struct json *kinds_condition(const struct json *root, const char *type);
/* A condition of that type has the status True. */
bool kinds_is_true(const struct json *root, const char *type);
/* The member of metadata.annotations or .labels; NULL when absent. */
const struct json *kinds_annotation(const struct json *root, const char *key);
const struct json *kinds_label(const struct json *root, const char *key);
