// SPDX-License-Identifier: Apache-2.0
// Resource dimensions: names become small integers at ingest, amounts whole integers (milli-CPU,
// bytes, milli-units, plain counts). Arithmetic stays exact: a single amount is at most DIM_LIMIT
// and the model refuses an object that would carry a total past DIM_TOTAL_LIMIT.
#pragma once

#include "base/map.h"

enum {
    DIM_CPU = 0,  /* milli-cores */
    DIM_MEM = 1,  /* bytes */
    DIM_PODS = 2, /* plain count; every task asks for one */
    DIM_MAX = 64,
};

#define DIM_LIMIT ((int64_t)1 << 50)
#define DIM_TOTAL_LIMIT ((int64_t)1 << 61)

/* How a Kubernetes quantity becomes the stored integer. */
enum dim_unit {
    DIM_MILLI, /* cpu and extended resources: value x 1000 */
    DIM_WHOLE, /* memory, hugepages, ephemeral-storage in bytes; pods, attachable volumes in pieces
                */
};

struct dims {
    uint32_t n;
    uint32_t name[DIM_MAX]; /* in the model's string table */
    struct hk_str text[DIM_MAX];
    enum dim_unit unit[DIM_MAX];
    /* Volcano stores bytes of ephemeral-storage and hugepages times 1000; its texts and metrics
     * show that number, so those dimensions are printed times this. */
    uint32_t shown_scale[DIM_MAX];
};

void dims_init(struct dims *d, struct hk_intern *str);
/* Whether Volcano accounts for this name at all (scheduler.md 2.1). */
bool dims_counts(struct hk_str name);
/* The dimension, DIM_MAX when the table is full, HK_NONE when !dims_counts(name). */
uint32_t dims_intern(struct dims *d, struct hk_intern *str, struct hk_str name);
/* The dimension or HK_NONE. */
uint32_t dims_find(const struct dims *d, struct hk_str name);
