// SPDX-License-Identifier: Apache-2.0
// Namespaces and the objects that limit their pods: resource quotas and disruption budgets.
#include "scheduler/model/model_priv.h"
#include "scheduler/model/topo.h"

/* ---- quotas ---- */

static uint32_t quota_row(const struct model *m, struct hk_str ns, struct hk_str name)
{
    for (uint32_t i = 0; i < m->quotas.len; i++) {
        const struct quota *q = &m->quotas.at[i];
        if (q->used && hk_str_eq(model_str(m, q->ns), ns) &&
            hk_str_eq(model_str(m, q->name), name)) {
            return i;
        }
    }
    return HK_NONE;
}

void model_quota_put(struct model *m, const struct quota_desc *d)
{
    uint32_t i = quota_row(m, d->ns, d->name);
    struct quota *q;

    if (i == HK_NONE) {
        i = TABLE_ROW(&m->quotas);
    }
    q = &m->quotas.at[i];
    struct quota old = *q;
    *q = (struct quota){.used = true,
                        .ns = hk_intern_hold(&m->str, d->ns),
                        .name = hk_intern_hold(&m->str, d->name)};
    for (uint32_t k = 0; k < d->nitem; k++) {
        hk_vec_push(&q->items, d->items[k]);
        hk_intern_keep(&m->str, d->items[k].name);
    }
    quota_strings(&old, &m->str, hk_intern_drop);
    quota_fini(&old);
    m->wake.queue = ++m->version;
}

void quota_fini(struct quota *q)
{
    hk_vec_fini(&q->items);
    *q = (struct quota){0};
}

void model_quota_del(struct model *m, struct hk_str ns, struct hk_str name)
{
    const uint32_t i = quota_row(m, ns, name);

    if (i != HK_NONE) {
        quota_strings(&m->quotas.at[i], &m->str, hk_intern_drop);
        quota_fini(&m->quotas.at[i]);
        hk_vec_push(&m->quotas.free, i);
        m->wake.queue = ++m->version;
    }
}

/* ---- disruption budgets ---- */

static uint32_t pdb_row(const struct model *m, struct hk_str ns, struct hk_str name)
{
    for (uint32_t i = 0; i < m->pdbs.len; i++) {
        const struct pdb *p = &m->pdbs.at[i];
        if (p->used && hk_str_eq(model_str(m, p->ns), ns) &&
            hk_str_eq(model_str(m, p->name), name)) {
            return i;
        }
    }
    return HK_NONE;
}

static struct label_sel sel_in(struct hk_arena *a, const struct label_sel *s)
{
    struct label_req *at = hk_arena_array(a, s->n + 1, sizeof(*at));

    for (uint32_t k = 0; k < s->n; k++) {
        uint32_t *vals = hk_arena_array(a, s->at[k].n + 1, sizeof(*vals));
        for (uint32_t i = 0; i < s->at[k].n; i++) {
            vals[i] = s->at[k].vals[i];
        }
        at[k] = s->at[k];
        at[k].vals = vals;
    }
    return (struct label_sel){.nothing = s->nothing, .n = s->n, .at = at};
}

void model_pdb_put(struct model *m, const struct pdb_desc *d)
{
    uint32_t i = pdb_row(m, d->ns, d->name);
    struct pdb *p;

    if (i == HK_NONE) {
        i = TABLE_ROW(&m->pdbs);
    }
    p = &m->pdbs.at[i];
    struct pdb old = *p;
    *p = (struct pdb){.used = true,
                      .ns = hk_intern_hold(&m->str, d->ns),
                      .name = hk_intern_hold(&m->str, d->name),
                      .allowed = d->allowed};
    p->sel = sel_in(&p->mem, &d->sel);
    label_sel_strings(&p->sel, &m->str, hk_intern_keep);
    for (uint32_t k = 0; k < d->ndisrupted; k++) {
        hk_vec_push(&p->disrupted, d->disrupted[k]);
        hk_intern_keep(&m->str, d->disrupted[k]);
    }
    pdb_strings(&old, &m->str, hk_intern_drop);
    pdb_fini(&old);
    m->wake.victim = ++m->version;
}

void pdb_fini(struct pdb *p)
{
    hk_arena_fini(&p->mem);
    hk_vec_fini(&p->disrupted);
    *p = (struct pdb){0};
}

void model_pdb_del(struct model *m, struct hk_str ns, struct hk_str name)
{
    const uint32_t i = pdb_row(m, ns, name);

    if (i != HK_NONE) {
        pdb_strings(&m->pdbs.at[i], &m->str, hk_intern_drop);
        pdb_fini(&m->pdbs.at[i]);
        hk_vec_push(&m->pdbs.free, i);
        m->wake.victim = ++m->version;
    }
}

/* ---- namespaces ---- */

static void namespace_drop(struct model *m, uint32_t i)
{
    const struct ns_row row = m->namespaces.at[i];

    hk_map_del(&m->ns_by_name, row.name);
    hk_vec_swap_remove(&m->namespaces, i);
    if (i < m->namespaces.len) {
        hk_map_put(&m->ns_by_name, m->namespaces.at[i].name, i);
    }
    hk_intern_drop(&m->str, row.name);
    labels_strings(row.labels, &m->str, hk_intern_drop);
    hk_free((void *)row.labels.at);
}

static void namespace_add(struct model *m, uint32_t name, const struct label *labels, uint32_t n)
{
    struct label *at = hk_zalloc_array(n, sizeof(*at));
    const struct ns_row row = {.name = name, .labels = {.at = at, .n = n}};

    for (uint32_t k = 0; k < n; k++) {
        at[k] = labels[k];
    }
    hk_intern_keep(&m->str, name);
    labels_strings(row.labels, &m->str, hk_intern_keep);
    hk_map_put(&m->ns_by_name, name, m->namespaces.len);
    hk_vec_push(&m->namespaces, row);
}

void model_namespace_put(struct model *m, uint32_t name, const struct label *labels, uint32_t n)
{
    const uint32_t old = hk_map_get(&m->ns_by_name, name);

    if (old != HK_NONE) {
        namespace_drop(m, old);
    }
    if (n > 0) {
        namespace_add(m, name, labels, n);
    }
    m->wake.pods = ++m->version;
    topo_namespace_changed(m);
}

struct labels model_namespace_labels(const struct model *m, uint32_t name)
{
    const uint32_t i = hk_map_get(&m->ns_by_name, name);

    return i == HK_NONE ? (struct labels){0} : m->namespaces.at[i].labels;
}
