// SPDX-License-Identifier: Apache-2.0
// Objects made from stored states: parsed once for consecutive readers, with the newest schema
// applied and in the requested version. Also gives admission the newest objects, including those
// whose creation is not yet committed.
#include "store/rest_priv.h"

/* ---- objects ---- */

static void release_state(void *owner)
{
    store_obj_unref(owner);
}

struct api_object *rest_object_show(const struct rest_kind *k, struct api_object *o)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct json doc = json_clone(&o->root, &mem);
    struct api_object *ret = NULL;

    rest_view_show(k, &doc, &mem);
    rest_schema_refresh(k, &doc, &mem);
    if (k->storage && !k->many_versions && json_equal(&doc, &o->root)) {
        return o;
    }
    json_write(&doc, &text);
    api_object_unref(o);
    return api_object_parse(k->kind, hk_buf_str(&text), &ret, NULL) < 0 ? NULL : ret;
}

static struct api_object *object_make(const struct rest_kind *k, const struct store_obj *o,
                                      bool tree)
{
    struct api_object *ret = NULL;
    const bool convert = !k->storage || rest_schema_outdated(k, o) || rest_stored_otherwise(k, o);

    if (api_object_borrow(k->kind, o->text, tree || convert, store_obj_ref(o), release_state, &ret,
                          NULL) < 0) {
        return NULL;
    }
    ret->ns = o->ns;
    ret->name = o->name;
    ret->uid = o->uid;
    ret->rv = o->rv;
    return convert ? rest_object_show(k, ret) : ret;
}

struct api_object *rest_object(struct rest *r, const struct rest_kind *k, const struct store_obj *o,
                               bool tree)
{
    if (rest_convert_needed(k, o)) {
        return rest_converted_object(r, k, o);
    }
    struct api_object **slot = &r->cache[hk_mix((uint64_t)(uintptr_t)o) & (REST_CACHE - 1)];

    /* The cached object holds a reference to its state, so the address stays unique. */
    const bool fresh = !rest_schema_outdated(k, o);
    if (fresh && *slot && (*slot)->owner == o && (*slot)->kind == k->kind) {
        return api_object_ref(*slot);
    }
    struct api_object *made = object_make(k, o, tree);
    if (fresh && made && tree && made->owner == o && hk_budget_room(r->budget) == HK_ROOM_ENOUGH) {
        api_object_unref(*slot);
        *slot = api_object_ref(made);
    }
    return made;
}

/* Only after rest_convert_head. */
static const struct store_obj *head_converted(struct rest_call *c, const struct rest_kind *k,
                                              const struct store_obj *o, struct json *ret)
{
    struct api_object *obj = rest_converted_object(c->r, k, o);

    if (!obj) {
        return NULL;
    }
    hk_vec_push(&c->borrowed, obj);
    hk_vec_push(&c->held, store_obj_ref(o));
    *ret = json_clone(&obj->root, &c->mem);
    return o;
}

const struct store_obj *rest_head(struct rest_call *c, const struct rest_kind *k, struct hk_str ns,
                                  struct hk_str name, struct json *ret, bool *ret_staged)
{
    const struct store_obj *o = store_head(c->r->store, k->res, ns, name, ret_staged);

    if (o && rest_convert_needed(k, o)) {
        return head_converted(c, k, o, ret);
    }
    if (!o || json_parse(o->text, 0, &c->mem, ret, NULL) < 0) {
        return NULL;
    }
    if (rest_schema_outdated(k, o)) {
        rest_schema_refresh(k, ret, &c->mem);
    }
    hk_vec_push(&c->held, store_obj_ref(o));
    return o;
}

const struct store_obj *rest_head_shared(struct rest_call *c, const struct rest_kind *k,
                                         struct hk_str ns, struct hk_str name, struct json *ret,
                                         bool *ret_staged)
{
    const struct store_obj *o = store_head(c->r->store, k->res, ns, name, ret_staged);
    struct api_object *obj;

    if (!o || !k->storage || k->many_versions || rest_schema_outdated(k, o)) {
        return o ? rest_head(c, k, ns, name, ret, ret_staged) : NULL;
    }
    obj = rest_object(c->r, k, o, true);
    if (!obj) {
        return NULL;
    }
    hk_vec_push(&c->borrowed, obj);
    *ret = obj->root;
    return o;
}

/* ---- lookups for admission ---- */

static const struct json *lookup_get(void *ctx, const struct api_kind *kind, struct hk_str ns,
                                     struct hk_str name)
{
    struct rest *r = ctx;
    struct json *doc = hk_arena_alloc(&r->lookup_call->mem, sizeof(*doc));
    bool staged;

    return rest_head_shared(r->lookup_call, rest_kind_of(r, kind), ns, name, doc, &staged) ? doc
                                                                                           : NULL;
}

/* An iteration over the newest states of a resource. */
struct each {
    struct rest *r;
    const struct rest_kind *k;
    bool (*fn)(void *arg, const struct json *obj); /* NULL: only count */
    void *arg;
    uint32_t n;
    bool stop;
};

static bool each_head(struct each *e, uint32_t res, struct hk_str ns, struct hk_str name)
{
    bool staged;
    const struct store_obj *head = store_head(e->r->store, res, ns, name, &staged);
    struct api_object *obj = head && e->fn ? rest_object(e->r, e->k, head, true) : NULL;

    e->n += head != NULL;
    e->stop = obj && !e->fn(e->arg, &obj->root);
    api_object_unref(obj);
    return !e->stop;
}

static bool each_state(void *ctx, const struct store_obj *o)
{
    return each_head(ctx, o->res, o->ns, o->name);
}

uint32_t *rest_unborn(struct rest *r, uint32_t res)
{
    while (r->unpublished.len <= res) {
        hk_vec_push(&r->unpublished, 0);
    }
    return &r->unpublished.at[res];
}

/* Visits published objects in their newest state, then created ones that are not yet published. */
static void each_newest(struct each *e, uint32_t res, struct hk_str ns)
{
    struct rest *r = e->r;

    store_scan(r->store, res, ns, HK_STR(""), HK_STR(""), each_state, e);
    for (uint32_t i = 0; *rest_unborn(r, res) > 0 && i < r->calls.len && !e->stop; i++) {
        const struct rest_call *c = r->calls.at[i];
        if (c->created && c->writes > 0 && c->k->res == res &&
            (ns.n == 0 || hk_str_eq(ns, c->ns)) && !store_get(r->store, res, c->ns, c->name)) {
            each_head(e, res, c->ns, c->name);
        }
    }
}

static void lookup_each(void *ctx, const struct api_kind *kind, struct hk_str ns,
                        bool (*fn)(void *arg, const struct json *obj), void *arg)
{
    const struct rest_kind *k = rest_kind_of(ctx, kind);
    struct each e = {.r = ctx, .k = k, .fn = fn, .arg = arg};

    if (k) {
        each_newest(&e, k->res, ns);
    }
}

static uint32_t lookup_count(void *ctx, struct hk_str group, struct hk_str plural, struct hk_str ns)
{
    struct each e = {.r = ctx};

    each_newest(&e, store_res(e.r->store, group, plural), ns);
    return e.n;
}

struct admission_lookup rest_lookup(struct rest *r)
{
    return (struct admission_lookup){.ctx = r,
                                     .get = lookup_get,
                                     .each = lookup_each,
                                     .count = lookup_count,
                                     .used = rest_quota_used};
}
