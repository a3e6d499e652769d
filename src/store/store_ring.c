// SPDX-License-Identifier: Apache-2.0
// The events that watchers can still read, in the order of revisions, and the memory they use.
#include "store/store_priv.h"

enum { EVENTS_FIRST = 1024 }; /* initial capacity */

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

/* The memory of an object counts once: from its own event until the event that replaced it leaves
 * the ring. If no event replaced it, it counts until its own event leaves, and again when a later
 * event replaces it. */
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

/* The newest event stays whatever its size: its row gives the next start the last revision. */
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
