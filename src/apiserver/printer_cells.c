// SPDX-License-Identifier: Apache-2.0
// Cells of nodes, services, events and roles that combine several fields.
#include "apiserver/printer_priv.h"

#include <ctype.h>

/* ---- nodes ---- */

void print_node_status(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct hk_str ready = print_condition(obj, "Ready");

    hk_buf_adds(out, ready.n == 0 ? "Unknown" : hk_str_is(ready, "True") ? "Ready" : "NotReady");
    if (json_bool(json_at(obj, "spec.unschedulable"), false)) {
        hk_buf_adds(out, ",SchedulingDisabled");
    }
}

static int by_text(const void *a, const void *b)
{
    return hk_str_cmp(*(const struct hk_str *)a, *(const struct hk_str *)b);
}

void print_node_roles(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    static const char prefix[] = "node-role.kubernetes.io/";
    const struct json *labels = json_at(obj, "metadata.labels");
    HK_AUTO(hk_arena_fini) struct hk_arena scratch = {0};
    const uint32_t most = json_is(labels, JSON_OBJECT) ? labels->len : 0;
    struct hk_str *roles = hk_arena_array(&scratch, most, sizeof(*roles));
    uint32_t n = 0;

    for (uint32_t k = 0; k < most; k++) {
        const struct hk_str key = labels->members[k].key;
        if (hk_str_starts(key, prefix) && key.n > sizeof(prefix) - 1) {
            roles[n++] = (struct hk_str){key.s + sizeof(prefix) - 1, key.n - sizeof(prefix) + 1};
        } else if (hk_str_is(key, "kubernetes.io/role")) {
            roles[n] = json_str(&labels->members[k].value, HK_STR(""));
            n += roles[n].n > 0;
        }
    }
    qsort(roles, n, sizeof(*roles), by_text);
    for (uint32_t k = 0; k < n; k++) {
        if (k == 0 || !hk_str_eq(roles[k], roles[k - 1])) {
            print_join(roles[k], out);
        }
    }
    print_none(out);
}

static void write_address(const struct json *obj, const char *type, struct hk_buf *out)
{
    const struct json *list = json_list_at(obj, "status.addresses");

    for (uint32_t k = 0; k < list->len && out->len == 0; k++) {
        if (hk_str_is(json_str_field(&list->items[k], "type"), type)) {
            hk_buf_addstr(out, json_str_field(&list->items[k], "address"));
        }
    }
    print_none(out);
}

void print_node_internal_ip(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    write_address(obj, "InternalIP", out);
}

void print_node_external_ip(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    write_address(obj, "ExternalIP", out);
}

void print_node_kernel(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct hk_str kernel = json_str_at(obj, "status.nodeInfo.kernelVersion");
    const struct hk_str arch = json_str_at(obj, "status.nodeInfo.architecture");

    hk_buf_addstr(out, kernel.n > 0 ? kernel : HK_STR("<unknown>"));
    if (kernel.n > 0 && arch.n > 0) {
        hk_buf_addf(out, " (%.*s)", HK_FMT(arch));
    }
}

/* ---- services and endpoints ---- */

void print_service_ip(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct hk_str first =
        json_str(json_item(json_list_at(obj, "spec.clusterIPs"), 0), HK_STR(""));

    hk_buf_addstr(out, first.n > 0 ? first : json_str_at(obj, "spec.clusterIP"));
    print_none(out);
}

static void write_balancers(const struct json *obj, struct hk_buf *out)
{
    const struct json *list = json_list_at(obj, "status.loadBalancer.ingress");

    for (uint32_t k = 0; k < list->len; k++) {
        const struct hk_str ip = json_str_field(&list->items[k], "ip");
        print_join(ip.n > 0 ? ip : json_str_field(&list->items[k], "hostname"), out);
    }
}

void print_service_external(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct hk_str type = json_str_at(obj, "spec.type");
    const struct json *ips = json_list_at(obj, "spec.externalIPs");

    if (hk_str_is(type, "ExternalName")) {
        hk_buf_addstr(out, json_str_at(obj, "spec.externalName"));
        return;
    }
    if (hk_str_is(type, "LoadBalancer")) {
        write_balancers(obj, out);
    }
    for (uint32_t k = 0; k < ips->len; k++) {
        print_join(json_str(&ips->items[k], HK_STR("")), out);
    }
    if (out->len == 0 && hk_str_is(type, "LoadBalancer")) {
        hk_buf_adds(out, "<pending>");
    }
    print_none(out);
}

void print_service_ports(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct json *list = json_list_at(obj, "spec.ports");

    for (uint32_t k = 0; k < list->len; k++) {
        const struct json *p = &list->items[k];
        const int64_t node = json_int_at(p, "nodePort");
        print_join(HK_STR(""), out);
        hk_buf_addf(out, "%lld", (long long)json_int_at(p, "port"));
        if (node > 0) {
            hk_buf_addf(out, ":%lld", (long long)node);
        }
        hk_buf_addc(out, '/');
        hk_buf_addstr(out, json_str(json_get(p, "protocol"), HK_STR("TCP")));
    }
    print_none(out);
}

enum { SHOWN_ENDPOINTS = 3 };

static void write_more(uint32_t count, struct hk_buf *out)
{
    if (count > SHOWN_ENDPOINTS) {
        hk_buf_addf(out, " + %u more...", count - SHOWN_ENDPOINTS);
    }
    print_none(out);
}

static void write_endpoint(const struct json *address, const struct json *port, struct hk_buf *out)
{
    print_join(json_str_field(address, "ip"), out);
    if (port) {
        hk_buf_addf(out, ":%lld", (long long)json_int_at(port, "port"));
    }
}

void print_endpoints(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct json *subsets = json_list_at(obj, "subsets");
    uint32_t count = 0;

    for (uint32_t s = 0; s < subsets->len; s++) {
        const struct json *ports = json_list_at(&subsets->items[s], "ports");
        const struct json *addresses = json_list_at(&subsets->items[s], "addresses");
        const uint32_t pairs = HK_MAX(ports->len, 1u) * addresses->len;
        for (uint32_t k = 0; k < pairs; k++) {
            if (count++ < SHOWN_ENDPOINTS) {
                write_endpoint(&addresses->items[k % addresses->len],
                               json_item(ports, k / addresses->len), out);
            }
        }
    }
    write_more(count, out);
}

void print_slice_ports(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct json *list = json_list_at(obj, "ports");

    if (list->len == 0) {
        hk_buf_adds(out, "<unset>");
    }
    for (uint32_t k = 0; k < list->len && k < SHOWN_ENDPOINTS; k++) {
        print_join(HK_STR(""), out);
        hk_buf_addf(out, "%lld", (long long)json_int_at(&list->items[k], "port"));
    }
    write_more(list->len, out);
}

void print_slice_endpoints(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct json *list = json_list_at(obj, "endpoints");
    uint32_t count = 0;

    if (list->len == 0) {
        hk_buf_adds(out, "<unset>");
    }
    for (uint32_t k = 0; k < list->len; k++) {
        const struct json *addresses = json_list_at(&list->items[k], "addresses");
        for (uint32_t i = 0; i < addresses->len; i++) {
            if (count++ < SHOWN_ENDPOINTS) {
                print_join(json_str(&addresses->items[i], HK_STR("")), out);
            }
        }
    }
    write_more(count, out);
}

/* ---- ingresses ---- */

void print_ingress_hosts(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct json *list = json_list_at(obj, "spec.rules");

    for (uint32_t k = 0; k < list->len; k++) {
        const struct hk_str host = json_str_field(&list->items[k], "host");
        print_join(host.n > 0 ? host : HK_STR("*"), out);
    }
    if (list->len == 0) {
        hk_buf_addc(out, '*');
    }
}

void print_ingress_address(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    write_balancers(obj, out);
}

void print_ingress_ports(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    hk_buf_adds(out, json_list_at(obj, "spec.tls")->len > 0 ? "80, 443" : "80");
}

/* "Kind.group/name" of the parameters. */
void print_ingress_parameters(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct json *p = json_at(obj, "spec.parameters");
    const struct hk_str group = json_str_field(p, "apiGroup");

    if (p) {
        hk_buf_addf(out, "%.*s%s%.*s/%.*s", HK_FMT(json_str_field(p, "kind")),
                    group.n > 0 ? "." : "", HK_FMT(group), HK_FMT(json_str_field(p, "name")));
    }
    print_none(out);
}

/* ---- events ---- */

/* The first of the timestamps that is set. */
static void write_stamp(const struct json *obj, const char *const paths[3], int64_t now_ns,
                        struct hk_buf *out)
{
    const struct json *stamp = NULL;

    for (uint32_t k = 0; k < 3 && json_str(stamp, HK_STR("")).n == 0; k++) {
        stamp = json_at(obj, paths[k]);
    }
    print_age(stamp, now_ns, out);
}

void print_event_seen(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    static const char *const paths[] = {"series.lastObservedTime", "lastTimestamp", "eventTime"};

    write_stamp(obj, paths, now_ns, out);
}

void print_event_first(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    static const char *const paths[] = {"firstTimestamp", "eventTime", "lastTimestamp"};

    write_stamp(obj, paths, now_ns, out);
}

void print_event_object(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct hk_str kind = json_str_at(obj, "involvedObject.kind");
    const struct hk_str name = json_str_at(obj, "involvedObject.name");

    for (size_t k = 0; k < kind.n; k++) {
        hk_buf_addc(out, (char)tolower((unsigned char)kind.s[k]));
    }
    if (name.n > 0) {
        hk_buf_addc(out, '/');
        hk_buf_addstr(out, name);
    }
}

void print_event_source(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct hk_str component = json_str_at(obj, "source.component");
    const struct hk_str host = json_str_at(obj, "source.host");
    const bool old = component.n > 0 || host.n > 0;
    const struct hk_str instance = old ? host : json_str_field(obj, "reportingInstance");

    hk_buf_addstr(out, old ? component : json_str_field(obj, "reportingComponent"));
    if (instance.n > 0) {
        hk_buf_adds(out, ", ");
        hk_buf_addstr(out, instance);
    }
}

void print_event_count(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const int64_t series = json_int_at(obj, "series.count");
    const int64_t count = series > 0 ? series : json_int_at(obj, "count");

    hk_buf_addf(out, "%lld", (long long)HK_MAX(count, 1));
}

/* ---- addresses of services ---- */

void print_cidrs(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct json *list = json_list_at(obj, "spec.cidrs");

    for (uint32_t k = 0; k < list->len; k++) {
        print_join(json_str(&list->items[k], HK_STR("")), out);
    }
}

/* "services/ns/name", or "things.group/name". */
void print_address_parent(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct hk_str group = json_str_at(obj, "spec.parentRef.group");
    const struct hk_str ns = json_str_at(obj, "spec.parentRef.namespace");

    if (json_at(obj, "spec.parentRef")) {
        hk_buf_addf(out, "%.*s%s%.*s/%.*s%s%.*s",
                    HK_FMT(json_str_at(obj, "spec.parentRef.resource")), group.n > 0 ? "." : "",
                    HK_FMT(group), HK_FMT(ns), ns.n > 0 ? "/" : "",
                    HK_FMT(json_str_at(obj, "spec.parentRef.name")));
    }
    print_none(out);
}

/* ---- admission policies ---- */

void print_policy_kind(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    if (!json_at(obj, "spec.paramKind")) {
        hk_buf_adds(out, "<unset>");
        return;
    }
    hk_buf_addf(out, "%.*s/%.*s", HK_FMT(json_str_at(obj, "spec.paramKind.apiVersion")),
                HK_FMT(json_str_at(obj, "spec.paramKind.kind")));
}

/* "ns/name" of the Service behind an APIService. */
void print_api_service(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct json *service = json_at(obj, "spec.service");

    if (json_is(service, JSON_OBJECT)) {
        hk_buf_addf(out, "%.*s/%.*s", HK_FMT(json_str_field(service, "namespace")),
                    HK_FMT(json_str_field(service, "name")));
    } else {
        hk_buf_adds(out, "Local");
    }
}

/* "True", or the status and the reason: "False (MissingEndpoints)". */
void print_api_available(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct hk_str status = print_condition(obj, "Available");
    const struct json *list = json_list_at(obj, "status.conditions"), *one;

    if (status.n == 0) {
        hk_buf_adds(out, "Unknown");
        return;
    }
    hk_buf_addstr(out, status);
    for (uint32_t k = 0; !hk_str_is(status, "True") && (one = json_item(list, k)); k++) {
        if (hk_str_is(json_str_field(one, "type"), "Available")) {
            hk_buf_addf(out, " (%.*s)", HK_FMT(json_str_field(one, "reason")));
        }
    }
}

/* "ns/name", or the labels of the parameters. */
void print_policy_params(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct hk_str ns = json_str_at(obj, "spec.paramRef.namespace");
    const struct hk_str name = json_str_at(obj, "spec.paramRef.name");

    if (ns.n > 0) {
        hk_buf_addf(out, "%.*s/", HK_FMT(ns));
    }
    if (name.n > 0) {
        hk_buf_addstr(out, name);
    } else if (json_at(obj, "spec.paramRef.selector")) {
        print_map(json_at(obj, "spec.paramRef.selector.matchLabels"), out);
    } else {
        hk_buf_adds(out, "<unset>");
    }
}

/* ---- access ---- */

void print_role(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    hk_buf_addf(out, "%.*s/%.*s", HK_FMT(json_str_at(obj, "roleRef.kind")),
                HK_FMT(json_str_at(obj, "roleRef.name")));
}

static void write_subjects(const struct json *obj, const char *kind, struct hk_buf *out)
{
    const struct json *list = json_list_at(obj, "subjects");

    for (uint32_t k = 0; k < list->len; k++) {
        const struct json *s = &list->items[k];
        const struct hk_str ns = json_str_field(s, "namespace");
        if (!hk_str_is(json_str_field(s, "kind"), kind)) {
            continue;
        }
        if (out->len > 0) {
            hk_buf_adds(out, ", ");
        }
        if (ns.n > 0) {
            hk_buf_addf(out, "%.*s/", HK_FMT(ns));
        }
        hk_buf_addstr(out, json_str_field(s, "name"));
    }
}

void print_users(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    write_subjects(obj, "User", out);
}

void print_groups(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    write_subjects(obj, "Group", out);
}

void print_service_accounts(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    write_subjects(obj, "ServiceAccount", out);
}
