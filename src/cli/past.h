// SPDX-License-Identifier: Apache-2.0
// The history of jobs: when they were queued, started and ended, how long they waited and ran, and
// every attempt of their pods, from the record in their status.
#pragma once

#include "cli/grid.h"
#include "cli/list.h"

/* Times in nanoseconds since 1970, 0 when there is none. */
struct past {
    const struct api_object *job;
    int64_t queued_ns, started_ns, ended_ns;
    int64_t waited_ns, ran_ns; /* until now while it lasts; -1: not yet */
    int64_t retries, evictions;
    int exit_code; /* of a job that has ended */
    bool over;
};

struct past past_of(const struct api_object *job, int64_t now_ns);

void past_heads(bool namespaces, struct grid *g);
void past_row(const struct past *p, bool namespaces, struct grid *g);
/* One job in detail: the values of its row, its phases, its attempts and its Events. */
void past_page(const struct past *p, const struct list_set *events, const struct term *t,
               struct hk_buf *out);
/* The same as JSON. Lives in a, and borrows from the job. */
struct json past_json(const struct past *p, struct hk_arena *a);
