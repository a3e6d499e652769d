// SPDX-License-Identifier: Apache-2.0
// The id map and the string table. Both probe linearly and are at most three quarters full.
// Deletion moves later entries of the run back, so there are no tombstones, and a table with
// constant changes stays as fast as a new one.

#include "base/map.h"

#include "base/vec.h"

#define EMPTY UINT64_MAX
#define CAP_MIN 16u

static bool hk_map_is_full(uint32_t len, uint32_t cap)
{
    return (uint64_t)len * 4 >= (uint64_t)cap * 3;
}

void hk_map_fini(struct hk_map *m)
{
    hk_free(m->keys);
    hk_free(m->vals);
    *m = (struct hk_map){0};
}

void hk_map_clear(struct hk_map *m)
{
    if (m->len > 0) {
        memset(m->keys, 0xff, m->cap * sizeof(m->keys[0]));
        m->len = 0;
    }
}

static uint32_t hk_map_home_slot(const struct hk_map *m, uint64_t key)
{
    return (uint32_t)hk_mix(key) & (m->cap - 1);
}

/* The slot of the key, or the free slot for it. */
static uint32_t hk_map_find_slot(const struct hk_map *m, uint64_t key)
{
    uint32_t i = hk_map_home_slot(m, key);

    while (m->keys[i] != key && m->keys[i] != EMPTY) {
        i = (i + 1) & (m->cap - 1);
    }
    return i;
}

uint32_t hk_map_get(const struct hk_map *m, uint64_t key)
{
    if (m->len == 0) {
        return HK_NONE;
    }
    const uint32_t i = hk_map_find_slot(m, key);
    return m->keys[i] == EMPTY ? HK_NONE : m->vals[i];
}

static void map_grow(struct hk_map *m)
{
    struct hk_map old = *m;

    hk_assert(old.cap <= UINT32_MAX / 2);
    m->cap = HK_MAX(old.cap * 2, CAP_MIN);
    m->keys = hk_realloc_array(NULL, m->cap, sizeof(m->keys[0]));
    m->vals = hk_realloc_array(NULL, m->cap, sizeof(m->vals[0]));
    memset(m->keys, 0xff, m->cap * sizeof(m->keys[0]));
    for (uint32_t i = 0; i < old.cap; i++) {
        if (old.keys[i] != EMPTY) {
            const uint32_t slot = hk_map_find_slot(m, old.keys[i]);
            m->keys[slot] = old.keys[i];
            m->vals[slot] = old.vals[i];
        }
    }
    hk_map_fini(&old);
}

void hk_map_put(struct hk_map *m, uint64_t key, uint32_t val)
{
    hk_assert(key != EMPTY);
    if (hk_map_is_full(m->len, m->cap)) {
        map_grow(m);
    }
    const uint32_t i = hk_map_find_slot(m, key);
    m->len += m->keys[i] == EMPTY;
    m->keys[i] = key;
    m->vals[i] = val;
}

bool hk_map_del(struct hk_map *m, uint64_t key)
{
    if (m->len == 0) {
        return false;
    }
    const uint32_t mask = m->cap - 1;
    uint32_t gap = hk_map_find_slot(m, key);
    if (m->keys[gap] == EMPTY) {
        return false;
    }
    for (uint32_t i = (gap + 1) & mask; m->keys[i] != EMPTY; i = (i + 1) & mask) {
        /* An entry may fill the gap unless its home slot is cyclically within (gap, i]. */
        if (((i - hk_map_home_slot(m, m->keys[i])) & mask) >= ((i - gap) & mask)) {
            m->keys[gap] = m->keys[i];
            m->vals[gap] = m->vals[i];
            gap = i;
        }
    }
    m->keys[gap] = EMPTY;
    m->len--;
    return true;
}

/* Reference count of a string that is never freed. */
#define FOR_EVER UINT32_MAX

void hk_intern_fini(struct hk_intern *t)
{
    for (uint32_t i = 1; i < t->len; i++) {
        hk_free((void *)t->at[i].s);
    }
    hk_free(t->at);
    hk_free(t->slots);
    *t = (struct hk_intern){0};
}

/* A slot is two words: an id (0: free; the empty string needs no slot) and a 32-bit hash. So
 * growing never reads the strings, and a probe compares text only when it is most likely equal. */
static uint32_t *slot_at(const struct hk_intern *t, uint32_t i)
{
    return t->slots + (size_t)i * 2;
}

static uint32_t hk_map_hash_str(struct hk_str s)
{
    return (uint32_t)hk_hash(s.s, s.n, 0);
}

static bool row_is(const struct hk_intern_row *r, struct hk_str s)
{
    return r->n == s.n && memcmp(r->s, s.s, s.n) == 0;
}

/* The slot of s, or the free slot for it. */
static uint32_t *slot_find(const struct hk_intern *t, struct hk_str s, uint32_t hash)
{
    const uint32_t mask = t->nslots - 1;

    for (uint32_t i = hash & mask;; i = (i + 1) & mask) {
        uint32_t *slot = slot_at(t, i);
        if (slot[0] == 0 || (slot[1] == hash && row_is(&t->at[slot[0]], s))) {
            return slot;
        }
    }
}

static void slots_grow(struct hk_intern *t)
{
    uint32_t *old = t->slots;
    const uint32_t nold = t->nslots;

    hk_assert(nold <= UINT32_MAX / 2);
    t->nslots = HK_MAX(nold * 2, CAP_MIN);
    t->slots = hk_zalloc_array(t->nslots, 2 * sizeof(t->slots[0]));
    const uint32_t mask = t->nslots - 1;
    for (uint32_t k = 0; k < nold; k++) {
        if (old[(size_t)k * 2] != 0) {
            uint32_t i = old[(size_t)k * 2 + 1] & mask;
            while (slot_at(t, i)[0] != 0) {
                i = (i + 1) & mask;
            }
            memcpy(slot_at(t, i), old + (size_t)k * 2, 2 * sizeof(old[0]));
        }
    }
    hk_free(old);
}

/* Moves later entries of the run back, as in the map. */
static void slot_del(struct hk_intern *t, uint32_t gap)
{
    const uint32_t mask = t->nslots - 1;

    for (uint32_t i = (gap + 1) & mask; slot_at(t, i)[0] != 0; i = (i + 1) & mask) {
        if (((i - slot_at(t, i)[1]) & mask) >= ((i - gap) & mask)) {
            memcpy(slot_at(t, gap), slot_at(t, i), 2 * sizeof(t->slots[0]));
            gap = i;
        }
    }
    slot_at(t, gap)[0] = 0;
}

static uint32_t row_new(struct hk_intern *t, struct hk_str s)
{
    uint32_t id = t->vacant;
    char *text = hk_alloc(s.n + 1);

    hk_assert(s.n < UINT32_MAX);
    memcpy(text, s.s, s.n);
    text[s.n] = '\0';
    if (id != 0) {
        t->vacant = t->at[id].n;
    } else {
        if (t->len == 0) {
            hk_vec_push(t, (struct hk_intern_row){0}); /* id 0, which needs no text */
        }
        id = t->len;
        hk_vec_push(t, (struct hk_intern_row){0});
    }
    t->at[id] = (struct hk_intern_row){.s = text, .n = (uint32_t)s.n};
    t->live++;
    return id;
}

/* The id of s; a new one has no references. */
static uint32_t need(struct hk_intern *t, struct hk_str s)
{
    if (hk_map_is_full(t->live, t->nslots)) {
        slots_grow(t);
    }
    const uint32_t hash = hk_map_hash_str(s);
    uint32_t *slot = slot_find(t, s, hash);
    if (slot[0] == 0) {
        slot[0] = row_new(t, s);
        slot[1] = hash;
    }
    return slot[0];
}

uint32_t hk_intern(struct hk_intern *t, struct hk_str s)
{
    if (s.n == 0) {
        return 0;
    }
    const uint32_t id = need(t, s);
    t->at[id].refs = FOR_EVER;
    return id;
}

uint32_t hk_intern_hold(struct hk_intern *t, struct hk_str s)
{
    if (s.n == 0) {
        return 0;
    }
    const uint32_t id = need(t, s);
    t->at[id].refs += t->at[id].refs != FOR_EVER;
    return id;
}

void hk_intern_keep(struct hk_intern *t, uint32_t id)
{
    if (id == 0 || t->at[id].refs == FOR_EVER) {
        return;
    }
    hk_assert(t->at[id].refs > 0);
    t->at[id].refs++;
}

void hk_intern_drop(struct hk_intern *t, uint32_t id)
{
    if (id == 0 || t->at[id].refs == FOR_EVER) {
        return;
    }
    struct hk_intern_row *r = &t->at[id];
    hk_assert(r->refs > 0);
    if (--r->refs > 0) {
        return;
    }
    const struct hk_str s = {r->s, r->n};
    slot_del(t, (uint32_t)(slot_find(t, s, hk_map_hash_str(s)) - t->slots) / 2);
    hk_free((void *)r->s);
    *r = (struct hk_intern_row){.n = t->vacant};
    t->vacant = id;
    t->live--;
}

uint32_t hk_intern_find(const struct hk_intern *t, struct hk_str s)
{
    if (s.n == 0) {
        return 0;
    }
    if (t->nslots == 0) {
        return HK_NONE;
    }
    const uint32_t id = slot_find(t, s, hk_map_hash_str(s))[0];
    return id == 0 ? HK_NONE : id;
}
