// SPDX-License-Identifier: Apache-2.0
// The agent's simulated runtime with somebody who watches: nothing is started twice, nothing for a
// pod that was never bound, and what is asked to stop stops.
#include "world/world.h"

#include <stdio.h>

struct process {
    uint64_t id;
    char uid[64], name[64];
    uint32_t attempt;
    bool ended, told; /* the record of an end is kept until the pod is stopped */
    struct runtime_end end;
};

/* A pod whose processes are being killed, and are gone by then. */
struct processes_stop {
    char uid[64];
    int64_t due_ns;
};

struct processes {
    struct runtime base;
    struct world *w;
    struct processes_opts o;
    struct runtime *inner;
    struct simulate_model model;
    HK_VEC(struct process) all;
    HK_VEC(struct processes_stop) stops;
};

static struct processes *processes_of(struct runtime *r)
{
    return (struct processes *)r;
}

static void processes_tell(struct processes *p, struct process *x)
{
    const uint64_t id = x->id;
    const struct runtime_end end = x->end;

    if (*p->o.agent) {
        x->told = true;
        agent_on_end(*p->o.agent, id, &end);
    }
}

static bool processes_is_known(struct processes *p, const char *uid);

static void processes_on_end(void *ctx, uint64_t id, const struct runtime_end *end)
{
    struct processes *p = ctx;

    for (uint32_t i = 0; i < p->all.len; i++) {
        struct process *x = &p->all.at[i];
        if (x->id != id) {
            continue;
        }
        trace_add(&p->w->trace, p->o.node, "end %s %s.%u code %d", x->uid, x->name, x->attempt,
                  end->code);
        check_process_end(p->w, x->uid, x->name, end);
        x->ended = true;
        x->end = *end;
        x->end.message = "";
        processes_tell(p, x);
        if (!p->o.outlives || !processes_is_known(p, x->uid)) {
            hk_vec_swap_remove(&p->all, i);
        }
        return;
    }
    if (*p->o.agent) {
        agent_on_end(*p->o.agent, id, end);
    }
}

static int64_t processes_delay(struct runtime *r, const struct runtime_container *c)
{
    struct runtime *in = processes_of(r)->inner;

    return in->ops->delay(in, c);
}

static int processes_pod_start(struct runtime *r, const struct runtime_pod *pod, struct hk_err *err)
{
    struct runtime *in = processes_of(r)->inner;

    return in->ops->pod_start(in, pod, err);
}

/* Everything that is left of the pod goes. */
static void processes_stop_now(struct processes *p, const char *uid)
{
    uint32_t kept = 0;

    p->inner->ops->pod_stop(p->inner, uid);
    for (uint32_t i = 0; i < p->all.len; i++) {
        if (!p->all.at[i].ended || strcmp(p->all.at[i].uid, uid) != 0) {
            p->all.at[kept++] = p->all.at[i];
        }
    }
    p->all.len = kept;
}

static void processes_pod_stop(struct runtime *r, const char *uid)
{
    struct processes *p = processes_of(r);
    struct processes_stop stop = {.due_ns = world_now(p->w)};

    if (p->w->breach == BREACH_PROCESS) {
        p->w->breaches++;
        return;
    }
    trace_add(&p->w->trace, p->o.node, "stop %s", uid);
    if (!p->o.outlives) {
        processes_stop_now(p, uid);
        return;
    }
    for (uint32_t i = 0; i < p->stops.len; i++) {
        if (strcmp(p->stops.at[i].uid, uid) == 0) {
            return;
        }
    }
    snprintf(stop.uid, sizeof(stop.uid), "%s", uid);
    stop.due_ns += world_between(p->w, 0, 1500) * WORLD_MS;
    hk_vec_push(&p->stops, stop);
}

static void processes_check_start(const struct processes *p, const struct runtime_container *c)
{
    for (uint32_t i = 0; i < p->all.len; i++) {
        const struct process *y = &p->all.at[i];
        if (!y->ended && strcmp(c->pod_uid, y->uid) == 0 && strcmp(c->name, y->name) == 0) {
            world_fail(p->w, "nothing runs twice",
                       "expected one process of container %s of pod %s, actual: attempt %u is "
                       "started while attempt %u runs",
                       c->name, c->pod_uid, c->attempt, y->attempt);
        }
        if (p->o.outlives && strcmp(c->pod_uid, y->uid) == 0 && strcmp(c->name, y->name) == 0 &&
            y->attempt == c->attempt) {
            world_fail(p->w, "no attempt is made twice",
                       "expected attempt %u of container %s of pod %s to be made once, actual: it "
                       "is started again",
                       c->attempt, c->name, c->pod_uid);
        }
    }
    check_start(p->w, p->o.node, c->pod_uid, c->name, c->attempt);
}

static int processes_start(struct runtime *r, const struct runtime_container *c, uint64_t *ret,
                           struct hk_err *err)
{
    struct processes *p = processes_of(r);
    struct process x = {.attempt = c->attempt};
    struct runtime_container with = *c;
    int rc;

    snprintf(x.uid, sizeof(x.uid), "%s", c->pod_uid);
    snprintf(x.name, sizeof(x.name), "%s", c->name);
    processes_check_start(p, c);
    if (!with.annotations) {
        with.annotations = world_json(p->w, "%s", check_fate(p->w->check, c->pod_uid));
    }
    rc = p->inner->ops->start(p->inner, &with, &x.id, err);
    if (rc == 0) {
        trace_add(&p->w->trace, p->o.node, "start %s %s.%u%s", x.uid, x.name, x.attempt,
                  c->started_ns > 0 ? " again" : "");
        hk_vec_push(&p->all, x);
        *ret = x.id;
    }
    return rc;
}

static void processes_kill(struct runtime *r, uint64_t id, int signo)
{
    struct runtime *in = processes_of(r)->inner;

    in->ops->kill(in, id, signo);
}

static int processes_exec(struct runtime *r, uint64_t id, const char *const *argv, int in, int out,
                          int err_out, uint64_t *ret, struct hk_err *err)
{
    struct runtime *inner = processes_of(r)->inner;

    return inner->ops->exec(inner, id, argv, in, out, err_out, ret, err);
}

/* What an earlier agent started, or the record of its end. */
static int processes_adopt(struct runtime *r, const char *uid, const char *name, uint32_t attempt,
                           uint64_t *ret, struct hk_err *err)
{
    struct processes *p = processes_of(r);

    for (uint32_t i = 0; i < p->all.len; i++) {
        struct process *x = &p->all.at[i];
        if (strcmp(x->uid, uid) == 0 && strcmp(x->name, name) == 0 && x->attempt == attempt) {
            trace_add(&p->w->trace, p->o.node, "adopt %s %s.%u%s", uid, name, attempt,
                      x->ended ? ", which has ended" : "");
            *ret = x->id;
            if (x->ended) {
                processes_tell(p, x);
            }
            return 0;
        }
    }
    return hk_fail(err, HK_ENOTFOUND, "container '%s.%u' has left no trace", name, attempt);
}

static void processes_each_pod(struct runtime *r, void (*fn)(void *ctx, const char *uid), void *ctx)
{
    struct runtime *in = processes_of(r)->inner;

    in->ops->each_pod(in, fn, ctx);
}

static const char *processes_caveats(struct runtime *r)
{
    return "";
}

static void processes_end(struct runtime *r)
{
    processes_free(processes_of(r));
}

static const struct runtime_ops processes_hollow_ops = {
    .name = "simulate",
    .hollow = true,
    .delay = processes_delay,
    .pod_start = processes_pod_start,
    .pod_stop = processes_pod_stop,
    .start = processes_start,
    .kill = processes_kill,
    .exec = processes_exec,
    .adopt = processes_adopt,
    .each_pod = processes_each_pod,
    .caveats = processes_caveats,
    .free = processes_end,
};

/* As the one of real processes: what it started goes on without its agent. */
static const struct runtime_ops processes_ops = {
    .name = "process",
    .pod_start = processes_pod_start,
    .pod_stop = processes_pod_stop,
    .start = processes_start,
    .kill = processes_kill,
    .exec = processes_exec,
    .adopt = processes_adopt,
    .each_pod = processes_each_pod,
    .caveats = processes_caveats,
    .free = processes_end,
};

struct processes *processes_new(struct world *w, const struct processes_opts *o)
{
    struct processes *p = hk_zalloc(sizeof(*p));

    p->base.ops = o->outlives ? &processes_ops : &processes_hollow_ops;
    p->w = w;
    p->o = *o;
    p->model = simulate_model_default();
    p->model.seed = w->seed;
    p->inner = simulate_runtime_new(&(struct simulate_opts){.clock = o->clock,
                                                            .rand = &w->ids,
                                                            .sink = {processes_on_end, p},
                                                            .fate = simulate_model_fate,
                                                            .ctx = &p->model});
    return p;
}

void processes_free(struct processes *p)
{
    if (p) {
        p->inner->ops->free(p->inner);
        hk_vec_fini(&p->all);
        hk_vec_fini(&p->stops);
        hk_free(p);
    }
}

struct runtime *processes_runtime(struct processes *p)
{
    return &p->base;
}

int64_t processes_run(struct processes *p)
{
    int64_t next_ns, stop_ns = INT64_MAX;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < p->stops.len; i++) {
        const struct processes_stop stop = p->stops.at[i];
        if (stop.due_ns <= world_now(p->w)) {
            processes_stop_now(p, stop.uid);
        } else {
            stop_ns = HK_MIN(stop_ns, stop.due_ns);
            p->stops.at[kept++] = stop;
        }
    }
    p->stops.len = kept;
    next_ns = simulate_run(p->inner);
    return HK_MIN(next_ns, stop_ns);
}

struct processes_search {
    const char *uid;
    bool found;
};

static void processes_search_pod(void *ctx, const char *uid)
{
    struct processes_search *s = ctx;

    s->found |= strcmp(s->uid, uid) == 0;
}

/* The pod has not been stopped. */
static bool processes_is_known(struct processes *p, const char *uid)
{
    struct processes_search s = {.uid = uid};

    p->inner->ops->each_pod(p->inner, processes_search_pod, &s);
    return s.found;
}

uint32_t processes_running(const struct processes *p, const char *uid)
{
    uint32_t n = 0;

    for (uint32_t i = 0; p && i < p->all.len; i++) {
        n += !p->all.at[i].ended && strcmp(p->all.at[i].uid, uid) == 0;
    }
    return n;
}

struct processes_visit {
    struct processes *p;
    void (*fn)(void *ctx, const char *uid, uint32_t running);
    void *ctx;
};

static void processes_visit_pod(void *ctx, const char *uid)
{
    const struct processes_visit *v = ctx;

    v->fn(v->ctx, uid, processes_running(v->p, uid));
}

void processes_each(struct processes *p, void (*fn)(void *ctx, const char *uid, uint32_t running),
                    void *ctx)
{
    struct processes_visit v = {p, fn, ctx};

    p->inner->ops->each_pod(p->inner, processes_visit_pod, &v);
}
