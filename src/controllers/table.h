// SPDX-License-Identifier: Apache-2.0
// All controllers; manager_types of ctl.h lists them.
#pragma once

#include "controllers/ctl.h"

extern const struct ctl_type ctl_cronjob;
extern const struct ctl_type ctl_gc;
extern const struct ctl_type ctl_hypernode;
extern const struct ctl_type ctl_job;
extern const struct ctl_type ctl_jobflow;
extern const struct ctl_type ctl_jobtemplate;
extern const struct ctl_type ctl_podgroup;
extern const struct ctl_type ctl_queue;

/* For Kubernetes' own workloads and volumes; manager_workload_types lists them. */
extern const struct ctl_type ctl_replicaset, ctl_replication, ctl_deployment, ctl_statefulset,
    ctl_daemonset, ctl_batch_job, ctl_batch_cronjob, ctl_volume;
/* For failing nodes and pods without a scheduler; manager_node_types lists them. */
extern const struct ctl_type ctl_node_lifecycle, ctl_node_eviction, ctl_node_podgc,
    ctl_pod_unclaimed;
