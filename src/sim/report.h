// SPDX-License-Identifier: Apache-2.0
// What an offline cluster has to tell, for people and for programs.
#pragma once

#include "sim/cluster.h"

/* What nodes held before the first cycle. Ready when zeroed. */
struct report_before {
    HK_VEC(int64_t) used; /* [node row][cpu, memory, pods] */
};

void report_before(struct report_before *b, const struct cluster *c);
void report_before_fini(struct report_before *b);

void report_text(const struct cluster *c, const struct report_before *b, bool colour,
                 struct hk_buf *out);
void report_json(const struct cluster *c, struct hk_buf *out);

/* Something in the input could not be taken. */
bool report_has_problems(const struct cluster *c);

/* An amount of one dimension as Kubernetes writes it ("1500m", "4Gi"), rounded to what is stored.
 */
void report_amount(const struct model *m, uint32_t dim, double v, struct hk_buf *out);

/* Queues worth a row. */
bool report_shows_queue(const struct model *m, uint32_t q);
/* What the queue deserves: as a plugin worked it out, else as its spec says; NULL when neither. */
const struct rvec *report_deserved(const struct cluster *c, uint32_t q);

/* The tables of a report, for those who want them alone. */
void report_queues(const struct cluster *c, bool colour, struct hk_buf *out);
void report_nodes(const struct cluster *c, const struct report_before *b, bool colour,
                  struct hk_buf *out);
void report_jobs(const struct cluster *c, bool colour, struct hk_buf *out);
void report_tasks(const struct cluster *c, bool colour, struct hk_buf *out);
/* Nothing when there are none. */
void report_problems(const struct cluster *c, bool colour, struct hk_buf *out);
