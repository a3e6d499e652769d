// SPDX-License-Identifier: Apache-2.0
// The simulated runtime: containers only exist as a queue of ends in order of time. Ends at the
// same time are reported in the order in which they were set, so that a simulation is repeatable.
#include "agent/simulate/simulate.h"

#include "base/heap.h"
#include "base/map.h"
#include "base/vec.h"

#include <signal.h>

struct sim_pod {
    char *uid, *ns, *name; /* uid NULL: not started */
    HK_VEC(uint64_t) tasks;
};

struct sim_task {
    uint64_t id;  /* 0: free row */
    uint32_t pod; /* row */
    char *name;   /* NULL: an exec command */
    uint32_t attempt;
    uint64_t due;  /* number of the valid end; a kill sets a new one */
    int64_t at_ns; /* time of that end, monotonic; INT64_MAX: never */
    int64_t start_mono_ns;
    bool ignores_term;
    int64_t term_duration_ns;
    char *message;
    struct runtime_end end;
};

/* A future end. */
struct sim_due {
    int64_t at_ns; /* monotonic */
    uint64_t number, task;
};

struct simulate {
    struct runtime base;
    struct simulate_opts opts;
    struct hk_intern uids;
    HK_VEC(struct sim_pod) pods; /* by the uid's id */
    HK_VEC(struct sim_task) tasks;
    HK_VEC(uint32_t) vacant_tasks;
    struct hk_map rows; /* task id to row */
    HK_VEC(struct sim_due) dues;
    HK_VEC(uint32_t) vacant_dues;
    struct hk_heap queue; /* of rows in dues */
    uint64_t last_id, last_due;
};

static struct simulate *simulate_of(struct runtime *r)
{
    return (struct simulate *)r;
}

static int64_t simulate_now_ns(const struct simulate *s)
{
    return s->opts.clock->mono_ns(s->opts.clock);
}

/* ---- rows ---- */

/* A stopped pod keeps its row until the last end is reported. */
static void sim_pod_let_go(struct simulate *s, uint32_t row)
{
    if (!s->pods.at[row].uid && s->pods.at[row].tasks.len == 0) {
        hk_intern_drop(&s->uids, row);
    }
}

static struct sim_pod *sim_pod_find(struct simulate *s, const char *uid)
{
    const uint32_t row = hk_intern_find(&s->uids, hk_str(uid));

    return row < s->pods.len && s->pods.at[row].uid ? &s->pods.at[row] : NULL;
}

static struct sim_task *sim_task_find(struct simulate *s, uint64_t id)
{
    const uint32_t row = hk_map_get(&s->rows, id);

    return row == HK_NONE ? NULL : &s->tasks.at[row];
}

static struct sim_task *sim_task_new(struct simulate *s, uint32_t pod)
{
    uint32_t row = s->tasks.len;

    if (s->vacant_tasks.len > 0) {
        row = hk_vec_pop(&s->vacant_tasks);
    } else {
        hk_vec_push(&s->tasks, (struct sim_task){0});
    }
    s->tasks.at[row] = (struct sim_task){
        .id = ++s->last_id,
        .pod = pod,
        .at_ns = INT64_MAX,
        .start_mono_ns = simulate_now_ns(s),
        .end = {.start_ns = s->opts.clock->wall_ns(s->opts.clock), .message = ""},
    };
    hk_map_put(&s->rows, s->last_id, row);
    hk_vec_push(&s->pods.at[pod].tasks, s->last_id);
    return &s->tasks.at[row];
}

static void sim_task_free(struct simulate *s, struct sim_task *t)
{
    struct sim_pod *pod = &s->pods.at[t->pod];

    for (uint32_t k = 0; k < pod->tasks.len; k++) {
        if (pod->tasks.at[k] == t->id) {
            hk_vec_swap_remove(&pod->tasks, k);
            break;
        }
    }
    sim_pod_let_go(s, t->pod);
    hk_map_del(&s->rows, t->id);
    hk_free(t->name);
    hk_free(t->message);
    hk_vec_push(&s->vacant_tasks, (uint32_t)(t - s->tasks.at));
    *t = (struct sim_task){0};
}

/* ---- the queue ---- */

static bool due_before(void *ctx, uint32_t a, uint32_t b)
{
    const struct simulate *s = ctx;
    const struct sim_due *x = &s->dues.at[a], *y = &s->dues.at[b];

    return x->at_ns != y->at_ns ? x->at_ns < y->at_ns : x->number < y->number;
}

static void due_set(struct simulate *s, struct sim_task *t, int64_t after_ns)
{
    uint32_t row = s->dues.len;

    if (s->vacant_dues.len > 0) {
        row = hk_vec_pop(&s->vacant_dues);
    } else {
        hk_vec_push(&s->dues, (struct sim_due){0});
    }
    t->due = ++s->last_due;
    t->at_ns = simulate_now_ns(s) + after_ns;
    s->dues.at[row] = (struct sim_due){
        .at_ns = t->at_ns,
        .number = t->due,
        .task = t->id,
    };
    hk_heap_push(&s->queue, row);
}

static void simulate_report_end(struct simulate *s, struct sim_task *t, int64_t at_ns)
{
    struct runtime_end end = t->end;
    HK_AUTO(hk_freep) char *message = hk_take(t->message);
    const uint64_t id = t->id;

    end.message = message ? message : "";
    end.end_ns = end.start_ns + (at_ns - t->start_mono_ns);
    sim_task_free(s, t);
    s->opts.sink.on_end(s->opts.sink.ctx, id, &end);
}

int64_t simulate_run(struct runtime *r)
{
    struct simulate *s = simulate_of(r);

    while (s->queue.len > 0) {
        const uint32_t row = s->queue.at[0];
        const struct sim_due due = s->dues.at[row];
        struct sim_task *t = sim_task_find(s, due.task);
        const bool counts = t && t->due == due.number;

        if (counts && due.at_ns > simulate_now_ns(s)) {
            return due.at_ns;
        }
        hk_heap_pop(&s->queue);
        hk_vec_push(&s->vacant_dues, row);
        if (counts) {
            simulate_report_end(s, t, due.at_ns);
        }
    }
    return INT64_MAX;
}

/* ---- operations ---- */

static int simulate_pod_start(struct runtime *r, const struct runtime_pod *pod, struct hk_err *err)
{
    struct simulate *s = simulate_of(r);
    uint32_t row;

    if (sim_pod_find(s, pod->uid)) {
        return 0;
    }
    row = hk_intern_find(&s->uids, hk_str(pod->uid));
    if (row == HK_NONE) {
        row = hk_intern_hold(&s->uids, hk_str(pod->uid));
    }
    while (s->pods.len <= row) {
        hk_vec_push(&s->pods, (struct sim_pod){0});
    }
    s->pods.at[row].uid = hk_strdup(pod->uid);
    s->pods.at[row].ns = hk_strdup(pod->ns ? pod->ns : "");
    s->pods.at[row].name = hk_strdup(pod->name ? pod->name : "");
    return 0;
}

/* Ends the task after that time, unless it ends earlier. */
static void kill_after(struct simulate *s, struct sim_task *t, int signo, int64_t after_ns)
{
    if (t->at_ns <= simulate_now_ns(s) + after_ns) {
        return;
    }
    t->end.code = 128 + signo;
    t->end.signo = signo;
    t->end.oom = false;
    due_set(s, t, after_ns);
}

static void sim_pod_free(struct sim_pod *pod)
{
    hk_free(pod->uid);
    hk_free(pod->ns);
    hk_free(pod->name);
    pod->uid = pod->ns = pod->name = NULL;
}

static void simulate_pod_stop(struct runtime *r, const char *uid)
{
    struct simulate *s = simulate_of(r);
    struct sim_pod *pod = sim_pod_find(s, uid);

    if (!pod) {
        return;
    }
    for (uint32_t k = 0; k < pod->tasks.len; k++) {
        kill_after(s, sim_task_find(s, pod->tasks.at[k]), SIGKILL, 0);
    }
    sim_pod_free(pod);
    sim_pod_let_go(s, (uint32_t)(pod - s->pods.at));
}

static struct simulate_fate fate_of(struct simulate *s, const struct sim_pod *pod,
                                    const struct runtime_container *c)
{
    struct simulate_fate fate = {0};

    if (s->opts.fate) {
        const struct runtime_pod about = {.uid = pod->uid, .ns = pod->ns, .name = pod->name};
        s->opts.fate(s->opts.ctx, s->opts.rand, &about, c, &fate);
    }
    return fate;
}

static int64_t delay(struct runtime *r, const struct runtime_container *c)
{
    struct simulate *s = simulate_of(r);
    const struct sim_pod *pod = sim_pod_find(s, c->pod_uid);

    return pod ? fate_of(s, pod, c).delay_ns : 0;
}

/* A task with an earlier start time has that much less left. */
static int64_t left_ns(const struct simulate *s, const struct sim_task *t, int64_t duration_ns)
{
    const int64_t since_ns = s->opts.clock->wall_ns(s->opts.clock) - t->end.start_ns;

    return HK_MAX(duration_ns - HK_MAX(since_ns, 0), 0);
}

static int simulate_runtime_start(struct runtime *r, const struct runtime_container *c,
                                  uint64_t *ret, struct hk_err *err)
{
    struct simulate *s = simulate_of(r);
    const struct sim_pod *pod = sim_pod_find(s, c->pod_uid);
    struct simulate_fate fate;
    struct sim_task *t;

    if (!pod) {
        return hk_fail(err, HK_ENOTFOUND, "pod '%s' has not been started", c->pod_uid);
    }
    fate = fate_of(s, pod, c);
    t = sim_task_new(s, (uint32_t)(pod - s->pods.at));
    t->name = hk_strdup(c->name);
    t->attempt = c->attempt;
    if (c->started_ns > 0) {
        t->start_mono_ns -= t->end.start_ns - c->started_ns;
        t->end.start_ns = c->started_ns;
    }
    t->ignores_term = fate.ignores_term;
    t->term_duration_ns = fate.term_duration_ns;
    t->end.code = fate.never_ran ? 128 : fate.code;
    t->end.oom = fate.oom;
    t->end.never_ran = fate.never_ran != NULL;
    t->message = fate.never_ran ? hk_strdup(fate.never_ran) : NULL;
    if (fate.never_ran || fate.duration_ns >= 0) {
        due_set(s, t, fate.never_ran ? 0 : left_ns(s, t, fate.duration_ns));
    }
    *ret = t->id;
    return 0;
}

static void kill_task(struct runtime *r, uint64_t container, int signo)
{
    struct simulate *s = simulate_of(r);
    struct sim_task *t = sim_task_find(s, container);

    if (!t || (t->ignores_term && signo != SIGKILL)) {
        return;
    }
    kill_after(s, t, signo, signo == SIGKILL ? 0 : t->term_duration_ns);
}

/* There is no process to run it in: every exec command succeeds at once. */
static int exec_beside(struct runtime *r, uint64_t container, const char *const *argv, int in,
                       int out, int err_out, uint64_t *ret, struct hk_err *err)
{
    struct simulate *s = simulate_of(r);
    const struct sim_task *of = sim_task_find(s, container);
    struct sim_task *t;

    if (!of) {
        return hk_fail(err, HK_ENOTFOUND, "container not running");
    }
    t = sim_task_new(s, of->pod);
    due_set(s, t, 0);
    *ret = t->id;
    return 0;
}

static int simulate_runtime_adopt(struct runtime *r, const char *pod_uid, const char *name,
                                  uint32_t attempt, uint64_t *ret, struct hk_err *err)
{
    struct simulate *s = simulate_of(r);
    const struct sim_pod *pod = sim_pod_find(s, pod_uid);

    for (uint32_t k = 0; pod && k < pod->tasks.len; k++) {
        const struct sim_task *t = sim_task_find(s, pod->tasks.at[k]);
        if (t->name && strcmp(t->name, name) == 0 && t->attempt == attempt) {
            *ret = t->id;
            return 0;
        }
    }
    return hk_fail(err, HK_ENOTFOUND, "container '%s.%u' has left no trace", name, attempt);
}

static void each_pod(struct runtime *r, void (*fn)(void *ctx, const char *uid), void *ctx)
{
    struct simulate *s = simulate_of(r);

    for (uint32_t k = 0; k < s->pods.len; k++) {
        if (s->pods.at[k].uid) {
            /* fn may stop the pod and free its uid. */
            HK_AUTO(hk_freep) char *uid = hk_strdup(s->pods.at[k].uid);
            fn(ctx, uid);
        }
    }
}

static const char *simulate_runtime_caveats(struct runtime *r)
{
    return "";
}

static void simulate_free(struct runtime *r)
{
    struct simulate *s = simulate_of(r);

    for (uint32_t k = 0; k < s->tasks.len; k++) {
        hk_free(s->tasks.at[k].name);
        hk_free(s->tasks.at[k].message);
    }
    for (uint32_t k = 0; k < s->pods.len; k++) {
        sim_pod_free(&s->pods.at[k]);
        hk_vec_fini(&s->pods.at[k].tasks);
    }
    hk_vec_fini(&s->pods);
    hk_vec_fini(&s->tasks);
    hk_vec_fini(&s->vacant_tasks);
    hk_vec_fini(&s->dues);
    hk_vec_fini(&s->vacant_dues);
    hk_heap_fini(&s->queue);
    hk_map_fini(&s->rows);
    hk_intern_fini(&s->uids);
    hk_free(s);
}

static const struct runtime_ops simulate_ops = {
    .name = "simulate",
    .hollow = true,
    .delay = delay,
    .pod_start = simulate_pod_start,
    .pod_stop = simulate_pod_stop,
    .start = simulate_runtime_start,
    .kill = kill_task,
    .exec = exec_beside,
    .adopt = simulate_runtime_adopt,
    .each_pod = each_pod,
    .caveats = simulate_runtime_caveats,
    .free = simulate_free,
};

struct runtime *simulate_runtime_new(const struct simulate_opts *o)
{
    struct simulate *s = hk_zalloc(sizeof(*s));

    s->base.ops = &simulate_ops;
    s->opts = *o;
    s->queue = (struct hk_heap){.less = due_before, .ctx = s};
    return &s->base;
}
