// SPDX-License-Identifier: Apache-2.0
// Keeps sorted lists of objects up to date from feeds.
#include "user/live.h"

enum { GIVE_UP = 8 }; /* failures in a row, about twenty seconds including pauses */

/* The row of the name, or its insertion point. */
static uint32_t live_find_row(const struct live *l, struct hk_str ns, struct hk_str name,
                              bool *ret_there)
{
    uint32_t lo = 0, hi = l->at.len;

    *ret_there = false;
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        const int by_ns = hk_str_cmp(l->at.at[mid]->ns, ns);
        const int c = by_ns != 0 ? by_ns : hk_str_cmp(l->at.at[mid]->name, name);

        if (c == 0) {
            *ret_there = true;
            return mid;
        }
        if (c < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

struct api_object *live_find(const struct live *l, struct hk_str ns, struct hk_str name)
{
    bool there;
    const uint32_t i = live_find_row(l, ns, name, &there);

    return there ? l->at.at[i] : NULL;
}

static void live_on_put(void *ctx, struct api_object *o)
{
    struct live *l = ctx;
    bool there;
    const uint32_t i = live_find_row(l, o->ns, o->name, &there);

    if (there) {
        api_object_unref(l->at.at[i]);
    } else {
        hk_vec_push(&l->at, NULL);
        memmove(&l->at.at[i + 1], &l->at.at[i], (l->at.len - i - 1) * sizeof(l->at.at[0]));
    }
    l->at.at[i] = api_object_ref(o);
    l->dirty = true;
    if (l->o.changed) {
        l->o.changed(l->o.ctx, o->ns, o->name, o);
    }
}

static void live_on_del(void *ctx, struct hk_str ns, struct hk_str name,
                        const struct api_object *last)
{
    struct live *l = ctx;
    bool there;
    const uint32_t i = live_find_row(l, ns, name, &there);

    if (!there) {
        return;
    }
    HK_AUTO(api_object_unrefp) struct api_object *gone = l->at.at[i];
    l->at.len--;
    memmove(&l->at.at[i], &l->at.at[i + 1], (l->at.len - i) * sizeof(l->at.at[0]));
    l->dirty = true;
    if (l->o.changed) {
        l->o.changed(l->o.ctx, gone->ns, gone->name, NULL);
    }
}

static void live_on_listed(void *ctx)
{
    struct live *l = ctx;

    l->dirty = true;
}

void live_init(struct live *l, struct user *u, const struct live_opts *o)
{
    static const struct feed_ops ops = {live_on_put, live_on_del, live_on_listed};
    const struct api_kind *kind = api_kind(o->kind);

    *l = (struct live){.o = *o};
    feed_init(&l->feed, &(struct feed_opts){.port = u->ask.port,
                                            .clock = hk_clock_system(),
                                            .str = &l->str,
                                            .kind = kind,
                                            .ns = hk_str(kind->namespaced ? o->ns : ""),
                                            .label_selector = hk_str(o->label),
                                            .field_selector = hk_str(o->field),
                                            .ops = &ops,
                                            .ctx = l});
}

void live_fini(struct live *l)
{
    if (!l->feed.o.port) {
        return;
    }
    feed_fini(&l->feed);
    for (uint32_t i = 0; i < l->at.len; i++) {
        api_object_unref(l->at.at[i]);
    }
    hk_vec_fini(&l->at);
    hk_intern_fini(&l->str);
    *l = (struct live){0};
}

/* Returns the time until a feed needs its tick, at most timeout_ms. */
static int live_tick(struct live *const *all, uint32_t n, int64_t now_ns, int timeout_ms)
{
    for (uint32_t i = 0; i < n; i++) {
        const int64_t due_ns = feed_tick(&all[i]->feed, now_ns);
        const int64_t ms = HK_MAX((due_ns - now_ns + 999999) / 1000000, 0);

        if (due_ns != INT64_MAX && (timeout_ms < 0 || ms < timeout_ms)) {
            timeout_ms = (int)ms;
        }
    }
    return timeout_ms;
}

int live_turn(struct user *u, struct live *const *all, uint32_t n, int timeout_ms,
              struct hk_err *err)
{
    const struct port_waiter w = ask_waiter(&u->ask);
    struct hk_clock *clock = hk_clock_system();

    for (uint32_t i = 0; i < n; i++) {
        if (all[i]->feed.failures >= GIVE_UP) {
            return hk_fail(err, HK_EIO, "lost the server: watching %s failed %u times in a row",
                           all[i]->feed.o.kind->plural, all[i]->feed.failures);
        }
    }
    return port_turn(&w, live_tick(all, n, clock->mono_ns(clock), timeout_ms), err);
}

static bool live_is_synced(struct live *const *all, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!all[i]->feed.synced) {
            return false;
        }
    }
    return true;
}

int live_sync(struct user *u, struct live *const *all, uint32_t n, struct hk_err *err)
{
    while (!live_is_synced(all, n) && !u->interrupted) {
        const int rc = live_turn(u, all, n, -1, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}
