// SPDX-License-Identifier: Apache-2.0
// Decodes pods. The tables follow the order of the Kubernetes documentation; they omit fields that
// no scheduler reads.
#include "api/pod.h"

#include "api/names.h"
#include "api/selector_priv.h"

static const char *const protocol_names[] = {"TCP", "UDP", "SCTP", NULL};
static const char *const phase_names[] = {"Pending", "Running", "Succeeded",
                                          "Failed",  "Unknown", NULL};
static const char *const toleration_names[] = {"Equal", "Exists", "Gt", "Lt", NULL};
static const char *const unsatisfiable_names[] = {"DoNotSchedule", "ScheduleAnyway", NULL};
const char *const api_preemption_names[] = {"PreemptLowerPriority", "Never", NULL};

const char *api_pod_phase_name(enum api_pod_phase phase)
{
    return phase_names[phase];
}

static const struct api_container_port port_init = {.host_ip = {"0.0.0.0", 7}};

static void port_check(struct field_reader *r, const struct field_path *p, const struct json *v,
                       void *base)
{
    struct api_container_port *port = base;

    if (port->host_ip.n == 0) {
        port->host_ip = port_init.host_ip;
    }
}

static const struct field port_fields[] = {
    FIELD_I32("hostPort", struct api_container_port, host_port, 0, 65535),
    FIELD_I32("containerPort", struct api_container_port, container_port, 0, 65535),
    FIELD("hostIP", field_str, struct api_container_port, host_ip),
    FIELD("protocol", field_enum, struct api_container_port, protocol, .sub = protocol_names),
    {0},
};

static const struct field_record port_record = {sizeof(struct api_container_port), &port_init,
                                                port_fields, port_check};

static const struct field container_resources_fields[] = {
    FIELD("requests", field_resources, struct api_container, requests),
    FIELD("limits", field_resources, struct api_container, limits),
    {0},
};

static const struct field_record container_resources_record = {.fields =
                                                                   container_resources_fields};

/* Only "Always", on an init container, has a meaning here. */
static void restart_read(struct field_reader *r, const struct field_path *p, const struct json *v,
                         const struct field *f, void *base)
{
    struct api_container *c = base;
    c->restart_always =
        field_want(r, p, v, JSON_STRING) && hk_str_is((struct hk_str){v->s, v->len}, "Always");
}

/* The API server fills a missing request from the limit; manifests read directly need it too. */
static void requests_default(struct field_reader *r, const struct field_path *p,
                             const struct json *v, void *base)
{
    struct api_container *c = base;
    const uint32_t room = c->requests.len + c->limits.len;
    struct api_resource *at;
    uint32_t len = c->requests.len;

    if (c->limits.len == 0) {
        return;
    }
    at = hk_arena_array(r->a, room, sizeof(*at));
    if (len > 0) {
        memcpy(at, c->requests.at, len * sizeof(*at));
    }
    for (uint32_t i = 0; i < c->limits.len; i++) {
        if (!api_resources_get(&c->requests, c->limits.at[i].name)) {
            at[len++] = c->limits.at[i];
        }
    }
    qsort(at, len, sizeof(*at), field_kv_cmp);
    c->requests = (struct api_resources){at, len, true};
}

static const struct field container_fields[] = {
    FIELD("name", field_str, struct api_container, name),
    FIELD("image", field_str, struct api_container, image),
    FIELD_IN("resources", &container_resources_record),
    FIELD("ports", field_list, struct api_container, ports, .sub = &port_record),
    FIELD("restartPolicy", restart_read, struct api_container, restart_always),
    {0},
};

static const struct field_record container_record = {sizeof(struct api_container), NULL,
                                                     container_fields, requests_default};

static const struct field pod_term_fields[] = {
    FIELD("labelSelector", selector_field, struct api_pod_term, labels),
    FIELD("namespaces", field_strs, struct api_pod_term, namespaces),
    FIELD("namespaceSelector", selector_field, struct api_pod_term, namespace_selector),
    FIELD("topologyKey", field_str, struct api_pod_term, topology_key),
    {0},
};

static const struct field_record pod_term_record = {sizeof(struct api_pod_term),
                                                    .fields = pod_term_fields};

static const struct field weighted_pod_term_fields[] = {
    FIELD_I32("weight", struct api_pod_term, weight, 0, 100),
    FIELD_IN("podAffinityTerm", &pod_term_record),
    {0},
};

static const struct field_record weighted_pod_term_record = {sizeof(struct api_pod_term),
                                                             .fields = weighted_pod_term_fields};

#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"
#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"

static const struct field pod_affinity_fields[] = {
    FIELD(REQUIRED, field_list, struct api_pod_affinity, required, .sub = &pod_term_record),
    FIELD(PREFERRED, field_list, struct api_pod_affinity, preferred,
          .sub = &weighted_pod_term_record),
    {0},
};

static const struct field_record pod_affinity_record = {sizeof(struct api_pod_affinity),
                                                        .fields = pod_affinity_fields};

static const struct field weighted_node_term_fields[] = {
    FIELD_I32("weight", struct api_node_term, weight, 0, 100),
    FIELD_IN("preference", &selector_node_term_record),
    {0},
};

static const struct field_record weighted_node_term_record = {sizeof(struct api_node_term),
                                                              .fields = weighted_node_term_fields};

static const struct field node_affinity_fields[] = {
    FIELD(REQUIRED, selector_field_node, struct api_node_affinity, required),
    FIELD(PREFERRED, field_list, struct api_node_affinity, preferred,
          .sub = &weighted_node_term_record),
    {0},
};

static const struct field_record node_affinity_record = {sizeof(struct api_node_affinity),
                                                         .fields = node_affinity_fields};

static const struct field affinity_fields[] = {
    FIELD("nodeAffinity", field_object, struct api_pod, node_affinity,
          .sub = &node_affinity_record),
    FIELD("podAffinity", field_object, struct api_pod, affinity, .sub = &pod_affinity_record),
    FIELD("podAntiAffinity", field_object, struct api_pod, anti_affinity,
          .sub = &pod_affinity_record),
    {0},
};

static const struct field_record affinity_record = {.fields = affinity_fields};

static const struct field toleration_fields[] = {
    FIELD("key", field_str, struct api_toleration, key),
    FIELD("operator", field_enum, struct api_toleration, op, .sub = toleration_names),
    FIELD("value", field_str, struct api_toleration, value),
    FIELD("effect", field_enum, struct api_toleration, effect, .sub = api_taint_effect_names),
    FIELD("tolerationSeconds", field_i64, struct api_toleration, seconds, .min = INT64_MIN,
          .max = INT64_MAX),
    FIELD("tolerationSeconds", field_present, struct api_toleration, has_seconds),
    {0},
};

static const struct field_record toleration_record = {sizeof(struct api_toleration),
                                                      .fields = toleration_fields};

/* Two values; the bool is true for the one that is not the default. */
static const char *const ignore_names[] = {"Honor", "Ignore", NULL};
static const char *const honor_names[] = {"Ignore", "Honor", NULL};

static void flag_read(struct field_reader *r, const struct field_path *p, const struct json *v,
                      const struct field *f, void *base)
{
    const struct field index = {.sub = f->sub};
    unsigned on = 0;

    field_enum(r, p, v, &index, &on);
    *(bool *)((char *)base + f->off) = on != 0;
}

static const struct field spread_fields[] = {
    FIELD_I32("maxSkew", struct api_spread, max_skew, 1, INT32_MAX),
    FIELD_I32("minDomains", struct api_spread, min_domains, 1, INT32_MAX),
    FIELD("topologyKey", field_str, struct api_spread, topology_key),
    FIELD("whenUnsatisfiable", field_enum, struct api_spread, when, .sub = unsatisfiable_names),
    FIELD("labelSelector", selector_field, struct api_spread, labels),
    FIELD("matchLabelKeys", field_strs, struct api_spread, match_label_keys),
    FIELD("nodeAffinityPolicy", flag_read, struct api_spread, ignore_affinity, .sub = ignore_names),
    FIELD("nodeTaintsPolicy", flag_read, struct api_spread, honor_taints, .sub = honor_names),
    {0},
};

static const struct api_spread spread_init = {.max_skew = 1, .min_domains = 1};

static const struct field_record spread_record = {sizeof(struct api_spread), &spread_init,
                                                  spread_fields, NULL};

static const struct field claim_source_fields[] = {
    FIELD("claimName", field_str, struct api_volume, claim_name, .required = true),
    {0},
};

static const struct field_record claim_source_record = {.fields = claim_source_fields};

static const struct field csi_source_fields[] = {
    FIELD("driver", field_str, struct api_volume, csi_driver),
    {0},
};

static const struct field_record csi_source_record = {.fields = csi_source_fields};

static const struct field volume_fields[] = {
    FIELD("name", field_str, struct api_volume, name),
    FIELD_IN("persistentVolumeClaim", &claim_source_record),
    FIELD_IN("csi", &csi_source_record),
    FIELD("ephemeral", field_present, struct api_volume, ephemeral),
    {0},
};

/* The source is the member other than name. */
static void volume_check(struct field_reader *r, const struct field_path *p, const struct json *v,
                         void *base)
{
    struct api_volume *volume = base;

    for (uint32_t i = 0; i < v->len; i++) {
        const struct json_member *m = &v->members[i];
        if (m->value.type == JSON_OBJECT) {
            volume->type = m->key;
            return;
        }
    }
}

static const struct field_record volume_record = {sizeof(struct api_volume), NULL, volume_fields,
                                                  volume_check};

static const struct field claim_fields[] = {
    FIELD("name", field_str, struct api_resource_claim, name),
    FIELD("resourceClaimName", field_str, struct api_resource_claim, claim_name),
    FIELD("resourceClaimTemplateName", field_str, struct api_resource_claim, template_name),
    {0},
};

static const struct field_record claim_record = {sizeof(struct api_resource_claim),
                                                 .fields = claim_fields};

static const struct field pod_resources_fields[] = {
    FIELD("requests", field_resources, struct api_pod, requests),
    FIELD("limits", field_resources, struct api_pod, limits),
    {0},
};

static const struct field_record pod_resources_record = {.fields = pod_resources_fields};

static const struct field gate_fields[] = {
    {.key = "name", .read = field_str},
    {0},
};

/* A list of the gates' names only, usable as api_strs. */
static const struct field_record gate_record = {sizeof(struct hk_str), .fields = gate_fields};

static const struct field spec_fields[] = {
    FIELD("schedulerName", field_str, struct api_pod, scheduler_name),
    FIELD("nodeName", field_str, struct api_pod, node_name),
    FIELD("priorityClassName", field_str, struct api_pod, priority_class_name),
    FIELD_I32("priority", struct api_pod, priority, INT32_MIN, INT32_MAX),
    FIELD("priority", field_present, struct api_pod, has_priority),
    FIELD("preemptionPolicy", field_enum, struct api_pod, preemption, .sub = api_preemption_names),
    FIELD("schedulingGates", field_list, struct api_pod, gates, .sub = &gate_record),
    FIELD("containers", field_list, struct api_pod, containers, .sub = &container_record),
    FIELD("initContainers", field_list, struct api_pod, init_containers, .sub = &container_record),
    FIELD("overhead", field_resources, struct api_pod, overhead),
    FIELD_IN("resources", &pod_resources_record),
    FIELD("nodeSelector", field_map, struct api_pod, node_selector),
    FIELD_IN("affinity", &affinity_record),
    FIELD("tolerations", field_list, struct api_pod, tolerations, .sub = &toleration_record),
    FIELD("topologySpreadConstraints", field_list, struct api_pod, spread, .sub = &spread_record),
    FIELD("volumes", field_list, struct api_pod, volumes, .sub = &volume_record),
    FIELD("resourceClaims", field_list, struct api_pod, claims, .sub = &claim_record),
    {0},
};

static const struct field_record spec_record = {.fields = spec_fields};

static const struct field status_requests_fields[] = {
    FIELD("requests", field_resources, struct api_container_status, requests),
    {0},
};

static const struct field_record status_requests_record = {.fields = status_requests_fields};

static const struct field container_status_fields[] = {
    FIELD("name", field_str, struct api_container_status, name),
    FIELD_IN("resources", &status_requests_record),
    FIELD("allocatedResources", field_resources, struct api_container_status, allocated),
    {0},
};

static const struct field_record container_status_record = {sizeof(struct api_container_status),
                                                            .fields = container_status_fields};

static const struct field claim_status_fields[] = {
    FIELD("name", field_str, struct api_resource_claim_status, name),
    FIELD("resourceClaimName", field_str, struct api_resource_claim_status, claim_name),
    {0},
};

static const struct field_record claim_status_record = {sizeof(struct api_resource_claim_status),
                                                        .fields = claim_status_fields};

static void resize_read(struct field_reader *r, const struct field_path *p, const struct json *v,
                        const struct field *f, void *base)
{
    struct api_pod *pod = base;
    pod->resize_infeasible =
        field_want(r, p, v, JSON_STRING) && hk_str_is((struct hk_str){v->s, v->len}, "Infeasible");
}

static const struct field status_fields[] = {
    FIELD("phase", field_enum_lax, struct api_pod, phase, .sub = phase_names,
          .min = API_POD_UNKNOWN),
    FIELD("nominatedNodeName", field_str, struct api_pod, nominated_node),
    FIELD("qosClass", field_str, struct api_pod, qos_class),
    FIELD("startTime", field_time, struct api_pod, start_ns),
    FIELD("conditions", field_conditions, struct api_pod, conditions),
    FIELD("containerStatuses", field_list, struct api_pod, statuses,
          .sub = &container_status_record),
    FIELD("initContainerStatuses", field_list, struct api_pod, init_statuses,
          .sub = &container_status_record),
    FIELD("resourceClaimStatuses", field_list, struct api_pod, claim_statuses,
          .sub = &claim_status_record),
    FIELD("resize", resize_read, struct api_pod, resize_infeasible),
    {0},
};

static const struct field_record status_record = {.fields = status_fields};

/* Kubernetes 1.33 moved this from status.resize to a condition; both are in use. */
static void pod_check(struct field_reader *r, const struct field_path *p, const struct json *v,
                      void *base)
{
    struct api_pod *pod = base;
    const struct api_condition *c = api_condition_get(&pod->conditions, HK_STR("PodResizePending"));

    if (pod->scheduler_name.n == 0) {
        pod->scheduler_name = HK_STR(API_SCHEDULER_NAME_DEFAULT);
    }
    if (c && hk_str_is(c->status, "True") && hk_str_is(c->reason, "Infeasible")) {
        pod->resize_infeasible = true;
    }
}

static const struct field pod_fields[] = {
    FIELD_META(struct api_pod),
    FIELD_IN("spec", &spec_record),
    FIELD_IN("status", &status_record),
    {0},
};

static const struct field_record pod_record = {sizeof(struct api_pod), NULL, pod_fields, pod_check};

int api_pod_decode(const struct json *doc, struct hk_arena *a, struct api_pod *ret,
                   struct hk_err *err)
{
    struct api_pod pod = {.raw = doc, .meta.line = doc->line};
    return field_decode(doc, &pod_record, a, &pod, ret, err);
}

/* ---- tolerations ---- */

bool api_toleration_covers(const struct api_toleration *tol, const struct api_taint *taint)
{
    return (tol->effect == API_EFFECT_ANY || tol->effect == taint->effect) &&
           (tol->key.n == 0 || hk_str_eq(tol->key, taint->key)) &&
           (tol->op == API_TOLERATE_EXISTS ||
            (tol->op == API_TOLERATE_EQUAL && hk_str_eq(tol->value, taint->value)));
}

bool api_pod_tolerates(const struct api_pod *pod, const struct api_taint *taint)
{
    for (uint32_t i = 0; i < pod->tolerations.len; i++) {
        if (api_toleration_covers(&pod->tolerations.at[i], taint)) {
            return true;
        }
    }
    return false;
}
