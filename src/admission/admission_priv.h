// SPDX-License-Identifier: Apache-2.0
// What the files of this room share: the rows of the table, field paths and field errors, names and
// their rules, and small edits to JSON trees.
#pragma once

#include "admission/admission.h"
#include "admission/amount.h"
#include "codec/quantity.h"

/* ---- the table ---- */

enum {
    ON_CREATE = 1 << ADMIT_CREATE,
    ON_UPDATE = 1 << ADMIT_UPDATE,
    ON_DELETE = 1 << ADMIT_DELETE,
    ON_WRITE = ON_CREATE | ON_UPDATE,
};

/* One rule of one kind. A row may fill any of the three columns; each column is a pass of its own
 * over the table, in table order. */
struct admit_row {
    const char *group, *kind; /* kind NULL: every kind */
    unsigned verbs;
    const char *subresource; /* NULL: the object itself */
    int (*mutate)(struct admission_request *q, struct hk_err *err);
    void (*validate)(struct admission_request *q); /* faults, as field errors */
    int (*judge)(struct admission_request *q,
                 struct hk_err *err); /* policy, on faultless objects */
};

/* ---- field paths and field errors: cause.c ---- */

/* A place in the object, chained through the callers' frames and written out only when something is
 * wrong there. */
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
/* A cause with a reason of its own, as refusals carry them. */
void cause_add(struct admission_request *q, const char *reason, const char *field,
               const char *message);

/* Checks that recur. Absent fields pass. */
void cause_check_enum(struct admission_request *q, const struct path *up, const struct json *obj,
                      const char *key, const char *const *allowed);
void cause_check_min(struct admission_request *q, const struct path *up, const struct json *obj,
                     const char *key, int64_t min);
void cause_check_immutable(struct admission_request *q, const struct path *up,
                           const struct json *obj, const struct json *old, const char *key);
/* Required when absent or empty; says whether it is there. */
bool cause_check_present(struct admission_request *q, const struct path *up, const struct json *obj,
                         const char *key);

/* ---- names: name.c ---- */

enum name_rule {
    NAME_SUBDOMAIN,  /* RFC 1123, up to 253 */
    NAME_LABEL,      /* RFC 1123, up to 63 */
    NAME_LABEL_1035, /* starts with a letter */
    NAME_SEGMENT,    /* anything that can stand in a path */
    NAME_QUALIFIED,  /* label keys: [prefix/]name */
    NAME_VALUE,      /* label values */
    NAME_PORT,       /* IANA service names */
    NAME_CONFIG_KEY, /* keys of ConfigMaps and Secrets */
    NAME_ENV,        /* environment variables */
};

/* One field error for each rule the text breaks; whether there was none. */
bool name_check(struct admission_request *q, const struct path *p, struct hk_str text,
                enum name_rule rule);
/* The same in words alone, with sep between them. */
bool name_tell(struct hk_str text, enum name_rule rule, const char *sep, struct hk_buf *out);
/* Labels or a nodeSelector: keys and values. */
void name_check_labels(struct admission_request *q, const struct path *p,
                       const struct json *labels);
/* A metav1.LabelSelector. */
void name_check_selector(struct admission_request *q, const struct path *p,
                         const struct json *selector);

/* ---- edits: edit.c ---- */

/* Present and not null. */
bool edit_has(const struct json *obj, const char *key);
/* The value for changing, or NULL when absent or null. */
struct json *edit_get(struct json *obj, const char *key);
/* Dotted path; NULL when a step is missing. */
struct json *edit_at(struct json *obj, const char *path);
/* The object or array under key, made when absent, for changing until the next put into obj. */
struct json *edit_object(struct json *obj, struct hk_arena *a, const char *key);
struct json *edit_array(struct json *obj, struct hk_arena *a, const char *key);
void edit_put(struct json *obj, struct hk_arena *a, const char *key, struct json v);
void edit_put_str(struct json *obj, struct hk_arena *a, const char *key, const char *v);
/* Only when absent or null. Empty strings count as absent for strings, as they do in Go. */
void edit_default_str(struct json *obj, struct hk_arena *a, const char *key, const char *v);
void edit_default_int(struct json *obj, struct hk_arena *a, const char *key, int64_t v);
void edit_default_bool(struct json *obj, struct hk_arena *a, const char *key, bool v);
void edit_default_object(struct json *obj, struct hk_arena *a, const char *key);
/* Whether a list of strings holds text. */
bool edit_list_has(const struct json *list, struct hk_str text);
/* Elements of a list, members of an object; 0 of anything else. */
uint32_t edit_len(const struct json *list);
uint32_t edit_size(const struct json *obj);
struct hk_str edit_str(const struct json *obj, const char *key); /* "" when absent */

/* ---- state ---- */

/* NULL when there is none, or nothing is looked for. */
const struct json *admit_get(const struct admission_request *q, const struct api_kind *kind,
                             struct hk_str ns, struct hk_str name);
void admit_each(const struct admission_request *q, const struct api_kind *kind, struct hk_str ns,
                bool (*fn)(void *arg, const struct json *obj), void *arg);

/* ---- rules, one file each ---- */

void admit_meta_validate(struct admission_request *q);

int admit_namespace_lifecycle(struct admission_request *q, struct hk_err *err);
int admit_namespace_default(struct admission_request *q, struct hk_err *err);
int admit_namespace_keep(struct admission_request *q, struct hk_err *err);

int admit_pod_default(struct admission_request *q, struct hk_err *err);
int admit_pod_tolerations(struct admission_request *q, struct hk_err *err);
int admit_pod_prepare(struct admission_request *q, struct hk_err *err);
void admit_pod_validate(struct admission_request *q);
void admit_pod_validate_status(struct admission_request *q);
void admit_pod_validate_update(struct admission_request *q);
/* Defaults of a template's spec: what a pod gets, less what only pods get. */
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
void admit_pod_validate_resources(struct admission_request *q, const struct path *p,
                                  const struct json *resources);

int admit_priority_pod(struct admission_request *q, struct hk_err *err);
int admit_priority_default(struct admission_request *q, struct hk_err *err);
void admit_priority_validate(struct admission_request *q);
int admit_priority_judge(struct admission_request *q, struct hk_err *err);

int admit_limitrange_default(struct admission_request *q, struct hk_err *err);
void admit_limitrange_validate(struct admission_request *q);
int admit_limitrange_pod(struct admission_request *q, struct hk_err *err);
int admit_limitrange_judge(struct admission_request *q, struct hk_err *err);

void admit_quota_validate(struct admission_request *q);
int admit_quota_judge(struct admission_request *q, struct hk_err *err);

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
/* spec.template: its labels and pod spec, which must restart always (or never, for jobs). */
void admit_template_validate(struct admission_request *q, const struct path *spec_path,
                             const struct json *spec);

/* The rules of volcano.h for the kind and verb at hand: patches of the mutating ones, refusals of
 * the validating ones. */
int admit_volcano_mutate(struct admission_request *q, struct hk_err *err);
int admit_volcano_judge(struct admission_request *q, struct hk_err *err);

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

int admit_crd_default(struct admission_request *q, struct hk_err *err);
void admit_crd_validate(struct admission_request *q);

int admit_storageclass_default(struct admission_request *q, struct hk_err *err);
void admit_storageclass_validate(struct admission_request *q);
int admit_pvc_default(struct admission_request *q, struct hk_err *err);
int admit_pvc_class(struct admission_request *q, struct hk_err *err);
void admit_pvc_validate(struct admission_request *q);
int admit_pv_default(struct admission_request *q, struct hk_err *err);
void admit_pv_validate(struct admission_request *q);
