// SPDX-License-Identifier: Apache-2.0
// What the controllers tell Prometheus, under Volcano's names. Counts come from what the mirrors
// see change, gauges from the mirrors as they are when asked.
#pragma once

#include "base/str.h"

struct manager;
struct metrics;

/* Listens to the manager's mirrors; to be made before its first run, and freed after it. */
struct metrics *metrics_new(struct manager *m);
/* Takes NULL. */
void metrics_free(struct metrics *x);
/* While the manager lives. */
void metrics_write(const struct metrics *x, struct hk_buf *out);
