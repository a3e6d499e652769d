// SPDX-License-Identifier: Apache-2.0
// Defaults of a new job. On update, restores the task defaults that the new version leaves out.
#include "admission/vc_priv.h"

/* Where Go has no pointer, zero means absent. */
static bool vc_job_mutate_field_is_zero(const struct json *obj, const char *key)
{
    return !edit_has(obj, key) || json_int(json_get(obj, key), 1) == 0;
}

static int64_t task_minimum(const struct json *task)
{
    const struct json *partition = json_get(task, "partitionPolicy");
    const int64_t partitions = json_int(json_get(partition, "minPartitions"), 0);
    const int64_t size = json_int(json_get(partition, "partitionSize"), 0);
    int64_t product;

    if (partitions > 0 && !__builtin_mul_overflow(partitions, size, &product)) {
        return product;
    }
    return json_int(json_get(task, "replicas"), 0);
}

/* True when anything changed. */
static bool default_task(struct json *task, uint32_t index, struct hk_arena *a)
{
    struct json *pod = edit_at(task, "template.spec");
    bool changed = false;

    if (edit_str(task, "name").n == 0) {
        json_set_cstr(task, a, "name", hk_arena_printf(a, "default%u", index));
        changed = true;
    }
    if (json_is(pod, JSON_OBJECT) && json_bool(json_get(pod, "hostNetwork"), false) &&
        edit_str(pod, "dnsPolicy").n == 0) {
        json_set_cstr(pod, a, "dnsPolicy", "ClusterFirstWithHostNet");
        changed = true;
    }
    if (!edit_has(task, "minAvailable")) {
        json_set_int(task, a, "minAvailable", task_minimum(task));
        changed = true;
    }
    if (vc_job_mutate_field_is_zero(task, "maxRetry")) {
        json_set_int(task, a, "maxRetry", 3);
        changed = true;
    }
    return changed;
}

/* Restores defaults set at creation: applying a manifest again replaces whole lists and loses
 * them. */
static bool restore_task(struct json *task, const struct json *old, struct hk_arena *a)
{
    static const char *const kept[] = {"name", "maxRetry"};
    const struct json *dns = json_get(json_at(old, "template.spec"), "dnsPolicy");
    struct json *pod;
    bool changed = false;

    for (size_t i = 0; i < HK_LEN(kept); i++) {
        if (!edit_has(task, kept[i]) && edit_has(old, kept[i])) {
            json_set(task, a, kept[i], *json_get(old, kept[i]));
            changed = true;
        }
    }
    if (!edit_has(task, "minAvailable") && edit_has(old, "minAvailable")) {
        json_set_int(task, a, "minAvailable", task_minimum(task));
        changed = true;
    }
    pod = edit_at(task, "template.spec");
    if (json_is(pod, JSON_OBJECT) && json_is(dns, JSON_STRING) && !edit_has(pod, "dnsPolicy") &&
        json_bool(json_get(pod, "hostNetwork"), false)) {
        json_set(pod, a, "dnsPolicy", *dns);
        changed = true;
    }
    return changed;
}

static void mutate_update(struct vc *v)
{
    const struct json *given = json_at(v->q->obj, "spec.tasks");
    const struct json *old = json_at(v->q->old, "spec.tasks");
    struct json tasks;
    bool changed = false;

    if (edit_len(given) == 0 || edit_len(given) != edit_len(old)) {
        return;
    }
    tasks = json_clone(given, v->q->mem);
    for (uint32_t i = 0; i < tasks.len; i++) {
        if (tasks.items[i].type == JSON_OBJECT) {
            changed |= restore_task(&tasks.items[i], json_item(old, i), v->q->mem);
        }
    }
    if (changed) {
        vc_patch(v, "replace", "/spec/tasks", tasks);
    }
}

/* Sets the defaults of the tasks; returns the sum of their minAvailable. */
static int64_t mutate_tasks(struct vc *v, const struct json *spec)
{
    struct json tasks = json_make_array();
    bool changed = false;
    int64_t sum = 0;

    if (json_is(json_get(spec, "tasks"), JSON_ARRAY)) {
        tasks = json_clone(json_get(spec, "tasks"), v->q->mem);
    }
    for (uint32_t i = 0; i < tasks.len; i++) {
        if (tasks.items[i].type == JSON_OBJECT) {
            changed |= default_task(&tasks.items[i], i, v->q->mem);
        }
        const int64_t minimum = json_int(json_get(&tasks.items[i], "minAvailable"), 0);
        if (__builtin_add_overflow(sum, minimum, &sum)) {
            sum = INT64_MAX;
        }
    }
    if (changed) {
        vc_patch(v, "replace", "/spec/tasks", tasks);
    }
    return sum;
}

static void mutate_plugins(struct vc *v, const struct json *spec)
{
    static const char *const need_svc[] = {"tensorflow", "mpi", "pytorch", "ray"};
    struct json plugins;
    bool svc = false;

    if (!json_is(json_get(spec, "plugins"), JSON_OBJECT)) {
        return;
    }
    plugins = json_clone(json_get(spec, "plugins"), v->q->mem);
    for (size_t i = 0; i < HK_LEN(need_svc); i++) {
        svc |= json_get(&plugins, need_svc[i]) != NULL;
    }
    if (svc && !json_get(&plugins, "svc")) {
        json_set_array(&plugins, v->q->mem, "svc");
    }
    if (json_get(&plugins, "mpi") && !json_get(&plugins, "ssh")) {
        json_set_array(&plugins, v->q->mem, "ssh");
    }
    vc_patch(v, "replace", "/spec/plugins", plugins);
}

static void mutate_new(struct vc *v)
{
    const struct json *spec = vc_patch_spec(v);

    if (!spec) {
        return;
    }
    if (edit_str(spec, "queue").n == 0) {
        vc_patch(v, "add", "/spec/queue", json_make_str(HK_STR("default")));
    }
    if (edit_str(spec, "schedulerName").n == 0) {
        vc_patch(v, "add", "/spec/schedulerName", json_make_str(hk_str(vc_scheduler_names(v)[0])));
    }
    if (vc_job_mutate_field_is_zero(spec, "maxRetry")) {
        vc_patch(v, "add", "/spec/maxRetry", json_make_int(3));
    }
    const int64_t sum = mutate_tasks(v, spec);
    if (vc_job_mutate_field_is_zero(spec, "minAvailable")) {
        vc_patch(v, "add", "/spec/minAvailable", json_make_int(sum));
    }
    mutate_plugins(v, spec);
}

void vc_job_mutate(struct vc *v)
{
    if (v->q->verb == ADMIT_UPDATE) {
        mutate_update(v);
    } else {
        mutate_new(v);
    }
}
