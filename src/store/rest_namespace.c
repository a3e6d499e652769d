// SPDX-License-Identifier: Apache-2.0
// Namespaces from creation to deletion, and the deletion of CustomResourceDefinitions, which works
// the same way: a finalizer keeps the deleted object until its content is gone.
//
//   marked -> drain: delete what is left -> ... -> nothing left -> remove the finalizer -> gone
#include "base/crumb.h"
#include "base/log.h"
#include "store/rest_priv.h"

#define DRAIN_RETRY_NS (5 * REST_SECOND)

static const struct port_sink nobody = {0};

/* ---- creation ---- */

/* Creates an object that has only a name, unless it exists. */
static void make_named(struct rest *r, const struct rest_kind *k, struct hk_str ns,
                       struct hk_str name)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json doc = json_make_object();
    const struct port_request req = {.verb = PORT_CREATE, .kind = k->kind, .ns = ns, .body = &doc};
    bool staged;

    if (!store_head(r->store, k->res, ns, name, &staged)) {
        json_set_str(rest_edit(&doc, &mem, "metadata"), &mem, "name", name);
        port_submit(&r->port, &req, nobody);
    }
}

void rest_namespace_seed(struct rest *r)
{
    static const char *const names[] = {"default", "kube-system", "kube-public", "kube-node-lease",
                                        "volcano-system"};

    for (size_t i = 0; i < HK_LEN(names); i++) {
        make_named(r, r->namespaces, HK_STR(""), hk_str(names[i]));
    }
}

static bool marked(struct rest *r, const struct store_obj *o)
{
    struct api_object *obj = rest_object(r, rest_kind_by_res(r, o->res), o, true);
    const bool yes = obj && rest_deleting(&obj->root);

    api_object_unref(obj);
    return yes;
}

/* ---- objects that every namespace has ---- */

#define ACCOUNT "default"
#define CA_MAP "kube-root-ca.crt"
#define DEFAULTS_WORKER "namespace-defaults" /* its name in the crash record */

/* Whether the default objects of the event's namespace may be missing or changed. */
static bool may_lack_defaults(const struct rest *r, const struct store_event *ev)
{
    const struct store_obj *o = ev->obj;

    if (o->res == r->namespaces->res) {
        return ev->type == STORE_ADDED;
    }
    if (o->res == r->accounts->res) {
        return ev->type == STORE_DELETED && hk_str_is(o->name, ACCOUNT);
    }
    return r->ca_pem && o->res == r->config_maps->res && ev->type != STORE_ADDED &&
           hk_str_is(o->name, CA_MAP);
}

static struct json ca_map(const struct rest *r, struct hk_arena *mem)
{
    struct json doc = json_make_object();

    json_set_cstr(rest_edit(&doc, mem, "metadata"), mem, "name", CA_MAP);
    json_set_cstr(rest_edit(rest_edit(&doc, mem, "metadata"), mem, "annotations"), mem,
                  "kubernetes.io/description",
                  "Contains a CA bundle that can be used to verify the kube-apiserver when "
                  "using internal endpoints such as the internal service IP or "
                  "kubernetes.default.svc. No other usage is guaranteed across distributions "
                  "of Kubernetes clusters.");
    json_set_cstr(rest_edit(&doc, mem, "data"), mem, "ca.crt", r->ca_pem);
    return doc;
}

static bool ca_map_true(const struct rest *r, const struct store_obj *o, struct hk_arena *mem)
{
    struct json doc;

    return json_parse(o->text, 0, mem, &doc, NULL) == 0 &&
           hk_str_is(json_str(json_get(json_get(&doc, "data"), "ca.crt"), HK_STR("")), r->ca_pem);
}

static void create_ca_map(struct rest *r, struct hk_str ns)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    bool staged;
    const struct store_obj *had =
        store_head(r->store, r->config_maps->res, ns, HK_STR(CA_MAP), &staged);

    if (!r->ca_pem || (had && ca_map_true(r, had, &mem))) {
        return;
    }
    const struct json doc = ca_map(r, &mem);
    const struct port_request req = {
        .verb = had ? PORT_UPDATE : PORT_CREATE,
        .kind = r->config_maps->kind,
        .ns = ns,
        .name = HK_STR(CA_MAP),
        .body = &doc,
    };
    port_submit(&r->port, &req, nobody);
}

/* Whether creating the default objects in this namespace crashed the server twice. */
static bool rest_namespace_has_crashed_before(const struct store_obj *ns)
{
    bool news;
    const bool skipped = hk_crumb_skips(DEFAULTS_WORKER, HK_STR(""), ns->name, ns->rv, &news);

    if (news) {
        hk_log(HK_LOG_ERROR, "skipping an object",
               "controller=" DEFAULTS_WORKER
               " object=%.*s why=\"the server died of it twice: its default "
               "service account and " CA_MAP " are not made until the namespace changes\"",
               HK_FMT(ns->name));
    }
    return skipped;
}

/* Creates a service account for pods that name none, and the ConfigMap with the CA certificate. */
static void create_namespace_defaults(struct rest *r)
{
    while (r->without_defaults.len > 0) {
        const struct store_obj *o = hk_vec_pop(&r->without_defaults);
        const struct hk_str ns = o->res == r->namespaces->res ? o->name : o->ns;
        const struct store_obj *home = store_get(r->store, r->namespaces->res, HK_STR(""), ns);
        if (home && !marked(r, home) && !rest_namespace_has_crashed_before(home)) {
            hk_crumb_enter(DEFAULTS_WORKER, HK_STR(""), ns);
            make_named(r, r->accounts, ns, HK_STR(ACCOUNT));
            create_ca_map(r, ns);
            hk_crumb_leave();
        }
        store_obj_unref(o);
    }
}

static bool on_namespace(void *ctx, const struct store_obj *o)
{
    struct rest *r = ctx;

    hk_vec_push(&r->without_defaults, store_obj_ref(o));
    return true;
}

void rest_publish_ca(struct rest *r, const char *pem)
{
    hk_free(r->ca_pem);
    r->ca_pem = hk_strndup(pem, strlen(pem));
    store_scan(r->store, r->namespaces->res, HK_STR(""), HK_STR(""), HK_STR(""), on_namespace, r);
    rest_request_poll(r);
}

/* ---- deletion ---- */

static uint32_t drain_find(const struct rest *r, struct hk_str uid)
{
    for (uint32_t i = 0; i < r->drains.len; i++) {
        if (hk_str_eq(r->drains.at[i].obj->uid, uid)) {
            return i;
        }
    }
    return HK_NONE;
}

static void drain_drop(struct rest *r, uint32_t i)
{
    store_obj_unref(r->drains.at[i].obj);
    hk_vec_swap_remove(&r->drains, i);
}

static void feed_container(struct rest *r, const struct store_event *ev)
{
    const uint32_t i = drain_find(r, ev->obj->uid);

    if (ev->type == STORE_DELETED || !marked(r, ev->obj)) {
        if (i != HK_NONE) {
            drain_drop(r, i);
        }
        return;
    }
    if (i == HK_NONE) {
        hk_vec_push(&r->drains, (struct drain){store_obj_ref(ev->obj), true});
        return;
    }
    store_obj_unref(r->drains.at[i].obj);
    r->drains.at[i] = (struct drain){store_obj_ref(ev->obj), true};
}

void rest_drain_feed(struct rest *r, const struct store_event *ev)
{
    const uint32_t res = ev->obj->res;

    if (res == r->namespaces->res || res == r->crds->res) {
        feed_container(r, ev);
    }
    if (may_lack_defaults(r, ev)) {
        hk_vec_push(&r->without_defaults, store_obj_ref(ev->obj));
    }
    for (uint32_t i = 0; i < r->drains.len; i++) {
        struct drain *d = &r->drains.at[i];
        if (hk_str_eq(d->obj->name, ev->obj->ns) || d->obj->res == r->crds->res) {
            d->dirty = true;
        }
    }
}

struct content {
    HK_VEC(const struct store_obj *) at;
};

static bool on_content(void *ctx, const struct store_obj *o)
{
    struct content *all = ctx;

    hk_vec_push(&all->at, store_obj_ref(o));
    return true;
}

/* Collects all objects in the namespace, or of the defined kind. */
static void rest_namespace_collect_content(struct rest *r, const struct store_obj *container,
                                           struct content *all)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json crd;

    if (container->res == r->namespaces->res) {
        for (uint32_t i = 0; i < r->resources.len; i++) {
            if (rest_kind_by_res(r, r->resources.at[i])->kind->namespaced) {
                store_scan(r->store, r->resources.at[i], container->name, HK_STR(""), HK_STR(""),
                           on_content, all);
            }
        }
    } else if (json_parse(container->text, 0, &mem, &crd, NULL) == 0) {
        const uint32_t res = store_res(r->store, json_str(json_at(&crd, "spec.group"), HK_STR("")),
                                       json_str(json_at(&crd, "spec.names.plural"), HK_STR("")));
        store_scan(r->store, res, HK_STR(""), HK_STR(""), HK_STR(""), on_content, all);
    }
}

/* Deletes the objects that are not being deleted already. */
static void empty_out(struct rest *r, const struct content *all)
{
    for (uint32_t i = 0; i < all->at.len; i++) {
        const struct store_obj *o = all->at.at[i];
        bool staged;
        const struct store_obj *head = store_head(r->store, o->res, o->ns, o->name, &staged);
        if (head && !marked(r, head)) {
            const struct port_request req = {
                .verb = PORT_DELETE,
                .kind = rest_kind_by_res(r, o->res)->kind,
                .ns = o->ns,
                .name = o->name,
                .if_uid = o->uid,
                .propagation = PORT_PROPAGATE_BACKGROUND,
            };
            port_submit(&r->port, &req, nobody);
        }
    }
}

/* Removes "kubernetes" from the namespace's spec.finalizers. */
static void finalize_namespace(struct rest *r, const struct store_obj *o)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json doc;
    struct json left = json_make_array();

    if (json_parse(o->text, 0, &mem, &doc, NULL) < 0) {
        return;
    }
    const struct json *had = json_at(&doc, "spec.finalizers");
    for (uint32_t i = 0; json_is(had, JSON_ARRAY) && i < had->len; i++) {
        if (!hk_str_is(json_str(&had->items[i], HK_STR("")), "kubernetes")) {
            json_push(&left, &mem, had->items[i]);
        }
    }
    if (!had || left.len == had->len) {
        return;
    }
    json_set(rest_edit(&doc, &mem, "spec"), &mem, "finalizers", left);
    const struct port_request req = {
        .verb = PORT_UPDATE,
        .kind = r->namespaces->kind,
        .name = o->name,
        .subresource = "finalize",
        .body = &doc,
    };
    port_submit(&r->port, &req, nobody);
}

static void finalize_crd(struct rest *r, const struct store_obj *o)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json doc;

    if (json_parse(o->text, 0, &mem, &doc, NULL) == 0 &&
        rest_drop_finalizer(&doc, &mem, REST_CRD_FINALIZER)) {
        const struct port_request req = {
            .verb = PORT_UPDATE, .kind = r->crds->kind, .name = o->name, .body = &doc};
        port_submit(&r->port, &req, nobody);
    }
}

/* ---- status conditions of a terminating namespace ---- */

struct tally {
    struct hk_str word;
    uint32_t n;
};

struct tallies {
    HK_VEC(struct tally) at;
};

static void tally(struct tallies *all, struct hk_str word)
{
    for (uint32_t i = 0; i < all->at.len; i++) {
        if (hk_str_eq(all->at.at[i].word, word)) {
            all->at.at[i].n++;
            return;
        }
    }
    hk_vec_push(&all->at, (struct tally){word, 1});
}

static int tally_cmp(const void *a, const void *b)
{
    return hk_str_cmp(((const struct tally *)a)->word, ((const struct tally *)b)->word);
}

static const char *tally_text(struct tallies *all, const char *head, const char *verb,
                              struct hk_arena *mem)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    qsort(all->at.at, all->at.len, sizeof(*all->at.at), tally_cmp);
    hk_buf_adds(&text, head);
    for (uint32_t i = 0; i < all->at.len; i++) {
        hk_buf_addf(&text, "%s%.*s %s %u resource instances", i > 0 ? ", " : "",
                    HK_FMT(all->at.at[i].word), verb, all->at.at[i].n);
    }
    return hk_arena_strndup(mem, text.data, text.len);
}

static void tally_finalizers(struct tallies *all, const struct store_obj *o, struct hk_arena *mem)
{
    struct json doc;

    if (json_parse(o->text, 0, mem, &doc, NULL) < 0) {
        return;
    }
    const struct json *list = json_at(&doc, "metadata.finalizers");
    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++) {
        tally(all, json_str(&list->items[i], HK_STR("")));
    }
}

static void put_progress(struct rest *r, struct json *doc, const struct content *all,
                         struct hk_arena *mem)
{
    static const struct {
        const char *type, *reason, *message;
    } fine[] = {
        {"NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered",
         "All resources successfully discovered"},
        {"NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions",
         "All legacy kube types successfully parsed"},
        {"NamespaceDeletionContentFailure", "ContentDeleted",
         "All content successfully deleted, may be waiting on finalization"},
    };
    const int64_t now = rest_now(r);
    struct tallies kinds = {0}, finalizers = {0};

    for (size_t i = 0; i < HK_LEN(fine); i++) {
        rest_condition_put(doc, mem, now, fine[i].type, "False", fine[i].reason, fine[i].message);
    }
    for (uint32_t i = 0; i < all->at.len; i++) {
        const struct api_kind *k = rest_kind_by_res(r, all->at.at[i]->res)->kind;
        tally(&kinds, hk_str(hk_arena_printf(mem, "%s.%s", k->plural, k->group)));
        tally_finalizers(&finalizers, all->at.at[i], mem);
    }
    rest_condition_put(doc, mem, now, "NamespaceContentRemaining", "True", "SomeResourcesRemain",
                       tally_text(&kinds, "Some resources are remaining: ", "has", mem));
    if (finalizers.at.len > 0) {
        rest_condition_put(
            doc, mem, now, "NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain",
            tally_text(&finalizers,
                       "Some content in the namespace has finalizers remaining: ", "in", mem));
    } else {
        rest_condition_put(doc, mem, now, "NamespaceFinalizersRemaining", "False",
                           "ContentHasNoFinalizers", "All content-preserving finalizers finished");
    }
    hk_vec_fini(&kinds.at);
    hk_vec_fini(&finalizers.at);
}

/* Reports what the namespace waits for, once all of its content is being deleted. */
static void report_progress(struct rest *r, const struct store_obj *o, const struct content *all)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json old, doc;

    for (uint32_t i = 0; i < all->at.len; i++) {
        if (!marked(r, all->at.at[i])) {
            return;
        }
    }
    if (json_parse(o->text, 0, &mem, &old, NULL) < 0) {
        return;
    }
    doc = json_clone(&old, &mem);
    put_progress(r, &doc, all, &mem);
    if (json_equal(&doc, &old)) {
        return;
    }
    const struct port_request req = {
        .verb = PORT_UPDATE,
        .kind = r->namespaces->kind,
        .name = o->name,
        .subresource = "status",
        .body = &doc,
    };
    port_submit(&r->port, &req, nobody);
}

static void drain_one(struct rest *r, const struct store_obj *container)
{
    struct content all = {0};

    rest_namespace_collect_content(r, container, &all);
    empty_out(r, &all);
    if (all.at.len > 0 && container->res == r->namespaces->res) {
        report_progress(r, container, &all);
    }
    if (all.at.len == 0 && container->res == r->namespaces->res) {
        finalize_namespace(r, container);
    } else if (all.at.len == 0) {
        finalize_crd(r, container);
    }
    for (uint32_t i = 0; i < all.at.len; i++) {
        store_obj_unref(all.at.at[i]);
    }
    hk_vec_fini(&all.at);
}

void rest_drain_run(struct rest *r)
{
    create_namespace_defaults(r);
    for (uint32_t i = 0; i < r->drains.len; i++) {
        if (r->drains.at[i].dirty) {
            r->drains.at[i].dirty = false;
            drain_one(r, r->drains.at[i].obj);
        }
    }
    if (r->drains.len == 0) {
        r->drain_retry_ns = 0;
    } else if (r->drain_retry_ns == 0) {
        r->drain_retry_ns = rest_mono(r) + DRAIN_RETRY_NS;
    }
}

/* Checks all drains again: deletions may have failed, or waited for finalizers. */
void rest_drain_tick(struct rest *r)
{
    if (r->drain_retry_ns == 0 || rest_mono(r) < r->drain_retry_ns) {
        return;
    }
    for (uint32_t i = 0; i < r->drains.len; i++) {
        r->drains.at[i].dirty = true;
    }
    r->drain_retry_ns = 0;
    rest_request_poll(r);
}

void rest_drain_fini(struct rest *r)
{
    while (r->drains.len > 0) {
        drain_drop(r, 0);
    }
    while (r->without_defaults.len > 0) {
        store_obj_unref(hk_vec_pop(&r->without_defaults));
    }
    hk_vec_fini(&r->drains);
    hk_vec_fini(&r->without_defaults);
    hk_free(r->ca_pem);
}
