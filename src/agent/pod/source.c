// SPDX-License-Identifier: Apache-2.0
// Watches the ConfigMaps and Secrets in volumes of running pods: one watch per object for as long
// as a pod uses it, and a notification to its pods on each change. After a deletion the files stay,
// as with kubelet. Immutable objects are not watched.
#include "agent/pod/source.h"

#include "api/feed.h"

struct source {
    struct pods *set;
    const struct api_kind *kind;
    char *ns, *name, *selector;
    uint32_t users;
    struct feed feed;
    struct api_object *obj; /* or NULL */
};

static void source_tell_pods(struct source *s)
{
    for (uint32_t i = 0; i < s->set->slots.len; i++) {
        struct pod *p = s->set->slots.at[i];

        for (uint32_t k = 0; p && k < p->refs.len; k++) {
            if (p->refs.at[k].source == s) {
                ref_changed(p, &p->refs.at[k], s->obj);
            }
        }
    }
}

static void source_on_put(void *ctx, struct api_object *o)
{
    struct source *s = ctx;

    api_object_unref(s->obj);
    s->obj = api_object_ref(o);
    source_tell_pods(s);
}

static void source_on_del(void *ctx, struct hk_str ns, struct hk_str name,
                          const struct api_object *last)
{
}

static const struct feed_ops ops = {.put = source_on_put, .del = source_on_del};

static bool source_is_same(const struct source *s, const struct pod *p, const struct ref *r)
{
    return s->kind->id == r->kind && hk_str_is(p->ns, s->ns) && hk_str_is(r->name, s->name);
}

static struct source *source_new(const struct pod *p, const struct ref *r)
{
    struct host *h = p->host;
    struct source *s = hk_zalloc(sizeof(*s));

    *s = (struct source){.set = p->set, .kind = api_kind(r->kind)};
    s->ns = hk_strndup(p->ns.s, p->ns.n);
    s->name = hk_strndup(r->name.s, r->name.n);
    s->selector = hk_strdup(hk_arena_printf(&h->mem, "metadata.name=%s", s->name));
    hk_vec_push(&p->set->sources, s);
    feed_init(&s->feed, &(struct feed_opts){.port = h->o.port,
                                            .clock = h->o.clock,
                                            .str = &h->str,
                                            .kind = s->kind,
                                            .ns = hk_str(s->ns),
                                            .field_selector = hk_str(s->selector),
                                            .ops = &ops,
                                            .ctx = s});
    return s;
}

static void source_free(struct source *s)
{
    feed_fini(&s->feed);
    api_object_unref(s->obj);
    hk_free(s->ns);
    hk_free(s->name);
    hk_free(s->selector);
    hk_free(s);
}

static struct source *source_find(const struct pod *p, const struct ref *r)
{
    for (uint32_t i = 0; i < p->set->sources.len; i++) {
        if (source_is_same(p->set->sources.at[i], p, r)) {
            return p->set->sources.at[i];
        }
    }
    return NULL;
}

void source_watch(struct pod *p, struct ref *r)
{
    const bool immutable = r->obj && json_bool(json_get(&r->obj->root, "immutable"), false);

    if (r->source || !r->in_volume || immutable || !p->dir) {
        return;
    }
    r->source = source_find(p, r);
    if (!r->source) {
        r->source = source_new(p, r);
    }
    r->source->users++;
}

void source_drop(struct pod *p, struct ref *r)
{
    struct source *s = hk_take(r->source);

    if (!s || --s->users > 0) {
        return;
    }
    for (uint32_t i = 0; i < p->set->sources.len; i++) {
        if (p->set->sources.at[i] == s) {
            hk_vec_swap_remove(&p->set->sources, i);
            break;
        }
    }
    source_free(s);
}

int64_t source_tick(struct pods *ps, int64_t now_ns)
{
    int64_t next_ns = INT64_MAX;

    for (uint32_t i = 0; i < ps->sources.len; i++) {
        const int64_t at_ns = feed_tick(&ps->sources.at[i]->feed, now_ns);

        next_ns = HK_MIN(next_ns, at_ns);
    }
    return next_ns;
}
