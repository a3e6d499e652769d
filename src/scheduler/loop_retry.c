// SPDX-License-Identifier: Apache-2.0
// Binds and evictions that failed, and gates that were not removed. The answer may have been lost
// on the way, so the pod is asked for before its room is given to others or taken from it: until
// then a task stays Binding or Releasing. A pod that is still unbound may be placed again at once
// after its first failure, since a gang may be waiting for it, and later and later after more
// (6.3).
#include "base/log.h"
#include "scheduler/loop_priv.h"

#define BACKOFF_FIRST_NS ((int64_t)5 * 1000 * 1000)
/* Upstream goes up to 1000 s: a pod would wait that long after a failure of the API is over. */
#define BACKOFF_LAST_NS ((int64_t)60 * 1000 * 1000 * 1000)

enum retry_state {
    RETRY_ASKING,    /* the pod's state is on its way */
    RETRY_ASK_LATER, /* at due_ns */
    RETRY_HELD,      /* the task may not be placed before due_ns */
    RETRY_RESTING,   /* remembers its failures */
};

static int64_t backoff_ns(uint32_t failures)
{
    const uint32_t shift = HK_MIN(failures, 20);

    return HK_MIN(BACKOFF_FIRST_NS << shift, BACKOFF_LAST_NS);
}

static bool is_gone(const struct retry *r)
{
    const struct task *t = model_task(&r->l->engine.m, r->task);

    return !t->used || t->uid != r->uid;
}

static uint32_t find(const struct loop *l, uint32_t uid)
{
    uint32_t k = 0;

    while (k < l->retries.len && l->retries.at[k]->uid != uid) {
        k++;
    }
    return k;
}

static void forget(struct loop *l, uint32_t k)
{
    struct retry *r = l->retries.at[k];

    if (r->state == RETRY_ASKING) {
        port_cancel(l->o.port, r->call);
    }
    hk_intern_drop(&l->engine.m.str, r->uid);
    hk_free(r);
    hk_vec_swap_remove(&l->retries, k);
}

static void later(struct retry *r, enum retry_state state, uint32_t failures)
{
    r->state = (uint8_t)state;
    r->due_ns = r->l->o.clock->mono_ns(r->l->o.clock) + backoff_ns(failures);
}

static void bind_is_void(struct retry *r)
{
    struct engine *g = &r->l->engine;

    engine_unbind(g, r->task);
    r->state = RETRY_RESTING;
    if (r->failures > 1) {
        engine_hold(g, r->task, true);
        later(r, RETRY_HELD, r->failures - 2);
    }
}

static void on_pod(void *ctx, const struct port_msg *m)
{
    struct retry *r = ctx;
    struct loop *l = r->l;
    const struct task *t = model_task(&l->engine.m, r->task);

    r->state = RETRY_RESTING;
    if (is_gone(r)) {
        return;
    }
    if (m->rc == -HK_ENOTFOUND) {
        loop_drop(l, api_kind(API_POD), model_str(&l->engine.m, t->ns),
                  model_str(&l->engine.m, t->name));
        return;
    }
    if (m->rc < 0) {
        hk_log(HK_LOG_WARN, "pod not read after a failure", "pod=%.*s err=\"%s\"",
               HK_FMT(model_str(&l->engine.m, t->name)), m->err->text);
        later(r, RETRY_ASK_LATER, r->failures++);
        return;
    }
    if (r->evicting) {
        engine_stay(&l->engine, r->task);
    } else if (t->status == TASK_BINDING &&
               json_str(json_at(&m->obj->root, "spec.nodeName"), HK_STR("")).n == 0) {
        bind_is_void(r);
    }
    loop_take(l, m->obj);
}

static void ask(struct retry *r)
{
    const struct model *m = &r->l->engine.m;
    const struct task *t = model_task(m, r->task);

    r->state = RETRY_ASKING;
    r->call = port_get(r->l->o.port, api_kind(API_POD), model_str(m, t->ns), model_str(m, t->name),
                       (struct port_sink){on_pod, r});
}

void retry_outcome(void *loop, task_id t, enum emit_outcome what)
{
    struct loop *l = loop;
    const uint32_t uid = model_task(&l->engine.m, t)->uid;
    const uint32_t k = find(l, uid);
    struct retry *r;

    if (what == EMIT_BOUND || what == EMIT_GATE_OPEN) {
        if (k < l->retries.len) {
            forget(l, k);
        }
        return;
    }
    if (k == l->retries.len) {
        r = hk_zalloc(sizeof(*r));
        *r = (struct retry){.l = l, .task = t, .uid = uid, .state = RETRY_RESTING};
        hk_intern_keep(&l->engine.m.str, uid);
        hk_vec_push(&l->retries, r);
    }
    r = l->retries.at[k];
    r->failures++;
    r->evicting = what == EMIT_EVICT_FAILED;
    if (r->evicting) {
        later(r, RETRY_ASK_LATER, r->failures - 1);
    } else if (what == EMIT_GATE_FAILED) {
        engine_hold(&l->engine, t, true); /* its job is looked at again when it is let go */
        later(r, RETRY_HELD, r->failures - 1);
    } else {
        ask(r);
    }
}

static void act(struct retry *r)
{
    if (r->state == RETRY_ASK_LATER) {
        ask(r);
    } else {
        r->state = RETRY_RESTING;
        engine_hold(&r->l->engine, r->task, false);
        r->l->inputs++;
    }
}

int64_t retry_tick(struct loop *l, int64_t now_ns)
{
    int64_t next_ns = INT64_MAX;

    for (uint32_t k = 0; k < l->retries.len;) {
        struct retry *r = l->retries.at[k];
        const bool waits = r->state == RETRY_ASK_LATER || r->state == RETRY_HELD;
        if (is_gone(r)) {
            forget(l, k);
            continue;
        }
        if (waits && r->due_ns <= now_ns) {
            act(r);
        } else if (waits) {
            next_ns = HK_MIN(next_ns, r->due_ns);
        }
        k++;
    }
    return next_ns;
}

void retry_fini(struct loop *l)
{
    while (l->retries.len > 0) {
        forget(l, 0);
    }
    hk_vec_fini(&l->retries);
}
