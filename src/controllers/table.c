// SPDX-License-Identifier: Apache-2.0
// Every controller, once.
#include "controllers/table.h"

static const struct ctl_type *const types[] = {
    &ctl_cronjob, &ctl_gc,          &ctl_hypernode, &ctl_job,
    &ctl_jobflow, &ctl_jobtemplate, &ctl_podgroup,  &ctl_queue,
};

/* What the embedded mode runs besides: workloads a cluster has controllers of its own for. */
static const struct ctl_type *const workload_types[] = {
    &ctl_replicaset, &ctl_replication, &ctl_deployment,    &ctl_statefulset,
    &ctl_daemonset,  &ctl_batch_job,   &ctl_batch_cronjob, &ctl_volume,
};

const struct ctl_type *const *manager_workload_types(uint32_t *ret_n)
{
    *ret_n = HK_LEN(workload_types);
    return workload_types;
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
