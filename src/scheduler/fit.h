// SPDX-License-Identifier: Apache-2.0
// Why a task does not fit a node, as data: a reason code with an argument, counted per task. Text
// is built only when needed.
#pragma once

#include "scheduler/model/model.h"

enum verdict {
    FIT = 0,
    UNFIT, /* Unschedulable: eviction may help */
    NEVER, /* UnschedulableAndUnresolvable, or an error: eviction does not help */
};

enum reason_code {
    REASON_NONE,
    REASON_INSUFFICIENT, /* arg: dimension */
    REASON_POD_NUMBER,
    REASON_NODE_GONE,
    REASON_UNSCHEDULABLE,
    REASON_NODE_AFFINITY,
    REASON_TAINT,
    REASON_PORTS,
    REASON_POD_AFFINITY,
    REASON_POD_ANTI_AFFINITY,
    REASON_EXISTING_ANTI_AFFINITY,
    REASON_SPREAD,
    REASON_SPREAD_LABEL,
    REASON_VOLUME_COUNT,
    REASON_VOLUME_ZONE,
    REASON_VOLUME_AFFINITY,
    REASON_VOLUME_BIND,
    REASON_VOLUME_CAPACITY,
    REASON_VOLUME_GONE,
    REASON_SHARD,
    REASON_TEXT, /* arg: string id, NEVER */
    REASON_N,
};

struct reason {
    uint16_t code; /* enum reason_code */
    uint32_t arg;
};

enum verdict reason_verdict(enum reason_code c);
/* Appends the reason as users read it, such as "Insufficient cpu"
 * (docs/reference/plugins.md section 2). */
void reason_write(const struct model *m, struct reason r, struct hk_buf *out);

struct reason_count {
    struct reason why;
    uint32_t count;
};

/* The reasons found in a search for a node. Lives in the session's arena. */
struct fit_log {
    uint32_t nnodes; /* nodes that recorded a reason */
    uint32_t n, cap;
    struct reason_count *at;
    uint64_t *never;      /* bit per node row that answered NEVER */
    uint32_t never_words; /* length of never in words */
    const char *base;     /* replaces "0/N nodes are unavailable", or NULL */
    hyper_id hyper;       /* search limited to it; NO_HYPER for the whole cluster */
    struct hk_arena *mem;
};

/* log may be NULL. A node may record several reasons; nnodes grows by fit_log_node. */
void fit_log_add(struct fit_log *log, struct reason why);
void fit_log_node(struct fit_log *log, node_id n, enum verdict v);
/* The node fit message (FitErrors.Error). */
void fit_log_write(const struct model *m, const struct fit_log *log, struct hk_buf *out);
