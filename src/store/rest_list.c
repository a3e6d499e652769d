// SPDX-License-Identifier: Apache-2.0
// Reading: single objects, and lists in pages. All pages of a list show one revision: the history
// of changes rolls the current state back. So a list uses no memory between its pages, and expires
// only when that history does. A long list is built in slices in the same way, and other calls run
// between them.
#include "codec/base64.h"
#include "store/rest_priv.h"

enum { LIST_CONVERTING = 200 }; /* objects that a slice has converted at a time */

/* Memory limit of one slice of a list. */
#define LIST_ROOM ((size_t)8 << 20)

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
    if (rest_convert_state(c, o) < 0) {
        return c->rc;
    }
    c->obj = rest_object(c->r, c->k, o, !c->text_only);
    c->rv = o->rv;
    return 0;
}

/* ---- continue tokens ---- */

struct page {
    uint64_t rv; /* 0: the current one */
    struct hk_str after_ns, after_name;
};

/* "rv/namespace/name", encoded because clients must not parse it. */
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

/* The earlier state of an object that changed later; NULL if it did not exist. */
struct past {
    struct hk_str ns, name;
    const struct store_obj *was; /* holds a reference */
};

struct rest_lister {
    struct rest_call *c;
    struct rest_filter filter;
    struct page page; /* where the next slice starts */
    uint32_t limit;
    bool continued;                                   /* not the first page */
    uint64_t past_rv;                                 /* the revision up to which past was read */
    uint64_t slice_end;                               /* a value of rest.work */
    bool cut;                                         /* the slice ended before the list did */
    struct hk_buf at_ns, at_name, last_ns, last_name; /* keys, kept between slices */
    HK_VEC(struct past) past; /* in order of (namespace, name), after the start of the page */
    uint32_t past_at;
    struct hk_intern keys;        /* objects in past */
    const struct store_obj *last; /* the last one shown */
    bool full;
    /* Where a webhook converts: objects not yet shown, in order; holds references. */
    HK_VEC(const struct store_obj *) converting;
};

static int rest_list_compare_keys(struct hk_str ns_a, struct hk_str name_a, struct hk_str ns_b,
                                  struct hk_str name_b)
{
    const int ns = hk_str_cmp(ns_a, ns_b);
    return ns != 0 ? ns : hk_str_cmp(name_a, name_b);
}

static int past_cmp(const void *a, const void *b)
{
    const struct past *x = a;
    const struct past *y = b;
    return rest_list_compare_keys(x->ns, x->name, y->ns, y->name);
}

/* The first change after the revision contains the state before it. */
static void past_note(struct rest_lister *l, const struct store_event *ev)
{
    HK_AUTO(hk_buf_fini) struct hk_buf key = {0};
    const uint32_t known = l->keys.live;

    hk_buf_addf(&key, "%.*s/%.*s", HK_FMT(ev->obj->ns), HK_FMT(ev->obj->name));
    hk_intern(&l->keys, hk_buf_str(&key));
    if (l->keys.live == known ||
        rest_list_compare_keys(ev->obj->ns, ev->obj->name, l->page.after_ns, l->page.after_name) <=
            0) {
        return;
    }
    hk_vec_push(&l->past, (struct past){
                              .ns = hk_arena_str(&l->c->mem, ev->obj->ns),
                              .name = hk_arena_str(&l->c->mem, ev->obj->name),
                              .was = ev->prev ? store_obj_ref(ev->prev) : NULL,
                          });
}

static int fail_expired(struct rest_lister *l)
{
    const struct store_obj from = {.ns = l->page.after_ns, .name = l->page.after_name};

    if (!l->continued) {
        return rest_fail_expired(l->c, "The resourceVersion for the provided list is too old.");
    }
    l->c->status.cont = token_write(l->c, 0, &from);
    return rest_fail_expired(
        l->c, "The provided continue parameter is too old to display a consistent list result. You "
              "can start a new list without the continue parameter, or use the continue token in "
              "this response to retrieve the remainder of the results.");
}

/* Reads the changes since the last call, or since the revision of the list. */
static int past_read(struct rest_lister *l)
{
    const struct store *s = l->c->r->store;
    const uint32_t known = l->past.len;
    enum store_next next;
    struct store_event ev;

    while ((next = store_next(s, l->c->k->res, l->filter.ns, &l->past_rv, &ev)) ==
           STORE_NEXT_EVENT) {
        past_note(l, &ev);
    }
    if (next == STORE_NEXT_GONE) {
        return fail_expired(l);
    }
    if (l->past.len > known) { /* entries up to past_at were shown and sort before all others */
        qsort(l->past.at + l->past_at, l->past.len - l->past_at, sizeof(*l->past.at), past_cmp);
    }
    return 0;
}

/* ---- the list ---- */

static bool full(const struct rest_lister *l)
{
    return l->limit > 0 && l->c->items.len >= l->limit;
}

static void list_show_converted(struct rest_lister *l, const struct store_obj *o)
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
    c->r->work += c->text_only ? 0 : REST_WORK_PARSED * o->text.n;
    struct api_object *obj = rest_object(c->r, c->k, o, !c->text_only);
    if (obj) {
        hk_vec_push(&c->items, obj);
        l->last = o;
    }
}

static void list_convert_object(struct rest_lister *l, const struct store_obj *o)
{
    struct rest_call *c = l->c;

    c->r->work += REST_WORK_OBJECT;
    if (!rest_filter_match_name(&l->filter, o)) {
        return;
    }
    if (!rest_filter_selects(&l->filter) && l->limit > 0 &&
        c->items.len + l->converting.len >= l->limit) {
        l->full = true;
        c->remaining++;
        return;
    }
    c->r->work += REST_WORK_PARSED * o->text.n;
    hk_vec_push(&l->converting, store_obj_ref(o));
    if (rest_convert_needed(c->k, o)) {
        rest_convert_hold(c, rest_conversion_begin(c->r, c->k, o));
    }
}

static void list_show_object(struct rest_lister *l, const struct store_obj *o)
{
    if (l->c->k->conversion) {
        list_convert_object(l, o);
    } else {
        list_show_converted(l, o);
    }
}

/* With selectors the answer has no remainingItemCount, so the list stops when the page is full. */
static bool rest_list_has_enough(const struct rest_lister *l)
{
    return l->full && (l->filter.labels.len > 0 || l->filter.fields.len > 0);
}

/* Shows past states up to the key; true if the key itself was among them. */
static bool show_past(struct rest_lister *l, const struct store_obj *upto)
{
    for (; l->past_at < l->past.len; l->past_at++) {
        const struct past *p = &l->past.at[l->past_at];
        const int order = upto ? rest_list_compare_keys(p->ns, p->name, upto->ns, upto->name) : -1;
        if (order > 0) {
            return false;
        }
        if (p->was) {
            list_show_object(l, p->was);
        }
        if (order == 0) {
            l->past_at++;
            return true;
        }
    }
    return false;
}

static struct hk_str keep_key(struct hk_buf *b, struct hk_str key)
{
    hk_buf_clear(b);
    hk_buf_addstr(b, key);
    return hk_buf_str(b);
}

/* The next slice starts after the object. The object may be gone by then, so its key is kept. */
static void slice_cut(struct rest_lister *l, const struct store_obj *at)
{
    l->cut = true;
    l->page.after_ns = keep_key(&l->at_ns, at->ns);
    l->page.after_name = keep_key(&l->at_name, at->name);
    if (l->last) {
        keep_key(&l->last_ns, l->last->ns);
        keep_key(&l->last_name, l->last->name);
        l->last = NULL;
    }
}

static bool on_state(void *ctx, const struct store_obj *o)
{
    struct rest_lister *l = ctx;

    if (!show_past(l, o)) {
        list_show_object(l, o);
    }
    if (l->c->r->work >= l->slice_end || l->converting.len >= LIST_CONVERTING) {
        slice_cut(l, o);
        return false;
    }
    return !rest_list_has_enough(l);
}

static void rest_list_read_all(struct rest_lister *l)
{
    const struct rest_filter *f = &l->filter;
    const struct store *s = l->c->r->store;

    if (f->name.n > 0 && l->past.len == 0 && (f->ns.n > 0 || !f->k->kind->namespaced)) {
        const struct store_obj *o = store_get(s, f->k->res, f->ns, f->name);
        if (o && !l->continued) {
            list_show_object(l, o);
        }
        return;
    }
    l->cut = false;
    if (rest_list_has_enough(l)) {
        return;
    }
    l->slice_end = l->c->r->work + REST_SLICE;
    store_scan(s, f->k->res, f->ns, l->page.after_ns, l->page.after_name, on_state, l);
    if (!l->cut) {
        show_past(l, NULL);
    }
}

static int list_begin(struct rest_lister *l)
{
    struct rest_call *c = l->c;
    const uint64_t now = store_rv(c->r->store);

    l->limit = c->req->limit;
    l->continued = c->req->cont.n > 0;
    if (rest_filter_init(&l->filter, c) < 0 || (l->continued && token_read(c, &l->page) < 0)) {
        return c->rc;
    }
    if (c->req->rv > now) {
        rest_cause(c, "ResourceVersionTooLarge", NULL, "Too large resource version");
        c->status.retry_after_s = 1;
        return rest_fail(c, 504, HK_ETIMEOUT, "Timeout",
                         "Timeout: Too large resource version: %llu, current: %llu",
                         (unsigned long long)c->req->rv, (unsigned long long)now);
    }
    if (!l->continued && c->req->match == PORT_MATCH_EXACT) {
        l->page.rv = c->req->rv;
    }
    c->rv = l->page.rv > 0 ? l->page.rv : now;
    l->past_rv = c->rv;
    return 0;
}

static void list_end(struct rest_lister *l)
{
    struct rest_call *c = l->c;
    const struct store_obj kept = {.ns = hk_buf_str(&l->last_ns),
                                   .name = hk_buf_str(&l->last_name)};

    if (l->full) {
        c->cont = token_write(c, c->rv, l->last ? l->last : &kept);
    }
    if (rest_list_has_enough(l)) {
        c->remaining = 0;
    }
}

static void list_drop_converting(struct rest_lister *l)
{
    for (uint32_t i = 0; i < l->converting.len; i++) {
        store_obj_unref(l->converting.at[i]);
    }
    hk_vec_clear(&l->converting);
}

void rest_lister_free(struct rest_lister *l)
{
    if (!l) {
        return;
    }
    for (uint32_t i = 0; i < l->past.len; i++) {
        store_obj_unref(l->past.at[i].was);
    }
    list_drop_converting(l);
    hk_vec_fini(&l->converting);
    hk_vec_fini(&l->past);
    hk_intern_fini(&l->keys);
    rest_filter_fini(&l->filter);
    hk_buf_fini(&l->at_ns);
    hk_buf_fini(&l->at_name);
    hk_buf_fini(&l->last_ns);
    hk_buf_fini(&l->last_name);
    hk_free(l);
}

/* Shows the objects whose conversion was waited for. */
static int list_show_all_converted(struct rest_lister *l)
{
    struct rest_call *c = l->c;

    if (rest_convert_check(c) < 0) {
        if (rest_webhook_waits(c)) {
            c->rc = 0; /* the list has not failed */
            return -HK_EBUSY;
        }
        return c->rc;
    }
    for (uint32_t i = 0; i < l->converting.len; i++) {
        const uint32_t before = c->items.len;
        list_show_converted(l, l->converting.at[i]);
        if (c->items.len > before) {
            keep_key(&l->last_ns, l->last->ns);
            keep_key(&l->last_name, l->last->name);
        }
    }
    l->last = NULL;
    list_drop_converting(l);
    rest_convert_forget(c);
    return 0;
}

/* One slice. Negative when the list has failed or waits. */
static int list_slice(struct rest_lister *l)
{
    struct rest_call *c = l->c;

    if (l->converting.len == 0) {
        if (store_rv(c->r->store) != c->rv && past_read(l) < 0) {
            return c->rc;
        }
        rest_list_read_all(l);
    }
    return c->k->conversion ? list_show_all_converted(l) : 0;
}

void rest_list_go_on(struct rest_call *c)
{
    struct rest_lister *l = c->lister;

    if (!hk_budget_fits(c->r->budget, LIST_ROOM)) {
        c->status.retry_after_s = 1;
        rest_fail(c, 429, HK_EBUSY, "TooManyRequests",
                  "the server is short of memory for a list of %u or more objects: ask for it in "
                  "pages (limit=500), or again later",
                  c->items.len);
    } else if (list_slice(l) == 0) {
        if (l->cut) {
            return;
        }
        list_end(l);
    } else if (rest_webhook_waits(c)) {
        return;
    }
    rest_lister_free(l);
    c->lister = NULL;
}

int rest_list(struct rest_call *c)
{
    struct rest_lister *l = hk_zalloc(sizeof(*l));

    l->c = c;
    if (list_begin(l) < 0) {
        rest_lister_free(l);
        return c->rc;
    }
    c->lister = l;
    if (c->k->conversion) {
        rest_webhook_prepare(c);
    }
    if (c->r->lists.len == 0) { /* else the list waits for its turn */
        rest_list_go_on(c);
    }
    return c->rc;
}
