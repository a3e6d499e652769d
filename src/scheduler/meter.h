// SPDX-License-Identifier: Apache-2.0
// What the scheduler tells Prometheus, under Volcano's names (scheduler.md 7.9). Session, journal,
// actions and emit tell the meter what happens while it happens, which costs no memory; what
// concerns one job is a column of the model (job.meter) and goes with its row; gauges of queues are
// read from the model, and from the plugins of the last session, when somebody asks.
#pragma once

#include "base/clock.h"
#include "base/str.h"
#include "scheduler/model/model.h"

struct meter;
struct plugin;
struct action;
struct session;

/* From the task's creation until then. */
enum meter_point { METER_WATCHED, METER_ASSUMED, METER_PREBOUND, METER_BOUND, METER_NPOINTS };
/* The work on one task. */
enum meter_stage { METER_PREDICATE, METER_SCORING, METER_PREBIND, METER_BIND, METER_NSTAGES };
enum meter_result { METER_SCHEDULED, METER_UNSCHEDULABLE, METER_ERROR, METER_NRESULTS };

struct meter *meter_new(struct hk_clock *clock);
/* NULL stands for nobody who counts, here and below. */
void meter_free(struct meter *x);

/* The time to hand to the next ones as since_ns. */
int64_t meter_start(const struct meter *x);
void meter_session(struct meter *x, int64_t since_ns);
void meter_open(struct meter *x, int64_t since_ns);
void meter_plugin(struct meter *x, const struct plugin *p, bool closing, int64_t since_ns);
void meter_action(struct meter *x, const struct action *a, int64_t since_ns);
void meter_stage(struct meter *x, enum meter_stage what, int64_t since_ns);

void meter_task(struct meter *x, enum meter_point where, const struct task *t);
/* Its place is decided, at that wall time (meter_wall): that is the job's progress too. */
void meter_assume(struct meter *x, struct model *m, task_id t, int64_t now_ns);
int64_t meter_wall(const struct meter *x);
void meter_attempts(struct meter *x, enum meter_result what, uint32_t n);
/* A session has looked at the job's gang and found it short of so many tasks, 0 none. */
void meter_gang(struct meter *x, struct job *j, int64_t missing);

/* Plugins left so many victims on a node. */
void meter_victims(struct meter *x, uint32_t n);
void meter_preempted(struct meter *x);
/* Evictions of the action were committed together. */
void meter_evicted(struct meter *x, const char *action);

/* ssn is the last session, closed, or one that never was (all zero). */
void meter_write(const struct meter *x, struct model *m, struct session *ssn, struct hk_buf *out);
