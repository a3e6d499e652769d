// SPDX-License-Identifier: Apache-2.0
// Objects that are stored and have no effect, because no part of this server acts on them. Whoever
// writes one is warned: a guard that is not there must not look as if it were.
#include "admission/admission_priv.h"

static const struct {
    const char *group, *kind;
    const char *warning;
} rows[] = {
    {"autoscaling", "HorizontalPodAutoscaler",
     "this server has no controller for HorizontalPodAutoscalers: nothing is scaled"},
    {"flowcontrol.apiserver.k8s.io", "FlowSchema",
     "this server does not act on FlowSchemas: it has limits of its own"},
    {"flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration",
     "this server does not act on PriorityLevelConfigurations: it has limits of its own"},
    {"scheduling.k8s.io", "Workload",
     "this server does not act on Workloads of scheduling.k8s.io: pods are grouped by PodGroups of "
     "scheduling.volcano.sh"},
    {"scheduling.k8s.io", "PodGroup",
     "this server does not act on PodGroups of scheduling.k8s.io: use those of "
     "scheduling.volcano.sh"},
    {"networking.k8s.io", "Ingress",
     "this server has no controller for Ingresses: no traffic is forwarded"},
    {"networking.k8s.io", "NetworkPolicy",
     "this server does not enforce NetworkPolicies: all traffic is allowed"},
};

void admit_unused_warn(struct admission_request *q)
{
    for (size_t i = 0; i < HK_LEN(rows); i++) {
        if (strcmp(rows[i].kind, q->kind->kind) == 0 &&
            strcmp(rows[i].group, q->kind->group) == 0) {
            hk_vec_push(&q->warnings,
                        hk_arena_strndup(q->mem, rows[i].warning, strlen(rows[i].warning)));
        }
    }
}
