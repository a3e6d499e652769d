// SPDX-License-Identifier: Apache-2.0
// Runs a workload and takes its numbers. Only deciding is timed: opening, running and closing
// sessions; not building the cluster and not putting it back for the next run. The first runs warm
// memory up and are not counted, so the runs that are counted must not need the allocator. Time is
// that of the processor: the engine runs on one thread and waits for nobody, and the machine may be
// busy.
#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { IDLE_CYCLES = 50, ARRIVALS = 2000, WARM_CYCLES = 100 };

/* ---- numbers ---- */

static void emit(struct sink *out, const struct result *r)
{
    hk_assert(write(out->fd, r, sizeof(*r)) == (ssize_t)sizeof(*r));
}

/* Median with range; the bar is the workload's when it is the first number. */
static void emit_median(struct sink *out, const struct bench *b, const char *metric,
                        const char *unit, const char *bar, double *v, uint32_t n)
{
    const struct result r = report_median(b->spec->id, metric, unit, bar, v, n);

    emit(out, &r);
}

void bench_emit(struct sink *out, const struct bench *b, const char *metric, const char *unit,
                const char *bar, double v)
{
    emit_median(out, b, metric, unit, bar, &v, 1);
}

static void emit_allocs(struct sink *out, const struct bench *b, uint64_t calls)
{
    double v = (double)calls;
    struct result r = report_median(b->spec->id, "allocations", "per cycle", NULL, &v, 1);

    r.asserted = true;
    emit(out, &r);
}

static void emit_memory(struct sink *out, const struct bench *b, const char *bar)
{
    bench_emit(out, b, "memory", "MB", bar, report_rss_mb(getpid()));
}

/* ---- cycles ---- */

double bench_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double bench_cycle(struct bench *b)
{
    const uint64_t calls = hk_alloc_calls();
    const double start = bench_now();

    session_open(&b->ssn, &b->w.m, b->conf, &b->opts, b->sm);
    session_run(&b->ssn);
    session_close(&b->ssn);
    const double seconds = bench_now() - start;
    b->alloc_calls = hk_alloc_calls() - calls;
    b->opts.now_ns += SECOND;
    return seconds;
}

static uint32_t count_decisions(const struct bench *b, enum op_kind kind)
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < b->ssn.decisions.len; k++) {
        n += b->ssn.decisions.at[k].kind == kind;
    }
    return n;
}

static uint32_t count_promised(const struct bench *b)
{
    const struct model *m = &b->w.m;
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->tasks.len; i++) {
        n += m->tasks.at[i].used && !id_none(model_node_of(m, m->tasks.at[i].nominated));
    }
    return n;
}

static void remember_phases(struct bench *b)
{
    const struct model *m = &b->w.m;

    b->phase = hk_zalloc_array(m->jobs.len + 1, sizeof(*b->phase));
    for (uint32_t i = 0; i < m->jobs.len; i++) {
        b->phase[i] = m->jobs.at[i].phase;
    }
}

/* Everything as it was before the last cycle. */
static void put_back(struct bench *b)
{
    struct model *m = &b->w.m;

    for (uint32_t k = 0; k < b->ssn.decisions.len; k++) {
        const struct decision *d = &b->ssn.decisions.at[k];
        struct task *t = model_task(m, d->task);
        if (d->kind == OP_EVICT) {
            model_task_move(m, d->task, TASK_RUNNING, d->node);
            t->flags &= (uint16_t)~TASK_PREEMPT_VICTIM;
        } else {
            model_task_move(m, d->task, TASK_PENDING, NO_NODE);
        }
    }
    for (uint32_t i = 0; i < m->tasks.len; i++) {
        m->tasks.at[i].nominated = (node_ref){0};
    }
    for (uint32_t i = 0; i < m->jobs.len; i++) {
        if (m->jobs.at[i].used) {
            model_job_set_phase(m, (job_id){i}, b->phase[i]);
        }
    }
}

/* ---- kinds of measurement ---- */

/* Until a cycle needs no memory any more. Pods land elsewhere each time, and where one lands for
 * the first time a counter per topology domain may begin: such workloads take a few cycles to get
 * there. */
static void warm_up(struct bench *b)
{
    bench_cycle(b);
    for (uint32_t k = 0; b->alloc_calls > 0 && k < WARM_CYCLES; k++) {
        put_back(b);
        bench_cycle(b);
    }
}

static void measure_rate(struct bench *b, struct sink *out, const char *metric,
                         uint32_t (*count)(const struct bench *b))
{
    double *rate = hk_zalloc_array(b->runs, sizeof(*rate));
    double *ms = hk_zalloc_array(b->runs, sizeof(*ms));
    uint64_t allocs = 0;

    remember_phases(b);
    warm_up(b);
    for (uint32_t k = 0; k < b->runs; k++) {
        put_back(b);
        const double s = bench_cycle(b);
        rate[k] = count(b) / s;
        ms[k] = s * 1e3;
        allocs = HK_MAX(allocs, b->alloc_calls);
    }
    const bool timed = b->spec->bar && strstr(b->spec->bar, "ms");
    emit_median(out, b, metric, "1/s", timed ? NULL : b->spec->bar, rate, b->runs);
    bench_emit(out, b, "decided", "pods", NULL, count(b));
    emit_median(out, b, "cycle", "ms", timed ? b->spec->bar : NULL, ms, b->runs);
    emit_allocs(out, b, allocs);
    emit_memory(out, b, NULL);
    hk_free(rate);
    hk_free(ms);
}

static uint32_t count_binds(const struct bench *b)
{
    return count_decisions(b, OP_ALLOCATE);
}

void measure_place(struct bench *b, struct sink *out)
{
    measure_rate(b, out, "placements", count_binds);
}

void measure_evict(struct bench *b, struct sink *out)
{
    measure_rate(b, out, "preemptors", count_promised);
    bench_emit(out, b, "evictions", "pods", NULL, count_decisions(b, OP_EVICT));
}

static void emit_latency(struct bench *b, struct sink *out, double *ms, uint32_t n, const char *bar)
{
    emit_median(out, b, "cycle p50", "ms", bar, ms, n);
    bench_emit(out, b, "cycle p99", "ms", NULL, report_percentile(ms, n, 0.99));
}

void measure_idle(struct bench *b, struct sink *out)
{
    double ms[IDLE_CYCLES];
    uint64_t allocs = 0;

    bench_cycle(b);
    bench_cycle(b); /* phases changed in the first */
    for (uint32_t k = 0; k < IDLE_CYCLES; k++) {
        ms[k] = bench_cycle(b) * 1e3;
        allocs = HK_MAX(allocs, b->alloc_calls);
    }
    emit_latency(b, out, ms, IDLE_CYCLES, b->spec->bar);
    emit_allocs(out, b, allocs);
    emit_memory(out, b, NULL);
}

void measure_arrivals(struct bench *b, struct sink *out)
{
    const uint32_t n = HK_MIN(b->pods, (uint32_t)ARRIVALS);
    double *ms = hk_zalloc_array(n, sizeof(*ms));
    uint64_t allocs = 0;
    uint32_t bound = 0;

    /* All wait outside, their queue unknown, and are let in one by one. */
    remember_phases(b);
    for (uint32_t k = 0; k < n; k++) {
        const job_id j = {b->w.m.jobs.len - n + k};
        const struct hk_str name = model_str(&b->w.m, model_job(&b->w.m, j)->name);
        model_job_put(&b->w.m, &(struct job_desc){.ns = HK_STR("default"),
                                                  .name = name,
                                                  .uid = name,
                                                  .queue = HK_STR("default"),
                                                  .min = 1,
                                                  .phase = PG_INQUEUE,
                                                  .creation_ns = world_tick(&b->w)});
        ms[k] = bench_cycle(b) * 1e3;
        bound += count_decisions(b, OP_ALLOCATE);
        allocs = k >= n / 2 ? HK_MAX(allocs, b->alloc_calls) : 0;
    }
    hk_assert(bound == n);
    emit_latency(b, out, ms, n, b->spec->bar);
    emit_allocs(out, b, allocs);
    emit_memory(out, b, NULL);
    hk_free(ms);
}

void measure_memory(struct bench *b, struct sink *out)
{
    bench_cycle(b);
    emit_memory(out, b, b->spec->bar);
    bench_emit(out, b, "decided", "pods", NULL, count_decisions(b, OP_ALLOCATE));
}

/* ---- one workload ---- */

static uint32_t scaled(uint32_t n, bool quick)
{
    enum { QUICK = 50 };

    return quick && n > QUICK ? HK_MAX(n / QUICK, (uint32_t)10) : n;
}

void bench_run(const struct workload *spec, bool quick, uint32_t runs, struct sink *out)
{
    struct bench b = {.spec = spec,
                      .nodes = scaled(spec->nodes, quick),
                      .pods = scaled(spec->pods, quick),
                      .gang = quick ? HK_MIN(spec->gang, scaled(spec->pods, quick)) : spec->gang,
                      .running = scaled(spec->running, quick),
                      .runs = runs,
                      .opts = SESSION_OPTS_DEFAULT};
    struct hk_err err = {0};

    hk_rand_seed(&b.rand, 1);
    world_init(&b.w);
    hk_assert(conf_parse(hk_str(spec->conf ? spec->conf : conf_default_text), &b.conf, &err) == 0);
    spec->build(&b);
    b.sm = scheduler_mem_new(1);
    b.opts.now_ns = world_tick(&b.w);
    b.opts.meter = meter_new(hk_clock_system()); /* as in the daemon */
    spec->measure(&b, out);
    hk_assert(model_check(&b.w.m, &err) == 0);
    scheduler_mem_free(b.sm);
    meter_free(b.opts.meter);
    conf_free(b.conf);
    hk_free(b.phase);
    world_fini(&b.w);
}
