// SPDX-License-Identifier: Apache-2.0
// How many pods of a large workload exist at a time. A pod that nothing can run yet costs memory,
// disk and time in every program that looks at pods; a replica that waits as a number costs
// nothing. So a workload with many more replicas than its gang needs gets the pods of the gang and
// some more, and further ones as those are placed on nodes.
//
//   replicas <= gang + POD_WINDOW: all
//   else: what the gang lacks, and POD_WINDOW pods without a node
//
// Volcano Jobs divide the window among their tasks (job_window.c); ReplicaSets,
// ReplicationControllers, StatefulSets and batch/v1 Jobs have one of their own (work_window.c).
#pragma once

#include "controllers/kinds.h"

/* Pods without a node that a workload may have beyond its gang. */
enum { POD_WINDOW = 1000 };

/* A set of equal pods of which some have to wait. */
struct pod_window {
    int64_t missing; /* pods still to be created */
    int64_t lacking; /* of these, needed by the gang before it can start */
    int64_t waiting; /* pods that exist and have no node */
    int64_t size;    /* how many may wait: POD_WINDOW, or a task's part of it */
};

/* Whether a workload with this many replicas gets only some of its pods at first. */
bool pod_window_is_needed(int64_t replicas, int64_t gang);
/* How many pods may be created now. */
int64_t pod_window_room(const struct pod_window *w);
/* Whether the pod counts as waiting for a node. */
bool pod_window_counts(const struct pod_digest *d);
