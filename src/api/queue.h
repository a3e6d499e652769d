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
