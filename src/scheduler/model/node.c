// SPDX-License-Identifier: Apache-2.0
// The node table: rows, amounts, classes, and the Kubernetes view of each node. While pods are
// bound to a node whose Node object is gone, its row stays as a placeholder with nothing
// allocatable, so no task fits.
#include "scheduler/model/model_priv.h"
#include "scheduler/model/topo.h"

#define MATRIX_COUNT(name) +1
enum { NMATRIX = 0 NODE_MATRICES(MATRIX_COUNT) };

static void matrices(struct node_table *t, struct matrix *ret[NMATRIX])
{
    struct matrix *const all[NMATRIX] = {
#define MATRIX_ADDRESS(name) &t->name,
        NODE_MATRICES(MATRIX_ADDRESS)};

    memcpy(ret, all, sizeof(all));
}

static void *column(void *p, uint32_t from, uint32_t to, size_t size)
{
    char *q = hk_realloc_array(p, to, size);
    memset(q + (size_t)from * size, 0, (size_t)(to - from) * size);
    return q;
}

void node_columns(struct model *m)
{
    struct matrix *all[NMATRIX];

    matrices(&m->nodes, all);
    for (uint32_t k = 0; k < NMATRIX; k++) {
        for (uint32_t d = 0; d < m->dims.n; d++) {
            if (!all[k]->col[d] && m->nodes.cap > 0) {
                all[k]->col[d] = hk_zalloc_array(m->nodes.cap, sizeof(int64_t));
            }
        }
    }
}

static void model_node_grow_table(struct model *m)
{
    struct node_table *t = &m->nodes;
    const uint32_t from = t->cap, to = from ? from * 2 : 64;
    struct matrix *all[NMATRIX];

    matrices(t, all);
    for (uint32_t k = 0; k < NMATRIX; k++) {
        for (uint32_t d = 0; d < m->dims.n; d++) {
            all[k]->col[d] = column(all[k]->col[d], all[k]->col[d] ? from : 0, to, sizeof(int64_t));
        }
    }
#define GROW_COLUMN(type, name) t->name = column(t->name, from, to, sizeof(*t->name));
    NODE_COLUMNS(GROW_COLUMN)
    t->cap = to;
}

static void free_labels(struct labels *l)
{
    hk_free((void *)l->at);
    *l = (struct labels){0};
}

void node_table_fini(struct node_table *t)
{
    struct matrix *all[NMATRIX];

    for (uint32_t i = 0; i < t->len; i++) {
        free_labels(&t->labels[i]);
        hk_free(t->taints[i]);
        hk_vec_fini(&t->ports[i]);
        hk_vec_fini(&t->images[i]);
    }
    matrices(t, all);
    for (uint32_t k = 0; k < NMATRIX; k++) {
        for (uint32_t d = 0; d < DIM_MAX; d++) {
            hk_free(all[k]->col[d]);
        }
    }
#define FREE_COLUMN(type, name) hk_free(t->name);
    NODE_COLUMNS(FREE_COLUMN)
    hk_vec_fini(&t->free);
    *t = (struct node_table){0};
}

/* ---- classes ---- */

static void class_labels(struct model *m, node_id n, struct hk_buf *key)
{
    const struct labels l = m->nodes.labels[n.i];

    for (uint32_t k = 0; k < l.n; k++) {
        if (hk_map_get(&m->asked_keys, l.at[k].key) != HK_NONE) {
            hk_buf_add(key, &l.at[k], sizeof(l.at[k]));
        }
    }
}

static class_id class_new(struct model *m, node_id n, struct hk_str labels, uint64_t slot)
{
    const class_id k = {TABLE_ROW(&m->classes)};
    struct class_row *c = &m->classes.at[k.i];
    const uint32_t ntaint = m->nodes.ntaint[n.i];

    c->labels.n = (uint32_t)(labels.n / sizeof(struct label));
    c->labels.at = memcpy(hk_alloc(labels.n + 1), labels.s, labels.n);
    c->ntaint = ntaint;
    c->taints = hk_zalloc_array(ntaint + 1, sizeof(struct taint));
    if (ntaint > 0) {
        memcpy((void *)c->taints, m->nodes.taints[n.i], ntaint * sizeof(struct taint));
    }
    c->unschedulable = m->nodes.flags[n.i] & NODE_UNSCHEDULABLE;
    c->node_name = m->asked_node_name ? m->nodes.name[n.i] : 0;
    c->slot = slot;
    class_strings(c, &m->str, hk_intern_keep);
    hk_map_put(&m->class_by_hash, slot, k.i);
    return k;
}

static bool class_same(const struct model *m, const struct class_row *c, node_id n,
                       struct hk_str labels)
{
    return c->ntaint == m->nodes.ntaint[n.i] &&
           c->unschedulable == !!(m->nodes.flags[n.i] & NODE_UNSCHEDULABLE) &&
           c->node_name == (m->asked_node_name ? m->nodes.name[n.i] : 0) &&
           c->labels.n * sizeof(struct label) == labels.n &&
           memcmp(c->labels.at, labels.s, labels.n) == 0 &&
           memcmp(c->taints, m->nodes.taints[n.i] ? (void *)m->nodes.taints[n.i] : (void *)"",
                  c->ntaint * sizeof(struct taint)) == 0;
}

static class_id class_intern(struct model *m, node_id n)
{
    HK_AUTO(hk_buf_fini) struct hk_buf labels = {0};
    uint64_t slot;

    class_labels(m, n, &labels);
    slot = hk_hash(labels.data, labels.len, 1);
    slot = hk_hash(m->nodes.taints[n.i], m->nodes.ntaint[n.i] * sizeof(struct taint), slot);
    slot = hk_mix(slot + (m->nodes.flags[n.i] & NODE_UNSCHEDULABLE));
    slot = hk_mix(slot + (m->asked_node_name ? m->nodes.name[n.i] : 0));
    for (;; slot++) {
        slot -= slot == UINT64_MAX;
        const uint32_t k = hk_map_get(&m->class_by_hash, slot);
        if (k == HK_NONE) {
            return class_new(m, n, hk_buf_str(&labels), slot);
        }
        if (class_same(m, &m->classes.at[k], n, hk_buf_str(&labels))) {
            return (class_id){k};
        }
    }
}

static void class_unref(struct model *m, class_id k)
{
    struct class_row *c = &m->classes.at[k.i];

    if (--c->refs > 0) {
        return;
    }
    hk_map_del(&m->class_by_hash, c->slot);
    class_strings(c, &m->str, hk_intern_drop);
    hk_free((void *)c->labels.at);
    hk_free((void *)c->taints);
    *c = (struct class_row){0};
    hk_vec_push(&m->classes.free, k.i);
    for (uint32_t i = 0; i < m->cons.len; i++) {
        if (m->cons.at[i] && k.i < m->cons.at[i]->nverdict) {
            m->cons.at[i]->verdict[k.i] = 0;
        }
    }
}

void node_reclass(struct model *m, node_id n)
{
    const class_id old = m->nodes.class_[n.i];
    const class_id k = class_intern(m, n);

    m->classes.at[k.i].refs++;
    m->nodes.class_[n.i] = k;
    if (!id_none(old)) {
        class_unref(m, old);
    }
}

/* ---- rows ---- */

node_id model_node_find(const struct model *m, struct hk_str name)
{
    const uint32_t id = hk_intern_find(&m->str, name);

    return id == HK_NONE ? NO_NODE : (node_id){hk_map_get(&m->node_by_name, id)};
}

node_id model_node_need(struct model *m, struct hk_str name)
{
    const node_id have = model_node_find(m, name);
    struct node_table *t = &m->nodes;
    node_id n;

    if (!id_none(have)) {
        return have;
    }
    if (t->free.len > 0) {
        n.i = hk_vec_pop(&t->free);
    } else {
        if (t->len == t->cap) {
            model_node_grow_table(m);
        }
        n.i = t->len++;
    }
    t->name[n.i] = hk_intern_hold(&m->str, name);
    t->gen[n.i] += t->gen[n.i] == 0;
    t->first[n.i] = NO_TASK;
    t->class_[n.i] = (class_id){ID_NONE};
    hk_map_put(&m->node_by_name, t->name[n.i], n.i);
    node_reclass(m, n);
    m->version++;
    return n;
}

void node_drop_if_idle(struct model *m, node_id n)
{
    struct node_table *t = &m->nodes;

    /* The row may be gone already: a finished task keeps its node's row number longer. */
    if (id_none(t->class_[n.i]) || (t->flags[n.i] & NODE_KNOWN) || !id_none(t->first[n.i])) {
        return;
    }
    hk_map_del(&m->node_by_name, t->name[n.i]);
    class_unref(m, t->class_[n.i]);
    t->class_[n.i] = (class_id){ID_NONE};
    hk_intern_drop(&m->str, t->name[n.i]);
    t->name[n.i] = 0;
    t->gen[n.i]++; /* invalidates references to the node */
    hk_vec_push(&t->free, n.i);
}

static void set_alloc(struct model *m, node_id n, const struct amount *a, uint32_t na)
{
    struct node_table *t = &m->nodes;
    int64_t want[DIM_MAX] = {0};

    for (uint32_t k = 0; k < na; k++) {
        want[a[k].dim] = a[k].v;
    }
    for (uint32_t d = 0; d < m->dims.n; d++) {
        const int64_t delta = want[d] - t->alloc.col[d][n.i];
        t->alloc.col[d][n.i] += delta;
        t->idle.col[d][n.i] += delta;
        t->future.col[d][n.i] += delta;
        m->total[d] += delta;
        if (delta > 0) {
            m->wake.gain[d] = m->version + 1;
        }
    }
    t->version[n.i] = ++m->version;
}

static void set_kalloc(struct model *m, node_id n, const struct amount *a, uint32_t na)
{
    for (uint32_t d = 0; d < m->dims.n; d++) {
        m->nodes.kalloc.col[d][n.i] = 0;
    }
    for (uint32_t k = 0; k < na; k++) {
        m->nodes.kalloc.col[a[k].dim][n.i] = a[k].v;
    }
}

static void count_image(struct model *m, uint32_t image, int sign)
{
    while (m->image_nodes.len <= image) {
        hk_vec_push(&m->image_nodes, 0);
    }
    m->image_nodes.at[image] += (uint32_t)sign;
    m->nimages += (uint32_t)sign;
}

static void set_images(struct model *m, node_id n, const struct image_have *at, uint32_t len)
{
    struct image_vec *v = &m->nodes.images[n.i];
    const struct image_vec want = {.at = (struct image_have *)at, .len = len};

    images_strings(&want, &m->str, hk_intern_keep);
    for (uint32_t k = 0; k < v->len; k++) {
        count_image(m, v->at[k].image, -1);
    }
    images_strings(v, &m->str, hk_intern_drop);
    hk_vec_clear(v);
    for (uint32_t k = 0; k < len; k++) {
        hk_vec_push(v, at[k]);
        count_image(m, at[k].image, 1);
    }
}

static bool prefers(const struct taint *t, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        if (t[k].effect == EFFECT_PREFER_NO_SCHEDULE) {
            return true;
        }
    }
    return false;
}

static void set_taints(struct model *m, node_id n, const struct taint *at, uint32_t len)
{
    struct node_table *t = &m->nodes;

    m->prefer_taints -= prefers(t->taints[n.i], t->ntaint[n.i]);
    m->prefer_taints += prefers(at, len);
    t->taints[n.i] = hk_zalloc_array(len + 1, sizeof(*at));
    for (uint32_t k = 0; k < len; k++) {
        t->taints[n.i][k].key = at[k].key;
        t->taints[n.i][k].val = at[k].val;
        t->taints[n.i][k].effect = at[k].effect;
    }
    t->ntaint[n.i] = len;
}

static void set_labels(struct model *m, node_id n, const struct label *at, uint32_t len)
{
    struct labels *l = &m->nodes.labels[n.i];

    l->at = memcpy(hk_alloc(len * sizeof(*at) + 1), len ? (const void *)at : "", len * sizeof(*at));
    l->n = len;
}

/* Updates classes and topology counters before the old labels are freed. */
static void set_face(struct model *m, node_id n, const struct node_desc *d)
{
    struct node_face old = node_face(m, n), face;

    set_taints(m, n, d->taints, d->ntaint);
    set_labels(m, n, d->labels, d->nlabel);
    face = node_face(m, n);
    face_strings(&face, &m->str, hk_intern_keep);
    node_reclass(m, n);
    topo_node_changed(m, n);
    face_strings(&old, &m->str, hk_intern_drop);
    free_labels(&old.labels);
    hk_free(old.taints);
    m->wake.node = ++m->version;
}

/* Sums the used amounts of known nodes, for overcommit. */
static void count_used(struct model *m, node_id n, int sign)
{
    for (uint32_t d = 0; d < m->dims.n; d++) {
        m->used_total[d] += sign * m->nodes.used.col[d][n.i];
    }
}

static int model_node_check_amounts(const struct model *m, const struct node_desc *d, node_id have,
                                    struct hk_err *err)
{
    for (uint32_t k = 0; k < d->nalloc; k++) {
        const uint32_t dim = d->alloc[k].dim;
        const int64_t old = id_none(have) ? 0 : m->nodes.alloc.col[dim][have.i];
        if (d->alloc[k].v < 0 || d->alloc[k].v > DIM_LIMIT) {
            return hk_fail(err, HK_EINVAL, "node '%.*s': allocatable %.*s is %lld, want 0 to 2^50",
                           HK_FMT(d->name), HK_FMT(m->dims.text[dim]), (long long)d->alloc[k].v);
        }
        if (m->total[dim] - old > DIM_TOTAL_LIMIT - d->alloc[k].v) {
            return hk_fail(err, HK_ELIMIT, "node '%.*s': total %.*s of the cluster is past 2^61",
                           HK_FMT(d->name), HK_FMT(m->dims.text[dim]));
        }
    }
    return 0;
}

static void node_set_facts(struct node_table *t, node_id n, const struct node_desc *d)
{
#define SET_FACT(type, name) t->name[n.i] = d->name;
    NODE_FACTS(SET_FACT)
}

static bool node_same_facts(const struct node_table *t, node_id n, const struct node_desc *d)
{
#define SAME_FACT(type, name) &&t->name[n.i] == d->name
    return true NODE_FACTS(SAME_FACT);
}

static bool same_face(const struct node_table *t, node_id n, const struct node_desc *d)
{
    const struct labels *l = &t->labels[n.i];
    const unsigned flags = t->flags[n.i] & ~(unsigned)NODE_IN_SHARD;

    if (flags != (d->flags | NODE_KNOWN) || l->n != d->nlabel || t->ntaint[n.i] != d->ntaint) {
        return false;
    }
    for (uint32_t k = 0; k < l->n; k++) {
        if (l->at[k].key != d->labels[k].key || l->at[k].val != d->labels[k].val) {
            return false;
        }
    }
    for (uint32_t k = 0; k < d->ntaint; k++) {
        const struct taint *a = &t->taints[n.i][k], *b = &d->taints[k];
        if (a->key != b->key || a->val != b->val || a->effect != b->effect) {
            return false;
        }
    }
    return true;
}

int model_node_put(struct model *m, const struct node_desc *d, node_id *ret, struct hk_err *err)
{
    struct node_table *t = &m->nodes;
    int rc = model_node_check_amounts(m, d, model_node_find(m, d->name), err);
    node_id n;

    if (rc < 0) {
        return rc;
    }
    n = model_node_need(m, d->name);
    const bool opens = !same_face(t, n, d);
    const bool changed = opens || !node_same_facts(t, n, d);
    if (!(t->flags[n.i] & NODE_KNOWN)) {
        t->live++;
        count_used(m, n, 1);
    }
    t->flags[n.i] = (uint8_t)(d->flags | NODE_KNOWN | (t->flags[n.i] & NODE_IN_SHARD));
    node_set_facts(t, n, d);
    set_alloc(m, n, d->alloc, d->nalloc);
    set_kalloc(m, n, d->kalloc, d->nkalloc);
    set_images(m, n, d->images, d->nimage);
    if (opens) {
        set_face(m, n, d);
    } else if (changed) {
        m->wake.node = ++m->version;
    }
    *ret = n;
    return 0;
}

void model_node_del(struct model *m, node_id n)
{
    struct node_table *t = &m->nodes;

    if (!(t->flags[n.i] & NODE_KNOWN)) {
        return;
    }
    count_used(m, n, -1);
    t->flags[n.i] = 0;
    t->live--;
    node_set_facts(t, n, &(struct node_desc){0});
    set_alloc(m, n, NULL, 0);
    set_kalloc(m, n, NULL, 0);
    set_images(m, n, NULL, 0);
    set_face(m, n, &(struct node_desc){0});
    node_drop_if_idle(m, n);
}

void model_node_shard(struct model *m, node_id n, bool in)
{
    uint8_t *flags = &m->nodes.flags[n.i];

    if (in && !(*flags & NODE_IN_SHARD)) {
        *flags |= NODE_IN_SHARD;
        m->wake.node = ++m->version;
    } else if (!in) {
        *flags &= (uint8_t)~NODE_IN_SHARD;
    }
}

/* ---- amounts ---- */

void node_books(struct model *m, const struct shape *s, enum task_status status, node_id n,
                int sign)
{
    struct node_table *t = &m->nodes;
    const bool known = t->flags[n.i] & NODE_KNOWN;

    if (status == TASK_PIPELINED || status == TASK_RELEASING) {
        m->unsettled += (uint32_t)sign;
    }
    for (uint32_t k = 0; k < s->nreq; k++) {
        const uint32_t d = s->req[k].dim;
        const int64_t v = sign * s->req[k].v;
        if (status == TASK_PIPELINED) {
            t->pipelined.col[d][n.i] += v;
            t->future.col[d][n.i] -= v;
            continue;
        }
        t->idle.col[d][n.i] -= v;
        t->used.col[d][n.i] += v;
        m->used_total[d] += known ? v : 0;
        if (status == TASK_RELEASING) {
            t->releasing.col[d][n.i] += v;
        } else {
            t->future.col[d][n.i] -= v;
        }
    }
    t->version[n.i] = ++m->version;
}

static bool port_same(const struct host_port *a, const struct host_port *b)
{
    return a->ip == b->ip && a->port == b->port && a->proto == b->proto;
}

static void port_count(struct port_vec *v, const struct host_port *p, int sign)
{
    for (uint32_t k = 0; k < v->len; k++) {
        if (port_same(&v->at[k].port, p)) {
            v->at[k].count += (uint32_t)sign;
            if (v->at[k].count == 0) {
                hk_vec_swap_remove(v, k);
            }
            return;
        }
    }
    hk_assert(sign > 0);
    hk_vec_push(v, ((struct port_use){.port = *p, .count = 1}));
}

void node_view(struct model *m, task_id t, node_id n, int sign)
{
    struct node_table *nt = &m->nodes;
    const struct shape *s = task_shape(m, t);
    const struct cons *c = task_cons(m, t);

    for (uint32_t k = 0; k < s->nreq; k++) {
        nt->kused.col[s->req[k].dim][n.i] += sign * s->req[k].v;
    }
    nt->nz_cpu[n.i] += sign * s->nz_cpu;
    nt->nz_mem[n.i] += sign * s->nz_mem;
    nt->npods[n.i] += (uint32_t)sign;
    for (uint32_t k = 0; c && k < c->nport; k++) {
        port_count(&nt->ports[n.i], &c->port[k], sign);
    }
    if (!m->in_session) {
        model_wake_up(m, WAKE_PODS | WAKE_VICTIM);
    }
    if (sign > 0) {
        topo_pod_add(m, t, n);
    } else {
        topo_pod_remove(m, t, n);
    }
}

bool model_fits_idle(const struct model *m, const struct shape *s, node_id n)
{
    for (uint32_t k = 0; k < s->nreq; k++) {
        if (s->req[k].v > m->nodes.idle.col[s->req[k].dim][n.i]) {
            return false;
        }
    }
    return true;
}

bool model_fits_future(const struct model *m, const struct shape *s, node_id n)
{
    for (uint32_t k = 0; k < s->nreq; k++) {
        if (s->req[k].v > m->nodes.future.col[s->req[k].dim][n.i]) {
            return false;
        }
    }
    return true;
}
