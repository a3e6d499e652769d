// SPDX-License-Identifier: Apache-2.0
// Claims, volumes, classes and CSI limits as the volume filters need them (K7-K9). Ingest writes
// rows, predicates asks the questions. A reservation made for a tentative placement is remembered
// by task and given back by volumes_unreserve, so the journal can undo it. All names are ids of the
// model's string table, 0 for none.
#pragma once

#include "scheduler/fit.h"

struct volumes *volumes_new(void);
void volumes_free(struct volumes *v);
/* Calls f for every string id the rows hold. */
void volumes_strings(const struct volumes *v, struct hk_intern *t, string_fn *f);

/* ---- writing: ingest and tests. A put adds or replaces and copies what it is given ---- */

enum {
    VOLUME_RWO = 1 << 0,
    VOLUME_ROX = 1 << 1,
    VOLUME_RWX = 1 << 2,
    VOLUME_RWOP = 1 << 3,
    VOLUME_ACCESS_OTHER = 1 << 4, /* a mode nobody knows */
};

struct claim_desc {
    uint32_t key; /* "namespace/name" */
    uint32_t uid;
    uint32_t owner;  /* uid of the pod that controls it */
    uint32_t volume; /* spec.volumeName */
    uint32_t class_; /* of the annotation or of the spec */
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
    const struct node_term
        *topology; /* allowedTopologies: the OR of these; none allows every node */
    uint32_t ntopology;
};
void volumes_class_put(struct model *m, const struct storage_class_desc *d);
void volumes_class_del(struct model *m, uint32_t name);

struct csi_limit {
    uint32_t driver;
    int32_t count; /* volumes that can be attached */
};
/* The drivers of a CSINode that say how much they can attach. */
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

/* PreFilter of the three, each asked only when its switch is on; false refuses the task everywhere
 * and *why is REASON_TEXT "plugin VolumeZone pre-predicates failed ..." */
bool volumes_pre_limits(struct model *m, task_id t, struct reason *why);
bool volumes_pre_zone(struct model *m, task_id t, struct reason *why);
bool volumes_pre_binding(struct model *m, task_id t, struct reason *why);
/* Whether the task has claims at all; without, none of the filters below need be called. */
bool volumes_asked(const struct model *m, task_id t);
/* REASON_NONE when the node passes. */
struct reason volumes_filter_limits(struct model *m, task_id t, node_id n);
struct reason volumes_filter_zone(struct model *m, task_id t, node_id n);
/* Several reasons may come together (K9.2); returns how many. */
uint32_t volumes_filter_binding(struct model *m, task_id t, node_id n, struct reason why[4]);

/* Assumes volumes for the unbound claims on that node; false when they are no longer to be had, and
 * then nothing is reserved. A reservation the task held before is given back first. */
bool volumes_reserve(struct model *m, task_id t, node_id n);
/* Without a reservation does nothing. Due, too, when the task is deleted. */
void volumes_unreserve(struct model *m, task_id t);

/* What a reservation wants written to the API before its task is bound (K9.3): the volume's
 * claimRef or, for a volume yet to be made, the claim's selected-node annotation. And how far that
 * is, by what the API has shown. */
struct volume_bind {
    uint32_t claim; /* "namespace/name" */
    uint32_t claim_uid;
    uint32_t pv;      /* 0: to be provisioned on the task's node */
    uint32_t volume;  /* the claim's, else pv */
    uint64_t rv;      /* of the object to be written */
    bool claim_gone;  /* there is no such claim any more */
    bool pv_gone;     /* nor such a volume */
    bool prebound;    /* the volume names the claim already, if without uid */
    bool written;     /* what is wanted is there ... */
    bool taken;       /* ... or something else is */
    bool unreachable; /* the volume does not suit the node any more */
    bool bound;       /* the claim is fully bound, to a volume that is known */
};
/* Fills at most room of ret; returns how many there are. */
uint32_t volumes_reserved(const struct model *m, task_id t, struct volume_bind *ret, uint32_t room);
/* Whether every claim of the task is fully bound: the task may go to its node. */
bool volumes_bound(const struct model *m, task_id t);
