// SPDX-License-Identifier: Apache-2.0
// Nodes: allocatable defaults to capacity, new nodes get a taint, taints and amounts are validated.
#include "admission/admission_priv.h"

#define TAINT_NOT_READY "node.kubernetes.io/not-ready"

/* podCIDR is the first of podCIDRs. */
static void default_cidrs(struct admission_request *q)
{
    struct json *spec = edit_get(q->obj, "spec");
    const struct hk_str one = edit_str(spec, "podCIDR");
    const struct hk_str first = json_str(json_item(json_get(spec, "podCIDRs"), 0), HK_STR(""));
    struct json list = json_make_array();

    if (one.n > 0 && !hk_str_eq(one, first)) {
        json_push(&list, q->mem, json_make_str(one));
        json_set(spec, q->mem, "podCIDRs", list);
    } else if (one.n == 0 && first.n > 0) {
        json_set_str(spec, q->mem, "podCIDR", first);
    }
}

int admit_node_default(struct admission_request *q, struct hk_err *err)
{
    struct json *status = edit_get(q->obj, "status");

    default_cidrs(q);
    if (status && edit_has(status, "capacity") && !edit_has(status, "allocatable")) {
        json_set(status, q->mem, "allocatable", *json_get(status, "capacity"));
    }
    return 0;
}

static bool is_ready(const struct json *node)
{
    const struct json *conditions = json_at(node, "status.conditions");

    for (uint32_t i = 0; i < edit_len(conditions); i++) {
        const struct json *c = json_item(conditions, i);
        if (hk_str_is(edit_str(c, "type"), "Ready")) {
            return hk_str_is(edit_str(c, "status"), "True");
        }
    }
    return false;
}

static bool has_taint(const struct json *taints, const char *key, const char *effect)
{
    for (uint32_t i = 0; i < edit_len(taints); i++) {
        const struct json *t = json_item(taints, i);
        if (hk_str_is(edit_str(t, "key"), key) && hk_str_is(edit_str(t, "effect"), effect)) {
            return true;
        }
    }
    return false;
}

/* A new node accepts no pods until its first good heartbeat. A node that is created as Ready, like
 * simulated nodes, needs no heartbeat first. */
int admit_node_taint(struct admission_request *q, struct hk_err *err)
{
    struct json taint = json_make_object();
    struct json *spec;

    if (is_ready(q->obj)) {
        return 0;
    }
    spec = json_need(q->obj, q->mem, "spec", JSON_OBJECT);
    if (!has_taint(json_get(spec, "taints"), TAINT_NOT_READY, "NoSchedule")) {
        json_set_cstr(&taint, q->mem, "key", TAINT_NOT_READY);
        json_set_cstr(&taint, q->mem, "effect", "NoSchedule");
        json_push(json_need(spec, q->mem, "taints", JSON_ARRAY), q->mem, taint);
    }
    return 0;
}

static bool admit_node_has_duplicate_taint(const struct json *taints, uint32_t i)
{
    const struct json *t = json_item(taints, i);

    for (uint32_t k = 0; k < i; k++) {
        const struct json *other = json_item(taints, k);
        if (hk_str_eq(edit_str(t, "key"), edit_str(other, "key")) &&
            hk_str_eq(edit_str(t, "effect"), edit_str(other, "effect"))) {
            return true;
        }
    }
    return false;
}

static void check_taints(struct admission_request *q, const struct json *taints)
{
    static const char *const effects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute", NULL};
    const struct path spec = path_field(NULL, "spec");
    const struct path list = path_field(&spec, "taints");

    for (uint32_t i = 0; i < edit_len(taints); i++) {
        const struct json *t = json_item(taints, i);
        const struct path at = path_index(&list, i);
        const struct path key = path_field(&at, "key");
        const struct path value = path_field(&at, "value");
        name_check(q, &key, edit_str(t, "key"), NAME_QUALIFIED);
        name_check(q, &value, edit_str(t, "value"), NAME_VALUE);
        if (cause_check_present(q, &at, t, "effect")) {
            cause_check_enum(q, &at, t, "effect", effects);
        }
        if (admit_node_has_duplicate_taint(taints, i)) {
            const struct path effect = path_field(&at, "effect");
            cause_duplicate(q, &effect,
                            hk_str(hk_arena_printf(q->mem, "%.*s:%.*s", HK_FMT(edit_str(t, "key")),
                                                   HK_FMT(edit_str(t, "effect")))));
        }
    }
}

static void admit_node_check_amounts(struct admission_request *q, const char *field)
{
    const struct json *list = json_get(json_get(q->obj, "status"), field);
    const struct path status = path_field(NULL, "status");
    const struct path p = path_field(&status, field);

    for (uint32_t i = 0; i < edit_size(list); i++) {
        const struct path at = path_key(&p, list->members[i].key);
        struct quantity v;
        if (amount_get(list, list->members[i].key, &v) && v.nano < 0) {
            cause_invalid(q, &at, &list->members[i].value, "must be greater than or equal to 0");
        }
    }
}

void admit_node_validate(struct admission_request *q)
{
    check_taints(q, json_at(q->obj, "spec.taints"));
    admit_node_check_amounts(q, "capacity");
    admit_node_check_amounts(q, "allocatable");
}
