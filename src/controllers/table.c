// SPDX-License-Identifier: Apache-2.0
// The list of all controllers.
#include "controllers/table.h"

static const struct ctl_type *const types[] = {
    &ctl_cronjob, &ctl_gc,          &ctl_hypernode, &ctl_job,
    &ctl_jobflow, &ctl_jobtemplate, &ctl_podgroup,  &ctl_queue,
};

/* For the embedded mode: in other clusters kube-controller-manager does this work. */
static const struct ctl_type *const workload_types[] = {
    &ctl_replicaset, &ctl_replication, &ctl_deployment,    &ctl_statefulset,
    &ctl_daemonset,  &ctl_batch_job,   &ctl_batch_cronjob, &ctl_volume,
};
static const struct ctl_type *const node_types[] = {
    &ctl_node_lifecycle,
    &ctl_node_eviction,
    &ctl_node_podgc,
    &ctl_pod_unclaimed,
};

const struct ctl_type *const *manager_workload_types(uint32_t *ret_n)
{
    *ret_n = HK_LEN(workload_types);
    return workload_types;
}

const struct ctl_type *const *manager_node_types(uint32_t *ret_n)
{
    *ret_n = HK_LEN(node_types);
    return node_types;
}

const struct ctl_type *const *manager_types(uint32_t *ret_n)
{
    *ret_n = HK_LEN(types);
    return types;
}

const struct ctl_type *manager_type(struct hk_str name)
{
    for (uint32_t i = 0; i < HK_LEN(types); i++) {
        if (hk_str_is(name, types[i]->name)) {
            return types[i];
        }
    }
    return NULL;
}
