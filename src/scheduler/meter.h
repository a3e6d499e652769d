// SPDX-License-Identifier: Apache-2.0
// The scheduler's Prometheus metrics, under Volcano's names (docs/reference/scheduler.md section
// 9). Session, journal, actions and emit report to the meter as things happen, which allocates no
// memory. Values of one job are a column of the model (job.meter) and end with its row. Gauges of
// queues are read from the model and from the plugins of the last session on request.
#pragma once

#include "base/clock.h"
#include "base/str.h"
#include "scheduler/model/model.h"

struct meter;
struct plugin;
struct action;
struct session;

/* Measured from the task's creation. */
enum meter_point { METER_WATCHED, METER_ASSUMED, METER_PREBOUND, METER_BOUND, METER_NPOINTS };
/* Duration of the work on one task. */
enum meter_stage { METER_PREDICATE, METER_SCORING, METER_PREBIND, METER_BIND, METER_NSTAGES };
enum meter_result { METER_SCHEDULED, METER_UNSCHEDULABLE, METER_ERROR, METER_NRESULTS };

struct meter *meter_new(struct hk_clock *clock);
/* Here and below, x may be NULL: nothing is counted. */
void meter_free(struct meter *x);

/* The start time, for since_ns below. */
int64_t meter_start(const struct meter *x);
void meter_session(struct meter *x, int64_t since_ns);
void meter_open(struct meter *x, int64_t since_ns);
void meter_plugin(struct meter *x, const struct plugin *p, bool closing, int64_t since_ns);
void meter_action(struct meter *x, const struct action *a, int64_t since_ns);
void meter_stage(struct meter *x, enum meter_stage what, int64_t since_ns);

void meter_task(struct meter *x, enum meter_point where, const struct task *t);
/* The task got its place at that wall time (meter_wall); also counts as progress of the job. */
void meter_assume(struct meter *x, struct model *m, task_id t, int64_t now_ns);
int64_t meter_wall(const struct meter *x);
void meter_attempts(struct meter *x, enum meter_result what, uint32_t n);
/* A session checked the job's gang: this many tasks are missing, 0 none. */
void meter_gang(struct meter *x, struct job *j, int64_t missing);

/* Plugins allowed this many victims on a node. */
void meter_victims(struct meter *x, uint32_t n);
void meter_preempted(struct meter *x);
/* A transaction of evictions was committed. */
void meter_evicted(struct meter *x, const char *action);
/* One eviction, for a job or for none (NO_JOB). */
void meter_eviction(struct meter *x, struct model *m, task_id victim, job_id by,
                    const char *action);

/* ssn is the last session, closed, or all zero. */
void meter_write(const struct meter *x, struct model *m, struct session *ssn, struct hk_buf *out);
