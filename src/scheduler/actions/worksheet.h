// SPDX-License-Identifier: Apache-2.0
// What a job still has to place: its Pending tasks by sub-job, in the order they will be tried.
// Task order cannot change within a session, so a list is sorted once and a copy of it is a
// position.
#pragma once

#include "scheduler/session.h"

struct task_list {
    task_id *at;
    uint32_t n, next;
};

/* A role of which a task found no node, and what it met. */
struct failed_role {
    uint32_t role;
    shape_id shape;
    struct fit_log *log;
};

struct sheet_row {
    sub_id sub;
    bool required; /* its group lacks ready sub-jobs */
    bool placed;   /* the domain path found it a place */
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
    SHEET_ALLOCATE, /* tasks held by the queue-admission gate alone are listed (4.2.1) */
    SHEET_EVICT,    /* gated tasks are left out */
};

/* Whether worksheet_init would find a task. */
bool worksheet_has_work(const struct session *ssn, job_id j, enum sheet_kind kind);
void worksheet_init(struct worksheet *w, struct session *ssn, job_id j, enum sheet_kind kind);
/* A copy with its own positions and order, without the failures. */
struct worksheet *worksheet_copy(const struct worksheet *w);

/* The role's failure in this row, NULL when none. */
const struct failed_role *sheet_row_failed(const struct sheet_row *r, uint32_t role);
void sheet_row_fail(struct session *ssn, struct sheet_row *r, task_id t, struct fit_log *log);
/* Forgets failures and the fit errors of tasks from that position on. */
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
