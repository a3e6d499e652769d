// SPDX-License-Identifier: Apache-2.0
// The parts of hekla-bench-server: cases are rows of a table and report numbers and checks; a phase
// is a number of clients asking one kind of thing as fast as they are answered.
#pragma once

#include "base/vec.h"
#include "bench/load.h"
#include "bench/load_grpc.h"
#include "bench/report.h"
#include "bench/server_proc.h"

struct server_bench {
    struct net_loop *loop;
    const char *hekla; /* path of the program */
    char dir[128];     /* for the servers' data */
    bool quick;        /* small sizes, and checks are TAP points */
    uint32_t runs;
    struct results all;
    uint32_t points;
    bool failed;
    struct hk_buf pod_tail; /* see server_pod */
    uint64_t npods;         /* names given out */
};

struct server_case {
    const char *id;
    const char *about;
    void (*run)(struct server_bench *b, const char *id);
};
extern const struct server_case server_cases[];
extern const uint32_t nserver_case;
/* Of server_watch.c. */
void server_case_fanout(struct server_bench *b, const char *id);
void server_case_stalled(struct server_bench *b, const char *id);
void server_case_idle(struct server_bench *b, const char *id);
/* Of webhook.c. */
void server_case_reviews(struct server_bench *b, const char *id);

/* ---- reporting ---- */

void server_report(struct server_bench *b, const char *id, const char *metric, const char *unit,
                   const char *bar, double v);
/* Median and range. */
void server_report_all(struct server_bench *b, const char *id, const char *metric, const char *unit,
                       const char *bar, double *v, uint32_t n);
/* A counter that must hold; saw is what was found. */
void server_check(struct server_bench *b, bool ok, const char *id, const char *promise, double saw);

/* A directory for one case's server, below b->dir. */
void server_case_dir(const struct server_bench *b, const char *name, char dir[static 256]);
/* hekla on a fresh directory of the case. */
void server_start(struct server_bench *b, const char *id, struct server_proc *p);

/* ---- what is asked ---- */

enum { SERVER_POD_BYTES = 4096 };
/* A pod of SERVER_POD_BYTES, filled with environment variables as real ones are. */
void server_pod(struct server_bench *b, const char *name, struct hk_buf *out);
/* A whole request; media "" asks for plain JSON, type is that of a body. */
void server_request(const struct server_proc *p, const char *method, const char *path,
                    const char *media, const char *type, struct hk_str body, struct hk_buf *out);
/* A number out of the server's /metrics, summed over labels. */
double server_metric(struct server_bench *b, const struct server_proc *p, const char *name);
/* Until nothing is written any more: a server writes once more a second after its start. */
void server_await_rest(struct server_bench *b, const struct server_proc *p);

/* ---- phases ---- */

struct server_phase {
    struct server_bench *b;
    const struct server_proc *proc;
    uint32_t clients;
    uint64_t count; /* requests, or */
    double seconds; /* how long */
    int want;       /* status of every answer */
    /* Appends the k-th request, on behalf of a client. */
    void (*request)(struct server_phase *p, uint64_t k, uint32_t client, struct hk_buf *out);
    /* Looks at an answer; may be NULL. */
    void (*look)(struct server_phase *p, uint32_t client, struct hk_str body);
    void *ctx;

    uint64_t asked, answered, bytes;
    double began, ended, self_cpu, server_cpu;
    double *sent; /* per client: when its request went out */
    HK_VEC(double) ms;
    bool stopped, done;
};

/* Runs it to its end over TLS; server_phase_fini when its numbers were read. */
void server_phase_run(struct server_phase *p);
double server_phase_rate(const struct server_phase *p);
void server_phase_fini(struct server_phase *p);

/* Pods of server_pod in the namespace default, count of them or for some seconds. */
void server_phase_pods(struct server_bench *b, const struct server_proc *p, uint32_t clients,
                       uint64_t count, double seconds, struct server_phase *ret);
/* The same pods as values put into etcd. */
void server_phase_puts(struct server_bench *b, const struct server_proc *p, uint32_t clients,
                       double seconds, struct server_phase *ret);
