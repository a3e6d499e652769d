// SPDX-License-Identifier: Apache-2.0
// For tests of the combination rules: plugins that answer as each case tells them to, and a model
// made by hand with only what the fallbacks read.
#pragma once

#include "scheduler/hooks.h"
#include "scheduler/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- a plugin that answers whatever its state says ---- */

struct fake {
    int order;         /* answer of every comparison for (0, 1); its negative for (1, 0) */
    enum vote vote;    /* of votes and victim lists */
    bool yes;          /* of yes-no questions, allocate, gradients */
    const char *names; /* victims, one letter each: 'a' is task 0 */
    double add;        /* to every score; negative refuses to score */
    uint32_t drop;     /* filter: the node it lets not pass */
    uint32_t best;     /* best node */
    const char *invalid;
    bool not_local;
    uint32_t calls;
    uint32_t seen; /* candidates shown at the last call */
};

static int fake_cmp(void *self, uint32_t a, uint32_t b)
{
    struct fake *f = self;

    f->calls++;
    return a < b ? f->order : -f->order;
}

static int fake_job_order(struct session *ssn, void *self, job_id a, job_id b)
{
    return fake_cmp(self, a.i, b.i);
}

static int fake_queue_order(struct session *ssn, void *self, queue_id a, queue_id b)
{
    return fake_cmp(self, a.i, b.i);
}

static int fake_victim_queue_order(struct session *ssn, void *self, queue_id a, queue_id b,
                                   queue_id preemptor)
{
    ((struct fake *)self)->seen = preemptor.i;
    return fake_cmp(self, a.i, b.i);
}

static int fake_task_order(struct session *ssn, void *self, task_id a, task_id b)
{
    return fake_cmp(self, a.i, b.i);
}

static int fake_sub_order(struct session *ssn, void *self, sub_id a, sub_id b)
{
    return fake_cmp(self, a.i, b.i);
}

static bool fake_yes(void *self)
{
    struct fake *f = self;

    f->calls++;
    return f->yes;
}

static enum vote fake_vote(void *self)
{
    struct fake *f = self;

    f->calls++;
    return f->vote;
}

static bool fake_pre_predicate(struct session *ssn, void *self, task_id t, struct reason *why)
{
    if (!fake_yes(self)) {
        *why = (struct reason){.code = REASON_TEXT, .arg = ((struct fake *)self)->seen};
        return false;
    }
    return true;
}

static uint32_t fake_filter(struct session *ssn, void *self, task_id t, enum filter_mode mode,
                            node_id *nodes, uint32_t n, struct fit_log *log)
{
    struct fake *f = self;
    uint32_t kept = 0;

    f->calls++;
    f->seen = n;
    for (uint32_t i = 0; i < n; i++) {
        if (nodes[i].i != f->drop) {
            nodes[kept++] = nodes[i];
        }
    }
    return kept;
}

static bool fake_local(struct session *ssn, void *self, task_id t)
{
    return !((struct fake *)self)->not_local;
}

static int fake_score(struct session *ssn, void *self, task_id t, const node_id *nodes, uint32_t n,
                      double *score)
{
    struct fake *f = self;

    f->calls++;
    for (uint32_t i = 0; i < n; i++) {
        score[i] += f->add * (nodes[i].i + 1);
    }
    return f->add < 0 ? -1 : 0;
}

static node_id fake_best_node(struct session *ssn, void *self, task_id t, const node_id *nodes,
                              uint32_t n, const double *score)
{
    return (node_id){((struct fake *)self)->best};
}

static int fake_hyper_order(struct session *ssn, void *self, sub_id s, const hyper_id *at,
                            uint32_t n, double *score)
{
    struct fake *f = self;

    for (uint32_t i = 0; i < n; i++) {
        score[i] += f->add * (at[i].i + 1);
    }
    return f->add < 0 ? -1 : 0;
}

static bool fake_gradients(struct session *ssn, void *self, struct gradients *ret)
{
    struct fake *f = self;

    f->calls++;
    *ret = (struct gradients){0};
    return f->yes;
}

static bool fake_gradient_job(struct session *ssn, void *self, job_id j, hyper_id start,
                              enum gradient_purpose why, struct gradients *ret)
{
    return fake_gradients(ssn, self, ret);
}

static bool fake_gradient_sub(struct session *ssn, void *self, sub_id s, hyper_id start,
                              enum gradient_purpose why, struct gradients *ret)
{
    return fake_gradients(ssn, self, ret);
}

static enum vote fake_victims(void *self, struct victims *v)
{
    struct fake *f = self;

    f->seen = v->n;
    for (const char *c = f->names ? f->names : ""; *c; c++) {
        v->out[v->nout++] = (task_id){(uint32_t)(*c - 'a')};
    }
    return fake_vote(self);
}

static enum vote fake_preemptable(struct session *ssn, void *self, task_id preemptor,
                                  struct victims *v)
{
    return fake_victims(self, v);
}

static enum vote fake_evictable(struct session *ssn, void *self, enum evict_kind kind, job_id job,
                                hyper_id domain, struct victims *v)
{
    assert_int_equal(kind, EVICT_GANG_RECLAIM);
    assert_int_equal(job.i, 1);
    assert_int_equal(domain.i, 7);
    return fake_victims(self, v);
}

static void fake_victim_tasks(struct session *ssn, void *self, struct victims *v)
{
    fake_victims(self, v);
}

static bool fake_queue_yes(struct session *ssn, void *self, queue_id q)
{
    return fake_yes(self);
}

static bool fake_preemptive(struct session *ssn, void *self, queue_id q, const task_id *t,
                            uint32_t n)
{
    return fake_yes(self);
}

static bool fake_allocatable(struct session *ssn, void *self, queue_id q, task_id t)
{
    return fake_yes(self);
}

static bool fake_job_yes(struct session *ssn, void *self, job_id j)
{
    return fake_yes(self);
}

static enum vote fake_job_vote(struct session *ssn, void *self, job_id j)
{
    return fake_vote(self);
}

static bool fake_sub_ready(struct session *ssn, void *self, sub_id s)
{
    return fake_yes(self);
}

static enum vote fake_sub_pipelined(struct session *ssn, void *self, sub_id s)
{
    return fake_vote(self);
}

static const char *fake_job_valid(struct session *ssn, void *self, job_id j)
{
    ((struct fake *)self)->calls++;
    return ((struct fake *)self)->invalid;
}

static void fake_job_enqueued(struct session *ssn, void *self, job_id j)
{
    ((struct fake *)self)->calls++;
}

static bool fake_allocate(struct session *ssn, void *self, task_id t)
{
    return fake_yes(self);
}

static void fake_deallocate(struct session *ssn, void *self, task_id t)
{
    ((struct fake *)self)->calls++;
}

static const struct plugin fake_plugin = {
    .name = "fake",
    .job_order = fake_job_order,
    .queue_order = fake_queue_order,
    .victim_queue_order = fake_victim_queue_order,
    .task_order = fake_task_order,
    .sub_order = fake_sub_order,
    .pre_predicate = fake_pre_predicate,
    .filter = fake_filter,
    .filter_local = fake_local,
    .score = fake_score,
    .score_local = fake_local,
    .best_node = fake_best_node,
    .hyper_order = fake_hyper_order,
    .gradient_job = fake_gradient_job,
    .gradient_sub = fake_gradient_sub,
    .preemptable = fake_preemptable,
    .reclaimable = fake_preemptable,
    .evictable = fake_evictable,
    .victim_tasks = fake_victim_tasks,
    .overused = fake_queue_yes,
    .preemptive = fake_preemptive,
    .allocatable = fake_allocatable,
    .bindable = fake_allocatable,
    .job_ready = fake_job_yes,
    .job_pipelined = fake_job_vote,
    .sub_ready = fake_sub_ready,
    .sub_pipelined = fake_sub_pipelined,
    .job_valid = fake_job_valid,
    .job_starving = fake_job_yes,
    .job_enqueueable = fake_job_vote,
    .job_enqueued = fake_job_enqueued,
    .allocate = fake_allocate,
    .deallocate = fake_deallocate,
};

/* ---- the model ---- */

enum { NTASK = 8, NJOB = 4, NQUEUE = 3, NSUB = 3, NHOOK = 4 };

struct world {
    struct model m;
    struct session ssn;
    struct hk_arena mem;
    struct task tasks[NTASK];
    struct job jobs[NJOB];
    struct queue queues[NQUEUE];
    struct sub_job subs[NSUB];
    struct fake fakes[NHOOK];
    struct hook hooks[HOOK_N][NHOOK];
};

static inline uint32_t text(struct world *w, const char *s)
{
    return hk_intern(&w->m.str, hk_str(s));
}

static int setup(void **state)
{
    struct world *w = hk_zalloc(sizeof(*w));

    w->m.tasks.at = w->tasks;
    w->m.tasks.len = NTASK;
    w->m.jobs.at = w->jobs;
    w->m.jobs.len = NJOB;
    w->m.queues.at = w->queues;
    w->m.queues.len = NQUEUE;
    w->m.subs.at = w->subs;
    w->m.subs.len = NSUB;
    for (uint32_t i = 0; i < NTASK; i++) {
        w->tasks[i] = (struct task){.index = ID_NONE, .job = {0}, .used = true};
    }
    for (uint32_t i = 0; i < NJOB; i++) {
        w->jobs[i].used = w->jobs[i].has_pg = true;
    }
    for (uint32_t i = 0; i < NQUEUE; i++) {
        w->queues[i].used = true;
    }
    w->ssn.m = &w->m;
    w->ssn.mem = &w->mem;
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    hk_arena_fini(&w->mem);
    hk_intern_fini(&w->m.str);
    hk_free(w);
    return 0;
}

/* Lists fakes 0..n under the kind, in the tiers given as digits: "112" puts two in tier 1. */
static struct fake *arrange(struct world *w, enum hook_kind kind, const char *tiers)
{
    struct hook_list *list = &w->ssn.hooks[kind];

    memset(w->fakes, 0, sizeof(w->fakes));
    list->at = w->hooks[kind];
    list->n = (uint32_t)strlen(tiers);
    assert_true(list->n <= NHOOK);
    for (uint32_t i = 0; i < list->n; i++) {
        list->at[i] = (struct hook){&fake_plugin, &w->fakes[i], (uint32_t)(tiers[i] - '0')};
    }
    return w->fakes;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
