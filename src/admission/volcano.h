// SPDX-License-Identifier: Apache-2.0
// Volcano's admission rules, one per path of its webhook server, each callable separately. The
// embedded server runs them inside admission_mutate and admission_validate; a webhook server runs
// one by its path and answers with the patch or the refusal.
#pragma once

#include "admission/admission.h"

struct vc;

/* Zeroed options are Volcano's defaults with every rule enabled. Everything is borrowed. */
struct volcano_options {
    const char *const *scheduler_names; /* ended by NULL; jobs without a name get the first. NULL:
                                         * "volcano" */
    const struct json *conf;   /* the resource-group file; NULL: none, pods stay unchanged. See
                                * volcano_check_conf */
    bool gate_queue_admission; /* feature gate SchedulingGatesQueueAdmission */
    bool refuse_busy_queues;   /* --enable-queue-allocated-pods-check */
    bool change_root_queue;    /* not --enable-root-queue-protection */
    bool wait_for_queue_state; /* a queue without state is closed, as upstream; else open */
    uint32_t max_queue_depth;  /* 0: 5 */
    int64_t max_replicas;      /* limit of each number of pods or jobs in one object; 0:
                                * ADMISSION_MAX_REPLICAS, negative: none */
    uint32_t disabled;         /* bit i: admission_mutate and _validate skip rule i */
};

struct volcano_rule {
    const char *path;    /* "/jobs/mutate" */
    const char *webhook; /* as registered: "mutatejob.volcano.sh" */
    enum api_kind_id kind;
    unsigned verbs; /* bits 1 << ADMIT_CREATE, ... */
    bool mutates;
    /* Refusal of an operation outside verbs; %s is its name. NULL: allowed without a check. */
    const char *wrong_operation;
    void (*run)(struct vc *v);
    /* Depends on the user's rights. In process these are known, and the rule of command.c answers
     * with a 403; a webhook server must ask the API server. */
    bool asks_rights;
};

/* Ends with a row whose path is NULL. */
extern const struct volcano_rule volcano_rules[];

/* NULL when no rule has that path. */
const struct volcano_rule *volcano_rule_find(struct hk_str path);

/* Runs one rule. Reads verb, obj, old, ns, name, mem, lookup and rights of the request without
 * changing them. 0 when allowed: then *ret_patch is a JSON patch, empty for validating rules and
 * when nothing changes. Else -HK_EINVAL, and q->denial says why. opts may be NULL. */
int volcano_review(const struct volcano_rule *rule, struct admission_request *q,
                   const struct volcano_options *opts, struct json *ret_patch) HK_CHECKED;

/* Whether the rule refuses the operation by its name ("CONNECT"); appends the reason to why. */
bool volcano_refuses_operation(const struct volcano_rule *rule, struct hk_str operation,
                               struct hk_buf *why);

/* Parses --enabled-admission, a comma-separated list of paths; *ret_disabled has all others, for
 * volcano_options.disabled. */
int volcano_parse_enabled(struct hk_str list, uint32_t *ret_disabled,
                          struct hk_err *err) HK_CHECKED;
/* Checks that the tree is a resource-group file. */
int volcano_check_conf(const struct json *conf, struct hk_err *err) HK_CHECKED;
