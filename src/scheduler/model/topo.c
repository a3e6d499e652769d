// SPDX-License-Identifier: Apache-2.0
// Topology counters: adding and removing pods, and the counters of constraints. Domains and counts
// are in topo_node.c, matching is in topo_index.c.
#include "scheduler/model/topo_priv.h"

/* ---- counters ---- */

static struct topo_counter *counter_new(struct model *m, struct topo_counter want, uint32_t label)
{
    struct topo *t = m->topo;
    struct topo_counter *c = hk_alloc(sizeof(*c));

    *c = want;
    c->key = topo_node_key(m, label);
    c->slot = t->all.len;
    hk_vec_push(&t->all, c);
    return c;
}

static void counter_free(struct topo_counter *c)
{
    topo_node_fini(c);
    hk_free(c);
}

static void counter_drop(struct topo *t, struct topo_counter *c)
{
    topo_index_remove(t, c);
    hk_vec_swap_remove(&t->all, c->slot);
    if (c->slot < t->all.len) {
        t->all.at[c->slot]->slot = c->slot;
    }
    counter_free(c);
}

static struct topo_counter *terms_counter(struct model *m, const struct pod_term *term, uint32_t n,
                                          uint32_t label, int32_t weight)
{
    struct topo_counter *c = counter_new(
        m, (struct topo_counter){.kind = COUNT_TERMS, .term = term, .nterm = n, .weight = weight},
        label);

    topo_index_add(m, c);
    return c;
}

/* Soft spreading by host name counts on the node itself and includes every node. */
static bool spread_by_node(const struct model *m, const struct spread *s)
{
    return !s->hard && hk_str_is(model_str(m, s->topo_key), "kubernetes.io/hostname");
}

static struct topo_counter *spread_counter(struct model *m, cons_id id, uint32_t ns,
                                           const struct spread *s)
{
    const bool by_node = spread_by_node(m, s);
    struct topo_counter *c = counter_new(
        m, (struct topo_counter){.kind = COUNT_SPREAD, .spread = s, .cons = id, .ns = ns},
        by_node ? ID_NONE : s->topo_key);

    if (!by_node) {
        topo_node_include(m, c);
    }
    topo_index_add(m, c);
    return c;
}

static void owner_counter(struct model *m, cons_id id, enum counter_kind kind,
                          const struct pod_term *term, int32_t weight)
{
    struct topo_counter *c = counter_new(
        m,
        (struct topo_counter){
            .kind = (uint8_t)kind, .term = term, .nterm = 1, .cons = id, .weight = weight},
        term->topo_key);

    hk_vec_push(&m->topo->cons.at[id.i].owners, c);
    topo_index_add(m, c);
}

/* ---- pods ---- */

void topo_pod_count(struct topo *t, const struct topo_pod *p, int sign)
{
    const struct topo_counters *adds = &t->idents.at[p->ident.i].adds;

    for (uint32_t k = 0; k < adds->len; k++) {
        if (adds->at[k]->kind != COUNT_SPREAD || !p->terminating) {
            topo_node_count(adds->at[k], p->node, sign);
        }
    }
    if (id_none(p->cons)) {
        return;
    }
    const struct topo_counters *owners = &t->cons.at[p->cons.i].owners;
    for (uint32_t k = 0; k < owners->len; k++) {
        topo_node_count(owners->at[k], p->node, sign);
    }
}

static void pod_link(const struct model *m, task_id t, node_id n)
{
    struct topo *tp = m->topo;
    const struct task *task = model_task(m, t);

    while (tp->pods.len <= t.i) {
        hk_vec_push(&tp->pods, (struct topo_pod){0});
    }
    hk_assert(!tp->pods.at[t.i].counted);
    topo_node_rows(m);

    struct topo_ident *row = topo_index_ident(m, task->ident);
    struct topo_pod *p = &tp->pods.at[t.i];
    const cons_id c = task_shape(m, t)->cons;
    *p = (struct topo_pod){
        .next = row->first,
        .prev = NO_TASK,
        .node = n,
        .ident = task->ident,
        .cons = !id_none(c) && c.i < tp->cons.len ? c : NO_CONS,
        .counted = true,
        .terminating = task->flags & TASK_TERMINATING,
    };
    if (!id_none(p->next)) {
        tp->pods.at[p->next.i].prev = t;
    }
    row->first = t;
    topo_pod_count(tp, p, 1);
}

void topo_pod_add(struct model *m, task_id t, node_id n)
{
    if (m->topo->awake) {
        pod_link(m, t, n);
    }
}

void topo_pod_remove(struct model *m, task_id t, node_id n)
{
    struct topo *tp = m->topo;

    if (!tp->awake) {
        return;
    }
    struct topo_pod *p = &tp->pods.at[t.i];
    hk_assert(p->counted && id_eq(p->node, n));
    topo_pod_count(tp, p, -1);
    if (id_none(p->prev)) {
        tp->idents.at[p->ident.i].first = p->next;
    } else {
        tp->pods.at[p->prev.i].next = p->next;
    }
    if (!id_none(p->next)) {
        tp->pods.at[p->next.i].prev = p->prev;
    }
    *p = (struct topo_pod){0};
}

/* Starts to follow pods in view, when the first counter is needed. */
static void topo_start_tracking(const struct model *m)
{
    struct topo *t = m->topo;

    if (t->awake) {
        return;
    }
    t->awake = true;
    hk_vec_push(&t->pairs, (struct topo_pair){0});
    topo_node_rows(m);
    for (uint32_t k = 0; k < m->tasks.len; k++) {
        const struct task *task = &m->tasks.at[k];
        if (task->used && (task->flags & TASK_IN_VIEW)) {
            pod_link(m, (task_id){k}, task->node);
        }
    }
}

/* ---- changed namespace labels ---- */

static bool counter_has_namespace_selector(const struct topo_counter *c)
{
    for (uint32_t k = 0; k < c->nterm; k++) {
        if (c->term[k].has_ns_sel) {
            return true;
        }
    }
    return false;
}

void topo_namespace_changed(struct model *m)
{
    struct topo *t = m->topo;

    for (uint32_t k = 0; k < t->all.len; k++) {
        struct topo_counter *c = t->all.at[k];
        if (!counter_has_namespace_selector(c)) {
            continue;
        }
        topo_index_remove(t, c);
        if (!counter_is_owner(c)) {
            topo_node_zero(c);
        }
        topo_index_add(m, c);
    }
}

/* ---- counters of constraints ---- */

static struct topo_cons *cons_need(struct topo *t, cons_id c)
{
    while (t->cons.len <= c.i) {
        hk_vec_push(&t->cons, (struct topo_cons){0});
    }
    return &t->cons.at[c.i];
}

void topo_cons_known(struct model *m, cons_id c)
{
    const struct cons *cons = m->cons.at[c.i];

    if (cons->nanti + cons->npref_aff + cons->npref_anti == 0) {
        return;
    }
    topo_start_tracking(m);
    if (cons_need(m->topo, c)->known) {
        return;
    }
    m->topo->cons.at[c.i].known = true;
    for (uint32_t k = 0; k < cons->nanti; k++) {
        owner_counter(m, c, OWNER_ANTI, &cons->anti[k], 0);
    }
    for (uint32_t k = 0; k < cons->npref_aff; k++) {
        owner_counter(m, c, OWNER_PREF, &cons->pref_aff[k], cons->pref_aff[k].weight);
    }
    for (uint32_t k = 0; k < cons->npref_anti; k++) {
        owner_counter(m, c, OWNER_PREF, &cons->pref_anti[k], -cons->pref_anti[k].weight);
    }
}

static struct topo_plan *plan_alloc(const struct cons *c, uint32_t ns)
{
    const size_t n = c->naff + c->nanti + c->npref_aff + c->npref_anti + c->nspread;
    struct topo_plan *p = hk_zalloc(sizeof(*p) + n * sizeof(struct topo_counter *));

    p->ns = ns;
    p->aff = (struct topo_counter **)(p + 1);
    p->anti = p->aff + c->naff;
    p->pref = p->anti + c->nanti;
    p->spread = p->pref + c->npref_aff + c->npref_anti;
    return p;
}

static bool key_seen(const struct pod_term *term, uint32_t k)
{
    for (uint32_t j = 0; j < k; j++) {
        if (term[j].topo_key == term[k].topo_key) {
            return true;
        }
    }
    return false;
}

static struct topo_plan *plan_new(struct model *m, cons_id id, uint32_t ns)
{
    const struct cons *c = m->cons.at[id.i];
    struct topo_plan *p = plan_alloc(c, ns);

    hk_intern_keep(&m->str, ns);
    for (uint32_t k = 0; k < c->naff; k++) {
        if (!key_seen(c->aff, k)) {
            p->aff[p->naff++] = terms_counter(m, c->aff, c->naff, c->aff[k].topo_key, 0);
        }
    }
    for (uint32_t k = 0; k < c->nanti; k++) {
        p->anti[p->nanti++] = terms_counter(m, &c->anti[k], 1, c->anti[k].topo_key, 0);
    }
    for (uint32_t k = 0; k < c->npref_aff; k++) {
        const struct pod_term *t = &c->pref_aff[k];
        p->pref[p->npref++] = terms_counter(m, t, 1, t->topo_key, t->weight);
    }
    for (uint32_t k = 0; k < c->npref_anti; k++) {
        const struct pod_term *t = &c->pref_anti[k];
        p->pref[p->npref++] = terms_counter(m, t, 1, t->topo_key, -t->weight);
    }
    for (uint32_t k = 0; k < c->nspread; k++) {
        p->spread[p->nspread++] = spread_counter(m, id, ns, &c->spread[k]);
    }
    return p;
}

const struct topo_plan *topo_plan(struct model *m, task_id task)
{
    struct topo *t = m->topo;
    const cons_id id = task_shape(m, task)->cons;
    const uint32_t ns = m->idents.at[model_task(m, task)->ident.i].ns;
    const struct cons *c = task_cons(m, task);
    struct topo_plan *p;

    if (!c || c->naff + c->nanti + c->npref_aff + c->npref_anti + c->nspread == 0) {
        return NULL;
    }
    topo_start_tracking(m);
    topo_node_rows(m);
    for (p = cons_need(t, id)->plans; p && p->ns != ns; p = p->next) {
    }
    if (!p) {
        p = plan_new(m, id, ns);
        p->next = t->cons.at[id.i].plans;
        t->cons.at[id.i].plans = p;
    }
    return p;
}

static void plan_drop(struct model *m, struct topo_plan *p)
{
    struct topo_counter **const lists[] = {p->aff, p->anti, p->pref, p->spread};
    const uint32_t n[] = {p->naff, p->nanti, p->npref, p->nspread};

    for (uint32_t k = 0; k < HK_LEN(lists); k++) {
        for (uint32_t j = 0; j < n[k]; j++) {
            counter_drop(m->topo, lists[k][j]);
        }
    }
    hk_intern_drop(&m->str, p->ns);
    hk_free(p);
}

void topo_cons_forget(struct model *m, cons_id c)
{
    struct topo *t = m->topo;

    if (c.i >= t->cons.len) {
        return;
    }
    struct topo_cons *row = &t->cons.at[c.i];
    for (struct topo_plan *p = row->plans, *next; p; p = next) {
        next = p->next;
        plan_drop(m, p);
    }
    for (uint32_t k = 0; k < row->owners.len; k++) {
        counter_drop(t, row->owners.at[k]);
    }
    hk_vec_fini(&row->owners);
    *row = (struct topo_cons){0};
}

const struct topo_ident *topo_ident(struct model *m, ident_id i)
{
    return m->topo->awake ? topo_index_ident(m, i) : NULL;
}

/* ---- life cycle ---- */

struct topo *topo_new(void)
{
    return hk_zalloc(sizeof(struct topo));
}

static void cons_fini(struct topo_cons *row)
{
    for (struct topo_plan *p = row->plans, *next; p; p = next) {
        next = p->next;
        hk_free(p);
    }
    hk_vec_fini(&row->owners);
}

void topo_free(struct topo *t)
{
    if (!t) {
        return;
    }
    for (uint32_t k = 0; k < t->all.len; k++) {
        counter_free(t->all.at[k]);
    }
    for (uint32_t k = 0; k < t->keys.len; k++) {
        topo_node_key_free(t->keys.at[k]);
    }
    for (uint32_t k = 0; k < t->idents.len; k++) {
        topo_index_ident_fini(&t->idents.at[k]);
    }
    for (uint32_t k = 0; k < t->cons.len; k++) {
        cons_fini(&t->cons.at[k]);
    }
    for (uint32_t k = 0; k < t->pairs.len; k++) {
        hk_vec_fini(&t->pairs.at[k].idents);
        hk_vec_fini(&t->pairs.at[k].counters);
    }
    hk_vec_fini(&t->all);
    hk_vec_fini(&t->keys);
    hk_vec_fini(&t->idents);
    hk_vec_fini(&t->pods);
    hk_vec_fini(&t->cons);
    hk_vec_fini(&t->pairs);
    hk_vec_fini(&t->vacant_pairs);
    hk_map_fini(&t->pair_by_key);
    hk_free(t);
}

void topo_strings(const struct topo *t, struct hk_intern *strings, string_fn *f)
{
    for (uint32_t k = 0; k < t->keys.len; k++) {
        f(strings, t->keys.at[k]->label == ID_NONE ? 0 : t->keys.at[k]->label);
    }
    for (uint32_t k = 0; k < t->cons.len; k++) {
        for (const struct topo_plan *p = t->cons.at[k].plans; p; p = p->next) {
            f(strings, p->ns);
        }
    }
}

/* ---- checks ---- */

static bool counts_task(const struct model *m, const struct topo_counter *c,
                        const struct task *task)
{
    if (!task->used || !(task->flags & TASK_IN_VIEW)) {
        return false;
    }
    if (counter_is_owner(c)) {
        return id_eq(model_shape(m, task->shape)->cons, c->cons);
    }
    return topo_index_match(m, c, task->ident) &&
           (c->kind != COUNT_SPREAD || !(task->flags & TASK_TERMINATING));
}

static int check_counts(const struct model *m, const struct topo_counter *c, struct hk_err *err)
{
    HK_AUTO(hk_freep) int32_t *want = hk_zalloc_array(c->key->cap, sizeof(*want));

    for (uint32_t k = 0; k < m->tasks.len; k++) {
        const struct task *task = &m->tasks.at[k];
        if (counts_task(m, c, task) && topo_domain(c, task->node) != ID_NONE &&
            topo_node_takes_part(m, c, task->node)) {
            want[topo_domain(c, task->node)]++;
        }
    }
    for (uint32_t d = 0; d < c->key->len; d++) {
        const int32_t have = topo_at(c, d);
        if (have != want[d]) {
            return hk_fail(err, HK_EINVAL, "topology counter %u, domain %u: %d pods, want %d",
                           c->slot, d, have, want[d]);
        }
    }
    return 0;
}

static int check_domains(const struct model *m, const struct topo_counter *c, struct hk_err *err)
{
    HK_AUTO(hk_freep) uint32_t *want = hk_zalloc_array(c->key->cap, sizeof(*want));

    for (uint32_t n = 0; c->included && n < m->topo->nrow; n++) {
        const uint32_t d = c->key->domain[n];
        want[d == ID_NONE ? 0 : d] += d != ID_NONE && topo_node_takes_part(m, c, (node_id){n});
    }
    for (uint32_t d = 0; c->included && d < c->key->len; d++) {
        if (c->in_domain[d] != want[d]) {
            return hk_fail(err, HK_EINVAL, "topology counter %u, domain %u: %u nodes, want %u",
                           c->slot, d, c->in_domain[d], want[d]);
        }
    }
    return 0;
}

int topo_check(const struct model *m, struct hk_err *err)
{
    int rc = 0;

    for (uint32_t k = 0; rc == 0 && k < m->topo->all.len; k++) {
        rc = check_counts(m, m->topo->all.at[k], err);
        if (rc == 0) {
            rc = check_domains(m, m->topo->all.at[k], err);
        }
    }
    return rc;
}
