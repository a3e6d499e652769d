// SPDX-License-Identifier: Apache-2.0
// The model as a whole: creation and end, dimensions, and interned objects (shapes, constraints,
// pod identities), with the cache of static filter answers.
#include "scheduler/model/model_priv.h"
#include "scheduler/model/topo.h"
#include "scheduler/model/volumes.h"

void model_init(struct model *m)
{
    *m = (struct model){.stride = 4};
    dims_init(&m->dims, &m->str);
    m->key_unschedulable = hk_intern(&m->str, HK_STR("node.kubernetes.io/unschedulable"));
    m->topo = topo_new();
    m->volumes = volumes_new();
    const uint32_t root = TABLE_ROW(&m->hypers);
    hk_assert(root == HYPER_ROOT.i);
    m->hypers.at[root] = (struct hyper){.used = true, .tier = 1, .parent = NO_HYPER};
    m->hyper_ready = true;
}

static void cons_free(struct cons *c)
{
    struct hk_arena mem;

    if (!c) {
        return;
    }
    hk_free(c->verdict);
    mem = c->mem; /* c itself is allocated in it */
    hk_arena_fini(&mem);
}

static void fini_tables(struct model *m)
{
    for (uint32_t i = 0; i < m->jobs.len; i++) {
        job_fini(&m->jobs.at[i]);
    }
    for (uint32_t i = 0; i < m->shapes.len; i++) {
        hk_free(m->shapes.at[i].req);
    }
    for (uint32_t i = 0; i < m->cons.len; i++) {
        cons_free(m->cons.at[i]);
    }
    for (uint32_t i = 0; i < m->idents.len; i++) {
        hk_free((void *)m->idents.at[i].labels.at);
    }
    for (uint32_t i = 0; i < m->classes.len; i++) {
        hk_free((void *)m->classes.at[i].labels.at);
        hk_free((void *)m->classes.at[i].taints);
    }
    for (uint32_t i = 0; i < m->hypers.len; i++) {
        hyper_fini(&m->hypers.at[i]);
    }
    for (uint32_t i = 0; i < m->quotas.len; i++) {
        quota_fini(&m->quotas.at[i]);
    }
    for (uint32_t i = 0; i < m->pdbs.len; i++) {
        pdb_fini(&m->pdbs.at[i]);
    }
    for (uint32_t i = 0; i < m->namespaces.len; i++) {
        hk_free((void *)m->namespaces.at[i].labels.at);
    }
}

#define TABLE_FINI(t)                                                                              \
    do {                                                                                           \
        hk_vec_fini(&(t)->free);                                                                   \
        hk_vec_fini(t);                                                                            \
    } while (0)

void model_fini(struct model *m)
{
    struct hk_map *maps[] = {
        &m->node_by_name, &m->task_by_key,   &m->job_by_key,   &m->queue_by_name, &m->hyper_by_name,
        &m->sub_by_key,   &m->shape_by_hash, &m->cons_by_hash, &m->ident_by_hash, &m->class_by_hash,
        &m->asked_keys,   &m->ns_by_name,    &m->word_age};

    fini_tables(m);
    node_table_fini(&m->nodes);
    TABLE_FINI(&m->tasks);
    hk_vec_fini(&m->task_gen);
    TABLE_FINI(&m->shapes);
    TABLE_FINI(&m->jobs);
    TABLE_FINI(&m->subs);
    TABLE_FINI(&m->queues);
    TABLE_FINI(&m->hypers);
    TABLE_FINI(&m->quotas);
    TABLE_FINI(&m->pdbs);
    TABLE_FINI(&m->idents);
    TABLE_FINI(&m->classes);
    hk_vec_fini(&m->cons);
    hk_vec_fini(&m->cons_free);
    hk_vec_fini(&m->namespaces);
    hk_vec_fini(&m->active);
    hk_vec_fini(&m->dirty_jobs);
    hk_vec_fini(&m->nominated);
    hk_vec_fini(&m->image_nodes);
    hk_vec_fini(&m->words);
    for (uint32_t k = 0; k < HK_LEN(maps); k++) {
        hk_map_fini(maps[k]);
    }
    topo_free(m->topo);
    volumes_free(m->volumes);
    hk_intern_fini(&m->str);
    *m = (struct model){0};
}

int model_dim(struct model *m, struct hk_str name, uint32_t *ret, struct hk_err *err)
{
    const uint32_t before = m->dims.n;
    const uint32_t d = dims_intern(&m->dims, &m->str, name);

    if (d == DIM_MAX) {
        return hk_fail(err, HK_ELIMIT,
                       "resource '%.*s': %d resource names are in use, no room for more",
                       HK_FMT(name), DIM_MAX);
    }
    if (m->dims.n > before) {
        node_columns(m);
        if (m->dims.n > m->stride) {
            job_restride(m, m->stride * 2);
        }
    }
    *ret = d;
    return 0;
}

/* ---- interning by content hash ---- */

/* Looks up a content hash: same() compares with row i. Returns the row, or HK_NONE with *slot where
 * a new one goes. */
typedef bool same_fn(const struct model *m, uint32_t i, const void *what);

static uint32_t model_probe_slot(const struct model *m, const struct hk_map *map, uint64_t *slot,
                                 same_fn *same, const void *what)
{
    for (;; (*slot)++) {
        if (*slot == UINT64_MAX) {
            *slot = 0;
        }
        const uint32_t i = hk_map_get(map, *slot);
        if (i == HK_NONE || same(m, i, what)) {
            return i;
        }
    }
}

static int amount_cmp(const void *a, const void *b)
{
    const struct amount *x = a, *y = b;

    return (x->dim > y->dim) - (x->dim < y->dim);
}

struct shape_key {
    struct amount req[DIM_MAX];
    uint32_t nreq;
    const struct shape_desc *d;
};

static bool shape_same(const struct model *m, uint32_t i, const void *what)
{
    const struct shape *s = &m->shapes.at[i];
    const struct shape_key *k = what;

    if (s->refs == 0 || s->nreq != k->nreq || !id_eq(s->cons, k->d->cons) ||
        s->nz_cpu != k->d->nz_cpu || s->nz_mem != k->d->nz_mem) {
        return false;
    }
    for (uint32_t r = 0; r < s->nreq; r++) {
        if (s->req[r].dim != k->req[r].dim || s->req[r].v != k->req[r].v) {
            return false;
        }
    }
    return true;
}

static uint64_t shape_hash(const struct shape_key *k)
{
    uint64_t h = hk_mix(k->d->cons.i) ^ hk_mix((uint64_t)k->d->nz_cpu + 17) ^
                 hk_mix((uint64_t)k->d->nz_mem + 31);

    for (uint32_t r = 0; r < k->nreq; r++) {
        h = hk_mix(h + k->req[r].dim * 0x9e3779b97f4a7c15ULL + (uint64_t)k->req[r].v);
    }
    return h;
}

static bool asks_nothing(const struct shape_key *k)
{
    return k->nreq == 0 || (k->nreq == 1 && k->req[0].dim == DIM_PODS);
}

shape_id model_shape_intern(struct model *m, const struct shape_desc *d)
{
    struct shape_key key = {.d = d};
    uint64_t slot;
    uint32_t i;
    struct shape *s;

    for (uint32_t k = 0; k < d->nreq; k++) {
        if (d->req[k].v != 0) {
            key.req[key.nreq++] = d->req[k];
        }
    }
    qsort(key.req, key.nreq, sizeof(key.req[0]), amount_cmp);
    slot = shape_hash(&key);
    i = model_probe_slot(m, &m->shape_by_hash, &slot, shape_same, &key);
    if (i == HK_NONE) {
        i = TABLE_ROW(&m->shapes);
        s = &m->shapes.at[i];
        s->cons = d->cons;
        s->nreq = key.nreq;
        s->req =
            memcpy(hk_alloc((key.nreq + 1) * sizeof(*s->req)), key.req, key.nreq * sizeof(*s->req));
        s->nz_cpu = d->nz_cpu;
        s->nz_mem = d->nz_mem;
        s->best_effort = asks_nothing(&key);
        s->slot = slot;
        hk_map_put(&m->shape_by_hash, slot, i);
        if (!id_none(d->cons)) {
            m->cons.at[d->cons.i]->refs++;
        }
    }
    m->shapes.at[i].refs++;
    return (shape_id){i};
}

static void cons_unref(struct model *m, cons_id c)
{
    struct cons *cons = id_none(c) ? NULL : m->cons.at[c.i];

    if (!cons || --cons->refs > 0) {
        return;
    }
    topo_cons_forget(m, c);
    hk_map_del(&m->cons_by_hash, cons->hash);
    cons_strings(cons, &m->str, hk_intern_drop);
    cons_free(cons);
    m->cons.at[c.i] = NULL;
    hk_vec_push(&m->cons_free, c.i);
}

void model_shape_unref(struct model *m, shape_id id)
{
    struct shape *s = model_shape(m, id);

    if (--s->refs > 0) {
        return;
    }
    hk_map_del(&m->shape_by_hash, s->slot);
    cons_unref(m, s->cons);
    hk_free(s->req);
    *s = (struct shape){0};
    hk_vec_push(&m->shapes.free, id.i);
}

/* ---- constraints ---- */

static bool cons_same(const struct model *m, uint32_t i, const void *what)
{
    const struct cons *a = m->cons.at[i], *b = what;

    return a && a->key_len == b->key_len && memcmp(a->key, b->key, a->key_len) == 0;
}

static bool model_add_asked_key(struct model *m, uint32_t key)
{
    if (hk_map_get(&m->asked_keys, key) != HK_NONE) {
        return false;
    }
    hk_map_put(&m->asked_keys, key, 1);
    hk_intern_keep(&m->str, key); /* never dropped: constraints may use the key again */
    return true;
}

static bool ask_terms(struct model *m, const struct node_term *t, uint32_t n)
{
    bool news = false;

    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < t[i].nreq; k++) {
            news |= model_add_asked_key(m, t[i].req[k].key);
        }
        if (t[i].nfield > 0 && !m->asked_node_name) {
            m->asked_node_name = news = true;
        }
    }
    return news;
}

/* Only label keys that constraints use are part of a node's class; a new key splits classes. */
static void ask_for(struct model *m, const struct cons *c)
{
    bool news = ask_terms(m, c->term, c->nterm);

    news |= ask_terms(m, c->pref, c->npref);
    for (uint32_t k = 0; k < c->nsel; k++) {
        news |= model_add_asked_key(m, c->sel[k].key);
    }
    for (uint32_t i = 0; news && i < m->nodes.len; i++) {
        if (!id_none(m->nodes.class_[i])) {
            node_reclass(m, (node_id){i});
        }
    }
}

cons_id model_cons_intern(struct model *m, struct cons *c)
{
    uint32_t i;

    if (!c) {
        return NO_CONS;
    }
    c->hash = hk_hash(c->key, c->key_len, 3);
    i = model_probe_slot(m, &m->cons_by_hash, &c->hash, cons_same, c);
    if (i != HK_NONE) {
        cons_free(c);
        return (cons_id){i};
    }
    if (m->cons_free.len > 0) {
        i = hk_vec_pop(&m->cons_free);
        m->cons.at[i] = c;
    } else {
        i = m->cons.len;
        hk_vec_push(&m->cons, c);
    }
    hk_map_put(&m->cons_by_hash, c->hash, i);
    cons_strings(c, &m->str, hk_intern_keep);
    ask_for(m, c);
    topo_cons_known(m, (cons_id){i});
    return (cons_id){i};
}

static uint8_t evaluate(const struct model *m, const struct cons *c, const struct class_row *k)
{
    const struct taint cordon = {.key = m->key_unschedulable, .effect = EFFECT_NO_SCHEDULE};
    const unsigned hard = (1u << EFFECT_NO_SCHEDULE) | (1u << EFFECT_NO_EXECUTE);
    uint8_t v = STATIC_KNOWN;

    if (k->unschedulable && !cons_tolerates(c, &cordon, 1, hard)) {
        v |= STATIC_UNSCHEDULABLE;
    }
    if (c && !cons_affinity_match(c, k->labels, k->node_name, &m->str)) {
        v |= STATIC_AFFINITY;
    }
    if (!cons_tolerates(c, k->taints, k->ntaint, hard)) {
        v |= STATIC_TAINT;
    }
    return v;
}

uint8_t model_static_eval(struct model *m, cons_id id, class_id k)
{
    struct class_row *row = &m->classes.at[k.i];
    struct cons *c;

    if (id_none(id)) {
        if (!row->plain) {
            row->plain = evaluate(m, NULL, row);
        }
        return row->plain & (uint8_t)~STATIC_KNOWN;
    }
    c = m->cons.at[id.i];
    if (k.i >= c->nverdict) {
        const uint32_t want = m->classes.cap;
        c->verdict = hk_realloc_array(c->verdict, want, 1);
        memset(c->verdict + c->nverdict, 0, want - c->nverdict);
        c->nverdict = want;
    }
    if (!c->verdict[k.i]) {
        c->verdict[k.i] = evaluate(m, c, row);
    }
    return c->verdict[k.i] & (uint8_t)~STATIC_KNOWN;
}

/* ---- identities ---- */

struct ident_key {
    uint32_t ns, n;
    const struct label *labels;
};

static bool ident_same(const struct model *m, uint32_t i, const void *what)
{
    const struct ident *a = &m->idents.at[i];
    const struct ident_key *k = what;

    return a->labels.at && a->ns == k->ns && a->labels.n == k->n &&
           (k->n == 0 || memcmp(a->labels.at, k->labels, k->n * sizeof(struct label)) == 0);
}

ident_id model_ident_intern(struct model *m, uint32_t ns, const struct label *labels, uint32_t n)
{
    const struct ident_key key = {.ns = ns, .n = n, .labels = labels};
    uint64_t slot = hk_hash(labels, n * sizeof(*labels), ns);
    uint32_t i = model_probe_slot(m, &m->ident_by_hash, &slot, ident_same, &key);

    if (i == HK_NONE) {
        struct label *at = hk_zalloc_array(n + 1, sizeof(*at));
        for (uint32_t k = 0; k < n; k++) {
            at[k] = labels[k];
        }
        i = TABLE_ROW(&m->idents);
        m->idents.at[i] = (struct ident){.ns = ns, .labels = {.at = at, .n = n}, .slot = slot};
        hk_map_put(&m->ident_by_hash, slot, i);
        ident_strings(&m->idents.at[i], &m->str, hk_intern_keep);
    }
    return (ident_id){i};
}

void ident_ref(struct model *m, ident_id i)
{
    m->idents.at[i.i].refs++;
}

void ident_unref(struct model *m, ident_id id)
{
    struct ident *i = &m->idents.at[id.i];

    if (--i->refs > 0) {
        return;
    }
    topo_ident_forget(m, id);
    hk_map_del(&m->ident_by_hash, i->slot);
    ident_strings(i, &m->str, hk_intern_drop);
    hk_free((void *)i->labels.at);
    *i = (struct ident){0};
    hk_vec_push(&m->idents.free, id.i);
}
