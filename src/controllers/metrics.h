// SPDX-License-Identifier: Apache-2.0
// The controllers' Prometheus metrics, under Volcano's names. Counters follow changes in the
// mirrors; gauges are read from the mirrors on request.
#pragma once

#include "base/str.h"

struct manager;
struct metrics;

/* Listens to the manager's mirrors: create it before the first manager_run, free it after the
 * manager. */
struct metrics *metrics_new(struct manager *m);
/* Takes NULL. */
void metrics_free(struct metrics *x);
/* The manager must still exist. */
void metrics_write(const struct metrics *x, struct hk_buf *out);
