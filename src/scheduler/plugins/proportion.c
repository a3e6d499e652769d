// SPDX-License-Identifier: Apache-2.0
// proportion: divides the cluster among the queues with jobs by weight. A queue that has all it
// requests, or has reached its limit, leaves the rest to the others. The result is fixed for the
// session: a queue may use that much, and others can reclaim what it holds beyond.
#include "scheduler/plugins/ledger.h"
#include "scheduler/plugins/victims.h"

#include <math.h>

struct proportion {
    struct ledger books;
    struct sparse victim_queues;
    struct rvec *left; /* by slot of victim_queues */
    struct names_text last;
};

/* ---- the split ---- */

struct split {
    struct ledger *books;
    const struct model *m;
    bool *done;       /* by queue: its share is final */
    int64_t *victims; /* [queue][DIM_MAX]: held by terminating victims */
    struct rvec remaining;
};

static int64_t proportion_queue_weight(const struct model *m, uint32_t queue)
{
    return HK_MAX(m->queues.at[queue].weight, 0);
}

static int64_t open_weight(const struct split *s)
{
    int64_t sum = 0;

    for (uint32_t k = 0; k < s->books->n; k++) {
        sum += s->done[k] ? 0 : proportion_queue_weight(s->m, k);
    }
    return sum;
}

/* What terminating victims hold. Their owners create them again, so they still count as requests.
 * Without them (as upstream), every eviction would change the shares that caused it, and change
 * them back when the pod returns. */
static void count_victims(struct session *ssn, int64_t *sums)
{
    const struct model *m = ssn->m;
    const int64_t *leaving = m->nodes.releasing.col[DIM_PODS];

    for (uint32_t n = 0; m->unsettled > 0 && n < m->nodes.len; n++) {
        task_id t = leaving[n] > 0 ? m->nodes.first[n] : NO_TASK;
        for (; !id_none(t); t = model_task(m, t)->node_next) {
            const struct task *task = model_task(m, t);
            const queue_id q = ledger_queue(m, t);
            if (task->status == TASK_RELEASING && (task->flags & TASK_PREEMPT_VICTIM) &&
                !id_none(q)) {
                shape_add(task_shape(m, t), sums + (size_t)q.i * DIM_MAX);
            }
        }
    }
}

/* What the queue holds and requests. */
static void request_of(const struct split *s, uint32_t queue, struct rvec *ret)
{
    const int64_t *victims = s->victims + (size_t)queue * DIM_MAX;
    int64_t sum[DIM_MAX];

    for (uint32_t d = 0; d < s->books->ndim; d++) {
        sum[d] = s->m->queues.at[queue].request[d] + victims[d];
    }
    rvec_from(ret, sum, s->books->ndim);
}

/* Gives one queue its part of the remainder; adds the amount gained or given back. */
static void pour(struct split *s, uint32_t queue, double part, struct rvec *gained,
                 struct rvec *given)
{
    struct ledger_row *r = &s->books->at[queue];
    const struct rvec before = r->deserved;
    struct rvec request, more = s->remaining;

    request_of(s, queue, &request);
    rvec_scale(&more, part);
    rvec_add(&r->deserved, &more);
    rvec_min_inf(&r->deserved, &r->limit);
    rvec_min_zero(&r->deserved, &request);
    rvec_max(&r->deserved, &r->guarantee);

    s->done[queue] = rvec_le_zero(&request, &r->deserved) || rvec_same(&r->deserved, &before);
    rvec_exceed(&more, &r->deserved, &before);
    rvec_add(gained, &more);
    rvec_exceed(&more, &before, &r->deserved);
    rvec_add(given, &more);
}

/* One round over the unfinished queues, all from the same remainder; false after the last. */
static bool split_round(struct split *s)
{
    const int64_t weight = open_weight(s);
    const struct rvec before = s->remaining;
    struct rvec gained, given;

    if (weight == 0) {
        return false;
    }
    rvec_zero(&gained);
    rvec_zero(&given);
    for (uint32_t k = 0; k < s->books->n; k++) {
        if (!s->done[k]) {
            pour(s, k, (double)proportion_queue_weight(s->m, k) / (double)weight, &gained, &given);
        }
    }
    rvec_add(&s->remaining, &given);
    rvec_exceed(&s->remaining, &s->remaining, &gained);
    return !rvec_empty(&s->remaining) && !rvec_same(&s->remaining, &before);
}

/* The rounds leave a remainder below RVEC_EPS, whose distribution depends on all requests. Amounts
 * are whole numbers, so a share that is this close to the next one is rounded up; otherwise whether
 * a pod fits would depend on unrelated requests. */
static void round_shares(struct ledger *books)
{
    for (uint32_t k = 0; k < books->n; k++) {
        struct rvec *r = &books->at[k].deserved;
        RVEC_EACH(d, rvec_names(r))
        {
            const double whole = ceil(r->v[d]);
            r->v[d] = whole - r->v[d] <= RVEC_EPS ? whole : r->v[d];
        }
    }
}

static void split_cluster(struct session *ssn, struct ledger *books)
{
    struct split s = {.books = books, .m = ssn->m, .remaining = ssn->total};

    s.done = hk_arena_array(ssn->mem, books->n, sizeof(*s.done));
    s.victims = hk_arena_zalloc(ssn->mem, (size_t)books->n * DIM_MAX * sizeof(*s.victims));
    count_victims(ssn, s.victims);
    for (uint32_t k = 0; k < books->n; k++) {
        s.done[k] = !books->at[k].in;
    }
    while (split_round(&s)) {
        /* until a round changes nothing */
    }
    round_shares(books);
}

static void proportion_open(struct session *ssn, void *self)
{
    struct proportion *p = self;

    ledger_open(&p->books, ssn, false);
    ledger_flat_limits(&p->books, ssn);
    split_cluster(ssn, &p->books);
    sparse_init(&p->victim_queues, ssn->mem, p->books.n);
    p->left = hk_arena_array(ssn->mem, p->books.n, sizeof(*p->left));
}

/* ---- decisions ---- */

static int proportion_queue_order(struct session *ssn, void *self, queue_id a, queue_id b)
{
    struct proportion *p = self;
    const int32_t lp = model_queue(ssn->m, a)->priority, rp = model_queue(ssn->m, b)->priority;

    if (lp != rp) {
        return lp > rp ? -1 : 1;
    }
    const double l = ledger_share(&p->books, ledger_row(&p->books, a));
    const double r = ledger_share(&p->books, ledger_row(&p->books, b));
    return (l > r) - (l < r);
}

/* Whether the queue has reached its deserved amount in every dimension, pods included. */
static bool proportion_overused(struct session *ssn, void *self, queue_id q)
{
    struct proportion *p = self;
    const struct ledger_row *r = ledger_row(&p->books, q);
    struct rvec allocated;

    ledger_rvec(&p->books, r, &allocated);
    return rvec_le_zero(&r->deserved, &allocated);
}

static bool proportion_allocatable(struct session *ssn, void *self, queue_id q, task_id t)
{
    struct proportion *p = self;
    const struct ledger_row *r = ledger_row(&p->books, q);

    return !ledger_refuses(ssn, r, model_task(ssn->m, t)->job) &&
           ledger_has_room(r, &r->deserved, task_shape(ssn->m, t));
}

static bool proportion_bindable(struct session *ssn, void *self, queue_id q, task_id t)
{
    struct proportion *p = self;

    return ledger_has_room_now(ledger_row(&p->books, q), task_shape(ssn->m, t));
}

static bool proportion_preemptive(struct session *ssn, void *self, queue_id q, const task_id *t,
                                  uint32_t n)
{
    struct proportion *p = self;
    const struct ledger_row *r = ledger_row(&p->books, q);
    struct rvec used, more;

    ledger_rvec(&p->books, r, &used);
    tasks_rvec(ssn->m, t, n, &more);
    rvec_add(&used, &more);
    return !r->refusal && rvec_fits(&used, &r->deserved, &more, NULL);
}

/* Tasks of a queue are victims while it exceeds its deserved amount of any resource. */
static enum vote proportion_reclaimable(struct session *ssn, void *self, task_id reclaimer,
                                        struct victims *v)
{
    struct proportion *p = self;

    p->victim_queues.n = 0;
    for (uint32_t k = 0; k < v->n; k++) {
        const queue_id q = ledger_queue(ssn->m, v->in[k]);
        bool fresh;

        if (id_none(q)) {
            continue;
        }
        const struct ledger_row *r = ledger_row(&p->books, q);
        struct rvec *left = &p->left[sparse_add(&p->victim_queues, q.i, &fresh)], gone;
        if (fresh) {
            ledger_rvec(&p->books, r, left);
        }
        if (!rvec_le_zero(left, &r->deserved)) {
            shape_rvec(task_shape(ssn->m, v->in[k]), &gone);
            rvec_sub(left, &gone);
            victims_keep(v, v->in[k]);
        }
    }
    return PERMIT;
}

static enum vote proportion_job_enqueueable(struct session *ssn, void *self, job_id job)
{
    struct proportion *p = self;
    const struct ledger_row *r = ledger_row(&p->books, model_job(ssn->m, job)->queue);

    if (ledger_refuses(ssn, r, job)) {
        return REJECT;
    }
    const uint64_t lacks = ledger_lacks(ssn->m, r, job);
    if (lacks == 0) {
        return PERMIT;
    }
    ssn->job_msg[job.i] =
        names_text(ssn, &p->last, "queue resource quota insufficient", "insufficient", lacks);
    return REJECT;
}

static void proportion_job_enqueued(struct session *ssn, void *self, job_id job)
{
    struct proportion *p = self;

    ledger_promise(ssn->m, job, ledger_row(&p->books, model_job(ssn->m, job)->queue)->promised);
}

static void proportion_move_task(struct session *ssn, struct proportion *p, task_id t, int sign)
{
    const queue_id q = ledger_queue(ssn->m, t);

    if (!id_none(q)) {
        ledger_move(ledger_row(&p->books, q), ssn->m, t, sign);
    }
}

static bool proportion_allocate(struct session *ssn, void *self, task_id t)
{
    proportion_move_task(ssn, self, t, 1);
    return true;
}

static void proportion_deallocate(struct session *ssn, void *self, task_id t)
{
    proportion_move_task(ssn, self, t, -1);
}

static bool proportion_queue_report(struct session *ssn, void *self, queue_id q,
                                    struct queue_report *ret)
{
    struct proportion *p = self;

    return ledger_report(&p->books, q, ret);
}

const struct plugin plugin_proportion = {
    .name = "proportion",
    .about = "split the cluster among queues by weight",
    .state_size = sizeof(struct proportion),
    .open = proportion_open,
    .queue_order = proportion_queue_order,
    .overused = proportion_overused,
    .allocatable = proportion_allocatable,
    .bindable = proportion_bindable,
    .preemptive = proportion_preemptive,
    .reclaimable = proportion_reclaimable,
    .job_enqueueable = proportion_job_enqueueable,
    .job_enqueued = proportion_job_enqueued,
    .allocate = proportion_allocate,
    .deallocate = proportion_deallocate,
    .queue_report = proportion_queue_report,
};
