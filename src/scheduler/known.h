// SPDX-License-Identifier: Apache-2.0
// What the API shows of our own output: statuses, conditions and counts, as of the last event or of
// our writes in flight. One row per pod, PodGroup and queue, in the order of the model's rows. Two
// writers, on one thread: ingest stores what events say, emit what it is about to write; while a
// write of ours waits or is in flight, events of that object are older and change nothing. Rows
// hold hashes where a hash suffices to see a difference.
#pragma once

#include "scheduler/model/model.h"

/* At most one status write per object in flight; changes meanwhile cause one more. */
struct write_turn {
    bool queued, busy, again; /* a write waits; is in flight; another must follow it */
    bool lazy, again_lazily;  /* that write may be delayed */
};

/* Whether the API's events may be older than our writes. */
static inline bool known_turn_is_open(const struct write_turn *t)
{
    return t->queued || t->busy;
}

struct prebind; /* emit_volume.c */

struct pod_known {
    uint32_t uid;       /* string id, 0: unknown */
    uint64_t said;      /* known_condition_hash of PodScheduled, 0 unknown */
    uint32_t nominated; /* string id */
    bool is_false;      /* its status is False already */
    /* Set by emit alone. */
    bool forgets;     /* the API still names a node that is promised no more */
    uint16_t waiting; /* writes not yet through: events change nothing */
    bool busy;        /* one of the writes is in flight */
    bool ungated;     /* its gate is or was being removed */
    struct prebind *prebind;
};

enum cond_type { COND_UNSCHEDULABLE, COND_SCHEDULED, COND_N };
extern const char *const known_cond_types[COND_N];
enum cond_status { COND_ABSENT, COND_TRUE, COND_FALSE };
struct cond_known {
    uint8_t status;     /* enum cond_status */
    uint64_t said;      /* known_reason_hash */
    uint64_t id[2];     /* transitionID */
    int64_t changed_ns; /* lastTransitionTime */
};

struct group_known {
    uint32_t uid; /* string id, 0: unknown */
    uint8_t phase;
    uint32_t running, failed, succeeded;
    struct cond_known cond[COND_N];
    char *others;  /* conditions of other types: a JSON array, or NULL */
    char *message; /* of Unschedulable while it is True, or NULL */
    /* Set by emit alone. */
    struct write_turn turn;
    uint64_t rv;    /* of our last write: events before it change nothing */
    char *warning;  /* warning Event for the next write, or NULL */
    uint64_t event; /* hash of the last Unschedulable Event */
    uint64_t refusal;
};

struct queue_known {
    uint32_t name;          /* string id, 0: unknown */
    uint64_t said;          /* known_amounts_hash of status.allocated, 0 unknown */
    struct write_turn turn; /* set by emit alone */
};

/* Our own NodeShard. */
#define KNOWN_IN_USE "nodesInUse"
#define KNOWN_TO_ADD "nodesToAdd"
#define KNOWN_TO_REMOVE "nodesToRemove"
struct shard_known {
    uint64_t said; /* known_text_hash of the three lists as JSON, 0 unknown */
    /* Set by emit alone. */
    char *text; /* the wanted status, JSON */
    uint64_t rv;
    struct write_turn turn;
};

struct known {
    struct model *m;
    HK_VEC(struct pod_known) pods;     /* by task row */
    HK_VEC(struct group_known) groups; /* by job row */
    HK_VEC(struct queue_known) queues; /* by queue row */
    struct shard_known shard;
    /* Counts events that a bind with volumes may wait for: its claims and volumes, its pod, a
     * deleted node. */
    uint64_t volume_events;
};

/* Rows refer to strings of the model, so end it before the model. */
void known_init(struct known *k, struct model *m);
void known_fini(struct known *k);

/* The row of the pod, PodGroup or queue; an empty one when the model's row has a new object.
 * Valid until the next call for a new row. */
struct pod_known *known_pod(struct known *k, task_id t);
struct group_known *known_group(struct known *k, job_id j);
struct queue_known *known_queue(struct known *k, queue_id q);
/* The status in that revision of the job's PodGroup is older than our last write. */
bool known_group_is_ahead(const struct known *k, job_id j, uint64_t rv);

/* Sets *id and moves its string reference. */
void known_set_id(struct known *k, uint32_t *id, uint32_t to);
/* The message of Unschedulable; empty: none. */
void known_set_message(struct group_known *g, struct hk_str s);

uint64_t known_hash(uint64_t h, struct hk_str s);
uint64_t known_text_hash(struct hk_str s);
uint64_t known_reason_hash(struct hk_str reason, struct hk_str message);
uint64_t known_condition_hash(struct hk_str status, struct hk_str reason, struct hk_str message);
/* v: an amount per dimension. */
uint64_t known_amounts_hash(const struct model *m, const int64_t *v);
/* Whether a queue's status lists the amount: cpu and memory always, others when not zero. */
bool known_amount_is_shown(uint32_t dim, int64_t v);

/* A transitionID: a version 4 UUID made of the two numbers. */
void known_transition_id(uint64_t run, uint64_t session, uint64_t ret[2]);
