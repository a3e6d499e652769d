// SPDX-License-Identifier: Apache-2.0
// Pods counted by topology domain, for inter-pod affinity and topology spread
// (docs/reference/plugins.md sections 4.5 and 4.6). A counter is one question - "how many pods that
// match this selector (or carry this term) are in each value of this label key" - kept up to date
// by the model, so no filter ever visits all pods.
//
//   plan      the counters that one cons needs: its own terms and spread rows, made on first use
//   owners    the counters of terms that pods with a cons carry: they restrict or attract others
//   ident     for pods with these labels: the counters they add to, the terms of others they match
//
// Counters are created and freed together with their cons. While no cons needs a counter, the calls
// below return at once.
#pragma once

#include "scheduler/model/model.h"

/* A label key that groups nodes; each value found on some node is a domain. */
struct topo_key {
    uint32_t label;       /* string id; ID_NONE: every node is a domain of its own */
    uint32_t *domain;     /* [node row], ID_NONE when the node lacks the label */
    uint32_t *val;        /* [domain] the value */
    uint32_t *nodes;      /* [domain] nodes with that value */
    uint32_t len, cap;    /* domains, vacant ones included */
    struct hk_map by_val; /* value -> domain */
    HK_VEC(uint32_t) vacant;
};

/* A job's pods occupy few of many domains, so most pages are never allocated. */
#define TOPO_PAGE 64

struct topo_counter {
    const struct topo_key *key;
    int32_t **page; /* [domain / TOPO_PAGE] counts; a NULL array or page means zeros */
    int64_t total;
    int32_t weight; /* of a preferred term, negative for anti-affinity */

    /* Spread only. Nodes that do not take part (topo_node_takes_part) neither count nor make a
     * domain. */
    uint64_t *included;  /* bit per node row; NULL: every node counts */
    uint32_t *in_domain; /* [domain] included nodes */
    uint32_t ndomain;    /* domains with included nodes */
    int32_t min;         /* lowest count among them; read it through topo_min */
    uint32_t at_min;     /* domains at min, 0: min must be recomputed */

    /* What the counter counts; used by topo.c only. */
    uint8_t kind;
    uint32_t nterm;
    const struct pod_term *term;
    const struct spread *spread;
    cons_id cons;
    uint32_t ns;
    uint32_t slot;              /* in the list of all counters */
    uint32_t anchor, in_anchor; /* label pair that lists it, and its index there */
};

/* The counters one cons needs in one namespace. */
struct topo_plan {
    struct topo_plan *next;
    uint32_t ns;
    uint32_t naff, nanti, npref, nspread;
    struct topo_counter **aff;  /* pods matching all required terms, one counter per distinct key */
    struct topo_counter **anti; /* one per required anti-affinity term */
    struct topo_counter **pref; /* one per preferred term, weight signed */
    struct topo_counter **spread; /* by row of cons.spread */
};

struct topo_counters {
    struct topo_counter **at;
    uint32_t len, cap;
};

struct topo_ident {
    struct topo_counters adds; /* counters that count a pod with this ident */
    struct topo_counters anti; /* owners: required anti-affinity terms that match it */
    struct topo_counters pref; /* owners: preferred terms that match it */
    uint32_t *posted;          /* [label] place in that pair's list */
    task_id first;             /* first of its pods that are in a node's view */
    bool filed;
};

struct topo *topo_new(void);
void topo_free(struct topo *t);
/* Calls f for every string id that topo refers to. */
void topo_strings(const struct topo *t, struct hk_intern *strings, string_fn *f);

/* ---- called by the model ---- */

/* The pod entered or left the view of its node. */
void topo_pod_add(struct model *m, task_id t, node_id n);
void topo_pod_remove(struct model *m, task_id t, node_id n);
/* The node appeared, vanished, or its labels, taints or class changed. Pods on it are recounted. */
void topo_node_changed(struct model *m, node_id n);
/* Labels of a namespace changed (namespaceSelector). */
void topo_namespace_changed(struct model *m);
/* A cons was interned: its terms count before the first of its pods is placed. */
void topo_cons_known(struct model *m, cons_id c);
/* The row is about to be freed; no pod with it is in view. */
void topo_cons_forget(struct model *m, cons_id c);
void topo_ident_forget(struct model *m, ident_id i);

/* ---- called by filters and scores ---- */

/* The counters of the task's cons, NULL for none. Valid while the cons is. */
const struct topo_plan *topo_plan(struct model *m, task_id t);
/* NULL when no pod, placed or waiting, has any term. Valid until the next call. */
const struct topo_ident *topo_ident(struct model *m, ident_id i);
/* Whether a pod with that ident matches every one of an incoming pod's terms. */
bool topo_terms_match(const struct model *m, const struct pod_term *term, uint32_t n, ident_id i);
/* Lowest count over the included domains, 0 without any. */
int32_t topo_min(struct topo_counter *c);

static inline uint32_t topo_domain(const struct topo_counter *c, node_id n)
{
    return c->key->domain[n.i];
}

/* Counted pods in a domain. */
static inline int32_t topo_at(const struct topo_counter *c, uint32_t domain)
{
    const int32_t *page = c->page ? c->page[domain / TOPO_PAGE] : NULL;
    return page ? page[domain % TOPO_PAGE] : 0;
}

/* Counted pods in the node's domain; 0 when it has none. */
static inline int32_t topo_count(const struct topo_counter *c, node_id n)
{
    const uint32_t d = topo_domain(c, n);
    return d == ID_NONE ? 0 : topo_at(c, d);
}

/* Recounts every counter pod by pod and compares. */
int topo_check(const struct model *m, struct hk_err *err) HK_CHECKED;
