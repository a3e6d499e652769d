// SPDX-License-Identifier: Apache-2.0
// Updates of jobs: only the size of a running job may change. Reports the first error. Fields that
// cannot change are not validated again.
#include "admission/vc_priv.h"

static bool check_task(struct vc *v, const struct json *task)
{
    const struct hk_str name = edit_str(task, "name");
    const int64_t replicas = json_int(json_get(task, "replicas"), 0);
    const int64_t minimum = json_int(json_get(task, "minAvailable"), 0);

    if (replicas < 0) {
        hk_buf_addf(&v->why, "'replicas' must be >= 0 in task: %.*s", HK_FMT(name));
    } else if (minimum < 0) {
        hk_buf_addf(&v->why, "'minAvailable' must be >= 0 in task: %.*s", HK_FMT(name));
    } else if (edit_has(task, "minAvailable") && minimum > replicas) {
        hk_buf_addf(&v->why, "'minAvailable' must be <= 'replicas' in task: %.*s", HK_FMT(name));
    } else {
        return vc_job_check_partition(v, task);
    }
    return false;
}

static bool check_sizes(struct vc *v, const struct json *spec)
{
    const struct json *tasks = json_get(spec, "tasks");
    const int64_t minimum = json_int(json_get(spec, "minAvailable"), 0);
    int64_t total = 0;

    for (uint32_t i = 0; i < edit_len(tasks); i++) {
        if (!check_task(v, json_item(tasks, i))) {
            return false;
        }
        if (__builtin_add_overflow(total, json_int(json_get(json_item(tasks, i), "replicas"), 0),
                                   &total)) {
            total = INT64_MAX;
        }
    }
    if (minimum > total) {
        hk_buf_adds(&v->why, "job 'minAvailable' must not be greater than total replicas");
    } else if (minimum < 0) {
        hk_buf_adds(&v->why, "job 'minAvailable' must be >= 0");
    } else if (vc_has_both_tiers(json_get(spec, "networkTopology"))) {
        hk_buf_adds(&v->why, vc_both_tiers);
    } else {
        return true;
    }
    return false;
}

/* A copy of the spec without the fields that may change. The controller may set the names of claims
 * that it created. */
static struct json frozen_part(const struct vc *v, const struct json *obj)
{
    struct hk_arena *a = v->q->mem;
    static const struct json none = {.type = JSON_OBJECT};
    const struct json *given = json_get(obj, "spec");
    struct json spec = json_clone(given ? given : &none, a);
    struct json *tasks;
    struct json *volumes;
    struct json template;

    json_del(&spec, "minAvailable");
    json_del(&spec, "priorityClassName");
    tasks = edit_get(&spec, "tasks");
    volumes = edit_get(&spec, "volumes");
    for (uint32_t i = 0; i < edit_len(tasks); i++) {
        json_del(&tasks->items[i], "replicas");
        json_del(&tasks->items[i], "minAvailable");
        if (tasks->items[i].type == JSON_OBJECT &&
            vc_job_read_template(v, &tasks->items[i], &template, NULL) == 0) {
            json_set(&tasks->items[i], a, "template", template);
        }
    }
    for (uint32_t i = 0; i < edit_len(volumes); i++) {
        if (edit_has(&volumes->items[i], "volumeClaim")) {
            json_del(&volumes->items[i], "volumeClaimName");
        }
    }
    return spec;
}

void vc_job_validate_update(struct vc *v)
{
    const struct json *tasks = json_at(v->q->obj, "spec.tasks");
    const struct json *old_tasks = json_at(v->q->old, "spec.tasks");
    struct json now;
    struct json old;

    if (!check_sizes(v, json_get(v->q->obj, "spec"))) {
        return;
    }
    if (edit_len(tasks) != edit_len(old_tasks)) {
        hk_buf_adds(&v->why, "job updates may not add or remove tasks");
        return;
    }
    now = frozen_part(v, v->q->obj);
    old = frozen_part(v, v->q->old);
    if (!vc_same(&now, &old)) {
        hk_buf_adds(&v->why, "job updates may not change fields other than `minAvailable`, "
                             "`tasks[*].replicas under spec` and `PriorityClassName`");
    }
}
