// SPDX-License-Identifier: Apache-2.0
// Services: defaults and validation. The store chooses cluster IPs and node ports; here they are only
// kept over updates, and checked.
#include "admission/admission_priv.h"

#include <arpa/inet.h>

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

static bool admit_service_has_address(const struct json *spec)
{
    return !admit_service_is_type(spec, "ExternalName");
}

static bool admit_service_has_node_ports(const struct json *spec)
{
    return admit_service_is_type(spec, "NodePort") || admit_service_is_type(spec, "LoadBalancer");
}

/* A client that changes one of clusterIP and clusterIPs may leave the other as it was. */
static void admit_service_drop_stale_addresses(struct json *spec, const struct json *old)
{
    const bool same_list = json_equal(json_get(spec, "clusterIPs"), json_get(old, "clusterIPs"));

    if (edit_str(spec, "clusterIP").n > 0 && same_list &&
        !hk_str_eq(edit_str(spec, "clusterIP"), edit_str(old, "clusterIP"))) {
        json_del(spec, "clusterIPs");
    }
}

static void admit_service_keep_address(struct json *spec, const struct json *old,
                                       struct hk_arena *a)
{
    if (edit_str(spec, "clusterIP").n == 0 && edit_len(json_get(spec, "clusterIPs")) == 0 &&
        edit_has(old, "clusterIP")) {
        json_set(spec, a, "clusterIP", *json_get(old, "clusterIP"));
    }
}

/* The old port of the same number and protocol. */
static const struct json *admit_service_old_port(const struct json *old, const struct json *port)
{
    const struct json *ports = json_get(old, "ports");

    for (uint32_t i = 0; i < edit_len(ports); i++) {
        const struct json *p = json_item(ports, i);

        if (json_int(json_get(p, "port"), 0) == json_int(json_get(port, "port"), 0) &&
            hk_str_eq(edit_str(p, "protocol"), edit_str(port, "protocol"))) {
            return p;
        }
    }
    return NULL;
}

static void admit_service_keep_node_ports(struct json *spec, const struct json *old,
                                          struct hk_arena *a)
{
    struct json *ports = edit_get(spec, "ports");

    for (uint32_t i = 0; i < edit_len(ports); i++) {
        const struct json *was = admit_service_old_port(old, &ports->items[i]);

        if (!edit_has(&ports->items[i], "nodePort") && edit_has(was, "nodePort")) {
            json_set(&ports->items[i], a, "nodePort", *json_get(was, "nodePort"));
        }
    }
}

/* Without the address that the old type had, if the client has not set another one. */
static void admit_service_release_address(struct json *spec, const struct json *old)
{
    if (hk_str_eq(edit_str(spec, "clusterIP"), edit_str(old, "clusterIP"))) {
        json_del(spec, "clusterIP");
        json_del(spec, "clusterIPs");
    }
}

static void admit_service_release_node_ports(struct json *spec, const struct json *old)
{
    struct json *ports = edit_get(spec, "ports");

    for (uint32_t i = 0; i < edit_len(ports); i++) {
        const struct json *was = admit_service_old_port(old, &ports->items[i]);

        if (json_equal(json_get(&ports->items[i], "nodePort"), json_get(was, "nodePort"))) {
            json_del(&ports->items[i], "nodePort");
        }
    }
}

/* What the server has chosen stays when the client's new state does not name it, and goes with a
 * type that does not have it. Upstream: patchAllocatedValues, dropTypeDependentFields. */
static void admit_service_keep_allocated(struct json *spec, const struct json *old,
                                         struct hk_arena *a)
{
    admit_service_drop_stale_addresses(spec, old);
    if (admit_service_has_address(old) && admit_service_has_address(spec)) {
        admit_service_keep_address(spec, old, a);
    } else if (admit_service_has_address(old)) {
        admit_service_release_address(spec, old);
    }
    if (admit_service_has_node_ports(old) && admit_service_has_node_ports(spec)) {
        admit_service_keep_node_ports(spec, old, a);
    } else if (admit_service_has_node_ports(old)) {
        admit_service_release_node_ports(spec, old);
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
    if (q->verb == ADMIT_UPDATE) {
        admit_service_keep_allocated(spec, json_get(q->old, "spec"), q->mem);
    }
    if (admit_service_has_address(spec)) {
        default_addresses(spec, q->mem);
    }
    if (hk_str_is(edit_str(spec, "sessionAffinity"), "ClientIP")) {
        struct json *config = json_need(spec, q->mem, "sessionAffinityConfig", JSON_OBJECT);

        edit_default_int(json_need(config, q->mem, "clientIP", JSON_OBJECT), q->mem,
                         "timeoutSeconds", 10800);
    }
    if (admit_service_has_node_ports(spec)) {
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
    if (json_int(json_get(port, "nodePort"), 0) != 0 &&
        !admit_service_has_node_ports(json_get(q->obj, "spec"))) {
        const struct path node_port = path_field(p, "nodePort");

        cause_forbidden(q, &node_port, "may not be used when `type` is '%.*s'",
                        HK_FMT(edit_str(json_get(q->obj, "spec"), "type")));
    }
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

static void admit_service_check_addresses(struct admission_request *q, const struct path *p,
                                          const struct json *spec)
{
    const struct path list = path_field(p, "clusterIPs");
    const struct path first = path_index(&list, 0);
    const struct json *ips = json_get(spec, "clusterIPs");
    const struct hk_str ip = json_str(json_item(ips, 0), HK_STR(""));
    struct in6_addr parsed;

    if (!admit_service_has_address(spec)) {
        if (edit_len(ips) > 0 || edit_str(spec, "clusterIP").n > 0) {
            cause_forbidden(q, &list, "may not be set for ExternalName services");
        }
        return;
    }
    if (edit_len(ips) == 0) {
        return;
    }
    if (!hk_str_eq(ip, edit_str(spec, "clusterIP"))) {
        cause_invalid(q, &list, ips, "first value must match `clusterIP`");
    } else if (!hk_str_is(ip, "None")) {
        const char *text = hk_arena_str(q->mem, ip).s;

        if (inet_pton(AF_INET, text, &parsed) != 1 && inet_pton(AF_INET6, text, &parsed) != 1) {
            cause_invalid_str(q, &first, ip,
                              "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
        }
    }
}

static void admit_service_check_kept(struct admission_request *q, const struct path *p,
                                     const struct json *spec, const struct json *old)
{
    const struct path list = path_field(p, "clusterIPs");
    const struct path first = path_index(&list, 0);
    const struct hk_str was = edit_str(old, "clusterIP"), is = edit_str(spec, "clusterIP");

    if (was.n == 0 || !admit_service_has_address(spec) || !admit_service_has_address(old) ||
        hk_str_eq(was, is)) {
        return;
    }
    cause_invalid(q, &first, json_get(spec, "clusterIPs"),
                  is.n == 0 ? "primary clusterIP can not be unset" : "may not change once set");
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
    admit_service_check_addresses(q, &p, spec);
    if (q->verb == ADMIT_UPDATE) {
        admit_service_check_kept(q, &p, spec, json_get(q->old, "spec"));
    }
}
