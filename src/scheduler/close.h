// SPDX-License-Identifier: Apache-2.0
// What a session has to say at its end: the new phase and condition of each PodGroup it looked at,
// and why each pod waits, in the words users know (scheduler.md 1.7-1.10). Emit writes them, `hekla
// schedule` prints them. Texts live in the session's arena.
#pragma once

#include "scheduler/session.h"

enum note_condition { NOTE_NONE, NOTE_UNSCHEDULABLE, NOTE_SCHEDULED };

struct job_note {
    job_id job;
    uint8_t phase; /* enum pg_phase, already in the model */
    uint8_t prev_phase;
    uint8_t condition; /* enum note_condition */
    uint32_t running, failed, succeeded;
    int64_t missing;     /* unschedulable, with texts: how many tasks its minimum lacks */
    const char *message; /* of the condition; NULL when texts were not asked for */
    const char
        *event; /* "{p}/{t} tasks in gang unschedulable: ..." for waiting groups, else NULL */
};

struct pod_note {
    task_id task;
    const char *reason; /* "Schedulable", "Unschedulable" */
    const char *message;
    node_id nominated; /* to be written as nominatedNodeName, NO_NODE when not */
};
