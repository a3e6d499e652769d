// SPDX-License-Identifier: Apache-2.0
// Matching of labels, node terms and taints (docs/reference/plugins.md sections 4.1 to 4.3). Pure
// functions over interned ids.
#include "scheduler/model/spec.h"

#include "base/map.h"

bool labels_get(struct labels l, uint32_t key, uint32_t *ret_val)
{
    uint32_t lo = 0, hi = l.n;

    while (lo < hi) {
        const uint32_t mid = (lo + hi) / 2;
        if (l.at[mid].key < key) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    if (lo == l.n || l.at[lo].key != key) {
        return false;
    }
    *ret_val = l.at[lo].val;
    return true;
}

static bool spec_label_in_values(const struct label_req *r, uint32_t val)
{
    for (uint32_t k = 0; k < r->n; k++) {
        if (r->vals[k] == val) {
            return true;
        }
    }
    return false;
}

static bool spec_compare_int_label(const struct label_req *r, uint32_t val,
                                   const struct hk_intern *str)
{
    int64_t have;

    if (!hk_str_int(hk_intern_str(str, val), &have)) {
        return false;
    }
    return r->op == OP_GT ? have > r->num : have < r->num;
}

static bool value_match(const struct label_req *r, bool present, uint32_t val,
                        const struct hk_intern *str)
{
    switch ((enum label_op)r->op) {
    case OP_IN:
        return present && spec_label_in_values(r, val);
    case OP_NOT_IN:
        return !present || !spec_label_in_values(r, val);
    case OP_EXISTS:
        return present;
    case OP_NOT_EXISTS:
        return !present;
    case OP_GT:
    case OP_LT:
        return present && spec_compare_int_label(r, val, str);
    }
    return false;
}

bool label_req_match(const struct label_req *r, struct labels l, const struct hk_intern *str)
{
    uint32_t val = 0;
    const bool present = labels_get(l, r->key, &val);

    return value_match(r, present, val, str);
}

bool label_sel_match(const struct label_sel *s, struct labels l, const struct hk_intern *str)
{
    if (s->nothing) {
        return false;
    }
    for (uint32_t k = 0; k < s->n; k++) {
        if (!label_req_match(&s->at[k], l, str)) {
            return false;
        }
    }
    return true;
}

bool node_term_match(const struct node_term *t, struct labels l, uint32_t node_name,
                     const struct hk_intern *str)
{
    if (t->never || (t->nreq == 0 && t->nfield == 0)) {
        return false;
    }
    for (uint32_t k = 0; k < t->nreq; k++) {
        if (!label_req_match(&t->req[k], l, str)) {
            return false;
        }
    }
    for (uint32_t k = 0; k < t->nfield; k++) {
        if (!value_match(&t->field[k], true, node_name, str)) {
            return false;
        }
    }
    return true;
}

bool toleration_match(const struct toleration *tol, const struct taint *taint)
{
    if (tol->never || (!tol->any_effect && tol->effect != taint->effect)) {
        return false;
    }
    if (tol->key != 0 && tol->key != taint->key) {
        return false;
    }
    return tol->exists || tol->val == taint->val;
}

bool cons_affinity_match(const struct cons *c, struct labels l, uint32_t node_name,
                         const struct hk_intern *str)
{
    for (uint32_t k = 0; k < c->nsel; k++) {
        uint32_t val;
        if (!labels_get(l, c->sel[k].key, &val) || val != c->sel[k].val) {
            return false;
        }
    }
    if (!c->has_terms) {
        return true;
    }
    for (uint32_t k = 0; k < c->nterm; k++) {
        if (node_term_match(&c->term[k], l, node_name, str)) {
            return true;
        }
    }
    return false;
}

bool cons_tolerates(const struct cons *c, const struct taint *taints, uint32_t n, unsigned mask)
{
    for (uint32_t i = 0; i < n; i++) {
        bool ok = !((mask >> taints[i].effect) & 1);
        for (uint32_t k = 0; !ok && c && k < c->ntol; k++) {
            ok = toleration_match(&c->tol[k], &taints[i]);
        }
        if (!ok) {
            return false;
        }
    }
    return true;
}
