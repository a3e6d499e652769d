// SPDX-License-Identifier: Apache-2.0
// Builds the spec of a step's job: the template, changed by the step's patch.jobSpec. Objects
// merge; tasks merge with the task of the same name, and pod templates by the rules for pods
// (containers by name and so on); any other list replaces that of the template.
//
// The schema fills defaults into a patch as into any JobSpec, so a default value cannot be
// distinguished from an absent one and leaves the template unchanged.
#include "api/patch.h"

#include "api/names.h"
#include "controllers/jobflow_priv.h"

enum { MAX_RETRY_DEFAULT = 3 };

static bool is_default(struct hk_str key, const struct json *v)
{
    return (hk_str_is(key, "maxRetry") && json_int(v, 0) == MAX_RETRY_DEFAULT) ||
           (hk_str_is(key, "queue") && hk_str_is(json_str(v, flow_none), API_QUEUE_NAME_DEFAULT));
}

/* Admission names a task without a name after its index. */
static struct hk_str task_name(const struct json *task, uint32_t i, struct hk_arena *a)
{
    const struct hk_str name = json_str(json_get(task, "name"), flow_none);

    return name.n > 0 ? name : hk_str(hk_arena_printf(a, "default%u", i));
}

static int patch_task(struct json *task, const struct json *patch, struct hk_arena *a,
                      struct hk_err *err)
{
    struct json rest = json_clone(patch, a);
    const struct json *template = json_get(patch, "template");
    struct json *target = (struct json *)json_get(task, "template");
    int rc = 0;

    if (json_is(target, JSON_OBJECT) && json_is(template, JSON_OBJECT)) {
        rc = api_patch_strategic(target, template, api_kind(API_POD), a, err);
        json_del(&rest, "template");
    }
    api_patch_merge(task, &rest, a);
    return rc;
}

static int patch_tasks(struct json *tasks, const struct json *patch, struct hk_arena *a,
                       struct hk_err *err)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < patch->len; i++) {
        const struct hk_str name = task_name(&patch->items[i], i, a);
        uint32_t k = 0;

        while (k < tasks->len && !hk_str_eq(task_name(&tasks->items[k], k, a), name)) {
            k++;
        }
        if (k == tasks->len) {
            json_push(tasks, a, json_clone(&patch->items[i], a));
        } else {
            rc = patch_task(&tasks->items[k], &patch->items[i], a, err);
        }
    }
    return rc;
}

int flow_spec(const struct json *template_spec, const struct json *step, struct hk_arena *a,
              struct json *ret, struct hk_err *err)
{
    const struct json *patch = json_at(step, "patch.jobSpec");
    struct json rest = json_make_object();
    int rc = 0;

    *ret = json_clone_as(template_spec, JSON_OBJECT, a);
    if (!json_is(patch, JSON_OBJECT)) {
        return 0;
    }
    for (uint32_t i = 0; i < patch->len; i++) {
        const struct json_member *m = &patch->members[i];
        struct json *tasks = (struct json *)json_get(ret, "tasks");

        if (hk_str_is(m->key, "tasks") && json_is(tasks, JSON_ARRAY) &&
            json_is(&m->value, JSON_ARRAY)) {
            rc = patch_tasks(tasks, &m->value, a, err);
        } else if (!is_default(m->key, &m->value)) {
            json_put(&rest, a, m->key, json_clone(&m->value, a));
        }
    }
    api_patch_merge(ret, &rest, a);
    return rc;
}
