// SPDX-License-Identifier: Apache-2.0
// Shared by the explain files only.
//
//   explain.c               finds the subject, loads the engine, builds the answer
//   explain_state.c         describes the state
//   explain_node.c          pods on lost nodes
//   explain_flow.c          JobFlows
//   explain_view.c          runs one cycle of the unchanged cluster and reads the result
//   explain_change.c        decides which changes to try
//   explain_change_job.c    changes of the job itself
//   explain_change_world.c  changes of queues, nodes and other jobs
//   explain_try.c           runs the changed cluster and reports whether the job started
//   explain_edit.c          a change as edits of objects
//   explain_object.c        reading objects and writing the answer, for all of the above
#pragma once

#include "api/vcjob.h"
#include "explain/explain.h"

struct explain_edits {
    struct explain_edit *at;
    uint32_t len, cap;
};

struct claim_vec {
    struct explain_edits *at;
    uint32_t len, cap;
};

/* Cycles to run: admission and placement take one, evictions one more. */
enum { EXPLAIN_CYCLES = 3 };

struct explainer {
    const struct explain_opts *o;
    struct hk_arena *a;
    struct cluster c; /* the unchanged cluster; cycles run only in copies of it */
    struct json answer;

    /* The waiting job. Documents come from the API, or are made from the job. */
    const struct api_object *job_obj; /* NULL: a PodGroup without a Job */
    struct api_job job;
    bool has_group;
    struct json group;
    struct hk_str ns, group_name;
    struct {
        struct json *at;
        uint32_t len, cap;
    } pods;
    bool pods_made; /* some pods were made here and do not exist */

    /* Result of the cycle, and the changes tried. */
    struct json view;
    uint32_t tried;
    bool cut;     /* the limit of tries is reached */
    bool skipped; /* only some of many similar changes were tried */
    int64_t since_ns;
    struct json changes;
    struct claim_vec claims;
};

/* ---- explain_object.c ---- */

struct json explain_text(struct explainer *x, const char *fmt, ...) HK_PRINTF(2, 3);
struct json explain_amount(const struct model *m, uint32_t dim, double v, struct hk_arena *a);
/* NULL when the cluster has no such object. */
const struct api_object *explain_find(const struct explainer *x, enum api_kind_id kind,
                                      struct hk_str ns, struct hk_str name);
/* The owner reference marked as controller, or NULL. */
const struct json *explain_controller(const struct json *obj);
/* "namespace/name" of the Job or other controller behind a PodGroup; of the PodGroup itself when it
 * has none. */
struct hk_str explain_owner(const struct explainer *x, struct hk_str ns, struct hk_str group,
                            struct hk_arena *a);
/* The PodGroup that a pod names, "" when none. */
struct hk_str explain_pod_group(const struct json *pod);
/* Value of the PriorityClass, 0 when there is none; x is the struct explainer. */
int32_t explain_priority(void *x, struct hk_str name);

/* ---- explain_view.c ---- */

/* Runs the unchanged cluster; *ret gets the engine's result for the group. */
int explain_view(struct explainer *x, struct json *ret, struct hk_err *err) HK_CHECKED;
/* The queue's amounts. Call in a copy or before any cycle. */
struct json explain_queue(struct explainer *x, struct session *ssn, queue_id q, struct hk_arena *a);
int explain_queue_view(struct explainer *x, struct hk_str name, struct json *ret,
                       struct hk_err *err) HK_CHECKED;

/* ---- explain_try.c ---- */

struct outcome {
    bool started;
    struct json evicted; /* pods */
    struct json starts;  /* PodGroups that got pods placed */
};
/* False when the limit of tries is reached. */
bool explain_try(struct explainer *x, const struct explain_edits *e, struct outcome *ret);
/* Adds a change with which the job started to the answer. Takes e. */
void explain_claim(struct explainer *x, const char *kind, struct json what, struct json details,
                   struct explain_edits *e, const struct outcome *o);
/* Runs some cycles in the (changed) copy and writes the outcome. */
void explain_run(struct explainer *x, const struct explain_edits *e, struct hk_buf *out);

/* ---- explain_change.c ---- */

void explain_changes(struct explainer *x);

/* ---- explain_edit.c ---- */

void explain_edit_put(struct explain_edits *e, enum api_kind_id kind, struct json doc);
void explain_edit_gone(struct explain_edits *e, enum api_kind_id kind, struct hk_str ns,
                       struct hk_str name, struct hk_arena *a);
/* A container of the pod that asks for the resource, changed to ask for that amount in all. */
bool explain_edit_request(struct json *pod, struct hk_str resource, struct hk_str amount,
                          struct hk_arena *a);

/* ---- explain_state.c ---- */

/* Handles states that need no engine: ended, suspended and so on. Returns whether the answer is
 * complete. */
bool explain_state_early(struct explainer *x, const struct explain_subject *s);
/* Sets the state and its description from the view. Returns whether the job waits, so that changes
 * are worth trying. */
bool explain_state(struct explainer *x);
void explain_state_queue(struct explainer *x);
/* Adds what was tried to the answer. */
void explain_state_finish(struct explainer *x);

/* ---- explain_node.c ---- */

/* Explains pods of the job on lost nodes; false when there are none, or the job is finished. */
bool explain_node_lost(struct explainer *x, const struct explain_subject *s);

/* ---- explain_flow.c ---- */

int explain_flow(struct explainer *x, const struct explain_subject *s,
                 struct hk_err *err) HK_CHECKED;
