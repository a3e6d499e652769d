// SPDX-License-Identifier: Apache-2.0
// The world of settle.c: a random cluster of queues, jobs and their pods, the configuration it is
// scheduled by, and what happens between two cycles. The same for the same seed everywhere.
#pragma once

#include "bench/world.h"
#include "scheduler/session.h"

enum {
    SUBMIT_CYCLES = 12, /* jobs arrive in these */
    MAX_JOBS = 24,
    MAX_SEATS = 160,
    MAX_QUEUES = 8,
    MAX_OWED = 512,
    MAX_GRACE = 2,   /* cycles a victim takes to go */
    MAX_ABSENCE = 2, /* cycles until its successor is there */
};

/* At whose cost a pod gets its place. */
enum cost { COST_NONE, COST_QUEUE, COST_OTHERS };
enum seat_state { SEAT_POD, SEAT_EMPTY, SEAT_DONE };

/* A member of a job: pods come and go on it. */
struct seat {
    uint32_t job, number;
    task_id pod; /* while there is one */
    struct size size;
    unsigned flags;
    uint8_t state;
    uint32_t wait; /* cycles until the pod ends, is gone, or its successor is made */
    bool runs_forever;
    uint32_t incarnation;
    uint32_t bound;                      /* the pod, in that cycle */
    uint8_t promised, placed;            /* the pod, by whose cost: enum cost */
    uint32_t evicted_in[MAX_QUEUES + 1]; /* by queue: the last period in which it evicted a pod */
};

struct settle_job {
    job_id id;
    uint32_t queue, first, nseat;
    int32_t min, priority;
    uint32_t arrives;
    uint32_t lost_in; /* the last period in which it lost a pod or a promised place to others */
};

/* An eviction whose reason must come true. */
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
    bool prompt;    /* owners replace a pod in the moment it is gone */
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
/* Some owner has yet to replace a pod: shares are worked out without it. */
bool settle_lacks_pods(const struct settle *s);
/* Pods start, end, go and come anew; the jobs of this cycle arrive. */
void settle_turn(struct settle *s);
