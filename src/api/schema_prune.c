// SPDX-License-Identifier: Apache-2.0
// Changes objects by their schema: removes unknown fields and adds defaults. The decoder limits the
// depth of objects, so recursion is bounded.
#include "api/schema_priv.h"
#include "api/type.h"

struct pruner {
    struct hk_arena *a;
    const struct schema_sink *sink;
    uint32_t said;
};

static void report_unknown(struct pruner *p, const struct schema_path *at)
{
    if (p->sink && p->sink->unknown && p->said++ < SCHEMA_MAX_FINDINGS) {
        p->sink->unknown(p->sink->ctx, schema_path_text(at, p->a));
    }
}

/* Keeps the members selected by keep, in one pass: objects may have very many. */
static void filter(struct json *obj, const bool *keep)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < obj->len; i++) {
        if (keep[i]) {
            obj->members[n++] = obj->members[i];
        }
    }
    obj->cap = HK_MAX(obj->cap, obj->len);
    obj->len = n;
}

static void prune_meta(struct pruner *p, struct json *meta, const struct schema_path *at)
{
    if (meta->type != JSON_OBJECT) {
        return;
    }
    const struct api_type *type = api_type_of(NULL)->fields[0].type;
    bool *keep = hk_arena_alloc(p->a, meta->len + 1);
    for (uint32_t i = 0; i < meta->len; i++) {
        const struct schema_path here = {at, meta->members[i].key, 0};
        keep[i] = api_type_name(type, meta->members[i].key) != NULL;
        if (!keep[i]) {
            report_unknown(p, &here);
        }
    }
    filter(meta, keep);
}

static void schema_prune_prune_value(struct pruner *p, const struct schema_node *n, bool resource,
                                     struct json *v, const struct schema_path *at);

/* Whether the member stays. */
static bool prune_member(struct pruner *p, const struct schema_node *n, bool resource,
                         struct json_member *m, const struct schema_path *at)
{
    const struct schema_path here = {at, m->key, 0};

    if (resource && hk_str_is(m->key, "metadata")) {
        prune_meta(p, &m->value, &here);
        return true;
    }
    if (resource && (hk_str_is(m->key, "apiVersion") || hk_str_is(m->key, "kind"))) {
        return true;
    }
    const struct schema_node *prop = schema_prop_find(n, m->key);
    if (!prop) {
        prop = n->additional;
    }
    if (prop) {
        schema_prune_prune_value(p, prop, prop->embedded, &m->value, &here);
        return true;
    }
    if (n->preserve || n->free_form) {
        return true;
    }
    report_unknown(p, &here);
    return false;
}

static void schema_prune_prune_value(struct pruner *p, const struct schema_node *n, bool resource,
                                     struct json *v, const struct schema_path *at)
{
    if (v->type == JSON_ARRAY && n->items) {
        for (uint32_t i = 0; i < v->len; i++) {
            const struct schema_path here = {at, {0}, i};
            schema_prune_prune_value(p, n->items, n->items->embedded, &v->items[i], &here);
        }
    }
    if (v->type == JSON_OBJECT) {
        bool *keep = hk_arena_alloc(p->a, v->len + 1);
        for (uint32_t i = 0; i < v->len; i++) {
            keep[i] = prune_member(p, n, resource, &v->members[i], at);
        }
        filter(v, keep);
    }
}

void schema_prune(const struct schema *s, struct json *obj, struct hk_arena *a,
                  const struct schema_sink *sink)
{
    struct pruner p = {a, sink, 0};
    const struct schema_path root = {0};

    schema_prune_prune_value(&p, s->root, true, obj, &root);
}

/* ---- defaults ---- */

static void schema_prune_fill_defaults(const struct schema_node *n, struct json *v,
                                       struct hk_arena *a);

static const struct schema_node *member_node(const struct schema_node *n, struct hk_str key)
{
    const struct schema_node *prop = schema_prop_find(n, key);

    return prop ? prop : n->additional;
}

static void drop_nulls(const struct schema_node *n, struct json *obj, struct hk_arena *a)
{
    bool *keep = hk_arena_alloc(a, obj->len + 1);

    for (uint32_t i = 0; i < obj->len; i++) {
        const struct schema_node *prop = member_node(n, obj->members[i].key);
        keep[i] = obj->members[i].value.type != JSON_NULL || !prop || prop->nullable ||
                  prop->type == SCHEMA_ANY;
    }
    filter(obj, keep);
}

static void fill_object(const struct schema_node *n, struct json *obj, struct hk_arena *a)
{
    drop_nulls(n, obj, a);
    for (uint32_t i = 0; i < n->nprops; i++) {
        const struct schema_prop *prop = &n->props[i];
        if (prop->node->preset && !json_get_str(obj, prop->key)) {
            json_put(obj, a, hk_arena_str(a, prop->key), json_clone(prop->node->preset, a));
        }
    }
    for (uint32_t i = 0; i < obj->len; i++) {
        const struct schema_node *prop = member_node(n, obj->members[i].key);
        if (prop) {
            schema_prune_fill_defaults(prop, &obj->members[i].value, a);
        }
    }
}

static void schema_prune_fill_defaults(const struct schema_node *n, struct json *v,
                                       struct hk_arena *a)
{
    if (v->type == JSON_OBJECT) {
        fill_object(n, v, a);
    } else if (v->type == JSON_ARRAY && n->items) {
        for (uint32_t i = 0; i < v->len; i++) {
            schema_prune_fill_defaults(n->items, &v->items[i], a);
        }
    }
}

void schema_default(const struct schema *s, struct json *obj, struct hk_arena *a)
{
    schema_prune_fill_defaults(s->root, obj, a);
}
