// SPDX-License-Identifier: Apache-2.0
// The unplaced part of a job: its Pending tasks by sub-job, in the order of tries. Task order is
// constant within a session, so a list is sorted once, and a copy of it is just a position.
#pragma once

#include "scheduler/session.h"

struct task_list {
    task_id *at;
    uint32_t n, next;
};

/* A role with a task that found no node, and the reasons. */
struct failed_role {
    uint32_t role;
    shape_id shape;
    struct fit_log *log;
};

struct sheet_row {
    sub_id sub;
    bool required; /* its group needs more ready sub-jobs */
    bool placed;   /* the domain search placed it */
    struct task_list tasks;
    struct failed_role *failed;
    uint32_t nfailed;
};

struct worksheet {
    struct session *ssn;
    job_id job;
    struct sheet_row *rows;
    uint32_t n;
    struct hk_heap order; /* rows with tasks left: required ones first, then SubJobOrder */
};

enum sheet_kind {
    SHEET_ALLOCATE, /* lists tasks whose only gate is our own, so that allocate can open it */
    SHEET_EVICT,    /* leaves out all gated tasks */
};

/* Whether worksheet_init would find a task. */
bool worksheet_has_work(const struct session *ssn, job_id j, enum sheet_kind kind);
void worksheet_init(struct worksheet *w, struct session *ssn, job_id j, enum sheet_kind kind);
/* A copy with its own positions and order, without the failures. */
struct worksheet *worksheet_copy(const struct worksheet *w);

/* The role's failure in this row, NULL when none. */
const struct failed_role *sheet_row_failed(const struct sheet_row *r, uint32_t role);
void sheet_row_fail(struct session *ssn, struct sheet_row *r, task_id t, struct fit_log *log);
/* Clears failures, and fit errors of tasks from that position on. */
void sheet_row_forget(struct session *ssn, struct sheet_row *r, uint32_t from);

/* Pending tasks of a job without gates, best-effort ones included, in TaskOrder. */
struct task_list task_list_ungated(struct session *ssn, job_id j);
static inline bool task_list_take(struct task_list *l, task_id *ret)
{
    if (l->next == l->n) {
        return false;
    }
    *ret = l->at[l->next++];
    return true;
}
