// SPDX-License-Identifier: Apache-2.0
// A hash over all of a PodGroup's fields, with which model_job_put detects that nothing changed.
#include "scheduler/model/model_priv.h"

static uint64_t hash_n(uint64_t h, uint64_t v)
{
    return hk_mix(h * 31 + v);
}

static uint64_t hash_s(uint64_t h, struct hk_str s)
{
    return hk_hash(s.n > 0 ? s.s : "", s.n, hash_n(h, s.n));
}

static uint64_t hash_topo(uint64_t h, const struct topo_spec *t)
{
    h = hash_n(h, (uint64_t)t->mode << 1 | t->has_tier);
    return hash_n(hash_n(h, (uint32_t)t->tier), t->tier_name);
}

static uint64_t hash_policy(uint64_t h, const struct policy_desc *p)
{
    h = hash_topo(hash_s(h, p->name), &p->topo);
    h = hash_n(hash_n(h, (uint32_t)p->size), (uint32_t)p->min_groups);
    h = hash_n(hash_n(h, (uint64_t)p->has_sel << 1 | p->sel.nothing), p->sel.n);
    for (uint32_t k = 0; k < p->sel.n; k++) {
        const struct label_req *r = &p->sel.at[k];
        h = hash_n(hash_n(hash_n(hash_n(h, r->key), r->op), (uint64_t)r->num), r->n);
        for (uint32_t i = 0; i < r->n; i++) {
            h = hash_n(h, r->vals[i]);
        }
    }
    h = hash_n(h, p->nkey);
    for (uint32_t k = 0; k < p->nkey; k++) {
        h = hash_n(h, p->keys[k]);
    }
    return h;
}

static uint64_t hash_lists(uint64_t h, const struct job_desc *d)
{
    h = hash_n(hash_n(h, d->has_minres), d->nminres);
    for (uint32_t k = 0; k < d->nminres; k++) {
        h = hash_n(hash_n(h, d->minres[k].dim), (uint64_t)d->minres[k].v);
    }
    h = hash_n(h, d->nmin_items);
    for (uint32_t k = 0; k < d->nmin_items; k++) {
        h = hash_n(hash_n(h, d->min_items[k].name), (uint64_t)d->min_items[k].milli);
    }
    h = hash_n(h, d->nrole);
    for (uint32_t k = 0; k < d->nrole; k++) {
        h = hash_n(hash_n(h, d->roles[k].name), (uint32_t)d->roles[k].min);
    }
    h = hash_n(h, d->npolicy);
    for (uint32_t k = 0; k < d->npolicy; k++) {
        h = hash_policy(h, &d->policies[k]);
    }
    return h;
}

uint64_t job_desc_hash(const struct job_desc *d)
{
    uint64_t h = hash_s(hash_s(hash_s(1, d->uid), d->queue), d->prio_class);

#define HASH_FACT(type, name) h = hash_n(h, (uint64_t)d->name);
    JOB_FACTS(HASH_FACT)
    h = hash_s(hash_s(h, d->budget_min), d->budget_max_unavailable);
    return hash_lists(hash_topo(h, &d->topo), d);
}
