// SPDX-License-Identifier: Apache-2.0
// Which strings each row of the model references. Each function calls f once for every string id of
// a row, so the same walk takes references, drops them and checks that none is missing. A string
// that no row below lists is referenced by something that lives longer: a pod's host port by its
// constraints, a domain's value by the node's labels.
#include "scheduler/model/model_priv.h"

static void ids_strings(const uint32_t *at, uint32_t n, struct hk_intern *t, string_fn *f)
{
    for (uint32_t k = 0; k < n; k++) {
        f(t, at[k]);
    }
}

void labels_strings(struct labels l, struct hk_intern *t, string_fn *f)
{
    for (uint32_t k = 0; k < l.n; k++) {
        f(t, l.at[k].key);
        f(t, l.at[k].val);
    }
}

static void reqs_strings(const struct label_req *at, uint32_t n, struct hk_intern *t, string_fn *f)
{
    for (uint32_t k = 0; k < n; k++) {
        f(t, at[k].key);
        ids_strings(at[k].vals, at[k].n, t, f);
    }
}

void label_sel_strings(const struct label_sel *s, struct hk_intern *t, string_fn *f)
{
    reqs_strings(s->at, s->n, t, f);
}

void node_terms_strings(const struct node_term *at, uint32_t n, struct hk_intern *t, string_fn *f)
{
    for (uint32_t k = 0; k < n; k++) {
        reqs_strings(at[k].req, at[k].nreq, t, f);
        reqs_strings(at[k].field, at[k].nfield, t, f);
    }
}

static void pod_terms_strings(const struct pod_term *at, uint32_t n, struct hk_intern *t,
                              string_fn *f)
{
    for (uint32_t k = 0; k < n; k++) {
        label_sel_strings(&at[k].sel, t, f);
        label_sel_strings(&at[k].ns_sel, t, f);
        ids_strings(at[k].ns, at[k].nns, t, f);
        f(t, at[k].topo_key);
    }
}

void cons_strings(const struct cons *c, struct hk_intern *t, string_fn *f)
{
    labels_strings((struct labels){.at = c->sel, .n = c->nsel}, t, f);
    node_terms_strings(c->term, c->nterm, t, f);
    node_terms_strings(c->pref, c->npref, t, f);
    for (uint32_t k = 0; k < c->ntol; k++) {
        f(t, c->tol[k].key);
        f(t, c->tol[k].val);
    }
    for (uint32_t k = 0; k < c->nport; k++) {
        f(t, c->port[k].ip);
    }
    pod_terms_strings(c->aff, c->naff, t, f);
    pod_terms_strings(c->anti, c->nanti, t, f);
    pod_terms_strings(c->pref_aff, c->npref_aff, t, f);
    pod_terms_strings(c->pref_anti, c->npref_anti, t, f);
    for (uint32_t k = 0; k < c->nspread; k++) {
        f(t, c->spread[k].topo_key);
        label_sel_strings(&c->spread[k].sel, t, f);
    }
    ids_strings(c->claim, c->nclaim, t, f);
    ids_strings(c->image, c->nimage, t, f);
}

static void taints_strings(const struct taint *at, uint32_t n, struct hk_intern *t, string_fn *f)
{
    for (uint32_t k = 0; k < n; k++) {
        f(t, at[k].key);
        f(t, at[k].val);
    }
}

void face_strings(const struct node_face *n, struct hk_intern *t, string_fn *f)
{
    labels_strings(n->labels, t, f);
    taints_strings(n->taints, n->ntaint, t, f);
}

void images_strings(const struct image_vec *v, struct hk_intern *t, string_fn *f)
{
    for (uint32_t k = 0; k < v->len; k++) {
        f(t, v->at[k].image);
    }
}

void class_strings(const struct class_row *c, struct hk_intern *t, string_fn *f)
{
    labels_strings(c->labels, t, f);
    taints_strings(c->taints, c->ntaint, t, f);
    f(t, c->node_name);
}

void ident_strings(const struct ident *i, struct hk_intern *t, string_fn *f)
{
    f(t, i->ns);
    labels_strings(i->labels, t, f);
}

void task_strings(const struct task *task, struct hk_intern *t, string_fn *f)
{
    f(t, task->ns);
    f(t, task->name);
    f(t, task->uid);
    f(t, task->role);
}

void job_spec_strings(const struct job *j, struct hk_intern *t, string_fn *f)
{
    f(t, j->uid);
    f(t, j->queue_name);
    f(t, j->prio_class);
    f(t, j->budget_min);
    f(t, j->budget_max_unavailable);
    f(t, j->topo.tier_name);
    for (uint32_t k = 0; k < j->min_items.len; k++) {
        f(t, j->min_items.at[k].name);
    }
    for (uint32_t k = 0; k < j->policies.len; k++) {
        const struct policy *p = &j->policies.at[k];
        f(t, p->name);
        f(t, p->topo.tier_name);
        label_sel_strings(&p->sel, t, f);
        ids_strings(p->key, p->nkey, t, f);
    }
}

void job_strings(const struct job *j, struct hk_intern *t, string_fn *f)
{
    f(t, j->ns);
    f(t, j->name);
    for (uint32_t k = 0; k < j->roles.len; k++) {
        f(t, j->roles.at[k].name);
    }
    job_spec_strings(j, t, f);
}

void queue_strings(const struct queue *q, struct hk_intern *t, string_fn *f)
{
    f(t, q->name);
    f(t, q->parent_name);
    f(t, q->hierarchy);
    f(t, q->hierarchy_weights);
}

void hyper_strings(const struct hyper *h, struct hk_intern *t, string_fn *f)
{
    f(t, h->name);
    f(t, h->tier_name);
}

void quota_strings(const struct quota *q, struct hk_intern *t, string_fn *f)
{
    f(t, q->ns);
    f(t, q->name);
    for (uint32_t k = 0; k < q->items.len; k++) {
        f(t, q->items.at[k].name);
    }
}

void pdb_strings(const struct pdb *p, struct hk_intern *t, string_fn *f)
{
    f(t, p->ns);
    f(t, p->name);
    label_sel_strings(&p->sel, t, f);
    ids_strings(p->disrupted.at, p->disrupted.len, t, f);
}
