// SPDX-License-Identifier: Apache-2.0
// Resource dimensions: ingest turns names into small integers and amounts into whole numbers
// (milli-CPU, bytes, milli-units, counts). Arithmetic stays exact: one amount is at most DIM_LIMIT,
// and the model refuses an object that would raise a total above DIM_TOTAL_LIMIT.
#pragma once

#include "base/map.h"

enum {
    DIM_CPU = 0,  /* milli-cores */
    DIM_MEM = 1,  /* bytes */
    DIM_PODS = 2, /* count; every task requests one */
    DIM_MAX = 64,
};

#define DIM_LIMIT ((int64_t)1 << 50)
#define DIM_TOTAL_LIMIT ((int64_t)1 << 61)

/* How a Kubernetes quantity becomes the stored integer. */
enum dim_unit {
    DIM_MILLI, /* cpu and extended resources: value x 1000 */
    DIM_WHOLE, /* memory, hugepages, ephemeral-storage: bytes; pods, attachable volumes: count */
};

struct dims {
    uint32_t n;
    uint32_t name[DIM_MAX]; /* in the model's string table */
    struct hk_str text[DIM_MAX];
    enum dim_unit unit[DIM_MAX];
    /* Volcano stores ephemeral-storage and hugepages as bytes times 1000, and its texts and metrics
     * show that number: multiply by this for output. */
    uint32_t shown_scale[DIM_MAX];
};

void dims_init(struct dims *d, struct hk_intern *str);
/* Whether Volcano accounts for this name at all (docs/reference/scheduler.md section 1). */
bool dims_counts(struct hk_str name);
/* The dimension, DIM_MAX when the table is full, HK_NONE when !dims_counts(name). */
uint32_t dims_intern(struct dims *d, struct hk_intern *str, struct hk_str name);
/* HK_NONE when the name is unknown. */
uint32_t dims_find(const struct dims *d, struct hk_str name);
