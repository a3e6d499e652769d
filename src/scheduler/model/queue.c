// SPDX-License-Identifier: Apache-2.0
// The queue table. What a queue holds is summed up in job.c.
#include "scheduler/model/model_priv.h"

queue_id model_queue_find(const struct model *m, struct hk_str name)
{
    const uint32_t id = hk_intern_find(&m->str, name);

    return id == HK_NONE ? NO_QUEUE : (queue_id){hk_map_get(&m->queue_by_name, id)};
}

static bool same_limit(bool has, const struct rvec *a, bool want, const struct rvec *b)
{
    return has == want && (!has || rvec_same(a, b));
}

static void queue_set_facts(struct queue *q, const struct queue_desc *d)
{
#define SET_FACT(type, name) q->name = d->name;
#define SET_LIMIT(name)                                                                            \
    q->has_##name = d->has_##name;                                                                 \
    q->name = d->name;
    QUEUE_FACTS(SET_FACT)
    QUEUE_LIMITS(SET_LIMIT)
}

static bool queue_same_facts(const struct queue *q, const struct queue_desc *d)
{
#define SAME_FACT(type, name) &&q->name == d->name
#define SAME_LIMIT(name) &&same_limit(q->has_##name, &q->name, d->has_##name, &d->name)
    return true QUEUE_FACTS(SAME_FACT) QUEUE_LIMITS(SAME_LIMIT);
}

static bool says_nothing_new(const struct model *m, const struct queue *q,
                             const struct queue_desc *d)
{
    return hk_str_eq(model_str(m, q->parent_name), d->parent) &&
           hk_str_eq(model_str(m, q->hierarchy), d->hierarchy) &&
           hk_str_eq(model_str(m, q->hierarchy_weights), d->hierarchy_weights) &&
           queue_same_facts(q, d);
}

queue_id model_queue_put(struct model *m, const struct queue_desc *d)
{
    queue_id id = model_queue_find(m, d->name);
    const bool fresh = id_none(id);
    struct queue *q;

    if (!fresh && says_nothing_new(m, model_queue(m, id), d)) {
        return id;
    }
    if (fresh) {
        id.i = TABLE_ROW(&m->queues);
    }
    q = &m->queues.at[id.i];
    const struct queue old = *q;
    q->used = true;
    q->name = hk_intern_hold(&m->str, d->name);
    q->parent_name = hk_intern_hold(&m->str, d->parent);
    q->hierarchy = hk_intern_hold(&m->str, d->hierarchy);
    q->hierarchy_weights = hk_intern_hold(&m->str, d->hierarchy_weights);
    queue_strings(&old, &m->str, hk_intern_drop);
    queue_set_facts(q, d);
    m->wake.queue = ++m->version;
    if (fresh) {
        hk_map_put(&m->queue_by_name, q->name, id.i);
        queue_attach_jobs(m, id);
    }
    return id;
}

void model_queue_del(struct model *m, queue_id id)
{
    struct queue *q = model_queue(m, id);

    queue_detach_jobs(m, id);
    hk_map_del(&m->queue_by_name, q->name);
    queue_strings(q, &m->str, hk_intern_drop);
    *q = (struct queue){0};
    hk_vec_push(&m->queues.free, id.i);
    m->wake.queue = ++m->version;
}
