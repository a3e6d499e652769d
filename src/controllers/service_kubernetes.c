// SPDX-License-Identifier: Apache-2.0
// The Service default/kubernetes, with its Endpoints and EndpointSlice: under this name pods find the
// API. And, where a DNS server runs, the Service kube-system/kube-dns, which programs look up to find
// it; it has no endpoints, because the server itself listens on its address. Embedded mode only; a
// real API server keeps its own. All are written again when somebody changes or deletes them.
#include "api/names.h"
#include "codec/yaml.h"
#include "controllers/kinds.h"
#include "controllers/pass.h"
#include "controllers/table.h"

#include <stdio.h>

#define NS "default"
#define NAME "kubernetes"
#define DNS_NS "kube-system"
#define DNS_NAME "kube-dns"

static bool service_kubernetes_is_dns(struct hk_str ns, struct hk_str name)
{
    return hk_str_is(ns, DNS_NS) && hk_str_is(name, DNS_NAME);
}

static void service_kubernetes_changed(struct ctl *c, const struct mirror_change *ch)
{
    const struct hk_str ns = mirror_ns(ch->mirror, ch->row);
    const struct hk_str name = mirror_name(ch->mirror, ch->row);

    if (service_kubernetes_is_dns(ns, name) || (hk_str_is(ns, NS) && hk_str_is(name, NAME))) {
        ctl_add(c, ns, name);
    }
}

static void service_kubernetes_open(struct ctl *c)
{
    ctl_add(c, HK_STR(NS), HK_STR(NAME));
    ctl_add(c, HK_STR(DNS_NS), HK_STR(DNS_NAME));
}

/* Everything in want is the same in have; members that only have has do not count. */
static bool service_kubernetes_fits(const struct json *want, const struct json *have)
{
    if (!json_is(want, JSON_OBJECT) || !json_is(have, JSON_OBJECT)) {
        return have && json_equal(want, have);
    }
    for (uint32_t i = 0; i < want->len; i++) {
        if (!service_kubernetes_fits(&want->members[i].value,
                                     json_get_str(have, want->members[i].key))) {
            return false;
        }
    }
    return true;
}

static void service_kubernetes_merge(struct json *to, const struct json *from, struct hk_arena *a)
{
    for (uint32_t i = 0; i < from->len; i++) {
        const struct json_member *m = &from->members[i];

        if (json_is(&m->value, JSON_OBJECT)) {
            struct json part = json_clone_as(json_get_str(to, m->key), JSON_OBJECT, a);

            service_kubernetes_merge(&part, &m->value, a);
            json_put(to, a, m->key, part);
        } else {
            json_put(to, a, m->key, m->value);
        }
    }
}

static void service_kubernetes_keep(struct ctl *c, struct pass *t, enum api_kind_id kind,
                                    const char *text)
{
    const struct mirror *m = ctl_mirror(c, kind);
    const uint32_t row = mirror_find(m, t->ns, t->name);
    struct yaml_docs docs = {0};
    struct json have;

    hk_assert(yaml_parse(hk_str(text), 0, t->mem, &docs, NULL) == 0);
    if (row == HK_NONE) {
        pass_create(t, api_kind(kind), &docs.at[0]);
        return;
    }
    have = mirror_read(m, row, t->mem);
    if (!service_kubernetes_fits(&docs.at[0], &have)) {
        struct json body = json_clone(&have, t->mem);

        service_kubernetes_merge(&body, &docs.at[0], t->mem);
        pass_update(t, api_kind(kind), &body);
    }
}

#define META(labels) "metadata: {namespace: " NS ", name: " NAME ", labels: {" labels "}}"

/* The address is that of the first creation: it cannot be changed. */
static void service_kubernetes_keep_dns(struct ctl *c, struct pass *t)
{
    const char *dns = ctl_conf(c)->dns;
    const bool exists = mirror_find(ctl_mirror(c, API_SERVICE), t->ns, t->name) != HK_NONE;

    if (!dns) {
        return;
    }
    service_kubernetes_keep(
        c, t, API_SERVICE,
        hk_arena_printf(t->mem,
                        "{apiVersion: v1, kind: Service, metadata: {namespace: " DNS_NS
                        ", name: " DNS_NAME ", labels: {k8s-app: kube-dns}}, "
                        "spec: {%s%s%s type: ClusterIP, ports: "
                        "[{name: dns, port: 53, protocol: UDP, targetPort: 53}, "
                        "{name: dns-tcp, port: 53, protocol: TCP, targetPort: 53}]}}",
                        exists ? "" : "clusterIP: ", exists ? "" : dns, exists ? "" : ","));
}

static void service_kubernetes_keep_api(struct ctl *c, struct pass *t)
{
    const struct ctl_conf *conf = ctl_conf(c);
    const char *family = "IPv4";

    if (!conf->api_address) {
        return;
    }
    service_kubernetes_keep(
        c, t, API_SERVICE,
        hk_arena_printf(
            t->mem,
            "{apiVersion: v1, kind: Service, " META(
                "component: apiserver, provider: kubernetes") ", spec: {type: "
                                                              "ClusterIP, sessionAffinity: None, "
                                                              "ports: [{name: https, protocol: "
                                                              "TCP, "
                                                              "port: 443, targetPort: %u}]}}",
            conf->api_port));
    if (strchr(conf->api_address, ':')) {
        family = "IPv6";
    }
    service_kubernetes_keep(
        c, t, API_ENDPOINTS,
        hk_arena_printf(
            t->mem,
            "{apiVersion: v1, kind: Endpoints, " META(
                "endpointslice.kubernetes.io/skip-mirror: 'true'") ", subsets: [{addresses: [{ip: "
                                                                   "'%s'}], "
                                                                   "ports: [{name: https, port: "
                                                                   "%u, protocol: TCP}]}]}",
            conf->api_address, conf->api_port));
    service_kubernetes_keep(
        c, t, API_ENDPOINT_SLICE,
        hk_arena_printf(
            t->mem,
            "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, " META(
                API_LABEL_SERVICE_NAME
                ": " NAME) ", addressType: %s, endpoints: [{addresses: ['%s'], conditions: {ready: "
                           "true}}], ports: [{name: https, port: %u, protocol: TCP}]}",
            family, conf->api_address, conf->api_port));
}

static void service_kubernetes_reconcile(struct ctl *c, struct pass *t)
{
    if (service_kubernetes_is_dns(t->ns, t->name)) {
        service_kubernetes_keep_dns(c, t);
    } else {
        service_kubernetes_keep_api(c, t);
    }
}

static const struct ctl_watch watches[] = {{&mirror_services, service_kubernetes_changed},
                                           {&mirror_endpoints, service_kubernetes_changed},
                                           {&mirror_endpoint_slices, service_kubernetes_changed},
                                           {0}};

const struct ctl_type ctl_service_kubernetes = {
    .name = "kubernetes-service-controller",
    .about = "keeps the Services kubernetes in the namespace default and kube-dns in kube-system",
    .watches = watches,
    .open = service_kubernetes_open,
    .reconcile = service_kubernetes_reconcile,
};
