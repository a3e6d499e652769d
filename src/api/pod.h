// SPDX-License-Identifier: Apache-2.0
// The parts of pods that are needed to place and count them.
#pragma once

#include "api/node.h"
#include "api/selector.h"

enum api_pod_phase {
    API_POD_PENDING, /* also when unset, as the API server fills it in */
    API_POD_RUNNING,
    API_POD_SUCCEEDED,
    API_POD_FAILED,
    API_POD_UNKNOWN, /* and any phase we do not know */
};

const char *api_pod_phase_name(enum api_pod_phase phase);

enum api_protocol { API_TCP, API_UDP, API_SCTP };

struct api_container_port {
    int32_t host_port, container_port; /* 0 when unset */
    struct hk_str host_ip;             /* "0.0.0.0" when unset */
    enum api_protocol protocol;
};

struct api_container {
    struct hk_str name, image;
    struct api_resources requests; /* default to the limits, as in the API server */
    struct api_resources limits;
    API_LIST(struct api_container_port) ports;
    bool restart_always; /* init containers: a sidecar */
};

struct api_containers {
    struct api_container *at;
    uint32_t len;
};

/* Resources the kubelet reports, for pods resized in place. */
struct api_container_status {
    struct hk_str name;
    struct api_resources requests;  /* status resources.requests */
    struct api_resources allocated; /* allocatedResources */
};

/* One (anti-)affinity term. Both namespaces empty and namespace_selector absent: the namespace
 * of the pod that owns the term. */
struct api_pod_term {
    struct api_selector labels;
    struct api_strs namespaces;
    struct api_selector namespace_selector;
    struct hk_str topology_key;
    int32_t weight; /* of a preference; 0 in required terms */
};

struct api_pod_affinity {
    API_LIST(struct api_pod_term) required;
    API_LIST(struct api_pod_term) preferred;
};

struct api_node_affinity {
    struct api_node_selector required;
    API_LIST(struct api_node_term) preferred;
};

enum api_toleration_op {
    API_TOLERATE_EQUAL,
    API_TOLERATE_EXISTS,
    API_TOLERATE_GT,
    API_TOLERATE_LT
};

struct api_toleration {
    struct hk_str key, value;
    enum api_toleration_op op;
    enum api_taint_effect effect; /* API_EFFECT_ANY when unset */
    int64_t seconds;
    bool has_seconds;
};

enum api_unsatisfiable { API_DO_NOT_SCHEDULE, API_SCHEDULE_ANYWAY };

struct api_spread {
    int32_t max_skew, min_domains; /* min_domains is 1 when unset */
    struct hk_str topology_key;
    enum api_unsatisfiable when;
    struct api_selector labels;
    struct api_strs match_label_keys;
    bool ignore_affinity; /* nodeAffinityPolicy: Ignore */
    bool honor_taints;    /* nodeTaintsPolicy: Honor */
};

struct api_volume {
    struct hk_str name;
    struct hk_str type;       /* the source's field name: "persistentVolumeClaim", "emptyDir" */
    struct hk_str claim_name; /* of a persistentVolumeClaim */
    struct hk_str csi_driver; /* of an inline csi volume */
    bool ephemeral;           /* claim "<pod>-<volume>" made from a template */
};

struct api_resource_claim {
    struct hk_str name;
    struct hk_str claim_name, template_name; /* one of them is set */
};

struct api_resource_claim_status {
    struct hk_str name;
    struct hk_str claim_name; /* "" when the template produced none */
};

enum api_preemption { API_PREEMPT_LOWER_PRIORITY, API_PREEMPT_NEVER };

extern const char *const api_preemption_names[]; /* ended by NULL */

struct api_pod {
    const struct json *raw;
    struct api_meta meta;

    struct hk_str scheduler_name; /* "default-scheduler" when unset */
    struct hk_str node_name;
    struct hk_str priority_class_name;
    int32_t priority;
    bool has_priority;
    enum api_preemption preemption;
    struct api_strs gates;
    struct api_containers containers, init_containers;
    struct api_resources overhead;
    struct api_resources requests, limits; /* pod-level spec.resources */
    struct api_map node_selector;
    struct api_node_affinity node_affinity;
    struct api_pod_affinity affinity, anti_affinity;
    API_LIST(struct api_toleration) tolerations;
    API_LIST(struct api_spread) spread;
    API_LIST(struct api_volume) volumes;
    API_LIST(struct api_resource_claim) claims;

    enum api_pod_phase phase;
    struct hk_str nominated_node;
    struct hk_str qos_class; /* "" when unset */
    int64_t start_ns;        /* 0 when unset */
    struct api_conditions conditions;
    API_LIST(struct api_container_status) statuses;
    API_LIST(struct api_container_status) init_statuses;
    API_LIST(struct api_resource_claim_status) claim_statuses;
    bool resize_infeasible; /* the node refused the last in-place resize for good */
};

/* Whether the toleration covers the taint. */
bool api_toleration_covers(const struct api_toleration *tol, const struct api_taint *taint);
/* Whether any toleration of the pod covers the taint. */
bool api_pod_tolerates(const struct api_pod *pod, const struct api_taint *taint);

int api_pod_decode(const struct json *doc, struct hk_arena *a, struct api_pod *ret,
                   struct hk_err *err) HK_CHECKED;
