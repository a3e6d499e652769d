// SPDX-License-Identifier: Apache-2.0
// The task loop of allocate: one sub-job's tasks onto the nodes of one hyperNode
// (docs/reference/scheduler.md section 4.2).
#pragma once

#include "scheduler/actions/worksheet.h"

struct placer {
    struct session *ssn;
    const char **limit_text; /* by queue: message for a refused job, made on demand */
    hyper_id *lowest;        /* by node: its hyperNode of the lowest tier, made on demand */
    /* Job and domain of select's current candidate window; consecutive turns of one job reuse
     * it. */
    job_id job;
    hyper_id domain;
    /* The last refusal before any node search; tasks of a job often get the same one in a row. */
    struct fit_log *pre_log;
    struct reason pre_why;
};

void placer_init(struct placer *p, struct session *ssn);

/* Places tasks of the row until its sub-job is ready or no task is left. True: the placements are
 * kept (perhaps none, when the sub-job was ready before). False: nothing changed, except that tasks
 * were removed from the list. */
bool place_tasks(struct placer *p, struct worksheet *w, struct sheet_row *row, hyper_id domain);

/* Puts every task left on the node it was nominated for, inside the hyperNode that was freed for
 * the sub-job. If one of them cannot go there, places nothing and drops the nomination
 * (docs/reference/scheduler.md section 4.5). */
bool place_nominated(struct placer *p, struct worksheet *w, struct sheet_row *row);

/* Records that the job's queue has no room for it. Volcano does not report this. */
void place_note_limit(struct placer *p, job_id j);

/* A log with the same reason on every node of the domain; reused by consecutive tasks with that
 * reason. */
struct fit_log *place_refusal(struct placer *p, hyper_id domain, struct reason why);
