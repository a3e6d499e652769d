// SPDX-License-Identifier: Apache-2.0
// Reports about a simulated cluster, as text and JSON.
#pragma once

#include "sim/cluster.h"

/* Usage of nodes before the first cycle. Zero it to initialise. */
struct report_before {
    HK_VEC(int64_t) used; /* [node row][cpu, memory, pods] */
};

void report_before(struct report_before *b, const struct cluster *c);
void report_before_fini(struct report_before *b);

void report_text(const struct cluster *c, const struct report_before *b, bool colour,
                 struct hk_buf *out);
void report_json(const struct cluster *c, struct hk_buf *out);

/* Whether some input was invalid. */
bool report_has_problems(const struct cluster *c);

/* Writes an amount of one dimension as Kubernetes does ("1500m", "4Gi"), rounded to stored
 * units. */
void report_amount(const struct model *m, uint32_t dim, double v, struct hk_buf *out);

/* Whether the queue gets a row in reports. */
bool report_shows_queue(const struct model *m, uint32_t q);
/* The queue's deserved amounts: from a plugin, else from its spec; NULL when neither. */
const struct rvec *report_deserved(const struct cluster *c, uint32_t q);

/* Single tables of a report. */
void report_queues(const struct cluster *c, bool colour, struct hk_buf *out);
void report_nodes(const struct cluster *c, const struct report_before *b, bool colour,
                  struct hk_buf *out);
void report_jobs(const struct cluster *c, bool colour, struct hk_buf *out);
void report_tasks(const struct cluster *c, bool colour, struct hk_buf *out);
/* Writes nothing when there are none. */
void report_problems(const struct cluster *c, bool colour, struct hk_buf *out);
