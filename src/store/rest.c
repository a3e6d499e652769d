// SPDX-License-Identifier: Apache-2.0
// The port itself. Dispatches each call to the file of its verb, keeps the queue of outcomes that
// port_poll empties, and passes every published change on to kinds, garbage collector, namespaces,
// quotas and watches. No other rest file calls this one.
#include "base/crumb.h"
#include "codec/timefmt.h"
#include "store/rest_priv.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { EVENT_TTL_S = 3600 };

/* ---- calls ---- */

static void call_free(struct rest_call *c)
{
    struct rest *r = c->r;

    hk_vec_swap_remove(&r->calls, c->slot);
    if (c->slot < r->calls.len) {
        r->calls.at[c->slot]->slot = c->slot;
    }
    for (uint32_t i = 0; i < c->items.len; i++) {
        api_object_unref(c->items.at[i]);
    }
    api_object_unref(c->obj);
    admission_request_fini(&c->adm);
    hk_vec_fini(&c->items);
    hk_vec_fini(&c->causes);
    rest_lister_free(c->lister);
    rest_deleter_free(c->deleter);
    rest_webhook_free(c);
    rest_convert_free(c);
    rest_call_release(c);
    hk_free(c->names);
    hk_free(c);
}

static int check_subresource(struct rest_call *c)
{
    const char *sub = c->req->subresource;
    const bool posted = sub && (!strcmp(sub, "binding") || !strcmp(sub, "eviction") ||
                                !strcmp(sub, "token") || rest_connect_kind(sub));

    if (!sub) {
        return 0;
    }
    if (!rest_kind_has(c->k, sub)) {
        return rest_fail_unknown(c);
    }
    if (posted != (c->req->verb == PORT_CREATE) || c->req->verb >= PORT_DELETE) {
        return rest_fail_method(c);
    }
    return 0;
}

static int check_request(struct rest_call *c)
{
    const struct port_request *req = c->req;
    const bool many =
        req->verb == PORT_LIST || req->verb == PORT_WATCH || req->verb == PORT_DELETE_COLLECTION;
    const bool one = !many && (req->verb != PORT_CREATE || req->subresource);

    if (check_subresource(c) < 0) {
        return c->rc;
    }
    if (req->verb == PORT_DELETE_COLLECTION && (c->k->flags & REST_NO_COLLECTION)) {
        return rest_fail_method(c);
    }
    if (!many && c->k->kind->namespaced && req->ns.n == 0) {
        return rest_fail_bad(c, "an empty namespace may not be set during %s",
                             req->verb == PORT_CREATE ? "creation" : port_verb_name(req->verb));
    }
    if (!c->k->kind->namespaced) {
        c->ns = HK_STR("");
    }
    if (one && req->name.n == 0) {
        return rest_fail_bad(c, "resource name may not be empty");
    }
    if (req->verb == PORT_PATCH || req->verb == PORT_UPDATE || req->verb == PORT_CREATE) {
        return req->body ? 0 : rest_fail_bad(c, "%s needs a body", port_verb_name(req->verb));
    }
    return 0;
}

static int run_create(struct rest_call *c)
{
    const char *sub = c->req->subresource;

    if (!sub) {
        return rest_create(c);
    }
    return rest_connect_kind(sub)        ? rest_connect(c)
           : strcmp(sub, "binding") == 0 ? rest_bind(c)
           : strcmp(sub, "token") == 0   ? rest_token(c)
                                         : rest_evict(c);
}

static int rest_run_call(struct rest_call *c)
{
    static int (*const verbs[PORT_NVERBS])(struct rest_call *) = {
        [PORT_GET] = rest_get,
        [PORT_LIST] = rest_list,
        [PORT_WATCH] = NULL, /* answered by rest_watch.c: a watch has many answers */
        [PORT_CREATE] = run_create,
        [PORT_UPDATE] = rest_update,
        [PORT_PATCH] = rest_patch,
        [PORT_DELETE] = rest_delete,
        [PORT_DELETE_COLLECTION] = rest_delete_collection,
    };

    hk_assert(verbs[c->req->verb]);
    return verbs[c->req->verb](c);
}

static void run_guarded(struct rest_call *c)
{
    const enum rest_guard guard = rest_guard_enter(c);

    if (guard != REST_GUARD_REFUSED) {
        rest_run_call(c);
    }
    if (guard == REST_GUARD_ENTERED) {
        hk_crumb_leave();
    }
}

static int call_check(struct rest_call *c)
{
    c->k = rest_kind_of(c->r, c->req->kind);
    if (!c->k || !c->k->served) {
        c->k = c->r->namespaces; /* any kind: callers need one */
        return rest_fail_unknown(c);
    }
    c->adm.kind = c->k->kind;
    return check_request(c);
}

/* Ends one turn of the call: the call waits for webhooks, for its next turn or for its writes, or is
 * complete. */
static void call_go_on(struct rest_call *c)
{
    if (rest_webhook_waits(c)) {
        if (!c->deleter && !c->lister) {
            rest_call_release(c); /* it starts again */
        }
        return;
    }
    c->submitted = !c->lister && !c->deleter;
    if (c->submitted) {
        rest_webhook_finish(c);
    }
    if (!c->submitted && c->writes == 0) {
        hk_vec_push(&c->r->lists, c);
        rest_request_poll(c->r);
    } else if (c->submitted && c->writes == 0) {
        rest_call_end(c);
    } else if (c->submitted) {
        rest_call_wait(c);
    }
}

static uint64_t rest_submit(struct port *p, const struct port_request *req, struct port_sink sink)
{
    struct rest *r = (struct rest *)p;
    struct rest_call *c = rest_call_new(r, req, sink);
    const uint64_t id = c->id;
    int rc = call_check(c);

    if (rc == 0 && req->verb == PORT_WATCH) {
        struct rest_watch *w;
        rc = rest_watch_start(c, &w);
        if (rc == 0) {
            w->call = id;
            w->sink = sink;
            call_free(c);
            return id;
        }
    } else if (rc == 0) {
        run_guarded(c);
    }
    c->req = NULL;
    call_go_on(c);
    return id;
}

int rest_watch_open(struct rest *r, const struct port_request *req, void (*wake)(void *ctx),
                    void *ctx, struct hk_arena *mem, struct rest_watch **ret,
                    struct port_status *ret_status)
{
    struct rest_call *c = rest_call_new(r, req, (struct port_sink){0});
    int rc = call_check(c);

    if (rc == 0) {
        rc = rest_watch_start(c, ret);
    }
    if (rc == 0) {
        (*ret)->wake = wake;
        (*ret)->ctx = ctx;
    } else {
        struct port_cause *causes = hk_arena_array(mem, c->causes.len, sizeof(*causes));
        for (uint32_t i = 0; i < c->causes.len; i++) {
            causes[i] = c->causes.at[i]; /* string literals: a watch has no field errors */
        }
        *ret_status = (struct port_status){
            .code = c->status.code,
            .reason = c->status.reason,
            .message = hk_arena_printf(mem, "%s", c->status.message),
            .causes = causes,
            .ncauses = c->causes.len,
            .retry_after_s = c->status.retry_after_s,
        };
    }
    call_free(c);
    return rc;
}

static void rest_deliver_answer(struct rest_call *c)
{
    struct port_msg m = {
        .type = PORT_DONE,
        .call = c->id,
        .rv = c->rv,
        .obj = c->rc == 0 ? c->obj : NULL,
        .items = c->items.at,
        .nitems = c->rc == 0 ? c->items.len : 0,
        .cont = hk_str(c->cont ? c->cont : ""),
        .remaining = c->remaining,
        .created = c->created,
        .rc = c->rc,
        .err = c->rc < 0 ? &c->err : NULL,
        .status = c->has_status ? &c->status : NULL,
        .warnings = (const char *const *)c->adm.warnings.at,
        .nwarnings = c->adm.warnings.len,
    };

    c->status.causes = c->causes.at;
    c->status.ncauses = c->causes.len;
    c->sink.on_msg(c->sink.ctx, &m);
}

static struct rest_call *take_outcome(struct rest *r)
{
    struct rest_call *c = r->first;

    if (c) {
        r->first = c->next;
        if (!r->first) {
            r->last = &r->first;
        }
    }
    return c;
}

static uint32_t deliver_outcomes(struct rest *r, uint32_t max)
{
    uint32_t n = 0;

    while (n < max && r->first) {
        struct rest_call *c = take_outcome(r);
        if (c->sink.on_msg) {
            rest_deliver_answer(c);
            n++;
        }
        call_free(c);
    }
    return n;
}

/* Runs one slice of the first list or collection deletion in the queue. An incomplete one goes to
 * the end of the queue. */
static void lists_go_on(struct rest *r)
{
    if (r->lists.len == 0) {
        return;
    }
    struct rest_call *c = r->lists.at[0];
    memmove(r->lists.at, r->lists.at + 1, (r->lists.len - 1) * sizeof(*r->lists.at));
    r->lists.len--;
    if (!c->lister) {
        rest_delete_go_on(c);
    } else if (c->sink.on_msg || c->deleter) {
        rest_list_go_on(c);
    } else { /* the call was cancelled */
        rest_lister_free(hk_take(c->lister));
    }
    if (c->rc < 0) { /* the list has failed */
        rest_deleter_free(hk_take(c->deleter));
    }
    call_go_on(c);
}

/* Continues a call whose webhooks have answered. */
static void call_resume(struct rest_call *c)
{
    if (c->deleter || c->lister) {
        if (c->writes == 0) {
            hk_vec_push(&c->r->lists, c);
        }
        return;
    }
    rest_call_reset(c, rest_webhook_request(c));
    if (call_check(c) == 0) {
        run_guarded(c);
    }
    c->req = NULL;
    call_go_on(c);
}

static void webhooks_go_on(struct rest *r)
{
    rest_convert_run(r);
    rest_webhook_send(r);
    for (uint32_t left = r->webhook_ready.len; left > 0; left--) {
        struct rest_call *c = rest_webhook_next(r);
        if (c) {
            call_resume(c);
        }
    }
    rest_convert_run(r);
    rest_webhook_send(r);
}

/* Nobody waits for the call any more, and nothing has been written: it asks no further webhook. */
static void call_drop(struct rest_call *c)
{
    rest_webhook_free(c);
    rest_convert_free(c);
    rest_deleter_free(hk_take(c->deleter));
    rest_lister_free(hk_take(c->lister));
    c->rc = -HK_EIO;
    c->submitted = true;
    if (c->writes == 0) {
        rest_call_end(c);
    }
}

uint32_t rest_deliver(struct rest *r, uint32_t max)
{
    const uint32_t n = deliver_outcomes(r, max);

    if (r->poll_requested_for_outcomes && !r->first) {
        rest_unwake(r); /* saves one turn of the loop */
    }
    return n;
}

static uint32_t rest_poll(struct port *p, uint32_t max)
{
    struct rest *r = (struct rest *)p;
    bool more = false;

    rest_unwake(r);
    r->poll_requested_for_outcomes = false;
    rest_kinds_free_replaced(r);
    store_poll(r->store);
    rest_gc_run(r);
    rest_drain_run(r);
    rest_crd_run(r);
    rest_quota_run(r);
    webhooks_go_on(r);
    lists_go_on(r);
    rest_watch_go_on(r);
    uint32_t n = deliver_outcomes(r, max);
    n += rest_watch_deliver(r, max - n, &more);
    if (more || r->first || r->lists.len > 0 || r->webhook_ready.len > 0) {
        rest_request_poll(r);
    }
    return n;
}

static void rest_cancel(struct port *p, uint64_t call)
{
    struct rest *r = (struct rest *)p;

    for (uint32_t i = 0; i < r->calls.len; i++) {
        if (r->calls.at[i]->id == call) {
            r->calls.at[i]->sink.on_msg = NULL;
            if (rest_webhook_waits(r->calls.at[i])) {
                call_drop(r->calls.at[i]);
            }
            return;
        }
    }
    rest_watch_cancel(r, call);
}

static int rest_fd(struct port *p)
{
    return ((struct rest *)p)->epoll_fd;
}

static void rest_port_free(struct port *p)
{
    rest_free((struct rest *)p);
}

static const struct port_ops rest_ops = {
    .name = "rest",
    .submit = rest_submit,
    .cancel = rest_cancel,
    .poll = rest_poll,
    .fd = rest_fd,
    .free = rest_port_free,
};

/* ---- published changes ---- */

/* The time when an event of an earlier run was written, if the object contains it. */
static int64_t event_written_ns(const struct rest *r, const struct store_obj *o)
{
    static const char *const paths[] = {"metadata.creationTimestamp", "lastTimestamp", "eventTime",
                                        "series.lastObservedTime"};
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json doc;
    int64_t last_ns = 0, ns;

    if (json_parse(o->text, 0, &mem, &doc, NULL) < 0) {
        return 0;
    }
    for (size_t i = 0; i < HK_LEN(paths); i++) {
        if (time_parse(json_str(json_at(&doc, paths[i]), HK_STR("")), &ns, NULL) == 0) {
            last_ns = HK_MAX(last_ns, ns);
        }
    }
    return HK_MIN(last_ns, rest_now(r));
}

static void note_expiry(struct rest *r, const struct store_event *ev)
{
    if (ev->obj->res != r->events->res || ev->type == STORE_DELETED) {
        return;
    }
    const int64_t age_ns = r->running ? 0 : rest_now(r) - event_written_ns(r, ev->obj);
    const int64_t from_ns = rest_mono(r) - age_ns;
    hk_vec_push(&r->expiries,
                (struct rest_expiry){from_ns + EVENT_TTL_S * REST_SECOND, store_obj_ref(ev->obj)});
}

static int expiry_cmp(const void *a, const void *b)
{
    const int64_t x = ((const struct rest_expiry *)a)->at_ns;
    const int64_t y = ((const struct rest_expiry *)b)->at_ns;

    return x < y ? -1 : x > y;
}

static void feed(struct rest *r, const struct store_event *ev)
{
    rest_kinds_feed(r, ev);
    rest_gc_feed(r, ev);
    rest_drain_feed(r, ev);
    rest_crd_feed(r, ev);
    rest_webhook_feed(r, ev);
    rest_policy_feed(r, ev);
    note_expiry(r, ev);
}

static bool feed_state(void *ctx, const struct store_obj *o)
{
    const struct store_event ev = {.type = STORE_ADDED, .rv = o->rv, .obj = o};

    feed(ctx, &ev);
    return true;
}

/* Feeds all stored objects of the resource, as if they had just been created. */
static void feed_all(struct rest *r, uint32_t res)
{
    store_scan(r->store, res, HK_STR(""), HK_STR(""), HK_STR(""), feed_state, r);
}

static void on_publish(void *ctx)
{
    struct rest *r = ctx;

    /* A CustomResourceDefinition among the objects may add resources during this loop. */
    for (uint32_t i = 0; i < r->resources.len; i++) {
        const uint32_t res = r->resources.at[i];
        const uint64_t before = r->seen.at[i];
        enum store_next next;
        struct store_event ev;
        bool any = false;
        while ((next = store_next(r->store, res, HK_STR(""), &r->seen.at[i], &ev)) ==
               STORE_NEXT_EVENT) {
            feed(r, &ev);
            any = true;
        }
        if (next == STORE_NEXT_GONE) {
            r->seen.at[i] = store_rv(r->store);
            feed_all(r, res);
            any = true;
        }
        if (any) {
            rest_watch_feed(r, i, before);
        }
    }
    rest_request_poll(r);
}

static void rest_expire_events(struct rest *r)
{
    const int64_t now = rest_mono(r);
    const struct port_sink nobody = {0};

    while (r->expiries_at < r->expiries.len && r->expiries.at[r->expiries_at].at_ns <= now) {
        const struct store_obj *o = r->expiries.at[r->expiries_at++].obj;
        const struct port_request req = {
            .verb = PORT_DELETE,
            .kind = r->events->kind,
            .ns = o->ns,
            .name = o->name,
            .if_rv = o->rv,
            .expired = true,
        };
        if (store_get(r->store, o->res, o->ns, o->name) == o) {
            port_submit(&r->port, &req, nobody);
        }
        store_obj_unref(o);
    }
    if (r->expiries_at > r->expiries.len / 2) {
        const uint32_t left = r->expiries.len - r->expiries_at;
        memmove(r->expiries.at, r->expiries.at + r->expiries_at, left * sizeof(*r->expiries.at));
        r->expiries.len = left;
        r->expiries_at = 0;
    }
}

void rest_tick(struct rest *r)
{
    rest_expire_events(r);
    rest_watch_tick(r);
    rest_gc_tick(r);
    rest_drain_tick(r);
    rest_quota_tick(r);
    rest_webhook_tick(r);
}

int64_t rest_next_ns(const struct rest *r)
{
    int64_t next = HK_MIN(rest_watch_next_ns(r), rest_quota_next_ns(r));

    if (r->expiries_at < r->expiries.len) {
        next = HK_MIN(next, r->expiries.at[r->expiries_at].at_ns);
    }
    next = HK_MIN(next, rest_gc_next_ns(r));
    next = HK_MIN(next, rest_webhook_next_ns(r));
    return r->drain_retry_ns > 0 ? HK_MIN(next, r->drain_retry_ns) : next;
}

struct port *rest_port(struct rest *r)
{
    return &r->port;
}

static void open_fds(struct rest *r)
{
    struct epoll_event ev = {.events = EPOLLIN};

    r->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    hk_assert(r->event_fd >= 0 && r->epoll_fd >= 0);
    hk_assert(epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, r->event_fd, &ev) == 0);
    if (store_fd(r->store) >= 0) {
        hk_assert(epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, store_fd(r->store), &ev) == 0);
    }
}

struct rest *rest_new(const struct rest_opts *o)
{
    struct rest *r = hk_zalloc(sizeof(*r));

    r->port.ops = &rest_ops;
    r->store = o->store;
    r->clock = o->clock;
    r->rand = o->rand;
    r->admission = !o->no_admission;
    r->volcano = o->volcano;
    r->tolerations = o->tolerations;
    r->budget = o->budget;
    r->max_per_namespace = o->max_per_namespace;
    r->last = &r->first;
    r->lookup = rest_lookup(r);
    open_fds(r);
    rest_convert_init(r);
    rest_kinds_init(r);
    feed_all(r, r->crds->res);
    for (uint32_t i = 0; i < r->resources.len; i++) {
        if (r->resources.at[i] != r->crds->res) {
            feed_all(r, r->resources.at[i]);
        }
    }
    if (r->expiries.len > 0) {
        qsort(r->expiries.at, r->expiries.len, sizeof(*r->expiries.at), expiry_cmp);
    }
    r->running = true;
    store_on_publish(r->store, on_publish, r);
    rest_quota_load(r);
    rest_service_open(r, o->services);
    rest_namespace_seed(r);
    return r;
}

void rest_free(struct rest *r)
{
    if (!r) {
        return;
    }
    for (uint32_t i = 0; i < r->calls.len; i++) {
        r->calls.at[i]->sink.on_msg = NULL;
    }
    store_flush(r->store);
    store_off_publish(r->store, on_publish, r);
    while (r->calls.len > 0) {
        call_free(r->calls.at[0]);
    }
    while (r->watches.len > 0) {
        rest_watch_close(r->watches.at[0]);
    }
    for (uint32_t i = r->expiries_at; i < r->expiries.len; i++) {
        store_obj_unref(r->expiries.at[i].obj);
    }
    rest_drop_cache(r);
    rest_convert_fini(r);
    rest_gc_fini(r);
    rest_drain_fini(r);
    rest_quota_fini(r);
    rest_webhook_fini(r);
    rest_policy_fini(r);
    rest_service_fini(r);
    rest_kinds_fini(r);
    hk_arena_pool_fini(&r->mem);
    hk_vec_fini(&r->calls);
    hk_vec_fini(&r->lists);
    hk_vec_fini(&r->unpublished);
    hk_vec_fini(&r->watches);
    hk_vec_fini(&r->expiries);
    close(r->event_fd);
    close(r->epoll_fd);
    hk_free(r);
}
