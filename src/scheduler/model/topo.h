// SPDX-License-Identifier: Apache-2.0
// Pods counted by topology domain, for inter-pod affinity and topology spread (K5, K6). A counter
// is one question - "how many pods that match this selector (or carry this term) sit in each value
// of this label key" - kept true by the model as pods come and go, so no filter ever walks all
// pods.
//
//   plan      the counters one cons asks for: its own terms and spread rows, made when first asked
//   owners    the counters of terms that pods with a cons carry: what others must respect or like
//   ident     what meets a pod with these labels: counters it adds to, terms of others it matches
//
// A cons brings its counters and takes them along when it dies. While no cons asks for anything,
// the calls below return at once.
#pragma once

#include "scheduler/model/model.h"

/* A label key nodes are grouped by; each value some node carries is a domain. */
struct topo_key {
    uint32_t label;       /* string id; ID_NONE: every node is a domain of its own */
    uint32_t *domain;     /* [node row], ID_NONE when the node lacks the label */
    uint32_t *val;        /* [domain] the value */
    uint32_t *nodes;      /* [domain] nodes that carry it */
    uint32_t len, cap;    /* domains, vacant ones included */
    struct hk_map by_val; /* value -> domain */
    HK_VEC(uint32_t) vacant;
};

/* A job's pods sit in few of many domains: most pages are never made. */
#define TOPO_PAGE 64

struct topo_counter {
    const struct topo_key *key;
    int32_t **page; /* [domain / TOPO_PAGE] counts; NULL, as a whole or one, stands for zeros */
    int64_t total;
    int32_t weight; /* of a preferred term, negative for anti-affinity */

    /* Spread only. Nodes left out by K6.2 neither count nor make a domain. */
    uint64_t *included;  /* bit per node row; NULL: every node counts */
    uint32_t *in_domain; /* [domain] included nodes */
    uint32_t ndomain;    /* domains with included nodes */
    int32_t min;         /* lowest count among them; read it through topo_min */
    uint32_t at_min;     /* domains at min, 0: work it out again */

    /* What is counted; for topo.c. */
    uint8_t kind;
    uint32_t nterm;
    const struct pod_term *term;
    const struct spread *spread;
    cons_id cons;
    uint32_t ns;
    uint32_t slot;              /* in the list of all counters */
    uint32_t anchor, in_anchor; /* label pair it is filed under and the place there */
};

/* What a cons asks for, in one namespace. */
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
    task_id first;             /* its pods in a node's view */
    bool filed;
};

struct topo *topo_new(void);
void topo_free(struct topo *t);
/* Calls f for every string id held. */
void topo_strings(const struct topo *t, struct hk_intern *strings, string_fn *f);

/* ---- called by the model ---- */

/* The pod entered or left the view of its node. */
void topo_pod_add(struct model *m, task_id t, node_id n);
void topo_pod_remove(struct model *m, task_id t, node_id n);
/* The node appeared, vanished, or its labels, taints or class changed. Pods on it are recounted. */
void topo_node_changed(struct model *m, node_id n);
/* Labels of a namespace changed (namespaceSelector). */
void topo_namespace_changed(struct model *m);
/* A cons was interned: terms its pods will carry count as "in play" before the first one is placed.
 */
void topo_cons_known(struct model *m, cons_id c);
/* The row is about to be freed; no pod with it is in view. */
void topo_cons_forget(struct model *m, cons_id c);
void topo_ident_forget(struct model *m, ident_id i);

/* ---- asked by filters and scores ---- */

/* What the task's cons asks for; NULL when that is nothing. Stays valid while the cons does. */
const struct topo_plan *topo_plan(struct model *m, task_id t);
/* NULL when no term of any pod, placed or waiting, concerns anybody. Valid until the next call. */
const struct topo_ident *topo_ident(struct model *m, ident_id i);
/* Whether a pod with that ident matches every one of an incoming pod's terms (K5.1). */
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

/* Counts every counter anew, pod by pod, and compares. */
int topo_check(const struct model *m, struct hk_err *err) HK_CHECKED;
