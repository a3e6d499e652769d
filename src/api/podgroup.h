// SPDX-License-Identifier: Apache-2.0
// PodGroups (scheduling.volcano.sh/v1beta1): the unit of gang scheduling.
#pragma once

#include "api/selector.h"

enum api_topology_mode { API_TOPOLOGY_HARD, API_TOPOLOGY_SOFT };

struct api_network_topology {
    bool present;
    enum api_topology_mode mode; /* hard when unset */
    bool has_highest_tier;
    int32_t highest_tier;
    struct hk_str highest_tier_name;
};

struct api_role_min {
    struct hk_str role;
    int32_t min;
};

struct api_subgroup_policy {
    struct hk_str name;
    struct api_network_topology topology;
    int32_t size;       /* subGroupSize, 1 when unset */
    int32_t min_groups; /* minSubGroups */
    struct api_selector labels;
    struct api_strs match_label_keys;
};

enum api_podgroup_phase {
    API_PODGROUP_NO_PHASE, /* unset */
    API_PODGROUP_PENDING,
    API_PODGROUP_RUNNING,
    API_PODGROUP_UNKNOWN,
    API_PODGROUP_INQUEUE,
    API_PODGROUP_COMPLETED,
};

const char *api_podgroup_phase_name(enum api_podgroup_phase phase);

struct api_podgroup {
    const struct json *raw;
    struct api_meta meta;
    int32_t min_member;
    API_LIST(struct api_role_min) min_task_member; /* sorted by role */
    struct hk_str queue;                           /* "default" when unset */
    struct hk_str priority_class_name;
    struct api_resources min_resources;
    struct api_network_topology topology;
    API_LIST(struct api_subgroup_policy) subgroups;

    enum api_podgroup_phase phase;
    struct api_conditions conditions;
    int32_t running, succeeded, failed;
};

int api_podgroup_decode(const struct json *doc, struct hk_arena *a, struct api_podgroup *ret,
                        struct hk_err *err) HK_CHECKED;
