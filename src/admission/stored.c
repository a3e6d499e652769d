// SPDX-License-Identifier: Apache-2.0
// Defaults of kinds that have no other rules here: what Kubernetes fills in when such an object is
// written.
#include "admission/admission_priv.h"

/* Calls fn with each object of the list at path. */
static void each_object(struct json *obj, const char *path, struct hk_arena *a,
                        void (*fn)(struct json *item, struct hk_arena *a))
{
    struct json *list = edit_at(obj, path);

    for (uint32_t i = 0; i < edit_len(list); i++) {
        if (list->items[i].type == JSON_OBJECT) {
            fn(&list->items[i], a);
        }
    }
}

static void default_list(struct json *obj, struct hk_arena *a, const char *key, const char *only)
{
    struct json list = json_make_array();

    if (edit_len(json_get(obj, key)) == 0) {
        json_push(&list, a, json_make_str(hk_str(only)));
        json_set(obj, a, key, list);
    }
}

int admit_podtemplate_default(struct admission_request *q, struct hk_err *err)
{
    struct json *pod = edit_at(q->obj, "template.spec");

    if (pod) {
        admit_pod_default_template(pod, q->mem);
    }
    return 0;
}

static void default_protocol(struct json *port, struct hk_arena *a)
{
    edit_default_str(port, a, "protocol", "TCP");
}

static void default_subset(struct json *subset, struct hk_arena *a)
{
    each_object(subset, "ports", a, default_protocol);
}

int admit_endpoints_default(struct admission_request *q, struct hk_err *err)
{
    each_object(q->obj, "subsets", q->mem, default_subset);
    return 0;
}

static void default_slice_port(struct json *port, struct hk_arena *a)
{
    edit_default_str(port, a, "name", "");
    default_protocol(port, a);
}

int admit_endpointslice_default(struct admission_request *q, struct hk_err *err)
{
    each_object(q->obj, "ports", q->mem, default_slice_port);
    return 0;
}

/* Without a metric, 80 % of the requested cpu. */
static struct json usual_metric(struct hk_arena *a)
{
    struct json metric = json_make_object(), resource = json_make_object();
    struct json target = json_make_object();

    json_set_cstr(&target, a, "type", "Utilization");
    json_set_int(&target, a, "averageUtilization", 80);
    json_set_cstr(&resource, a, "name", "cpu");
    json_set(&resource, a, "target", target);
    json_set_cstr(&metric, a, "type", "Resource");
    json_set(&metric, a, "resource", resource);
    return metric;
}

int admit_autoscaler_default(struct admission_request *q, struct hk_err *err)
{
    struct json *spec = json_need(q->obj, q->mem, "spec", JSON_OBJECT);
    struct json list = json_make_array();

    edit_default_int(spec, q->mem, "minReplicas", 1);
    if (edit_len(json_get(spec, "metrics")) == 0) {
        json_push(&list, q->mem, usual_metric(q->mem));
        json_set(spec, q->mem, "metrics", list);
    }
    return 0;
}

/* Whether the version names a group. The core group has no kinds with a scale but one. */
static bool admit_autoscaler_target_has_group(const struct json *target)
{
    const struct hk_str version = edit_str(target, "apiVersion");

    return hk_str_is(edit_str(target, "kind"), "ReplicationController") ||
           (version.n > 0 && memchr(version.s, '/', version.n));
}

void admit_autoscaler_validate(struct admission_request *q)
{
    const struct json *spec = json_get(q->obj, "spec");
    const struct json *target = json_get(spec, "scaleTargetRef");
    const struct json *most = json_get(spec, "maxReplicas");
    const struct path p = path_field(NULL, "spec");
    const struct path max = path_field(&p, "maxReplicas");
    const struct path ref = path_field(&p, "scaleTargetRef");
    const struct path version = path_field(&ref, "apiVersion");

    cause_check_min(q, &p, spec, "minReplicas", 1);
    cause_check_min(q, &p, spec, "maxReplicas", 1);
    if (most && json_int(most, 0) < json_int(json_get(spec, "minReplicas"), 1)) {
        cause_invalid(q, &max, most, "must be greater than or equal to `minReplicas`");
    }
    cause_check_present(q, &ref, target, "kind");
    cause_check_present(q, &ref, target, "name");
    if (!admit_autoscaler_target_has_group(target)) {
        cause_invalid_str(q, &version, edit_str(target, "apiVersion"),
                          "apiVersion must specify API group");
    }
}

static void default_rule(struct json *rule, struct hk_arena *a)
{
    each_object(rule, "ports", a, default_protocol);
}

int admit_networkpolicy_default(struct admission_request *q, struct hk_err *err)
{
    struct json *spec = json_need(q->obj, q->mem, "spec", JSON_OBJECT);

    each_object(spec, "ingress", q->mem, default_rule);
    each_object(spec, "egress", q->mem, default_rule);
    if (edit_len(json_get(spec, "policyTypes")) == 0) {
        default_list(spec, q->mem, "policyTypes", "Ingress");
        if (edit_len(json_get(spec, "egress")) > 0) {
            json_push(edit_get(spec, "policyTypes"), q->mem, json_make_str(HK_STR("Egress")));
        }
    }
    return 0;
}

int admit_csidriver_default(struct admission_request *q, struct hk_err *err)
{
    static const char *const off[] = {"podInfoOnMount", "requiresRepublish", "storageCapacity",
                                      "seLinuxMount"};
    struct json *spec = json_need(q->obj, q->mem, "spec", JSON_OBJECT);

    edit_default_bool(spec, q->mem, "attachRequired", true);
    edit_default_str(spec, q->mem, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    for (size_t i = 0; i < HK_LEN(off); i++) {
        edit_default_bool(spec, q->mem, off[i], false);
    }
    default_list(spec, q->mem, "volumeLifecycleModes", "Persistent");
    return 0;
}

/* ---- what never changes ---- */

void admit_fixed_validate(struct admission_request *q)
{
    static const struct {
        const char *kind, *holder, *field; /* holder NULL: the object */
    } rows[] = {
        {"ControllerRevision", NULL, "data"},   {"EndpointSlice", NULL, "addressType"},
        {"IngressClass", "spec", "controller"}, {"RuntimeClass", NULL, "handler"},
        {"VolumeAttachment", NULL, "spec"},
    };

    for (size_t i = 0; i < HK_LEN(rows); i++) {
        const struct path p = path_field(NULL, rows[i].holder ? rows[i].holder : "");
        const struct json *now = rows[i].holder ? json_get(q->obj, rows[i].holder) : q->obj;
        const struct json *old = rows[i].holder ? json_get(q->old, rows[i].holder) : q->old;
        if (!strcmp(q->kind->kind, rows[i].kind)) {
            cause_check_immutable(q, rows[i].holder ? &p : NULL, now, old, rows[i].field);
        }
    }
}

/* ---- numbers of a status ---- */

/* Numbers that count something must not be negative. */
void admit_counts_validate(struct admission_request *q)
{
    static const char *const names[] = {
        "replicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "updatedReplicas",
        "currentReplicas",
        "fullyLabeledReplicas",
        "observedGeneration",
        "collisionCount",
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "active",
        "succeeded",
        "failed",
        "ready",
        "terminating",
    };
    const struct json *status = json_get(q->obj, "status");
    const struct path at = path_field(NULL, "status");

    for (size_t i = 0; i < HK_LEN(names); i++) {
        cause_check_min(q, &at, status, names[i], 0);
    }
}
