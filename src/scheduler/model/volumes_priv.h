// SPDX-License-Identifier: Apache-2.0
// The tables behind volumes.h, shared by the files that answer its questions.
//
// Rows of claims and volumes outlive their object while a reservation refers to them: `used` says
// whether the object exists, `nhold` how many reservations remain.
#pragma once

#include "scheduler/model/model_priv.h"
#include "scheduler/model/volumes.h"

struct claim {
    struct claim_desc d;   /* its sel is unused; see below */
    struct node_term *sel; /* selector requirements; NULL accepts every volume */
    bool used;
    uint32_t nhold;
    uint32_t assumed_pv;   /* row, ID_NONE none */
    uint32_t assumed_node; /* name of the node to provision it on, 0 none */
};

struct pv {
    struct pv_desc d;
    bool used;
    bool zoned; /* has one of the zone labels */
    uint32_t nhold;
    uint32_t assumed;  /* row of the claim that reserved it, ID_NONE none */
    uint32_t ref_next; /* next volume with the same claimRef */
};

/* A name of a StorageClass, or a class name that volumes or capacities use. */
struct sclass {
    struct storage_class_desc d;
    bool known; /* a StorageClass exists */
    bool provisions;
    HK_VEC(uint32_t) pvs;        /* rows by capacity, then name */
    HK_VEC(uint32_t) capacities; /* rows, unordered */
};

struct csi_node {
    uint32_t name;
    HK_VEC(struct csi_limit) limits;
};

struct csi_capacity {
    uint32_t key, class_;
    struct node_term *topology; /* selector requirements; NULL: no node */
    int64_t limit;
};

struct attachment {
    struct attachment_desc d;
    uint32_t next; /* of the same node */
};

/* One claim reserved for one task. */
struct hold {
    uint32_t claim;
    uint32_t pv; /* ID_NONE: to be provisioned */
    node_id node;
    uint32_t next; /* of the same task */
};

/* How to satisfy one claim of a task on the node being checked. */
struct plan_item {
    uint32_t claim;
    uint32_t pv; /* ID_NONE: provisioned */
    bool match;  /* look for a volume before provisioning */
};

enum { NZONE = 4 };

struct volumes {
    TABLE(claim) claims;
    TABLE(pv) pvs;
    TABLE(sclass) classes; /* never shrinks: class names are few */
    TABLE(csi_node) csi_nodes;
    TABLE(csi_capacity) capacities;
    TABLE(attachment) attachments;
    TABLE(hold) holds;
    struct hk_map claim_by_key, pv_by_name, class_by_name, csi_node_by_name, capacity_by_key,
        attachment_by_name;
    struct hk_map pvs_by_ref;          /* claim key -> first volume with that claimRef */
    struct hk_map attachments_by_node; /* node name -> first attachment */
    struct hk_map hold_by_task;        /* task -> its first hold */
    struct hk_map tracks_capacity;     /* CSI driver -> spec.storageCapacity */
    uint32_t zone_key[NZONE];          /* label keys, interned when first needed */
    HK_VEC(struct plan_item) plan;
    HK_VEC(uint64_t) fresh, attached; /* volumes, as volume_number() */
};

static inline struct claim *find_claim(const struct volumes *v, uint32_t key)
{
    const uint32_t row = hk_map_get(&v->claim_by_key, key);

    return row == HK_NONE ? NULL : &v->claims.at[row];
}

static inline struct pv *find_pv(const struct volumes *v, uint32_t name)
{
    const uint32_t row = name == 0 ? HK_NONE : hk_map_get(&v->pv_by_name, name);

    return row == HK_NONE ? NULL : &v->pvs.at[row];
}

/* NULL when there is no StorageClass of that name. */
static inline const struct sclass *find_class(const struct volumes *v, uint32_t name)
{
    const uint32_t row = name == 0 ? HK_NONE : hk_map_get(&v->class_by_name, name);

    return row != HK_NONE && v->classes.at[row].known ? &v->classes.at[row] : NULL;
}

static inline bool selector_match(const struct model *m, const struct node_term *sel,
                                  struct labels l)
{
    const struct label_sel s = {.at = sel->req, .n = sel->nreq};

    return label_sel_match(&s, l, &m->str);
}

static inline bool terms_match(const struct model *m, const struct node_term *term, uint32_t n,
                               node_id node)
{
    for (uint32_t i = 0; i < n; i++) {
        if (node_term_match(&term[i], m->nodes.labels[node.i], m->nodes.name[node.i], &m->str)) {
            return true;
        }
    }
    return false;
}

static inline bool has_zone_label(const struct volumes *v, struct labels l)
{
    uint32_t val;

    for (uint32_t i = 0; i < NZONE; i++) {
        if (labels_get(l, v->zone_key[i], &val)) {
            return true;
        }
    }
    return false;
}

/* Whether the claim was made for an ephemeral volume of this very pod. */
static inline bool owns(const struct model *m, task_id t, const struct claim *c)
{
    return c->d.owner != 0 && c->d.owner == model_task(m, t)->uid;
}

/* The name without its namespace. */
static inline const char *key_name(const struct model *m, uint32_t key)
{
    const char *text = model_str(m, key).s, *slash = strchr(text, '/');

    return slash ? slash + 1 : text;
}

/* Frees the row when neither an object nor a reservation needs it. */
void volumes_claim_drop(struct model *m, uint32_t row);
void volumes_pv_drop(struct model *m, uint32_t row);

/* Build a REASON_TEXT; the second one for an ephemeral claim of another pod. */
struct reason volumes_reason(struct model *m, const char *fmt, ...) HK_PRINTF(2, 3);
struct reason volumes_not_owner(struct model *m, task_id t, uint32_t key, const char *prefix);
