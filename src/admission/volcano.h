// SPDX-License-Identifier: Apache-2.0
// Volcano's admission rules, one per path of its webhook server, callable on their own. The
// embedded server runs them inside admission_mutate and admission_validate; a webhook server asks
// for one by its path and answers with the patches or the words of the refusal.
#pragma once

#include "admission/admission.h"

struct vc;

/* Zeroed options are Volcano's defaults with every rule enabled. Everything is borrowed. */
struct volcano_options {
    const char *const *scheduler_names; /* ends with NULL; the first one is given to jobs that name
                                         * none. NULL: "volcano" alone */
    const struct json *conf;   /* the resource-group file; NULL: none is loaded, pods stay as they
                                * are. See volcano_check_conf */
    bool gate_queue_admission; /* feature gate SchedulingGatesQueueAdmission */
    bool refuse_busy_queues;   /* --enable-queue-allocated-pods-check */
    bool change_root_queue;    /* not --enable-root-queue-protection */
    bool wait_for_queue_state; /* a queue whose state nobody has written yet takes nothing, as
                                * upstream has it; else it counts as open */
    uint32_t max_queue_depth;  /* 0: 5 */
    uint32_t disabled;         /* bit i: admission_mutate and _validate pass by rule i */
};

struct volcano_rule {
    const char *path;    /* "/jobs/mutate" */
    const char *webhook; /* as registered: "mutatejob.volcano.sh" */
    enum api_kind_id kind;
    unsigned verbs; /* bits 1 << ADMIT_CREATE, ... */
    bool mutates;
    /* What an operation outside of verbs is refused with; %s is its name. NULL: allowed unseen. */
    const char *wrong_operation;
    void (*run)(struct vc *v);
};

/* Ends with a row whose path is NULL. */
extern const struct volcano_rule volcano_rules[];

/* NULL when there is none of that path. */
const struct volcano_rule *volcano_rule_find(struct hk_str path);

/* Runs one rule. Reads verb, obj, old, ns, name, mem and lookup of the request; changes none of
 * them. 0 when allowed: then *ret_patch is a JSON patch, an empty one of validating rules and
 * where nothing is to change. Else -HK_EINVAL and q->denial says why. opts may be NULL. */
int volcano_review(const struct volcano_rule *rule, struct admission_request *q,
                   const struct volcano_options *opts, struct json *ret_patch) HK_CHECKED;

/* Whether the rule refuses the operation by its name ("CONNECT"); says why. */
bool volcano_refuses_operation(const struct volcano_rule *rule, struct hk_str operation,
                               struct hk_buf *why);

/* --enabled-admission: a comma list of paths, as the complement for volcano_options.disabled. */
int volcano_parse_enabled(struct hk_str list, uint32_t *ret_disabled,
                          struct hk_err *err) HK_CHECKED;
/* Whether the tree has the shape of a resource-group file. */
int volcano_check_conf(const struct json *conf, struct hk_err *err) HK_CHECKED;
