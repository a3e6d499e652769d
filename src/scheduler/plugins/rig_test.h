// SPDX-License-Identifier: Apache-2.0
// A small cluster for plugin tests: queues, jobs and tasks in a few words, and a session over them
// with the plugins of a configuration. Amounts are written "cpu=2 mem=4 pods=10 gpu=1": cores,
// bytes, pieces.
#pragma once

#include "scheduler/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct rig {
    struct model m;
    struct conf *conf;
    struct scheduler_mem *sm;
    struct session ssn;
    bool open;
};

static inline void rig_close(struct rig *r)
{
    if (r->open) {
        session_close(&r->ssn);
        r->open = false;
    }
    conf_free(r->conf);
    r->conf = NULL;
}

static inline void rig_fini(struct rig *r)
{
    rig_close(r);
    scheduler_mem_free(r->sm);
    model_fini(&r->m);
}

static inline void rig_init(struct rig *r)
{
    *r = (struct rig){0};
    model_init(&r->m);
    r->sm = scheduler_mem_new(1);
}

#define RIG(r)                                                                                     \
    HK_AUTO(rig_fini) struct rig r;                                                                \
    rig_init(&r)

/* The dimension a short name stands for and how much one of it is in stored units. */
static inline uint32_t rig_dim(struct rig *r, struct hk_str name, int64_t *unit)
{
    uint32_t d = HK_NONE;
    char full[64];

    *unit = 1;
    if (hk_str_is(name, "cpu")) {
        *unit = 1000;
        return DIM_CPU;
    }
    if (hk_str_is(name, "mem")) {
        return DIM_MEM;
    }
    if (hk_str_is(name, "pods")) {
        return DIM_PODS;
    }
    *unit = 1000;
    snprintf(full, sizeof(full), "example.com/%.*s", HK_FMT(name));
    assert_int_equal(model_dim(&r->m, hk_str(full), &d, NULL), 0);
    return d;
}

#define RIG_AMOUNTS 8
static inline uint32_t rig_amounts(struct rig *r, const char *text, struct amount *ret)
{
    struct hk_str rest = hk_str(text), word;
    uint32_t n = 0;

    while (text && hk_str_cut(&rest, ' ', &word)) {
        struct hk_str name = {0};
        int64_t unit;

        if (word.n == 0) {
            continue;
        }
        assert_true(n < RIG_AMOUNTS && hk_str_cut(&word, '=', &name) && word.s);
        ret[n].dim = rig_dim(r, name, &unit);
        ret[n++].v = (int64_t)(strtod(word.s, NULL) * (double)unit + 0.5);
    }
    return n;
}

static inline struct rvec rig_rvec(struct rig *r, const char *text)
{
    struct amount a[RIG_AMOUNTS];
    const uint32_t n = rig_amounts(r, text, a);
    struct rvec v;

    rvec_zero(&v);
    for (uint32_t k = 0; k < n; k++) {
        rvec_set(&v, a[k].dim, (double)a[k].v);
    }
    return v;
}

static inline node_id rig_node(struct rig *r, const char *name, const char *alloc)
{
    struct amount a[RIG_AMOUNTS];
    const uint32_t n = rig_amounts(r, alloc, a);
    node_id id = NO_NODE;

    assert_int_equal(
        model_node_put(
            &r->m,
            &(struct node_desc){
                .name = hk_str(name), .alloc = a, .nalloc = n, .kalloc = a, .nkalloc = n},
            &id, NULL),
        0);
    return id;
}

struct rig_queue {
    const char *name, *parent, *capability, *deserved, *guarantee, *path, *weights;
    int32_t weight, priority;
    bool closed;
};

static inline queue_id rig_queue_put(struct rig *r, struct rig_queue q)
{
    return model_queue_put(&r->m, &(struct queue_desc){
                                      .name = hk_str(q.name),
                                      .parent = hk_str(q.parent),
                                      .hierarchy = hk_str(q.path),
                                      .hierarchy_weights = hk_str(q.weights),
                                      .weight = q.weight ? q.weight : 1,
                                      .priority = q.priority,
                                      .state = q.closed ? QUEUE_CLOSED : QUEUE_OPEN,
                                      .reclaimable = true,
                                      .has_capability = q.capability != NULL,
                                      .has_deserved = q.deserved != NULL,
                                      .has_guarantee = q.guarantee != NULL,
                                      .capability = rig_rvec(r, q.capability),
                                      .deserved = rig_rvec(r, q.deserved),
                                      .guarantee = rig_rvec(r, q.guarantee),
                                  });
}
/* rig_queue(&r, "q", .weight = 2) */
#define rig_queue(r, queue_name, ...)                                                              \
    rig_queue_put(r, (struct rig_queue){.name = (queue_name), ##__VA_ARGS__})

struct rig_job {
    const char *name, *queue, *ns, *minres;
    int32_t min, priority;
    enum pg_phase phase;
    int64_t creation_ns, waiting_ns;
    const struct role_min *roles;
    uint32_t nrole;
    const struct min_item *items;
    uint32_t nitem;
    const struct policy_desc *policies;
    uint32_t npolicy;
};

static inline job_id rig_job_put(struct rig *r, struct rig_job j)
{
    struct amount a[RIG_AMOUNTS];
    const uint32_t n = rig_amounts(r, j.minres, a);

    return model_job_put(&r->m, &(struct job_desc){
                                    .ns = hk_str(j.ns ? j.ns : "ns"),
                                    .name = hk_str(j.name),
                                    .uid = hk_str(j.name),
                                    .queue = hk_str(j.queue),
                                    .min = j.min,
                                    .priority = j.priority,
                                    .phase = j.phase,
                                    .creation_ns = j.creation_ns,
                                    .waiting_ns = j.waiting_ns,
                                    .has_minres = j.minres || j.nitem > 0,
                                    .minres = a,
                                    .nminres = n,
                                    .min_items = j.items,
                                    .nmin_items = j.nitem,
                                    .roles = j.roles,
                                    .nrole = j.nrole,
                                    .policies = j.policies,
                                    .npolicy = j.npolicy,
                                });
}
/* rig_job(&r, "job", "queue", .min = 2) */
#define rig_job(r, job_name, queue_name, ...)                                                      \
    rig_job_put(r, (struct rig_job){.name = (job_name), .queue = (queue_name), ##__VA_ARGS__})

struct rig_task {
    const char *job, *name, *ns, *req, *node, *role;
    enum task_status status;
    unsigned flags;
    int32_t priority;
    const struct label *labels; /* sorted by key id */
    uint32_t nlabel;
};

static inline task_id rig_task_put(struct rig *r, struct rig_task t)
{
    struct amount a[RIG_AMOUNTS + 1];
    uint32_t n = rig_amounts(r, t.req, a);
    const struct hk_str ns = hk_str(t.ns ? t.ns : "ns");
    task_id id = NO_TASK;

    a[n++] = (struct amount){DIM_PODS, 1};
    const shape_id shape =
        model_shape_intern(&r->m, &(struct shape_desc){.req = a, .nreq = n, .cons = NO_CONS});
    const ident_id ident = model_ident_intern(&r->m, hk_intern(&r->m.str, ns), t.labels, t.nlabel);
    assert_int_equal(model_task_put(&r->m,
                                    &(struct task_desc){
                                        .ns = ns,
                                        .name = hk_str(t.name),
                                        .uid = hk_str(t.name),
                                        .group = hk_str(t.job),
                                        .node = hk_str(t.node),
                                        .role = t.role ? hk_intern(&r->m.str, hk_str(t.role)) : 0,
                                        .priority = t.priority,
                                        .flags = t.flags,
                                        .status = t.status,
                                        .shape = shape,
                                        .ident = ident,
                                        .labels = ident_labels(&r->m, ident),
                                    },
                                    &id, NULL),
                     0);
    return id;
}
/* rig_task(&r, "job", "task", .req = "cpu=1") */
#define rig_task(r, job_name, task_name, ...)                                                      \
    rig_task_put(r, (struct rig_task){.job = (job_name), .name = (task_name), ##__VA_ARGS__})

/* Opens a session with a whole configuration. */
static inline void rig_open_at(struct rig *r, const char *conf, int64_t now_ns)
{
    struct session_opts opts = SESSION_OPTS_DEFAULT;
    struct hk_err err = {0};

    rig_close(r);
    opts.now_ns = now_ns;
    if (conf_parse(hk_str(conf), &r->conf, &err) < 0) {
        fail_msg("%s", err.text);
    }
    session_open(&r->ssn, &r->m, r->conf, &opts, r->sm);
    r->open = true;
}

/* One plugin, with lines to follow its name. */
static inline void rig_open(struct rig *r, const char *plugin, const char *more)
{
    char text[512];

    snprintf(text, sizeof(text), "actions: allocate\ntiers:\n- plugins:\n  - name: %s\n%s", plugin,
             more);
    rig_open_at(r, text, 0);
}

/* State of the only plugin. */
static inline void *rig_self(struct rig *r)
{
    return r->ssn.opened[0].self;
}

/* "a c" for the victims among tasks, by name. */
static inline const char *rig_names(struct rig *r, const struct victims *v)
{
    const char *text = "";

    for (uint32_t k = 0; k < v->nout; k++) {
        text = hk_arena_printf(r->ssn.mem, "%s%s%.*s", text, k ? " " : "",
                               HK_FMT(model_str(&r->m, model_task(&r->m, v->out[k])->name)));
    }
    return text;
}

#define RIG_VICTIMS(v, ...)                                                                        \
    const task_id v##_in[] = {__VA_ARGS__};                                                        \
    task_id v##_out[HK_LEN(v##_in)];                                                               \
    struct victims v = {.in = v##_in, .n = HK_LEN(v##_in), .out = v##_out}
