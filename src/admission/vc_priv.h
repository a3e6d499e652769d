// SPDX-License-Identifier: Apache-2.0
// Shared by the files of Volcano's rules: one review in progress, checks common to several kinds,
// and comparison like Go's semantic equality.
#pragma once

#include "admission/admission_priv.h"
#include "admission/volcano.h"
#include "base/map.h"

struct vc {
    const struct admission_request *q;
    const struct volcano_options *opts;
    struct json patch; /* array; from mutating rules */
    struct hk_buf why; /* text of the refusal; empty: allowed */
};

/* ---- the rules ---- */

void vc_job_mutate(struct vc *v);
void vc_job_validate(struct vc *v);
void vc_cronjob_validate(struct vc *v);
void vc_queue_mutate(struct vc *v);
void vc_queue_validate(struct vc *v);
void vc_podgroup_mutate(struct vc *v);
void vc_podgroup_validate(struct vc *v);
void vc_pod_mutate(struct vc *v);
void vc_pod_validate(struct vc *v);
void vc_jobflow_validate(struct vc *v);
void vc_hypernode_validate(struct vc *v);
void vc_command_validate(struct vc *v);

/* Parts of rules in separate files. */
void vc_job_validate_update(struct vc *v);
/* A normalised copy of the task's template: equal templates give equal trees, amounts are
 * canonical. Fails on values of the wrong type. */
int vc_job_read_template(const struct vc *v, const struct json *task, struct json *ret,
                         struct hk_err *err) HK_CHECKED;
/* Checks lifecycle policies; path is upstream's name for them. */
void vc_job_check_policies(struct vc *v, const struct json *policies, const char *path);
/* Checks a task's partition policy with its topology; false when invalid. */
bool vc_job_check_partition(struct vc *v, const struct json *task);
/* Checks capability, guarantee and deserved against ancestors and children. */
void vc_queue_check_tree(struct vc *v);

/* ---- shared: vc_review.c ---- */

/* The scheduler's names, ended by NULL. */
const char *const *vc_scheduler_names(const struct vc *v);
/* Appends one operation to the patch. The value is borrowed. */
void vc_patch(struct vc *v, const char *op, const char *path, struct json value);
/* The spec to patch: the object's, or an empty one that the patch adds. NULL when spec is not an
 * object; the schema refuses that. */
const struct json *vc_patch_spec(struct vc *v);
/* Appends the field errors of a scratch request as one text: plain, or in brackets when several. */
void vc_write_errors(struct vc *v, const struct admission_request *scratch);
/* A request that only collects field errors; end with admission_request_fini. */
struct admission_request vc_scratch(const struct vc *v);
/* NULL when missing, or without lookup. */
const struct json *vc_queue(const struct vc *v, struct hk_str name);
/* Calls fn for each direct child queue until it returns false. */
void vc_each_child(const struct vc *v, struct hk_str parent,
                   bool (*fn)(void *arg, const struct json *queue), void *arg);
/* `queue.scheduling.volcano.sh "<q>" not found` */
void vc_write_no_queue(struct vc *v, struct hk_str name);
/* The queue's state; "Open" when unset, unless the options say otherwise. */
struct hk_str vc_queue_state(const struct vc *v, const struct json *queue);

extern const char vc_both_tiers[];
/* Whether the NetworkTopologySpec sets both highestTierAllowed and highestTierName. */
bool vc_has_both_tiers(const struct json *topology);

/* ---- comparing: vc_same.c ---- */

/* Semantic equality: absent, null and empty are equal, amounts in ResourceLists compare by
 * value. */
bool vc_same(const struct json *a, const struct json *b);
bool vc_same_amounts(const struct json *a, const struct json *b);

/* ---- graphs: vc_dag.c ---- */

struct vc_dag_edge {
    uint32_t from, to;
};

/* A directed graph of names. Zero it to initialise. */
struct vc_dag {
    struct hk_intern names;
    HK_VEC(struct vc_dag_edge) edges;
};

void vc_dag_fini(struct vc_dag *g);
/* Whether all edges connect known names and form no cycle. */
bool vc_dag_is_acyclic(const struct vc_dag *g);
