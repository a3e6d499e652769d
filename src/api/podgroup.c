// SPDX-License-Identifier: Apache-2.0
// Decodes PodGroups.
#include "api/podgroup.h"

#include "api/names.h"
#include "api/podgroup_priv.h"
#include "api/selector_priv.h"

static const char *const mode_names[] = {"hard", "soft", NULL};
static const char *const phase_names[] = {"",        "Pending",   "Running", "Unknown",
                                          "Inqueue", "Completed", NULL};

const char *api_podgroup_phase_name(enum api_podgroup_phase phase)
{
    return phase_names[phase];
}

static const struct field topology_fields[] = {
    FIELD("mode", field_enum, struct api_network_topology, mode, .sub = mode_names),
    FIELD_COUNT("highestTierAllowed", struct api_network_topology, highest_tier),
    FIELD("highestTierAllowed", field_present, struct api_network_topology, has_highest_tier),
    FIELD("highestTierName", field_str, struct api_network_topology, highest_tier_name),
    {0},
};

const struct field_record podgroup_topology_record = {sizeof(struct api_network_topology),
                                                      .fields = topology_fields};

static const struct field subgroup_fields[] = {
    FIELD("name", field_str, struct api_subgroup_policy, name),
    FIELD("networkTopology", field_object, struct api_subgroup_policy, topology,
          .sub = &podgroup_topology_record),
    FIELD("networkTopology", field_present, struct api_subgroup_policy, topology.present),
    FIELD_I32("subGroupSize", struct api_subgroup_policy, size, 1, INT32_MAX),
    FIELD_COUNT("minSubGroups", struct api_subgroup_policy, min_groups),
    FIELD("labelSelector", selector_field, struct api_subgroup_policy, labels),
    FIELD("matchLabelKeys", field_strs, struct api_subgroup_policy, match_label_keys),
    {0},
};

static const struct api_subgroup_policy subgroup_init = {.size = 1};

static const struct field_record subgroup_record = {sizeof(struct api_subgroup_policy),
                                                    &subgroup_init, subgroup_fields, NULL};

static void role_mins_read(struct field_reader *r, const struct field_path *p, const struct json *v,
                           const struct field *f, void *base)
{
    static const struct field min = FIELD_COUNT(NULL, struct api_role_min, min);
    struct api_podgroup *pg = base;

    if (!field_want(r, p, v, JSON_OBJECT)) {
        return;
    }
    struct api_role_min *at = hk_arena_array(r->a, v->len, sizeof(*at));
    for (uint32_t i = 0; i < v->len && r->rc == 0; i++) {
        const struct json_member *m = &v->members[i];
        const struct field_path step = {.up = p, .map_key = m->key};
        at[i] = (struct api_role_min){.role = m->key};
        field_i32(r, &step, &m->value, &min, &at[i]);
    }
    if (r->rc == 0) {
        qsort(at, v->len, sizeof(*at), field_kv_cmp);
        pg->min_task_member.at = at;
        pg->min_task_member.len = v->len;
    }
}

static const struct field spec_fields[] = {
    FIELD_COUNT("minMember", struct api_podgroup, min_member),
    FIELD("minTaskMember", role_mins_read, struct api_podgroup, min_task_member),
    FIELD("queue", field_str, struct api_podgroup, queue),
    FIELD("priorityClassName", field_str, struct api_podgroup, priority_class_name),
    FIELD("minResources", field_resources, struct api_podgroup, min_resources),
    FIELD("networkTopology", field_object, struct api_podgroup, topology,
          .sub = &podgroup_topology_record),
    FIELD("networkTopology", field_present, struct api_podgroup, topology.present),
    FIELD("subGroupPolicy", field_list, struct api_podgroup, subgroups, .sub = &subgroup_record),
    {0},
};

static const struct field_record spec_record = {.fields = spec_fields};

static const struct field status_fields[] = {
    FIELD("phase", field_enum_lax, struct api_podgroup, phase, .sub = phase_names,
          .min = API_PODGROUP_UNKNOWN),
    FIELD("conditions", field_conditions, struct api_podgroup, conditions),
    FIELD_COUNT("running", struct api_podgroup, running),
    FIELD_COUNT("succeeded", struct api_podgroup, succeeded),
    FIELD_COUNT("failed", struct api_podgroup, failed),
    {0},
};

static const struct field_record status_record = {.fields = status_fields};

static void podgroup_check(struct field_reader *r, const struct field_path *p, const struct json *v,
                           void *base)
{
    struct api_podgroup *pg = base;

    if (pg->queue.n == 0) {
        pg->queue = HK_STR(API_QUEUE_NAME_DEFAULT);
    }
}

static const struct field podgroup_fields[] = {
    FIELD_META(struct api_podgroup),
    FIELD_IN("spec", &spec_record),
    FIELD_IN("status", &status_record),
    {0},
};

static const struct field_record podgroup_record = {sizeof(struct api_podgroup), NULL,
                                                    podgroup_fields, podgroup_check};

int api_podgroup_decode(const struct json *doc, struct hk_arena *a, struct api_podgroup *ret,
                        struct hk_err *err)
{
    struct api_podgroup pg = {.raw = doc, .meta.line = doc->line};
    return field_decode(doc, &podgroup_record, a, &pg, ret, err);
}
