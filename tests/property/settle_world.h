// SPDX-License-Identifier: Apache-2.0
// The world of settle.c: a random cluster of queues, jobs and their pods, the configuration it is
// scheduled by, and what happens between two cycles. The same for the same seed everywhere.
#pragma once

#include "bench/world.h"
#include "scheduler/session.h"

enum {
    SUBMIT_CYCLES = 12, /* first cycles, in which jobs arrive */
    MAX_JOBS = 24,
    MAX_SEATS = 160,
    MAX_QUEUES = 8,
    MAX_OWED = 512,
    MAX_GRACE = 2,   /* cycles until an evicted pod is gone */
    MAX_ABSENCE = 2, /* cycles until its owner replaces it */
};

/* Whose pods were evicted to place a pod: nobody's, of its own queue, or of other queues. */
enum cost { COST_NONE, COST_QUEUE, COST_OTHERS };
enum seat_state { SEAT_POD, SEAT_EMPTY, SEAT_DONE };

/* A member of a job. Its pods follow each other. */
struct seat {
    uint32_t job, number;
    task_id pod; /* valid in SEAT_POD */
    struct size size;
    unsigned flags;
    uint8_t state;
    uint32_t wait; /* cycles until the pod ends, is gone, or is replaced */
    bool runs_forever;
    uint32_t incarnation;
    uint32_t bound;                      /* cycle in which the pod was bound */
    uint8_t promised, placed;            /* enum cost of the pod's promised and actual place */
    uint32_t evicted_in[MAX_QUEUES + 1]; /* by queue: the last period in which it evicted a pod */
};

struct settle_job {
    job_id id;
    uint32_t queue, first, nseat;
    int32_t min, priority;
    uint32_t arrives;
    uint32_t lost_in; /* the last period in which it lost a pod or a promised place to others */
};

/* An eviction: the job that it was for must be bound until the cycle due. */
struct owed {
    uint32_t job, cycle, due;
    bool paid;
};

struct settle {
    struct world w;
    struct hk_rand rand;
    struct hk_buf text;
    struct conf *conf;
    struct scheduler_mem *sm;
    struct session_opts opts;
    bool verbose;
    bool limits; /* a plugin enforces capability */
    bool proportion, gang;
    bool prompt;    /* owners replace a pod as soon as it is gone */
    bool hierarchy; /* as a tree */
    struct settle_job jobs[MAX_JOBS];
    uint32_t njob;
    struct seat seats[MAX_SEATS];
    uint32_t nseat;
    uint32_t nqueue;
    struct owed owed[MAX_OWED];
    uint32_t nowed;
    uint32_t cycle, last_submission, last_end;
    uint32_t period; /* counted from 1; a submission and the end of a pod begin a new one */
    uint32_t evicting_cycles, evicted; /* in this period */
    uint32_t evicted_late;             /* pods, since the last submission */
    uint64_t binds, evictions;
};

/* On failure, call settle_fini() anyway. */
int settle_init(struct settle *s, uint64_t seed, bool verbose, struct hk_err *err) HK_CHECKED;
void settle_fini(struct settle *s);
uint32_t settle_below(struct settle *s, uint32_t n);
/* True while an owner has not yet replaced a pod: shares are computed without that pod. */
bool settle_lacks_pods(const struct settle *s);
/* Starts, ends, removes and replaces pods; submits the jobs of this cycle. */
void settle_turn(struct settle *s);
