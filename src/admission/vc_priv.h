// SPDX-License-Identifier: Apache-2.0
// What the files of Volcano's rules share: one review under way, the findings that several kinds
// have in common, and comparing as Go's semantic equality does.
#pragma once

#include "admission/admission_priv.h"
#include "admission/volcano.h"
#include "base/map.h"

struct vc {
    const struct admission_request *q;
    const struct volcano_options *opts;
    struct json patch; /* array; of mutating rules */
    struct hk_buf why; /* the refusal; empty: allowed */
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

/* Their parts that have files of their own. */
void vc_job_validate_update(struct vc *v);
/* A copy of the task's template as a typed server reads it: equal ones are equal trees, amounts
 * canonical. Fails on values of the wrong type. */
int vc_job_read_template(const struct vc *v, const struct json *task, struct json *ret,
                         struct hk_err *err) HK_CHECKED;
/* Lifecycle policies; path is what upstream calls them. */
void vc_job_check_policies(struct vc *v, const struct json *policies, const char *path);
/* Partition policy of a task, its topology included; false when something was found. */
bool vc_job_check_partition(struct vc *v, const struct json *task);
/* Capabilities, guarantees and deserved shares against ancestors and children. */
void vc_queue_check_tree(struct vc *v);

/* ---- shared: vc_rules.c ---- */

/* The scheduler's names; the last one is NULL. */
const char *const *vc_scheduler_names(const struct vc *v);
/* Appends one operation to the patch. The value is borrowed. */
void vc_patch(struct vc *v, const char *op, const char *path, struct json value);
/* A spec to patch into: the object's, or an empty one that the patch adds. NULL when what stands
 * there is no object, which the schema will refuse. */
const struct json *vc_patch_spec(struct vc *v);
/* Appends the field errors of a scratch request as one text: plain, or in brackets when several. */
void vc_tell_errors(struct vc *v, const struct admission_request *scratch);
/* A request that only collects field errors; ended with admission_request_fini. */
struct admission_request vc_scratch(const struct vc *v);
/* NULL when there is none, or nothing is looked for. */
const struct json *vc_queue(const struct vc *v, struct hk_str name);
/* `queue.scheduling.volcano.sh "<q>" not found` */
void vc_tell_no_queue(struct vc *v, struct hk_str name);
/* The state, "Open" for a queue that has none unless the options say otherwise. */
struct hk_str vc_queue_state(const struct vc *v, const struct json *queue);

extern const char vc_both_tiers[];
/* Whether the NetworkTopologySpec names its ceiling twice. */
bool vc_has_both_tiers(const struct json *topology);

/* ---- comparing: vc_same.c ---- */

/* Semantic equality: absent, null and empty are the same, amounts in ResourceLists compare by
 * value. */
bool vc_same(const struct json *a, const struct json *b);
bool vc_same_amounts(const struct json *a, const struct json *b);

/* ---- graphs: vc_dag.c ---- */

struct vc_dag_edge {
    uint32_t from, to;
};

/* Names and arrows between them. Ready when zeroed. */
struct vc_dag {
    struct hk_intern names;
    HK_VEC(struct vc_dag_edge) edges;
};

void vc_dag_fini(struct vc_dag *g);
/* Whether the arrows, all of them between known names, form no circle. */
bool vc_dag_is_acyclic(const struct vc_dag *g);

/* ---- time zones: vc_zone.c ---- */

/* Whether the zone database has the name. */
bool vc_zone_known(struct hk_str name);
