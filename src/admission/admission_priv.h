// SPDX-License-Identifier: Apache-2.0
// Shared by the files of admission/: table rows, field paths and field errors, name rules, and
// small edits of JSON trees.
#pragma once

#include "admission/admission.h"
#include "admission/amount.h"
#include "api/admit_expr.h"
#include "codec/quantity.h"

/* ---- the table ---- */

enum {
    ON_CREATE = 1 << ADMIT_CREATE,
    ON_UPDATE = 1 << ADMIT_UPDATE,
    ON_DELETE = 1 << ADMIT_DELETE,
    ON_WRITE = ON_CREATE | ON_UPDATE,
    AS_PLUGIN = 1 << 8, /* mutate is an admission plugin, it sets no mere defaults */
};

/* One rule of one kind. A row may set any of the three functions; each of them is a separate pass
 * over the table, in table order. */
struct admit_row {
    const char *group, *kind; /* kind NULL: every kind */
    unsigned verbs;
    const char *subresource; /* NULL: the object itself */
    int (*mutate)(struct admission_request *q, struct hk_err *err);
    void (*validate)(struct admission_request *q);                   /* adds field errors */
    int (*enforce)(struct admission_request *q, struct hk_err *err); /* policy, for valid objects */
};

/* ---- field paths and field errors: cause.c ---- */

/* A position in the object: a chain of the callers' stack frames, written as text only for
 * errors. */
struct path {
    const struct path *up; /* NULL at the root */
    struct hk_str key;     /* field or map key */
    uint32_t index;
    enum { PATH_FIELD, PATH_INDEX, PATH_KEY } form;
};

static inline struct path path_field(const struct path *up, const char *name)
{
    return (struct path){.up = up, .key = hk_str(name), .form = PATH_FIELD};
}

static inline struct path path_index(const struct path *up, uint32_t index)
{
    return (struct path){.up = up, .index = index, .form = PATH_INDEX};
}

static inline struct path path_key(const struct path *up, struct hk_str key)
{
    return (struct path){.up = up, .key = key, .form = PATH_KEY};
}

void path_write(const struct path *p, struct hk_buf *out);

/* Each adds one field error. detail may be NULL where it is a plain string. */
void cause_required(struct admission_request *q, const struct path *p, const char *detail);
void cause_invalid(struct admission_request *q, const struct path *p, const struct json *value,
                   const char *fmt, ...) HK_PRINTF(4, 5);
void cause_invalid_str(struct admission_request *q, const struct path *p, struct hk_str value,
                       const char *fmt, ...) HK_PRINTF(4, 5);
void cause_forbidden(struct admission_request *q, const struct path *p, const char *fmt, ...)
    HK_PRINTF(3, 4);
/* allowed ends with NULL. */
void cause_unsupported(struct admission_request *q, const struct path *p, struct hk_str value,
                       const char *const *allowed);
void cause_duplicate(struct admission_request *q, const struct path *p, struct hk_str value);
void cause_not_found(struct admission_request *q, const struct path *p, struct hk_str value);
void cause_too_long(struct admission_request *q, const struct path *p, uint32_t max_bytes);
/* Adds a cause with any reason, for refusals. */
void cause_add(struct admission_request *q, const char *reason, const char *field,
               const char *message);

/* Common checks. Absent fields pass. */
void cause_check_enum(struct admission_request *q, const struct path *up, const struct json *obj,
                      const char *key, const char *const *allowed);
void cause_check_min(struct admission_request *q, const struct path *up, const struct json *obj,
                     const char *key, int64_t min);
void cause_check_immutable(struct admission_request *q, const struct path *up,
                           const struct json *obj, const struct json *old, const char *key);
/* Adds a Required error when absent or empty; returns whether it is present. */
bool cause_check_present(struct admission_request *q, const struct path *up, const struct json *obj,
                         const char *key);

/* ---- names: name.c ---- */

enum name_rule {
    NAME_SUBDOMAIN,  /* RFC 1123, up to 253 */
    NAME_LABEL,      /* RFC 1123, up to 63 */
    NAME_LABEL_1035, /* starts with a letter */
    NAME_SEGMENT,    /* anything valid as a path segment */
    NAME_QUALIFIED,  /* label keys: [prefix/]name */
    NAME_VALUE,      /* label values */
    NAME_PORT,       /* IANA service names */
    NAME_CONFIG_KEY, /* keys of ConfigMaps and Secrets */
    NAME_ENV,        /* environment variables */
};

/* Adds one field error per violated rule; returns whether there was none. */
bool name_check(struct admission_request *q, const struct path *p, struct hk_str text,
                enum name_rule rule);
/* The same as text, separated by sep. */
bool name_write_errors(struct hk_str text, enum name_rule rule, const char *sep,
                       struct hk_buf *out);
/* Labels or a nodeSelector: keys and values. */
void name_check_labels(struct admission_request *q, const struct path *p,
                       const struct json *labels);
/* A metav1.LabelSelector. */
void name_check_selector(struct admission_request *q, const struct path *p,
                         const struct json *selector);

/* ---- edits: edit.c ---- */

/* Present and not null. */
bool edit_has(const struct json *obj, const char *key);
/* The value, changeable, or NULL when absent or null. */
struct json *edit_get(struct json *obj, const char *key);
/* Dotted path; NULL when a step is missing. */
struct json *edit_at(struct json *obj, const char *path);
/* Set the value only when absent or null. An empty string counts as absent, as in Go. */
void edit_default_str(struct json *obj, struct hk_arena *a, const char *key, const char *v);
void edit_default_int(struct json *obj, struct hk_arena *a, const char *key, int64_t v);
void edit_default_bool(struct json *obj, struct hk_arena *a, const char *key, bool v);
void edit_default_object(struct json *obj, struct hk_arena *a, const char *key);
/* Whether a list of strings contains text. */
bool edit_list_has(const struct json *list, struct hk_str text);
/* Elements of a list, members of an object; 0 of anything else. */
uint32_t edit_len(const struct json *list);
uint32_t edit_size(const struct json *obj);
struct hk_str edit_str(const struct json *obj, const char *key); /* "" when absent */

/* ---- state ---- */

/* NULL when missing, or without lookup. */
const struct json *admit_get(const struct admission_request *q, const struct api_kind *kind,
                             struct hk_str ns, struct hk_str name);
void admit_each(const struct admission_request *q, const struct api_kind *kind, struct hk_str ns,
                bool (*fn)(void *arg, const struct json *obj), void *arg);

/* ---- pod templates: template.c ---- */

/* Gets one template, {metadata, spec}, and its path; false ends the iteration. */
typedef bool admit_template_fn(void *arg, const struct path *path, const struct json *template);
/* Calls fn for each pod template in the object. */
void admit_each_template(const struct api_kind *kind, const struct json *obj, admit_template_fn *fn,
                         void *arg);

/* ---- rules, one file each ---- */

void admit_meta_validate(struct admission_request *q);
void admit_bounds_validate(struct admission_request *q);
/* The same with a webhook's options; adds field errors to q. */
void admit_bounds_check(struct admission_request *q, const struct volcano_options *o);

int admit_namespace_lifecycle(struct admission_request *q, struct hk_err *err);
int admit_namespace_default(struct admission_request *q, struct hk_err *err);
int admit_namespace_keep(struct admission_request *q, struct hk_err *err);

int admit_pod_default(struct admission_request *q, struct hk_err *err);
int admit_pod_tolerations(struct admission_request *q, struct hk_err *err);
int admit_pod_prepare(struct admission_request *q, struct hk_err *err);
void admit_pod_validate(struct admission_request *q);
void admit_pod_validate_status(struct admission_request *q);
void admit_pod_validate_ephemeral(struct admission_request *q);
void admit_pod_validate_update(struct admission_request *q);
/* Sets defaults of a template's spec: those of a pod, except for pod-only ones. */
void admit_pod_default_template(struct json *spec, struct hk_arena *a);
void admit_pod_validate_spec(struct admission_request *q, const struct path *p,
                             const struct json *spec);
void admit_pod_validate_affinity(struct admission_request *q, const struct path *p,
                                 const struct json *affinity);
void admit_pod_validate_tolerations(struct admission_request *q, const struct path *p,
                                    const struct json *list);
void admit_pod_validate_spread(struct admission_request *q, const struct path *p,
                               const struct json *list);
void admit_pod_validate_volumes(struct admission_request *q, const struct path *p,
                                const struct json *volumes);
void admit_pod_validate_container(struct admission_request *q, const struct path *p,
                                  const struct json *container, const struct json *spec);
/* The securityContext of a pod's spec or of a container. */
void admit_pod_validate_ids(struct admission_request *q, const struct path *up,
                            const struct json *spec);
void admit_pod_validate_dns(struct admission_request *q, const struct path *up,
                            const struct json *spec);
void admit_pod_validate_resources(struct admission_request *q, const struct path *p,
                                  const struct json *resources);

int admit_priority_pod(struct admission_request *q, struct hk_err *err);
int admit_priority_default(struct admission_request *q, struct hk_err *err);
void admit_priority_validate(struct admission_request *q);
int admit_priority_enforce(struct admission_request *q, struct hk_err *err);
int admit_priority_group(struct admission_request *q, struct hk_err *err);

int admit_limitrange_default(struct admission_request *q, struct hk_err *err);
void admit_limitrange_validate(struct admission_request *q);
int admit_limitrange_pod(struct admission_request *q, struct hk_err *err);
int admit_limitrange_enforce(struct admission_request *q, struct hk_err *err);

void admit_quota_validate(struct admission_request *q);
int admit_quota_enforce(struct admission_request *q, struct hk_err *err);

int admit_serviceaccount_pod(struct admission_request *q, struct hk_err *err);

int admit_node_default(struct admission_request *q, struct hk_err *err);
int admit_node_taint(struct admission_request *q, struct hk_err *err);
void admit_node_validate(struct admission_request *q);

int admit_service_default(struct admission_request *q, struct hk_err *err);
void admit_service_validate(struct admission_request *q);

int admit_deployment_default(struct admission_request *q, struct hk_err *err);
int admit_replicaset_default(struct admission_request *q, struct hk_err *err);
int admit_rc_default(struct admission_request *q, struct hk_err *err);
int admit_statefulset_default(struct admission_request *q, struct hk_err *err);
int admit_daemonset_default(struct admission_request *q, struct hk_err *err);
void admit_deployment_validate(struct admission_request *q);
void admit_replicaset_validate(struct admission_request *q);
void admit_rc_validate(struct admission_request *q);
void admit_statefulset_validate(struct admission_request *q);
void admit_daemonset_validate(struct admission_request *q);
/* Checks labels and pod spec of spec.template. */
void admit_template_validate(struct admission_request *q, const struct path *spec_path,
                             const struct json *spec);

/* Run the rules of volcano.h for kind and verb: apply patches of mutating rules, refuse by
 * validating rules. */
int admit_volcano_mutate(struct admission_request *q, struct hk_err *err);
int admit_volcano_enforce(struct admission_request *q, struct hk_err *err);

int admit_podtemplate_default(struct admission_request *q, struct hk_err *err);
int admit_endpoints_default(struct admission_request *q, struct hk_err *err);
int admit_endpointslice_default(struct admission_request *q, struct hk_err *err);
int admit_autoscaler_default(struct admission_request *q, struct hk_err *err);
void admit_autoscaler_validate(struct admission_request *q);
int admit_networkpolicy_default(struct admission_request *q, struct hk_err *err);
int admit_csidriver_default(struct admission_request *q, struct hk_err *err);
/* Refuses changes of fields that are immutable. */
void admit_fixed_validate(struct admission_request *q);
/* Refuses negative numbers in the status of a workload. */
void admit_counts_validate(struct admission_request *q);

int admit_job_default(struct admission_request *q, struct hk_err *err);
int admit_job_prepare(struct admission_request *q, struct hk_err *err);
int admit_cronjob_default(struct admission_request *q, struct hk_err *err);
void admit_job_validate(struct admission_request *q);
void admit_cronjob_validate(struct admission_request *q);

void admit_pdb_validate(struct admission_request *q);

void admit_configmap_validate(struct admission_request *q);
int admit_secret_default(struct admission_request *q, struct hk_err *err);
void admit_secret_validate(struct admission_request *q);

void admit_event_validate(struct admission_request *q);
void admit_event_validate_new(struct admission_request *q);
void admit_lease_validate(struct admission_request *q);

int admit_webhooks_default(struct admission_request *q, struct hk_err *err);
void admit_webhooks_validate(struct admission_request *q);
/* A clientConfig: a URL or a Service. */
void admit_webhook_client(struct admission_request *q, const struct path *p,
                          const struct json *client);
/* One RuleWithOperations. */
void admit_webhooks_check_rule(struct admission_request *q, const struct path *p,
                               const struct json *rule);
/* The matchConditions of a webhook or a policy. x has what they may refer to, and is ended. */
void admit_conditions_validate(struct admission_request *q, const struct path *up,
                               const struct json *holder, struct admit_exprs *x);

int admit_policy_default(struct admission_request *q, struct hk_err *err);
void admit_policy_validate(struct admission_request *q);
int admit_policybinding_default(struct admission_request *q, struct hk_err *err);
void admit_policybinding_validate(struct admission_request *q);
/* Warns about an object that no part of this server acts on. */
void admit_unused_warn(struct admission_request *q);

int admit_apiservice_default(struct admission_request *q, struct hk_err *err);
void admit_apiservice_validate(struct admission_request *q);
void admit_certificate_validate(struct admission_request *q);
int admit_certificate_subject(struct admission_request *q, struct hk_err *err);
int admit_certificate_approval(struct admission_request *q, struct hk_err *err);
int admit_certificate_signing(struct admission_request *q, struct hk_err *err);

int admit_crd_default(struct admission_request *q, struct hk_err *err);
void admit_crd_validate(struct admission_request *q);
void admit_crd_validate_status(struct admission_request *q);

int admit_storageclass_default(struct admission_request *q, struct hk_err *err);
void admit_storageclass_validate(struct admission_request *q);
int admit_pvc_default(struct admission_request *q, struct hk_err *err);
int admit_pvc_class(struct admission_request *q, struct hk_err *err);
void admit_pvc_validate(struct admission_request *q);
int admit_pv_default(struct admission_request *q, struct hk_err *err);
void admit_pv_validate(struct admission_request *q);

void admit_role_validate(struct admission_request *q);
int admit_role_enforce(struct admission_request *q, struct hk_err *err);
int admit_binding_default(struct admission_request *q, struct hk_err *err);
void admit_binding_validate(struct admission_request *q);
int admit_binding_enforce(struct admission_request *q, struct hk_err *err);

int admit_command_enforce(struct admission_request *q, struct hk_err *err);
int admit_nodename_pod(struct admission_request *q, struct hk_err *err);
int admit_nodename_template(struct admission_request *q, struct hk_err *err);

/* Checks a namespace's labels: known levels and versions. */
void admit_pod_security_labels(struct admission_request *q);
int admit_pod_security_namespace(struct admission_request *q, struct hk_err *err);
int admit_pod_security_pod(struct admission_request *q, struct hk_err *err);
int admit_pod_security_template(struct admission_request *q, struct hk_err *err);
