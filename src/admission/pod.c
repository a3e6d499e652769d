// SPDX-License-Identifier: Apache-2.0
// What admission adds to a pod: defaults, the two tolerations of every pod, the QoS class, the
// initial status. Pod templates of workloads get the same defaults, except those that only pods
// have.
#include "admission/admission_priv.h"

/* ---- containers ---- */

/* In "host:5000/name:tag@digest" the tag follows the last colon after the last slash. */
static const char *pull_policy(struct hk_str image)
{
    const char *slash = image.n > 0 ? memrchr(image.s, '/', image.n) : NULL;
    const size_t start = slash ? (size_t)(slash - image.s) + 1 : 0;
    const struct hk_str last = {image.s + start, image.n - start};
    const char *colon = last.n > 0 ? memchr(last.s, ':', last.n) : NULL;

    if (last.n > 0 && memchr(last.s, '@', last.n)) {
        return "IfNotPresent";
    }
    if (!colon || hk_str_is((struct hk_str){colon, last.n - (size_t)(colon - last.s)}, ":latest")) {
        return "Always";
    }
    return "IfNotPresent";
}

static void default_http(struct json *handler, struct hk_arena *a)
{
    struct json *http = edit_get(handler, "httpGet");

    if (http) {
        edit_default_str(http, a, "path", "/");
        edit_default_str(http, a, "scheme", "HTTP");
    }
}

/* Zero means "not set" for these fields, as in Go. */
static void default_count(struct json *probe, struct hk_arena *a, const char *key, int64_t v)
{
    if (json_int(json_get(probe, key), 0) == 0) {
        json_set_int(probe, a, key, v);
    }
}

static void default_probe(struct json *container, struct hk_arena *a, const char *key)
{
    struct json *probe = edit_get(container, key);

    if (!probe) {
        return;
    }
    default_count(probe, a, "timeoutSeconds", 1);
    default_count(probe, a, "periodSeconds", 10);
    default_count(probe, a, "successThreshold", 1);
    default_count(probe, a, "failureThreshold", 3);
    default_http(probe, a);
    if (edit_get(probe, "grpc")) {
        struct json *grpc = edit_get(probe, "grpc");
        if (!edit_has(grpc, "service")) {
            json_set_cstr(grpc, a, "service", "");
        }
    }
}

static void default_ports(struct json *container, struct hk_arena *a, bool host_network)
{
    struct json *ports = edit_get(container, "ports");

    for (uint32_t i = 0; i < edit_len(ports); i++) {
        struct json *port = &ports->items[i];
        const int64_t number = json_int(json_get(port, "containerPort"), 0);
        edit_default_str(port, a, "protocol", "TCP");
        if (host_network && number != 0 && json_int(json_get(port, "hostPort"), 0) == 0) {
            json_set_int(port, a, "hostPort", number);
        }
    }
}

static void default_env(struct json *container, struct hk_arena *a)
{
    struct json *env = edit_get(container, "env");

    for (uint32_t i = 0; i < edit_len(env); i++) {
        struct json *ref = edit_at(&env->items[i], "valueFrom.fieldRef");
        if (ref) {
            edit_default_str(ref, a, "apiVersion", "v1");
        }
    }
}

/* Amounts are stored in milli-units; a remainder is rounded up. */
static void round_up(struct json *list, struct hk_arena *a)
{
    for (uint32_t i = 0; i < edit_size(list); i++) {
        const struct hk_str name = list->members[i].key;
        struct quantity v;
        if (amount_get(list, name, &v) && v.nano % 1000000 != 0) {
            amount_put(list, a, name, quantity_of_milli(quantity_milli(v), v.format));
        }
    }
}

static void default_resources(struct json *container, struct hk_arena *a, bool fill)
{
    struct json *resources = json_need(container, a, "resources", JSON_OBJECT);
    const struct json *limits;
    struct json *requests;

    round_up(edit_get(resources, "limits"), a);
    round_up(edit_get(resources, "requests"), a);
    if (!fill || edit_size(json_get(resources, "limits")) == 0) {
        return;
    }
    edit_default_object(resources, a, "requests");
    requests = edit_get(resources, "requests");
    limits = json_get(resources, "limits");
    for (uint32_t i = 0; i < edit_size(limits); i++) {
        if (!json_get_str(requests, limits->members[i].key)) {
            json_put(requests, a, limits->members[i].key, limits->members[i].value);
        }
    }
}

static void default_container(struct json *c, struct hk_arena *a, bool host_network, bool template)
{
    edit_default_str(c, a, "imagePullPolicy", pull_policy(edit_str(c, "image")));
    edit_default_str(c, a, "terminationMessagePath", "/dev/termination-log");
    edit_default_str(c, a, "terminationMessagePolicy", "File");
    default_resources(c, a, !template);
    default_ports(c, a, host_network);
    default_env(c, a);
    default_probe(c, a, "livenessProbe");
    default_probe(c, a, "readinessProbe");
    default_probe(c, a, "startupProbe");
    if (edit_at(c, "lifecycle.postStart")) {
        default_http(edit_at(c, "lifecycle.postStart"), a);
    }
    if (edit_at(c, "lifecycle.preStop")) {
        default_http(edit_at(c, "lifecycle.preStop"), a);
    }
}

static void default_containers(struct json *spec, struct hk_arena *a, const char *key,
                               bool template)
{
    const bool host_network = json_bool(json_get(spec, "hostNetwork"), false);
    struct json *list = edit_get(spec, key);

    for (uint32_t i = 0; i < edit_len(list); i++) {
        if (list->items[i].type == JSON_OBJECT) {
            default_container(&list->items[i], a, host_network, template);
        }
    }
}

/* ---- volumes ---- */

static void default_field_refs(struct json *source, struct hk_arena *a)
{
    struct json *items = edit_get(source, "items");

    for (uint32_t i = 0; i < edit_len(items); i++) {
        struct json *ref = edit_get(&items->items[i], "fieldRef");
        if (ref) {
            edit_default_str(ref, a, "apiVersion", "v1");
        }
    }
}

static void default_projected(struct json *projected, struct hk_arena *a)
{
    struct json *sources = edit_get(projected, "sources");

    for (uint32_t i = 0; i < edit_len(sources); i++) {
        struct json *downward = edit_get(&sources->items[i], "downwardAPI");
        struct json *token = edit_get(&sources->items[i], "serviceAccountToken");
        if (downward) {
            default_field_refs(downward, a);
        }
        if (token) {
            edit_default_int(token, a, "expirationSeconds", 3600);
        }
    }
}

static void default_claim_template(struct json *ephemeral, struct hk_arena *a)
{
    struct json *spec = edit_at(ephemeral, "volumeClaimTemplate.spec");

    if (spec) {
        edit_default_str(spec, a, "volumeMode", "Filesystem");
    }
}

static void default_volume(struct json *volume, struct hk_arena *a)
{
    static const char *const with_mode[] = {"secret", "configMap", "downwardAPI", "projected"};

    if (volume->len <= 1) { /* only a name */
        edit_default_object(volume, a, "emptyDir");
    }
    for (size_t i = 0; i < HK_LEN(with_mode); i++) {
        struct json *source = edit_get(volume, with_mode[i]);
        if (source) {
            edit_default_int(source, a, "defaultMode", 0644);
        }
    }
    if (edit_get(volume, "downwardAPI")) {
        default_field_refs(edit_get(volume, "downwardAPI"), a);
    }
    if (edit_get(volume, "projected")) {
        default_projected(edit_get(volume, "projected"), a);
    }
    if (edit_get(volume, "ephemeral")) {
        default_claim_template(edit_get(volume, "ephemeral"), a);
    }
    if (edit_get(volume, "hostPath") && !edit_has(edit_get(volume, "hostPath"), "type")) {
        json_set_cstr(edit_get(volume, "hostPath"), a, "type", "");
    }
}

/* ---- the spec ---- */

/* Gives serviceAccountName and the deprecated serviceAccount the same value. */
static void pair_account_names(struct json *spec, struct hk_arena *a)
{
    const struct hk_str name = edit_str(spec, "serviceAccountName");
    const struct hk_str old = edit_str(spec, "serviceAccount");

    if (name.n > 0) {
        json_set_str(spec, a, "serviceAccount", name);
    } else if (old.n > 0) {
        json_set_str(spec, a, "serviceAccountName", old);
    }
}

static void default_spec(struct json *spec, struct hk_arena *a, bool template)
{
    struct json *volumes;

    edit_default_str(spec, a, "restartPolicy", "Always");
    edit_default_str(spec, a, "dnsPolicy", "ClusterFirst");
    edit_default_str(spec, a, "schedulerName", "default-scheduler");
    edit_default_int(spec, a, "terminationGracePeriodSeconds", 30);
    edit_default_object(spec, a, "securityContext");
    if (!template) {
        edit_default_bool(spec, a, "enableServiceLinks", true);
    }
    pair_account_names(spec, a);
    if (edit_has(spec, "resources")) {
        default_resources(spec, a, !template);
    }
    round_up(edit_get(spec, "overhead"), a);
    default_containers(spec, a, "initContainers", template);
    default_containers(spec, a, "containers", template);
    default_containers(spec, a, "ephemeralContainers", true);
    volumes = edit_get(spec, "volumes");
    for (uint32_t i = 0; i < edit_len(volumes); i++) {
        if (volumes->items[i].type == JSON_OBJECT) {
            default_volume(&volumes->items[i], a);
        }
    }
}

void admit_pod_default_template(struct json *spec, struct hk_arena *a)
{
    default_spec(spec, a, true);
}

int admit_pod_default(struct admission_request *q, struct hk_err *err)
{
    struct json *spec = json_need(q->obj, q->mem, "spec", JSON_OBJECT);

    default_spec(spec, q->mem, false);
    if (json_int(json_get(spec, "terminationGracePeriodSeconds"), 0) < 0) {
        json_set_int(spec, q->mem, "terminationGracePeriodSeconds", 1);
    }
    return 0;
}

/* ---- tolerations ---- */

static bool tolerates(const struct json *list, const char *key)
{
    for (uint32_t i = 0; i < edit_len(list); i++) {
        const struct json *t = json_item(list, i);
        const struct hk_str k = edit_str(t, "key");
        const struct hk_str effect = edit_str(t, "effect");
        if ((hk_str_is(k, key) || k.n == 0) && (hk_str_is(effect, "NoExecute") || effect.n == 0)) {
            return true;
        }
    }
    return false;
}

static void admit_pod_add_toleration(struct json *spec, struct hk_arena *a, const char *key,
                                     int64_t seconds)
{
    struct json t = json_make_object();

    if (tolerates(json_get(spec, "tolerations"), key)) {
        return;
    }
    json_set_cstr(&t, a, "key", key);
    json_set_cstr(&t, a, "operator", "Exists");
    json_set_cstr(&t, a, "effect", "NoExecute");
    json_set_int(&t, a, "tolerationSeconds", seconds);
    json_push(json_need(spec, a, "tolerations", JSON_ARRAY), a, t);
}

int admit_pod_tolerations(struct admission_request *q, struct hk_err *err)
{
    static const struct admission_tolerations usual = {300, 300};
    const struct admission_tolerations *t = q->tolerations ? q->tolerations : &usual;
    struct json *spec = edit_get(q->obj, "spec");

    admit_pod_add_toleration(spec, q->mem, "node.kubernetes.io/not-ready", t->not_ready_s);
    admit_pod_add_toleration(spec, q->mem, "node.kubernetes.io/unreachable", t->unreachable_s);
    return 0;
}

/* ---- quality of service ---- */

/* Summary of the containers seen so far. */
struct qos {
    bool any;  /* a request or limit above zero */
    bool full; /* all have cpu and memory limits, and requests equal them */
};

static void admit_pod_update_qos(struct qos *qos, const struct json *resources)
{
    static const struct hk_str names[] = {HK_STR("cpu"), HK_STR("memory")};

    for (size_t i = 0; i < HK_LEN(names); i++) {
        struct quantity request = {0};
        struct quantity limit = {0};
        const bool has_request = amount_get(json_get(resources, "requests"), names[i], &request);
        const bool has_limit = amount_get(json_get(resources, "limits"), names[i], &limit);
        qos->any |= request.nano > 0 || limit.nano > 0;
        qos->full &=
            has_limit && limit.nano > 0 && (!has_request || quantity_cmp(request, limit) == 0);
    }
}

const char *admission_pod_qos(const struct json *spec)
{
    static const char *const lists[] = {"initContainers", "containers"};
    struct qos qos = {.any = false, .full = true};

    if (edit_size(json_get(spec, "resources")) > 0) {
        admit_pod_update_qos(&qos, json_get(spec, "resources"));
    } else {
        for (size_t k = 0; k < HK_LEN(lists); k++) {
            const struct json *list = json_get(spec, lists[k]);
            for (uint32_t i = 0; i < edit_len(list); i++) {
                admit_pod_update_qos(&qos, json_get(json_item(list, i), "resources"));
            }
        }
    }
    if (!qos.any) {
        return "BestEffort";
    }
    return qos.full ? "Guaranteed" : "Burstable";
}

/* ---- the initial status ---- */

static void put_gated(struct json *status, struct hk_arena *a, int64_t now_ns)
{
    struct json condition = json_make_object();

    json_set_cstr(&condition, a, "type", "PodScheduled");
    json_set_cstr(&condition, a, "status", "False");
    json_set_time(&condition, a, "lastTransitionTime", now_ns);
    json_set_cstr(&condition, a, "reason", "SchedulingGated");
    json_set_cstr(&condition, a, "message",
                  "Scheduling is blocked due to non-empty scheduling gates");
    json_push(json_need(status, a, "conditions", JSON_ARRAY), a, condition);
}

int admit_pod_prepare(struct admission_request *q, struct hk_err *err)
{
    const struct json *spec = json_get(q->obj, "spec");
    struct json status = json_make_object();

    json_set_cstr(&status, q->mem, "phase", "Pending");
    json_set_cstr(&status, q->mem, "qosClass", admission_pod_qos(spec));
    if (edit_len(json_get(spec, "schedulingGates")) > 0) {
        put_gated(&status, q->mem, q->now_ns);
    }
    json_set(q->obj, q->mem, "status", status);
    return 0;
}
