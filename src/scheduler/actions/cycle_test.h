// SPDX-License-Identifier: Apache-2.0
// For tests of actions: one cycle over a rig, and what it decided in one line.
#pragma once

#include "scheduler/plugins/rig_test.h"

/* Runs the configured actions; the session stays open for questions. */
static inline void cycle_run(struct rig *r, const char *conf)
{
    rig_open_at(r, conf, 0);
    session_run(&r->ssn);
}

static inline int cycle_cmp(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static inline const char *cycle_join(struct rig *r, const char **at, uint32_t n)
{
    const char *text = "";

    qsort(at, n, sizeof(at[0]), cycle_cmp);
    for (uint32_t k = 0; k < n; k++) {
        text = hk_arena_printf(r->ssn.mem, "%s%s%s", text, k ? " " : "", at[k]);
    }
    return text;
}

static inline const char *cycle_task(struct rig *r, task_id t, node_id n)
{
    const struct hk_str name = model_str(&r->m, model_task(&r->m, t)->name);
    const struct hk_str node = id_none(n) ? HK_STR("-") : model_str(&r->m, r->m.nodes.name[n.i]);

    return hk_arena_printf(r->ssn.mem, "%.*s@%.*s", HK_FMT(name), HK_FMT(node));
}

/* "p1@n1 p2@n1" in order of text: what was sent to be bound, or evicted. */
static inline const char *cycle_sent(struct rig *r, enum op_kind kind)
{
    const char *at[256];
    uint32_t n = 0;

    for (uint32_t k = 0; k < r->ssn.decisions.len && n < HK_LEN(at); k++) {
        const struct decision *d = &r->ssn.decisions.at[k];
        if (d->kind == kind) {
            at[n++] = cycle_task(r, d->task, d->node);
        }
    }
    return cycle_join(r, at, n);
}

/* The same for tasks in a state at the end of the cycle. */
static inline const char *cycle_in(struct rig *r, enum task_status status)
{
    const char *at[256];
    uint32_t n = 0;

    for (uint32_t k = 0; k < r->m.tasks.len && n < HK_LEN(at); k++) {
        if (r->m.tasks.at[k].used && r->m.tasks.at[k].status == status) {
            at[n++] = cycle_task(r, (task_id){k}, r->m.tasks.at[k].node);
        }
    }
    return cycle_join(r, at, n);
}

#define assert_bound(r, want) assert_string_equal(cycle_sent(r, OP_ALLOCATE), want)
#define assert_evicted(r, want) assert_string_equal(cycle_sent(r, OP_EVICT), want)
#define assert_pipelined(r, want) assert_string_equal(cycle_in(r, TASK_PIPELINED), want)

/* Ends the session and proves the books. */
static inline void cycle_end(struct rig *r)
{
    struct hk_err err = {0};

    rig_close(r);
    if (model_check(&r->m, &err) < 0) {
        fail_msg("%s", err.text);
    }
}
