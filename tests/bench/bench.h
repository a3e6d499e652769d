// SPDX-License-Identifier: Apache-2.0
// The benchmark's parts: workloads are rows of a table, each with a way to build its cluster and a
// way to measure it; results are numbers with a name. Every workload runs in a process of its own,
// so that its memory is its own too.
#pragma once

#include "bench/report.h"
#include "bench/world.h"
#include "scheduler/session.h"

struct bench;
struct sink;

struct workload {
    const char *id;
    const char *about;
    void (*build)(struct bench *b);
    void (*measure)(struct bench *b, struct sink *out);
    uint32_t nodes, pods, gang;
    uint32_t running; /* pods running beforehand */
    uint32_t full;    /* percent of the cluster in use once everything is placed; 0: roomy */
    const char *conf; /* NULL: the default one */
    const char *bar;  /* "P1 >= 100000": of the first number */
};
extern const struct workload workloads[];
extern const uint32_t nworkload;

/* One workload while it runs. */
struct bench {
    const struct workload *spec;
    uint32_t nodes, pods, gang, running; /* spec's, scaled down when quick */
    uint32_t runs;
    struct world w;
    struct hk_rand rand;
    struct conf *conf;
    struct scheduler_mem *sm;
    struct session ssn;
    struct session_opts opts;
    uint8_t *phase;       /* of every job, to begin each run alike */
    uint64_t alloc_calls; /* in the last cycle */
};

/* ---- measure.c ---- */

/* Results go through a pipe to the parent. */
struct sink {
    int fd;
};

/* Pending pods are placed in one cycle: pods/s, the cycle's time, allocations. */
void measure_place(struct bench *b, struct sink *out);
/* Pods that get a place by evicting others. */
void measure_evict(struct bench *b, struct sink *out);
/* Cycles in which nothing can be done and nothing changed. */
void measure_idle(struct bench *b, struct sink *out);
/* One pod arrives per cycle. */
void measure_arrivals(struct bench *b, struct sink *out);
/* Resident memory after everything was placed. */
void measure_memory(struct bench *b, struct sink *out);

/* From JSON texts to the first bind (restart.c). */
void measure_restart(struct bench *b, struct sink *out);

/* Processor time of this process in seconds. */
double bench_now(void);
/* One session; the seconds it took. */
double bench_cycle(struct bench *b);
void bench_emit(struct sink *out, const struct bench *b, const char *metric, const char *unit,
                const char *bar, double v);

/* Builds, measures, ends. */
void bench_run(const struct workload *spec, bool quick, uint32_t runs, struct sink *out);
