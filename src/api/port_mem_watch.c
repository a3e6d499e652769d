// SPDX-License-Identifier: Apache-2.0
// Messages of the port for tests: lists, watches, and the queue that port_poll empties.
#include "api/port_mem_priv.h"

static bool filter_init(struct filter *f, const struct port_request *req, struct hk_err *err)
{
    f->kind = req->kind;
    f->ns = hk_arena_str(&f->arena, req->ns);
    return api_selector_parse(hk_arena_str(&f->arena, req->label_selector), &f->arena, &f->labels,
                              err) == 0 &&
           api_field_selector_parse(req->field_selector, &f->arena, &f->fields, err) == 0;
}

static bool filter_match(const struct filter *f, const struct api_object *o)
{
    HK_AUTO(hk_arena_fini) struct hk_arena scratch = {0};
    struct api_meta meta;

    if (!o || o->kind != f->kind || (f->ns.n > 0 && !hk_str_eq(o->ns, f->ns))) {
        return false;
    }
    if (f->labels.len > 0 && (api_meta_decode(&o->root, &scratch, &meta, NULL) < 0 ||
                              !api_selector_match(&f->labels, &meta.labels))) {
        return false;
    }
    return api_field_selector_match(&f->fields, &o->root);
}

static void watch_free(struct watch *w)
{
    hk_arena_fini(&w->filter.arena);
    hk_free(w);
}

static void message_fini(struct message *q)
{
    api_object_unref(q->msg.obj);
    for (uint32_t i = 0; i < q->msg.nitems; i++) {
        api_object_unref(q->items[i]);
    }
    hk_free(q->items);
    hk_free(q->err);
    hk_free(q->cont);
}

static void send_event(struct port_mem *m, const struct watch *w, enum port_msg_type type,
                       struct api_object *obj, uint64_t rv)
{
    struct message q = {.sink = w->sink, .msg = {.type = type, .call = w->call, .rv = rv}};

    q.msg.obj = obj ? api_object_ref(obj) : NULL;
    hk_vec_push(&m->queue, q);
}

/* Sends a change as one watch sees it: an object may also enter or leave its selection. */
static void port_mem_watch_send_change(struct port_mem *m, const struct watch *w,
                                       const struct change *c)
{
    const bool was = filter_match(&w->filter, c->old);
    const bool is = !c->deleted && filter_match(&w->filter, c->obj);

    if (was || is) {
        send_event(m, w, !is ? PORT_DELETED : was ? PORT_MODIFIED : PORT_ADDED, c->obj, c->obj->rv);
    }
}

void mem_done(struct port_mem *m, uint64_t call, struct port_sink sink, int rc,
              const struct hk_err *err, struct message q)
{
    q.sink = sink;
    q.msg.type = PORT_DONE;
    q.msg.call = call;
    q.msg.rc = rc;
    if (rc < 0) {
        q.err = hk_alloc(sizeof(*q.err));
        *q.err = *err;
    }
    hk_vec_push(&m->queue, q);
}

void mem_queue_change(struct port_mem *m, const struct change *c)
{
    for (uint32_t i = 0; i < m->watches.len; i++) {
        port_mem_watch_send_change(m, m->watches.at[i], c);
    }
}

int mem_list(struct call *c, struct message *q)
{
    struct port_mem *m = c->m;
    struct filter f = {0};
    HK_VEC(struct api_object *) items = {0};
    int64_t row = 0;
    int rc = 0;

    if (!filter_init(&f, c->req, &c->err)) {
        rc = -c->err.code;
    } else if (c->req->cont.n > 0 && !hk_str_int(c->req->cont, &row)) {
        rc = hk_fail(&c->err, HK_EINVAL, "bad continue token '%.*s'", HK_FMT(c->req->cont));
    }
    for (; rc == 0 && row < m->rows.len; row++) {
        if (!filter_match(&f, m->rows.at[row])) {
            continue;
        }
        if (c->req->limit > 0 && items.len == c->req->limit) {
            q->cont = hk_strdup(hk_arena_printf(&c->arena, "%lld", (long long)row));
            break;
        }
        hk_vec_push(&items, api_object_ref(m->rows.at[row]));
    }
    hk_arena_fini(&f.arena);
    q->items = items.at;
    q->msg.nitems = items.len;
    q->msg.rv = m->rv;
    return rc;
}

/* Sends past changes first, then new ones. From revision 0 the past is every current object. */
static void watch_start(struct port_mem *m, struct watch *w, uint64_t rv)
{
    for (uint32_t i = 0; rv == 0 && i < m->rows.len; i++) {
        struct api_object *o = m->rows.at[i];
        if (filter_match(&w->filter, o)) {
            send_event(m, w, PORT_ADDED, o, o->rv);
        }
    }
    for (uint32_t i = 0; rv > 0 && i < m->changes.len; i++) {
        if (m->changes.at[i].obj->rv > rv) {
            port_mem_watch_send_change(m, w, &m->changes.at[i]);
        }
    }
    hk_vec_push(&m->watches, w);
}

int mem_watch(struct call *c, struct port_sink sink)
{
    const struct port_request *req = c->req;
    struct watch *w;

    if (req->rv > 0 && req->rv < c->m->compacted) {
        return hk_fail(&c->err, HK_EGONE, "revision %llu is compacted, oldest is %llu",
                       (unsigned long long)req->rv, (unsigned long long)c->m->compacted);
    }
    w = hk_zalloc(sizeof(*w));
    w->call = c->id;
    w->sink = sink;
    w->bookmarks = req->bookmarks;
    if (!filter_init(&w->filter, req, &c->err)) {
        watch_free(w);
        return -c->err.code;
    }
    watch_start(c->m, w, req->rv);
    return 0;
}

void mem_cancel(struct port *p, uint64_t call)
{
    struct port_mem *m = (struct port_mem *)p;

    for (uint32_t i = 0; i < m->watches.len; i++) {
        if (m->watches.at[i]->call == call) {
            watch_free(m->watches.at[i]);
            hk_vec_swap_remove(&m->watches, i);
            break;
        }
    }
    for (uint32_t i = m->queue_at; i < m->queue.len; i++) {
        if (m->queue.at[i].msg.call == call) {
            m->queue.at[i].sink.on_msg = NULL;
        }
    }
}

uint32_t mem_poll(struct port *p, uint32_t max)
{
    struct port_mem *m = (struct port_mem *)p;
    uint32_t n = 0;

    while (n < max && m->queue_at < m->queue.len) {
        /* A copy: the callback may submit calls, which may move the queue. */
        struct message q = m->queue.at[m->queue_at++];
        if (q.sink.on_msg) {
            q.msg.err = q.err;
            q.msg.items = q.items;
            q.msg.cont = hk_str(q.cont);
            q.sink.on_msg(q.sink.ctx, &q.msg);
            n++;
        }
        message_fini(&q);
    }
    if (m->queue_at == m->queue.len) {
        hk_vec_clear(&m->queue);
        m->queue_at = 0;
    }
    return n;
}

void port_mem_end_watches(struct port_mem *m, enum hk_code code)
{
    struct hk_err err = {0};
    const int rc = hk_fail(&err, code, "watch ended");

    for (uint32_t i = 0; i < m->watches.len; i++) {
        struct watch *w = m->watches.at[i];
        mem_done(m, w->call, w->sink, rc, &err, (struct message){0});
        watch_free(w);
    }
    hk_vec_clear(&m->watches);
}

void port_mem_bookmark(struct port_mem *m)
{
    for (uint32_t i = 0; i < m->watches.len; i++) {
        if (m->watches.at[i]->bookmarks) {
            send_event(m, m->watches.at[i], PORT_BOOKMARK, NULL, m->rv);
        }
    }
}

void mem_watches_fini(struct port_mem *m)
{
    for (uint32_t i = 0; i < m->watches.len; i++) {
        watch_free(m->watches.at[i]);
    }
    for (uint32_t i = m->queue_at; i < m->queue.len; i++) {
        message_fini(&m->queue.at[i]);
    }
    hk_vec_fini(&m->watches);
    hk_vec_fini(&m->queue);
}
