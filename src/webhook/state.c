// SPDX-License-Identifier: Apache-2.0
// Two tables of cluster-scoped objects, by name. Queues are also linked by parent: every new job
// asks whether a queue has children, and the answer must not need a walk over all queues.
#include "webhook/state.h"

#include "api/feed.h"

struct row {
    struct api_object *obj; /* NULL: free */
    uint32_t name, parent;  /* string ids, held; parent 0: none */
    uint32_t next, prev;    /* of the same parent */
};

struct object_table {
    struct webhook_state *state;
    bool wanted;
    struct feed feed;
    HK_VEC(struct row) rows;
    HK_VEC(uint32_t) vacant;
    struct hk_map at;       /* name to row */
    struct hk_map children; /* parent to its first child's row */
};

struct webhook_state {
    struct hk_intern str;
    struct object_table queues, namespaces;
    struct admission_lookup lookup;
};

/* ---- parents ---- */

static void unchain(struct object_table *sh, struct row *r)
{
    if (r->parent == 0) {
        return;
    }
    if (r->prev != HK_NONE) {
        sh->rows.at[r->prev].next = r->next;
    } else if (r->next != HK_NONE) {
        hk_map_put(&sh->children, r->parent, r->next);
    } else {
        hk_map_del(&sh->children, r->parent);
    }
    if (r->next != HK_NONE) {
        sh->rows.at[r->next].prev = r->prev;
    }
    hk_intern_drop(&sh->state->str, r->parent);
    r->parent = 0;
}

static void chain(struct object_table *sh, uint32_t i, struct hk_str parent)
{
    struct row *r = &sh->rows.at[i];

    if (parent.n == 0) {
        return;
    }
    r->parent = hk_intern_hold(&sh->state->str, parent);
    r->prev = HK_NONE;
    r->next = hk_map_get(&sh->children, r->parent);
    if (r->next != HK_NONE) {
        sh->rows.at[r->next].prev = i;
    }
    hk_map_put(&sh->children, r->parent, i);
}

/* ---- rows ---- */

static uint32_t webhook_state_find_row(const struct object_table *sh, struct hk_str name)
{
    const uint32_t id = hk_intern_find(&sh->state->str, name);

    return id == HK_NONE ? HK_NONE : hk_map_get(&sh->at, id);
}

static uint32_t webhook_state_add_row(struct object_table *sh, struct hk_str name)
{
    const uint32_t id = hk_intern_hold(&sh->state->str, name);
    uint32_t i = sh->rows.len;

    if (sh->vacant.len > 0) {
        i = hk_vec_pop(&sh->vacant);
    } else {
        hk_vec_push(&sh->rows, (struct row){0});
    }
    sh->rows.at[i] = (struct row){.name = id};
    hk_map_put(&sh->at, id, i);
    return i;
}

static void clear_row(struct object_table *sh, uint32_t i)
{
    struct row *r = &sh->rows.at[i];

    unchain(sh, r);
    api_object_unref(r->obj);
    hk_map_del(&sh->at, r->name);
    hk_intern_drop(&sh->state->str, r->name);
    *r = (struct row){0};
}

static void webhook_state_on_put(void *ctx, struct api_object *o)
{
    struct object_table *sh = ctx;
    uint32_t i = webhook_state_find_row(sh, o->name);

    if (i == HK_NONE) {
        i = webhook_state_add_row(sh, o->name);
    }
    unchain(sh, &sh->rows.at[i]);
    api_object_unref(sh->rows.at[i].obj);
    sh->rows.at[i].obj = api_object_ref(o);
    chain(sh, i, json_str_at(&o->root, "spec.parent"));
}

static void webhook_state_on_del(void *ctx, struct hk_str ns, struct hk_str name,
                                 const struct api_object *last)
{
    struct object_table *sh = ctx;
    const uint32_t i = webhook_state_find_row(sh, name);

    if (i != HK_NONE) {
        clear_row(sh, i);
        hk_vec_push(&sh->vacant, i);
    }
}

/* ---- reading ---- */

static struct object_table *object_table_of(struct webhook_state *s, const struct api_kind *kind)
{
    if (kind->id == API_QUEUE) {
        return &s->queues;
    }
    return kind->id == API_NAMESPACE ? &s->namespaces : NULL;
}

static const struct json *webhook_state_lookup_get(void *ctx, const struct api_kind *kind,
                                                   struct hk_str ns, struct hk_str name)
{
    const struct object_table *sh = object_table_of(ctx, kind);
    const uint32_t i = sh ? webhook_state_find_row(sh, name) : HK_NONE;

    return i == HK_NONE ? NULL : &sh->rows.at[i].obj->root;
}

static void webhook_state_lookup_each(void *ctx, const struct api_kind *kind, struct hk_str ns,
                                      bool (*fn)(void *arg, const struct json *obj), void *arg)
{
    const struct object_table *sh = object_table_of(ctx, kind);

    for (uint32_t i = 0; sh && i < sh->rows.len; i++) {
        if (sh->rows.at[i].obj && !fn(arg, &sh->rows.at[i].obj->root)) {
            return;
        }
    }
}

static void each_child(void *ctx, struct hk_str parent,
                       bool (*fn)(void *arg, const struct json *obj), void *arg)
{
    const struct webhook_state *s = ctx;
    const struct object_table *sh = &s->queues;
    const uint32_t id = hk_intern_find(&s->str, parent);
    uint32_t i = id == HK_NONE || id == 0 ? HK_NONE : hk_map_get(&sh->children, id);

    while (i != HK_NONE && fn(arg, &sh->rows.at[i].obj->root)) {
        i = sh->rows.at[i].next;
    }
}

const struct admission_lookup *webhook_state_lookup(struct webhook_state *s)
{
    return &s->lookup;
}

/* ---- open and close ---- */

static void object_table_open(struct webhook_state *s, struct object_table *sh,
                              enum api_kind_id kind, const struct webhook_state_opts *o)
{
    static const struct feed_ops ops = {.put = webhook_state_on_put, .del = webhook_state_on_del};

    sh->state = s;
    sh->wanted = true;
    feed_init(&sh->feed, &(struct feed_opts){.port = o->port,
                                             .clock = o->clock,
                                             .str = &s->str,
                                             .kind = api_kind(kind),
                                             .required = true,
                                             .ops = &ops,
                                             .ctx = sh});
}

static void object_table_close(struct object_table *sh)
{
    if (!sh->wanted) {
        return;
    }
    feed_fini(&sh->feed);
    for (uint32_t i = 0; i < sh->rows.len; i++) {
        if (sh->rows.at[i].obj) {
            clear_row(sh, i);
        }
    }
    hk_vec_fini(&sh->rows);
    hk_vec_fini(&sh->vacant);
    hk_map_fini(&sh->at);
    hk_map_fini(&sh->children);
}

struct webhook_state *webhook_state_new(const struct webhook_state_opts *o)
{
    struct webhook_state *s = hk_zalloc(sizeof(*s));

    s->lookup = (struct admission_lookup){.ctx = s,
                                          .get = webhook_state_lookup_get,
                                          .each = webhook_state_lookup_each,
                                          .each_child = each_child};
    s->queues.state = s->namespaces.state = s;
    if (o->queues) {
        object_table_open(s, &s->queues, API_QUEUE, o);
    }
    if (o->namespaces) {
        object_table_open(s, &s->namespaces, API_NAMESPACE, o);
    }
    return s;
}

void webhook_state_free(struct webhook_state *s)
{
    if (!s) {
        return;
    }
    object_table_close(&s->queues);
    object_table_close(&s->namespaces);
    hk_intern_fini(&s->str);
    hk_free(s);
}

bool webhook_state_synced(const struct webhook_state *s)
{
    return (!s->queues.wanted || s->queues.feed.synced) &&
           (!s->namespaces.wanted || s->namespaces.feed.synced);
}

static int64_t object_table_tick(struct object_table *sh, int64_t now_ns)
{
    return sh->wanted ? feed_tick(&sh->feed, now_ns) : INT64_MAX;
}

int64_t webhook_state_tick(struct webhook_state *s, int64_t now_ns)
{
    const int64_t queues = object_table_tick(&s->queues, now_ns);
    const int64_t namespaces = object_table_tick(&s->namespaces, now_ns);

    return HK_MIN(queues, namespaces);
}
