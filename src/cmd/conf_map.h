// SPDX-License-Identifier: Apache-2.0
// The scheduler's configuration as an object of the API: the ConfigMap that Volcano's installation
// mounts, and that those read who want to know by which rules jobs are placed.
#pragma once

#include "api/port.h"
#include "base/clock.h"

#define CONF_MAP_NS "volcano-system"
#define CONF_MAP_NAME "volcano-scheduler-configmap"
#define CONF_MAP_KEY "volcano-scheduler.conf"

/* Keeps the ConfigMap as the configuration in force is. Ready when zeroed. */
struct conf_map {
    uint64_t said;   /* hash of what was written last, 0 nothing yet */
    uint64_t saying; /* and of what is being written */
    uint64_t call;   /* under way, 0 none */
    int64_t again_ns;
};

/* Writes what changed; an empty text stands for the built-in configuration, and removes the object.
 * Whoever polls the port takes the answer. Returns when it wants to be called again at the latest,
 * by the monotonic clock; INT64_MAX when it is content. */
int64_t conf_map_keep(struct conf_map *m, struct port *port, struct hk_clock *clock,
                      struct hk_str text);
