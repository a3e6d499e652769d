// SPDX-License-Identifier: Apache-2.0
// Workloads of apps/v1 and ReplicationControllers: defaults, and the rule that a selector must
// match the pod template.
#include "admission/admission_priv.h"
#include "api/selector.h"

/* ---- defaults ---- */

static struct json *default_common(struct admission_request *q)
{
    struct json *spec = json_need(q->obj, q->mem, "spec", JSON_OBJECT);
    struct json *pod = edit_at(spec, "template.spec");

    if (pod) {
        admit_pod_default_template(pod, q->mem);
    }
    return spec;
}

/* Fills in the type of the strategy under key. Returns its rollingUpdate, created if missing; NULL
 * for another type. */
static struct json *default_strategy(struct json *spec, struct hk_arena *a, const char *key)
{
    struct json *strategy = json_need(spec, a, key, JSON_OBJECT);

    edit_default_str(strategy, a, "type", "RollingUpdate");
    return hk_str_is(edit_str(strategy, "type"), "RollingUpdate")
               ? json_need(strategy, a, "rollingUpdate", JSON_OBJECT)
               : NULL;
}

int admit_deployment_default(struct admission_request *q, struct hk_err *err)
{
    struct json *spec = default_common(q);
    struct json *rolling;

    edit_default_int(spec, q->mem, "replicas", 1);
    edit_default_int(spec, q->mem, "revisionHistoryLimit", 10);
    edit_default_int(spec, q->mem, "progressDeadlineSeconds", 600);
    rolling = default_strategy(spec, q->mem, "strategy");
    if (rolling) {
        edit_default_str(rolling, q->mem, "maxUnavailable", "25%");
        edit_default_str(rolling, q->mem, "maxSurge", "25%");
    }
    return 0;
}

int admit_replicaset_default(struct admission_request *q, struct hk_err *err)
{
    edit_default_int(default_common(q), q->mem, "replicas", 1);
    return 0;
}

int admit_rc_default(struct admission_request *q, struct hk_err *err)
{
    struct json *spec = default_common(q);
    const struct json *labels = json_at(spec, "template.metadata.labels");

    edit_default_int(spec, q->mem, "replicas", 1);
    if (edit_size(labels) > 0) {
        if (edit_size(json_get(spec, "selector")) == 0) {
            json_set(spec, q->mem, "selector", json_clone(labels, q->mem));
        }
        struct json *metadata = json_need(q->obj, q->mem, "metadata", JSON_OBJECT);
        if (edit_size(json_get(metadata, "labels")) == 0) {
            json_set(metadata, q->mem, "labels",
                     json_clone(json_at(q->obj, "spec.template.metadata.labels"), q->mem));
        }
    }
    return 0;
}

static void default_claims(struct json *spec, struct hk_arena *a)
{
    struct json *claims = edit_get(spec, "volumeClaimTemplates");

    for (uint32_t i = 0; i < edit_len(claims); i++) {
        struct json *claim = &claims->items[i];
        edit_default_str(claim, a, "apiVersion", "v1");
        edit_default_str(claim, a, "kind", "PersistentVolumeClaim");
        edit_default_str(json_need(claim, a, "spec", JSON_OBJECT), a, "volumeMode", "Filesystem");
        edit_default_str(json_need(claim, a, "status", JSON_OBJECT), a, "phase", "Pending");
    }
}

int admit_statefulset_default(struct admission_request *q, struct hk_err *err)
{
    struct json *spec = default_common(q);
    struct json *rolling;
    struct json *retention;

    edit_default_str(spec, q->mem, "podManagementPolicy", "OrderedReady");
    edit_default_int(spec, q->mem, "replicas", 1);
    edit_default_int(spec, q->mem, "revisionHistoryLimit", 10);
    retention = json_need(spec, q->mem, "persistentVolumeClaimRetentionPolicy", JSON_OBJECT);
    edit_default_str(retention, q->mem, "whenDeleted", "Retain");
    edit_default_str(retention, q->mem, "whenScaled", "Retain");
    rolling = default_strategy(spec, q->mem, "updateStrategy");
    if (rolling) {
        edit_default_int(rolling, q->mem, "partition", 0);
    }
    default_claims(spec, q->mem);
    return 0;
}

int admit_daemonset_default(struct admission_request *q, struct hk_err *err)
{
    struct json *spec = default_common(q);
    struct json *rolling;

    edit_default_int(spec, q->mem, "revisionHistoryLimit", 10);
    rolling = default_strategy(spec, q->mem, "updateStrategy");
    if (rolling) {
        edit_default_int(rolling, q->mem, "maxUnavailable", 1);
        edit_default_int(rolling, q->mem, "maxSurge", 0);
    }
    return 0;
}

/* ---- selectors and templates ---- */

static struct api_map labels_of(const struct json *labels, struct hk_arena *a)
{
    struct json meta = json_make_object();
    struct json doc = json_make_object();
    struct api_meta decoded = {0};

    if (labels) {
        json_set(&meta, a, "labels", *labels);
    }
    json_set(&doc, a, "metadata", meta);
    return api_meta_decode(&doc, a, &decoded, NULL) == 0 ? decoded.labels : (struct api_map){0};
}

static bool admit_workload_selector_matches(const struct json *selector, const struct json *labels,
                                            struct hk_arena *a)
{
    const struct api_map map = labels_of(labels, a);
    struct api_selector s;

    /* A selector that cannot be decoded already has its field errors. */
    return api_selector_decode(selector, a, &s, NULL) < 0 || api_selector_match(&s, &map);
}

static void blame_labels(struct admission_request *q, const struct path *spec_path,
                         const struct json *labels)
{
    const struct path template = path_field(spec_path, "template");
    const struct path metadata = path_field(&template, "metadata");
    const struct path p = path_field(&metadata, "labels");
    const struct json none = json_make_object();

    cause_invalid(q, &p, labels ? labels : &none, "`selector` does not match template `labels`");
}

static void check_selector(struct admission_request *q, const struct path *spec_path,
                           const struct json *spec, const char *what)
{
    const struct json *selector = json_get(spec, "selector");
    const struct json *labels = json_at(spec, "template.metadata.labels");
    const struct path p = path_field(spec_path, "selector");

    if (!edit_has(spec, "selector")) {
        cause_required(q, &p, NULL);
        return;
    }
    name_check_selector(q, &p, selector);
    if (edit_size(json_get(selector, "matchLabels")) == 0 &&
        edit_len(json_get(selector, "matchExpressions")) == 0) {
        cause_invalid(q, &p, selector, "empty selector is invalid for %s", what);
    } else if (!admit_workload_selector_matches(selector, labels, q->mem)) {
        blame_labels(q, spec_path, labels);
    }
}

void admit_template_validate(struct admission_request *q, const struct path *spec_path,
                             const struct json *spec)
{
    const struct path template = path_field(spec_path, "template");
    const struct path metadata = path_field(&template, "metadata");
    const struct path labels = path_field(&metadata, "labels");
    const struct path pod = path_field(&template, "spec");

    name_check_labels(q, &labels, json_at(spec, "template.metadata.labels"));
    admit_pod_validate_spec(q, &pod, json_at(spec, "template.spec"));
}

static void check_template(struct admission_request *q, const struct path *spec_path,
                           const struct json *spec)
{
    static const char *const always[] = {"Always", NULL};
    const struct path template = path_field(spec_path, "template");
    const struct path pod = path_field(&template, "spec");
    const struct path deadline = path_field(&pod, "activeDeadlineSeconds");
    const struct json *pod_spec = json_at(spec, "template.spec");

    admit_template_validate(q, spec_path, spec);
    cause_check_enum(q, &pod, pod_spec, "restartPolicy", always);
    if (edit_has(pod_spec, "activeDeadlineSeconds")) {
        cause_forbidden(q, &deadline, "activeDeadlineSeconds in %s is not Supported",
                        q->kind->kind);
    }
}

/* ---- the kinds ---- */

static const struct json *check_common(struct admission_request *q, const struct path *p,
                                       const char *what)
{
    const struct json *spec = json_get(q->obj, "spec");

    cause_check_min(q, p, spec, "replicas", 0);
    cause_check_min(q, p, spec, "minReadySeconds", 0);
    cause_check_min(q, p, spec, "revisionHistoryLimit", 0);
    check_selector(q, p, spec, what);
    check_template(q, p, spec);
    if (q->verb == ADMIT_UPDATE) {
        cause_check_immutable(q, p, spec, json_get(q->old, "spec"), "selector");
    }
    return spec;
}

static bool admit_workload_is_zero(const struct json *v)
{
    return json_is(v, JSON_INT) ? v->i == 0 : hk_str_is(json_str(v, HK_STR("0%")), "0%");
}

static void check_deployment_strategy(struct admission_request *q, const struct path *spec_path,
                                      const struct json *strategy)
{
    static const char *const types[] = {"Recreate", "RollingUpdate", NULL};
    const struct path p = path_field(spec_path, "strategy");
    const struct path rolling = path_field(&p, "rollingUpdate");
    const struct path unavailable = path_field(&rolling, "maxUnavailable");
    const struct json *roll = json_get(strategy, "rollingUpdate");

    cause_check_enum(q, &p, strategy, "type", types);
    if (hk_str_is(edit_str(strategy, "type"), "Recreate")) {
        if (edit_has(strategy, "rollingUpdate")) {
            cause_forbidden(q, &rolling, "may not be specified when strategy `type` is 'Recreate'");
        }
    } else if (admit_workload_is_zero(json_get(roll, "maxUnavailable")) &&
               admit_workload_is_zero(json_get(roll, "maxSurge"))) {
        cause_invalid(q, &unavailable, json_get(roll, "maxUnavailable"),
                      "may not be 0 when `maxSurge` is 0");
    }
}

void admit_deployment_validate(struct admission_request *q)
{
    const struct path p = path_field(NULL, "spec");
    const struct path deadline = path_field(&p, "progressDeadlineSeconds");
    const struct json *spec = check_common(q, &p, "deployment");
    const struct json *seconds = json_get(spec, "progressDeadlineSeconds");

    check_deployment_strategy(q, &p, json_get(spec, "strategy"));
    cause_check_min(q, &p, spec, "progressDeadlineSeconds", 0);
    if (seconds && json_int(seconds, 0) <= json_int(json_get(spec, "minReadySeconds"), 0)) {
        cause_invalid(q, &deadline, seconds, "must be greater than minReadySeconds");
    }
}

void admit_replicaset_validate(struct admission_request *q)
{
    const struct path p = path_field(NULL, "spec");

    check_common(q, &p, "replicaset");
}

void admit_rc_validate(struct admission_request *q)
{
    const struct path p = path_field(NULL, "spec");
    const struct json *spec = json_get(q->obj, "spec");
    const struct json *labels = json_at(spec, "template.metadata.labels");
    struct json selector = json_make_object();

    cause_check_min(q, &p, spec, "replicas", 0);
    cause_check_min(q, &p, spec, "minReadySeconds", 0);
    if (cause_check_present(q, &p, spec, "selector")) {
        json_set(&selector, q->mem, "matchLabels", *json_get(spec, "selector"));
        if (!admit_workload_selector_matches(&selector, labels, q->mem)) {
            blame_labels(q, &p, labels);
        }
    }
    check_template(q, &p, spec);
}

/* Only these fields of a StatefulSet may change. */
static void check_statefulset_update(struct admission_request *q, const struct path *p)
{
    static const char *const free_fields[] = {"replicas",
                                              "ordinals",
                                              "template",
                                              "updateStrategy",
                                              "minReadySeconds",
                                              "revisionHistoryLimit",
                                              "persistentVolumeClaimRetentionPolicy"};
    struct json now = json_clone_as(json_get(q->obj, "spec"), JSON_OBJECT, q->mem);
    struct json old = json_clone_as(json_get(q->old, "spec"), JSON_OBJECT, q->mem);

    for (size_t i = 0; i < HK_LEN(free_fields); i++) {
        json_del(&now, free_fields[i]);
        json_del(&old, free_fields[i]);
    }
    if (!json_equal(&now, &old)) {
        cause_forbidden(q, p,
                        "updates to statefulset spec for fields other than 'replicas', 'ordinals', "
                        "'template', 'updateStrategy', 'revisionHistoryLimit', "
                        "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are "
                        "forbidden");
    }
}

void admit_statefulset_validate(struct admission_request *q)
{
    static const char *const policies[] = {"OrderedReady", "Parallel", NULL};
    static const char *const types[] = {"OnDelete", "RollingUpdate", NULL};
    const struct json *spec = json_get(q->obj, "spec");
    const struct path p = path_field(NULL, "spec");
    const struct path strategy = path_field(&p, "updateStrategy");
    const struct path rolling = path_field(&strategy, "rollingUpdate");
    const struct path ordinals = path_field(&p, "ordinals");

    cause_check_enum(q, &p, spec, "podManagementPolicy", policies);
    cause_check_enum(q, &strategy, json_get(spec, "updateStrategy"), "type", types);
    cause_check_min(q, &rolling, json_at(spec, "updateStrategy.rollingUpdate"), "partition", 0);
    cause_check_min(q, &ordinals, json_get(spec, "ordinals"), "start", 0);
    cause_check_min(q, &p, spec, "replicas", 0);
    cause_check_min(q, &p, spec, "minReadySeconds", 0);
    check_selector(q, &p, spec, "statefulset");
    check_template(q, &p, spec);
    if (q->verb == ADMIT_UPDATE && q->old) {
        check_statefulset_update(q, &p);
    }
}

void admit_daemonset_validate(struct admission_request *q)
{
    static const char *const types[] = {"OnDelete", "RollingUpdate", NULL};
    const struct path p = path_field(NULL, "spec");
    const struct path strategy = path_field(&p, "updateStrategy");
    const struct json *spec = check_common(q, &p, "daemonset");

    cause_check_enum(q, &strategy, json_get(spec, "updateStrategy"), "type", types);
}
