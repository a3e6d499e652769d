// SPDX-License-Identifier: Apache-2.0
// What pods request and nodes offer, interned: label sets, selectors, taints, tolerations,
// affinity, spread, ports, volumes. Ingest builds it; predicates and nodeorder read it. Strings are
// ids of the model's string table; label sets are sorted by key id.
#pragma once

#include "base/arena.h"
#include "scheduler/model/ids.h"

struct label {
    uint32_t key, val;
};

struct labels {
    const struct label *at;
    uint32_t n;
};

enum label_op { OP_IN, OP_NOT_IN, OP_EXISTS, OP_NOT_EXISTS, OP_GT, OP_LT };

struct label_req {
    uint32_t key;
    uint8_t op; /* enum label_op */
    uint32_t n;
    const uint32_t *vals; /* sorted ids; for OP_GT and OP_LT empty */
    int64_t num;          /* operand of OP_GT and OP_LT */
};

/* metav1.LabelSelector: nothing (nil) matches no pod, zero requirements match every pod. */
struct label_sel {
    bool nothing;
    uint32_t n;
    const struct label_req *at;
};

/* One node selector term: requirements on labels and on metadata.name. An erroneous or empty term
 * matches no node. */
struct node_term {
    bool never;
    uint32_t nreq, nfield;
    const struct label_req *req;
    const struct label_req *field; /* key is the id of "metadata.name", vals are node names */
    int32_t weight;                /* preferred terms */
};

enum taint_effect {
    EFFECT_NO_SCHEDULE,
    EFFECT_PREFER_NO_SCHEDULE,
    EFFECT_NO_EXECUTE,
    EFFECT_OTHER
};

struct taint {
    uint32_t key, val;
    uint8_t effect;
};

struct toleration {
    uint32_t key, val; /* key 0: every key */
    uint8_t exists;    /* operator Exists */
    uint8_t never;     /* unknown operator: tolerates nothing */
    uint8_t any_effect;
    uint8_t effect;
};

/* Inter-pod term (docs/reference/plugins.md section 4.5). */
struct pod_term {
    struct label_sel sel;
    uint32_t topo_key;
    uint32_t nns;
    const uint32_t *ns; /* namespaces listed; the owner's own namespace is filled in by ingest */
    bool has_ns_sel;
    struct label_sel ns_sel;
    int32_t weight; /* preferred terms */
};

struct spread {
    uint32_t topo_key;
    int32_t max_skew, min_domains;
    bool hard;            /* DoNotSchedule */
    bool honor_affinity;  /* nodeAffinityPolicy */
    bool honor_taints;    /* nodeTaintsPolicy */
    bool system_default;  /* added by us, since the pod has no constraints of its own */
    struct label_sel sel; /* matchLabelKeys merged in */
};

struct host_port {
    uint32_t ip; /* string id; "0.0.0.0" normalised */
    uint16_t port;
    uint8_t proto; /* 0 TCP, 1 UDP, 2 SCTP, 3 other */
};

/* The part of a pod spec, besides requests, that restricts or prefers nodes. */
struct cons {
    uint32_t refs;
    struct hk_arena mem; /* owns everything below */
    uint64_t hash;
    const void *key; /* canonical bytes, for interning */
    uint32_t key_len;

    uint32_t nsel;
    const struct label *sel; /* spec.nodeSelector */
    bool has_terms;          /* requiredDuringScheduling present, even if empty */
    uint32_t nterm;
    const struct node_term *term;
    uint32_t npref;
    const struct node_term *pref;
    bool pref_error; /* an erroneous preference: scoring fails */
    uint32_t ntol;
    const struct toleration *tol;
    uint32_t nport;
    const struct host_port *port;
    uint32_t naff, nanti, npref_aff, npref_anti;
    const struct pod_term *aff, *anti, *pref_aff, *pref_anti;
    uint32_t nspread;
    const struct spread *spread;
    uint32_t nclaim;
    const uint32_t *claim; /* string ids "namespace/name" */
    const bool *claim_ephemeral;
    bool inline_csi;
    uint32_t nimage;
    const uint32_t *image; /* string ids, tag added */
    uint32_t nimage_containers;
    bool name_conflict; /* metadata.name terms exclude one another: "pod affinity terms conflict" */

    uint8_t *verdict; /* [class] STATIC_* bits | STATIC_KNOWN, filled lazily by model_static */
    uint32_t nverdict;
};

/* l must be sorted by key, with one value per key. */
bool labels_get(struct labels l, uint32_t key, uint32_t *ret_val);
struct hk_intern;

/* For example hk_intern_keep or hk_intern_drop. */
typedef void string_fn(struct hk_intern *t, uint32_t id);
/* Call f for every string id in the object, once per occurrence (strings.c). */
void labels_strings(struct labels l, struct hk_intern *t, string_fn *f);
void label_sel_strings(const struct label_sel *s, struct hk_intern *t, string_fn *f);
void node_terms_strings(const struct node_term *at, uint32_t n, struct hk_intern *t, string_fn *f);
void cons_strings(const struct cons *c, struct hk_intern *t, string_fn *f);

bool label_req_match(const struct label_req *r, struct labels l, const struct hk_intern *str);
bool label_sel_match(const struct label_sel *s, struct labels l, const struct hk_intern *str);
bool node_term_match(const struct node_term *t, struct labels l, uint32_t node_name,
                     const struct hk_intern *str);
bool toleration_match(const struct toleration *tol, const struct taint *taint);
/* nodeSelector and required affinity together. */
bool cons_affinity_match(const struct cons *c, struct labels l, uint32_t node_name,
                         const struct hk_intern *str);
/* Every taint with one of the effects in mask (1 << effect) is tolerated. */
bool cons_tolerates(const struct cons *c, const struct taint *taints, uint32_t n, unsigned mask);
