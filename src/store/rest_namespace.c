// SPDX-License-Identifier: Apache-2.0
// Namespaces, from birth to end, and the end of CustomResourceDefinitions, which is alike: a thing
// marked for deletion is held by a finalizer until all it contains has been deleted and is gone.
//
//   marked -> drain: delete what is left -> ... -> nothing left -> finalizer taken away -> gone
#include "store/rest_priv.h"

#define DRAIN_RETRY_NS (5 * REST_SECOND)

static const struct port_sink nobody = {0};

/* ---- birth ---- */

/* Creates an object that is nothing but its name, unless it is there. */
static void make_named(struct rest *r, const struct rest_kind *k, struct hk_str ns,
                       struct hk_str name)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json doc = json_make_object();
    const struct port_request req = {.verb = PORT_CREATE, .kind = k->kind, .ns = ns, .body = &doc};
    bool staged;

    if (!store_head(r->store, k->res, ns, name, &staged)) {
        rest_put_str(rest_edit(&doc, &mem, "metadata"), &mem, "name", name);
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

/* Every namespace has an account for pods that name none. */
static void make_accounts(struct rest *r)
{
    const struct rest_kind *accounts = rest_kind_of(r, api_kind(API_SERVICE_ACCOUNT));

    while (r->newborn.len > 0) {
        const struct store_obj *ns = hk_vec_pop(&r->newborn);
        if (store_get(r->store, ns->res, HK_STR(""), ns->name)) {
            make_named(r, accounts, ns->name, HK_STR("default"));
        }
        store_obj_unref(ns);
    }
}

/* ---- end ---- */

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

static bool marked(struct rest *r, const struct store_obj *o)
{
    struct api_object *obj = rest_object(r, rest_kind_by_res(r, o->res), o, true);
    const bool yes = obj && rest_deleting(&obj->root);

    api_object_unref(obj);
    return yes;
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
    if (res == r->namespaces->res && ev->type == STORE_ADDED) {
        hk_vec_push(&r->newborn, store_obj_ref(ev->obj));
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

/* Everything inside the namespace, or of the defined kind. */
static void collect(struct rest *r, const struct store_obj *container, struct content *all)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json crd;

    if (container->res == r->namespaces->res) {
        for (uint32_t i = 0; i < r->resources.len; i++) {
            if (rest_kind_by_res(r, r->resources.at[i])->kind->namespaced) {
                store_scan(r->store, r->resources.at[i], container->name,
                           HK_STR(""), HK_STR(""), on_content, all);
            }
        }
    } else if (json_parse(container->text, 0, &mem, &crd, NULL) == 0) {
        const uint32_t res =
            store_res(r->store, json_str(json_at(&crd, "spec.group"), HK_STR("")),
                                         json_str(json_at(&crd, "spec.names.plural"), HK_STR("")));
        store_scan(r->store, res, HK_STR(""), HK_STR(""), HK_STR(""), on_content, all);
    }
}

/* Asks for the deletion of what nobody has asked for yet. */
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

/* A namespace without "kubernetes" among the finalizers of its spec. */
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
    json_put(rest_edit(&doc, &mem, "spec"), &mem, HK_STR("finalizers"), left);
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

static void drain_one(struct rest *r, const struct store_obj *container)
{
    struct content all = {0};

    collect(r, container, &all);
    empty_out(r, &all);
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
    make_accounts(r);
    for (uint32_t i = 0; i < r->drains.len; i++) {
        if (r->drains.at[i].dirty) {
            r->drains.at[i].dirty = false;
            drain_one(r, r->drains.at[i].obj);
        }
    }
    if (r->drains.len == 0) {
        r->drain_retry_ns = 0;
    } else if (r->drain_retry_ns == 0) {
        r->drain_retry_ns = rest_now(r) + DRAIN_RETRY_NS;
    }
}

/* What failed, or was held by a finalizer of its own, is looked at again. */
void rest_drain_tick(struct rest *r)
{
    if (r->drain_retry_ns == 0 || rest_now(r) < r->drain_retry_ns) {
        return;
    }
    for (uint32_t i = 0; i < r->drains.len; i++) {
        r->drains.at[i].dirty = true;
    }
    r->drain_retry_ns = 0;
    rest_kick(r);
}

void rest_drain_fini(struct rest *r)
{
    while (r->drains.len > 0) {
        drain_drop(r, 0);
    }
    while (r->newborn.len > 0) {
        store_obj_unref(hk_vec_pop(&r->newborn));
    }
    hk_vec_fini(&r->drains);
    hk_vec_fini(&r->newborn);
}
