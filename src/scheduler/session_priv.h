// SPDX-License-Identifier: Apache-2.0
// Shared by session.c, stmt.c, select*.c and close.c only.
#pragma once

#include "scheduler/session.h"

struct scheduler_mem {
    struct hk_arena arena;
    struct hk_rand rand;
    struct op_vec ops;
    struct decision_vec decisions;
    struct task_vec gates;
    uint64_t sessions; /* opened so far */
    uint64_t serial;
    uint32_t ntask; /* rows the columns below cover */
    struct last_tx *last;
    struct fit_log **fit;
    uint32_t *op_of;
    HK_VEC(task_id) touched; /* rows of the columns that may be non-zero */
    struct select *select;
};

/* Records that the columns of this task may be non-zero. */
void session_touch(struct session *ssn, task_id t);

/* close.c */
void close_jobs(struct session *ssn);
/* stmt.c: undoes everything that was not committed. */
void stmt_release(struct session *ssn);
/* select.c: scheduler_mem creates and frees it. select_open runs when a session opens, select_rewound when
 * the journal is rewound. */
struct select *select_new(void);
void select_free(struct select *s);
void select_open(struct session *ssn);
void select_rewound(struct session *ssn);
