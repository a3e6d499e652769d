// SPDX-License-Identifier: Apache-2.0
// The rows of kinds: those of the registry, kinds that are only stored, other versions of both, and
// kinds that CustomResourceDefinitions add at run time. A definition of a kind that already has a
// row (Volcano's own) sets the schema and columns of that row; the row stays when the definition is
// deleted.
#include "api/schema.h"
#include "store/rest_priv.h"

/* A row with private data of this file. Callers get its first member. */
struct row {
    struct rest_kind pub;
    struct api_kind own; /* for a kind that a definition added */
    struct rest_row_data *data;
    bool builtin;
};

static void note_resource(struct rest *r, uint32_t res)
{
    for (uint32_t i = 0; i < r->resources.len; i++) {
        if (r->resources.at[i] == res) {
            return;
        }
    }
    hk_vec_push(&r->resources, res);
    hk_vec_push(&r->seen, store_rv(r->store));
}

static struct row *row_add(struct rest *r, const struct api_kind *kind)
{
    struct row *row = hk_zalloc(sizeof(*row));

    if (kind) {
        row->builtin = true;
        row->pub.kind = kind;
        row->pub.flags = rest_table_flags(kind);
        row->pub.served = row->pub.storage = true;
        row->pub.res = store_res(r->store, hk_str(kind->group), hk_str(kind->plural));
        note_resource(r, row->pub.res);
    }
    hk_vec_push(&r->kinds, &row->pub);
    return row;
}

static struct row *row_find(const struct rest *r, struct hk_str group, struct hk_str version,
                            struct hk_str plural)
{
    for (uint32_t i = 0; i < r->kinds.len; i++) {
        const struct api_kind *k = r->kinds.at[i]->kind;
        if (hk_str_is(plural, k->plural) && hk_str_is(group, k->group) &&
            hk_str_is(version, k->version)) {
            return (struct row *)r->kinds.at[i];
        }
    }
    return NULL;
}

/* Adds another version of a stored kind. */
static void row_view(struct rest *r, const struct api_kind *kind, const struct rest_view *view)
{
    struct hk_str group, version;

    rest_view_of(view, &group, &version);
    const struct row *kept = row_find(r, group, version, hk_str(kind->plural));
    struct row *row = row_add(r, NULL);
    row->builtin = true;
    row->pub = kept->pub;
    row->pub.kind = kind;
    row->pub.view = view;
    row->pub.kept = &kept->pub;
    row->pub.storage = false;
}

void rest_kinds_init(struct rest *r)
{
    for (int id = 0; id < API_NKINDS; id++) {
        row_add(r, api_kind((enum api_kind_id)id));
    }
    const struct api_kind *more;
    for (size_t i = 0; (more = rest_table_kind(i)); i++) {
        row_add(r, more);
    }
    const struct rest_view *view;
    for (size_t i = 0; (more = rest_view_at(i, &view)); i++) {
        row_view(r, more, view);
    }
    r->kinds_generation = 1;
    r->namespaces = rest_kind_of(r, api_kind(API_NAMESPACE));
    r->pods = rest_kind_of(r, api_kind(API_POD));
    r->events = rest_kind_of(r, api_kind(API_EVENT));
    r->pdbs = rest_kind_of(r, api_kind(API_PDB));
    r->resource_quotas = rest_kind_of(r, api_kind(API_RESOURCE_QUOTA));
    r->webhooks_mutating = rest_kind_find(r, HK_STR("admissionregistration.k8s.io"), HK_STR("v1"),
                                          HK_STR("mutatingwebhookconfigurations"));
    r->webhooks_validating = rest_kind_find(r, HK_STR("admissionregistration.k8s.io"), HK_STR("v1"),
                                            HK_STR("validatingwebhookconfigurations"));
    static const char *const policies[] = {
        "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
        "validatingadmissionpolicies", "validatingadmissionpolicybindings"};
    for (size_t i = 0; i < HK_LEN(r->policy_kinds); i++) {
        r->policy_kinds[i] = rest_kind_find(r, HK_STR("admissionregistration.k8s.io"), HK_STR("v1"),
                                            hk_str(policies[i]));
    }
    r->policies_changed = true;
    r->accounts = rest_kind_of(r, api_kind(API_SERVICE_ACCOUNT));
    r->services = rest_kind_of(r, api_kind(API_SERVICE));
    r->config_maps = rest_kind_of(r, api_kind(API_CONFIGMAP));
    r->signing_requests = rest_kind_find(r, HK_STR("certificates.k8s.io"), HK_STR("v1"),
                                         HK_STR("certificatesigningrequests"));
    r->crds = rest_kind_find(r, HK_STR("apiextensions.k8s.io"), HK_STR("v1"),
                             HK_STR("customresourcedefinitions"));
}

static void row_data_free(struct rest_row_data *l)
{
    if (l) {
        rest_conversion_unref(l->conversion);
        schema_free(l->rules);
        hk_arena_fini(&l->mem);
        hk_free(l);
    }
}

void rest_kinds_free_replaced(struct rest *r)
{
    while (r->replaced.len > 0) {
        row_data_free(hk_vec_pop(&r->replaced));
    }
}

void rest_kinds_fini(struct rest *r)
{
    rest_kinds_free_replaced(r);
    for (uint32_t i = 0; i < r->kinds.len; i++) {
        struct row *row = (struct row *)r->kinds.at[i];
        row_data_free(row->data);
        if (!row->builtin) {
            hk_free((char *)row->own.group);
            hk_free((char *)row->own.version);
            hk_free((char *)row->own.kind);
            hk_free((char *)row->own.plural);
            hk_free((char *)row->own.singular);
            for (size_t k = 0; k < HK_LEN(row->own.short_names); k++) {
                hk_free((char *)row->own.short_names[k]);
            }
        }
        hk_free(row);
    }
    hk_vec_fini(&r->kinds);
    hk_vec_fini(&r->resources);
    hk_vec_fini(&r->seen);
    hk_vec_fini(&r->replaced);
}

/* ---- lookups ---- */

const struct rest_kind *rest_kind_find(const struct rest *r, struct hk_str group,
                                       struct hk_str version, struct hk_str plural)
{
    const struct row *row = row_find(r, group, version, plural);
    return row && row->pub.served ? &row->pub : NULL;
}

const struct rest_kind *rest_kind_by_name(const struct rest *r, struct hk_str api_version,
                                          struct hk_str kind)
{
    HK_AUTO(hk_buf_fini) struct hk_buf version = {0};

    for (uint32_t i = 0; i < r->kinds.len; i++) {
        const struct rest_kind *k = r->kinds.at[i];
        if (!k->served || !hk_str_is(kind, k->kind->kind)) {
            continue;
        }
        hk_buf_clear(&version);
        api_kind_write_version(k->kind, &version);
        if (hk_str_eq(api_version, hk_buf_str(&version))) {
            return k;
        }
    }
    return NULL;
}

const struct rest_kind *rest_kind_of(const struct rest *r, const struct api_kind *kind)
{
    for (uint32_t i = 0; i < r->kinds.len; i++) {
        if (r->kinds.at[i]->kind == kind) {
            return r->kinds.at[i];
        }
    }
    return rest_kind_find(r, hk_str(kind->group), hk_str(kind->version), hk_str(kind->plural));
}

const struct rest_kind *rest_kind_by_res(const struct rest *r, uint32_t res)
{
    const struct rest_kind *any = NULL;

    for (uint32_t i = 0; i < r->kinds.len; i++) {
        const struct rest_kind *k = r->kinds.at[i];
        if (k->res == res && (k->storage || !any)) {
            any = k;
        }
    }
    return any;
}

const struct rest_kind *rest_kind_at(const struct rest *r, uint32_t i)
{
    return r->kinds.at[i];
}

uint32_t rest_kinds(const struct rest *r)
{
    return r->kinds.len;
}

uint64_t rest_kinds_generation(const struct rest *r)
{
    return r->kinds_generation;
}

#define CONNECT_KIND(sub_, kind_)                                                                  \
    {                                                                                              \
        sub_,                                                                                      \
        {                                                                                          \
            .id = API_NKINDS, .group = "", .version = "v1", .kind = (kind_), .plural = "pods",     \
            .singular = "pod", .namespaced = true                                                  \
        }                                                                                          \
    }

static const struct {
    const char *sub;
    struct api_kind kind;
} connect_rows[] = {
    CONNECT_KIND("attach", "PodAttachOptions"),
    CONNECT_KIND("exec", "PodExecOptions"),
    CONNECT_KIND("portforward", "PodPortForwardOptions"),
    CONNECT_KIND("proxy", "PodProxyOptions"),
};

const struct api_kind *rest_connect_kind(const char *sub)
{
    for (size_t i = 0; i < HK_LEN(connect_rows); i++) {
        if (strcmp(connect_rows[i].sub, sub) == 0) {
            return &connect_rows[i].kind;
        }
    }
    return NULL;
}

bool rest_kind_has(const struct rest_kind *k, const char *sub)
{
    if (!strcmp(sub, "status")) {
        return k->kind->status;
    }
    if (!strcmp(sub, "scale")) {
        return (k->flags & REST_SCALE) || k->scale;
    }
    if (!strcmp(sub, "binding") || !strcmp(sub, "eviction") ||
        !strcmp(sub, "ephemeralcontainers") || !strcmp(sub, "resize") || rest_connect_kind(sub)) {
        return k->kind->id == API_POD;
    }
    if (!strcmp(sub, "token")) {
        return k->kind->id == API_SERVICE_ACCOUNT;
    }
    if (!strcmp(sub, "approval")) {
        return !strcmp(k->kind->plural, "certificatesigningrequests") &&
               !strcmp(k->kind->group, "certificates.k8s.io");
    }
    return !strcmp(sub, "finalize") && k->kind->id == API_NAMESPACE;
}

/* ---- definitions ---- */

static const char *rest_kinds_copy_str(const struct json *v, struct hk_str fallback)
{
    const struct hk_str s = json_str(v, fallback);
    return hk_strndup(s.s, s.n);
}

static struct row *row_define(struct rest *r, const struct json *spec, const struct json *version)
{
    const struct json *names = json_get(spec, "names");
    const struct json *words = json_get(names, "shortNames");
    struct row *row = row_add(r, NULL);
    struct api_kind *k = &row->own;

    k->id = API_NKINDS;
    k->group = rest_kinds_copy_str(json_get(spec, "group"), HK_STR(""));
    k->version = rest_kinds_copy_str(json_get(version, "name"), HK_STR(""));
    k->kind = rest_kinds_copy_str(json_get(names, "kind"), HK_STR(""));
    k->plural = rest_kinds_copy_str(json_get(names, "plural"), HK_STR(""));
    k->singular = rest_kinds_copy_str(json_get(names, "singular"), hk_str(k->kind));
    k->namespaced = hk_str_is(json_str(json_get(spec, "scope"), HK_STR("")), "Namespaced");
    for (uint32_t i = 0; i < HK_LEN(k->short_names) && json_item(words, i); i++) {
        k->short_names[i] = rest_kinds_copy_str(json_item(words, i), HK_STR(""));
    }
    row->pub.kind = k;
    row->pub.crd = true;
    row->pub.flags = REST_DELETE_STATUS | REST_CUSTOM | REST_GENERATION | REST_NEED_RV;
    row->pub.res = store_res(r->store, hk_str(k->group), hk_str(k->plural));
    note_resource(r, row->pub.res);
    return row;
}

/* Sets the data of a deleted or replaced definition aside until no caller can be using it. */
static void row_drop_data(struct rest *r, struct row *row)
{
    if (row->data) {
        hk_vec_push(&r->replaced, hk_take(row->data));
    }
}

static void row_set_definition(struct rest *r, struct row *row, const struct json *crd, uint64_t rv,
                               const struct json *version, struct rest_conversion *conversion)
{
    const struct json *spec = json_get(crd, "spec");
    struct rest_row_data *l = hk_zalloc(sizeof(*l));
    struct json *copy = hk_arena_alloc(&l->mem, sizeof(*copy));
    struct json *names = hk_arena_alloc(&l->mem, sizeof(*names));
    const struct json *listed = json_get(spec, "names");

    *copy = json_clone(version, &l->mem);
    *names = json_clone_as(listed, JSON_OBJECT, &l->mem);
    if (!row->pub.schema || !json_equal(row->pub.schema, json_at(copy, "schema.openAPIV3Schema"))) {
        row->pub.schema_rv = rv;
    }
    row_drop_data(r, row);
    row->data = l;
    row->pub.schema = json_at(copy, "schema.openAPIV3Schema");
    if (row->pub.schema && schema_new(row->pub.schema, &l->rules, NULL) < 0) {
        l->rules = NULL; /* refused now, but older stores may contain one */
    }
    row->pub.rules = l->rules;
    l->conversion = rest_conversion_ref(conversion);
    row->pub.conversion = conversion;
    row->pub.many_versions = json_len(json_get(spec, "versions")) > 1;
    row->pub.columns = json_get(copy, "additionalPrinterColumns");
    row->pub.scale = json_at(copy, "subresources.scale");
    row->pub.names = names;
    row->pub.crd = true;
    row->pub.served = json_bool(json_get(copy, "served"), false);
    row->pub.ending = rest_deleting(crd);
    row->pub.storage = json_bool(json_get(copy, "storage"), false);
    if (!row->builtin) {
        row->own.status = json_at(copy, "subresources.status") != NULL;
    }
}

static void row_forget(struct rest *r, struct row *row)
{
    row_drop_data(r, row);
    row->pub.schema = row->pub.columns = row->pub.scale = row->pub.names = NULL;
    row->pub.rules = NULL;
    row->pub.conversion = NULL;
    row->pub.ending = false;
    row->pub.crd = !row->builtin;
    row->pub.served = row->pub.storage = row->builtin;
}

/* Stops serving versions that the definition no longer lists, in rows of its group and plural. */
static void forget_versions(struct rest *r, const struct json *spec, const struct json *versions)
{
    const struct hk_str group = json_str(json_get(spec, "group"), HK_STR(""));
    const struct hk_str plural = json_str(json_at(spec, "names.plural"), HK_STR(""));

    for (uint32_t i = 0; i < r->kinds.len; i++) {
        struct row *row = (struct row *)r->kinds.at[i];
        const struct api_kind *k = row->pub.kind;
        bool listed = false;
        if (!hk_str_is(group, k->group) || !hk_str_is(plural, k->plural)) {
            continue;
        }
        for (uint32_t v = 0; json_is(versions, JSON_ARRAY) && v < versions->len; v++) {
            const struct json *name = json_get(&versions->items[v], "name");
            listed = listed || hk_str_is(json_str(name, HK_STR("")), k->version);
        }
        if (!listed) {
            row_forget(r, row);
        }
    }
}

void rest_kinds_feed(struct rest *r, const struct store_event *ev)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json doc;

    if (ev->obj->res != r->crds->res || json_parse(ev->obj->text, 0, &mem, &doc, NULL) < 0) {
        return;
    }
    const struct json *spec = json_get(&doc, "spec");
    const struct json *versions = json_get(spec, "versions");
    const struct json *names = json_get(spec, "names");
    const bool gone = ev->type == STORE_DELETED || !rest_crd_established(&doc);
    struct rest_conversion *conversion = gone ? NULL : rest_conversion_new(&doc, ev->obj->rv);
    for (uint32_t i = 0; !gone && json_is(versions, JSON_ARRAY) && i < versions->len; i++) {
        const struct json *v = &versions->items[i];
        struct row *row = row_find(r, json_str(json_get(spec, "group"), HK_STR("")),
                                   json_str(json_get(v, "name"), HK_STR("")),
                                   json_str(json_get(names, "plural"), HK_STR("")));
        row_set_definition(r, row ? row : row_define(r, spec, v), &doc, ev->obj->rv, v, conversion);
    }
    rest_conversion_unref(conversion);
    forget_versions(r, spec, gone ? NULL : versions);
    r->kinds_generation++;
}
