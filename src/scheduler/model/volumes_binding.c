// SPDX-License-Identifier: Apache-2.0
// VolumeBinding: which volume each claim of a pod has or would get on a node, and reservations
// (docs/reference/plugins.md sections 5.3 and 5.4). A reservation only records which volume a claim
// would get, so that no other task gets the same one; emit_volume.c writes it to the API.

#include "scheduler/model/volumes_priv.h"

#define BINDING_FAILED "plugin VolumeBinding pre-predicates failed "

enum claim_state { CLAIM_BOUND, CLAIM_WAITS, CLAIM_UNBOUND };

static enum claim_state claim_state(const struct volumes *v, const struct claim *c)
{
    const struct sclass *s = find_class(v, c->d.class_);

    if (c->d.volume != 0) {
        return c->d.bind_completed ? CLAIM_BOUND : CLAIM_UNBOUND;
    }
    return s && s->d.mode == BINDING_WAIT ? CLAIM_WAITS : CLAIM_UNBOUND;
}

/* Checks everything except binding that can make a claim unusable. */
static bool claim_usable(struct model *m, task_id t, uint32_t key, bool ephemeral,
                         struct reason *why)
{
    const struct claim *c = find_claim(m->volumes, key);
    const char *name = key_name(m, key);

    if (!c && ephemeral) {
        *why = volumes_reason(m,
                              BINDING_FAILED "waiting for ephemeral volume controller to create "
                                             "the persistentvolumeclaim \"%s\"",
                              name);
    } else if (!c) {
        *why = volumes_reason(m, BINDING_FAILED "persistentvolumeclaim \"%s\" not found", name);
    } else if (c->d.lost) {
        *why = volumes_reason(m,
                              BINDING_FAILED "persistentvolumeclaim \"%s\" bound to non-existent "
                                             "persistentvolume \"%s\"",
                              name, model_str(m, c->d.volume).s);
    } else if (c->d.deleting) {
        *why =
            volumes_reason(m, BINDING_FAILED "persistentvolumeclaim \"%s\" is being deleted", name);
    } else if (ephemeral && !owns(m, t, c)) {
        *why = volumes_not_owner(m, t, key, BINDING_FAILED);
    } else {
        return true;
    }
    return false;
}

bool volumes_pre_binding(struct model *m, task_id t, struct reason *why)
{
    const struct volumes *v = m->volumes;
    const struct cons *k = task_cons(m, t);

    for (uint32_t i = 0; k && i < k->nclaim; i++) {
        if (!claim_usable(m, t, k->claim[i], k->claim_ephemeral[i], why)) {
            return false;
        }
    }
    for (uint32_t i = 0; k && i < k->nclaim; i++) {
        const struct claim *c = find_claim(v, k->claim[i]);
        const struct sclass *s = find_class(v, c->d.class_);
        const enum claim_state state = claim_state(v, c);
        if (state != CLAIM_BOUND && s && s->d.mode == BINDING_UNSET) {
            *why = volumes_reason(
                m, BINDING_FAILED "VolumeBindingMode not set for StorageClass \"%s\"",
                model_str(m, c->d.class_).s);
            return false;
        }
        if (state == CLAIM_UNBOUND) {
            *why = volumes_reason(m, BINDING_FAILED
                                  "pod has unbound immediate PersistentVolumeClaims");
            return false;
        }
    }
    return true;
}

static bool pv_reaches(const struct model *m, const struct pv *p, node_id n)
{
    return !p->d.has_terms || terms_match(m, p->d.term, p->d.nterm, n);
}

static bool is_chosen(const struct volumes *v, uint32_t pv)
{
    for (uint32_t i = 0; i < v->plan.len; i++) {
        if (v->plan.at[i].pv == pv) {
            return true;
        }
    }
    return false;
}

/* What every volume must satisfy, bound to the claim already or free. */
static bool pv_suits(const struct volumes *v, uint32_t row, const struct claim *c)
{
    const struct pv *p = &v->pvs.at[row];

    return p->used && !p->d.deleting && p->d.class_ == c->d.class_ &&
           p->d.capacity >= c->d.request && p->d.block == c->d.block &&
           p->d.attributes_class == c->d.attributes_class && !is_chosen(v, row);
}

/* The volume promised to this claim by its claimRef or by a reservation. */
static uint32_t pv_promised(const struct volumes *v, const struct claim *c)
{
    if (c->assumed_pv != ID_NONE && v->pvs.at[c->assumed_pv].d.ref == 0 &&
        pv_suits(v, c->assumed_pv, c)) {
        return c->assumed_pv;
    }
    for (uint32_t p = hk_map_get(&v->pvs_by_ref, c->d.key); p != HK_NONE;
         p = v->pvs.at[p].ref_next) {
        const uint32_t uid = v->pvs.at[p].d.ref_uid;
        if ((uid == 0 || uid == c->d.uid) && pv_suits(v, p, c)) {
            return p;
        }
    }
    return ID_NONE;
}

static bool pv_is_free(const struct model *m, const struct pv *p, const struct claim *c)
{
    return p->d.ref == 0 && p->assumed == ID_NONE && p->d.available &&
           (c->d.access & ~p->d.access) == 0 && (!c->sel || selector_match(m, c->sel, p->d.labels));
}

/* The first volume of the class at least that large. */
static uint32_t first_of_size(const struct volumes *v, const struct sclass *s, int64_t size)
{
    uint32_t lo = 0, hi = s->pvs.len;

    while (lo < hi) {
        const uint32_t mid = (lo + hi) / 2;
        if (v->pvs.at[s->pvs.at[mid]].d.capacity < size) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* The volume for a claim on that node: the promised or the smallest free one; ID_NONE if none. */
static uint32_t pv_match(const struct model *m, const struct claim *c, node_id n)
{
    const struct volumes *v = m->volumes;
    const struct sclass *s = find_class(v, c->d.class_);
    const uint32_t promised = pv_promised(v, c);

    if (promised != ID_NONE) {
        return pv_reaches(m, &v->pvs.at[promised], n) ? promised : ID_NONE;
    }
    for (uint32_t i = first_of_size(v, s, c->d.request); i < s->pvs.len; i++) {
        const uint32_t row = s->pvs.at[i];
        const struct pv *p = &v->pvs.at[row];
        if (pv_is_free(m, p, c) && pv_suits(v, row, c) && pv_reaches(m, p, n)) {
            return row;
        }
    }
    return ID_NONE;
}

static bool has_capacity(const struct model *m, const struct sclass *s, int64_t size, node_id n)
{
    const struct volumes *v = m->volumes;
    const uint32_t tracked = hk_map_get(&v->tracks_capacity, s->d.provisioner);

    if (tracked == HK_NONE || tracked == 0 || size == 0) {
        return true;
    }
    for (uint32_t i = 0; i < s->capacities.len; i++) {
        const struct csi_capacity *c = &v->capacities.at[s->capacities.at[i]];
        if (c->limit >= size && c->topology &&
            selector_match(m, c->topology, m->nodes.labels[n.i])) {
            return true;
        }
    }
    return false;
}

/* REASON_NONE when a volume can be provisioned for the claim on that node. */
static enum reason_code volumes_binding_check_provision(const struct model *m,
                                                        const struct claim *c, node_id n)
{
    const struct sclass *s = find_class(m->volumes, c->d.class_);

    if (!s->provisions ||
        (s->d.ntopology > 0 && !terms_match(m, s->d.topology, s->d.ntopology, n))) {
        return REASON_VOLUME_BIND;
    }
    return has_capacity(m, s, c->d.request, n) ? REASON_NONE : REASON_VOLUME_CAPACITY;
}

/* Checks bound claims: the first that excludes the node decides. */
static enum reason_code volumes_binding_check_bound(const struct model *m, const struct cons *k,
                                                    node_id n)
{
    const struct volumes *v = m->volumes;

    for (uint32_t i = 0; i < k->nclaim; i++) {
        const struct claim *c = find_claim(v, k->claim[i]);
        if (!c || claim_state(v, c) != CLAIM_BOUND) {
            continue;
        }
        const struct pv *p = find_pv(v, c->d.volume);
        if (!p) {
            return REASON_VOLUME_GONE;
        }
        if (!pv_reaches(m, p, n)) {
            return REASON_VOLUME_AFFINITY;
        }
    }
    return REASON_NONE;
}

/* Puts waiting claims into v->plan: those already to be provisioned here first, then by size. False
 * when one is assigned to another node. */
static bool plan_begin(struct model *m, const struct cons *k, node_id n)
{
    struct volumes *v = m->volumes;

    hk_vec_clear(&v->plan);
    for (uint32_t i = 0; i < k->nclaim; i++) {
        const uint32_t row = hk_map_get(&v->claim_by_key, k->claim[i]);
        const struct claim *c = row == HK_NONE ? NULL : &v->claims.at[row];
        const enum claim_state state = c ? claim_state(v, c) : CLAIM_UNBOUND;
        if (state == CLAIM_BOUND) {
            continue;
        }
        if (state == CLAIM_UNBOUND) {
            return false; /* changed since volumes_pre_binding */
        }
        const uint32_t node = c->d.selected_node ? c->d.selected_node : c->assumed_node;
        if (node != 0 && node != m->nodes.name[n.i]) {
            return false;
        }
        hk_vec_push(&v->plan, (struct plan_item){row, ID_NONE, node == 0});
    }
    return true;
}

static bool plan_before(const struct volumes *v, struct plan_item a, struct plan_item b)
{
    if (a.match != b.match) {
        return b.match;
    }
    return a.match && v->claims.at[a.claim].d.request < v->claims.at[b.claim].d.request;
}

static void plan_sort(struct volumes *v)
{
    for (uint32_t i = 1; i < v->plan.len; i++) {
        const struct plan_item x = v->plan.at[i];
        uint32_t k = i;
        for (; k > 0 && plan_before(v, x, v->plan.at[k - 1]); k--) {
            v->plan.at[k] = v->plan.at[k - 1];
        }
        v->plan.at[k] = x;
    }
}

/* Finds a source for every waiting claim: existing volumes first, then provisioning. */
static enum reason_code plan_node(struct model *m, const struct cons *k, node_id n)
{
    struct volumes *v = m->volumes;
    enum reason_code why = REASON_NONE;

    if (!plan_begin(m, k, n)) {
        return REASON_VOLUME_BIND;
    }
    plan_sort(v);
    for (uint32_t i = 0; i < v->plan.len; i++) {
        const struct claim *c = &v->claims.at[v->plan.at[i].claim];
        if (!v->plan.at[i].match) {
            continue;
        }
        v->plan.at[i].pv = pv_match(m, c, n);
        if (v->plan.at[i].pv == ID_NONE && c->assumed_pv != ID_NONE) {
            /* Upstream would provision a second volume for a claim that two pods share. */
            return REASON_VOLUME_BIND;
        }
    }
    for (uint32_t i = 0; i < v->plan.len && why == REASON_NONE; i++) {
        if (v->plan.at[i].pv == ID_NONE) {
            why = volumes_binding_check_provision(m, &v->claims.at[v->plan.at[i].claim], n);
        }
    }
    return why;
}

uint32_t volumes_filter_binding(struct model *m, task_id t, node_id n, struct reason why[4])
{
    const struct cons *k = task_cons(m, t);
    uint32_t nwhy = 0;

    if (!k || k->nclaim == 0) {
        return 0;
    }
    const enum reason_code bound = volumes_binding_check_bound(m, k, n),
                           waiting = plan_node(m, k, n);
    if (bound == REASON_VOLUME_AFFINITY) {
        why[nwhy++] = (struct reason){.code = bound};
    }
    if (waiting != REASON_NONE) {
        why[nwhy++] = (struct reason){.code = waiting};
    }
    if (bound == REASON_VOLUME_GONE) {
        why[nwhy++] = (struct reason){.code = bound};
    }
    return nwhy;
}

/* ---- reservations ---- */

static void hold_take(struct model *m, task_id t, const struct plan_item *item, node_id n)
{
    struct volumes *v = m->volumes;
    struct claim *c = &v->claims.at[item->claim];
    const uint32_t row = TABLE_ROW(&v->holds);

    v->holds.at[row] = (struct hold){
        .claim = item->claim,
        .pv = item->pv,
        .node = n,
        .next = hk_map_get(&v->hold_by_task, t.i),
    };
    hk_map_put(&v->hold_by_task, t.i, row);
    c->nhold++;
    if (item->pv == ID_NONE) {
        hk_intern_keep(&m->str, m->nodes.name[n.i]);
        hk_intern_drop(&m->str, c->assumed_node);
        c->assumed_node = m->nodes.name[n.i];
    } else {
        c->assumed_pv = item->pv;
        v->pvs.at[item->pv].assumed = item->claim;
        v->pvs.at[item->pv].nhold++;
    }
}

static void hold_give_back(struct model *m, const struct hold *h)
{
    struct volumes *v = m->volumes;
    struct claim *c = &v->claims.at[h->claim];

    if (h->pv != ID_NONE && --v->pvs.at[h->pv].nhold == 0) {
        v->pvs.at[h->pv].assumed = ID_NONE;
        volumes_pv_drop(m, h->pv);
    }
    if (--c->nhold == 0) {
        c->assumed_pv = ID_NONE;
        hk_intern_drop(&m->str, c->assumed_node);
        c->assumed_node = 0;
        volumes_claim_drop(m, h->claim);
    }
}

void volumes_unreserve(struct model *m, task_id t)
{
    struct volumes *v = m->volumes;
    uint32_t next;

    for (uint32_t row = hk_map_get(&v->hold_by_task, t.i); row != HK_NONE; row = next) {
        next = v->holds.at[row].next;
        hold_give_back(m, &v->holds.at[row]);
        hk_vec_push(&v->holds.free, row);
    }
    hk_map_del(&v->hold_by_task, t.i);
}

bool volumes_reserve(struct model *m, task_id t, node_id n)
{
    struct volumes *v = m->volumes;
    const struct cons *k = task_cons(m, t);

    volumes_unreserve(m, t);
    if (!k || k->nclaim == 0) {
        return true;
    }
    if (volumes_binding_check_bound(m, k, n) != REASON_NONE || plan_node(m, k, n) != REASON_NONE) {
        return false;
    }
    for (uint32_t i = 0; i < v->plan.len; i++) {
        hold_take(m, t, &v->plan.at[i], n);
    }
    return true;
}

static void look_at_volume(const struct pv *p, struct volume_bind *b)
{
    const bool ours = p->d.ref == b->claim && (p->d.ref_uid == 0 || p->d.ref_uid == b->claim_uid);

    b->rv = p->d.rv;
    b->prebound = ours;
    b->written = ours && p->d.ref_uid != 0;
    b->taken = p->d.ref != 0 && !ours;
}

static void look_at_claim(const struct claim *c, uint32_t node, struct volume_bind *b)
{
    b->rv = c->d.rv;
    b->written = c->d.selected_node == node;
    b->taken = c->d.selected_node != 0 && !b->written;
}

/* A claim deleted and created again since its reservation is a different claim. */
static struct volume_bind volumes_binding_state(const struct model *m, const struct hold *h)
{
    const struct volumes *v = m->volumes;
    const struct claim *held = &v->claims.at[h->claim];
    struct volume_bind b = {.claim = held->d.key, .claim_uid = held->d.uid};

    if (h->pv == ID_NONE) {
        look_at_claim(held, m->nodes.name[h->node.i], &b);
    } else {
        b.pv = v->pvs.at[h->pv].d.name;
        b.pv_gone = !v->pvs.at[h->pv].used;
        look_at_volume(&v->pvs.at[h->pv], &b);
    }
    b.volume = held->d.volume ? held->d.volume : b.pv;
    const struct pv *p = find_pv(v, b.volume);
    b.claim_gone = !held->used;
    b.unreachable = p && !pv_reaches(m, p, h->node);
    b.bound = held->used && p && claim_state(v, held) == CLAIM_BOUND;
    return b;
}

uint32_t volumes_reserved(const struct model *m, task_id t, struct volume_bind *ret, uint32_t room)
{
    const struct volumes *v = m->volumes;
    uint32_t n = 0;

    for (uint32_t row = hk_map_get(&v->hold_by_task, t.i); row != HK_NONE;
         row = v->holds.at[row].next, n++) {
        if (n < room) {
            ret[n] = volumes_binding_state(m, &v->holds.at[row]);
        }
    }
    return n;
}

bool volumes_bound(const struct model *m, task_id t)
{
    const struct volumes *v = m->volumes;
    const struct cons *k = task_cons(m, t);

    for (uint32_t i = 0; k && i < k->nclaim; i++) {
        const struct claim *c = find_claim(v, k->claim[i]);
        if (!c || claim_state(v, c) != CLAIM_BOUND) {
            return false;
        }
    }
    return true;
}
