// SPDX-License-Identifier: Apache-2.0
// Small kinds that limit or rank pods: PriorityClass, Namespace, ResourceQuota,
// PodDisruptionBudget; and kinds that only select pods by label: Service, ReplicationController,
// ReplicaSet, StatefulSet.
#pragma once

#include "api/pod.h"

struct api_priority_class {
    const struct json *raw;
    struct api_meta meta;
    int32_t value;
    bool global_default;
    enum api_preemption preemption;
};

struct api_namespace {
    const struct json *raw;
    struct api_meta meta;
    bool terminating;
};

struct api_resource_quota {
    const struct json *raw;
    struct api_meta meta;
    struct api_resources spec_hard, hard, used; /* hard and used from status */
    struct api_strs scopes;
};

struct api_pdb {
    const struct json *raw;
    struct api_meta meta;
    struct api_selector selector;
    int32_t disruptions_allowed;
    struct api_strs disrupted_pods; /* names, sorted */
};

/* A Service, ReplicationController, ReplicaSet or StatefulSet. */
struct api_workload {
    const struct json *raw;
    struct api_meta meta;
    struct api_selector selector; /* absent selects nothing */
};

int api_priority_class_decode(const struct json *doc, struct hk_arena *a,
                              struct api_priority_class *ret, struct hk_err *err) HK_CHECKED;
int api_namespace_decode(const struct json *doc, struct hk_arena *a, struct api_namespace *ret,
                         struct hk_err *err) HK_CHECKED;
int api_resource_quota_decode(const struct json *doc, struct hk_arena *a,
                              struct api_resource_quota *ret, struct hk_err *err) HK_CHECKED;
int api_pdb_decode(const struct json *doc, struct hk_arena *a, struct api_pdb *ret,
                   struct hk_err *err) HK_CHECKED;

/* Service and ReplicationController: spec.selector is a plain map; an empty one selects nothing. */
int api_service_decode(const struct json *doc, struct hk_arena *a, struct api_workload *ret,
                       struct hk_err *err) HK_CHECKED;
/* ReplicaSet and StatefulSet: spec.selector is a LabelSelector. */
int api_workload_decode(const struct json *doc, struct hk_arena *a, struct api_workload *ret,
                        struct hk_err *err) HK_CHECKED;
