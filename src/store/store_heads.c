// SPDX-License-Identifier: Apache-2.0
// The newest staged write of each key that has one: the next write of the key is checked against
// it. A hash table with chains through the writes themselves, so staging allocates nothing.
#include "store/store_priv.h"

enum { SLOTS_FIRST = 64 };

uint64_t store_key_hash(uint32_t res, struct store_key key)
{
    return hk_hash(key.name.s, key.name.n, hk_hash(key.ns.s, key.ns.n, res));
}

struct store_stage *store_heads_find(const struct store_heads *h, uint64_t hash, uint32_t res,
                                     struct store_key key)
{
    struct store_stage *st = h->nslots > 0 ? h->slots[hash & (h->nslots - 1)] : NULL;

    while (st &&
           (st->hash != hash || st->item.obj->res != res ||
            !hk_str_eq(st->item.obj->name, key.name) || !hk_str_eq(st->item.obj->ns, key.ns))) {
        st = st->chain;
    }
    return st;
}

static void heads_grow(struct store_heads *h)
{
    const uint32_t nslots = h->nslots > 0 ? 2 * h->nslots : SLOTS_FIRST;
    struct store_stage **slots = hk_zalloc_array(nslots, sizeof(struct store_stage *));

    for (uint32_t i = 0; i < h->nslots; i++) {
        struct store_stage *next;
        for (struct store_stage *st = h->slots[i]; st; st = next) {
            struct store_stage **slot = &slots[st->hash & (nslots - 1)];
            next = st->chain;
            st->chain = *slot;
            *slot = st;
        }
    }
    hk_free(h->slots);
    h->slots = slots;
    h->nslots = nslots;
}

void store_heads_del(struct store_heads *h, struct store_stage *st)
{
    struct store_stage **at = &h->slots[st->hash & (h->nslots - 1)];

    while (*at != st) {
        at = &(*at)->chain;
    }
    *at = st->chain;
    st->in_heads = false;
    h->len--;
}

void store_heads_add(struct store_heads *h, struct store_stage *st)
{
    struct store_stage **slot;

    if (h->len >= h->nslots) {
        heads_grow(h);
    }
    slot = &h->slots[st->hash & (h->nslots - 1)];
    st->chain = *slot;
    *slot = st;
    st->in_heads = true;
    h->len++;
}
