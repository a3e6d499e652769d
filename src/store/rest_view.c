// SPDX-License-Identifier: Apache-2.0
// Versions of a kind other than its storage version. A view has its own row and no objects: reads
// convert objects to its version, writes convert them to the storage version. Most views differ
// only in the version name, as do the versions of a CustomResourceDefinition; others rename members
// or have two conversion functions.
#include "store/rest_priv.h"

struct rename {
    const char *here, *kept; /* members at the top level of the object */
};

struct rest_view {
    struct api_kind kind;
    const char *of_group, *of_version;
    const struct rename *renames; /* ends with NULL; NULL: none */
    void (*show)(struct json *doc, struct hk_arena *a);
    void (*take)(struct json *doc, struct hk_arena *a);
};

/* ---- autoscaling/v1: one number where v2 has a list of metrics ---- */

#define KEPT_METRICS "autoscaling.alpha.kubernetes.io/metrics"
#define KEPT_BEHAVIOR "autoscaling.alpha.kubernetes.io/behavior"

static bool is_cpu(const struct json *metric, const char *value)
{
    return hk_str_is(json_str(json_get(metric, "type"), HK_STR("")), "Resource") &&
           hk_str_is(json_str(json_at(metric, "resource.name"), HK_STR("")), "cpu") &&
           json_is(json_at(metric, value), JSON_INT);
}

/* Moves the CPU metric from the list to a single number; other metrics stay in the list. */
static void cpu_show(struct json *part, const char *list, const char *value, const char *key,
                     struct hk_arena *a)
{
    const struct json *metrics = json_get(part, list);
    const struct json *percent = NULL;
    struct json left = json_make_array();

    for (uint32_t i = 0; json_is(metrics, JSON_ARRAY) && i < metrics->len; i++) {
        const struct json *m = &metrics->items[i];
        if (!percent && is_cpu(m, value)) {
            percent = json_at(m, value);
        } else {
            json_push(&left, a, *m);
        }
    }
    if (percent) {
        json_set(part, a, key, *percent);
        json_set(part, a, list, left);
    }
}

static void cpu_take(struct json *part, const char *list, const char *inner, const char *value,
                     const char *key, struct hk_arena *a)
{
    const struct json *percent = json_get(part, key), *others = json_get(part, list);
    struct json metric = json_make_object();
    struct json all = json_make_array();

    if (!json_is(percent, JSON_INT)) {
        json_del(part, key);
        return;
    }
    struct json *resource = rest_edit(&metric, a, "resource");
    json_set_cstr(resource, a, "name", "cpu");
    struct json *numbers = rest_edit(resource, a, inner);
    json_set(numbers, a, value, *percent);
    if (!strcmp(inner, "target")) {
        json_set_cstr(numbers, a, "type", "Utilization");
    }
    json_set_cstr(&metric, a, "type", "Resource");
    for (uint32_t i = 0; json_is(others, JSON_ARRAY) && i < others->len; i++) {
        json_push(&all, a, others->items[i]);
    }
    json_push(&all, a, metric);
    json_set(part, a, list, all);
    json_del(part, key);
}

/* Saves a member that the view lacks as an annotation, so that writing back loses nothing. */
static void hang(struct json *doc, const char *key, const char *annotation, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct json *spec = rest_edit(doc, a, "spec");
    const struct json *v = json_get(spec, key);

    if (v && v->len > 0) {
        json_write(v, &text);
        json_set_str(rest_edit(rest_edit(doc, a, "metadata"), a, "annotations"), a, annotation,
                     hk_arena_str(a, hk_buf_str(&text)));
    }
    json_del(spec, key);
}

static void unhang(struct json *doc, const char *key, const char *annotation, struct hk_arena *a)
{
    struct json *meta = rest_edit(doc, a, "metadata");
    const struct hk_str text =
        json_str(json_get(json_get(meta, "annotations"), annotation), HK_STR(""));
    struct json v;

    if (text.n == 0 || json_parse(text, 0, a, &v, NULL) < 0) {
        return;
    }
    struct json *annotations = rest_edit(meta, a, "annotations");
    json_set(rest_edit(doc, a, "spec"), a, key, v);
    json_del(annotations, annotation);
    if (annotations->len == 0) {
        json_del(meta, "annotations");
    }
}

static void autoscaler_show(struct json *doc, struct hk_arena *a)
{
    cpu_show(rest_edit(doc, a, "spec"), "metrics", "resource.target.averageUtilization",
             "targetCPUUtilizationPercentage", a);
    hang(doc, "metrics", KEPT_METRICS, a);
    hang(doc, "behavior", KEPT_BEHAVIOR, a);
    if (json_is(json_get(doc, "status"), JSON_OBJECT)) {
        struct json *status = rest_edit(doc, a, "status");
        cpu_show(status, "currentMetrics", "resource.current.averageUtilization",
                 "currentCPUUtilizationPercentage", a);
        json_del(status, "currentMetrics");
        json_del(status, "conditions");
        if (!json_get(status, "currentReplicas")) { /* v2 may leave it out, v1 never does */
            json_set_int(status, a, "currentReplicas", 0);
        }
    }
}

static void autoscaler_take(struct json *doc, struct hk_arena *a)
{
    unhang(doc, "metrics", KEPT_METRICS, a);
    unhang(doc, "behavior", KEPT_BEHAVIOR, a);
    cpu_take(rest_edit(doc, a, "spec"), "metrics", "target", "averageUtilization",
             "targetCPUUtilizationPercentage", a);
    if (json_is(json_get(doc, "status"), JSON_OBJECT)) {
        cpu_take(rest_edit(doc, a, "status"), "currentMetrics", "current", "averageUtilization",
                 "currentCPUUtilizationPercentage", a);
    }
}

/* ---- scheduling.k8s.io/v1alpha1: the groups of a Workload, which v1alpha2 calls templates ---- */

static void rename_in_groups(struct json *spec, const char *list, const char *from, const char *to,
                             struct hk_arena *a)
{
    struct json groups = json_clone_as(json_get(spec, list), JSON_ARRAY, a);

    for (uint32_t i = 0; i < groups.len; i++) {
        const struct json *v = json_get(&groups.items[i], from);
        if (v) {
            json_set(&groups.items[i], a, to, *v);
            json_del(&groups.items[i], from);
        }
    }
    json_set(spec, a, list, groups);
}

static void workload_rename(struct json *doc, const char *from, const char *to,
                            const char *policy_from, const char *policy_to, struct hk_arena *a)
{
    if (!json_is(json_at(doc, "spec"), JSON_OBJECT) ||
        !json_is(json_get(json_get(doc, "spec"), from), JSON_ARRAY)) {
        return;
    }
    struct json *spec = rest_edit(doc, a, "spec");
    rename_in_groups(spec, from, policy_from, policy_to, a);
    json_set(spec, a, to, *json_get(spec, from));
    json_del(spec, from);
}

static void workload_show(struct json *doc, struct hk_arena *a)
{
    workload_rename(doc, "podGroupTemplates", "podGroups", "schedulingPolicy", "policy", a);
}

static void workload_take(struct json *doc, struct hk_arena *a)
{
    workload_rename(doc, "podGroups", "podGroupTemplates", "policy", "schedulingPolicy", a);
}

/* ---- the table ---- */

static const struct rename event_names[] = {
    {"regarding", "involvedObject"},
    {"note", "message"},
    {"reportingController", "reportingComponent"},
    {"deprecatedSource", "source"},
    {"deprecatedFirstTimestamp", "firstTimestamp"},
    {"deprecatedLastTimestamp", "lastTimestamp"},
    {"deprecatedCount", "count"},
    {NULL, NULL},
};

/* Versions requested by kubectl from 1.20 on and by clients of that time. */
static const struct rest_view views[] = {
    {.kind = {API_EVENT, "events.k8s.io", "v1", "Event", "events", "event", true, false, {"ev"}},
     .of_group = "",
     .of_version = "v1",
     .renames = event_names},
    {.kind = {API_NKINDS,
              "autoscaling",
              "v1",
              "HorizontalPodAutoscaler",
              "horizontalpodautoscalers",
              "horizontalpodautoscaler",
              true,
              true,
              {"hpa"}},
     .of_group = "autoscaling",
     .of_version = "v2",
     .show = autoscaler_show,
     .take = autoscaler_take},
    {.kind = {API_NKINDS,
              "scheduling.k8s.io",
              "v1alpha1",
              "Workload",
              "workloads",
              "workload",
              true,
              false,
              {NULL}},
     .of_group = "scheduling.k8s.io",
     .of_version = "v1alpha2",
     .show = workload_show,
     .take = workload_take},
    {.kind = {API_NKINDS, "batch", "v1beta1", "CronJob", "cronjobs", "cronjob", true, true, {"cj"}},
     .of_group = "batch",
     .of_version = "v1"},
    {.kind = {API_PDB,
              "policy",
              "v1beta1",
              "PodDisruptionBudget",
              "poddisruptionbudgets",
              "poddisruptionbudget",
              true,
              true,
              {"pdb"}},
     .of_group = "policy",
     .of_version = "v1"},
};

const struct api_kind *rest_view_at(size_t i, const struct rest_view **ret)
{
    *ret = i < HK_LEN(views) ? &views[i] : NULL;
    return *ret ? &views[i].kind : NULL;
}

void rest_view_of(const struct rest_view *v, struct hk_str *ret_group, struct hk_str *ret_version)
{
    *ret_group = hk_str(v->of_group);
    *ret_version = hk_str(v->of_version);
}

/* ---- conversion in both directions ---- */

static void rename_member(struct json *doc, const char *from, const char *to, struct hk_arena *a)
{
    const struct json *v = json_get(doc, from);

    if (v) {
        json_set(doc, a, to, *v);
        json_del(doc, from);
    }
}

void rest_view_show(const struct rest_kind *k, struct json *doc, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf version = {0};
    const struct rename *r = k->view ? k->view->renames : NULL;

    if (k->storage && !k->many_versions) {
        return;
    }
    for (; r && r->here; r++) {
        rename_member(doc, r->kept, r->here, a);
    }
    if (k->view && k->view->show) {
        k->view->show(doc, a);
    }
    api_kind_write_version(k->kind, &version);
    json_set_str(doc, a, "apiVersion", hk_arena_str(a, hk_buf_str(&version)));
}

void rest_view_take(const struct rest_kind *k, struct json *doc, struct hk_arena *a)
{
    const struct rename *r = k->view ? k->view->renames : NULL;

    for (; r && r->here; r++) {
        rename_member(doc, r->here, r->kept, a);
    }
    if (k->view && k->view->take) {
        k->view->take(doc, a);
    }
}
