// SPDX-License-Identifier: Apache-2.0
// Which pods a Service selects: per namespace, the labels of every pod that has an address, and the
// selector of every Service. Rows are those of the mirrors.
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "codec/json.h"

/* The labels of a pod, or a selector: the hash of each key with its value. */
typedef HK_VEC(uint64_t) endpoint_labels;

struct endpoint_pod {
    uint32_t space; /* HK_NONE: the pod has no endpoint */
    uint32_t at;    /* its place in the space */
    endpoint_labels labels;
    struct hk_buf facts; /* what endpoints say of it, as JSON; see endpoint_pods.c */
};

struct endpoint_selector {
    uint32_t space; /* HK_NONE: the Service selects nothing */
    uint32_t at;
    endpoint_labels labels;
};

/* A namespace. */
struct endpoint_space {
    HK_VEC(uint32_t) pods, selectors;
};

struct endpoint_pods {
    struct hk_map space_of; /* hash of the namespace's name to its space */
    HK_VEC(struct endpoint_space) spaces;
    HK_VEC(struct endpoint_pod) pods;
    HK_VEC(struct endpoint_selector) selectors;
};

void endpoint_pods_fini(struct endpoint_pods *p);
/* A pod is new or has changed, or is gone (root NULL). Calls fn with the row of each Service that
 * selects it, or did, unless nothing has changed that an endpoint shows. */
void endpoint_pods_put(struct endpoint_pods *p, uint32_t row, struct hk_str ns,
                       const struct json *root, void (*fn)(void *ctx, uint32_t service), void *ctx);
/* The same of a Service. */
void endpoint_pods_select(struct endpoint_pods *p, uint32_t row, struct hk_str ns,
                          const struct json *root);
/* Calls fn with the facts of every pod that the Service selects, parsed into a. */
void endpoint_pods_each(const struct endpoint_pods *p, uint32_t service, struct hk_arena *a,
                        void (*fn)(void *ctx, const struct json *facts), void *ctx);
