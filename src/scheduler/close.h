// SPDX-License-Identifier: Apache-2.0
// The results of a session: the new phase and condition of each PodGroup it examined, and why each
// pod waits, in Volcano's wording (docs/reference/scheduler.md section 7). Emit writes them to the
// API, `hekla schedule` prints them. Texts live in the session's arena.
#pragma once

#include "scheduler/session.h"

enum note_condition { NOTE_NONE, NOTE_UNSCHEDULABLE, NOTE_SCHEDULED };

struct job_note {
    job_id job;
    uint8_t phase; /* enum pg_phase, already in the model */
    uint8_t prev_phase;
    uint8_t condition; /* enum note_condition */
    uint32_t running, failed, succeeded;
    int64_t missing;     /* unschedulable, with texts: tasks missing from its minimum */
    const char *message; /* of the condition; NULL without session_opts.texts */
    const char
        *event; /* "{p}/{t} tasks in gang unschedulable: ..." for waiting groups, else NULL */
};

struct pod_note {
    task_id task;
    const char *reason; /* "Schedulable", "Unschedulable" */
    const char *message;
    node_id nominated; /* value for nominatedNodeName, NO_NODE none */
};
