// SPDX-License-Identifier: Apache-2.0
// Dominant shares of jobs during a session, shared by drf and its hierarchical mode.
#pragma once

#include "scheduler/plugins/victims.h"

struct hdrf;

struct drf {
    uint32_t ndim;
    uint32_t ndom, dom[DIM_MAX]; /* dimensions the cluster has */
    double total[DIM_MAX];
    /* What a job holds beyond the model's JV_ALLOC: pipelined tasks and, temporarily, placements
     * that hdrf tries out. Rows are added on first use. */
    struct sparse extra_jobs;
    int64_t *extra;      /* [slot][ndim] */
    uint64_t *pipelined; /* bit per task counted in extra */
    double *share;       /* by job, negative: not computed */
    struct sparse victim_jobs;
    struct hdrf *tree; /* NULL without enableHierarchy */
};

/* What the job holds, including pipelined tasks. */
void drf_job_alloc(const struct drf *s, const struct model *m, job_id j, int64_t *ret);
/* The largest ratio of the amounts to the cluster total over all dimensions. */
double drf_dominant(const struct drf *s, const int64_t *amounts);
double drf_job_share(struct drf *s, const struct model *m, job_id j);
/* Changes the extra amounts of a job by a task's request. */
void drf_shift(struct drf *s, job_id j, const struct shape *shape, int sign);
