// SPDX-License-Identifier: Apache-2.0
// Evictions end, and each one has an effect. One seed creates a small cluster: queues with
// weights, limits and shares, flat or as a tree; gangs of several priorities and shapes whose
// pods end by themselves or never; a job controller that replaces evicted pods; and a
// configuration: the actions in any order, plugins in any tier. Jobs arrive during the first
// cycles; after that only time passes.
//
// A seat is a member of a job. A period is the time between two outside events: a submission, or
// the end of a pod by itself. Asserted:
//
//   a  In a period, at most as many cycles evict as there are jobs, and at most as many pods are
//      evicted as there are seats. If a plugin computes shares, fewer pods than that are evicted
//      in all the time after the last submission. Once no pod ends any more, no pod is evicted.
//   b  With proportion, a pod that was bound after the last submission is never evicted for
//      another queue. This is checked only if owners replace a pod at once: while a pod is
//      missing, shares are computed without it. A pod for which pods of its own queue were
//      evicted is never evicted within the queue for a job of lower priority. With the gang
//      plugin, no seat loses a pod twice in a period to the same queue, for gangs that cannot
//      start otherwise, unless the gang itself lost a member or a promised place in that period
//      to a more urgent job of its queue.
//   c  After the last submission, a job for which pods were evicted is bound once they are gone,
//      unless a job of the same queue and higher priority is bound instead. With proportion this
//      is checked for evictions that were decided while no pod was missing.
//   d  The bound and terminating pods of a queue never hold more than the capability of the
//      queue, and model_check() succeeds after every cycle.
//
//   hekla-property-settle [--seeds N] [--from S]    a TAP point per hundred seeds
//   hekla-property-settle --seconds N [--from S]    seeds until time is over, from a random one
//                                                   unless told
//   hekla-property-settle --seed S                  one seed, with every decision
#include "property/settle_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

enum {
    SERVE_WITHIN = 8, /* cycles after the victims are gone, for c */
    QUIET = 20,       /* cycles at the end without evictions, for a */
    BATCH = 100,
    DEFAULT_SEEDS = 1000,
};

static void print_waiting(const struct settle *s, const struct session *ssn)
{
    const struct model *m = &s->w.m;

    for (uint32_t k = 0; k < ssn->ops.len; k++) {
        const struct op *op = &ssn->ops.at[k];
        if (op->kind == OP_PIPELINE && op->state == OP_OPEN) {
            printf("#   %u pipeline %.*s on n%u%s\n", s->cycle,
                   HK_FMT(model_str(m, model_task(m, op->task)->name)), op->node.i,
                   op->evicted_for ? " (paid)" : "");
        }
    }
}

/* ---- what is asserted ---- */

static struct seat *seat_of(struct settle *s, task_id t)
{
    for (uint32_t k = 0; k < s->nseat; k++) {
        if (s->seats[k].state == SEAT_POD && id_eq(s->seats[k].pod, t)) {
            return &s->seats[k];
        }
    }
    hk_assert(!"every pod has a seat");
    return NULL;
}

static uint32_t job_number(const struct settle *s, job_id j)
{
    uint32_t k = 0;

    while (!id_eq(s->jobs[k].id, j)) {
        k++;
    }
    return k;
}

/* Records the cost for the pods of the job that were promised a node. */
static void note_promises(struct settle *s, const struct settle_job *j, enum cost cost)
{
    for (uint32_t i = 0; i < j->nseat; i++) {
        struct seat *t = &s->seats[j->first + i];
        const struct task *task = t->state == SEAT_POD ? model_task(&s->w.m, t->pod) : NULL;
        if (task && task->status == TASK_PENDING && !id_none(task_nominated(&s->w.m, t->pod))) {
            t->promised = (uint8_t)cost;
        }
    }
}

static bool is_again(const struct settle *s, const struct seat *t, const struct settle_job *by,
                     bool between)
{
    if (between) {
        return s->prompt && s->proportion && t->bound > s->last_submission;
    }
    return t->placed == COST_QUEUE && by->priority < s->jobs[t->job].priority;
}

/* Whether the queue evicts a pod of this seat for the second time in this period, for a gang that
 * cannot start otherwise and has lost nothing itself. */
static bool is_twice(const struct settle *s, const struct seat *t, const struct settle_job *by)
{
    const struct job *job = model_job(&s->w.m, by->id);

    return t->evicted_in[by->queue] == s->period && by->lost_in != s->period && s->gang &&
           (int64_t)tally_ready(&job->tally) < by->min;
}

static int check_again(const struct settle *s, const struct seat *t, const struct decision *d,
                       uint32_t by, struct hk_err *err)
{
    const struct settle_job *j = &s->jobs[by];

    if (is_again(s, t, j, j->queue != s->jobs[t->job].queue)) {
        return hk_fail(err, HK_EINVAL,
                       "b: job %u's member %u, bound in cycle %u, is evicted (%s) for job %u of "
                       "queue q%u",
                       t->job, t->number, t->bound, d->reason, by, j->queue);
    }
    if (is_twice(s, t, j)) {
        return hk_fail(err, HK_EINVAL,
                       "b: job %u's member %u is evicted (%s) by queue q%u a second time, for job "
                       "%u, and no pod has ended in between",
                       t->job, t->number, d->reason, j->queue, by);
    }
    return 0;
}

static int note_eviction(struct settle *s, const struct decision *d, struct hk_err *err)
{
    struct seat *t = seat_of(s, d->task);
    const uint32_t by = job_number(s, d->for_job);
    struct settle_job *j = &s->jobs[by];

    s->evictions++;
    s->evicted++;
    note_promises(s, j, j->queue != s->jobs[t->job].queue ? COST_OTHERS : COST_QUEUE);
    t->wait = settle_below(s, MAX_GRACE + 1);
    const int rc = s->cycle > s->last_submission ? check_again(s, t, d, by, err) : 0;
    t->evicted_in[j->queue] = s->period;
    s->jobs[t->job].lost_in = s->period;
    if (s->cycle <= s->last_submission) {
        return 0;
    }
    s->evicted_late++;
    if (!s->proportion || !settle_lacks_pods(s)) {
        hk_assert(s->nowed < MAX_OWED);
        s->owed[s->nowed++] = (struct owed){
            .job = by, .cycle = s->cycle, .due = s->cycle + t->wait + 1 + SERVE_WITHIN};
    }
    return rc;
}

/* A bind pays what is owed to its job, and to jobs of its queue that it outranks. */
static void note_bind(struct settle *s, const struct decision *d)
{
    const uint32_t by = job_number(s, model_task(&s->w.m, d->task)->job);
    struct seat *t = seat_of(s, d->task);

    t->placed = t->promised;
    t->bound = s->cycle;
    s->binds++;
    for (uint32_t k = 0; k < s->nowed; k++) {
        struct owed *o = &s->owed[k];
        const bool outranks = s->jobs[by].queue == s->jobs[o->job].queue &&
                              s->jobs[by].priority > s->jobs[o->job].priority;
        if (!o->paid && s->cycle > o->cycle && (o->job == by || outranks)) {
            o->paid = true;
            s->jobs[o->job].lost_in = outranks ? s->period : s->jobs[o->job].lost_in;
        }
    }
}

static int note_decisions(struct settle *s, const struct session *ssn, struct hk_err *err)
{
    const struct model *m = &s->w.m;
    uint64_t before = s->evictions;
    int rc = 0;

    for (uint32_t k = 0; rc == 0 && k < ssn->decisions.len; k++) {
        const struct decision *d = &ssn->decisions.at[k];
        if (s->verbose) {
            printf("#   %u %s %.*s on %.*s %s %d\n", s->cycle,
                   d->kind == OP_EVICT ? "evict" : "bind",
                   HK_FMT(model_str(m, model_task(m, d->task)->name)),
                   HK_FMT(model_str(m, m->nodes.name[d->node.i])), d->reason ? d->reason : "",
                   d->kind == OP_EVICT ? (int)job_number(s, d->for_job) : -1);
        }
        if (d->kind == OP_EVICT) {
            rc = note_eviction(s, d, err);
        } else {
            note_bind(s, d);
        }
    }
    s->evicting_cycles += s->cycle > s->last_submission && s->evictions > before;
    return rc;
}

/* Adds what the task holds to its queue and, in a tree, to all above. */
static void add_holding(const struct settle *s, const struct task *t, int64_t *sums)
{
    const struct model *m = &s->w.m;
    const struct shape *shape = model_shape(m, t->shape);
    queue_id q = model_job(m, t->job)->queue;

    while (!id_none(q)) {
        for (uint32_t k = 0; k < shape->nreq; k++) {
            sums[(size_t)q.i * DIM_MAX + shape->req[k].dim] += shape->req[k].v;
        }
        const uint32_t parent = model_queue(m, q)->parent_name;
        q = s->hierarchy && parent ? model_queue_find(m, model_str(m, parent)) : NO_QUEUE;
    }
}

static int check_capability(const struct settle *s, struct hk_err *err)
{
    const struct model *m = &s->w.m;
    int64_t sums[(MAX_QUEUES + 1) * DIM_MAX] = {0};

    for (uint32_t i = 0; i < m->tasks.len; i++) {
        const struct task *t = &m->tasks.at[i];
        if (t->used && (status_in(t->status, STATUS_ALLOCATED) || t->status == TASK_RELEASING)) {
            add_holding(s, t, sums);
        }
    }
    for (uint32_t q = 0; q < m->queues.len; q++) {
        const struct queue *queue = &m->queues.at[q];
        RVEC_EACH(d, queue->has_capability ? rvec_names(&queue->capability) : 0)
        {
            const double have = (double)sums[(size_t)q * DIM_MAX + d];
            if (d != DIM_PODS && have > rvec_get(&queue->capability, (uint32_t)d)) {
                return hk_fail(err, HK_EINVAL,
                               "d: pods of queue '%.*s' hold %.0f %.*s, its capability is %.0f",
                               HK_FMT(model_str(m, queue->name)), have, HK_FMT(m->dims.text[d]),
                               rvec_get(&queue->capability, (uint32_t)d));
            }
        }
    }
    return 0;
}

static int check_owed(const struct settle *s, struct hk_err *err)
{
    for (uint32_t k = 0; k < s->nowed; k++) {
        const struct owed *o = &s->owed[k];
        if (!o->paid && s->cycle > o->due) {
            return hk_fail(err, HK_EINVAL,
                           "c: what was evicted in cycle %u for job %u has not brought it a pod",
                           o->cycle, o->job);
        }
    }
    return 0;
}

static int check_amount(const struct settle *s, struct hk_err *err)
{
    if (s->evicting_cycles > s->njob) {
        return hk_fail(err, HK_EINVAL, "a: %u cycles evicted since the last pod ended, of %u jobs",
                       s->evicting_cycles, s->njob);
    }
    if (s->evicted > s->nseat) {
        return hk_fail(err, HK_EINVAL, "a: %u pods evicted since the last pod ended, of %u",
                       s->evicted, s->nseat);
    }
    if (s->limits && s->evicted_late > s->nseat) {
        return hk_fail(err, HK_EINVAL, "a: %u pods evicted since the last submission, of %u",
                       s->evicted_late, s->nseat);
    }
    return 0;
}

static int settle_cycle(struct settle *s, struct hk_err *err)
{
    struct session ssn;

    settle_turn(s);
    session_open(&ssn, &s->w.m, s->conf, &s->opts, s->sm);
    session_run(&ssn);
    if (s->verbose) {
        print_waiting(s, &ssn);
    }
    session_close(&ssn);
    int rc = note_decisions(s, &ssn, err);
    if (rc == 0) {
        rc = model_check(&s->w.m, err);
    }
    if (rc == 0 && s->limits) {
        rc = check_capability(s, err);
    }
    if (rc == 0) {
        rc = check_owed(s, err);
    }
    if (rc == 0) {
        rc = check_amount(s, err);
    }
    return rc;
}

/* Goes on until no pod has ended for so long that evictions must have, too. */
static int settle_run(struct settle *s, struct hk_err *err)
{
    uint64_t before = 0;

    for (; s->cycle <= HK_MAX(s->last_submission, s->last_end) + s->njob + QUIET; s->cycle++) {
        const int rc = settle_cycle(s, err);
        if (rc < 0) {
            return hk_wrap(err, rc, "cycle %u", s->cycle);
        }
        if (s->cycle <= HK_MAX(s->last_submission, s->last_end) + s->njob) {
            before = s->evictions;
        }
    }
    if (s->evictions > before) {
        return hk_fail(err, HK_EINVAL,
                       "a: %llu evictions in the last %u cycles, in which no pod ended",
                       (unsigned long long)(s->evictions - before), QUIET);
    }
    return 0;
}

struct counts {
    uint64_t binds, evictions;
};

static int settle_seed(uint64_t seed, bool verbose, struct counts *n, struct hk_err *err)
{
    struct settle *s = hk_zalloc(sizeof(*s));
    int rc = settle_init(s, seed, verbose, err);

    if (rc == 0) {
        rc = settle_run(s, err);
    }
    n->binds += s->binds;
    n->evictions += s->evictions;
    settle_fini(s);
    hk_free(s);
    return rc;
}

/* ---- TAP ---- */

static bool batch(uint64_t from, uint64_t to, bool verbose, uint32_t point)
{
    struct counts n = {0};
    bool ok = true;

    for (uint64_t s = from; s < to; s++) {
        struct hk_err err = {0};
        if (settle_seed(s, verbose, &n, &err) < 0) {
            printf("# seed %llu: %s\n", (unsigned long long)s, err.text);
            ok = false;
        }
    }
    printf("%sok %u - seeds %llu to %llu come to rest (%llu binds, %llu evictions)\n",
           ok ? "" : "not ", point, (unsigned long long)from, (unsigned long long)to - 1,
           (unsigned long long)n.binds, (unsigned long long)n.evictions);
    fflush(stdout);
    return ok;
}

/* Runs seeds from a random first one. A failing seed is printed, so it can be repeated. */
static int64_t random_start(void)
{
    uint32_t r;

    hk_assert(getrandom(&r, sizeof(r), 0) == sizeof(r));
    return (int64_t)r + 1;
}

static int64_t seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

struct options {
    int64_t seeds, from, seed, seconds; /* -1: not given */
};

static bool parse_options(int argc, char **argv, struct options *o)
{
    const struct {
        const char *name;
        int64_t *to;
    } options[] = {{"--seeds", &o->seeds},
                   {"--from", &o->from},
                   {"--seed", &o->seed},
                   {"--seconds", &o->seconds}};

    for (int i = 1; i < argc; i += 2) {
        size_t k = 0;
        while (k < HK_LEN(options) && strcmp(argv[i], options[k].name) != 0) {
            k++;
        }
        if (k == HK_LEN(options) || i + 1 == argc ||
            !hk_str_int(hk_str(argv[i + 1]), options[k].to) || *options[k].to < 0) {
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    struct options o = {.seeds = DEFAULT_SEEDS, .from = -1, .seed = -1, .seconds = -1};
    uint32_t points = 0, failed = 0;

    if (!parse_options(argc, argv, &o)) {
        fprintf(stderr, "usage: hekla-property-settle [--from S] [--seeds N | --seconds N]\n"
                        "       hekla-property-settle --seed S\n");
        return 2;
    }
    const bool one = o.seed >= 0, timed = !one && o.seconds >= 0;
    const int64_t end_s = seconds_now() + o.seconds;
    int64_t s = one ? o.seed : o.from >= 0 ? o.from : timed ? random_start() : 1;
    const int64_t last = timed ? INT64_MAX : s + (one ? 1 : o.seeds);

    while (s < last && !(timed && points > 0 && seconds_now() >= end_s)) {
        const int64_t next = HK_MIN(s + BATCH, last);
        failed += !batch((uint64_t)s, (uint64_t)next, one, ++points);
        s = next;
    }
    printf("1..%u\n", points);
    return failed > 0;
}
