// SPDX-License-Identifier: Apache-2.0
// Lists and watches one kind. After a new list, objects that are no longer listed are reported as
// deleted, so the names of the last list are remembered.
//
// The end of a watch decides how to continue, as with client-go's reflectors. After its normal end,
// a broken connection, an overloaded server or a 401: with a watch from the same revision. If the
// revision is too old, or after any other error: with a new list. After a watch that lasted, the
// next step comes at once, as does a list the first time a revision is too old. All other retries
// wait, longer each time, with random jitter, and at least as long as the server asks.
#include "api/feed.h"

#include "base/log.h"
#include "base/vec.h"

#include <stdlib.h>

#define PAGE_DEFAULT 2000u
#define LOUD_FAILURES 3u
#define S_NS ((int64_t)1000 * 1000 * 1000)
#define WAIT_FIRST_NS (S_NS / 10)
#define WAIT_LAST_NS (30 * S_NS)
#define ASKED_MAX_S 300
/* A kind that the server does not have may be installed later, and a server that has just started
 * may not know all its kinds or our rights yet. */
#define WAIT_MISSING_NS (300 * S_NS)
/* A shorter watch counts as failed: otherwise a server that accepts watches and drops them would
 * get requests without a pause. */
#define WATCH_SHORT_NS S_NS

static int64_t feed_now_ns(const struct feed *f)
{
    return f->o.clock->mono_ns(f->o.clock);
}

/* ---- objects ---- */

/* The map holds a reference to the names in a key. */
static void feed_forget_key(struct feed *f, uint64_t key)
{
    struct hk_intern *str = f->o.str;

    if (hk_map_del(&f->seen, key)) {
        hk_intern_drop(str, (uint32_t)(key >> 32));
        hk_intern_drop(str, (uint32_t)key);
    }
}

static void feed_accept_object(struct feed *f, struct api_object *o)
{
    struct hk_intern *str = f->o.str;
    const uint32_t ns = hk_intern_hold(str, o->ns), name = hk_intern_hold(str, o->name);
    const uint64_t key = (uint64_t)ns << 32 | name;

    if (hk_map_get(&f->seen, key) != HK_NONE) {
        hk_intern_drop(str, ns);
        hk_intern_drop(str, name);
    }
    hk_map_put(&f->seen, key, f->round);
    f->o.ops->put(f->o.ctx, o);
}

static void feed_delete_object(struct feed *f, struct hk_str ns, struct hk_str name,
                               const struct api_object *last)
{
    const struct hk_intern *str = f->o.str;
    const uint32_t a = hk_intern_find(str, ns), b = hk_intern_find(str, name);

    f->o.ops->del(f->o.ctx, ns, name, last);
    if (a != HK_NONE && b != HK_NONE) {
        feed_forget_key(f, (uint64_t)a << 32 | b);
    }
}

static int feed_compare_keys(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Reports objects that the new list does not have as deleted, in the order of their ids. */
static void feed_delete_unlisted(struct feed *f)
{
    const struct hk_intern *str = f->o.str;
    HK_VEC(uint64_t) gone = {0};

    for (uint32_t i = 0; i < f->seen.cap; i++) {
        if (f->seen.keys[i] != UINT64_MAX && f->seen.vals[i] != f->round) {
            hk_vec_push(&gone, f->seen.keys[i]);
        }
    }
    if (gone.len > 0) {
        qsort(gone.at, gone.len, sizeof(gone.at[0]), feed_compare_keys);
    }
    for (uint32_t i = 0; i < gone.len; i++) {
        feed_delete_object(f, hk_intern_str(str, (uint32_t)(gone.at[i] >> 32)),
                           hk_intern_str(str, (uint32_t)gone.at[i]), NULL);
    }
    hk_vec_fini(&gone);
}

/* ---- states ---- */

static void feed_wait_retry(struct feed *f, bool relist, int64_t wait_ns)
{
    f->state = FEED_WAITING;
    f->relist = relist;
    f->call = 0;
    f->due_ns = feed_now_ns(f) + wait_ns;
}

/* Doubles the pause and subtracts up to half of it at random, so that clients that lost one server
 * do not return at the same time. */
static int64_t pause_ns(struct feed *f, uint32_t nth, int64_t last_ns)
{
    const int64_t full_ns = HK_MIN(WAIT_FIRST_NS << HK_MIN(nth, 20), last_ns);

    return full_ns - (int64_t)(hk_rand_unit(&f->rand) * 0.5 * (double)full_ns);
}

static void back_off(struct feed *f, bool relist, const struct port_msg *m)
{
    const int64_t asked_s = m->status ? HK_MIN(m->status->retry_after_s, ASKED_MAX_S) : 0;

    feed_wait_retry(f, relist,
                    HK_MAX(asked_s, 0) * S_NS + pause_ns(f, f->failures++, WAIT_LAST_NS));
}

static void feed_start_list(struct feed *f);
static void list_page(struct feed *f, struct hk_str cont);

/* A single failure is normal at restarts; only repeated failures are logged. */
static void feed_log_failure(const struct feed *f, const struct port_msg *m)
{
    if (m->rc < 0 && f->o.required && f->failures == LOUD_FAILURES) {
        hk_log(HK_LOG_WARN, "cannot watch", "kind=%s err=\"%s\"", f->o.kind->plural, m->err->text);
    }
}

/* True if the error is about the revision or the kind: repeating the same request is useless. */
static bool is_final(const struct port_msg *m)
{
    static const int passing[] = {401, 429, 502, 503};

    if (!m->status) {
        return m->rc != 0 && m->rc != -HK_EIO && m->rc != -HK_ETIMEOUT && m->rc != -HK_EBUSY;
    }
    for (size_t i = 0; i < HK_LEN(passing); i++) {
        if (m->status->code == passing[i]) {
            return false;
        }
    }
    return true;
}

static void watch_ended(struct feed *f, const struct port_msg *m)
{
    const bool lasted = feed_now_ns(f) - f->since_ns >= WATCH_SHORT_NS;

    f->call = 0;
    if (lasted) {
        f->failures = 0;
    }
    if (m->rc == -HK_EGONE) {
        hk_log(HK_LOG_INFO, "watch is too old, listing again", "kind=%s", f->o.kind->plural);
    }
    if (m->rc == -HK_EGONE && f->failures == 0) {
        f->failures = lasted ? 0 : 1; /* after a short watch the next failure has to wait */
        feed_start_list(f);
    } else if (lasted && m->rc == 0) {
        feed_wait_retry(f, false, 0);
    } else {
        feed_log_failure(f, m);
        back_off(f, is_final(m), m);
    }
}

static void on_watch(void *ctx, const struct port_msg *m)
{
    struct feed *f = ctx;

    if (m->type != PORT_DONE) {
        if (f->o.required && f->failures > LOUD_FAILURES) {
            hk_log(HK_LOG_INFO, "watching again", "kind=%s", f->o.kind->plural);
        }
        f->failures = 0;
        f->rv = HK_MAX(f->rv, m->rv);
    }
    switch (m->type) {
    case PORT_ADDED:
    case PORT_MODIFIED:
        feed_accept_object(f, m->obj);
        break;
    case PORT_DELETED:
        feed_delete_object(f, m->obj->ns, m->obj->name, m->obj);
        break;
    case PORT_BOOKMARK:
        break;
    case PORT_DONE:
        watch_ended(f, m);
        break;
    }
}

static void feed_start_watch(struct feed *f)
{
    f->state = FEED_WATCHING;
    f->since_ns = feed_now_ns(f);
    f->call = port_submit(f->o.port,
                          &(struct port_request){.verb = PORT_WATCH,
                                                 .kind = f->o.kind,
                                                 .ns = f->o.ns,
                                                 .rv = f->rv,
                                                 .label_selector = f->o.label_selector,
                                                 .field_selector = f->o.field_selector,
                                                 .bookmarks = true,
                                                 .text_only = f->o.text_only},
                          (struct port_sink){on_watch, f});
}

static void list_failed(struct feed *f, const struct port_msg *m)
{
    /* 401 (no credentials) says nothing about the kind; 403 (no right to read) may last. */
    const bool forbidden = m->rc == -HK_EDENIED && (!m->status || m->status->code == 403);
    const bool missing = m->rc == -HK_ENOTFOUND || m->rc == -HK_EUNSUP || forbidden;

    if (missing && !f->o.required) {
        if (f->absences == 0) {
            hk_log(HK_LOG_INFO, "kind is not served", "kind=%s", f->o.kind->plural);
        }
        f->synced = true;
        feed_wait_retry(f, true, pause_ns(f, f->absences++, WAIT_MISSING_NS));
        return;
    }
    if (m->rc != -HK_EGONE) { /* else the request for the next page came too late */
        hk_log(HK_LOG_WARN, "list failed", "kind=%s err=\"%s\"", f->o.kind->plural, m->err->text);
    }
    back_off(f, true, m);
}

static void on_list(void *ctx, const struct port_msg *m)
{
    struct feed *f = ctx;

    if (m->rc < 0) {
        list_failed(f, m);
        return;
    }
    for (uint32_t i = 0; i < m->nitems; i++) {
        feed_accept_object(f, m->items[i]);
    }
    f->rv = m->rv;
    if (m->cont.n > 0) {
        list_page(f, m->cont);
        return;
    }
    f->absences = 0;
    f->synced = true;
    feed_delete_unlisted(f);
    if (f->o.ops->listed) {
        f->o.ops->listed(f->o.ctx);
    }
    feed_start_watch(f);
}

static void list_page(struct feed *f, struct hk_str cont)
{
    const struct port_request req = {.verb = PORT_LIST,
                                     .kind = f->o.kind,
                                     .ns = f->o.ns,
                                     .label_selector = f->o.label_selector,
                                     .field_selector = f->o.field_selector,
                                     .limit = f->o.page > 0 ? f->o.page : PAGE_DEFAULT,
                                     .cont = cont,
                                     .text_only = f->o.text_only};

    f->call = port_submit(f->o.port, &req, (struct port_sink){on_list, f});
}

static void feed_start_list(struct feed *f)
{
    f->state = FEED_LISTING;
    f->round++;
    list_page(f, HK_STR(""));
}

void feed_init(struct feed *f, const struct feed_opts *o)
{
    *f = (struct feed){.o = *o};
    /* A different sequence for each kind and process, but repeatable with virtual time. */
    hk_rand_seed(&f->rand, hk_hash(o->kind->plural, strlen(o->kind->plural),
                                   (uint64_t)o->clock->wall_ns(o->clock)));
    feed_start_list(f);
}

int64_t feed_tick(struct feed *f, int64_t now_ns)
{
    if (f->state != FEED_WAITING) {
        return INT64_MAX;
    }
    if (f->due_ns > now_ns) {
        return f->due_ns;
    }
    if (f->relist) {
        feed_start_list(f);
    } else {
        feed_start_watch(f);
    }
    return INT64_MAX;
}

void feed_relist(struct feed *f)
{
    if (f->call) {
        port_cancel(f->o.port, f->call);
    }
    feed_start_list(f);
}

void feed_fini(struct feed *f)
{
    if (f->call) {
        port_cancel(f->o.port, f->call);
    }
    for (uint32_t i = 0; i < f->seen.cap; i++) {
        if (f->seen.keys[i] != UINT64_MAX) {
            hk_intern_drop(f->o.str, (uint32_t)(f->seen.keys[i] >> 32));
            hk_intern_drop(f->o.str, (uint32_t)f->seen.keys[i]);
        }
    }
    hk_map_fini(&f->seen);
}
