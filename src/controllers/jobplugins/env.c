// SPDX-License-Identifier: Apache-2.0
// env: gives every container the index of its pod within the task.
#include "controllers/jobplugin.h"

struct index_env {
    struct hk_arena *a;
    struct hk_str index;
};

static void env_plugin_add_to_container(void *ctx, struct json *container)
{
    const struct index_env *e = ctx;

    job_add_env(container, e->a, "VK_TASK_INDEX", e->index);
    job_add_env(container, e->a, "VC_TASK_INDEX", e->index);
}

static int env_pod(const struct job_plugin_use *use, const struct api_job_task *task, int32_t index,
                   struct json *pod, struct hk_err *err)
{
    struct index_env e = {use->a, hk_str(hk_arena_printf(use->a, "%d", (int)index))};

    job_each_container(pod, true, env_plugin_add_to_container, &e);
    return 0;
}

const struct job_plugin job_plugin_env = {
    .name = "env",
    .about = "sets VC_TASK_INDEX in every container",
    .pod = env_pod,
};
