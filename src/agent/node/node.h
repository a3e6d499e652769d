// SPDX-License-Identifier: Apache-2.0
// A node in the API: registers itself, reports its status, and follows what others write to it.
// lease.h sends its heartbeats, object.h builds and reads the Node object. nodes.h owns one node,
// fleet.h many simulated ones.
#pragma once

#include "agent/host/host.h"

enum node_step {
    NODE_CREATE, /* create the object */
    NODE_READ,   /* read an existing one */
    NODE_STATUS, /* report the status */
    NODE_SPEC,   /* set labels, and remove taints of a node that was not ready */
    NODE_REST,   /* wait for the next report */
};

enum node_condition {
    NODE_MEMORY_PRESSURE,
    NODE_DISK_PRESSURE,
    NODE_PID_PRESSURE,
    NODE_READY,
    NODE_NCONDITIONS
};

struct node;

/* What the node asks of its owner. A single node has all functions but `answered`, a node of a
 * fleet only that one. */
struct node_ops {
    /* Lists all pods of the node again. */
    void (*relist)(void *ctx);
    /* The list requested last has arrived. */
    bool (*is_listed)(void *ctx);
    /* Everything that runs here belongs to pods of the server; with deletions, pods being deleted
     * have ended, too. */
    bool (*is_settled)(void *ctx, bool deletions);
    /* A call of the node was answered. */
    void (*answered)(void *ctx, struct node *n);
};

struct node {
    struct host *host;
    const struct node_ops *ops;
    void *ctx; /* of ops */
    const char *name;
    bool in_fleet; /* false: a single node, which sends heartbeats */
    uint32_t zone; /* in a fleet; 0 none */
    uint8_t step;  /* enum node_step */
    bool registered;
    uint32_t failures;
    uint64_t call;  /* in flight about the node; 0 none */
    uint64_t lease; /* in flight about its lease; 0 none */
    bool lease_missing;
    uint64_t heard_rv; /* of a foreign change during a call; 0 none */
    int64_t due_ns, lease_due_ns;
    int64_t mend_ns; /* do not overwrite foreign changes before this time */
    struct {
        bool is;
        int64_t since_ns; /* wall */
    } conditions[NODE_NCONDITIONS];
    int64_t images_stamp; /* of the store of images as reported */
    char *uid;
    struct api_object *seen;  /* the node in the last answer, or NULL */
    struct api_object *known; /* the node in the last answer or event, or NULL; not in a fleet */
    int64_t *used;            /* amounts its pods have booked (pod/fit.h); NULL: nothing yet */
    /* Not in a fleet: before the node reports Ready, the agent compares what runs with the pods
     * that the server has now. */
    bool unchecked;     /* the comparison is still to do */
    bool doubted;       /* the server has marked the node as unreachable */
    bool check_told;    /* it takes long: a line was logged */
    int64_t check_ns;   /* when it started */
    int64_t contact_ns; /* when the server last accepted a write of the node; 0: never */
};

/* Interval of unchanged status reports. */
#define NODE_REPORT_NS (300 * SECOND_NS)

void node_init(struct node *n, struct host *h, const char *name, const struct node_ops *ops,
               void *ctx);
void node_fini(struct node *n);
/* Does what is due; returns the time of the next action. */
int64_t node_tick(struct node *n, int64_t now_ns);
/* Handles a new state of the Node object; false when the node must report its status again. */
bool node_hear(struct node *n, struct api_object *o);
/* When it may do so; limits the rate, so call it once per report. */
int64_t node_mend_ns(struct node *n);
/* Events of a watch on the single node. */
void node_on_put(struct node *n, struct api_object *o);
void node_on_del(struct node *n);
