// SPDX-License-Identifier: Apache-2.0
// proportion: splits the cluster among the queues that have jobs by weight. Shares are filled like
// vessels under one tap: a queue that has all it asks for, or may take no more, leaves its part to
// the others. The result, fixed for the session, is what a queue may use; what it holds beyond that
// can be reclaimed.
#include "scheduler/plugins/ledger.h"
#include "scheduler/plugins/victims.h"

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
    bool *done; /* by queue: its share is settled */
    struct rvec remaining;
};

static int64_t weight_of(const struct model *m, uint32_t queue)
{
    return HK_MAX(m->queues.at[queue].weight, 0);
}

static int64_t open_weight(const struct split *s)
{
    int64_t sum = 0;

    for (uint32_t k = 0; k < s->books->n; k++) {
        sum += s->done[k] ? 0 : weight_of(s->m, k);
    }
    return sum;
}

/* Gives one queue its part of what remains; adds what it gained or gave back. */
static void pour(struct split *s, uint32_t queue, double part, struct rvec *gained,
                 struct rvec *given)
{
    struct ledger_row *r = &s->books->at[queue];
    const struct rvec before = r->deserved;
    struct rvec request, more = s->remaining;

    rvec_from(&request, s->m->queues.at[queue].request, s->books->ndim);
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

/* One round over the open queues, all served from the same remainder; false when it was the last.
 */
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
            pour(s, k, (double)weight_of(s->m, k) / (double)weight, &gained, &given);
        }
    }
    rvec_add(&s->remaining, &given);
    rvec_exceed(&s->remaining, &s->remaining, &gained);
    return !rvec_empty(&s->remaining) && !rvec_same(&s->remaining, &before);
}

static void split_cluster(struct session *ssn, struct ledger *books)
{
    struct split s = {.books = books, .m = ssn->m, .remaining = ssn->total};

    s.done = hk_arena_array(ssn->mem, books->n, sizeof(*s.done));
    for (uint32_t k = 0; k < books->n; k++) {
        s.done[k] = !books->at[k].in;
    }
    while (split_round(&s)) {
        /* until a round changes nothing */
    }
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

/* Every dimension of what it deserves is reached, pods included. */
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

/* A queue gives while it holds more of anything than it deserves. */
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

static void moved(struct session *ssn, struct proportion *p, task_id t, int sign)
{
    const queue_id q = ledger_queue(ssn->m, t);

    if (!id_none(q)) {
        ledger_move(ledger_row(&p->books, q), task_shape(ssn->m, t), sign);
    }
}

static bool proportion_allocate(struct session *ssn, void *self, task_id t)
{
    moved(ssn, self, t, 1);
    return true;
}

static void proportion_deallocate(struct session *ssn, void *self, task_id t)
{
    moved(ssn, self, t, -1);
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
    .preemptive = proportion_preemptive,
    .reclaimable = proportion_reclaimable,
    .job_enqueueable = proportion_job_enqueueable,
    .job_enqueued = proportion_job_enqueued,
    .allocate = proportion_allocate,
    .deallocate = proportion_deallocate,
    .queue_report = proportion_queue_report,
};
