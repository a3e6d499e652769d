// SPDX-License-Identifier: Apache-2.0
// Queries to a session about one job: which jobs come before it, and why its tasks got no node.
// Answers are data in the session's arena, from the engine's own order functions and fit logs;
// nothing is computed twice. The caller turns them into text.
#pragma once

#include "scheduler/session.h"

/* Why a job comes before another. */
enum ahead_by {
    AHEAD_PLUGIN,       /* a plugin's job order */
    AHEAD_OLDER,        /* no plugin decided; it was created first */
    AHEAD_NAME,         /* created at the same time: by name */
    AHEAD_QUEUE_PLUGIN, /* a plugin's queue order */
    AHEAD_QUEUE_OLDER,
    AHEAD_QUEUE_NAME,
};

struct ahead {
    job_id job;
    uint8_t by;         /* enum ahead_by */
    const char *plugin; /* the deciding plugin, NULL when none */
};

/* Waiting jobs that come before j now, in order: those of its queue, and those of queues before its
 * own. Call between session_open and session_run. */
uint32_t explain_ahead(struct session *ssn, job_id j, struct ahead **ret);

/* A reason why nodes refused a task. */
struct lack {
    struct reason why;
    uint32_t nodes; /* nodes with this reason */
    /* REASON_INSUFFICIENT and REASON_POD_NUMBER: in stored units. */
    uint32_t dim;
    int64_t want, most; /* requested; most free on any one node the task may use */
    node_id most_on;    /* NO_NODE when there is none */
};

/* Tasks of one role and shape. */
struct lack_part {
    task_id first;  /* in the order of tasks */
    uint32_t tasks; /* waiting tasks */
    uint32_t fit;   /* of those, how many had a node before the attempt was undone */
    bool searched;  /* nodes were searched: lacks hold the result */
    const char *base;
    uint32_t nodes; /* nodes that refused */
    struct lack *at;
    uint32_t n;
};

struct job_lacks {
    uint32_t waiting, fit; /* waiting tasks; those placed before the attempt was undone */
    const char *refusal;   /* by admission or the queue, NULL none */
    const char *invalid;   /* why the gang is not valid, NULL when it is */
    bool overused;         /* its queue is overused: the job was not tried */
    bool admitted;
    struct lack_part *at;
    uint32_t n;
};

/* Call between session_run and session_close. */
void explain_lacks(struct session *ssn, job_id j, struct job_lacks *ret);
