// SPDX-License-Identifier: Apache-2.0
// Topology-aware preemption: tries evictions node by node until enough nodes are known to work,
// rewinding each time, then repeats them on the node where they cost least. Upstream simulates on
// copies of nodes; here the journal is the simulation, so queue limits and filters see the
// resulting state.

#include "scheduler/actions/preempt_priv.h"
#include "scheduler/stmt.h"

struct candidate {
    node_id node;
    task_id *victims; /* most important first */
    uint32_t n;
    int32_t top_priority; /* of the first victim */
    int64_t sum;          /* of priorities, each shifted to be positive */
    int64_t earliest_ns;  /* start among those of the highest priority */
};

static uint32_t candidates_wanted(const struct preempt_args *a, uint32_t nodes)
{
    int64_t n = (int64_t)nodes * a->candidate_percentage / 100;

    n = HK_MAX(n, a->candidates_min);
    n = HK_MIN(n, a->candidates_max);
    return (uint32_t)HK_MAX(HK_MIN(n, (int64_t)nodes), 0);
}

/* As in kube-scheduler: no priority adds a negative amount to the sum. */
#define SHIFT ((int64_t)INT32_MAX + 1)

static void preempt_dryrun_compute_cost(const struct session *ssn, struct candidate *c)
{
    const struct model *m = ssn->m;
    int32_t highest = INT32_MIN;

    c->top_priority = model_task(m, c->victims[0])->pod_priority;
    for (uint32_t i = 0; i < c->n; i++) {
        const struct task *v = model_task(m, c->victims[i]);
        const int64_t start = v->start_ns ? v->start_ns : ssn->now_ns;
        c->sum += v->pod_priority + SHIFT;
        if (v->pod_priority > highest) {
            highest = v->pod_priority;
            c->earliest_ns = start;
        } else if (v->pod_priority == highest) {
            c->earliest_ns = HK_MIN(c->earliest_ns, start);
        }
    }
}

static bool hurts_less(const struct candidate *a, const struct candidate *b)
{
    if (a->top_priority != b->top_priority) {
        return a->top_priority < b->top_priority;
    }
    if (a->sum != b->sum) {
        return a->sum < b->sum;
    }
    if (a->n != b->n) {
        return a->n < b->n;
    }
    return a->earliest_ns > b->earliest_ns;
}

/* False when the node needs no victim (allocate will use it) or has too few victims. */
static bool try_node(struct preemptor *p, task_id t, node_id n, struct candidate *ret)
{
    struct session *ssn = p->ssn;
    const stmt_mark_t mark = stmt_mark(ssn);
    task_id *victims = NULL;
    uint32_t nvictim, gone;

    if (!preempt_victims(p, t, n, &victims, &nvictim) || nvictim == 0 ||
        !room_make(&p->room, t, n, victims, nvictim, &gone)) {
        return false;
    }
    const bool lasts = gone > 0 && preempt_occupy(p, t, n, victims, gone);
    stmt_rewind(ssn, mark);
    if (!lasts) {
        return false;
    }
    *ret = (struct candidate){
        .node = n,
        .victims = hk_arena_array(ssn->mem, gone, sizeof(victims[0])),
        .n = gone,
    };
    for (uint32_t i = 0; i < gone; i++) {
        ret->victims[i] = victims[gone - 1 - i];
    }
    preempt_dryrun_compute_cost(ssn, ret);
    return true;
}

static bool carry_out(struct preemptor *p, task_id t, const struct candidate *c)
{
    struct session *ssn = p->ssn;
    const stmt_mark_t mark = stmt_mark(ssn);

    for (uint32_t i = 0; i < c->n; i++) {
        stmt_evict(ssn, c->victims[i], p->room.reason, model_task(ssn->m, t)->job);
    }
    if (stmt_pipeline(ssn, t, c->node, true)) {
        return true;
    }
    stmt_rewind(ssn, mark);
    return false;
}

bool preempt_dryrun(struct preemptor *p, task_id t, const node_id *nodes, uint32_t n)
{
    const uint32_t want = candidates_wanted(p->args, n);
    struct candidate best = {0}, next;
    uint32_t found = 0;

    if (n == 0) {
        return false;
    }
    const uint32_t start = hk_rand_below(p->ssn->rand, n);
    for (uint32_t i = 0; i < n && found < want; i++) {
        if (!try_node(p, t, nodes[((uint64_t)start + i) % n], &next)) {
            continue;
        }
        if (found++ == 0 || hurts_less(&next, &best)) {
            best = next;
        }
    }
    return found > 0 && carry_out(p, t, &best);
}
