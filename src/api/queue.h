// SPDX-License-Identifier: Apache-2.0
// Queues (scheduling.volcano.sh/v1beta1).
#pragma once

#include "api/meta.h"

enum api_queue_state {
    API_QUEUE_NO_STATE, /* unset; the fairness plugins treat this unlike Open */
    API_QUEUE_OPEN,
    API_QUEUE_CLOSED,
    API_QUEUE_CLOSING,
    API_QUEUE_UNKNOWN,
};

const char *api_queue_state_name(enum api_queue_state state);

enum api_dequeue { API_DEQUEUE_TRAVERSE, API_DEQUEUE_FIFO };

/* Node groups by name. */
struct api_group_affinity {
    struct api_strs required, preferred;
};

struct api_extend_cluster {
    struct hk_str name;
    int32_t weight;
    struct api_resources capacity;
};

struct api_queue {
    const struct json *raw;
    struct api_meta meta;
    int32_t weight;                  /* 1 when unset */
    struct api_resources capability; /* a missing resource is unlimited */
    struct api_resources guarantee, deserved;
    bool reclaimable; /* true when unset */
    struct hk_str parent, type;
    int32_t priority;
    enum api_dequeue dequeue;
    struct api_group_affinity group_affinity, group_anti_affinity;
    API_LIST(struct api_extend_cluster) extend_clusters;

    enum api_queue_state state;
    struct api_resources allocated;
};

int api_queue_decode(const struct json *doc, struct hk_arena *a, struct api_queue *ret,
                     struct hk_err *err) HK_CHECKED;

/* The two queues that every cluster has: the parent of all others, and the queue of jobs that name
 * none. The server, the scheduler and `hekla manifests` create them from these rows. */
enum { API_QUEUE_ROOT, API_QUEUE_DEFAULT, API_NBUILTIN_QUEUES };
struct api_builtin_queue {
    const char *name;
    int32_t weight;
    bool reclaimable;
};
extern const struct api_builtin_queue api_builtin_queues[API_NBUILTIN_QUEUES];
/* Its manifest under the given name, since --default-queue can rename the second. */
struct json api_builtin_queue_manifest(const struct api_builtin_queue *q, struct hk_str name,
                                       struct hk_arena *a);
