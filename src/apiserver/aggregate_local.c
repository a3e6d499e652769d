// SPDX-License-Identifier: Apache-2.0
// What this server publishes about itself: an APIService for each of its group versions, which says
// that it answers for them; and the ConfigMap and Role with which other API servers learn whose
// certificates to trust. Upstream: apiServicesToRegister, crdRegistrationController and
// clusterauthenticationtrust.
#include "apiserver/aggregate_priv.h"

#include "apiserver/discovery.h"
#include "codec/yaml.h"

#define MANAGED "kube-aggregator.kubernetes.io/automanaged"
#define TRUST_NAME "extension-apiserver-authentication"
#define TRUST_NS "kube-system"
#define FRONT_NAMES "[\"" AGGREGATE_FRONT_CN "\"]"

enum { CRD_GROUP_PRIORITY = 1000, CRD_VERSION_PRIORITY = 100 };

/* ---- APIServices of this server ---- */

/* version NULL: every version. Groups in the order of their preference. */
static const struct {
    const char *group, *version;
    int32_t group_priority, version_priority;
} priorities[] = {
    {"", NULL, 18000, 1},
    {"apps", NULL, 17800, 15},
    {"events.k8s.io", NULL, 17750, 15},
    {"authentication.k8s.io", NULL, 17700, 15},
    {"authorization.k8s.io", NULL, 17600, 15},
    {"autoscaling", "v2", 17500, 30},
    {"autoscaling", NULL, 17500, 15},
    {"batch", NULL, 17400, 15},
    {"certificates.k8s.io", NULL, 17300, 15},
    {"networking.k8s.io", NULL, 17200, 15},
    {"policy", NULL, 17100, 15},
    {"rbac.authorization.k8s.io", NULL, 17000, 15},
    {"storage.k8s.io", NULL, 16800, 15},
    {"apiextensions.k8s.io", NULL, 16700, 15},
    {"admissionregistration.k8s.io", NULL, 16700, 15},
    {"scheduling.k8s.io", NULL, 16600, 15},
    {"coordination.k8s.io", NULL, 16500, 15},
    {"node.k8s.io", NULL, 16300, 15},
    {"discovery.k8s.io", NULL, 16200, 15},
    {"flowcontrol.apiserver.k8s.io", NULL, 16100, 21},
    {"resource.k8s.io", NULL, 15900, 15},
};

/* A group version of this server. */
struct local_version {
    const char *group, *version;
    bool crd;
};
typedef HK_VEC(struct local_version) local_versions;

static void add_version(local_versions *all, const struct api_kind *k, bool crd)
{
    for (uint32_t i = 0; i < all->len; i++) {
        if (strcmp(all->at[i].group, k->group) == 0 &&
            strcmp(all->at[i].version, k->version) == 0) {
            return;
        }
    }
    if (strcmp(k->group, "apiregistration.k8s.io") != 0) {
        hk_vec_push(all, (struct local_version){k->group, k->version, crd});
    }
}

static void collect_versions(const struct aggregate *a, local_versions *ret)
{
    for (uint32_t k = 0; k < rest_kinds(a->o.rest); k++) {
        const struct rest_kind *row = rest_kind_at(a->o.rest, k);
        if (row->served) {
            add_version(ret, row->kind, row->crd);
        }
    }
    for (size_t k = 0; discovery_transient(k); k++) {
        add_version(ret, discovery_transient(k), false);
    }
}

static void set_priorities(const struct local_version *v, struct json *spec, struct hk_arena *mem)
{
    int32_t group = CRD_GROUP_PRIORITY, version = CRD_VERSION_PRIORITY;

    for (size_t k = 0; !v->crd && k < HK_LEN(priorities); k++) {
        if (strcmp(priorities[k].group, v->group) == 0 &&
            (!priorities[k].version || strcmp(priorities[k].version, v->version) == 0)) {
            group = priorities[k].group_priority;
            version = priorities[k].version_priority;
            break;
        }
    }
    json_set_int(spec, mem, "groupPriorityMinimum", group);
    json_set_int(spec, mem, "versionPriority", version);
}

static const struct api_kind *kind_of(const struct aggregate *a, const char *group,
                                      const char *plural)
{
    return rest_kind_find(a->o.rest, hk_str(group), HK_STR("v1"), hk_str(plural))->kind;
}

static void create_object(const struct aggregate *a, const struct api_kind *kind, const char *ns,
                          const struct json *doc)
{
    port_create(rest_port(a->o.rest), kind, hk_str(ns), doc, (struct port_sink){0});
}

static const char *name_of(const struct local_version *v, struct hk_arena *mem)
{
    return hk_arena_printf(mem, "%s.%s", v->version, v->group);
}

static void create_version(const struct aggregate *a, const struct local_version *v,
                           struct hk_arena *mem)
{
    struct json doc = json_make_object();

    json_set_cstr(&doc, mem, "apiVersion", "apiregistration.k8s.io/v1");
    json_set_cstr(&doc, mem, "kind", "APIService");
    struct json *meta = json_set_object(&doc, mem, "metadata");
    json_set_cstr(meta, mem, "name", name_of(v, mem));
    json_set_cstr(json_set_object(meta, mem, "labels"), mem, MANAGED, v->crd ? "true" : "onstart");
    struct json *spec = json_set_object(&doc, mem, "spec");
    json_set_cstr(spec, mem, "group", v->group);
    json_set_cstr(spec, mem, "version", v->version);
    set_priorities(v, spec, mem);
    create_object(a, kind_of(a, "apiregistration.k8s.io", "apiservices"), "", &doc);
}

/* An administrator may have deleted one of a built-in group: it comes back at the next start. */
static void create_missing(struct aggregate *a, const local_versions *all, struct hk_arena *mem)
{
    for (uint32_t k = 0; k < all->len; k++) {
        const struct local_version *v = &all->at[k];
        if ((v->crd || a->kinds == 0) &&
            !store_get(a->o.store, a->res, HK_STR(""), hk_str(name_of(v, mem)))) {
            create_version(a, v, mem);
        }
    }
}

struct sweep {
    struct aggregate *a;
    const local_versions *all;
};

static bool is_served(const local_versions *all, const struct json *object)
{
    for (uint32_t k = 0; k < all->len; k++) {
        if (hk_str_is(json_str_at(object, "spec.group"), all->at[k].group) &&
            hk_str_is(json_str_at(object, "spec.version"), all->at[k].version)) {
            return true;
        }
    }
    return false;
}

static bool on_local(void *ctx, const struct store_obj *o)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    const struct sweep *w = ctx;
    struct json doc;

    if (json_parse(hk_arena_str(&mem, o->text), 0, &mem, &doc, NULL) < 0 ||
        json_is(json_at(&doc, "spec.service"), JSON_OBJECT)) {
        return true;
    }
    const struct hk_str managed = json_str_field(json_at(&doc, "metadata.labels"), MANAGED);
    if (hk_str_is(managed, "true") && !is_served(w->all, &doc)) {
        port_delete(rest_port(w->a->o.rest), kind_of(w->a, "apiregistration.k8s.io", "apiservices"),
                    HK_STR(""), o->name, (struct port_sink){0});
    } else {
        aggregate_set_condition(w->a, &doc, true, "Local",
                                "Local APIServices are always available");
    }
    return true;
}

static void publish_versions(struct aggregate *a)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    const uint64_t kinds = rest_kinds_generation(a->o.rest) + 1;
    local_versions all = {0};

    if (a->kinds == kinds && !a->local_due) {
        return;
    }
    collect_versions(a, &all);
    create_missing(a, &all, &mem);
    store_scan(a->o.store, a->res, HK_STR(""), HK_STR(""), HK_STR(""), on_local,
               &(struct sweep){a, &all});
    a->kinds = kinds;
    a->local_due = false;
    hk_vec_fini(&all);
}

/* ---- trust ---- */

static struct json make_trust(const struct aggregate *a, struct hk_arena *mem)
{
    struct json data = json_make_object();

    json_set_cstr(&data, mem, "client-ca-file", a->o.client_ca_pem);
    json_set_cstr(&data, mem, "requestheader-allowed-names", FRONT_NAMES);
    json_set_cstr(&data, mem, "requestheader-client-ca-file", a->o.front_ca_pem);
    json_set_cstr(&data, mem, "requestheader-extra-headers-prefix", "[\"X-Remote-Extra-\"]");
    json_set_cstr(&data, mem, "requestheader-group-headers", "[\"X-Remote-Group\"]");
    json_set_cstr(&data, mem, "requestheader-uid-headers", "[\"X-Remote-Uid\"]");
    json_set_cstr(&data, mem, "requestheader-username-headers", "[\"X-Remote-User\"]");
    return data;
}

static void publish_trust(const struct aggregate *a, struct hk_arena *mem)
{
    const struct json *old =
        aggregate_read(a, a->config_res, HK_STR(TRUST_NS), HK_STR(TRUST_NAME), mem);
    const struct json data = make_trust(a, mem);
    struct json doc = json_make_object();

    if (old && json_equal(json_get(old, "data"), &data)) {
        return;
    }
    json_set_cstr(&doc, mem, "apiVersion", "v1");
    json_set_cstr(&doc, mem, "kind", "ConfigMap");
    struct json *meta = json_set_object(&doc, mem, "metadata");
    json_set_cstr(meta, mem, "name", TRUST_NAME);
    json_set_cstr(meta, mem, "namespace", TRUST_NS);
    json_set(&doc, mem, "data", data);
    if (old) {
        port_update(rest_port(a->o.rest), kind_of(a, "", "configmaps"), NULL, &doc,
                    (struct port_sink){0});
    } else {
        create_object(a, kind_of(a, "", "configmaps"), TRUST_NS, &doc);
    }
}

/* Grants the ConfigMap to those whom an administrator binds to it. */
static void publish_reader(const struct aggregate *a, struct hk_arena *mem)
{
    static const char role[] =
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: " TRUST_NAME
        "-reader, namespace: " TRUST_NS ", labels: {kubernetes.io/bootstrapping: rbac-defaults}, "
        "annotations: {rbac.authorization.kubernetes.io/autoupdate: 'true'}}, rules: [{apiGroups: "
        "[''], resources: [configmaps], resourceNames: [" TRUST_NAME
        "], verbs: [get, list, watch]}]}";
    struct yaml_docs docs = {0};

    if (!store_get(a->o.store, a->roles_res, HK_STR(TRUST_NS), HK_STR(TRUST_NAME "-reader")) &&
        yaml_parse(hk_str(role), 0, mem, &docs, NULL) == 0) {
        create_object(a, kind_of(a, "rbac.authorization.k8s.io", "roles"), TRUST_NS, &docs.at[0]);
    }
}

void aggregate_publish(struct aggregate *a)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};

    if (a->kinds == 0) {
        publish_reader(a, &mem);
    }
    if (a->kinds == 0 || aggregate_has_changed(a, a->config_res, a->config_rv)) {
        a->config_rv = store_rv(a->o.store);
        publish_trust(a, &mem);
    }
    publish_versions(a);
}
