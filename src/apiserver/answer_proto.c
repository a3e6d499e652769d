// SPDX-License-Identifier: Apache-2.0
// Answers in protobuf: single objects, lists and Status objects (watch_stream.c has the events of
// watches). Objects of kinds without a type, custom resources above all, exist in JSON only.
//
// The length of a list stands in front of it. So a long list is encoded twice, one slice at a time:
// first for its length, then to be sent; nothing of it is kept in memory.
#include "apiserver/server_priv.h"

#include "api/proto_write.h"

#define PROTOBUF_MEDIA "application/vnd.kubernetes.protobuf"

enum { PROTO_SLICE_BYTES = 64 * 1024 };

/* ---- objects ---- */

/* What an object is called in the envelope. */
struct proto_name {
    const struct api_type *type; /* NULL: the kind has none */
    struct hk_buf version;
    const char *kind;
};

static void proto_name_fini(struct proto_name *n)
{
    hk_buf_fini(&n->version);
}

static void name_of(const struct exchange *x, const struct api_kind *k, struct proto_name *ret)
{
    *ret = (struct proto_name){.kind = k->kind};
    if (x->accept.form == FORM_METADATA) {
        ret->type = api_type_plain();
        ret->kind = "PartialObjectMetadata";
        hk_buf_addf(&ret->version, "meta.k8s.io/%s", x->accept.version);
        return;
    }
    api_kind_write_version(k, &ret->version);
    ret->type = api_type_find(hk_buf_str(&ret->version), hk_str(k->kind));
}

static void write_bare(const struct api_type *t, const struct api_object *o, struct hk_buf *out)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json tree = o->root;

    if (json_is(&tree, JSON_NULL) && json_parse(o->text, 0, &mem, &tree, NULL) < 0) {
        return; /* cannot happen: stored text is valid */
    }
    api_proto_write(t, &tree, out);
}

bool proto_has(const struct api_kind *k)
{
    HK_AUTO(hk_buf_fini) struct hk_buf version = {0};

    api_kind_write_version(k, &version);
    return api_type_find(hk_buf_str(&version), hk_str(k->kind)) != NULL;
}

void proto_write_object(const struct exchange *x, const struct api_object *o, struct hk_buf *out)
{
    HK_AUTO(proto_name_fini) struct proto_name name;
    HK_AUTO(hk_buf_fini) struct hk_buf bare = {0};

    name_of(x, o->kind, &name);
    hk_assert(name.type);
    write_bare(name.type, o, &bare);
    api_proto_write_head(hk_buf_str(&name.version), hk_str(name.kind), bare.len, out);
    hk_buf_addstr(out, hk_buf_str(&bare));
    api_proto_write_tail(out);
}

void proto_write_tree(const struct exchange *x, const struct api_kind *k, const struct json *tree,
                      struct hk_buf *out)
{
    HK_AUTO(proto_name_fini) struct proto_name name;

    name_of(x, k, &name);
    hk_assert(name.type);
    api_proto_encode(name.type, hk_buf_str(&name.version), hk_str(name.kind), tree, out);
}

void proto_write_status(const struct port_status *s, struct hk_buf *out)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct json tree;

    status_write(s, &text);
    hk_assert(json_parse(hk_buf_str(&text), 0, &mem, &tree, NULL) == 0);
    api_proto_encode(&api_type_status, HK_STR("v1"), HK_STR("Status"), &tree, out);
}

/* ---- lists ---- */

struct proto_list {
    struct exchange *x;
    struct proto_name name; /* of an item */
    struct hk_buf meta;     /* the list's metadata, encoded */
    struct api_object **items;
    uint32_t n;
    uint32_t sized, at;      /* items whose length is known, items that were written */
    size_t bytes;            /* of all so far */
    struct net_timer *timer; /* continues after a slice; NULL for a short list */
};

static void list_meta(struct proto_list *l, const struct port_msg *m)
{
    struct hk_arena *a = &l->x->mem;
    struct json meta = json_make_object();

    json_set_cstr(&meta, a, "resourceVersion",
                  hk_arena_printf(a, "%llu", (unsigned long long)m->rv));
    if (m->cont.n > 0) {
        json_set_str(&meta, a, "continue", m->cont);
    }
    if (m->cont.n > 0 && m->remaining > 0) {
        json_set_int(&meta, a, "remainingItemCount", m->remaining);
    }
    api_proto_write_list_meta(&meta, &l->meta);
}

static void list_write_one(const struct proto_list *l, uint32_t i, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf bare = {0};

    write_bare(l->name.type, l->items[i], &bare);
    api_proto_write_item_head(bare.len, out);
    hk_buf_addstr(out, hk_buf_str(&bare));
}

/* Adds up the lengths of a slice of items. */
static void list_measure(struct proto_list *l)
{
    HK_AUTO(hk_buf_fini) struct hk_buf one = {0};
    size_t looked_at = 0;

    while (l->sized < l->n && looked_at < PROTO_SLICE_BYTES) {
        looked_at += l->items[l->sized]->text.n;
        hk_buf_clear(&one);
        list_write_one(l, l->sized++, &one);
        l->bytes += one.len;
    }
}

static void list_write_start(const struct proto_list *l, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf kind = {0};

    hk_buf_addf(&kind, "%sList", l->name.kind);
    api_proto_write_head(hk_buf_str(&l->name.version), hk_buf_str(&kind), l->meta.len + l->bytes,
                         out);
    hk_buf_addstr(out, hk_buf_str(&l->meta));
}

static void proto_list_fini(struct proto_list *l)
{
    net_timer_free(l->timer);
    proto_name_fini(&l->name);
    hk_buf_fini(&l->meta);
}

static void write_short_list(struct proto_list *l, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf items = {0};

    for (uint32_t i = 0; i < l->n; i++) {
        list_write_one(l, i, &items);
    }
    l->bytes = items.len;
    list_write_start(l, out);
    hk_buf_addstr(out, hk_buf_str(&items));
    api_proto_write_tail(out);
}

static bool proto_list_pull(void *ctx, struct hk_buf *out, size_t room)
{
    struct proto_list *l = ctx;
    size_t looked_at = 0;

    if (l->sized < l->n) {
        list_measure(l);
        net_timer_at(l->timer, net_loop_now_ns(l->x->server->opts.loop));
        return true; /* with nothing, until the timer fires */
    }
    if (l->at == 0) {
        list_write_start(l, out);
    }
    while (l->at < l->n && out->len < room && looked_at < PROTO_SLICE_BYTES) {
        looked_at += l->items[l->at]->text.n;
        list_write_one(l, l->at, out);
        api_object_unref(l->items[l->at++]);
    }
    if (l->at == l->n) {
        api_proto_write_tail(out);
    }
    return l->at < l->n;
}

static void proto_list_ended(void *ctx)
{
    struct proto_list *l = ctx;

    while (l->at < l->n) {
        api_object_unref(l->items[l->at++]);
    }
    proto_list_fini(l);
    exchange_free(l->x);
}

static void proto_list_on_timer(void *ctx)
{
    struct proto_list *l = ctx;

    http_resume(l->x->http);
}

static void stream_long_list(struct proto_list *l, const struct port_msg *m,
                             struct http_header *headers, uint32_t n)
{
    struct exchange *x = l->x;
    struct api_object **items = hk_arena_array(&x->mem, m->nitems, sizeof(*items));

    for (uint32_t k = 0; k < m->nitems; k++) {
        items[k] = api_object_ref(m->items[k]);
    }
    l->items = items;
    l->timer = net_timer_new(x->server->opts.loop, proto_list_on_timer, l);
    headers[n++] = (struct http_header){HK_STR("Content-Type"), HK_STR(PROTOBUF_MEDIA)};
    headers[n++] = (struct http_header){HK_STR("Cache-Control"), HK_STR("no-cache, private")};
    x->server->counters.requests[2]++;
    exchange_settle(x);
    http_reply_stream(
        x->http, 200, headers, n,
        &(struct http_stream){
            .pull = proto_list_pull, .ended = proto_list_ended, .ctx = l, .finite = true});
}

bool proto_answer_list(struct exchange *x, const struct port_msg *m, struct http_header *headers,
                       uint32_t n, struct hk_buf *body)
{
    struct proto_list *l = hk_arena_zalloc(&x->mem, sizeof(*l));

    l->x = x;
    l->n = m->nitems;
    l->items = (struct api_object **)m->items;
    name_of(x, x->kind->kind, &l->name);
    list_meta(l, m);
    if (list_is_long(m)) {
        stream_long_list(l, m, headers, n);
        return true;
    }
    write_short_list(l, body);
    proto_list_fini(l);
    return false;
}
