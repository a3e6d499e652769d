// SPDX-License-Identifier: Apache-2.0
// Services: defaults and validation. No cluster IPs are allocated: there is no service network, and
// Volcano creates only headless services.
#include "admission/admission_priv.h"

static bool admit_service_is_type(const struct json *spec, const char *type)
{
    return hk_str_is(edit_str(spec, "type"), type);
}

static void default_ports(struct json *spec, struct hk_arena *a)
{
    struct json *ports = edit_get(spec, "ports");

    for (uint32_t i = 0; i < edit_len(ports); i++) {
        struct json *port = &ports->items[i];
        edit_default_str(port, a, "protocol", "TCP");
        if (!edit_has(port, "targetPort") && edit_has(port, "port")) {
            json_set(port, a, "targetPort", *json_get(port, "port"));
        }
    }
}

static void default_addresses(struct json *spec, struct hk_arena *a)
{
    const struct hk_str ip = edit_str(spec, "clusterIP");
    const struct json *first = json_item(json_get(spec, "clusterIPs"), 0);

    if (ip.n > 0 && !first) {
        json_push(json_need(spec, a, "clusterIPs", JSON_ARRAY), a, json_make_str(ip));
    } else if (ip.n == 0 && first) {
        json_set(spec, a, "clusterIP", *first);
    }
    if (!edit_has(spec, "ipFamilies")) {
        json_push(json_need(spec, a, "ipFamilies", JSON_ARRAY), a, json_make_str(HK_STR("IPv4")));
    }
    edit_default_str(spec, a, "ipFamilyPolicy", "SingleStack");
    edit_default_str(spec, a, "internalTrafficPolicy", "Cluster");
}

int admit_service_default(struct admission_request *q, struct hk_err *err)
{
    struct json *spec = json_need(q->obj, q->mem, "spec", JSON_OBJECT);

    edit_default_str(spec, q->mem, "type", "ClusterIP");
    edit_default_str(spec, q->mem, "sessionAffinity", "None");
    default_ports(spec, q->mem);
    if (!admit_service_is_type(spec, "ExternalName")) {
        default_addresses(spec, q->mem);
    }
    if (admit_service_is_type(spec, "NodePort") || admit_service_is_type(spec, "LoadBalancer")) {
        edit_default_str(spec, q->mem, "externalTrafficPolicy", "Cluster");
    }
    if (admit_service_is_type(spec, "LoadBalancer")) {
        edit_default_bool(spec, q->mem, "allocateLoadBalancerNodePorts", true);
    }
    if (q->verb == ADMIT_CREATE) {
        struct json status = json_make_object();
        json_set_object(&status, q->mem, "loadBalancer");
        json_set(q->obj, q->mem, "status", status);
    }
    return 0;
}

static void admit_service_check_port(struct admission_request *q, const struct path *p,
                                     const struct json *port, bool named)
{
    static const char *const protocols[] = {"SCTP", "TCP", "UDP", NULL};
    const struct path name = path_field(p, "name");
    const struct path number = path_field(p, "port");
    const int64_t n = json_int(json_get(port, "port"), 0);

    if (named && edit_str(port, "name").n == 0) {
        cause_required(q, &name, NULL);
    } else if (edit_str(port, "name").n > 0) {
        name_check(q, &name, edit_str(port, "name"), NAME_LABEL);
    }
    if (n < 1 || n > 65535) {
        cause_invalid(q, &number, json_get(port, "port"), "must be between 1 and 65535, inclusive");
    }
    cause_check_enum(q, p, port, "protocol", protocols);
}

static void check_ports(struct admission_request *q, const struct path *spec_path,
                        const struct json *ports)
{
    const struct path list = path_field(spec_path, "ports");

    for (uint32_t i = 0; i < edit_len(ports); i++) {
        const struct path at = path_index(&list, i);
        const struct path name = path_field(&at, "name");
        const struct hk_str text = edit_str(json_item(ports, i), "name");
        admit_service_check_port(q, &at, json_item(ports, i), edit_len(ports) > 1);
        for (uint32_t k = 0; k < i && text.n > 0; k++) {
            if (hk_str_eq(text, edit_str(json_item(ports, k), "name"))) {
                cause_duplicate(q, &name, text);
                break;
            }
        }
    }
}

void admit_service_validate(struct admission_request *q)
{
    static const char *const types[] = {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort",
                                        NULL};
    static const char *const affinities[] = {"ClientIP", "None", NULL};
    const struct json *spec = json_get(q->obj, "spec");
    const struct path p = path_field(NULL, "spec");
    const struct path selector = path_field(&p, "selector");
    const bool headless = hk_str_is(edit_str(spec, "clusterIP"), "None");

    cause_check_enum(q, &p, spec, "type", types);
    cause_check_enum(q, &p, spec, "sessionAffinity", affinities);
    if (admit_service_is_type(spec, "ExternalName")) {
        cause_check_present(q, &p, spec, "externalName");
    } else if (!headless) {
        cause_check_present(q, &p, spec, "ports");
    }
    check_ports(q, &p, json_get(spec, "ports"));
    name_check_labels(q, &selector, json_get(spec, "selector"));
    if (q->verb == ADMIT_UPDATE && edit_has(json_get(q->old, "spec"), "clusterIP") &&
        !admit_service_is_type(spec, "ExternalName")) {
        cause_check_immutable(q, &p, spec, json_get(q->old, "spec"), "clusterIP");
    }
}
