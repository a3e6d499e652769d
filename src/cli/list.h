// SPDX-License-Identifier: Apache-2.0
// Columns and rows of the lists of jobs, pods, queues, nodes and flows.
//
//   list.c         jobs, pods, flows, and the order of lists
//   list_room.c    queues and nodes: capacity and usage
#pragma once

#include "api/object.h"
#include "base/map.h"
#include "cli/grid.h"

#define LIST_GPU "nvidia.com/gpu"

/* Objects of one kind, borrowed. */
struct list_set {
    struct api_object *const *at;
    uint32_t n;
};

/* Requests of all unfinished pods on one node. */
struct list_use {
    struct hk_str node;
    int64_t cpu_milli, memory_milli, gpu_milli;
    uint32_t pods;
};

/* Objects of a second kind used in rows: PodGroups for jobs and queues, pods for nodes. */
struct list_more {
    struct list_set set;
    struct hk_map map; /* hash of the owner's uid to a group, or of the node's name to a use */
    struct list_use *uses;
    uint32_t nuses, cap;
};
/* Borrows the objects. */
void list_more_init(struct list_more *m, enum api_kind_id kind, struct list_set set);
void list_more_fini(struct list_more *m);
/* The job's PodGroup, or NULL. */
const struct api_object *list_group_of(const struct api_object *job,
                                       const struct list_more *groups);
struct list_use list_use_of(struct hk_str node, const struct list_more *pods);

struct list_how {
    bool wide;       /* more columns, nothing shortened */
    bool namespaces; /* show a namespace column */
    int64_t now_ns;
};

/* heads adds columns to an empty grid; `all` are the objects of the list. */
typedef void list_heads(const struct list_how *how, struct grid *g);
typedef void list_row(const struct api_object *o, const struct list_set *all,
                      const struct list_more *more, const struct list_how *how, struct grid *g);
list_heads list_job_heads, list_pod_heads, list_queue_heads, list_node_heads, list_flow_heads;
list_row list_job, list_pod, list_queue, list_node, list_flow;

/* Sorts the objects for their list: jobs and flows by creation, pods by job, task and index, queues
 * below their parents, all others by name. */
void list_sort(enum api_kind_id kind, struct api_object **at, uint32_t n);

/* Why a job does not run, or has failed: one line, or "". */
void list_job_why(const struct api_object *job, const struct list_more *groups, struct hk_buf *out);

/* "Ready", "NotReady" or "Unknown". */
struct hk_str list_node_state(const struct json *node);
/* A pod's request, in thousandths. */
int64_t list_pod_milli(const struct json *pod, const char *resource);
/* The amount of that name in a ResourceList, in thousandths; fallback when absent. */
int64_t list_milli(const struct json *resources, const char *name, int64_t fallback);
/* "1.5" or "12Gi", depending on the resource. */
void list_write_amount(const char *resource, int64_t milli, struct hk_buf *out);
