// SPDX-License-Identifier: Apache-2.0
// Nodes, and HyperNodes that describe how near nodes are to each other.
#pragma once

#include "api/selector.h"

enum api_taint_effect {
    API_EFFECT_ANY, /* unset; in tolerations only */
    API_EFFECT_NO_SCHEDULE,
    API_EFFECT_PREFER_NO_SCHEDULE,
    API_EFFECT_NO_EXECUTE,
};

extern const char *const api_taint_effect_names[]; /* ended by NULL */

struct api_taint {
    struct hk_str key, value;
    enum api_taint_effect effect;
};

struct api_image {
    struct api_strs names;
    int64_t size_bytes;
};

struct api_node {
    const struct json *raw;
    struct api_meta meta;
    bool unschedulable;
    API_LIST(struct api_taint) taints;
    struct api_resources allocatable, capacity;
    struct api_conditions conditions;
    API_LIST(struct api_image) images;
};

int api_node_decode(const struct json *doc, struct hk_arena *a, struct api_node *ret,
                    struct hk_err *err) HK_CHECKED;

enum api_member_type { API_MEMBER_NODE, API_MEMBER_HYPERNODE };

/* At most one of exact, regex and labels is set; a member without selector selects nothing. */
struct api_hypernode_member {
    enum api_member_type type;
    struct hk_str exact, regex;
    struct api_selector labels; /* empty matches nothing here */
};

struct api_hypernode {
    const struct json *raw;
    struct api_meta meta;
    int32_t tier;
    struct hk_str tier_name;
    API_LIST(struct api_hypernode_member) members;
    int64_t node_count; /* status */
};

int api_hypernode_decode(const struct json *doc, struct hk_arena *a, struct api_hypernode *ret,
                         struct hk_err *err) HK_CHECKED;
