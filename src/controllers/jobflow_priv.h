// SPDX-License-Identifier: Apache-2.0
// The JobFlow controller's files:
//
//   jobflow.c         which changes concern a flow, and one pass over it
//   jobflow_probe.c   whether the dependencies of a step are met
//   jobflow_patch.c   makes a job's spec from the template and the step's patch
//   jobflow_status.c  computes and writes the status
//
// The progress of a flow follows from its jobs and, for jobs that completed and are gone, from its
// status.
#pragma once

#include "controllers/kinds.h"
#include "controllers/pass.h"

struct flow_probe;

/* A job that completed and was deleted before the status recorded it. */
struct flow_lost {
    char *name, *text; /* JSON */
};

/* Memory of a flow; all of it may be lost. */
struct flow_mem {
    HK_VEC(struct flow_lost) lost;
    HK_VEC(struct flow_probe *) probes;
};

/* A job of the flow, existing or not. */
struct flow_job {
    struct hk_str name;
    const struct json *step;   /* in spec.flows; NULL: no step makes it any more */
    uint32_t row;              /* HK_NONE: it does not exist */
    const struct json *root;   /* current or, if deleted, last known; may be NULL */
    const struct json *record; /* its entry in the status, or NULL */
    enum api_job_phase phase;
    bool known;   /* exists, or recorded as completed: do not create it */
    bool foreign; /* an object of another owner has the name */
};

struct flow_pass {
    struct pass *t;
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

/* Whether all dependencies of the step are met; starts missing probes. */
bool flow_may_start(struct flow_pass *p, const struct flow_job *job);
/* Drop probes of steps that no longer wait: those not asked for between these two calls. */
void flow_probes_begin(struct flow_mem *mem);
void flow_probes_end(struct flow_mem *mem);
void flow_probes_fini(struct flow_mem *mem);

/* ---- jobflow_patch.c ---- */

/* The spec of a step's job. Fails when the patch does not fit. */
int flow_spec(const struct json *template_spec, const struct json *step, struct hk_arena *a,
              struct json *ret, struct hk_err *err) HK_CHECKED;

/* ---- jobflow_status.c ---- */

/* The status says Succeed. */
bool flow_is_over(const struct flow_pass *p);
/* Failed or Terminating: the controller does nothing more. */
bool flow_is_frozen(const struct flow_pass *p);
/* Writes the status if it has changed. */
void flow_write_status(struct flow_pass *p);
