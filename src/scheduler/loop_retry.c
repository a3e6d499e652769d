// SPDX-License-Identifier: Apache-2.0
// Retries failed binds, evictions and gate removals. The answer may have been lost, so the pod is
// read again before its room is given to others or taken from it: until then a task stays Binding
// or Releasing. A pod that is still unbound may be placed again at once after its first failure,
// since a gang may wait for it, and with a growing delay after further failures
// (docs/reference/scheduler.md section 6.3).
#include "base/log.h"
#include "scheduler/loop_priv.h"

#define BACKOFF_FIRST_NS ((int64_t)5 * 1000 * 1000)
/* Upstream goes up to 1000 s: a pod would wait that long after the API has recovered. */
#define BACKOFF_LAST_NS ((int64_t)60 * 1000 * 1000 * 1000)

/* A refused bind waits as after this many failures: a namespace being deleted accepts no binds
 * until its pods are gone, so there is no hurry. */
#define REFUSED_FAILURES 14

enum retry_state {
    RETRY_ASKING,    /* waits for the pod's state */
    RETRY_ASK_LATER, /* asks again at due_ns */
    RETRY_HELD,      /* the task may not be placed before due_ns */
    RETRY_RESTING,   /* keeps its failure count */
};

static int64_t backoff_ns(uint32_t failures)
{
    const uint32_t shift = HK_MIN(failures, 20);

    return HK_MIN(BACKOFF_FIRST_NS << shift, BACKOFF_LAST_NS);
}

/* NO_TASK when the pod is gone. */
static task_id retry_task(const struct retry *r)
{
    return model_task_of(&r->l->engine.m, r->task);
}

static uint32_t retry_find(const struct loop *l, task_id t)
{
    uint32_t k = 0;

    while (k < l->retries.len && !id_eq(retry_task(l->retries.at[k]), t)) {
        k++;
    }
    return k;
}

static void retry_forget(struct loop *l, uint32_t k)
{
    struct retry *r = l->retries.at[k];

    if (r->state == RETRY_ASKING) {
        port_cancel(l->o.port, r->call);
    }
    hk_free(r);
    hk_vec_swap_remove(&l->retries, k);
}

static void retry_later(struct retry *r, enum retry_state state, uint32_t failures)
{
    r->state = (uint8_t)state;
    r->due_ns = r->l->o.clock->mono_ns(r->l->o.clock) + backoff_ns(failures);
}

static void bind_is_void(struct retry *r, task_id t)
{
    struct engine *g = &r->l->engine;

    engine_unbind(g, t);
    r->state = RETRY_RESTING;
    if (r->failures > 1) {
        engine_hold(g, t, true);
        retry_later(r, RETRY_HELD, r->failures - 2);
    }
}

static void retry_on_pod(void *ctx, const struct port_msg *m)
{
    struct retry *r = ctx;
    struct loop *l = r->l;
    const task_id id = retry_task(r);

    r->state = RETRY_RESTING;
    if (id_none(id)) {
        return;
    }
    const struct task *t = model_task(&l->engine.m, id);
    if (m->rc == -HK_ENOTFOUND) {
        loop_drop(l, api_kind(API_POD), model_str(&l->engine.m, t->ns),
                  model_str(&l->engine.m, t->name));
        return;
    }
    if (m->rc < 0) {
        hk_log(HK_LOG_WARN, "pod not read after a failure", "pod=%.*s err=\"%s\"",
               HK_FMT(model_str(&l->engine.m, t->name)), m->err->text);
        retry_later(r, RETRY_ASK_LATER, r->failures++);
        return;
    }
    if (r->evicting) {
        engine_stay(&l->engine, id);
    } else if (t->status == TASK_BINDING && json_str_at(&m->obj->root, "spec.nodeName").n == 0) {
        bind_is_void(r, id);
    }
    loop_accept(l, m->obj);
}

static void retry_ask_pod(struct retry *r, task_id id)
{
    const struct model *m = &r->l->engine.m;
    const struct task *t = model_task(m, id);

    r->state = RETRY_ASKING;
    r->call = port_get(r->l->o.port, api_kind(API_POD), model_str(m, t->ns), model_str(m, t->name),
                       (struct port_sink){retry_on_pod, r});
}

static void retry_handle_result(struct loop *l, task_id t, enum emit_outcome what)
{
    const uint32_t k = retry_find(l, t);
    struct retry *r;

    if (what == EMIT_BOUND || what == EMIT_GATE_OPEN) {
        if (k < l->retries.len) {
            retry_forget(l, k);
        }
        return;
    }
    if (k == l->retries.len) {
        r = hk_zalloc(sizeof(*r));
        *r =
            (struct retry){.l = l, .task = model_task_ref(&l->engine.m, t), .state = RETRY_RESTING};
        hk_vec_push(&l->retries, r);
    }
    r = l->retries.at[k];
    r->failures =
        what == EMIT_BIND_REFUSED ? HK_MAX(r->failures + 1, REFUSED_FAILURES) : r->failures + 1;
    r->evicting = what == EMIT_EVICT_FAILED;
    if (r->evicting) {
        retry_later(r, RETRY_ASK_LATER, r->failures - 1);
    } else if (what == EMIT_GATE_FAILED) {
        engine_hold(&l->engine, t, true); /* its job is considered again when it is released */
        retry_later(r, RETRY_HELD, r->failures - 1);
    } else {
        retry_ask_pod(r, t);
    }
}

void retry_read_results(struct loop *l)
{
    struct emit_result result;

    while (emit_next_result(l->emit, &result)) {
        const task_id t = model_task_of(&l->engine.m, result.task);
        if (!id_none(t)) {
            retry_handle_result(l, t, result.what);
        }
    }
}

static void retry_act(struct retry *r, task_id t)
{
    if (r->state == RETRY_ASK_LATER) {
        retry_ask_pod(r, t);
    } else {
        r->state = RETRY_RESTING;
        engine_hold(&r->l->engine, t, false);
        r->l->inputs++;
    }
}

int64_t retry_tick(struct loop *l, int64_t now_ns)
{
    int64_t next_ns = INT64_MAX;

    for (uint32_t k = 0; k < l->retries.len;) {
        struct retry *r = l->retries.at[k];
        const bool waits = r->state == RETRY_ASK_LATER || r->state == RETRY_HELD;
        const task_id t = retry_task(r);
        if (id_none(t)) {
            retry_forget(l, k);
            continue;
        }
        if (waits && r->due_ns <= now_ns) {
            retry_act(r, t);
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
        retry_forget(l, 0);
    }
    hk_vec_fini(&l->retries);
}
