// SPDX-License-Identifier: Apache-2.0
// The JobFlow controller's files:
//
//   jobflow.c         what concerns a flow, and one pass over it
//   jobflow_probe.c   whether what a step waits for has come
//   jobflow_patch.c   a job's spec from the template and the step's patch
//   jobflow_status.c  the status as it ought to be
//
// A flow's place is told by its jobs, and for those that completed and are gone by its status.
#pragma once

#include "controllers/ctl.h"
#include "controllers/kinds.h"

struct flow_probe;

/* A job that completed and was gone before the status told of it. */
struct flow_lost {
    char *name, *text; /* JSON */
};

/* What is remembered of a flow; all of it may be lost. */
struct flow_mem {
    HK_VEC(struct flow_lost) lost;
    HK_VEC(struct flow_probe *) probes;
};

/* A job of the flow, there or not. */
struct flow_job {
    struct hk_str name;
    const struct json *step;   /* of spec.flows; NULL: no step of the flow makes it any more */
    uint32_t row;              /* HK_NONE: it is not there */
    const struct json *root;   /* as it is, or as it was when it was lost; NULL */
    const struct json *record; /* what the status tells of it, NULL nothing */
    enum api_job_phase phase;
    bool known;   /* there, or recorded as completed: it is not to be made again */
    bool foreign; /* somebody else's has the name */
};

struct flow_pass {
    struct turn *t;
    struct flow_mem *mem;
    const struct mirror *jobs, *templates;
    struct json root;
    struct flow_job *at; /* steps in the order of the spec, then others by name */
    uint32_t len, nstep;
};

static const struct hk_str flow_none = {"", 0};

/* NULL when no step has that name. */
const struct flow_job *flow_step(const struct flow_pass *p, struct hk_str name);

/* ---- jobflow_probe.c ---- */

/* Whether all the step waits for has come; asks for what has yet to be found out. */
bool flow_may_start(struct flow_pass *p, const struct flow_job *job);
/* Of the probes only those of steps that still wait are kept: between these two calls all of them
 * are asked about. */
void flow_probes_begin(struct flow_mem *mem);
void flow_probes_end(struct flow_mem *mem);
void flow_probes_fini(struct flow_mem *mem);

/* ---- jobflow_patch.c ---- */

/* The spec of a step's job. Fails when the patch does not fit. */
int flow_spec(const struct json *template_spec, const struct json *step, struct hk_arena *a,
              struct json *ret, struct hk_err *err) HK_CHECKED;

/* ---- jobflow_status.c ---- */

/* Succeed, as the status says. */
bool flow_is_over(const struct flow_pass *p);
/* Failed or Terminating: nothing more is done. */
bool flow_is_frozen(const struct flow_pass *p);
/* Writes the status if it has changed. */
void flow_write_status(struct flow_pass *p);
