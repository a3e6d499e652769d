// SPDX-License-Identifier: Apache-2.0
// Inter-pod affinity: filter and score (docs/reference/plugins.md section 4.5). Upstream collects
// the counts by walking over every pod for every task; here the model maintains them. So there is
// no per-session list of nodes with anti-affinity pods, which upstream has and which lets two pods
// placed in one session violate an anti-affinity rule.
#include "scheduler/plugins/interpod.h"

static bool counts_nobody(const struct topo_plan *p)
{
    for (uint32_t k = 0; k < p->naff; k++) {
        if (p->aff[k]->total > 0) {
            return false;
        }
    }
    return true;
}

bool interpod_begin(struct interpod *ip, struct model *m, task_id t)
{
    const struct cons *c = task_cons(m, t);
    const ident_id ident = model_task(m, t)->ident;
    const struct topo_ident *meets;

    *ip = (struct interpod){0};
    if (c && c->naff + c->nanti > 0) {
        ip->plan = topo_plan(m, t);
        ip->first =
            c->naff > 0 && counts_nobody(ip->plan) && topo_terms_match(m, c->aff, c->naff, ident);
    }
    meets = topo_ident(m, ident);
    if (meets) {
        ip->existing = meets->anti;
    }
    return ip->plan || ip->existing.len > 0;
}

static bool affinity_holds(const struct interpod *ip, node_id n)
{
    const struct topo_plan *p = ip->plan;
    bool all = true;

    for (uint32_t k = 0; k < p->naff; k++) {
        if (topo_domain(p->aff[k], n) == ID_NONE) {
            return false;
        }
        all = all && topo_count(p->aff[k], n) > 0;
    }
    return all || ip->first;
}

static bool counts_any(struct topo_counter *const *c, uint32_t len, node_id n)
{
    for (uint32_t k = 0; k < len; k++) {
        if (topo_count(c[k], n) > 0) {
            return true;
        }
    }
    return false;
}

enum reason_code interpod_check(const struct interpod *ip, node_id n)
{
    if (ip->plan) {
        if (!affinity_holds(ip, n)) {
            return REASON_POD_AFFINITY;
        }
        if (counts_any(ip->plan->anti, ip->plan->nanti, n)) {
            return REASON_POD_ANTI_AFFINITY;
        }
    }
    if (counts_any(ip->existing.at, ip->existing.len, n)) {
        return REASON_EXISTING_ANTI_AFFINITY;
    }
    return REASON_NONE;
}

bool interpod_filters(struct model *m, task_id t)
{
    const struct cons *c = task_cons(m, t);
    const struct topo_ident *meets;

    if (c && c->naff + c->nanti > 0) {
        return true;
    }
    meets = topo_ident(m, model_task(m, t)->ident);
    return meets && meets->anti.len > 0;
}

bool interpod_scores(struct model *m, task_id t)
{
    const struct cons *c = task_cons(m, t);
    const struct topo_ident *meets;

    if (c && c->npref_aff + c->npref_anti > 0) {
        return true;
    }
    meets = topo_ident(m, model_task(m, t)->ident);
    return meets && meets->pref.len > 0;
}

static void add_weights(struct topo_counter *const *c, uint32_t len, const node_id *nodes,
                        uint32_t n, int64_t *raw)
{
    for (uint32_t k = 0; k < len; k++) {
        if (c[k]->total == 0) {
            continue;
        }
        for (uint32_t i = 0; i < n; i++) {
            raw[i] += (int64_t)c[k]->weight * topo_count(c[k], nodes[i]);
        }
    }
}

void interpod_score(struct model *m, task_id t, const node_id *nodes, uint32_t n, int64_t weight,
                    struct hk_arena *mem, double *score)
{
    const struct hk_arena_mark mark = hk_arena_mark(mem);
    int64_t *raw = hk_arena_zalloc(mem, n * sizeof(*raw));
    int64_t min = INT64_MAX, max = INT64_MIN;
    const struct topo_plan *p = topo_plan(m, t);
    const struct topo_ident *meets = topo_ident(m, model_task(m, t)->ident);

    if (p) {
        add_weights(p->pref, p->npref, nodes, n, raw);
    }
    if (meets) {
        add_weights(meets->pref.at, meets->pref.len, nodes, n, raw);
    }
    for (uint32_t i = 0; i < n; i++) {
        min = HK_MIN(min, raw[i]);
        max = HK_MAX(max, raw[i]);
    }
    for (uint32_t i = 0; i < n && max > min; i++) {
        /* Kubernetes divides first: 29 of 100 becomes 28. */
        const double part = (double)(raw[i] - min) / (double)(max - min);
        score[i] += (double)(weight * (int64_t)(100 * part));
    }
    hk_arena_rewind(mem, mark);
}
