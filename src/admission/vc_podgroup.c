// SPDX-License-Identifier: Apache-2.0
// PodGroups: the default queue of their namespace, whether it accepts them, network topologies.
#include "admission/vc_priv.h"

#define QUEUE_ANNOTATION "scheduling.volcano.sh/queue-name"

void vc_podgroup_mutate(struct vc *v)
{
    const struct json *spec = json_get(v->q->obj, "spec");
    const struct json *ns;
    const struct json *queue;

    if (!hk_str_is(edit_str(spec, "queue"), "default")) {
        return;
    }
    ns = admit_get(v->q, api_kind(API_NAMESPACE), HK_STR(""), v->q->ns);
    queue = json_get(json_at(ns, "metadata.annotations"), QUEUE_ANNOTATION);
    if (json_is(queue, JSON_STRING)) {
        vc_patch(v, "add", "/spec/queue", *queue);
    }
}

static void separate(struct vc *v, const char *with)
{
    if (v->why.len > 0) {
        hk_buf_adds(&v->why, with);
    }
}

static void vc_podgroup_check_queue(struct vc *v, struct hk_str name)
{
    const struct json *queue = vc_queue(v, name);
    struct hk_str state;

    if (name.n == 0 || !v->q->lookup) {
        return;
    }
    if (!queue) {
        hk_buf_adds(&v->why, "unable to find queue: ");
        vc_write_no_queue(v, name);
        return;
    }
    state = vc_queue_state(v, queue);
    if (!hk_str_is(state, "Open")) {
        hk_buf_addf(&v->why,
                    "can only submit PodGroup to queue with state `Open`, queue `%.*s` status is "
                    "`%.*s`.",
                    HK_FMT(name), HK_FMT(state));
    }
}

static void check_topologies(struct vc *v, const struct json *spec)
{
    const struct json *groups = json_get(spec, "subGroupPolicy");
    const bool both = vc_has_both_tiers(json_get(spec, "networkTopology"));

    if (both) {
        separate(v, "; ");
        hk_buf_addf(&v->why, "%s.", vc_both_tiers);
    }
    for (uint32_t i = 0; i < edit_len(groups); i++) {
        const struct json *group = json_item(groups, i);
        if (vc_has_both_tiers(json_get(group, "networkTopology"))) {
            separate(v, both ? " " : "; ");
            hk_buf_addf(&v->why, "in subGroupPolicy '%.*s': %s.", HK_FMT(edit_str(group, "name")),
                        vc_both_tiers);
            return;
        }
    }
}

void vc_podgroup_validate(struct vc *v)
{
    const struct json *spec = json_get(v->q->obj, "spec");

    vc_podgroup_check_queue(v, edit_str(spec, "queue"));
    check_topologies(v, spec);
}
