// SPDX-License-Identifier: Apache-2.0
// Well-known labels, annotations, taints and names, each once.
#pragma once

/* A PodGroup that is made for pods without one: this, and the uid of their controller, or their
 * own. */
#define API_PODGROUP_PREFIX "podgroup-"

/* Annotations on pods. Keys marked "or label" are looked up among the labels second. */
#define API_ANN_GROUP_NAME "scheduling.k8s.io/group-name"
#define API_ANN_TASK_SPEC "volcano.sh/task-spec" /* or label */
#define API_ANN_TASK_PRIORITY "volcano.sh/task-priority"
#define API_ANN_PREEMPTABLE "volcano.sh/preemptable"       /* or label; pods and PodGroups */
#define API_ANN_REVOCABLE_ZONE "volcano.sh/revocable-zone" /* pods and PodGroups; node label */
#define API_ANN_COOLDOWN_TIME "volcano.sh/cooldown-time"   /* the label comes first here */
#define API_ANN_NUMA_POLICY "volcano.sh/numa-topology-policy"
#define API_ANN_TOPOLOGY_DECISION "volcano.sh/topology-decision"
#define API_ANN_TEMPLATE_UID "volcano.sh/template-uid"
#define API_ANN_STRATEGY_SCORING_TYPE "volcano.sh/resource-strategy-scoring-type"
#define API_ANN_STRATEGY_WEIGHT "volcano.sh/resource-strategy-weight"
#define API_ANN_FORWARD_CLUSTER "volcano.sh/forward-cluster"
/* Opt-in annotation with value "true", and the name of the scheduling gate. */
#define API_QUEUE_ALLOCATION_GATE "scheduling.volcano.sh/queue-allocation-gate"

/* Annotations on PodGroups. */
#define API_ANN_SLA_WAITING_TIME "volcano.sh/sla-waiting-time"
#define API_ANN_SLA_WAITING_TIME_OLD "sla-waiting-time"
#define API_ANN_JDB_MIN_AVAILABLE "volcano.sh/jdb-min-available"
#define API_ANN_JDB_MAX_UNAVAILABLE "volcano.sh/jdb-max-unavailable"
#define API_ANN_JOB_ALLOCATED_HYPERNODE "volcano.sh/job-allocated-hypernode"
#define API_ANN_TASK_TOPOLOGY_AFFINITY "volcano.sh/task-topology-affinity"
#define API_ANN_TASK_TOPOLOGY_ANTI_AFFINITY "volcano.sh/task-topology-anti-affinity"
#define API_ANN_TASK_TOPOLOGY_ORDER "volcano.sh/task-topology-task-order"

/* Annotations on queues. */
#define API_ANN_HIERARCHY "volcano.sh/hierarchy"
#define API_ANN_HIERARCHY_WEIGHTS "volcano.sh/hierarchy-weights"
#define API_ANN_NODEGROUP_LIMITS "volcano.sh/nodegroup-resource-limits"

/* On nodes. */
#define API_LABEL_NODEGROUP "volcano.sh/nodegroup-name"
#define API_LABEL_OVERSUBSCRIPTION "volcano.sh/oversubscription"
#define API_ANN_OVERSUBSCRIPTION_CPU "volcano.sh/oversubscription-cpu"
#define API_ANN_OVERSUBSCRIPTION_MEMORY "volcano.sh/oversubscription-memory"
#define API_ANN_OFFLINE_JOB_EVICTING "volcano.sh/offline-job-evicting"
#define API_ANN_MIGRATED_PLUGINS "storage.alpha.kubernetes.io/migrated-plugins" /* on CSINodes */

/* Shared GPUs. */
#define API_ANN_GPU_INDEX "volcano.sh/gpu-index"
#define API_ANN_PREDICATE_TIME "volcano.sh/predicate-time"
#define API_ANN_GPU_UNHEALTHY "volcano.sh/gpu-unhealthy-ids"
#define API_ANN_VGPU_REGISTER "volcano.sh/node-vgpu-register"
#define API_ANN_VGPU_NODE "volcano.sh/vgpu-node"
#define API_ANN_VGPU_TIME "volcano.sh/vgpu-time"
#define API_ANN_VGPU_IDS "volcano.sh/vgpu-ids-new"
#define API_ANN_VGPU_TO_ALLOCATE "volcano.sh/devices-to-allocate"
#define API_ANN_VGPU_MODE "volcano.sh/vgpu-mode"
#define API_ANN_VGPU_GROUP_POLICY "volcano.sh/vgpu-podgroup-policy"
#define API_ANN_VGPU_USE_UUID "volcano.sh/vgpu-use-gpuuuid"
#define API_ANN_VGPU_NOUSE_UUID "volcano.sh/vgpu-nouse-gpuuuid"
#define API_ANN_VGPU_USE_TYPE "nvidia.com/use-gputype"
#define API_ANN_VGPU_NOUSE_TYPE "nvidia.com/nouse-gputype"
#define API_ANN_BIND_TIME "volcano.sh/bind-time"
#define API_ANN_BIND_PHASE "volcano.sh/bind-phase"

/* Volumes. */
#define API_ANN_BIND_COMPLETED "pv.kubernetes.io/bind-completed"
#define API_ANN_BOUND_BY_CONTROLLER "pv.kubernetes.io/bound-by-controller"
#define API_ANN_SELECTED_NODE "volume.kubernetes.io/selected-node"
#define API_ANN_PROVISIONED_BY "pv.kubernetes.io/provisioned-by"
/* Volumes that are directories of a node: their provisioner; on Nodes: that the node keeps such
 * volumes, and where; on PersistentVolumes: the node, and the finalizer until the directory is
 * removed. */
#define API_PROVISIONER_LOCAL "hekla.io/local"
#define API_LABEL_VOLUMES "hekla.io/volumes" /* "local" */
#define API_ANN_VOLUMES_DIR "hekla.io/volumes-dir"
#define API_ANN_VOLUME_NODE "hekla.io/node"
#define API_FINALIZER_VOLUME "hekla.io/volume-directory"
#define API_NO_PROVISIONER "kubernetes.io/no-provisioner"

/* Topology labels. */
#define API_LABEL_TOPOLOGY_SOURCE "volcano.sh/network-topology-source"
#define API_LABEL_HOSTNAME "kubernetes.io/hostname"
#define API_LABEL_SERVICE_NAME "kubernetes.io/service-name" /* on EndpointSlices */
#define API_LABEL_SLICE_MANAGER "endpointslice.kubernetes.io/managed-by"
#define API_LABEL_ENDPOINTS_MANAGER "endpoints.kubernetes.io/managed-by"
#define API_LABEL_HEADLESS "service.kubernetes.io/headless"
#define API_ANN_OVER_CAPACITY "endpoints.kubernetes.io/over-capacity"
#define API_LABEL_ZONE "topology.kubernetes.io/zone"
#define API_LABEL_REGION "topology.kubernetes.io/region"
#define API_LABEL_ZONE_BETA "failure-domain.beta.kubernetes.io/zone"
#define API_LABEL_REGION_BETA "failure-domain.beta.kubernetes.io/region"

/* Taints of nodes with problems. */
#define API_TAINT_UNSCHEDULABLE "node.kubernetes.io/unschedulable"
#define API_TAINT_NOT_READY "node.kubernetes.io/not-ready"
#define API_TAINT_UNREACHABLE "node.kubernetes.io/unreachable"
#define API_TAINT_MEMORY_PRESSURE "node.kubernetes.io/memory-pressure"
#define API_TAINT_DISK_PRESSURE "node.kubernetes.io/disk-pressure"
#define API_TAINT_PID_PRESSURE "node.kubernetes.io/pid-pressure"
#define API_TAINT_NETWORK_UNAVAILABLE "node.kubernetes.io/network-unavailable"
#define API_TAINT_OUT_OF_SERVICE "node.kubernetes.io/out-of-service"
/* Where nodes renew their leases. */
#define API_NODE_LEASE_NAMESPACE "kube-node-lease"

/* Resource names. */
#define API_RES_CPU "cpu"
#define API_RES_MEMORY "memory"
#define API_RES_PODS "pods"
#define API_RES_NVIDIA_GPU "nvidia.com/gpu"
#define API_RES_EPHEMERAL_STORAGE "ephemeral-storage"
#define API_RES_STORAGE "storage"

#define API_SCHEDULER_NAME "volcano"
#define API_SCHEDULER_NAME_DEFAULT "default-scheduler"
#define API_QUEUE_NAME_ROOT "root"
#define API_QUEUE_NAME_DEFAULT "default"

/* Keys that the job controller sets on pods. */
#define API_KEY_TASK_INDEX "volcano.sh/task-index"       /* annotation and label */
#define API_KEY_TASK_SPEC API_ANN_TASK_SPEC              /* annotation and label */
#define API_KEY_JOB_NAME "volcano.sh/job-name"           /* annotation and label */
#define API_KEY_QUEUE_NAME "volcano.sh/queue-name"       /* annotation and label */
#define API_KEY_JOB_NAMESPACE "volcano.sh/job-namespace" /* label */
#define API_KEY_PARTITION_ID "volcano.sh/partition-id"   /* label */
#define API_ANN_JOB_VERSION "volcano.sh/job-version"
#define API_ANN_JOB_RETRY_COUNT "volcano.sh/job-retry-count"
#define API_ANN_OUT_OF_SYNC "volcano.sh/controller-out-of-sync"
#define API_KEY_JOB_FORWARDING "volcano.sh/job-forwarding" /* annotation and label */

/* Grouping of pods without a PodGroup. */
#define API_ANN_QUEUE_NAME "scheduling.volcano.sh/queue-name" /* pods and namespaces */
#define API_ANN_GROUP_MIN_MEMBER "scheduling.volcano.sh/group-min-member"
#define API_ANN_TOPOLOGY_MODE "volcano.sh/network-topology-mode"
#define API_ANN_TOPOLOGY_TIER "volcano.sh/network-topology-highest-tier"

/* Flows, templates, cron jobs, queues. */
#define API_KEY_CREATED_BY_TEMPLATE "volcano.sh/createdByJobTemplate" /* annotation and label */
#define API_KEY_CREATED_BY_FLOW "volcano.sh/createdByJobFlow"         /* annotation and label */
#define API_ANN_CRON_TIMESTAMP "volcano.sh/cronjob-scheduled-timestamp"
#define API_ANN_CLOSED_BY_PARENT "volcano.sh/closed-by-parent"

/* Kubernetes' workloads. */
#define API_JOB_TRACKING "batch.kubernetes.io/job-tracking"                 /* finalizer of pods */
#define API_KEY_BATCH_JOB_NAME "batch.kubernetes.io/job-name"               /* label */
#define API_KEY_COMPLETION_INDEX "batch.kubernetes.io/job-completion-index" /* both */
#define API_ANN_POD_DELETION_COST "controller.kubernetes.io/pod-deletion-cost"
#define API_LABEL_TEMPLATE_HASH "pod-template-hash"
#define API_LABEL_REVISION_HASH "controller-revision-hash"
