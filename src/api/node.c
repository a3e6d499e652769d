// SPDX-License-Identifier: Apache-2.0
// Decodes Nodes and HyperNodes.
#include "api/node.h"

#include "api/selector_priv.h"

const char *const api_taint_effect_names[] = {"", "NoSchedule", "PreferNoSchedule", "NoExecute",
                                              NULL};
static const char *const member_names[] = {"Node", "HyperNode", NULL};

static const struct field taint_fields[] = {
    FIELD("key", field_str, struct api_taint, key),
    FIELD("value", field_str, struct api_taint, value),
    FIELD("effect", field_enum, struct api_taint, effect, .sub = api_taint_effect_names,
          .required = true),
    {0},
};

static const struct field_record taint_record = {sizeof(struct api_taint), .fields = taint_fields};

static const struct field image_fields[] = {
    FIELD("names", field_strs, struct api_image, names),
    FIELD("sizeBytes", field_i64, struct api_image, size_bytes, .max = INT64_MAX),
    {0},
};

static const struct field_record image_record = {sizeof(struct api_image), .fields = image_fields};

static const struct field node_spec_fields[] = {
    FIELD("unschedulable", field_bool, struct api_node, unschedulable),
    FIELD("taints", field_list, struct api_node, taints, .sub = &taint_record),
    {0},
};

static const struct field_record node_spec_record = {.fields = node_spec_fields};

static const struct field node_status_fields[] = {
    FIELD("allocatable", field_resources, struct api_node, allocatable),
    FIELD("capacity", field_resources, struct api_node, capacity),
    FIELD("conditions", field_conditions, struct api_node, conditions),
    FIELD("images", field_list, struct api_node, images, .sub = &image_record),
    {0},
};

static const struct field_record node_status_record = {.fields = node_status_fields};

/* A node without allocatable offers its capacity, as the API server defaults it. */
static void node_check(struct field_reader *r, const struct field_path *p, const struct json *v,
                       void *base)
{
    struct api_node *node = base;

    if (!node->allocatable.present) {
        node->allocatable = node->capacity;
    }
}

static const struct field node_fields[] = {
    FIELD_META(struct api_node),
    FIELD_IN("spec", &node_spec_record),
    FIELD_IN("status", &node_status_record),
    {0},
};

static const struct field_record node_record = {sizeof(struct api_node), NULL, node_fields,
                                                node_check};

int api_node_decode(const struct json *doc, struct hk_arena *a, struct api_node *ret,
                    struct hk_err *err)
{
    struct api_node node = {.raw = doc, .meta.line = doc->line};
    return field_decode(doc, &node_record, a, &node, ret, err);
}

static const struct field exact_fields[] = {
    FIELD("name", field_str, struct api_hypernode_member, exact, .required = true),
    {0},
};

static const struct field_record exact_record = {.fields = exact_fields};

static const struct field regex_fields[] = {
    FIELD("pattern", field_str, struct api_hypernode_member, regex, .required = true),
    {0},
};

static const struct field_record regex_record = {.fields = regex_fields};

static const struct field member_selector_fields[] = {
    FIELD_IN("exactMatch", &exact_record),
    FIELD_IN("regexMatch", &regex_record),
    FIELD("labelMatch", selector_field, struct api_hypernode_member, labels),
    {0},
};

static void member_selector_check(struct field_reader *r, const struct field_path *p,
                                  const struct json *v, void *base)
{
    const struct api_hypernode_member *m = base;

    if ((m->exact.n > 0) + (m->regex.n > 0) + m->labels.present != 1) {
        field_fail(r, p, v, "want one of exactMatch, regexMatch, labelMatch");
    }
}

static const struct field_record member_selector_record = {.fields = member_selector_fields,
                                                           .check = member_selector_check};

static const struct field member_fields[] = {
    FIELD("type", field_enum, struct api_hypernode_member, type, .sub = member_names,
          .required = true),
    FIELD_IN("selector", &member_selector_record),
    {0},
};

static const struct field_record member_record = {sizeof(struct api_hypernode_member),
                                                  .fields = member_fields};

static const struct field hypernode_spec_fields[] = {
    {.key = "tier",
     .read = field_i32,
     .off = offsetof(struct api_hypernode, tier),
     .max = INT32_MAX,
     .required = true},
    FIELD("tierName", field_str, struct api_hypernode, tier_name),
    FIELD("members", field_list, struct api_hypernode, members, .sub = &member_record),
    {0},
};

static const struct field_record hypernode_spec_record = {.fields = hypernode_spec_fields};

static const struct field hypernode_status_fields[] = {
    FIELD("nodeCount", field_i64, struct api_hypernode, node_count, .max = INT64_MAX),
    {0},
};

static const struct field_record hypernode_status_record = {.fields = hypernode_status_fields};

static const struct field hypernode_fields[] = {
    FIELD_META(struct api_hypernode),
    FIELD_IN("spec", &hypernode_spec_record),
    FIELD_IN("status", &hypernode_status_record),
    {0},
};

static const struct field_record hypernode_record = {sizeof(struct api_hypernode),
                                                     .fields = hypernode_fields};

int api_hypernode_decode(const struct json *doc, struct hk_arena *a, struct api_hypernode *ret,
                         struct hk_err *err)
{
    struct api_hypernode hn = {.raw = doc, .meta.line = doc->line};
    return field_decode(doc, &hypernode_record, a, &hn, ret, err);
}
