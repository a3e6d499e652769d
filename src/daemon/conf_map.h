// SPDX-License-Identifier: Apache-2.0
// The scheduler's configuration in the API: the ConfigMap that Volcano's installer mounts. Clients
// read it to learn the scheduling rules.
#pragma once

#include "api/port.h"
#include "base/clock.h"

#define CONF_MAP_NS "volcano-system"
#define CONF_MAP_NAME "volcano-scheduler-configmap"
#define CONF_MAP_KEY "volcano-scheduler.conf"

/* Keeps the ConfigMap equal to the active configuration. Ready when zeroed. */
struct conf_map {
    uint64_t said;   /* hash of the last text written; 0: none */
    uint64_t saying; /* hash of the text being written */
    uint64_t call;   /* in flight; 0: none */
    int64_t again_ns;
};

/* Writes a changed text; an empty text (built-in configuration) deletes the object. The owner of
 * the port polls it. Returns the latest time of the next call (monotonic); INT64_MAX: none. */
int64_t conf_map_keep(struct conf_map *m, struct port *port, struct hk_clock *clock,
                      struct hk_str text);
