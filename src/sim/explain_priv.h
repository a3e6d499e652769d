// SPDX-License-Identifier: Apache-2.0
// Shared by the explain files only.
//
//   explain.c         the subject, its state, the answer as a whole
//   explain_state.c   the state in words
//   explain_flow.c    JobFlows
//   explain_view.c    one cycle of the world as it is, asked
//   explain_try.c     a changed world, run and judged
//   explain_change.c  which changes are worth a try
//   explain_edit.c    changes as edits of objects
#pragma once

#include "api/vcjob.h"
#include "sim/explain.h"

struct explain_edits {
    struct explain_edit *at;
    uint32_t len, cap;
};

struct claim_vec {
    struct explain_edits *at;
    uint32_t len, cap;
};

/* Cycles a world is given: admission and placement take one, evictions one more. */
enum { EXPLAIN_CYCLES = 3 };

struct explainer {
    const struct explain_opts *o;
    struct hk_arena *a;
    struct cluster c; /* the world as it is; cycles run in copies of it alone */
    struct json answer;

    /* The waiting one. Documents are those of the API, or made from the job. */
    const struct api_object *job_obj; /* NULL: a PodGroup of its own */
    struct api_job job;
    bool has_group;
    struct json group;
    struct hk_str ns, group_name;
    struct {
        struct json *at;
        uint32_t len, cap;
    } pods;
    bool pods_made; /* some exist in thought only */

    /* What the cycle said, and what changes were tried. */
    struct json view;
    uint32_t tried;
    bool cut;     /* no more may be tried */
    bool skipped; /* of many alike only some were tried */
    int64_t since_ns;
    struct json changes;
    struct claim_vec claims;
};

/* ---- explain.c ---- */

void explain_put(struct explainer *x, struct json *obj, const char *key, struct json v);
struct json explain_text(struct explainer *x, const char *fmt, ...) HK_PRINTF(2, 3);
/* "namespace/name" of the Job, or other owner's, behind a PodGroup; the group's when there is none.
 */
struct hk_str explain_owner(const struct explainer *x, struct hk_str ns, struct hk_str group,
                            struct hk_arena *a);
const struct api_object *explain_find(const struct explainer *x, enum api_kind_id kind,
                                      struct hk_str ns, struct hk_str name);
/* The PodGroup that a pod names, "" when none. */
struct hk_str explain_pod_group(const struct json *pod);
int32_t explain_priority(void *x, struct hk_str name);
struct json explain_amount(const struct model *m, uint32_t dim, double v, struct hk_arena *a);

/* ---- explain_view.c ---- */

/* Runs the world as it is; *ret gets what the engine says of the group. */
int explain_view(struct explainer *x, struct json *ret, struct hk_err *err) HK_CHECKED;
/* The queue in numbers. In a copy or before any cycle. */
struct json explain_queue(struct explainer *x, struct session *ssn, queue_id q, struct hk_arena *a);
int explain_queue_view(struct explainer *x, struct hk_str name, struct json *ret,
                       struct hk_err *err) HK_CHECKED;

/* ---- explain_try.c ---- */

struct outcome {
    bool started;
    struct json evicted; /* pods */
    struct json starts;  /* PodGroups that got pods placed */
};
/* False when no more may be tried. */
bool explain_try(struct explainer *x, const struct explain_edits *e, struct outcome *ret);
/* A change that let it start. Takes e. */
void explain_claim(struct explainer *x, const char *kind, struct json what, struct json details,
                   struct explain_edits *e, const struct outcome *o);
/* Writes the outcome of some cycles of the (changed) copy of the world. */
void explain_run(struct explainer *x, const struct explain_edits *e, struct hk_buf *out);

/* ---- explain_change.c ---- */

void explain_changes(struct explainer *x);

/* ---- explain_edit.c ---- */

void explain_edit_put(struct explain_edits *e, enum api_kind_id kind, struct json doc);
void explain_edit_gone(struct explain_edits *e, enum api_kind_id kind, struct hk_str ns,
                       struct hk_str name, struct hk_arena *a);
/* Copies that may be changed along the dotted path; missing objects are made. */
struct json *explain_edit_need(struct json *doc, const char *path, struct hk_arena *a);
/* A container of the pod that asks for the resource, changed to ask for that amount in all. */
bool explain_edit_request(struct json *pod, struct hk_str resource, struct hk_str amount,
                          struct hk_arena *a);

/* ---- explain_state.c ---- */

/* States that need no engine: ended, suspended by hand and so on. Whether the answer is complete.
 */
bool explain_state_early(struct explainer *x, const struct explain_subject *s);
/* The state and its sentence, from the view. Whether it waits, so that changes are of interest. */
bool explain_state(struct explainer *x);
void explain_state_queue(struct explainer *x);
/* The rest of the answer: what was tried. */
void explain_state_finish(struct explainer *x);

/* ---- explain_flow.c ---- */

int explain_flow(struct explainer *x, const struct explain_subject *s,
                 struct hk_err *err) HK_CHECKED;
