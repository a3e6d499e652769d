// SPDX-License-Identifier: Apache-2.0
// Shared by select.c, select_search.c and select_slot.c only.
#pragma once

#include "scheduler/select.h"
#include "scheduler/session_priv.h"

enum { NSLOT = 8, BLOCK = 64 };

/* Nodes of a lower group go first, whatever their scores. */
enum group {
    GROUP_IDLE,       /* fits now */
    GROUP_IDLE_OTHER, /* the same, in the shard of another scheduler */
    GROUP_FUTURE,     /* fits later */
    GROUP_FUTURE_OTHER,
    NGROUP,
};

struct cand {
    double score;
    uint32_t seq; /* order of visit in the window */
    node_id node;
    enum group group;
};

struct slot {
    uint64_t run; /* the task loop it belongs to, 0 unused */
    shape_id shape;
    uint32_t start, visited;
    uint32_t op_len;    /* journal length at the last use */
    uint64_t op_serial; /* newest serial at that time */
    uint64_t gains;
    bool heaped; /* candidates are a heap in c; else in node and score, in order of visit */
    HK_VEC(node_id) node;
    HK_VEC(double) score;
    struct {
        struct cand *at;
        uint32_t len, cap;
    } c;
    uint32_t *pos; /* by node row: 1 + index in c, valid when the row's stamp is this slot's */
    uint64_t *stamp;
    uint64_t life; /* stamp value of this use of the slot */
    uint32_t npos;
};

/* A shape that found no node. */
struct failure {
    uint64_t session; /* 0: not valid */
    uint64_t gains;
    uint64_t serial; /* newest op when it failed */
    struct fit_log *log;
};

struct select {
    uint64_t run;
    uint64_t lives;
    hyper_id domain;
    uint32_t rotate; /* where the next search starts */
    struct slot slots[NSLOT];
    uint32_t next_slot;
    struct failure *fail; /* by shape */
    uint32_t nfail;
    HK_VEC(shape_id) failed; /* in order of serial, for rewinds */
    HK_VEC(node_id) found;
    HK_VEC(double) score;
    HK_VEC(node_id) group;
};

static inline uint64_t newest_serial(const struct session *ssn)
{
    return ssn->ops.len ? ssn->ops.at[ssn->ops.len - 1].serial : 0;
}

/* Without Releasing or Pipelined tasks, future equals idle. */
static inline bool fits_idle(const struct model *m, const struct shape *s, node_id n)
{
    return m->unsettled == 0 || model_fits_idle(m, s, n);
}

static inline enum group group_of(const struct session *ssn, const struct shape *s, node_id n)
{
    return (fits_idle(ssn->m, s, n) ? GROUP_IDLE : GROUP_FUTURE) + !session_in_shard(ssn, n);
}

static inline enum placement placement_of(enum group g)
{
    return g < GROUP_FUTURE ? PLACE_IDLE : PLACE_FUTURE;
}

/* ---- select_search.c ---- */

/* Rows to visit: a hyperNode's list, or every row of the table. */
struct field {
    const node_id *list; /* NULL: rows 0..n */
    uint32_t n;
    uint32_t live; /* basis of the sample size */
};

struct search {
    struct field f;
    task_id t;
    enum filter_mode mode;
    bool check;
    uint32_t start, visited; /* continues where it left off */
    uint32_t want;
    node_id *out;
    uint32_t n;
};

/* Starts a search at the rotating start. Its nodes go to a buffer of struct select that the next
 * search overwrites. */
struct search search_for(struct session *ssn, task_id t, hyper_id domain, enum filter_mode mode,
                         bool check);
/* Continues until out has want nodes or every row was visited; advances the rotating start. */
void search_run(struct session *ssn, struct search *q);
/* Whether the search would keep the node of that row. */
bool search_row(struct session *ssn, const struct search *q, uint32_t row, node_id *ret);
/* Asks every node again and returns why none fits. */
struct fit_log *search_explain(struct session *ssn, const struct search *q, hyper_id domain);

/* ---- select_slot.c ---- */

void slot_fini(struct slot *s);
/* The best node of the window that the task's shape shares, *ret_where PLACE_NONE without one;
 * false when scoring failed. */
bool slot_choose(struct session *ssn, task_id t, node_id *ret, enum placement *ret_where);
