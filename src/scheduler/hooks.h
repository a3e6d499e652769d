// SPDX-License-Identifier: Apache-2.0
// How the answers of plugins combine (docs/reference/scheduler.md section 3), named once and tested
// once. Each hook is an array of plugins in tier order, made when the configuration is read.
#pragma once

#include "scheduler/plugin.h"

/* Hook kinds; most have a configuration switch (hook_switch), the others are always on. */
enum hook_kind {
    HOOK_JOB_ORDER,
    HOOK_QUEUE_ORDER,
    HOOK_VICTIM_QUEUE_ORDER,
    HOOK_TASK_ORDER,
    HOOK_SUB_ORDER,
    HOOK_PRE_PREDICATE,
    HOOK_FILTER,
    HOOK_SCORE,
    HOOK_BEST_NODE,
    HOOK_HYPER_ORDER,
    HOOK_GRADIENT_JOB,
    HOOK_GRADIENT_SUB,
    HOOK_PREEMPTABLE,
    HOOK_RECLAIMABLE,
    HOOK_EVICTABLE,
    HOOK_VICTIM_TASKS,
    HOOK_OVERUSED,
    HOOK_PREEMPTIVE,
    HOOK_ALLOCATABLE,
    HOOK_BINDABLE,
    HOOK_JOB_READY,
    HOOK_JOB_PIPELINED,
    HOOK_SUB_READY,
    HOOK_SUB_PIPELINED,
    HOOK_JOB_VALID,
    HOOK_JOB_STARVING,
    HOOK_JOB_ENQUEUEABLE,
    HOOK_JOB_ENQUEUED,
    HOOK_ALLOCATE,
    HOOK_DEALLOCATE,
    HOOK_N,
};

struct hook {
    const struct plugin *p;
    void *self;
    uint32_t tier;
};

struct hook_list {
    struct hook *at;
    uint32_t n;
};

/* The hook's public name ("JobOrder") and its switch ("enableJobOrder", NULL when it has none). */
const char *hook_name(enum hook_kind k);
const char *hook_switch(enum hook_kind k);
bool plugin_has_hook(const struct plugin *p, enum hook_kind k);

/* Comparisons are total: creation time, then name break ties. Negative: a first. */
int hooks_job_order(struct session *ssn, job_id a, job_id b);
/* What the plugins say alone, 0 on a tie: age must not decide between victims. */
int hooks_job_order_plugins(struct session *ssn, job_id a, job_id b);
int hooks_queue_order(struct session *ssn, queue_id a, queue_id b);
int hooks_victim_queue_order(struct session *ssn, queue_id a, queue_id b, queue_id preemptor);
int hooks_task_order(struct session *ssn, task_id a, task_id b);
int hooks_sub_order(struct session *ssn, sub_id a, sub_id b);
/* Whether victim a goes before b, for the preemptor's job and queue (docs/reference/scheduler.md
 * section 3.5). Never true both ways. */
bool hooks_victim_before(struct session *ssn, task_id a, task_id b, task_id preemptor);

bool hooks_pre_predicate(struct session *ssn, task_id t, struct reason *why);
/* Moves the nodes that pass every plugin to nodes[0..ret), in order. */
uint32_t hooks_filter(struct session *ssn, task_id t, enum filter_mode mode, node_id *nodes,
                      uint32_t n, struct fit_log *log);
bool hooks_filter_local(struct session *ssn, task_id t);
/* Sets score[i] of nodes[i] to the sum over plugins; negative when one failed, and then the scores
 * are invalid. */
int hooks_score(struct session *ssn, task_id t, const node_id *nodes, uint32_t n, double *score);
bool hooks_score_local(struct session *ssn, task_id t);
/* The first plugin with an answer decides; NO_NODE when there is none. */
node_id hooks_best_node(struct session *ssn, task_id t, const node_id *nodes, uint32_t n,
                        const double *score);

/* Victims in the session's arena; *ret NULL and 0 when there are none. */
uint32_t hooks_preemptable(struct session *ssn, task_id preemptor, const task_id *in, uint32_t n,
                           task_id **ret);
uint32_t hooks_reclaimable(struct session *ssn, task_id reclaimer, const task_id *in, uint32_t n,
                           task_id **ret);
uint32_t hooks_evictable(struct session *ssn, enum evict_kind kind, job_id job, hyper_id domain,
                         const task_id *in, uint32_t n, task_id **ret);
uint32_t hooks_victim_tasks(struct session *ssn, const task_id *in, uint32_t n, task_id **ret);

bool hooks_overused(struct session *ssn, queue_id q);
bool hooks_preemptive(struct session *ssn, queue_id q, const task_id *t, uint32_t n);
bool hooks_allocatable(struct session *ssn, queue_id q, task_id t);
bool hooks_bindable(struct session *ssn, queue_id q, task_id t);
bool hooks_job_ready(struct session *ssn, job_id j);
bool hooks_job_pipelined(struct session *ssn, job_id j);
bool hooks_sub_ready(struct session *ssn, sub_id s);
bool hooks_sub_pipelined(struct session *ssn, sub_id s);
/* NULL when valid. */
const char *hooks_job_valid(struct session *ssn, job_id j);
bool hooks_job_starving(struct session *ssn, job_id j);
bool hooks_job_enqueueable(struct session *ssn, job_id j);
void hooks_job_enqueued(struct session *ssn, job_id j);
/* Calls every plugin; false when one refused. */
bool hooks_allocate(struct session *ssn, task_id t);
void hooks_deallocate(struct session *ssn, task_id t);

/* Sets score[i] to the sum of hyper_order; false on an error. */
bool hooks_hyper_order(struct session *ssn, sub_id s, const hyper_id *at, uint32_t n,
                       double *score);
/* [[start]] when no plugin decides; false on an error (no gradients). */
bool hooks_gradient_job(struct session *ssn, job_id j, hyper_id start, enum gradient_purpose why,
                        struct gradients *ret);
bool hooks_gradient_sub(struct session *ssn, sub_id s, hyper_id start, enum gradient_purpose why,
                        struct gradients *ret);
