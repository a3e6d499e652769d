// SPDX-License-Identifier: Apache-2.0
// Reading: one object, and lists in pages. All pages of a list show one revision: the present is
// rolled back with the history of what changed since, so a list costs nothing between its pages and
// expires only when that history does.
#include "codec/base64.h"
#include "store/rest_priv.h"

/* ---- get ---- */

int rest_get(struct rest_call *c)
{
    const char *sub = c->req->subresource;

    if (sub && !strcmp(sub, "scale")) {
        return rest_scale_get(c);
    }
    const struct store_obj *o = store_get(c->r->store, c->k->res, c->ns, c->name);
    if (!o) {
        return rest_fail_missing(c, c->k, c->name);
    }
    c->obj = rest_object(c->r, c->k, o, !c->text_only);
    c->rv = o->rv;
    return 0;
}

/* ---- the token of a page ---- */

struct page {
    uint64_t rv; /* 0: now */
    struct hk_str after_ns, after_name;
};

/* "rv/namespace/name", coded so that nobody takes it apart. */
static const char *token_write(struct rest_call *c, uint64_t rv, const struct store_obj *last)
{
    HK_AUTO(hk_buf_fini) struct hk_buf plain = {0}, coded = {0};

    hk_buf_addf(&plain, "%llu/%.*s/%.*s", (unsigned long long)rv, HK_FMT(last->ns),
                HK_FMT(last->name));
    base64url_write(hk_buf_str(&plain), &coded);
    return hk_arena_strndup(&c->mem, coded.data, coded.len);
}

static struct hk_str token_decode(struct rest_call *c, struct hk_str token)
{
    HK_AUTO(hk_buf_fini) struct hk_buf plain = {0};

    if (!base64url_read(token, &plain)) {
        return (struct hk_str){0};
    }
    return hk_arena_str(&c->mem, hk_buf_str(&plain));
}

static int token_read(struct rest_call *c, struct page *ret)
{
    struct hk_str rest = token_decode(c, c->req->cont);
    struct hk_str rv;
    int64_t n;

    if (!hk_str_cut(&rest, '/', &rv) || !hk_str_int(rv, &n) || n < 0 ||
        !hk_str_cut(&rest, '/', &ret->after_ns) || !rest.s || rest.n == 0) {
        return rest_fail_bad(c, "continue key is not valid: %.*s", HK_FMT(c->req->cont));
    }
    ret->after_name = rest;
    ret->rv = (uint64_t)n;
    return 0;
}

/* ---- the state at a revision ---- */

/* An object that has changed since, as it was: NULL when there was none. */
struct past {
    struct hk_str ns, name;
    const struct store_obj *was; /* held */
};

struct lister {
    struct rest_call *c;
    struct rest_filter filter;
    struct page page;
    HK_VEC(struct past) past; /* in order of (namespace, name), behind the page's beginning */
    uint32_t past_at;
    struct hk_intern keys;        /* objects in past */
    const struct store_obj *last; /* shown last */
    bool full;
};

static int key_cmp(struct hk_str ns_a, struct hk_str name_a, struct hk_str ns_b,
                   struct hk_str name_b)
{
    const int ns = hk_str_cmp(ns_a, ns_b);
    return ns != 0 ? ns : hk_str_cmp(name_a, name_b);
}

static int past_cmp(const void *a, const void *b)
{
    const struct past *x = a;
    const struct past *y = b;
    return key_cmp(x->ns, x->name, y->ns, y->name);
}

/* The first change after the revision tells what was before. */
static void past_note(struct lister *l, const struct store_event *ev)
{
    HK_AUTO(hk_buf_fini) struct hk_buf key = {0};
    const uint32_t known = l->keys.live;

    hk_buf_addf(&key, "%.*s/%.*s", HK_FMT(ev->obj->ns), HK_FMT(ev->obj->name));
    hk_intern(&l->keys, hk_buf_str(&key));
    if (l->keys.live == known ||
        key_cmp(ev->obj->ns, ev->obj->name, l->page.after_ns, l->page.after_name) <= 0) {
        return;
    }
    hk_vec_push(&l->past, (struct past){
                              .ns = hk_arena_str(&l->c->mem, ev->obj->ns),
                              .name = hk_arena_str(&l->c->mem, ev->obj->name),
                              .was = ev->prev ? store_obj_ref(ev->prev) : NULL,
                          });
}

static int fail_expired(struct lister *l)
{
    const struct store_obj from = {.ns = l->page.after_ns, .name = l->page.after_name};

    if (l->c->req->cont.n == 0) {
        return rest_fail_expired(l->c, "The resourceVersion for the provided list is too old.");
    }
    l->c->status.cont = token_write(l->c, 0, &from);
    return rest_fail_expired(
        l->c, "The provided continue parameter is too old to display a consistent list result. You "
              "can start a new list without the continue parameter, or use the continue token in "
              "this response to retrieve the remainder of the results.");
}

static int past_read(struct lister *l)
{
    const struct store *s = l->c->r->store;
    uint64_t rv = l->page.rv;
    enum store_next next;
    struct store_event ev;

    while ((next = store_next(s, l->c->k->res, l->filter.ns, &rv, &ev)) == STORE_NEXT_EVENT) {
        past_note(l, &ev);
    }
    if (next == STORE_NEXT_GONE) {
        return fail_expired(l);
    }
    if (l->past.len > 0) {
        qsort(l->past.at, l->past.len, sizeof(*l->past.at), past_cmp);
    }
    return 0;
}

/* ---- the list ---- */

static bool full(const struct lister *l)
{
    return l->c->req->limit > 0 && l->c->items.len >= l->c->req->limit;
}

static void show(struct lister *l, const struct store_obj *o)
{
    struct rest_call *c = l->c;

    if (!rest_filter_match(c->r, &l->filter, o)) {
        return;
    }
    if (full(l)) {
        l->full = true;
        c->remaining++;
        return;
    }
    struct api_object *obj = rest_object(c->r, c->k, o, !c->text_only);
    if (obj) {
        hk_vec_push(&c->items, obj);
        l->last = o;
    }
}

/* With selectors the count of the rest is not told, so nobody needs to look further. */
static bool enough(const struct lister *l)
{
    return l->full && (l->filter.labels.len > 0 || l->filter.fields.len > 0);
}

/* Shows what was, up to the key; true when the key itself was among it. */
static bool show_past(struct lister *l, const struct store_obj *upto)
{
    for (; l->past_at < l->past.len; l->past_at++) {
        const struct past *p = &l->past.at[l->past_at];
        const int order = upto ? key_cmp(p->ns, p->name, upto->ns, upto->name) : -1;
        if (order > 0) {
            return false;
        }
        if (p->was) {
            show(l, p->was);
        }
        if (order == 0) {
            l->past_at++;
            return true;
        }
    }
    return false;
}

static bool on_state(void *ctx, const struct store_obj *o)
{
    struct lister *l = ctx;

    if (!show_past(l, o)) {
        show(l, o);
    }
    return !enough(l);
}

static void read_all(struct lister *l)
{
    const struct rest_filter *f = &l->filter;
    const struct store *s = l->c->r->store;

    if (f->name.n > 0 && l->past.len == 0 && (f->ns.n > 0 || !f->k->kind->namespaced)) {
        const struct store_obj *o = store_get(s, f->k->res, f->ns, f->name);
        if (o && l->c->req->cont.n == 0) {
            show(l, o);
        }
        return;
    }
    store_scan(s, f->k->res, f->ns, l->page.after_ns, l->page.after_name, on_state, l);
    show_past(l, NULL);
}

static int list_run(struct lister *l)
{
    struct rest_call *c = l->c;
    const uint64_t now = store_rv(c->r->store);

    if (rest_filter_init(&l->filter, c) < 0 ||
        (c->req->cont.n > 0 && token_read(c, &l->page) < 0)) {
        return c->rc;
    }
    if (c->req->rv > now) {
        rest_cause(c, "ResourceVersionTooLarge", NULL, "Too large resource version");
        c->status.retry_after_s = 1;
        return rest_fail(c, 504, HK_ETIMEOUT, "Timeout",
                         "Timeout: Too large resource version: %llu, current: %llu",
                         (unsigned long long)c->req->rv, (unsigned long long)now);
    }
    if (c->req->cont.n == 0 && c->req->match == PORT_MATCH_EXACT) {
        l->page.rv = c->req->rv;
    }
    c->rv = l->page.rv > 0 ? l->page.rv : now;
    if (l->page.rv > 0 && l->page.rv < now && past_read(l) < 0) {
        return c->rc;
    }
    read_all(l);
    if (l->full) {
        c->cont = token_write(c, c->rv, l->last);
    }
    if (enough(l)) {
        c->remaining = 0;
    }
    return 0;
}

int rest_list(struct rest_call *c)
{
    struct lister l = {.c = c};
    const int rc = list_run(&l);

    for (uint32_t i = 0; i < l.past.len; i++) {
        store_obj_unref(l.past.at[i].was);
    }
    hk_vec_fini(&l.past);
    hk_intern_fini(&l.keys);
    rest_filter_fini(&l.filter);
    return rc;
}
