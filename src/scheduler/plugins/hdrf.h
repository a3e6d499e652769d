// SPDX-License-Identifier: Apache-2.0
// Hierarchical dominant resource fairness: drf between queues along the paths of their annotations.
#pragma once

#include "scheduler/plugins/drf.h"

/* Lives in the session's arena; borrows the drf state for the amounts of jobs. */
struct hdrf *hdrf_new(struct session *ssn, struct drf *drf);
/* A task got (sign 1) or lost (-1) its place; the job's share is already invalidated. */
void hdrf_moved(struct hdrf *h, const struct model *m, task_id t, int sign);
int hdrf_queue_order(struct hdrf *h, const struct model *m, queue_id a, queue_id b);
void hdrf_reclaimable(struct hdrf *h, const struct model *m, task_id reclaimer, struct victims *v);
