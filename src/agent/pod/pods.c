// SPDX-License-Identifier: Apache-2.0
// The set of pods: slots that stay while a pod lives, maps to find them, the queue of pods that
// need a step, and alarms. The agent frees pods and runs their steps.
#include "agent/pod/pods.h"

/* ---- finding ---- */

static uint64_t uid_key(struct hk_str uid)
{
    return hk_hash(uid.s, uid.n, 1) >> 1; /* the map reserves the largest key */
}

static uint64_t name_key(struct hk_str ns, struct hk_str name)
{
    return hk_hash(name.s, name.n, hk_hash(ns.s, ns.n, 2)) >> 1;
}

static struct pod *pods_at(const struct pods *ps, uint32_t slot)
{
    return slot == HK_NONE ? NULL : ps->slots.at[slot];
}

struct pod *pods_find(const struct pods *ps, struct hk_str uid)
{
    struct pod *p = pods_at(ps, hk_map_get(&ps->by_uid, uid_key(uid)));

    return p && hk_str_eq(p->uid, uid) ? p : NULL;
}

struct pod *pods_find_named(const struct pods *ps, struct hk_str ns, struct hk_str name)
{
    struct pod *p = pods_at(ps, hk_map_get(&ps->by_name, name_key(ns, name)));

    return p && hk_str_eq(p->name, name) && hk_str_eq(p->ns, ns) ? p : NULL;
}

struct pod *pods_find_owner(const struct pods *ps, uint64_t container)
{
    return pods_at(ps, hk_map_get(&ps->by_container, container));
}

void pods_disown(struct pods *ps, uint64_t container)
{
    hk_map_del(&ps->by_container, container);
}

void pod_claim(struct pod *p, uint64_t container)
{
    hk_map_put(&p->set->by_container, container, p->slot);
}

/* ---- coming and going ---- */

static void pods_activate(struct pod *p)
{
    p->resting = false;
    p->at = p->set->active.len;
    hk_vec_push(&p->set->active, p);
}

void pods_deactivate(struct pod *p)
{
    struct pods *ps = p->set;

    hk_vec_swap_remove(&ps->active, p->at);
    if (p->at < ps->active.len) {
        ps->active.at[p->at]->at = p->at;
    }
}

void pod_touch(struct pod *p)
{
    p->dirty = true;
    if (!p->queued) {
        p->queued = true;
        hk_vec_push(&p->set->touched, p->slot);
    }
    if (p->resting) {
        pods_activate(p);
    }
}

void pods_add(struct pod *p)
{
    struct pods *ps = p->set;

    if (ps->vacant.len > 0) {
        p->slot = hk_vec_pop(&ps->vacant);
        ps->slots.at[p->slot] = p;
    } else {
        p->slot = ps->slots.len;
        hk_vec_push(&ps->slots, p);
    }
    hk_map_put(&ps->by_uid, uid_key(p->uid), p->slot);
    hk_map_put(&ps->by_name, name_key(p->ns, p->name), p->slot);
    pods_activate(p);
    pod_touch(p);
}

void pods_remove(struct pod *p)
{
    struct pods *ps = p->set;

    hk_map_del(&ps->by_uid, uid_key(p->uid));
    if (pods_find_named(ps, p->ns, p->name) == p) {
        hk_map_del(&ps->by_name, name_key(p->ns, p->name));
    }
    ps->slots.at[p->slot] = NULL;
    hk_vec_push(&ps->vacant, p->slot);
}

/* ---- alarms ---- */

static bool alarm_before(void *ctx, uint32_t x, uint32_t y)
{
    const struct pods *ps = ctx;

    return ps->alarms.at[x].at_ns < ps->alarms.at[y].at_ns;
}

void pods_set_alarm(struct pod *p)
{
    struct pods *ps = p->set;
    const struct pods_alarm alarm = {.at_ns = p->due_ns, .slot = p->slot};
    uint32_t row = ps->alarms.len;

    if (p->due_ns >= p->alarm_ns) {
        return; /* covers INT64_MAX, too */
    }
    if (ps->vacant_alarms.len > 0) {
        row = hk_vec_pop(&ps->vacant_alarms);
        ps->alarms.at[row] = alarm;
    } else {
        hk_vec_push(&ps->alarms, alarm);
    }
    p->alarm_ns = p->due_ns;
    hk_heap_push(&ps->alarm_queue, row);
}

int64_t pods_run_alarms(struct pods *ps, int64_t now_ns)
{
    while (ps->alarm_queue.len > 0) {
        const uint32_t row = ps->alarm_queue.at[0];
        const struct pods_alarm alarm = ps->alarms.at[row];
        struct pod *p = ps->slots.at[alarm.slot];

        if (alarm.at_ns > now_ns) {
            return alarm.at_ns;
        }
        hk_heap_pop(&ps->alarm_queue);
        hk_vec_push(&ps->vacant_alarms, row);
        if (!p || p->alarm_ns != alarm.at_ns) {
            continue; /* outdated alarm */
        }
        p->alarm_ns = INT64_MAX;
        if (p->due_ns <= now_ns) {
            pod_touch(p);
        } else {
            pods_set_alarm(p);
        }
    }
    return INT64_MAX;
}

/* ---- setup and teardown ---- */

void pods_init(struct pods *ps, struct host *h, struct nodes *nodes)
{
    *ps = (struct pods){.host = h, .nodes = nodes};
    ps->alarm_queue = (struct hk_heap){.less = alarm_before, .ctx = ps};
}

void pods_fini(struct pods *ps)
{
    hk_vec_fini(&ps->active);
    hk_vec_fini(&ps->slots);
    hk_vec_fini(&ps->vacant);
    hk_map_fini(&ps->by_uid);
    hk_map_fini(&ps->by_name);
    hk_map_fini(&ps->by_container);
    hk_map_fini(&ps->by_address);
    hk_vec_fini(&ps->touched);
    hk_vec_fini(&ps->alarms);
    hk_vec_fini(&ps->vacant_alarms);
    hk_heap_fini(&ps->alarm_queue);
    hk_vec_fini(&ps->sources);
    hk_vec_fini(&ps->books.rows);
}
