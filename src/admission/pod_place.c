// SPDX-License-Identifier: Apache-2.0
// Validation of fields that restrict where a pod may run: affinity, tolerations, spreading.
#include "admission/admission_priv.h"

/* ---- tolerations ---- */

static const char *const effects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute", NULL};

static void check_toleration(struct admission_request *q, const struct path *p,
                             const struct json *t)
{
    static const char *const operators[] = {"Equal", "Exists", NULL};
    const struct hk_str op = edit_str(t, "operator");
    const struct hk_str key = edit_str(t, "key");
    const struct path key_path = path_field(p, "key");
    const struct path op_path = path_field(p, "operator");
    const struct path effect = path_field(p, "effect");

    if (key.n > 0) {
        name_check(q, &key_path, key, NAME_QUALIFIED);
    } else if (!hk_str_is(op, "Exists")) {
        cause_invalid_str(q, &op_path, op,
                          "operator must be Exists when `key` is empty, which means \"match all "
                          "values and all keys\"");
    }
    if (edit_has(t, "tolerationSeconds") && !hk_str_is(edit_str(t, "effect"), "NoExecute")) {
        cause_invalid_str(q, &effect, edit_str(t, "effect"),
                          "effect must be 'NoExecute' when `tolerationSeconds` is set");
    }
    if (hk_str_is(op, "Exists") && edit_str(t, "value").n > 0) {
        cause_invalid(q, &op_path, t, "value must be empty when `operator` is 'Exists'");
    }
    if (op.n > 0) {
        cause_check_enum(q, p, t, "operator", operators);
    }
    if (edit_str(t, "effect").n > 0) {
        cause_check_enum(q, p, t, "effect", effects);
    }
}

void admit_pod_validate_tolerations(struct admission_request *q, const struct path *p,
                                    const struct json *list)
{
    for (uint32_t i = 0; i < edit_len(list); i++) {
        const struct path at = path_index(p, i);
        check_toleration(q, &at, json_item(list, i));
    }
}

/* ---- node affinity ---- */

static void check_node_requirement(struct admission_request *q, const struct path *p,
                                   const struct json *expr)
{
    const struct hk_str op = edit_str(expr, "operator");
    const uint32_t n = edit_len(json_get(expr, "values"));
    const struct path values = path_field(p, "values");
    const struct path op_path = path_field(p, "operator");
    const struct path key = path_field(p, "key");

    if (hk_str_is(op, "In") || hk_str_is(op, "NotIn")) {
        if (n == 0) {
            cause_required(q, &values, "must be specified when `operator` is 'In' or 'NotIn'");
        }
    } else if (hk_str_is(op, "Exists") || hk_str_is(op, "DoesNotExist")) {
        if (n > 0) {
            cause_forbidden(q, &values,
                            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        }
    } else if (hk_str_is(op, "Gt") || hk_str_is(op, "Lt")) {
        if (n != 1) {
            cause_required(q, &values,
                           "must be specified single value when `operator` is 'Lt' or 'Gt'");
        }
    } else {
        cause_invalid_str(q, &op_path, op, "not a valid selector operator");
    }
    name_check(q, &key, edit_str(expr, "key"), NAME_QUALIFIED);
}

static void check_node_term(struct admission_request *q, const struct path *p,
                            const struct json *term)
{
    const struct json *exprs = json_get(term, "matchExpressions");
    const struct path list = path_field(p, "matchExpressions");

    for (uint32_t i = 0; i < edit_len(exprs); i++) {
        const struct path at = path_index(&list, i);
        check_node_requirement(q, &at, json_item(exprs, i));
    }
}

static void check_weight(struct admission_request *q, const struct path *p,
                         const struct json *preference)
{
    const struct json *weight = json_get(preference, "weight");
    const struct path at = path_field(p, "weight");

    if (json_int(weight, 0) < 1 || json_int(weight, 0) > 100) {
        cause_invalid(q, &at, weight, "must be in the range 1-100");
    }
}

#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"
#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"

static void check_node_affinity(struct admission_request *q, const struct path *up,
                                const struct json *affinity)
{
    const struct path p = path_field(up, "nodeAffinity");
    const struct path required = path_field(&p, REQUIRED);
    const struct path terms = path_field(&required, "nodeSelectorTerms");
    const struct path preferred = path_field(&p, PREFERRED);
    const struct json *must = json_get(json_get(affinity, REQUIRED), "nodeSelectorTerms");
    const struct json *may = json_get(affinity, PREFERRED);

    if (edit_has(affinity, REQUIRED) && edit_len(must) == 0) {
        cause_required(q, &terms, "must have at least one node selector term");
    }
    for (uint32_t i = 0; i < edit_len(must); i++) {
        const struct path at = path_index(&terms, i);
        check_node_term(q, &at, json_item(must, i));
    }
    for (uint32_t i = 0; i < edit_len(may); i++) {
        const struct path at = path_index(&preferred, i);
        const struct path preference = path_field(&at, "preference");
        check_weight(q, &at, json_item(may, i));
        check_node_term(q, &preference, json_get(json_item(may, i), "preference"));
    }
}

/* ---- pod affinity ---- */

static void check_topology_key(struct admission_request *q, const struct path *up,
                               const struct json *obj)
{
    const struct path p = path_field(up, "topologyKey");
    const struct hk_str key = edit_str(obj, "topologyKey");

    if (key.n == 0) {
        cause_required(q, &p, "can not be empty");
    } else {
        name_check(q, &p, key, NAME_QUALIFIED);
    }
}

static void check_pod_term(struct admission_request *q, const struct path *p,
                           const struct json *term)
{
    const struct path labels = path_field(p, "labelSelector");
    const struct path spaces = path_field(p, "namespaceSelector");

    name_check_selector(q, &labels, json_get(term, "labelSelector"));
    name_check_selector(q, &spaces, json_get(term, "namespaceSelector"));
    check_topology_key(q, p, term);
}

static void check_pod_affinity(struct admission_request *q, const struct path *up,
                               const struct json *affinity, const char *key)
{
    const struct path p = path_field(up, key);
    const struct path required = path_field(&p, REQUIRED);
    const struct path preferred = path_field(&p, PREFERRED);
    const struct json *must = json_get(json_get(affinity, key), REQUIRED);
    const struct json *may = json_get(json_get(affinity, key), PREFERRED);

    for (uint32_t i = 0; i < edit_len(must); i++) {
        const struct path at = path_index(&required, i);
        check_pod_term(q, &at, json_item(must, i));
    }
    for (uint32_t i = 0; i < edit_len(may); i++) {
        const struct path at = path_index(&preferred, i);
        const struct path term = path_field(&at, "podAffinityTerm");
        check_weight(q, &at, json_item(may, i));
        check_pod_term(q, &term, json_get(json_item(may, i), "podAffinityTerm"));
    }
}

void admit_pod_validate_affinity(struct admission_request *q, const struct path *p,
                                 const struct json *affinity)
{
    check_node_affinity(q, p, json_get(affinity, "nodeAffinity"));
    check_pod_affinity(q, p, affinity, "podAffinity");
    check_pod_affinity(q, p, affinity, "podAntiAffinity");
}

/* ---- topology spread ---- */

void admit_pod_validate_spread(struct admission_request *q, const struct path *p,
                               const struct json *list)
{
    static const char *const actions[] = {"DoNotSchedule", "ScheduleAnyway", NULL};

    for (uint32_t i = 0; i < edit_len(list); i++) {
        const struct json *c = json_item(list, i);
        const struct path at = path_index(p, i);
        const struct path skew = path_field(&at, "maxSkew");
        const struct path labels = path_field(&at, "labelSelector");
        const struct path domains = path_field(&at, "minDomains");
        if (json_int(json_get(c, "maxSkew"), 0) <= 0) {
            cause_invalid(q, &skew, json_get(c, "maxSkew"), "must be greater than zero");
        }
        if (edit_has(c, "minDomains") && json_int(json_get(c, "minDomains"), 1) <= 0) {
            cause_invalid(q, &domains, json_get(c, "minDomains"), "must be greater than zero");
        }
        check_topology_key(q, &at, c);
        if (!edit_has(c, "whenUnsatisfiable")) {
            const struct path when = path_field(&at, "whenUnsatisfiable");
            cause_unsupported(q, &when, HK_STR(""), actions);
        }
        cause_check_enum(q, &at, c, "whenUnsatisfiable", actions);
        name_check_selector(q, &labels, json_get(c, "labelSelector"));
    }
}
