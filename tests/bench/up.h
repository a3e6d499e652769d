// SPDX-License-Identifier: Apache-2.0
// The parts of hekla-bench-up: jobs posted over HTTPS, and watches that count what becomes of them.
#pragma once

#include "bench/server.h"

struct up_watch {
    struct server_bench *b;
    const struct server_proc *proc;
    const char *path;
    /* Whether an event is one of those waited for. */
    bool (*counts)(struct up_watch *w, struct hk_str line);
    uint64_t want;
    void *ctx;

    bool asked, open; /* open: what was there before has been told */
    bool done;
    uint64_t seen;
    double last;
    struct load *load;
    struct hk_buf line;
};

/* Returns when it has begun. */
void up_watch_open(struct up_watch *w);
/* Until it has counted as many as it wants; further ones are counted too. */
void up_watch_wait(struct up_watch *w);
void up_watch_close(struct up_watch *w);
bool up_is_added(struct up_watch *w, struct hk_str line);

#define UP_JOBS "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
/* A watch in which each pod is added when it has got a node. */
#define UP_BOUND_PODS                                                                              \
    "/api/v1/pods?watch=1&fieldSelector=spec.nodeName!%3D&sendInitialEvents=true&"                 \
    "allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"

/* Of up_steady.c. */
void up_case_steady(struct server_bench *b, const char *id);
/* Of up_process.c. */
void up_case_processes(struct server_bench *b, const char *id);
void up_case_start(struct server_bench *b, const char *id);
void up_case_idle(struct server_bench *b, const char *id);

/* hekla up with this machine as its node, in a fresh directory of the case. */
void up_start(struct server_bench *b, const char *id, struct server_proc *p);

/* Jobs of one gang each, named PREFIX-NUMBER. */
struct up_jobs {
    const char *prefix;
    uint32_t gang, n;
    const char *cpu; /* of each pod */
    uint64_t first;  /* number of the next */
};

/* The request that makes one of them. */
void up_job_request(const struct server_proc *proc, const struct up_jobs *j, uint64_t number,
                    struct hk_buf *out);
/* hekla up with so many simulated nodes, all of them registered, where pods run for ever. */
void up_start_simulated(struct server_bench *b, const char *id, struct server_proc *p,
                        uint32_t nodes);
void up_jobs_post(struct server_bench *b, const struct server_proc *proc, struct up_jobs *j,
                  uint32_t clients, struct server_phase *ret);
