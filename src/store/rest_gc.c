// SPDX-License-Identifier: Apache-2.0
// The garbage collector: deletes objects whose owners are all gone. Its graph contains only objects
// with ownerReferences; it looks up an owner in the store, by name and uid, when needed.
//
//   event -> affected objects are queued -> each is checked -> deletion, or removal of references
//   or of a finalizer, as ordinary calls of the port -> the next event
//
// Owners that wait: "foregroundDeletion" is removed when no blocking dependent is left, "orphan"
// when no dependent refers to the owner any more.
#include "store/rest_priv.h"

#define GC_RETRY_NS (1 * REST_SECOND)
enum { GC_BATCH = 512, GC_MAX_DOUBLINGS = 8 };

/* ---- the graph ---- */

static struct gc_node *node_at(struct gc *g, uint32_t id)
{
    while (g->nodes.len <= id) {
        hk_vec_push(&g->nodes, (struct gc_node){0});
    }
    return &g->nodes.at[id];
}

static uint32_t node_hold(struct gc *g, struct hk_str uid)
{
    const uint32_t id = hk_intern_hold(&g->uids, uid);

    node_at(g, id);
    return id;
}

static void enqueue(struct gc *g, uint32_t id)
{
    struct gc_node *n = node_at(g, id);

    if (!n->queued) {
        n->queued = true;
        hk_vec_push(&g->queue, id);
    }
}

static void remove_dependent(struct gc *g, uint32_t owner, uint32_t id)
{
    struct gc_node *n = node_at(g, owner);

    for (uint32_t i = 0; i < n->dependents.len; i++) {
        if (n->dependents.at[i] == id) {
            hk_vec_swap_remove(&n->dependents, i);
            break;
        }
    }
    if (n->deleting) {
        enqueue(g, owner);
    }
}

static void clear_owners(struct gc *g, uint32_t id, struct gc_item *item)
{
    for (uint32_t i = 0; i < item->owners.len; i++) {
        remove_dependent(g, item->owners.at[i].uid, id);
        hk_intern_drop(&g->uids, item->owners.at[i].uid);
    }
    hk_vec_clear(&item->owners);
}

static void item_drop(struct gc *g, uint32_t id)
{
    struct gc_item *item = hk_take(g->nodes.at[id].item);

    g->nodes.at[id].refused = 0;
    if (item) {
        clear_owners(g, id, item);
        store_obj_unref(item->obj);
        hk_vec_fini(&item->owners);
        hk_free(item);
        hk_intern_drop(&g->uids, id);
    }
}

static void deleting_drop(struct gc *g, uint32_t id)
{
    const struct store_obj *o = hk_take(g->nodes.at[id].deleting);

    if (o) {
        store_obj_unref(o);
        hk_intern_drop(&g->uids, id);
    }
}

/* ---- events ---- */

static void feed_gone(struct gc *g, struct hk_str uid)
{
    const uint32_t id = hk_intern_find(&g->uids, uid);

    if (id == HK_NONE || id == 0) {
        return;
    }
    for (uint32_t i = 0; i < g->nodes.at[id].dependents.len; i++) {
        enqueue(g, g->nodes.at[id].dependents.at[i]);
    }
    deleting_drop(g, id);
    item_drop(g, id);
}

/* Avoids parsing the many objects that do not concern the collector. */
static bool mentions(const struct store_obj *o, const char *word)
{
    return memmem(o->text.s, o->text.n, word, strlen(word)) != NULL;
}

static bool same_owners(const struct gc *g, const struct gc_item *item, const struct json *refs)
{
    if (item->owners.len != (json_is(refs, JSON_ARRAY) ? refs->len : 0)) {
        return false;
    }
    for (uint32_t i = 0; i < item->owners.len; i++) {
        const struct json *ref = &refs->items[i];
        if (!hk_str_eq(json_str(json_get(ref, "uid"), HK_STR("")),
                       hk_intern_str(&g->uids, item->owners.at[i].uid)) ||
            json_bool(json_get(ref, "blockOwnerDeletion"), false) != item->owners.at[i].block) {
            return false;
        }
    }
    return true;
}

static void item_owners(struct gc *g, uint32_t id, const struct json *refs)
{
    struct gc_item *item = g->nodes.at[id].item;

    clear_owners(g, id, item);
    for (uint32_t i = 0; i < refs->len; i++) {
        const struct json *ref = &refs->items[i];
        const uint32_t owner = node_hold(g, json_str(json_get(ref, "uid"), HK_STR("?")));
        const struct gc_owner o = {owner, json_bool(json_get(ref, "blockOwnerDeletion"), false)};
        hk_vec_push(&item->owners, o);
        hk_vec_push(&g->nodes.at[owner].dependents, id);
        if (g->nodes.at[owner].deleting) {
            enqueue(g, owner);
        }
    }
}

static void feed_item(struct gc *g, const struct store_obj *o, const struct json *refs)
{
    if (!json_is(refs, JSON_ARRAY) || refs->len == 0) {
        const uint32_t id = hk_intern_find(&g->uids, o->uid);
        if (id != HK_NONE) {
            item_drop(g, id);
        }
        return;
    }
    const uint32_t id = node_hold(g, o->uid);
    struct gc_item *item = g->nodes.at[id].item;
    if (item) {
        hk_intern_drop(&g->uids, id); /* the node holds a reference already */
        store_obj_unref(item->obj);
    } else {
        g->nodes.at[id].item = item = hk_zalloc(sizeof(*item));
    }
    item->obj = store_obj_ref(o);
    if (!same_owners(g, item, refs)) {
        item_owners(g, id, refs);
        enqueue(g, id);
    }
}

static void feed_deleting(struct gc *g, const struct store_obj *o, const struct json *doc)
{
    const bool waits = rest_deleting(doc) && (rest_has_finalizer(doc, REST_FOREGROUND) ||
                                              rest_has_finalizer(doc, REST_ORPHAN_FINALIZER));
    uint32_t id = hk_intern_find(&g->uids, o->uid);

    if (id != HK_NONE) {
        deleting_drop(g, id);
    }
    if (!waits) {
        return;
    }
    id = node_hold(g, o->uid);
    g->nodes.at[id].deleting = store_obj_ref(o);
    enqueue(g, id);
    for (uint32_t i = 0;
         rest_has_finalizer(doc, REST_FOREGROUND) && i < g->nodes.at[id].dependents.len; i++) {
        enqueue(g, g->nodes.at[id].dependents.at[i]);
    }
}

void rest_gc_feed(struct rest *r, const struct store_event *ev)
{
    struct gc *g = &r->gc;
    const struct store_obj *o = ev->obj;
    struct json doc;

    if (ev->type == STORE_DELETED) {
        feed_gone(g, o->uid);
        return;
    }
    if (!mentions(o, "\"ownerReferences\"") && !mentions(o, "\"" REST_FOREGROUND "\"") &&
        !mentions(o, "\"" REST_ORPHAN_FINALIZER "\"") &&
        hk_intern_find(&g->uids, o->uid) == HK_NONE) {
        return;
    }
    hk_arena_clear(&g->mem);
    if (o->uid.n > 0 && json_parse(o->text, 0, &g->mem, &doc, NULL) == 0) {
        feed_item(g, o, json_at(&doc, "metadata.ownerReferences"));
        feed_deleting(g, o, &doc);
    }
}

/* ---- actions ---- */

static void rest_gc_on_done(void *ctx, const struct port_msg *m)
{
    struct rest *r = ctx;
    struct gc *g = &r->gc;
    const uint32_t id = hk_map_get(&g->tries, m->call);

    hk_map_del(&g->tries, m->call);
    if (id == HK_NONE) {
        return;
    }
    struct gc_node *n = &g->nodes.at[id];
    if (m->rc == 0 || m->rc == -HK_ENOTFOUND) {
        n->refused = 0;
        return;
    }
    /* Double the delay each time: the obstacle may stay for days. */
    const int64_t delay_ns = GC_RETRY_NS << HK_MIN(n->refused, GC_MAX_DOUBLINGS);
    n->refused = (uint8_t)HK_MIN(n->refused + 1, GC_MAX_DOUBLINGS);
    hk_vec_push(&g->later, (struct gc_later){id, rest_mono(r) + delay_ns});
}

static void rest_gc_submit(struct rest *r, uint32_t id, const struct port_request *req)
{
    const uint64_t call = port_submit(&r->port, req, (struct port_sink){rest_gc_on_done, r});

    hk_map_put(&r->gc.tries, call, id);
}

static void submit_delete(struct rest *r, uint32_t id, const struct store_obj *o,
                          enum port_propagation policy)
{
    const struct port_request req = {
        .verb = PORT_DELETE,
        .kind = rest_kind_by_res(r, o->res)->kind,
        .ns = o->ns,
        .name = o->name,
        .if_uid = o->uid,
        .propagation = policy,
    };

    rest_gc_submit(r, id, &req);
}

/* Replaces one list of the metadata, if the object still has the same uid. */
static void submit_list(struct rest *r, uint32_t id, const struct store_obj *o, const char *key,
                        struct json list)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json patch = json_make_object();
    struct json *meta = rest_edit(&patch, &mem, "metadata");

    json_set_str(meta, &mem, "uid", o->uid);
    json_set(meta, &mem, key, list.len > 0 ? list : (struct json){.type = JSON_NULL});
    const struct port_request req = {
        .verb = PORT_PATCH,
        .kind = rest_kind_by_res(r, o->res)->kind,
        .ns = o->ns,
        .name = o->name,
        .patch = PORT_PATCH_MERGE,
        .body = &patch,
    };
    rest_gc_submit(r, id, &req);
}

/* ---- checking an owner that waits ---- */

static void rest_gc_remove_finalizer(struct rest *r, uint32_t id, const struct store_obj *head,
                                     const struct json *doc, const char *finalizer)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json copy = json_clone(doc, &mem);

    if (rest_drop_finalizer(&copy, &mem, finalizer)) {
        const struct json *left = json_at(&copy, "metadata.finalizers");
        submit_list(r, id, head, "finalizers", left ? *left : json_make_array());
    }
}

/* Removes the owner's reference from the dependent, unless an earlier check has done so. */
static void rest_gc_remove_owner_ref(struct rest *r, uint32_t owner,
                                     const struct store_obj *dependent)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json doc;
    struct json left = json_make_array();
    bool staged;
    const struct store_obj *head =
        store_head(r->store, dependent->res, dependent->ns, dependent->name, &staged);

    if (!head || !hk_str_eq(head->uid, dependent->uid) ||
        json_parse(head->text, 0, &mem, &doc, NULL) < 0) {
        return;
    }
    const struct json *refs = json_at(&doc, "metadata.ownerReferences");
    for (uint32_t i = 0; json_is(refs, JSON_ARRAY) && i < refs->len; i++) {
        if (!hk_str_eq(json_str(json_get(&refs->items[i], "uid"), HK_STR("")),
                       hk_intern_str(&r->gc.uids, owner))) {
            json_push(&left, &mem, refs->items[i]);
        }
    }
    if (json_is(refs, JSON_ARRAY) && left.len < refs->len) {
        submit_list(r, owner, dependent, "ownerReferences", left);
    }
}

static bool blocks(const struct gc_item *item, uint32_t owner)
{
    for (uint32_t i = 0; item && i < item->owners.len; i++) {
        if (item->owners.at[i].uid == owner && item->owners.at[i].block) {
            return true;
        }
    }
    return false;
}

/* An owner is in the namespace of its dependents or is cluster-scoped. A reference from another
 * namespace does not block its deletion. */
static bool blocked(const struct gc *g, uint32_t owner, struct hk_str ns)
{
    const struct gc_node *n = &g->nodes.at[owner];

    for (uint32_t i = 0; i < n->dependents.len; i++) {
        const struct gc_item *item = g->nodes.at[n->dependents.at[i]].item;
        if (blocks(item, owner) && (ns.n == 0 || hk_str_eq(item->obj->ns, ns))) {
            return true;
        }
    }
    return false;
}

static void look_owner(struct rest *r, uint32_t id)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct gc *g = &r->gc;
    const struct gc_node *n = &g->nodes.at[id];
    struct json doc;
    bool staged;
    const struct store_obj *o = n->deleting;
    const struct store_obj *head = store_head(r->store, o->res, o->ns, o->name, &staged);

    if (!head || !hk_str_eq(head->uid, o->uid) || json_parse(head->text, 0, &mem, &doc, NULL) < 0) {
        return;
    }
    if (rest_has_finalizer(&doc, REST_ORPHAN_FINALIZER)) {
        for (uint32_t i = 0; i < g->nodes.at[id].dependents.len; i++) {
            const struct gc_item *item = g->nodes.at[g->nodes.at[id].dependents.at[i]].item;
            if (item) {
                rest_gc_remove_owner_ref(r, id, item->obj);
            }
        }
        if (g->nodes.at[id].dependents.len == 0) {
            rest_gc_remove_finalizer(r, id, o, &doc, REST_ORPHAN_FINALIZER);
        }
    } else if (rest_has_finalizer(&doc, REST_FOREGROUND) && !blocked(g, id, o->ns)) {
        rest_gc_remove_finalizer(r, id, o, &doc, REST_FOREGROUND);
    }
}

/* ---- checking a dependent ---- */

enum owner_state {
    OWNER_SOLID,   /* exists, or may exist */
    OWNER_WAITING, /* being deleted, and waits for its dependents to go first */
    OWNER_ABSENT,
};

static enum owner_state owner_state(struct rest *r, const struct store_obj *dependent,
                                    const struct json *ref)
{
    const struct rest_kind *k =
        rest_kind_by_name(r, json_str(json_get(ref, "apiVersion"), HK_STR("")),
                          json_str(json_get(ref, "kind"), HK_STR("")));

    /* An owner of unknown kind, or without a known namespace, may exist. */
    if (!k || (k->kind->namespaced && dependent->ns.n == 0)) {
        return OWNER_SOLID;
    }
    const struct store_obj *o =
        store_get(r->store, k->res, k->kind->namespaced ? dependent->ns : HK_STR(""),
                  json_str(json_get(ref, "name"), HK_STR("")));
    if (!o || !hk_str_eq(o->uid, json_str(json_get(ref, "uid"), HK_STR("")))) {
        return OWNER_ABSENT;
    }
    if (!mentions(o, "\"" REST_FOREGROUND "\"")) {
        return OWNER_SOLID;
    }
    struct api_object *obj = rest_object(r, k, o, true);
    const bool waits =
        obj && rest_deleting(&obj->root) && rest_has_finalizer(&obj->root, REST_FOREGROUND);
    api_object_unref(obj);
    return waits ? OWNER_WAITING : OWNER_SOLID;
}

/* The object's own policy for its dependents. */
static enum port_propagation own_policy(const struct json *doc, bool owner_waits, bool has_own)
{
    if (owner_waits && has_own) {
        return PORT_PROPAGATE_FOREGROUND;
    }
    if (rest_has_finalizer(doc, REST_ORPHAN_FINALIZER)) {
        return PORT_PROPAGATE_ORPHAN;
    }
    return rest_has_finalizer(doc, REST_FOREGROUND) ? PORT_PROPAGATE_FOREGROUND
                                                    : PORT_PROPAGATE_BACKGROUND;
}

static void rest_gc_check_owners(struct rest *r, uint32_t id, const struct store_obj *o,
                                 const struct json *doc)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    const struct json *refs = json_at(doc, "metadata.ownerReferences");
    struct json solid = json_make_array();
    bool waiting = false;

    for (uint32_t i = 0; json_is(refs, JSON_ARRAY) && i < refs->len; i++) {
        const enum owner_state state = owner_state(r, o, &refs->items[i]);
        if (state == OWNER_SOLID) {
            json_push(&solid, &mem, refs->items[i]);
        }
        waiting = waiting || state == OWNER_WAITING;
    }
    if (!json_is(refs, JSON_ARRAY) || solid.len == refs->len) {
        return;
    }
    if (solid.len > 0) {
        submit_list(r, id, o, "ownerReferences", solid);
        return;
    }
    submit_delete(r, id, o, own_policy(doc, waiting, r->gc.nodes.at[id].dependents.len > 0));
}

static void look_dependent(struct rest *r, uint32_t id)
{
    struct hk_arena *mem = &r->gc.mem;
    const struct store_obj *o = r->gc.nodes.at[id].item->obj;
    struct json doc;
    bool staged;
    const struct store_obj *head = store_head(r->store, o->res, o->ns, o->name, &staged);

    hk_arena_clear(mem);
    if (head && hk_str_eq(head->uid, o->uid) && json_parse(head->text, 0, mem, &doc, NULL) == 0 &&
        !rest_deleting(&doc)) {
        rest_gc_check_owners(r, id, o, &doc);
    }
}

void rest_gc_run(struct rest *r)
{
    struct gc *g = &r->gc;
    uint32_t done = 0;

    for (; done < g->queue.len && done < GC_BATCH; done++) {
        const uint32_t id = g->queue.at[done];
        g->nodes.at[id].queued = false;
        if (g->nodes.at[id].deleting) {
            look_owner(r, id);
        } else if (g->nodes.at[id].item) {
            look_dependent(r, id);
        }
    }
    if (done > 0) {
        g->queue.len -= done;
        memmove(g->queue.at, g->queue.at + done, g->queue.len * sizeof(*g->queue.at));
    }
    if (g->queue.len > 0) {
        rest_request_poll(r);
    }
}

void rest_gc_tick(struct rest *r)
{
    struct gc *g = &r->gc;
    const int64_t now = rest_mono(r);
    uint32_t kept = 0;

    for (uint32_t i = 0; i < g->later.len; i++) {
        if (g->later.at[i].at_ns <= now) {
            enqueue(g, g->later.at[i].id);
        } else {
            g->later.at[kept++] = g->later.at[i];
        }
    }
    if (kept < g->later.len) {
        g->later.len = kept;
        rest_request_poll(r);
    }
}

int64_t rest_gc_next_ns(const struct rest *r)
{
    int64_t next = INT64_MAX;

    for (uint32_t i = 0; i < r->gc.later.len; i++) {
        next = HK_MIN(next, r->gc.later.at[i].at_ns);
    }
    return next;
}

void rest_gc_fini(struct rest *r)
{
    struct gc *g = &r->gc;

    for (uint32_t id = 0; id < g->nodes.len; id++) {
        deleting_drop(g, id);
        item_drop(g, id);
    }
    for (uint32_t id = 0; id < g->nodes.len; id++) {
        hk_vec_fini(&g->nodes.at[id].dependents);
    }
    hk_vec_fini(&g->nodes);
    hk_vec_fini(&g->queue);
    hk_vec_fini(&g->later);
    hk_map_fini(&g->tries);
    hk_arena_fini(&g->mem);
    hk_intern_fini(&g->uids);
}
