// SPDX-License-Identifier: Apache-2.0
// Flows: the steps and their dependencies must form a graph without cycles.
#include "admission/vc_priv.h"

/* Of several steps with the same name the last one counts, as upstream. */
static bool is_last(const struct vc_dag *g, const uint32_t *last, struct hk_str name, uint32_t i)
{
    return last[hk_intern_find(&g->names, name)] == i;
}

/* Reports the first target, in list order, that is not a step or not a string. */
static bool add_targets(struct vc *v, struct vc_dag *g, const struct json *flow)
{
    const struct json *targets = json_at(flow, "dependsOn.targets");
    const uint32_t to = hk_intern_find(&g->names, edit_str(flow, "name"));

    for (uint32_t i = 0; i < edit_len(targets); i++) {
        const struct hk_str target = json_str(json_item(targets, i), HK_STR(""));
        const uint32_t from = hk_intern_find(&g->names, target);
        if (from == HK_NONE || from == 0) {
            hk_buf_addf(&v->why, "jobflow Flow is not DAG: vertex is not defined: %.*s",
                        HK_FMT(target));
            return false;
        }
        hk_vec_push(&g->edges, (struct vc_dag_edge){from, to});
    }
    return true;
}

void vc_jobflow_validate(struct vc *v)
{
    const struct json *flows = json_at(v->q->obj, "spec.flows");
    const uint32_t n = edit_len(flows);
    HK_AUTO(vc_dag_fini) struct vc_dag g = {0};
    /* Ids are dense: at most one per name, and one for "". */
    HK_AUTO(hk_freep) uint32_t *last = hk_zalloc_array(n + 1, sizeof(*last));
    bool known = true;

    for (uint32_t i = 0; i < n; i++) {
        last[hk_intern(&g.names, edit_str(json_item(flows, i), "name"))] = i;
    }
    for (uint32_t i = 0; known && i < n; i++) {
        const struct json *flow = json_item(flows, i);
        if (is_last(&g, last, edit_str(flow, "name"), i)) {
            known = add_targets(v, &g, flow);
        }
    }
    if (known && !vc_dag_is_acyclic(&g)) {
        hk_buf_adds(&v->why, "jobflow Flow is not DAG");
    }
}
