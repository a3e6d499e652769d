// SPDX-License-Identifier: Apache-2.0
// Watches. Each is a position in the store's history and a filter. Events are computed when they
// are read, so a slow watcher costs nothing, but its position may expire from the history.
// port_poll reads watches of the port; the HTTP server's streams read theirs.
#include "store/rest_priv.h"

#define BOOKMARK_NS (60 * REST_SECOND)

enum { WATCH_CONVERTING = 100 }; /* states that a watch has converted at a time */

static bool hold_state(void *ctx, const struct store_obj *o)
{
    struct rest_watch *w = ctx;

    if (w->filter.name.n == 0 || hk_str_eq(w->filter.name, o->name)) {
        hk_vec_push(&w->initial, store_obj_ref(o));
    }
    return true;
}

/* Starts at the current revision; with initial, sends the existing objects first. */
static void start_now(struct rest_watch *w, bool initial)
{
    struct store *s = w->r->store;

    w->rv = store_rv(s);
    if (initial) {
        store_scan(s, w->filter.k->res, w->filter.ns, HK_STR(""), HK_STR(""), hold_state, w);
    }
}

static int start_at(struct rest_call *c, struct rest_watch *w)
{
    const struct port_request *req = c->req;
    const uint64_t now = store_rv(c->r->store);
    const uint64_t oldest = store_oldest_rv(c->r->store);

    if (req->initial == PORT_INITIAL_SEND || req->rv == 0) {
        start_now(w, req->initial != PORT_INITIAL_SKIP);
        w->initial_end = req->initial == PORT_INITIAL_SEND;
        return 0;
    }
    if (req->rv < oldest) {
        return rest_fail_expired(c, "too old resource version: %llu (%llu)",
                                 (unsigned long long)req->rv, (unsigned long long)oldest);
    }
    if (req->rv > now) {
        rest_cause(c, "ResourceVersionTooLarge", NULL, "Too large resource version");
        c->status.retry_after_s = 1;
        return rest_fail(c, 504, HK_ETIMEOUT, "Timeout",
                         "Timeout: Too large resource version: %llu, current: %llu",
                         (unsigned long long)req->rv, (unsigned long long)now);
    }
    w->rv = req->rv;
    return 0;
}

int rest_watch_start(struct rest_call *c, struct rest_watch **ret)
{
    struct rest_watch *w = hk_zalloc(sizeof(*w));

    w->r = c->r;
    w->bookmarks = c->req->bookmarks;
    w->text_only = c->req->text_only;
    w->bookmark_ns = rest_mono(c->r) + BOOKMARK_NS;
    w->dirty = true;
    while (c->r->resources.at[w->res_at] != c->k->res) {
        w->res_at++;
    }
    hk_vec_push(&c->r->watches, w);
    if (rest_filter_init(&w->filter, c) < 0 || start_at(c, w) < 0) {
        rest_watch_close(w);
        return c->rc;
    }
    w->marked = w->rv;
    rest_request_poll(c->r);
    *ret = w;
    return 0;
}

static void watch_drop_conversions(struct rest_watch *w)
{
    for (uint32_t i = 0; i < w->conversions.len; i++) {
        rest_conversion_release(w->conversions.at[i]);
    }
    hk_vec_clear(&w->conversions);
}

void rest_watch_close(struct rest_watch *w)
{
    if (!w) {
        return;
    }
    for (uint32_t i = 0; i < w->r->watches.len; i++) {
        if (w->r->watches.at[i] == w) {
            hk_vec_swap_remove(&w->r->watches, i);
            break;
        }
    }
    for (uint32_t i = w->initial_at; i < w->initial.len; i++) {
        store_obj_unref(w->initial.at[i]);
    }
    hk_vec_fini(&w->initial);
    watch_drop_conversions(w);
    hk_vec_fini(&w->conversions);
    api_object_unref(w->shown);
    rest_filter_fini(&w->filter);
    hk_free(w);
}

uint64_t rest_watch_rv(const struct rest_watch *w)
{
    return w->dirty ? w->rv : HK_MAX(w->rv, w->r->seen.at[w->res_at]);
}

/* ---- the next message ---- */

static bool rest_watch_fill_msg(struct rest_watch *w, enum port_msg_type type, struct api_object *o,
                                uint64_t rv, struct port_msg *ret)
{
    w->shown = o;
    *ret = (struct port_msg){.type = type, .call = w->call, .rv = rv, .obj = o};
    return o != NULL;
}

/* True: the work limit of this turn is reached. */
static bool yield(struct rest_watch *w, uint64_t until)
{
    if (w->r->work < until) {
        return false;
    }
    w->yielded = true;
    rest_request_poll(w->r);
    return true;
}

/* ---- conversions ---- */

/* Has the state converted if that is needed. True when it can be shown now. */
static bool watch_convert(struct rest_watch *w, const struct store_obj *o)
{
    if (!o || !rest_convert_needed(w->filter.k, o) || !rest_filter_match_name(&w->filter, o)) {
        return true;
    }
    struct conversion *v = rest_conversion_begin(w->r, w->filter.k, o);
    hk_vec_push(&w->conversions, v);
    w->converting = w->converting || rest_conversion_waits(v);
    return !rest_conversion_waits(v);
}

/* An earlier state is shown only when the object has left the selection. */
static bool watch_convert_event(struct rest_watch *w, const struct store_event *ev)
{
    const bool now = watch_convert(w, ev->obj);
    const bool before = !rest_filter_selects(&w->filter) || watch_convert(w, ev->prev);

    return now && before;
}

/* Has what follows converted as well, so that it goes out in one review. */
static void watch_convert_ahead(struct rest_watch *w)
{
    uint64_t rv = w->rv;
    struct store_event ev;

    for (uint32_t i = w->initial_at; i < w->initial.len && w->conversions.len < WATCH_CONVERTING;
         i++) {
        watch_convert(w, w->initial.at[i]);
    }
    while (w->initial.len == 0 && w->conversions.len < WATCH_CONVERTING &&
           store_next(w->r->store, w->filter.k->res, w->filter.ns, &rv, &ev) == STORE_NEXT_EVENT) {
        watch_convert_event(w, &ev);
    }
}

/* Why one of the conversions failed, or NULL. */
static const char *watch_failure(const struct rest_watch *w)
{
    for (uint32_t i = 0; i < w->conversions.len; i++) {
        if (rest_conversion_failure(w->conversions.at[i])) {
            return rest_conversion_failure(w->conversions.at[i]);
        }
    }
    return NULL;
}

static bool watch_waits(const struct rest_watch *w)
{
    for (uint32_t i = 0; i < w->conversions.len; i++) {
        if (rest_conversion_waits(w->conversions.at[i])) {
            return true;
        }
    }
    return false;
}

void rest_watch_converted(struct rest *r)
{
    for (uint32_t i = 0; i < r->watches.len; i++) {
        struct rest_watch *w = r->watches.at[i];
        if (w->converting && !watch_waits(w) && w->wake) {
            w->wake(w->ctx);
        }
    }
}

/* ---- messages ---- */

static bool next_initial(struct rest_watch *w, uint64_t until, struct port_msg *ret)
{
    while (w->initial_at < w->initial.len) {
        if (yield(w, until)) {
            return false;
        }
        const struct store_obj *o = w->initial.at[w->initial_at];
        struct api_object *obj = NULL;
        if (!watch_convert(w, o)) {
            watch_convert_ahead(w);
            return false;
        }
        w->initial_at++;
        if (rest_filter_match(w->r, &w->filter, o)) {
            obj = rest_object(w->r, w->filter.k, o, !w->text_only);
        }
        store_obj_unref(o);
        if (obj) {
            return rest_watch_fill_msg(w, PORT_ADDED, obj, obj->rv, ret);
        }
    }
    hk_vec_fini(&w->initial);
    w->initial_at = 0;
    return false;
}

/* An object that left the selection is sent in its old state, with the revision of the change. */
static struct api_object *object_left(struct rest_watch *w, const struct store_event *ev)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct api_object *was = rest_object(w->r, w->filter.k, ev->prev, true);
    struct api_object *ret = NULL;

    if (!was) {
        return NULL;
    }
    struct json doc = json_clone(&was->root, &mem);
    json_set_cstr(rest_edit(&doc, &mem, "metadata"), &mem, "resourceVersion",
                  hk_arena_printf(&mem, "%llu", (unsigned long long)ev->rv));
    json_write(&doc, &text);
    api_object_unref(was);
    return api_object_parse(w->filter.k->kind, hk_buf_str(&text), &ret, NULL) < 0 ? NULL : ret;
}

/* The event as the selection sees it; false if the watch does not select the object. */
static bool rest_watch_fill_event(struct rest_watch *w, const struct store_event *ev,
                                  struct port_msg *ret)
{
    const bool was = ev->prev && rest_filter_match(w->r, &w->filter, ev->prev);
    const bool is = ev->type != STORE_DELETED && rest_filter_match(w->r, &w->filter, ev->obj);
    const enum port_msg_type type = !is ? PORT_DELETED : was ? PORT_MODIFIED : PORT_ADDED;

    if (!was && !is) {
        return false;
    }
    if (!is && ev->type != STORE_DELETED) {
        return rest_watch_fill_msg(w, type, object_left(w, ev), ev->rv, ret);
    }
    return rest_watch_fill_msg(w, type, rest_object(w->r, w->filter.k, ev->obj, !w->text_only),
                               ev->rv, ret);
}

static void rest_watch_fill_bookmark(struct rest_watch *w, bool initial_end, struct port_msg *ret)
{
    w->marked = w->rv;
    w->bookmark_ns = rest_mono(w->r) + BOOKMARK_NS;
    *ret = (struct port_msg){
        .type = PORT_BOOKMARK, .call = w->call, .rv = w->rv, .initial_end = initial_end};
}

static enum rest_next fall_out(struct rest_watch *w, struct port_msg *ret)
{
    static const struct port_status gone = {
        .code = 410,
        .reason = "Expired",
        .message = "The resourceVersion for the provided watch is too old.",
    };
    static const struct hk_err err = {HK_EGONE,
                                      "The resourceVersion for the provided watch is too old."};

    w->gone = true;
    *ret = (struct port_msg){
        .type = PORT_DONE, .call = w->call, .rc = -HK_EGONE, .err = &err, .status = &gone};
    return REST_NEXT_GONE;
}

/* A conversion failed: the reader lists again and sees why. */
static enum rest_next watch_fail(struct rest_watch *w, const char *why, struct port_msg *ret)
{
    struct rest *r = w->r;

    hk_fail(&r->watch_err, HK_EIO, "%s", why);
    r->watch_status = (struct port_status){.code = 500, .message = r->watch_err.text};
    w->gone = true;
    *ret = (struct port_msg){.type = PORT_DONE,
                             .call = w->call,
                             .rc = -HK_EIO,
                             .err = &r->watch_err,
                             .status = &r->watch_status};
    return REST_NEXT_GONE;
}

/* Whether the watch waits for conversions; *ret_why says why one failed. */
static bool watch_check_conversions(struct rest_watch *w, const char **ret_why)
{
    *ret_why = NULL;
    if (!w->converting) {
        watch_drop_conversions(w);
        return false;
    }
    if (watch_waits(w)) {
        return true;
    }
    w->converting = false;
    *ret_why = watch_failure(w);
    return false;
}

/* The next event, if it can be shown now; only then the watch goes on. */
static enum store_next watch_take_event(struct rest_watch *w, struct store_event *ev)
{
    uint64_t rv = w->rv;
    const enum store_next next = store_next(w->r->store, w->filter.k->res, w->filter.ns, &rv, ev);

    if (next == STORE_NEXT_EVENT && !watch_convert_event(w, ev)) {
        watch_convert_ahead(w);
        return next;
    }
    w->rv = rv;
    return next;
}

enum rest_next rest_watch_next(struct rest_watch *w, struct port_msg *ret)
{
    const char *why;
    const uint64_t until = w->r->work + REST_SLICE;
    struct store_event ev;
    enum store_next next = STORE_NEXT_EVENT;

    api_object_unref(w->shown);
    w->shown = NULL;
    if (w->gone) {
        return fall_out(w, ret);
    }
    w->yielded = false;
    if (watch_check_conversions(w, &why)) {
        return REST_NEXT_NONE;
    }
    if (why) {
        return watch_fail(w, why, ret);
    }
    if (next_initial(w, until, ret)) {
        return REST_NEXT_EVENT;
    }
    if (w->yielded || w->converting) {
        return REST_NEXT_NONE;
    }
    if (w->initial_end) {
        w->initial_end = false;
        rest_watch_fill_bookmark(w, true, ret);
        return REST_NEXT_EVENT;
    }
    while ((next = watch_take_event(w, &ev)) == STORE_NEXT_EVENT) {
        if (w->converting) {
            return REST_NEXT_NONE;
        }
        if (rest_watch_fill_event(w, &ev, ret)) {
            return REST_NEXT_EVENT;
        }
        if (yield(w, until)) {
            return REST_NEXT_NONE;
        }
    }
    if (next == STORE_NEXT_GONE) {
        return fall_out(w, ret);
    }
    w->dirty = false;
    if (w->bookmarks && rest_mono(w->r) >= w->bookmark_ns) {
        rest_watch_fill_bookmark(w, false, ret);
        return REST_NEXT_EVENT;
    }
    return REST_NEXT_NONE;
}

/* ---- watches with pending events ---- */

/* A watch that had read everything has missed nothing up to this revision, so it does not expire,
 * however long its resource was quiet. */
static void rouse(struct rest_watch *w, uint64_t seen)
{
    if (w->dirty) {
        return;
    }
    w->rv = HK_MAX(w->rv, seen);
    w->dirty = true;
    if (w->wake) {
        w->wake(w->ctx);
    }
}

void rest_watch_feed(struct rest *r, uint32_t res_at, uint64_t after)
{
    for (uint32_t i = 0; i < r->watches.len; i++) {
        if (r->watches.at[i]->res_at == res_at) {
            rouse(r->watches.at[i], after);
        }
    }
}

void rest_watch_tick(struct rest *r)
{
    const int64_t now = rest_mono(r);

    for (uint32_t i = 0; i < r->watches.len; i++) {
        struct rest_watch *w = r->watches.at[i];
        if (w->bookmarks && now >= w->bookmark_ns) {
            rouse(w, r->seen.at[w->res_at]);
        }
    }
    rest_request_poll(r);
}

void rest_watch_go_on(struct rest *r)
{
    for (uint32_t i = 0; i < r->watches.len; i++) {
        struct rest_watch *w = r->watches.at[i];
        if (w->yielded && w->wake) {
            w->yielded = false;
            w->wake(w->ctx);
        }
    }
}

int64_t rest_watch_next_ns(const struct rest *r)
{
    int64_t next = INT64_MAX;

    for (uint32_t i = 0; i < r->watches.len; i++) {
        const struct rest_watch *w = r->watches.at[i];
        if (w->bookmarks && !w->dirty) {
            next = HK_MIN(next, w->bookmark_ns);
        }
    }
    return next;
}

/* ---- watches of the port ---- */

static struct rest_watch *find_call(struct rest *r, uint64_t call)
{
    for (uint32_t i = 0; i < r->watches.len; i++) {
        if (r->watches.at[i]->call == call) {
            return r->watches.at[i];
        }
    }
    return NULL;
}

void rest_watch_cancel(struct rest *r, uint64_t call)
{
    rest_watch_close(call > 0 ? find_call(r, call) : NULL);
}

/* The callback may cancel this and other watches and start new ones, so the watch is looked up
 * again after each message. */
static uint32_t rest_watch_deliver_call(struct rest *r, uint64_t call, uint32_t max)
{
    struct rest_watch *w;
    uint32_t n = 0;

    while (n < max && (w = find_call(r, call))) {
        struct port_msg m;
        const enum rest_next next = rest_watch_next(w, &m);
        if (next == REST_NEXT_NONE) {
            break;
        }
        const struct port_sink sink = w->sink;
        struct api_object *shown = hk_take(w->shown);
        if (next == REST_NEXT_GONE) {
            rest_watch_close(w);
        }
        if (sink.on_msg) {
            sink.on_msg(sink.ctx, &m);
        }
        api_object_unref(shown);
        n++;
    }
    return n;
}

uint32_t rest_watch_deliver(struct rest *r, uint32_t max, bool *ret_more)
{
    HK_VEC(uint64_t) calls = {0};
    uint32_t n = 0;

    for (uint32_t i = 0; i < r->watches.len; i++) {
        if (r->watches.at[i]->call > 0 && r->watches.at[i]->dirty) {
            hk_vec_push(&calls, r->watches.at[i]->call);
        }
    }
    for (uint32_t i = 0; i < calls.len; i++) {
        n += rest_watch_deliver_call(r, calls.at[i], max - n);
    }
    *ret_more = n == max && calls.len > 0;
    hk_vec_fini(&calls);
    return n;
}
