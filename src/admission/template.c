// SPDX-License-Identifier: Apache-2.0
// Where objects contain pod templates. A rule that restricts what users may put into a pod must
// check these too, because the controller that creates the pod has rights of its own.
#include "admission/admission_priv.h"

/* Dotted paths; "[]" after a name means each element of that list. */
static const struct {
    const char *group, *kind, *steps;
} places[] = {
    {"", "ReplicationController", "spec.template"},
    {"apps", "Deployment", "spec.template"},
    {"apps", "ReplicaSet", "spec.template"},
    {"apps", "StatefulSet", "spec.template"},
    {"apps", "DaemonSet", "spec.template"},
    {"apps", "ControllerRevision", "data.spec.template"},
    {"batch", "Job", "spec.template"},
    {"batch", "CronJob", "spec.jobTemplate.spec.template"},
    {"batch.volcano.sh", "Job", "spec.tasks[].template"},
    {"batch.volcano.sh", "CronJob", "spec.jobTemplate.spec.tasks[].template"},
    {"flow.volcano.sh", "JobTemplate", "spec.tasks[].template"},
    {"flow.volcano.sh", "JobFlow", "spec.flows[].patch.jobSpec.tasks[].template"},
    {"training.volcano.sh", "HyperJob", "spec.replicatedJobs[].templateSpec.tasks[].template"},
};

struct template_walk {
    admit_template_fn *fn;
    void *arg;
};

/* False when fn stopped the walk. */
static bool template_walk_steps(const struct template_walk *w, const struct json *at,
                                const struct path *path, struct hk_str steps)
{
    struct hk_str step;
    bool each;

    if (!json_is(at, JSON_OBJECT)) {
        return true;
    }
    if (!hk_str_cut(&steps, '.', &step)) {
        return w->fn(w->arg, path, at);
    }
    each = hk_str_ends(step, "[]");
    step.n -= each ? 2 : 0;
    const struct path field = {.up = path, .key = step, .form = PATH_FIELD};
    const struct json *v = json_get_str(at, step);
    if (!each) {
        return template_walk_steps(w, v, &field, steps);
    }
    for (uint32_t i = 0; i < edit_len(v); i++) {
        const struct path item = path_index(&field, i);
        if (!template_walk_steps(w, json_item(v, i), &item, steps)) {
            return false;
        }
    }
    return true;
}

void admit_each_template(const struct api_kind *kind, const struct json *obj, admit_template_fn *fn,
                         void *arg)
{
    const struct template_walk w = {fn, arg};

    for (size_t i = 0; i < HK_LEN(places); i++) {
        if (strcmp(kind->group, places[i].group) == 0 && strcmp(kind->kind, places[i].kind) == 0) {
            (void)template_walk_steps(&w, obj, NULL, hk_str(places[i].steps));
        }
    }
}
