// SPDX-License-Identifier: Apache-2.0
// Which counters match a pod's labels. Two indexes keep this fast when ten thousand jobs each bring
// their own selector: idents are listed under each of their label pairs, counters under one pair
// that their selector requires. A new counter is matched only with the idents of its pair, a new
// ident only with the counters of its pairs. After that, adding or removing a pod is a walk over
// its ident's list. Pair 0 means "any labels": it lists all idents, and counters whose selector
// requires no pair.
#include "scheduler/model/topo_priv.h"

/* ---- matching ---- */

static bool namespace_listed(const struct pod_term *t, uint32_t ns)
{
    for (uint32_t k = 0; k < t->nns; k++) {
        if (t->ns[k] == ns) {
            return true;
        }
    }
    return false;
}

static bool namespace_selected(const struct model *m, const struct pod_term *t, uint32_t ns)
{
    return t->has_ns_sel && label_sel_match(&t->ns_sel, model_namespace_labels(m, ns), &m->str);
}

/* Whether the term of a pod on a node matches an incoming pod. */
static bool carried_term_match(const struct model *m, const struct pod_term *t,
                               const struct ident *i)
{
    return (namespace_listed(t, i->ns) || namespace_selected(m, t, i->ns)) &&
           label_sel_match(&t->sel, i->labels, &m->str);
}

/* Whether the term of an incoming pod matches a pod on a node. Kubernetes also tries the namespace
 * selector on an empty label set: one with only NotIn and DoesNotExist matches every namespace. */
static bool incoming_term_match(const struct model *m, const struct pod_term *t,
                                const struct ident *i)
{
    const bool any_ns = t->has_ns_sel && label_sel_match(&t->ns_sel, (struct labels){0}, &m->str);

    return (any_ns || namespace_listed(t, i->ns) || namespace_selected(m, t, i->ns)) &&
           label_sel_match(&t->sel, i->labels, &m->str);
}

bool topo_terms_match(const struct model *m, const struct pod_term *term, uint32_t n, ident_id i)
{
    for (uint32_t k = 0; k < n; k++) {
        if (!incoming_term_match(m, &term[k], &m->idents.at[i.i])) {
            return false;
        }
    }
    return true;
}

bool topo_index_match(const struct model *m, const struct topo_counter *c, ident_id i)
{
    const struct ident *ident = &m->idents.at[i.i];

    switch ((enum counter_kind)c->kind) {
    case COUNT_TERMS:
        return topo_terms_match(m, c->term, c->nterm, i);
    case COUNT_SPREAD:
        /* As in Kubernetes, an empty selector counts no pod, though it matches the pod itself. */
        return c->ns == ident->ns && c->spread->sel.n > 0 &&
               label_sel_match(&c->spread->sel, ident->labels, &m->str);
    case OWNER_ANTI:
    case OWNER_PREF:
        return carried_term_match(m, c->term, ident);
    }
    return false;
}

/* ---- label pairs ---- */

static uint32_t pair_find(const struct topo *t, struct label l)
{
    return hk_map_get(&t->pair_by_key, PAIR_KEY(l.key, l.val));
}

static uint32_t pair_need(struct topo *t, struct label l)
{
    uint32_t p = pair_find(t, l);

    if (p != HK_NONE) {
        return p;
    }
    if (t->vacant_pairs.len > 0) {
        p = hk_vec_pop(&t->vacant_pairs);
    } else {
        hk_vec_push(&t->pairs, (struct topo_pair){0});
        p = t->pairs.len - 1;
    }
    t->pairs.at[p].key = PAIR_KEY(l.key, l.val);
    hk_map_put(&t->pair_by_key, t->pairs.at[p].key, p);
    return p;
}

static void pair_drop_if_empty(struct topo *t, uint32_t p)
{
    struct topo_pair *pair = &t->pairs.at[p];

    if (p == 0 || pair->idents.len > 0 || pair->counters.len > 0) {
        return;
    }
    hk_map_del(&t->pair_by_key, pair->key);
    hk_vec_fini(&pair->idents);
    hk_vec_fini(&pair->counters);
    hk_vec_push(&t->vacant_pairs, p);
}

/* ---- matching counters and idents ---- */

static struct topo_counters *ident_list(struct topo_ident *row, const struct topo_counter *c)
{
    return c->kind == OWNER_ANTI ? &row->anti : c->kind == OWNER_PREF ? &row->pref : &row->adds;
}

static void list_remove(struct topo_counters *list, const struct topo_counter *c)
{
    for (uint32_t k = 0; k < list->len; k++) {
        if (list->at[k] == c) {
            hk_vec_swap_remove(list, k);
            return;
        }
    }
}

/* A new counter counts the existing pods. */
static void counter_meet(const struct model *m, struct topo_counter *c, ident_id i)
{
    struct topo *t = m->topo;
    struct topo_ident *row = &t->idents.at[i.i];

    if (!topo_index_match(m, c, i)) {
        return;
    }
    hk_vec_push(ident_list(row, c), c);
    if (counter_is_owner(c)) {
        return;
    }
    for (task_id p = row->first; !id_none(p); p = t->pods.at[p.i].next) {
        const struct topo_pod *pod = &t->pods.at[p.i];
        if (c->kind != COUNT_SPREAD || !pod->terminating) {
            topo_node_count(c, pod->node, 1);
        }
    }
}

/* The pair with the fewest idents among those that the selector requires. */
static void anchor_try(const struct topo *t, const struct label_sel *sel, struct label *best,
                       uint32_t *ret_len)
{
    for (uint32_t k = 0; k < sel->n; k++) {
        const struct label_req *r = &sel->at[k];
        if (r->op != OP_IN || r->n != 1) {
            continue;
        }
        const struct label l = {r->key, r->vals[0]};
        const uint32_t p = pair_find(t, l);
        const uint32_t len = p == HK_NONE ? 0 : t->pairs.at[p].idents.len;
        if (len < *ret_len) {
            *best = l;
            *ret_len = len;
        }
    }
}

static uint32_t anchor_choose(struct topo *t, const struct topo_counter *c)
{
    struct label best = {0};
    uint32_t len = UINT32_MAX;

    for (uint32_t k = 0; k < c->nterm; k++) {
        anchor_try(t, &c->term[k].sel, &best, &len);
    }
    if (c->spread) {
        anchor_try(t, &c->spread->sel, &best, &len);
    }
    return len == UINT32_MAX ? 0 : pair_need(t, best);
}

void topo_index_add(const struct model *m, struct topo_counter *c)
{
    struct topo *t = m->topo;

    c->anchor = anchor_choose(t, c);
    c->in_anchor = t->pairs.at[c->anchor].counters.len;
    hk_vec_push(&t->pairs.at[c->anchor].counters, c);
    for (uint32_t k = 0; k < t->pairs.at[c->anchor].idents.len; k++) {
        counter_meet(m, c, t->pairs.at[c->anchor].idents.at[k]);
    }
}

void topo_index_remove(struct topo *t, struct topo_counter *c)
{
    struct topo_pair *pair = &t->pairs.at[c->anchor];

    for (uint32_t k = 0; k < pair->idents.len; k++) {
        list_remove(ident_list(&t->idents.at[pair->idents.at[k].i], c), c);
    }
    hk_vec_swap_remove(&pair->counters, c->in_anchor);
    if (c->in_anchor < pair->counters.len) {
        pair->counters.at[c->in_anchor]->in_anchor = c->in_anchor;
    }
    pair_drop_if_empty(t, c->anchor);
}

static void ident_post(const struct model *m, ident_id i, uint32_t nth, uint32_t p)
{
    struct topo *t = m->topo;

    t->idents.at[i.i].posted[nth] = t->pairs.at[p].idents.len;
    hk_vec_push(&t->pairs.at[p].idents, i);
    for (uint32_t k = 0; k < t->pairs.at[p].counters.len; k++) {
        struct topo_counter *c = t->pairs.at[p].counters.at[k];
        if (topo_index_match(m, c, i)) {
            hk_vec_push(ident_list(&t->idents.at[i.i], c), c);
        }
    }
}

struct topo_ident *topo_index_ident(const struct model *m, ident_id i)
{
    struct topo *t = m->topo;
    const struct labels l = ident_labels(m, i);

    while (t->idents.len <= i.i) {
        hk_vec_push(&t->idents, (struct topo_ident){.first = NO_TASK});
    }
    if (!t->idents.at[i.i].filed) {
        t->idents.at[i.i].filed = true;
        t->idents.at[i.i].posted = hk_zalloc_array(l.n + 1, sizeof(uint32_t));
        ident_post(m, i, 0, 0);
        for (uint32_t k = 0; k < l.n; k++) {
            ident_post(m, i, k + 1, pair_need(t, l.at[k]));
        }
    }
    return &t->idents.at[i.i];
}

/* Index into posted of the ident's entry in pair p: 0 for pair 0, else 1 + the label's index. */
static uint32_t nth_place(const struct model *m, ident_id i, uint32_t p)
{
    const struct labels l = ident_labels(m, i);
    uint32_t nth = 0;

    if (p != 0) {
        while (PAIR_KEY(l.at[nth].key, l.at[nth].val) != m->topo->pairs.at[p].key) {
            nth++;
        }
        nth++;
    }
    return nth;
}

static void ident_unpost(const struct model *m, ident_id i, uint32_t nth, uint32_t p)
{
    struct topo *t = m->topo;
    struct topo_pair *pair = &t->pairs.at[p];
    const uint32_t at = t->idents.at[i.i].posted[nth];

    hk_vec_swap_remove(&pair->idents, at);
    if (at < pair->idents.len) {
        const ident_id moved = pair->idents.at[at];
        t->idents.at[moved.i].posted[nth_place(m, moved, p)] = at;
    }
    pair_drop_if_empty(t, p);
}

void topo_index_ident_fini(struct topo_ident *row)
{
    hk_vec_fini(&row->adds);
    hk_vec_fini(&row->anti);
    hk_vec_fini(&row->pref);
    hk_free(row->posted);
    *row = (struct topo_ident){.first = NO_TASK};
}

void topo_ident_forget(struct model *m, ident_id i)
{
    struct topo *t = m->topo;
    const struct labels l = ident_labels(m, i);

    if (i.i >= t->idents.len || !t->idents.at[i.i].filed) {
        return;
    }
    hk_assert(id_none(t->idents.at[i.i].first));
    ident_unpost(m, i, 0, 0);
    for (uint32_t k = 0; k < l.n; k++) {
        ident_unpost(m, i, k + 1, pair_find(t, l.at[k]));
    }
    topo_index_ident_fini(&t->idents.at[i.i]);
}
