// SPDX-License-Identifier: Apache-2.0
// The node side of the topology counters: label keys as columns from node to domain, counts per
// domain, and the nodes that a spread constraint includes.
#include "scheduler/model/topo_priv.h"

#define UNTOLERATED ((1u << EFFECT_NO_SCHEDULE) | (1u << EFFECT_NO_EXECUTE))

/* ---- counts ---- */

static void keep_min(struct topo_counter *c, int32_t from, int32_t to)
{
    if (to < c->min) {
        c->min = to;
        c->at_min = 1;
    } else if (to == c->min) {
        c->at_min++;
    } else if (from == c->min) {
        c->at_min--;
    }
}

static bool counter_includes(const struct topo_counter *c, node_id n)
{
    return !c->included || (c->included[n.i / 64] >> (n.i % 64)) & 1;
}

static int32_t *topo_node_domain_count(struct topo_counter *c, uint32_t domain)
{
    if (!c->page) {
        c->page = hk_zalloc_array(c->key->cap / TOPO_PAGE, sizeof(*c->page));
    }
    int32_t **page = &c->page[domain / TOPO_PAGE];
    if (!*page) {
        *page = hk_zalloc_array(TOPO_PAGE, sizeof(**page));
    }
    return &(*page)[domain % TOPO_PAGE];
}

void topo_node_count(struct topo_counter *c, node_id n, int sign)
{
    const uint32_t d = topo_domain(c, n);
    int32_t *count;

    if (d == ID_NONE || !counter_includes(c, n)) {
        return;
    }
    count = topo_node_domain_count(c, d);
    *count += sign;
    c->total += sign;
    hk_assert(*count >= 0);
    if (c->in_domain && c->at_min > 0) {
        keep_min(c, *count - sign, *count);
    }
}

static void free_pages(struct topo_counter *c)
{
    for (uint32_t k = 0; c->page && k < c->key->cap / TOPO_PAGE; k++) {
        hk_free(c->page[k]);
    }
    hk_free(c->page);
    c->page = NULL;
}

void topo_node_zero(struct topo_counter *c)
{
    free_pages(c);
    c->total = 0;
    c->at_min = 0;
}

void topo_node_fini(struct topo_counter *c)
{
    free_pages(c);
    hk_free(c->included);
    hk_free(c->in_domain);
}

int32_t topo_min(struct topo_counter *c)
{
    if (c->at_min > 0 || c->ndomain == 0) {
        return c->ndomain == 0 ? 0 : c->min;
    }
    c->min = INT32_MAX;
    for (uint32_t d = 0; d < c->key->len; d++) {
        const int32_t have = topo_at(c, d);
        if (c->in_domain[d] == 0 || have > c->min) {
            continue;
        }
        c->at_min = have == c->min ? c->at_min + 1 : 1;
        c->min = have;
    }
    return c->min;
}

/* ---- keys, domains and included nodes ---- */

static void *topo_node_grow_zeroed(void *p, uint32_t from, uint32_t to, size_t size)
{
    p = hk_realloc_array(p, to, size);
    memset((char *)p + (size_t)from * size, 0, (size_t)(to - from) * size);
    return p;
}

static void key_reserve(struct topo *t, struct topo_key *key, uint32_t want)
{
    if (want <= key->cap) {
        return;
    }
    const uint32_t least = HK_MAX(want, key->cap * 2);
    const uint32_t cap = (least + TOPO_PAGE - 1) / TOPO_PAGE * TOPO_PAGE;
    key->nodes = topo_node_grow_zeroed(key->nodes, key->cap, cap, sizeof(*key->nodes));
    key->val = topo_node_grow_zeroed(key->val, key->cap, cap, sizeof(*key->val));
    for (uint32_t k = 0; k < t->all.len; k++) {
        struct topo_counter *c = t->all.at[k];
        if (c->key != key) {
            continue;
        }
        if (c->page) {
            c->page = topo_node_grow_zeroed(c->page, key->cap / TOPO_PAGE, cap / TOPO_PAGE,
                                            sizeof(*c->page));
        }
        if (c->in_domain) {
            c->in_domain =
                topo_node_grow_zeroed(c->in_domain, key->cap, cap, sizeof(*c->in_domain));
        }
    }
    key->cap = cap;
}

static uint32_t domain_need(struct topo *t, struct topo_key *key, uint32_t val)
{
    uint32_t d = hk_map_get(&key->by_val, val);

    if (d != HK_NONE) {
        return d;
    }
    if (key->vacant.len > 0) {
        d = hk_vec_pop(&key->vacant);
    } else {
        key_reserve(t, key, key->len + 1);
        d = key->len++;
    }
    key->val[d] = val;
    hk_map_put(&key->by_val, val, d);
    return d;
}

static void domain_enter(const struct model *m, struct topo_key *key, node_id n)
{
    uint32_t d = n.i, val;

    if (key->label == ID_NONE) {
        key_reserve(m->topo, key, n.i + 1);
        key->len = HK_MAX(key->len, n.i + 1);
    } else if (labels_get(m->nodes.labels[n.i], key->label, &val)) {
        d = domain_need(m->topo, key, val);
    } else {
        d = ID_NONE;
    }
    key->domain[n.i] = d;
    if (d != ID_NONE) {
        key->nodes[d]++;
    }
}

static void domain_leave(struct topo_key *key, node_id n)
{
    const uint32_t d = key->domain[n.i];

    key->domain[n.i] = ID_NONE;
    if (d != ID_NONE && --key->nodes[d] == 0 && key->label != ID_NONE) {
        hk_map_del(&key->by_val, key->val[d]);
        hk_vec_push(&key->vacant, d);
    }
}

bool topo_node_takes_part(const struct model *m, const struct topo_counter *c, node_id n)
{
    const struct spread *s = c->spread;
    const struct labels l = m->nodes.labels[n.i];
    uint32_t val;

    if (!c->included) {
        return true;
    }
    const struct cons *cons = m->cons.at[c->cons.i];
    if (!(m->nodes.flags[n.i] & NODE_KNOWN)) {
        return false;
    }
    for (uint32_t k = 0; k < cons->nspread && !s->system_default; k++) {
        if (cons->spread[k].hard == s->hard && !labels_get(l, cons->spread[k].topo_key, &val)) {
            return false;
        }
    }
    if (s->honor_affinity && !cons_affinity_match(cons, l, m->nodes.name[n.i], &m->str)) {
        return false;
    }
    return !s->honor_taints ||
           cons_tolerates(cons, m->nodes.taints[n.i], m->nodes.ntaint[n.i], UNTOLERATED);
}

static void counter_include(struct topo_counter *c, node_id n, bool on)
{
    const uint64_t bit = 1ULL << (n.i % 64);
    const uint32_t d = topo_domain(c, n);

    if (!!(c->included[n.i / 64] & bit) == on) {
        return;
    }
    c->included[n.i / 64] ^= bit;
    if (d == ID_NONE) {
        return;
    }
    if (on) {
        c->ndomain += c->in_domain[d]++ == 0;
    } else {
        c->ndomain -= --c->in_domain[d] == 0;
    }
    c->at_min = 0;
}

static void node_leave(const struct model *m, node_id n)
{
    struct topo *t = m->topo;

    for (uint32_t k = 0; k < t->all.len; k++) {
        if (t->all.at[k]->included) {
            counter_include(t->all.at[k], n, false);
        }
    }
    for (uint32_t k = 0; k < t->keys.len; k++) {
        domain_leave(t->keys.at[k], n);
    }
}

static void node_enter(const struct model *m, node_id n)
{
    struct topo *t = m->topo;

    for (uint32_t k = 0; k < t->keys.len; k++) {
        domain_enter(m, t->keys.at[k], n);
    }
    for (uint32_t k = 0; k < t->all.len; k++) {
        struct topo_counter *c = t->all.at[k];
        if (c->included) {
            counter_include(c, n, topo_node_takes_part(m, c, n));
        }
    }
}

#define WORDS(rows) (((rows) + 63) / 64)

void topo_node_rows(const struct model *m)
{
    struct topo *t = m->topo;
    const uint32_t from = t->nrow, to = m->nodes.len;

    if (from == to) {
        return;
    }
    for (uint32_t k = 0; k < t->keys.len; k++) {
        t->keys.at[k]->domain = hk_realloc_array(t->keys.at[k]->domain, to, sizeof(uint32_t));
    }
    for (uint32_t k = 0; k < t->all.len; k++) {
        struct topo_counter *c = t->all.at[k];
        if (c->included) {
            c->included =
                topo_node_grow_zeroed(c->included, WORDS(from), WORDS(to), sizeof(uint64_t));
        }
    }
    t->nrow = to;
    for (uint32_t n = from; n < to; n++) {
        node_enter(m, (node_id){n});
    }
}

struct topo_key *topo_node_key(struct model *m, uint32_t label)
{
    struct topo *t = m->topo;
    struct topo_key *key;

    for (uint32_t k = 0; k < t->keys.len; k++) {
        if (t->keys.at[k]->label == label) {
            return t->keys.at[k];
        }
    }
    key = hk_zalloc(sizeof(*key));
    key->label = label;
    if (label != ID_NONE) {
        hk_intern_keep(&m->str, label);
    }
    key->domain = hk_zalloc_array(t->nrow + 1, sizeof(uint32_t));
    key_reserve(t, key, 1);
    hk_vec_push(&t->keys, key);
    for (uint32_t n = 0; n < t->nrow; n++) {
        domain_enter(m, key, (node_id){n});
    }
    return key;
}

void topo_node_include(const struct model *m, struct topo_counter *c)
{
    const uint32_t nrow = m->topo->nrow;

    c->included = hk_zalloc_array(WORDS(nrow) + 1, sizeof(uint64_t));
    c->in_domain = hk_zalloc_array(c->key->cap, sizeof(uint32_t));
    for (uint32_t n = 0; n < nrow; n++) {
        counter_include(c, (node_id){n}, topo_node_takes_part(m, c, (node_id){n}));
    }
}

void topo_node_key_free(struct topo_key *key)
{
    hk_free(key->domain);
    hk_free(key->val);
    hk_free(key->nodes);
    hk_map_fini(&key->by_val);
    hk_vec_fini(&key->vacant);
    hk_free(key);
}

/* ---- node changes ---- */

static bool node_unchanged(const struct model *m, node_id n)
{
    const struct topo *t = m->topo;

    for (uint32_t k = 0; k < t->keys.len; k++) {
        const struct topo_key *key = t->keys.at[k];
        uint32_t d = ID_NONE, val;
        if (key->label == ID_NONE) {
            continue;
        }
        if (labels_get(m->nodes.labels[n.i], key->label, &val)) {
            d = hk_map_get(&key->by_val, val);
            if (d == HK_NONE) {
                return false;
            }
        }
        if (d != key->domain[n.i]) {
            return false;
        }
    }
    for (uint32_t k = 0; k < t->all.len; k++) {
        const struct topo_counter *c = t->all.at[k];
        if (c->included && counter_includes(c, n) != topo_node_takes_part(m, c, n)) {
            return false;
        }
    }
    return true;
}

static void node_count(const struct model *m, node_id n, int sign)
{
    struct topo *t = m->topo;

    for (task_id k = m->nodes.first[n.i]; !id_none(k); k = model_task(m, k)->node_next) {
        if (k.i < t->pods.len && t->pods.at[k.i].counted) {
            topo_pod_count(t, &t->pods.at[k.i], sign);
        }
    }
}

void topo_node_changed(struct model *m, node_id n)
{
    struct topo *t = m->topo;

    if (!t->awake) {
        return;
    }
    topo_node_rows(m);
    if (node_unchanged(m, n)) {
        return;
    }
    node_count(m, n, -1);
    node_leave(m, n);
    node_enter(m, n);
    node_count(m, n, 1);
}
