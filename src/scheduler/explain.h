// SPDX-License-Identifier: Apache-2.0
// Asking a session about one job: who comes before it, and why its tasks got no node. Answers are
// data in the session's arena, taken from the engine's own order functions and fit logs; nothing is
// worked out a second time. Words are made by whoever prints them.
#pragma once

#include "scheduler/session.h"

/* What puts a job before another. */
enum ahead_by {
    AHEAD_PLUGIN,       /* a plugin's order of jobs */
    AHEAD_OLDER,        /* nobody had an opinion, and it was created first */
    AHEAD_NAME,         /* or at the same time: by name */
    AHEAD_QUEUE_PLUGIN, /* a plugin's order of queues */
    AHEAD_QUEUE_OLDER,
    AHEAD_QUEUE_NAME,
};

struct ahead {
    job_id job;
    uint8_t by;         /* enum ahead_by */
    const char *plugin; /* whose opinion it is, NULL when nobody's */
};

/* Waiting jobs that come before j as things stand, in their order: those of its queue, and those of
 * queues that come before its own. To be asked between session_open and session_run. */
uint32_t explain_ahead(struct session *ssn, job_id j, struct ahead **ret);

/* A reason why nodes refused a task. */
struct lack {
    struct reason why;
    uint32_t nodes; /* that gave it */
    /* REASON_INSUFFICIENT and REASON_POD_NUMBER: in stored units. */
    uint32_t dim;
    int64_t want, most; /* asked for; most that is free on one node the task may go to */
    node_id most_on;    /* NO_NODE when there is none */
};

/* Tasks of one role and shape. */
struct lack_part {
    task_id first;  /* in the order of tasks */
    uint32_t tasks; /* that wait */
    uint32_t fit;   /* of those, how many had a node before the attempt was given up */
    bool searched;  /* nodes were looked at: lacks tell the outcome */
    const char *base;
    uint32_t nodes; /* that refused */
    struct lack *at;
    uint32_t n;
};

struct job_lacks {
    uint32_t waiting, fit; /* tasks that wait; of those, nearly placed */
    const char *refusal;   /* of admission or of the queue, NULL none */
    const char *invalid;   /* why the gang does not count as one, NULL when it does */
    bool overused;         /* its queue holds all it may have: nobody looked at the job */
    bool admitted;
    struct lack_part *at;
    uint32_t n;
};

/* To be asked between session_run and session_close. */
void explain_lacks(struct session *ssn, job_id j, struct job_lacks *ret);
