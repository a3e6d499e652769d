// SPDX-License-Identifier: Apache-2.0
// The keyed work queue of every controller.
#include "controllers/workq.h"

#define PAUSE_FIRST_NS ((int64_t)5 * 1000 * 1000)
/* A short maximum: work resumes soon after other processes are back. */
#define PAUSE_LAST_NS ((int64_t)60 * 1000 * 1000 * 1000)

/* ---- timers ---- */

static void timer_push(struct workq *q, struct workq_timer t)
{
    uint32_t i = q->timers.len;

    hk_vec_push(&q->timers, t);
    while (i > 0 && q->timers.at[(i - 1) / 2].at_ns > t.at_ns) {
        q->timers.at[i] = q->timers.at[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    q->timers.at[i] = t;
}

static void timer_pop(struct workq *q)
{
    const struct workq_timer t = hk_vec_pop(&q->timers);
    uint32_t i = 0;

    while (2 * i + 1 < q->timers.len) {
        uint32_t c = 2 * i + 1;

        if (c + 1 < q->timers.len && q->timers.at[c + 1].at_ns < q->timers.at[c].at_ns) {
            c++;
        }
        if (q->timers.at[c].at_ns >= t.at_ns) {
            break;
        }
        q->timers.at[i] = q->timers.at[c];
        i = c;
    }
    if (q->timers.len > 0) {
        q->timers.at[i] = t;
    }
}

/* ---- keys ---- */

static uint32_t key_get(struct workq *q, struct hk_str ns, struct hk_str name)
{
    const uint32_t a = hk_intern_hold(q->str, ns), b = hk_intern_hold(q->str, name);
    const uint64_t both = (uint64_t)a << 32 | b;
    uint32_t key = hk_map_get(&q->at, both);

    if (key != HK_NONE) {
        hk_intern_drop(q->str, a);
        hk_intern_drop(q->str, b);
        return key;
    }
    if (q->vacant.len > 0) {
        key = hk_vec_pop(&q->vacant);
    } else {
        key = q->keys.len;
        hk_vec_push(&q->keys, (struct workq_key){0});
    }
    q->keys.at[key] = (struct workq_key){.ns = a, .name = b, .used = true, .due_ns = INT64_MAX};
    hk_map_put(&q->at, both, key);
    return key;
}

static void key_forget(struct workq *q, uint32_t key)
{
    struct workq_key *k = &q->keys.at[key];

    if (k->state != WORKQ_IDLE || k->due_ns != INT64_MAX || k->failures > 0 || k->rest_ns != 0) {
        return;
    }
    hk_map_del(&q->at, (uint64_t)k->ns << 32 | k->name);
    hk_intern_drop(q->str, k->ns);
    hk_intern_drop(q->str, k->name);
    *k = (struct workq_key){0};
    hk_vec_push(&q->vacant, key);
}

static void make_wait(struct workq *q, uint32_t key)
{
    struct workq_key *k = &q->keys.at[key];

    if (k->state == WORKQ_BUSY) {
        k->again = true;
    } else if (k->state == WORKQ_IDLE && k->rest_ns != 0) {
        k->state = WORKQ_RESTING;
        q->nresting++;
    } else if (k->state == WORKQ_IDLE) {
        k->state = WORKQ_WAITING;
        hk_vec_push(&q->ready, key);
    }
}

static void workq_set_due(struct workq *q, uint32_t key, int64_t at_ns)
{
    struct workq_key *k = &q->keys.at[key];

    if (at_ns < k->due_ns) {
        k->due_ns = at_ns;
        timer_push(q, (struct workq_timer){at_ns, key});
    }
}

void workq_add(struct workq *q, struct hk_str ns, struct hk_str name)
{
    make_wait(q, key_get(q, ns, name));
}

void workq_add_at(struct workq *q, struct hk_str ns, struct hk_str name, int64_t at_ns)
{
    workq_set_due(q, key_get(q, ns, name), at_ns);
}

static void end_rest(struct workq *q, uint32_t key)
{
    struct workq_key *k = &q->keys.at[key];

    k->rest_ns = 0;
    if (k->state == WORKQ_RESTING) {
        k->state = WORKQ_IDLE;
        q->nresting--;
        make_wait(q, key);
    } else {
        key_forget(q, key);
    }
}

int64_t workq_tick(struct workq *q, int64_t now_ns)
{
    while (q->timers.len > 0) {
        const struct workq_timer t = q->timers.at[0];
        struct workq_key *k = &q->keys.at[t.key];
        const bool is_due = k->used && k->due_ns == t.at_ns;
        const bool is_rest = k->used && k->rest_ns == t.at_ns;

        if ((is_due || is_rest) && t.at_ns > now_ns) {
            return t.at_ns;
        }
        timer_pop(q);
        if (is_due) {
            k->due_ns = INT64_MAX;
            make_wait(q, t.key);
        }
        if (is_rest) {
            end_rest(q, t.key);
        }
    }
    return INT64_MAX;
}

uint32_t workq_pop(struct workq *q)
{
    uint32_t key;

    if (q->head == q->ready.len) {
        return HK_NONE;
    }
    key = q->ready.at[q->head++];
    if (q->head == q->ready.len) {
        q->head = q->ready.len = 0;
    } else if (q->head >= 1024 && q->head > q->ready.len / 2) {
        memmove(q->ready.at, q->ready.at + q->head,
                (q->ready.len - q->head) * sizeof(q->ready.at[0]));
        q->ready.len -= q->head;
        q->head = 0;
    }
    q->keys.at[key].state = WORKQ_BUSY;
    return key;
}

static void end_pass(struct workq *q, uint32_t key)
{
    struct workq_key *k = &q->keys.at[key];

    hk_assert(k->state == WORKQ_BUSY);
    k->state = WORKQ_IDLE;
    if (k->again) {
        k->again = false;
        make_wait(q, key);
    }
}

void workq_rest(struct workq *q, uint32_t key, int64_t until_ns)
{
    struct workq_key *k = &q->keys.at[key];

    hk_assert(k->state == WORKQ_BUSY);
    if (until_ns > k->rest_ns) {
        k->rest_ns = until_ns;
        timer_push(q, (struct workq_timer){until_ns, key});
    }
}

void workq_done(struct workq *q, uint32_t key)
{
    q->keys.at[key].failures = 0;
    end_pass(q, key);
    key_forget(q, key);
}

void workq_again(struct workq *q, uint32_t key)
{
    q->keys.at[key].again = true;
    end_pass(q, key);
}

void workq_failed(struct workq *q, uint32_t key, int64_t now_ns)
{
    const uint32_t shift = HK_MIN(q->keys.at[key].failures, 16);

    q->keys.at[key].failures++;
    workq_set_due(q, key, now_ns + HK_MIN(PAUSE_FIRST_NS << shift, PAUSE_LAST_NS));
    end_pass(q, key);
}

bool workq_is_idle(const struct workq *q)
{
    return q->at.len == 0;
}

void workq_fini(struct workq *q)
{
    for (uint32_t k = 0; k < q->keys.len; k++) {
        hk_intern_drop(q->str, q->keys.at[k].ns);
        hk_intern_drop(q->str, q->keys.at[k].name);
    }
    hk_vec_fini(&q->keys);
    hk_vec_fini(&q->vacant);
    hk_vec_fini(&q->ready);
    hk_vec_fini(&q->timers);
    hk_map_fini(&q->at);
}
