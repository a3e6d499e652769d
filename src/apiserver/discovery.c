// SPDX-License-Identifier: Apache-2.0
// Discovery documents. All served resources are collected and sorted once per request: by group in
// order of preference, version, plural. Each document then covers a range of that list. Clients
// cache the answers for minutes to hours, so the server does not.
#include "apiserver/discovery.h"

#define READ_WRITE "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"

typedef const char *const verb_list[9];

static verb_list verbs_all = {READ_WRITE};
static verb_list verbs_one_by_one = {"create", "delete", "get", "list", "patch", "update", "watch"};
static verb_list verbs_create = {"create"};
static verb_list verbs_get = {"get"};
static verb_list verbs_update = {"update"};
static verb_list verbs_state = {"get", "patch", "update"};
static verb_list verbs_stream = {"create", "get"};
static verb_list verbs_proxy = {"create", "delete", "get", "patch", "update"};

/* A resource name without a group means the first match: podgroups are Volcano's. Other groups follow
 * by name. */
static const char *const group_order[] = {
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.volcano.sh",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
};

/* Resources that are served but never stored. */
#define TRANSIENT(g, k, name, in_namespace)                                                        \
    {                                                                                              \
        .id = API_NKINDS, .group = (g), .version = "v1", .kind = (k), .plural = name "s",          \
        .singular = (name), .namespaced = (in_namespace)                                           \
    }

static const struct api_kind transient[] = {
    TRANSIENT("", "Binding", "binding", true),
    TRANSIENT("authentication.k8s.io", "TokenReview", "tokenreview", false),
    TRANSIENT("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreview", false),
    TRANSIENT("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreview", false),
    TRANSIENT("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreview", false),
    TRANSIENT("authorization.k8s.io", "SelfSubjectRulesReview", "selfsubjectrulesreview", false),
    TRANSIENT("authorization.k8s.io", "LocalSubjectAccessReview", "localsubjectaccessreview", true),
};

const struct api_kind *discovery_transient(size_t i)
{
    return i < HK_LEN(transient) ? &transient[i] : NULL;
}

/* Built-in kinds that belong to a category. */
static const struct {
    const char *group, *plural, *category; /* plural "": all of the group */
} categories[] = {
    {"", "pods", "all"},
    {"", "replicationcontrollers", "all"},
    {"", "services", "all"},
    {"apps", "daemonsets", "all"},
    {"apps", "deployments", "all"},
    {"apps", "replicasets", "all"},
    {"apps", "statefulsets", "all"},
    {"batch", "", "all"},
    {"autoscaling", "", "all"},
    {"apiextensions.k8s.io", "", "api-extensions"},
    {"apiregistration.k8s.io", "", "api-extensions"},
    {"admissionregistration.k8s.io", "", "api-extensions"},
};

/* kind NULL: that of the resource. group and version NULL: the enclosing ones. */
struct subresource {
    const char *name;
    const char *group, *version, *kind;
    const char *const *verbs;
};

/* Sorted by name, as in Kubernetes. The node serves those that the store does not. */
static const struct subresource subresources[] = {
    {"approval", NULL, NULL, NULL, verbs_state},
    {"attach", NULL, NULL, "PodAttachOptions", verbs_stream},
    {"binding", NULL, NULL, "Binding", verbs_create},
    {"ephemeralcontainers", NULL, NULL, NULL, verbs_state},
    {"eviction", "policy", "v1", "Eviction", verbs_create},
    {"exec", NULL, NULL, "PodExecOptions", verbs_stream},
    {"finalize", NULL, NULL, NULL, verbs_update},
    {"log", NULL, NULL, NULL, verbs_get},
    {"portforward", NULL, NULL, "PodPortForwardOptions", verbs_stream},
    {"proxy", NULL, NULL, NULL, verbs_proxy}, /* see kind_of_sub */
    {"resize", NULL, NULL, NULL, verbs_state},
    {"scale", "autoscaling", "v1", "Scale", verbs_state},
    {"status", NULL, NULL, NULL, verbs_state},
    {"token", "authentication.k8s.io", "v1", "TokenRequest", verbs_create},
};

struct resource {
    const struct api_kind *kind;
    const struct rest_kind *row;             /* NULL: not stored */
    const struct discovery_foreign *foreign; /* the only row of that group version; or NULL */
    uint32_t group_rank;
    int64_t version_rank;
};

struct resources {
    struct resource *at;
    uint32_t len, cap;
    struct hk_arena mem; /* of foreign rows */
};

/* A range of the list. */
struct range {
    uint32_t from, to;
};

/* ---- order ---- */

static uint32_t group_rank(const char *group)
{
    uint32_t k = 0;

    while (k < HK_LEN(group_order) && strcmp(group_order[k], group) != 0) {
        k++;
    }
    return k;
}

static const char *discovery_read_number(const char *s, int64_t *ret)
{
    *ret = 0;
    for (; *s >= '0' && *s <= '9' && *ret < 10000; s++) {
        *ret = *ret * 10 + (*s - '0');
    }
    return s;
}

/* v2 before v1 before v2beta1 before v1beta2 before v1alpha1 before others; smaller comes first. */
static int64_t version_rank(const char *version)
{
    enum { STABLE, BETA, ALPHA, ODD };
    const int64_t scale = 100000;
    int64_t major, minor = 0, level = STABLE;
    const char *s = version[0] == 'v' ? discovery_read_number(version + 1, &major) : version;

    if (s == version || s == version + 1) {
        return ODD * scale * scale;
    }
    if (strncmp(s, "beta", 4) == 0) {
        level = BETA;
        s = discovery_read_number(s + 4, &minor);
    } else if (strncmp(s, "alpha", 5) == 0) {
        level = ALPHA;
        s = discovery_read_number(s + 5, &minor);
    }
    if (*s != '\0') {
        return ODD * scale * scale;
    }
    return level * scale * scale + (scale - 1 - major) * scale + (scale - 1 - minor);
}

static int resource_cmp(const void *x, const void *y)
{
    const struct resource *a = x, *b = y;

    if (a->group_rank != b->group_rank) {
        return a->group_rank < b->group_rank ? -1 : 1;
    }
    int order = strcmp(a->kind->group, b->kind->group);
    if (order == 0 && a->version_rank != b->version_rank) {
        order = a->version_rank < b->version_rank ? -1 : 1;
    }
    order = order != 0 ? order : strcmp(a->kind->version, b->kind->version);
    return order != 0 ? order : strcmp(a->kind->plural, b->kind->plural);
}

static void discovery_add_resource(struct resources *all, const struct api_kind *kind,
                                   const struct rest_kind *row)
{
    hk_vec_push(all, (struct resource){.kind = kind,
                                       .row = row,
                                       .group_rank = group_rank(kind->group),
                                       .version_rank = version_rank(kind->version)});
}

static bool is_hidden(const struct discovery_input *in, const struct api_kind *kind)
{
    for (uint32_t k = 0; k < in->nforeign; k++) {
        if (strcmp(in->foreign[k].group, kind->group) == 0 &&
            strcmp(in->foreign[k].version, kind->version) == 0) {
            return true;
        }
    }
    return false;
}

static void add_foreign(struct resources *all, const struct discovery_foreign *f)
{
    struct api_kind *kind = hk_arena_zalloc(&all->mem, sizeof(*kind));

    kind->id = API_NKINDS;
    kind->group = f->group;
    kind->version = f->version;
    kind->plural = kind->kind = kind->singular = "";
    discovery_add_resource(all, kind, NULL);
    all->at[all->len - 1].foreign = f;
}

static void discovery_collect_resources(const struct discovery_input *in, struct resources *ret)
{
    for (uint32_t k = 0; k < rest_kinds(in->rest); k++) {
        const struct rest_kind *row = rest_kind_at(in->rest, k);
        if (row->served && !is_hidden(in, row->kind)) {
            discovery_add_resource(ret, row->kind, row);
        }
    }
    for (uint32_t k = 0; k < HK_LEN(transient); k++) {
        if (!is_hidden(in, &transient[k])) {
            discovery_add_resource(ret, &transient[k], NULL);
        }
    }
    for (uint32_t k = 0; k < in->nforeign; k++) {
        add_foreign(ret, &in->foreign[k]);
    }
    qsort(ret->at, ret->len, sizeof(*ret->at), resource_cmp);
}

static void resources_fini(struct resources *all)
{
    hk_vec_fini(all);
    hk_arena_fini(&all->mem);
}

static struct range group_at(const struct resources *all, uint32_t from)
{
    uint32_t to = from + 1;

    while (to < all->len && strcmp(all->at[to].kind->group, all->at[from].kind->group) == 0) {
        to++;
    }
    return (struct range){from, to};
}

static struct range version_at(const struct resources *all, uint32_t from)
{
    const struct range group = group_at(all, from);
    uint32_t to = from + 1;

    while (to < group.to && strcmp(all->at[to].kind->version, all->at[from].kind->version) == 0) {
        to++;
    }
    return (struct range){from, to};
}

/* Empty if there is no such group. */
static struct range find_group(const struct resources *all, struct hk_str group)
{
    for (uint32_t k = 0; k < all->len; k = group_at(all, k).to) {
        if (hk_str_is(group, all->at[k].kind->group)) {
            return group_at(all, k);
        }
    }
    return (struct range){0};
}

static struct range find_version(const struct resources *all, struct hk_str group,
                                 struct hk_str version)
{
    const struct range g = find_group(all, group);

    for (uint32_t k = g.from; k < g.to; k = version_at(all, k).to) {
        if (hk_str_is(version, all->at[k].kind->version)) {
            return version_at(all, k);
        }
    }
    return (struct range){0};
}

/* ---- properties of a resource ---- */

static const char *const *verbs_of(const struct resource *r)
{
    if (!r->row) {
        return verbs_create;
    }
    return r->row->flags & REST_NO_COLLECTION ? verbs_one_by_one : verbs_all;
}

static bool has_sub(const struct resource *r, const char *sub)
{
    static const char *const of_node[] = {"attach", "exec", "log", "portforward"};

    if (strcmp(sub, "proxy") == 0) {
        return r->kind->id == API_POD || r->kind->id == API_SERVICE || r->kind->id == API_NODE;
    }
    for (uint32_t k = 0; k < HK_LEN(of_node); k++) {
        if (strcmp(sub, of_node[k]) == 0) {
            return r->kind->id == API_POD;
        }
    }
    return r->row && rest_kind_has(r->row, sub);
}

static const char *category_of(const struct api_kind *kind)
{
    for (uint32_t k = 0; k < HK_LEN(categories); k++) {
        const char *plural = categories[k].plural;
        if (strcmp(categories[k].group, kind->group) == 0 &&
            (plural[0] == '\0' || strcmp(plural, kind->plural) == 0)) {
            return categories[k].category;
        }
    }
    return NULL;
}

/* ---- pieces of documents ---- */

static void comma(struct hk_buf *out)
{
    const char last = out->len > 0 ? out->data[out->len - 1] : '[';

    if (last != '[' && last != '{') {
        hk_buf_addc(out, ',');
    }
}

/* Opens an element of a list. */
static void discovery_open_object(struct hk_buf *out)
{
    comma(out);
    hk_buf_addc(out, '{');
}

static void discovery_write_words(const char *key, const char *const *words, uint32_t max,
                                  struct hk_buf *out)
{
    comma(out);
    hk_buf_addf(out, "\"%s\":[", key);
    for (uint32_t k = 0; k < max && words[k]; k++) {
        comma(out);
        json_write_str(hk_str(words[k]), out);
    }
    hk_buf_addc(out, ']');
}

static void discovery_write_json_list(const char *key, const struct json *list, struct hk_buf *out)
{
    if (json_is(list, JSON_ARRAY) && list->len > 0) {
        comma(out);
        hk_buf_addf(out, "\"%s\":", key);
        json_write(list, out);
    }
}

static void write_verbs(const char *const *verbs, struct hk_buf *out)
{
    discovery_write_words("verbs", verbs, 9, out);
}

/* Uses the definition's own names: it may list more than fit in the row. */
static void discovery_write_names(const struct resource *r, struct hk_buf *out)
{
    const struct api_kind *kind = r->kind;

    if (r->row && r->row->names) {
        discovery_write_json_list("shortNames", json_get(r->row->names, "shortNames"), out);
        discovery_write_json_list("categories", json_get(r->row->names, "categories"), out);
        return;
    }
    if (kind->short_names[0]) {
        discovery_write_words("shortNames", kind->short_names, HK_LEN(kind->short_names), out);
    }
    const char *category = category_of(kind);
    if (category) {
        discovery_write_words("categories", &category, 1, out);
    }
}

static void discovery_write_text(const char *key, const char *text, struct hk_buf *out)
{
    comma(out);
    hk_buf_addf(out, "\"%s\":", key);
    json_write_str(hk_str(text), out);
}

static void write_group_version(const struct api_kind *kind, struct hk_buf *out)
{
    comma(out);
    hk_buf_adds(out, "\"groupVersion\":\"");
    api_kind_write_version(kind, out);
    hk_buf_addc(out, '"');
}

/* Writes each subresource of the resource in the form of the document. */
static void discovery_write_subs(const struct resource *r,
                                 void (*write)(const struct resource *r,
                                               const struct subresource *sub, struct hk_buf *out),
                                 struct hk_buf *out)
{
    for (uint32_t k = 0; k < HK_LEN(subresources); k++) {
        if (has_sub(r, subresources[k].name)) {
            write(r, &subresources[k], out);
        }
    }
}

static const char *kind_of_sub(const struct resource *r, const struct subresource *sub)
{
    if (strcmp(sub->name, "proxy") == 0) {
        return r->kind->id == API_POD    ? "PodProxyOptions"
               : r->kind->id == API_NODE ? "NodeProxyOptions"
                                         : "ServiceProxyOptions";
    }
    return sub->kind ? sub->kind : r->kind->kind;
}

/* ---- documents per group ---- */

static void write_sub(const struct resource *r, const struct subresource *sub, struct hk_buf *out)
{
    comma(out);
    hk_buf_addf(out, "{\"name\":\"%s/%s\",\"singularName\":\"\",\"namespaced\":%s", r->kind->plural,
                sub->name, r->kind->namespaced ? "true" : "false");
    if (sub->group) {
        discovery_write_text("group", sub->group, out);
        discovery_write_text("version", sub->version, out);
    }
    discovery_write_text("kind", kind_of_sub(r, sub), out);
    write_verbs(sub->verbs, out);
    hk_buf_addc(out, '}');
}

static void write_resource(const struct resource *r, struct hk_buf *out)
{
    discovery_open_object(out);
    discovery_write_text("name", r->kind->plural, out);
    discovery_write_text("singularName", r->kind->singular, out);
    hk_buf_addf(out, ",\"namespaced\":%s", r->kind->namespaced ? "true" : "false");
    discovery_write_text("kind", r->kind->kind, out);
    write_verbs(verbs_of(r), out);
    discovery_write_names(r, out);
    hk_buf_addc(out, '}');
    discovery_write_subs(r, write_sub, out);
}

static bool write_resource_list(const struct resources *all, struct range v, struct hk_buf *out)
{
    if (v.from == v.to || all->at[v.from].foreign) {
        return false;
    }
    hk_buf_adds(out, "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\"");
    write_group_version(all->at[v.from].kind, out);
    hk_buf_adds(out, ",\"resources\":[");
    for (uint32_t k = v.from; k < v.to; k++) {
        write_resource(&all->at[k], out);
    }
    hk_buf_adds(out, "]}");
    return true;
}

/* The members of a GroupVersionForDiscovery. */
static void write_version(const struct api_kind *kind, struct hk_buf *out)
{
    write_group_version(kind, out);
    discovery_write_text("version", kind->version, out);
}

/* The members of an APIGroup. */
static void write_group(const struct resources *all, struct range g, struct hk_buf *out)
{
    discovery_write_text("name", all->at[g.from].kind->group, out);
    hk_buf_adds(out, ",\"versions\":[");
    for (uint32_t k = g.from; k < g.to; k = version_at(all, k).to) {
        discovery_open_object(out);
        write_version(all->at[k].kind, out);
        hk_buf_addc(out, '}');
    }
    hk_buf_adds(out, "],\"preferredVersion\":{");
    write_version(all->at[g.from].kind, out);
    hk_buf_addc(out, '}');
}

static bool write_one_group(const struct resources *all, struct range g, struct hk_buf *out)
{
    if (g.from == g.to) {
        return false;
    }
    hk_buf_adds(out, "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\"");
    write_group(all, g, out);
    hk_buf_addc(out, '}');
    return true;
}

static void write_group_list(const struct resources *all, struct hk_buf *out)
{
    hk_buf_adds(out, "{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\",\"groups\":[");
    for (uint32_t k = find_group(all, HK_STR("")).to; k < all->len; k = group_at(all, k).to) {
        discovery_open_object(out);
        write_group(all, group_at(all, k), out);
        hk_buf_addc(out, '}');
    }
    hk_buf_adds(out, "]}");
}

static void write_core_versions(struct hk_buf *out)
{
    hk_buf_adds(out, "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"],"
                     "\"serverAddressByClientCIDRs\":["
                     "{\"clientCIDR\":\"0.0.0.0/0\",\"serverAddress\":\"\"}]}");
}

/* ---- the paths of the server ---- */

static void write_path(const char *path, const char *group, const char *version, struct hk_buf *out)
{
    comma(out);
    hk_buf_addf(out, "\"%s%s%s%s%s\"", path, group[0] ? "/" : "", group, version[0] ? "/" : "",
                version);
}

static void write_paths(const struct resources *all, struct hk_buf *out)
{
    static const char *const others[] = {"/healthz",    "/livez",  "/metrics", "/openapi/v2",
                                         "/openapi/v3", "/readyz", "/version"};

    hk_buf_adds(out, "{\"paths\":[");
    write_path("/api", "", "", out);
    write_path("/api", "", "v1", out);
    write_path("/apis", "", "", out);
    for (uint32_t k = find_group(all, HK_STR("")).to; k < all->len; k = group_at(all, k).to) {
        const char *group = all->at[k].kind->group;
        write_path("/apis", group, "", out);
        for (uint32_t i = k; i < group_at(all, k).to; i = version_at(all, i).to) {
            write_path("/apis", group, all->at[i].kind->version, out);
        }
    }
    for (size_t k = 0; k < HK_LEN(others); k++) {
        write_path(others[k], "", "", out);
    }
    hk_buf_adds(out, "]}");
}

/* ---- the aggregated form ---- */

static void write_response_kind(const char *group, const char *version, const char *kind,
                                struct hk_buf *out)
{
    hk_buf_adds(out, ",\"responseKind\":{");
    discovery_write_text("group", group ? group : "", out);
    discovery_write_text("version", version ? version : "", out);
    discovery_write_text("kind", kind, out);
    hk_buf_addc(out, '}');
}

static void write_whole_sub(const struct resource *r, const struct subresource *sub,
                            struct hk_buf *out)
{
    discovery_open_object(out);
    discovery_write_text("subresource", sub->name, out);
    write_response_kind(sub->group, sub->version, kind_of_sub(r, sub), out);
    write_verbs(sub->verbs, out);
    hk_buf_addc(out, '}');
}

static void write_whole_resource(const struct resource *r, struct hk_buf *out)
{
    discovery_open_object(out);
    discovery_write_text("resource", r->kind->plural, out);
    write_response_kind(NULL, NULL, r->kind->kind, out);
    discovery_write_text("scope", r->kind->namespaced ? "Namespaced" : "Cluster", out);
    discovery_write_text("singularResource", r->kind->singular, out);
    write_verbs(verbs_of(r), out);
    discovery_write_names(r, out);
    hk_buf_adds(out, ",\"subresources\":[");
    discovery_write_subs(r, write_whole_sub, out);
    hk_buf_adds(out, "]}");
}

/* ---- resources of another server, from its APIResourceList ---- */

static void write_foreign_kind(const struct json *r, struct hk_buf *out)
{
    hk_buf_adds(out, ",\"responseKind\":{\"group\":");
    json_write_str(json_str_field(r, "group"), out);
    hk_buf_adds(out, ",\"version\":");
    json_write_str(json_str_field(r, "version"), out);
    hk_buf_adds(out, ",\"kind\":");
    json_write_str(json_str_field(r, "kind"), out);
    hk_buf_addc(out, '}');
}

static void write_foreign_list(const struct json *r, const char *key, struct hk_buf *out)
{
    const struct json *list = json_get(r, key), *one;

    hk_buf_addf(out, ",\"%s\":[", key);
    for (uint32_t k = 0; (one = json_item(list, k)); k++) {
        comma(out);
        json_write_str(json_str(one, HK_STR("")), out);
    }
    hk_buf_addc(out, ']');
}

/* The part of "pods/log" behind "pods/"; "" for other resources. */
static struct hk_str sub_of(struct hk_str name, struct hk_str resource)
{
    return name.n > resource.n + 1 && name.s[resource.n] == '/' &&
                   hk_str_eq((struct hk_str){name.s, resource.n}, resource)
               ? (struct hk_str){name.s + resource.n + 1, name.n - resource.n - 1}
               : HK_STR("");
}

static void write_foreign_subs(const struct json *list, struct hk_str resource, struct hk_buf *out)
{
    const struct json *one;

    hk_buf_adds(out, ",\"subresources\":[");
    for (uint32_t k = 0; (one = json_item(list, k)); k++) {
        const struct hk_str sub = sub_of(json_str_field(one, "name"), resource);
        if (sub.n > 0) {
            discovery_open_object(out);
            hk_buf_adds(out, "\"subresource\":");
            json_write_str(sub, out);
            write_foreign_kind(one, out);
            hk_buf_adds(out, ",\"acceptedTypes\":[]");
            write_foreign_list(one, "verbs", out);
            hk_buf_addc(out, '}');
        }
    }
    hk_buf_addc(out, ']');
}

static void write_foreign_resource(const struct json *list, const struct json *r,
                                   struct hk_buf *out)
{
    const struct json *inside = json_get(r, "namespaced");
    const struct hk_str name = json_str_field(r, "name");

    discovery_open_object(out);
    hk_buf_adds(out, "\"resource\":");
    json_write_str(name, out);
    write_foreign_kind(r, out);
    hk_buf_addf(out, ",\"scope\":\"%s\",\"singularResource\":",
                json_is(inside, JSON_BOOL) && inside->b ? "Namespaced" : "Cluster");
    json_write_str(json_str_field(r, "singularName"), out);
    write_foreign_list(r, "verbs", out);
    write_foreign_list(r, "shortNames", out);
    write_foreign_list(r, "categories", out);
    write_foreign_subs(list, name, out);
    hk_buf_addc(out, '}');
}

static void write_foreign_version(const struct discovery_foreign *f, struct hk_buf *out)
{
    const struct json *one;

    discovery_open_object(out);
    discovery_write_text("version", f->version, out);
    hk_buf_addf(out, ",\"freshness\":\"%s\",\"resources\":[", f->stale ? "Stale" : "Current");
    for (uint32_t k = 0; (one = json_item(f->resources, k)); k++) {
        const struct hk_str name = json_str_field(one, "name");
        if (name.n > 0 && !memchr(name.s, '/', name.n)) {
            write_foreign_resource(f->resources, one, out);
        }
    }
    hk_buf_adds(out, "]}");
}

static void write_whole_version(const struct resources *all, struct range v, struct hk_buf *out)
{
    if (all->at[v.from].foreign) {
        write_foreign_version(all->at[v.from].foreign, out);
        return;
    }
    discovery_open_object(out);
    discovery_write_text("version", all->at[v.from].kind->version, out);
    hk_buf_adds(out, ",\"freshness\":\"Current\",\"resources\":[");
    for (uint32_t k = v.from; k < v.to; k++) {
        write_whole_resource(&all->at[k], out);
    }
    hk_buf_adds(out, "]}");
}

static void write_whole(const struct resources *all, struct range part, const char *version,
                        struct hk_buf *out)
{
    hk_buf_addf(out,
                "{\"kind\":\"APIGroupDiscoveryList\",\"apiVersion\":\"apidiscovery.k8s.io/%s\","
                "\"metadata\":{},\"items\":[",
                version);
    for (uint32_t k = part.from; k < part.to; k = group_at(all, k).to) {
        const struct range g = group_at(all, k);
        comma(out);
        hk_buf_adds(out, "{\"metadata\":{");
        if (all->at[k].kind->group[0] != '\0') {
            discovery_write_text("name", all->at[k].kind->group, out);
        }
        hk_buf_adds(out, "},\"versions\":[");
        for (uint32_t i = g.from; i < g.to; i = version_at(all, i).to) {
            write_whole_version(all, version_at(all, i), out);
        }
        hk_buf_adds(out, "]}");
    }
    hk_buf_adds(out, "]}");
}

/* The two versions hold the same fields. */
static const struct {
    const char *version, *type;
} whole_forms[] = {
    {"v2", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"},
    {"v2beta1", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"},
};

/* The aggregated form that a clause of Accept names; out of range if none. */
static uint32_t whole_form(struct hk_str clause)
{
    struct hk_str part, version = HK_STR("");
    bool group = false, as = false;

    while (hk_str_cut(&clause, ';', &part)) {
        part = hk_str_trim(part);
        group |= hk_str_is(part, "g=apidiscovery.k8s.io");
        as |= hk_str_is(part, "as=APIGroupDiscoveryList");
        if (hk_str_starts(part, "v=")) {
            version = (struct hk_str){part.s + 2, part.n - 2};
        }
    }
    uint32_t k = group && as ? 0 : HK_LEN(whole_forms);
    while (k < HK_LEN(whole_forms) && !hk_str_is(version, whole_forms[k].version)) {
        k++;
    }
    return k;
}

/* Clients list their preferred forms first and plain JSON last. */
static uint32_t find_form(struct hk_str accept)
{
    uint32_t form = HK_LEN(whole_forms);
    struct hk_str clause;

    while (form == HK_LEN(whole_forms) && hk_str_cut(&accept, ',', &clause)) {
        const struct hk_str plain = hk_str_trim(clause);
        if (hk_str_is(plain, "application/json") || hk_str_is(plain, "*/*")) {
            break;
        }
        form = hk_str_starts(plain, "application/json") ? whole_form(plain) : form;
    }
    return form;
}

static void write_root(const struct resources *all, bool core, struct hk_str accept,
                       struct hk_buf *body, const char **type)
{
    const uint32_t form = find_form(accept);
    const struct range group = find_group(all, HK_STR(""));

    if (form < HK_LEN(whole_forms)) {
        *type = whole_forms[form].type;
        write_whole(all, core ? group : (struct range){group.to, all->len},
                    whole_forms[form].version, body);
    } else if (core) {
        write_core_versions(body);
    } else {
        write_group_list(all, body);
    }
}

bool discovery_answer(const struct discovery_input *in, struct hk_str path, struct hk_str accept,
                      struct hk_buf *body, const char **type)
{
    HK_AUTO(resources_fini) struct resources all = {0};
    struct hk_str root, group, version = HK_STR("");

    if (hk_str_is(path, "/")) {
        discovery_collect_resources(in, &all);
        write_paths(&all, body);
        return true;
    }
    hk_str_cut(&path, '/', &root); /* the empty part before the first slash */
    if (!hk_str_cut(&path, '/', &root)) {
        return false;
    }
    const bool core = hk_str_is(root, "api");
    if (!core && !hk_str_is(root, "apis")) {
        return false;
    }
    discovery_collect_resources(in, &all);
    if (!hk_str_cut(&path, '/', &group)) {
        write_root(&all, core, accept, body, type);
        return true;
    }
    if (core) {
        return !path.s && write_resource_list(&all, find_version(&all, HK_STR(""), group), body);
    }
    if (group.n == 0) {
        return false;
    }
    if (!hk_str_cut(&path, '/', &version)) {
        return write_one_group(&all, find_group(&all, group), body);
    }
    return !path.s && write_resource_list(&all, find_version(&all, group, version), body);
}
