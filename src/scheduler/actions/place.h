// SPDX-License-Identifier: Apache-2.0
// The task loop of allocate (4.2.3): one sub-job's tasks onto the nodes of one hyperNode.
#pragma once

#include "scheduler/actions/worksheet.h"

struct placer {
    struct session *ssn;
    const char **limit_text; /* by queue: what a refused job is told, made on demand */
    hyper_id *lowest;        /* by node: its hyperNode of the lowest tier, made on demand */
    /* Whose window of candidates select has at hand: turns of one job in a row go on with it. */
    job_id job;
    hyper_id domain;
    /* The last refusal before any node was looked at; tasks of a job meet the same one in a row. */
    struct fit_log *pre_log;
    struct reason pre_why;
};

void placer_init(struct placer *p, struct session *ssn);

/* Places tasks of the row until its sub-job is ready or tasks run out. True: what was placed (maybe
 * nothing, when the sub-job was ready before) stands. False: nothing changed, but tasks were taken
 * from the list all the same. */
bool place_tasks(struct placer *p, struct worksheet *w, struct sheet_row *row, hyper_id domain);

/* Puts every task left on the node it was nominated for, inside the nominated hyperNode of the
 * sub-job (4.2.5), or nothing at all; then the nomination is dropped. */
bool place_nominated(struct placer *p, struct worksheet *w, struct sheet_row *row);

/* Says that the job's queue has no room for it. Volcano leaves no trace of that; whoever asks why
 * deserves one. */
void place_note_limit(struct placer *p, job_id j);

/* A log that has the same reason on every node of the domain, shared by those who meet it in a row.
 */
struct fit_log *place_refusal(struct placer *p, hyper_id domain, struct reason why);
