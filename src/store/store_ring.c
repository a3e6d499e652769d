// SPDX-License-Identifier: Apache-2.0
// The events watchers can still ask for, in the order of revisions, with the memory they hold on
// to.
#include "store/store_priv.h"

enum { EVENTS_FIRST = 1024 }; /* room to begin with */

static size_t obj_bytes(const struct store_obj *o)
{
    return o ? sizeof(*o) + o->ns.n + o->name.n + o->uid.n + o->text.n + 4 : 0;
}

static struct store_event *slot(const struct store_ring *r, uint32_t i)
{
    return &r->at[(r->first + i) & (r->cap - 1)];
}

static void ring_grow(struct store_ring *r)
{
    const uint32_t cap = r->cap > 0 ? 2 * r->cap : EVENTS_FIRST;
    struct store_event *at = hk_zalloc_array(cap, sizeof(*at));

    for (uint32_t i = 0; i < r->len; i++) {
        at[i] = *slot(r, i);
    }
    hk_free(r->at);
    r->at = at;
    r->cap = cap;
    r->first = 0;
}

const struct store_event *store_ring_at(const struct store_ring *r, uint32_t i)
{
    return slot(r, i);
}

uint32_t store_ring_find(const struct store_ring *r, uint64_t rv)
{
    uint32_t lo = 0, hi = r->len;

    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (slot(r, mid)->rv <= rv) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* An object counts once, from the event that made it until the one that replaced it leaves; if none
 * has, until its own leaves, and again when one does. */
void store_ring_push(struct store_ring *r, const struct store_event *e)
{
    r->bytes += obj_bytes(e->obj);
    if (e->prev && e->prev->rv <= r->oldest_rv) {
        r->bytes += obj_bytes(e->prev);
    }
    if (r->len == r->cap) {
        ring_grow(r);
    }
    *slot(r, r->len++) = *e;
}

/* The newest stays whatever its size: its row tells the next start where revisions are. */
bool store_ring_over(const struct store_ring *r)
{
    return r->len > 1 && (r->len > r->max_events || r->bytes > r->max_bytes);
}

void store_ring_shift(struct store_ring *r, bool replaced)
{
    const struct store_event e = *slot(r, 0);

    r->first = (r->first + 1) & (r->cap - 1);
    r->len--;
    r->oldest_rv = e.rv;
    r->bytes -= obj_bytes(e.prev) + (replaced ? 0 : obj_bytes(e.obj));
    store_obj_unref(e.obj);
    store_obj_unref(e.prev);
}

void store_ring_fini(struct store_ring *r)
{
    for (uint32_t i = 0; i < r->len; i++) {
        store_obj_unref(slot(r, i)->obj);
        store_obj_unref(slot(r, i)->prev);
    }
    hk_free(r->at);
    *r = (struct store_ring){0};
}
