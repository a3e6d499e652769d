// SPDX-License-Identifier: Apache-2.0
// Claims, volumes, classes and CSI limits as the volume filters need them
// (docs/reference/plugins.md section 5). Ingest writes rows, predicates asks the questions. A
// reservation made for a tentative placement is remembered by task and given back by
// volumes_unreserve, so the journal can undo it. All names are ids of the model's string table, 0
// for none.
#pragma once

#include "scheduler/fit.h"

struct volumes *volumes_new(void);
void volumes_free(struct volumes *v);
/* Calls f for every string id the rows hold. */
void volumes_strings(const struct volumes *v, struct hk_intern *t, string_fn *f);

/* ---- writing: ingest and tests. A put adds or replaces, and copies its argument ---- */

enum {
    VOLUME_RWO = 1 << 0,
    VOLUME_ROX = 1 << 1,
    VOLUME_RWX = 1 << 2,
    VOLUME_RWOP = 1 << 3,
    VOLUME_ACCESS_OTHER = 1 << 4, /* an unknown mode */
};

struct claim_desc {
    uint32_t key; /* "namespace/name" */
    uint32_t uid;
    uint32_t owner;  /* uid of the pod that controls it */
    uint32_t volume; /* spec.volumeName */
    uint32_t class_; /* from the annotation, else the spec */
    uint32_t attributes_class;
    uint32_t selected_node; /* annotation volume.kubernetes.io/selected-node */
    bool bind_completed;    /* annotation pv.kubernetes.io/bind-completed */
    bool lost, deleting;
    bool block;      /* volumeMode: Block */
    unsigned access; /* VOLUME_* */
    int64_t request; /* bytes */
    bool has_sel;
    struct label_sel sel;
    uint64_t rv; /* resourceVersion */
};
void volumes_claim_put(struct model *m, const struct claim_desc *d);
void volumes_claim_del(struct model *m, uint32_t key);

struct pv_desc {
    uint32_t name;
    uint32_t class_, attributes_class;
    uint32_t ref, ref_uid;   /* claimRef: "namespace/name" and, when known, uid */
    uint32_t driver, handle; /* 0 when not a CSI volume */
    bool available;          /* phase */
    bool deleting, block;
    unsigned access;
    int64_t capacity; /* bytes */
    struct labels labels;
    bool has_terms; /* nodeAffinity.required present */
    const struct node_term *term;
    uint32_t nterm;
    uint64_t rv; /* resourceVersion */
};
void volumes_pv_put(struct model *m, const struct pv_desc *d);
void volumes_pv_del(struct model *m, uint32_t name);

enum binding_mode { BINDING_UNSET, BINDING_IMMEDIATE, BINDING_WAIT };

struct storage_class_desc {
    uint32_t name, provisioner;
    enum binding_mode mode;
    const struct node_term *topology; /* allowedTopologies: any of these; empty allows every node */
    uint32_t ntopology;
};
void volumes_class_put(struct model *m, const struct storage_class_desc *d);
void volumes_class_del(struct model *m, uint32_t name);

struct csi_limit {
    uint32_t driver;
    int32_t count; /* volumes that can be attached */
};
/* The drivers of a CSINode that limit attached volumes. */
void volumes_csi_node_put(struct model *m, uint32_t node, const struct csi_limit *at, uint32_t n);
void volumes_csi_node_del(struct model *m, uint32_t node);

void volumes_csi_driver_put(struct model *m, uint32_t name, bool storage_capacity);
void volumes_csi_driver_del(struct model *m, uint32_t name);

struct csi_capacity_desc {
    uint32_t key; /* "namespace/name" */
    uint32_t class_;
    struct label_sel topology; /* nothing: no node */
    int64_t limit; /* bytes: maximumVolumeSize, else capacity; negative when neither is set */
};
void volumes_csi_capacity_put(struct model *m, const struct csi_capacity_desc *d);
void volumes_csi_capacity_del(struct model *m, uint32_t key);

struct attachment_desc {
    uint32_t name, attacher, node, pv;
};
void volumes_attachment_put(struct model *m, const struct attachment_desc *d);
void volumes_attachment_del(struct model *m, uint32_t name);

/* ---- reading ---- */

/* PreFilter of the three plugins; call each only when it is enabled. False refuses the task on
 * every node, with *why = REASON_TEXT "plugin VolumeZone pre-predicates failed ..." */
bool volumes_pre_limits(struct model *m, task_id t, struct reason *why);
bool volumes_pre_zone(struct model *m, task_id t, struct reason *why);
bool volumes_pre_binding(struct model *m, task_id t, struct reason *why);
/* Whether the task has claims; if not, the filters below need not be called. */
bool volumes_asked(const struct model *m, task_id t);
/* REASON_NONE when the node passes. */
struct reason volumes_filter_limits(struct model *m, task_id t, node_id n);
struct reason volumes_filter_zone(struct model *m, task_id t, node_id n);
/* Returns how many reasons there are: a missing volume, a node out of reach and no volume to bind
 * may come together. */
uint32_t volumes_filter_binding(struct model *m, task_id t, node_id n, struct reason why[4]);

/* Reserves volumes for the task's unbound claims on that node. A previous reservation of the task
 * is released first. False, with nothing reserved, when the volumes are no longer available. */
bool volumes_reserve(struct model *m, task_id t, node_id n);
/* Does nothing without a reservation. Must also be called when the task is deleted. */
void volumes_unreserve(struct model *m, task_id t);

/* What a reservation wants written to the API before its task is bound: the volume's claimRef or,
 * for a volume yet to be made, the claim's selected-node annotation. And how far that is, by what
 * the API has shown. */
struct volume_bind {
    uint32_t claim; /* "namespace/name" */
    uint32_t claim_uid;
    uint32_t pv;      /* 0: to be provisioned on the task's node */
    uint32_t volume;  /* the claim's volume, else pv */
    uint64_t rv;      /* resourceVersion of the object to write */
    bool claim_gone;  /* the claim no longer exists */
    bool pv_gone;     /* the volume no longer exists */
    bool prebound;    /* the volume already names the claim, perhaps without uid */
    bool written;     /* the API shows the wanted write */
    bool taken;       /* another claim or node took it */
    bool unreachable; /* the volume no longer fits the node */
    bool bound;       /* the claim is fully bound to a known volume */
};
/* Fills at most room entries of ret; returns the total number. */
uint32_t volumes_reserved(const struct model *m, task_id t, struct volume_bind *ret, uint32_t room);
/* Whether every claim of the task is fully bound, so that the task can be bound. */
bool volumes_bound(const struct model *m, task_id t);
