// SPDX-License-Identifier: Apache-2.0
// Counts events and durations for the metrics; meter_text.c prints them.
#include "scheduler/meter_priv.h"

const char *const meter_evicting[QUEUE_NEVICTING] = {"preempt", "reclaim", "gangpreempt",
                                                     "gangreclaim", "shuffle"};

/* ---- counting ---- */

int64_t meter_start(const struct meter *x)
{
    return x ? x->clock->mono_ns(x->clock) : 0;
}

static void add_since(const struct meter *x, struct hk_hist *h, int64_t since_ns)
{
    hk_hist_add(h, MS(meter_start(x) - since_ns));
}

void meter_session(struct meter *x, int64_t since_ns)
{
    if (x) {
        add_since(x, &x->session, since_ns);
    }
}

void meter_open(struct meter *x, int64_t since_ns)
{
    if (x) {
        add_since(x, &x->open, since_ns);
    }
}

void meter_plugin(struct meter *x, const struct plugin *p, bool closing, int64_t since_ns)
{
    for (uint32_t k = 0; x && k < x->nplugin; k++) {
        if (x->plugins[k].p == p) {
            add_since(x, closing ? &x->plugins[k].close : &x->plugins[k].open, since_ns);
        }
    }
}

void meter_action(struct meter *x, const struct action *a, int64_t since_ns)
{
    for (uint32_t k = 0; x && k < x->naction; k++) {
        if (x->actions[k].a == a) {
            add_since(x, &x->actions[k].run, since_ns);
        }
    }
}

void meter_stage(struct meter *x, enum meter_stage what, int64_t since_ns)
{
    if (x) {
        add_since(x, &x->stages[what], since_ns);
    }
}

int64_t meter_wall(const struct meter *x)
{
    return x ? x->clock->wall_ns(x->clock) : 0;
}

static void add_age(struct hk_hist *h, int64_t creation_ns, int64_t now_ns)
{
    hk_hist_add(h, MS(HK_MAX(now_ns - creation_ns, 0)));
}

void meter_task(struct meter *x, enum meter_point where, const struct task *t)
{
    if (x) {
        add_age(&x->points[where], t->creation_ns, meter_wall(x));
    }
}

void meter_assume(struct meter *x, struct model *m, task_id t, int64_t now_ns)
{
    const struct task *task = model_task(m, t);

    if (!x) {
        return;
    }
    add_age(&x->points[METER_ASSUMED], task->creation_ns, now_ns);
    if (!id_none(task->job)) {
        struct job *job = model_job(m, task->job);
        job->meter.placed_ns = now_ns;
        add_age(&x->job, job->creation_ns, now_ns);
    }
}

void meter_attempts(struct meter *x, enum meter_result what, uint32_t n)
{
    if (x) {
        x->attempts[what] += n;
    }
}

void meter_gang(struct meter *x, struct job *j, int64_t missing)
{
    if (x) {
        j->meter.looked = true;
        j->meter.missing = (uint32_t)HK_MAX(missing, 0);
        j->meter.retries += missing > 0;
    }
}

void meter_victims(struct meter *x, uint32_t n)
{
    if (x) {
        x->victims = n;
    }
}

void meter_preempted(struct meter *x)
{
    if (x) {
        x->preempted++;
    }
}

void meter_evicted(struct meter *x, const char *action)
{
    for (unsigned k = 0; x && k < METER_NEVICTING; k++) {
        x->evicted[k] += strcmp(meter_evicting[k], action) == 0;
    }
}

static struct queue *queue_of(const struct model *m, job_id j)
{
    return id_none(j) || id_none(model_job(m, j)->queue) ? NULL
                                                         : model_queue(m, model_job(m, j)->queue);
}

void meter_eviction(struct meter *x, struct model *m, task_id victim, job_id by, const char *action)
{
    struct queue *from = x ? queue_of(m, model_task(m, victim)->job) : NULL;
    struct queue *to = x ? queue_of(m, by) : NULL;

    for (unsigned k = 0; k < QUEUE_NEVICTING; k++) {
        const bool is = strcmp(meter_evicting[k], action) == 0;
        if (from) {
            from->evicted[k] += is;
        }
        if (to) {
            to->evictions[k] += is;
        }
    }
}
