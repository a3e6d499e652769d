// SPDX-License-Identifier: Apache-2.0
// conformance: never evicts pods that the cluster itself depends on.
#include "scheduler/plugins/victims.h"

static enum vote conformance_spare(struct session *ssn, void *self, task_id evictor,
                                   struct victims *v)
{
    for (uint32_t k = 0; k < v->n; k++) {
        if (!(model_task(ssn->m, v->in[k])->flags & TASK_CRITICAL)) {
            victims_keep(v, v->in[k]);
        }
    }
    return PERMIT;
}

static enum vote conformance_evictable(struct session *ssn, void *self, enum evict_kind kind,
                                       job_id job, hyper_id domain, struct victims *v)
{
    return conformance_spare(ssn, self, NO_TASK, v);
}

const struct plugin plugin_conformance = {
    .name = "conformance",
    .about = "never evict cluster-critical pods",
    .preemptable = conformance_spare,
    .reclaimable = conformance_spare,
    .evictable = conformance_evictable,
};
